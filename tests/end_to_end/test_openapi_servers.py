"""Public documents, and a server that nobody here wrote made of them: loaded and called end to end."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.configuration import ToolsConfiguration
from engines.errors import ConfigurationInvalid
from engines.loaders.entries import Surroundings
from engines.loaders.openapi.loader import load
from engines.loaders.openapi.metadata import METHODS, RestOperation
from engines.loading import load_registry
from engines.plain import JSONObject
from engines.schemas import checked_schema
from engines.tool import Tool, ToolCall, ToolResult
from engines.wiring import build_engine
from tests.support.prism import DOCUMENTS, LAST_PATH, prism, skip_without_npm
from tests.support.schema_samples import arguments_for
from tests.unit.engines.stage import no_speak

pytestmark = pytest.mark.timeout(300)

# Of the 129 documents these three describe no operation, only a title or webhooks.
WITHOUT_OPERATIONS = {
    "3.0/json/openapi-workshop/title.json",
    "3.1/json/webhooks.json",
    "3.1/yaml/webhooks.yaml",
}
# Prism ends when it reads a list from a header that is not there, or from a path, and on styles of OpenAPI that it
# lacks; so of this document only what it can read.
STYLES = [
    "cookies_standard", "cookies_form_nonExploded", "cookies_form_exploded", "headers_standard",
    "headers_simple_nonExploded", "headers_simple_exploded", "query_standard", "query_form_nonExploded",
    "query_form_exploded", "query_deepObject_nonExploded",
]  # fmt: skip
CALLED: dict[str, JSONObject] = {
    "2.0/json/petstore-expanded.json": {},
    "2.0/yaml/petstore-simple.yaml": {},
    "3.0/json/form-data.json": {},
    "3.0/json/parameters-common.json": {},
    "3.0/json/parameters-extreme.json": {},
    "3.0/json/parameters-style.json": {"operation_ids": STYLES},
    "3.0/json/petstore.json": {},
    "3.0/json/schema-circular.json": {},
    "3.0/json/star-trek.json": {},
    "3.0/yaml/complex-nesting.yaml": {},
    "3.0/yaml/uspto.yaml": {},
    "3.1/json/petstore.json": {},
    "3.1/yaml/train-travel.yaml": {},
}
_REFUSED = re.compile(
    r"Violation: request|Error:|errors#(?!NO_RESPONSE)"  # It may have nothing to answer with; the rest is our fault.
)


@pytest.fixture(scope="module", autouse=True)
def _servers() -> None:
    skip_without_npm()


def documents() -> Iterator[Path]:
    """Every document of the package."""
    for version in ("2.0", "3.0", "3.1"):
        for suffix in ("json", "yaml"):
            yield from sorted((DOCUMENTS / version).rglob(f"*.{suffix}"))


def operations_in(document: JSONObject) -> int:
    """Count them without any code of the loader."""

    def resolved(path_item: JSONObject) -> JSONObject:
        part: JSONObject = document
        for step in path_item["$ref"].split("/")[1:] if "$ref" in path_item else ():
            part = part[step.replace("~1", "/")]
        return part if "$ref" in path_item else path_item

    return sum(
        isinstance(resolved(path_item).get(method.lower()), dict)
        for path, path_item in document["paths"].items()
        for method in METHODS[:5]
        if path.startswith("/")
    )


def test_d50_d51_d52_every_public_document_loads_with_every_operation(tmp_path: Path) -> None:
    loaded, refused = 0, {}
    for path in documents():
        surroundings = Surroundings(at=("registry", 0), folder=tmp_path, environment={})
        try:
            tools = load({"type": "openapi", "spec": str(path), "base_url": "http://localhost:1"}, surroundings)
        except ConfigurationInvalid as error:
            refused[str(path.relative_to(DOCUMENTS))] = str(error)
            continue
        if path.suffix == ".json":
            assert len(tools) == operations_in(json.loads(path.read_text())), path
        assert len({tool.name for tool in tools}) == len(tools), path
        for tool in tools:
            _check_that_it_is_usable(tool)
        loaded += len(tools)

    assert refused.keys() == WITHOUT_OPERATIONS
    assert all("describes no operations" in error for error in refused.values())
    assert loaded > 1300


def _check_that_it_is_usable(tool: Tool) -> None:
    """Its schemas compile, its metadata reads back from what is stored, its arguments have names providers take."""
    stored = Tool.from_dict(json.loads(json.dumps(tool.to_dict())))
    operation = RestOperation.of(stored)
    for schema in (stored.parameters, stored.output_parameters):
        if schema is not None:
            checked_schema(schema, of=tool.name)
            assert "#/components" not in json.dumps(schema).replace(json.dumps(schema.get("description")), "")
    assert not {"oneOf", "anyOf", "allOf", "enum", "not"} & stored.parameters.keys()
    assert operation.parameters.keys() == stored.parameters["properties"].keys()
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", argument) for argument in operation.parameters)


@pytest.mark.parametrize(("document", "keys"), CALLED.items(), ids=list(CALLED))
async def test_d46_to_d58_a_server_that_checks_requests_takes_every_call(document: str, keys: JSONObject) -> None:
    """Prism refuses a request that does not fit the document, and answers any other by it."""
    path = DOCUMENTS / document
    async with prism(path) as server:
        called = await _call_everything(path, keys, server.url)
        await server.has_said_everything()

    refused = [line for line in server.lines if _REFUSED.search(line) and LAST_PATH not in line]
    assert refused == [], "".join(refused)
    for tool, result in called:
        if tool.output_parameters is not None:
            assert result.error is None, (tool.name, result.error)
            assert result.result is not None
        elif result.error is not None:  # All that the document says of it is how it fails.
            assert re.match(r"HTTP 4\d\d: ", result.error), (tool.name, result.error)


async def _call_everything(path: Path, keys: JSONObject, url: str) -> list[tuple[Tool, ToolResult]]:
    """Call each operation with all of its arguments and, where Prism can do without the rest, with the needed ones."""
    configuration = ToolsConfiguration.model_validate(
        {
            "registry": [{"type": "openapi", "spec": str(path), "namespace": "api", "engine": "live", **keys}],
            "engines": {"live": {"type": "rest", "url": url, "bearer_token": "t", "headers": {"api_key": "k"}}},
        }
    )
    registry = load_registry(configuration, folder=path.parent, environment={})
    engine = build_engine(configuration, registry, speak_for=no_speak)
    called = []
    await engine.open()
    try:
        await engine.setup("conversation")
        for tool in registry.all_tools():
            for with_optional in (True, False)[: 1 if keys else 2]:
                arguments = arguments_for(tool.parameters, with_optional=with_optional)
                call = ToolCall(tool.name, tool.namespace, arguments, "call")
                called += [(tool, result) for result in await engine.execute("conversation", [call])]
        await engine.teardown("conversation")
    finally:
        await engine.close()
    return called
