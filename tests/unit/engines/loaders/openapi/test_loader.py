"""The registry entry `{type: openapi}`: files, URLs, filters, credentials, refusals."""

import asyncio
import base64
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engines.configuration import ToolsConfiguration
from engines.errors import ConfigurationInvalid, Place, SettingsInvalid
from engines.loaders.entries import Surroundings
from engines.loaders.kinds import LOADER_KINDS
from engines.loaders.openapi.loader import load
from engines.loading import load_registry, pinned
from engines.plain import JSONObject
from engines.tool import Tool
from tests.support.certificates import Authority
from tests.support.raw_server import RawServer, answer, raw_server

ToolsOf = Callable[..., dict[str, Tool]]

JSON: JSONObject = {
    "openapi": "3.1.0",
    "servers": [{"url": "/v1"}],
    "paths": {
        "/pets": {
            "get": {"operationId": "listPets", "tags": ["pets"], "parameters": [{"in": "query", "name": "limit"}]},
            "post": {"operationId": "addPet", "tags": ["pets", "admin"]},
        },
        "/ping": {"get": {"tags": ["health"]}},
    },
}
SPEC = json.dumps(JSON).encode()
YAML = b"openapi: 3.0.3\nservers: [{url: /v1}]\npaths: {/ping: {get: {responses: {200: {description: ok}}}}}\n"


def entry(spec: str, **keys: Any) -> JSONObject:
    return {"type": "openapi", "spec": spec, **keys}


async def loaded(server: RawServer, surroundings: Surroundings, path: str = "/api.json", **keys: Any) -> list[Tool]:
    """Load from a thread, since the server lives in this loop."""
    return await asyncio.to_thread(load, entry(server.url + path, **keys), surroundings)


@pytest.mark.parametrize("kind", ["openapi", "rest"])
def test_d46_both_names_of_the_kind_load(kind: str, surroundings: Surroundings) -> None:
    (surroundings.folder / "api.json").write_bytes(SPEC)

    tools = LOADER_KINDS[kind]({**entry("api.json", base_url="http://localhost:1"), "type": kind}, surroundings)

    assert [tool.qualified_name for tool in tools] == ["default::listPets", "default::addPet", "default::get_ping"]


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.yaml", YAML), ("a.yml", YAML), ("A.YAML", YAML), ("a.json", SPEC), ("a.json", b"\xef\xbb\xbf" + SPEC)],
)
def test_d46_a_file_is_read_by_its_suffix(surroundings: Surroundings, name: str, content: bytes) -> None:
    (surroundings.folder / name).write_bytes(content)

    assert load(entry(name, url="http://localhost:1"), surroundings)[-1].name == "get_ping"


def test_d46_any_other_suffix_is_a_value_error(surroundings: Surroundings) -> None:
    for name in ("a.txt", "a.toml", "a"):
        (surroundings.folder / name).write_bytes(SPEC)
        with pytest.raises(ValueError, match=r"tools\.registry\[0\]\.spec: .*descriptions are \.yaml, \.yml, \.json"):
            load(entry(name), surroundings)


def test_d72_a_path_may_hold_variables(surroundings: Surroundings) -> None:
    (surroundings.folder / "a.json").write_bytes(SPEC)
    told = replace(surroundings, environment={"NAME": "a"})

    assert load(entry("$NAME.json", url="http://localhost:1"), told)
    with pytest.raises(ConfigurationInvalid, match="the variable OTHER is not set"):
        load(entry("$OTHER.json"), told)


@pytest.mark.parametrize(
    ("path", "content_type", "body"),
    [
        ("/openapi.json", "application/json", SPEC),
        ("/openapi.yaml", "text/plain", YAML),
        ("/openapi.yml?v=2", "application/octet-stream", YAML),
        ("/openapi", "application/vnd.oai.openapi; charset=utf-8", SPEC),
        ("/openapi", "application/x-yaml", YAML),
        ("/openapi.json", "application/yaml", YAML),
        ("/openapi", "text/plain", YAML),
        ("/openapi", "application/openapi+json", SPEC),
    ],
)
async def test_d46_a_remote_document_is_read_by_its_media_type_or_suffix(
    surroundings: Surroundings, path: str, content_type: str, body: bytes
) -> None:
    async with raw_server(answer(body, f"content-type: {content_type}")) as server:
        tools = await loaded(server, surroundings, path)

    assert tools[-1].name == "get_ping"
    assert [(request.method, request.target) for request in server.requests] == [("GET", path)]


async def test_d49_relative_servers_of_a_remote_document_start_at_its_url(surroundings: Surroundings) -> None:
    async with raw_server(answer(SPEC, "content-type: application/json")) as server:
        own = await loaded(server, surroundings)
        given = await loaded(server, surroundings, base_url="http://localhost:9/x/")

    assert {tool.metadata["rest_base_url"] for tool in own} == {f"{server.url}/v1"}
    assert {tool.metadata["rest_base_from"] for tool in own} == {"recipe"}
    assert {tool.metadata["rest_base_url"] for tool in given} == {"http://localhost:9/x"}


def test_d49_url_and_base_url_both_mean_the_base_url(tools_of: ToolsOf) -> None:
    for key in ("url", "base_url"):
        assert (
            tools_of(JSON, **{key: "https://a.example/"})["listPets"].metadata["rest_base_url"] == "https://a.example"
        )


def test_d47_a_namespace_is_given_or_default(tools_of: ToolsOf) -> None:
    assert {tool.namespace for tool in tools_of(JSON, url="http://a.example", namespace="shop").values()} == {"shop"}
    assert {tool.namespace for tool in tools_of(JSON, url="http://a.example").values()} == {"default"}


def test_d47_operation_ids_choose_by_id_or_by_the_tools_name(tools_of: ToolsOf) -> None:
    tools = tools_of(JSON, url="http://a.example", operation_ids=["addPet", "get_ping"])

    assert list(tools) == ["addPet", "get_ping"]


def test_tags_choose_too(tools_of: ToolsOf) -> None:
    assert list(tools_of(JSON, url="http://a.example", tags=["admin", "health"])) == ["addPet", "get_ping"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"operation_ids": ["addPet", "listPet"]},
            r"operation_ids\[1\]: no operation 'listPet' .*did you mean 'listPets'",
        ),
        ({"tags": ["pet"]}, r"registry\[0\]\.tags\[0\]: no tag 'pet' in the description; did you mean 'pets'"),
        ({"operation_ids": []}, r"registry\[0\]\.operation_ids"),
        ({"operation_id": ["x"]}, r"unknown key 'operation_id'; did you mean 'operation_ids'"),
        ({"spec": ""}, r"registry\[0\]\.spec"),
        ({"base_url": "ftp://x"}, "http"),
        ({"bearer_token": "t", "basic_auth": "u:p"}, "several ways to say who is asking"),
        ({"headers": {"X-A": "a\r\nX-B: b"}}, "visible ASCII"),
        ({"timeout": 0}, r"registry\[0\]\.timeout"),
    ],
)
def test_d47_wrong_keys_are_errors_that_name_place_and_way_out(
    tools_of: ToolsOf, keys: JSONObject, message: str
) -> None:
    with pytest.raises(ConfigurationInvalid, match=message):
        tools_of(JSON, **keys)


def test_d47_a_document_is_needed(surroundings: Surroundings) -> None:
    with pytest.raises(SettingsInvalid, match=r"registry\[0\]\.spec: this key is needed"):
        load({"type": "openapi"}, surroundings)


@pytest.mark.parametrize(
    ("keys", "header", "value"),
    [
        ({"bearer_token": "secret"}, "authorization", "Bearer secret"),
        ({"basic_auth": "user:secret"}, "authorization", f"Basic {base64.b64encode(b'user:secret').decode()}"),
        ({"headers": {"X-Key": "secret"}}, "x-key", "secret"),
        ({"api_key": {"name": "X-Key", "value": "secret"}}, "x-key", "secret"),
    ],
)
async def test_d47_the_document_is_fetched_with_the_entrys_credentials(
    surroundings: Surroundings, keys: JSONObject, header: str, value: str
) -> None:
    async with raw_server(answer(SPEC, "content-type: application/json")) as server:
        tools = await loaded(server, surroundings, base_url="https://another.example", **keys)

    assert server.requests[0].headers[header] == [value]
    assert "secret" not in json.dumps([tool.to_dict() for tool in tools])


async def test_d47_verify_says_which_authority_is_trusted(surroundings: Surroundings, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = authority.server_context(authority.signed("localhost"))
    async with raw_server(answer(SPEC, "content-type: application/json"), tls=context) as server:
        spec = f"https://localhost:{server.port}/api.json"
        with pytest.raises(ConfigurationInvalid, match=r"registry\[0\]\.spec: localhost"):
            await asyncio.to_thread(load, entry(spec), surroundings)
        assert await asyncio.to_thread(load, entry(spec, verify=str(authority.file)), surroundings)


async def test_sec_s7_redirects_of_a_document_are_not_followed(surroundings: Surroundings) -> None:
    async with raw_server(answer(SPEC)) as other:
        there = answer(b"", f"location: {other.url}/api.json", status="302 Found")
        async with raw_server(there) as server:
            with pytest.raises(ConfigurationInvalid, match="redirects are not followed"):
                await loaded(server, surroundings, bearer_token="secret")

    assert other.requests == []


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (answer(b"nope", status="401 Unauthorized"), "HTTP 401 instead of the document"),
        (answer(b"[1, 2", "content-type: application/json"), r"/api\.json:1:6: not JSON"),
        (answer(b"a: [", "content-type: text/yaml"), r"/api\.json:1:5"),
        (answer(b'{"a": 1, "a": 2}', "content-type: application/json"), "the key 'a' stands twice"),
        (answer(b"\xff\xfe", "content-type: application/json"), "not UTF-8 text"),
    ],
)
async def test_a_remote_document_that_cannot_be_used_says_why(
    surroundings: Surroundings, said: bytes, cause: str
) -> None:
    async with raw_server(said) as server:
        with pytest.raises(ConfigurationInvalid, match=rf"tools\.registry\[0\]\.spec: .*{cause}"):
            await loaded(server, surroundings)


async def test_a_document_may_be_larger_than_the_answer_of_a_tool(surroundings: Surroundings) -> None:
    async with raw_server(answer(SPEC + b" " * (5 << 20), "content-type: application/json")) as server:
        assert await loaded(server, surroundings)


async def test_sec_s17_a_remote_document_has_a_largest_size(surroundings: Surroundings) -> None:
    async with raw_server(answer(b" " * 2000 + SPEC)) as server:
        with pytest.raises(ConfigurationInvalid, match=r"larger than"):
            await loaded(server, surroundings, max_response_bytes=1000)


@pytest.mark.parametrize(
    ("document", "cause"),
    [
        ([], "is no OpenAPI description: it has neither `openapi` nor `swagger`"),
        ({"asyncapi": "2.0.0"}, "is no OpenAPI description"),
        ({"openapi": "4.0.0", "paths": {}}, r"OpenAPI '4\.0\.0' is not known; known: 3\.0, 3\.1"),
        ({"swagger": "1.2"}, r"Swagger '1\.2' is not known; known: 2\.0"),
        ({"openapi": "3.1.0"}, "describes no operations"),
        ({"openapi": "3.1.0", "paths": {"/a": {"head": {}}}}, "describes no operations"),
    ],
)
def test_d46_what_is_no_description_is_refused(tools_of: ToolsOf, document: Any, cause: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=rf"registry\[0\]\.spec: {cause}"):
        tools_of(document)


def test_a_version_may_be_written_as_a_number(surroundings: Surroundings) -> None:
    for head in ("openapi: 3.1", "swagger: 2.0", 'swagger: "2.0"'):
        (surroundings.folder / "a.yaml").write_text(f"{head}\npaths: {{/a: {{get: {{}}}}}}\n")
        assert load(entry("a.yaml"), surroundings)[0].name == "get_a"


def test_u2_of_an_optional_entry_the_sound_operations_are_loaded(surroundings: Surroundings) -> None:
    broken = {"paths": {**JSON["paths"], "/broken": {"get": {"parameters": [{}]}}}}
    (surroundings.folder / "api.json").write_text(json.dumps({**JSON, **broken}))
    left_out: list[ConfigurationInvalid] = []

    tools = load(entry("api.json", url="http://a.example"), replace(surroundings, leave_out=left_out.append))

    assert [tool.name for tool in tools] == ["listPets", "addPet", "get_ping"]
    assert ["GET /broken: parameters[0]" in str(error) for error in left_out] == [True]


def resolving(values: dict[str, str]) -> Callable[[JSONObject, Place], JSONObject]:
    def resolve(written: JSONObject, _at: Place) -> JSONObject:
        text = json.dumps(written)
        for name, value in values.items():
            text = text.replace(f"${{{name}}}", value)
        resolved: JSONObject = json.loads(text)
        return resolved

    return resolve


async def test_sec_s11_what_references_stand_for_gets_into_no_tool(surroundings: Surroundings) -> None:
    async with raw_server(answer(SPEC, "content-type: application/json")) as server:
        told = replace(surroundings, resolve=resolving({"SPEC": f"{server.url}/key-4711/api.json", "TOKEN": "t-0815"}))
        tools = await asyncio.to_thread(load, entry("${SPEC}", bearer_token="${TOKEN}", url="http://a.example"), told)
        with pytest.raises(ConfigurationInvalid, match="'/v1' is relative"):
            await asyncio.to_thread(load, entry("${SPEC}"), told)

    assert server.requests[0].headers["authorization"] == ["Bearer t-0815"]
    assert server.requests[0].target == "/key-4711/api.json"
    written = json.dumps([tool.to_dict() for tool in tools])
    assert "4711" not in written
    assert "0815" not in written


@pytest.mark.parametrize("key", ["url", "base_url"])
@pytest.mark.parametrize("value", ["${API}", "https://${HOST}/v1", "file:/run/secrets/url"])
def test_sec_s11_a_base_url_that_would_be_stored_holds_no_reference(tools_of: ToolsOf, key: str, value: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=rf"registry\[0\]\.{key}: .*use the engine's url"):
        tools_of(JSON, **{key: value})


def test_a_local_document_needs_none_of_the_entrys_secrets(surroundings: Surroundings) -> None:
    def resolve(written: JSONObject, _at: Place) -> JSONObject:
        assert written.keys() == {"spec"}, "the token is asked for, though nothing is fetched"
        return written

    (surroundings.folder / "api.json").write_bytes(SPEC)
    told = replace(surroundings, resolve=resolve)

    assert load(entry("api.json", url="http://a.example", bearer_token="${UNSET}"), told)


def test_what_is_pinned_loads_again_the_same_without_the_document(surroundings: Surroundings) -> None:
    (surroundings.folder / "api.json").write_bytes(SPEC)
    block = {"registry": [entry("api.json", url="http://a.example", namespace="shop", bearer_token="t-0815")]}
    configuration = ToolsConfiguration.model_validate(block)
    registry = load_registry(configuration, folder=surroundings.folder, environment={})
    stored = json.loads(json.dumps(pinned(configuration, registry)))

    again = load_registry(ToolsConfiguration.model_validate(stored), folder=Path("/nowhere"), environment={})

    assert [tool.to_dict() for tool in again.all_tools()] == [tool.to_dict() for tool in registry.all_tools()]
    assert "t-0815" not in json.dumps(stored)
