"""TOML ensembles: descriptors and invoker files, as their source documents them and beyond."""

from pathlib import Path
from typing import Any

import pytest

from engines.configuration import ToolsConfiguration
from engines.errors import ConfigurationInvalid
from engines.loading import load_registry, pinned
from engines.registry import ToolRegistry
from engines.tool import Tool
from engines.toolset import ToolDefaults

IO = """
[ensemble]
name = "io"
enabled = true

[defaults]
timeout = 30
max_retries = 3

[[invokers]]
source = "io/invokers/read_file.toml"

[[invokers]]
source = "io/invokers/write_file.toml"
"""
READ_FILE = """
[invoker]
name = "read_file"
enabled = true
description = "Reads contents of a file"

[arguments]
type = "object"
required = ["path"]

[arguments.properties.path]
type = "string"
description = "Absolute path to file"

[arguments.properties.encoding]
type = "string"
description = "File encoding"
default = "utf-8"
"""
WRITE_FILE = """
[invoker]
name = "write_file"

[defaults]
timeout = 5

[arguments]
type = "object"
required = ["path", "text"]
properties = {path = {type = "string"}, text = {type = "string"}}

[returns]
type = "object"
properties = {bytes = {type = "integer"}}
"""


def written(folder: Path, **files: str) -> Path:
    """Write files into the folder; `__` in a name stands for the `/` between folders."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def io(tmp_path: Path) -> Path:
    return written(tmp_path, io=IO, io__invokers__read_file=READ_FILE, io__invokers__write_file=WRITE_FILE)


def load(folder: Path, path: str = "io.toml", namespaces: dict[str, Any] | None = None, **entry: Any) -> ToolRegistry:
    block = {"registry": [{"type": "ensemble", "path": path, **entry}], "namespaces": namespaces or {}}
    return load_registry(ToolsConfiguration.model_validate(block), folder=folder, environment={})


def defaults_of(registry: ToolRegistry, name: str) -> ToolDefaults:
    tool = registry.get(name)
    return registry.toolsets[tool.namespace].defaults_for(tool)


def test_e7_the_documented_ensemble_loads(io: Path) -> None:
    registry = load(io)
    assert registry.tool_names() == ["io::read_file", "io::write_file"]
    assert registry.get("io::read_file").description == "Reads contents of a file"


@pytest.mark.parametrize("kind", ["ensemble", "file"])
def test_e7_a_file_of_tools_may_be_an_ensemble(io: Path, kind: str) -> None:
    assert load(io, type=kind).tool_names() == ["io::read_file", "io::write_file"]


def test_e8_an_invoker_file_is_a_whole_tool(io: Path) -> None:
    tool = load(io).get("io::read_file")
    assert tool.parameters == {
        "type": "object",
        "required": ["path"],
        "properties": {
            "path": {"type": "string", "description": "Absolute path to file"},
            "encoding": {"type": "string", "description": "File encoding", "default": "utf-8"},
        },
    }
    assert load(io).get("io::write_file").output_parameters == {
        "type": "object",
        "properties": {"bytes": {"type": "integer"}},
    }


def test_e7_invokers_in_place_and_words_over_a_source(tmp_path: Path) -> None:
    text = """
    ensemble = {name = "x"}
    [[invokers]]
    name = "here"
    description = "in place"
    arguments = {type = "object", properties = {n = {type = "integer"}}}
    [[invokers]]
    source = "read_file.toml"
    name = "read"
    description = "shorter"
    metadata = {read_only = true}
    """
    registry = load(written(tmp_path, io=text, read_file=READ_FILE))
    assert registry.get("x::here").parameters["properties"] == {"n": {"type": "integer"}}
    read = registry.get("x::read")
    assert (read.description, read.parameters["required"], read.metadata["read_only"]) == ("shorter", ["path"], True)


def test_e4_an_ensemble_is_a_namespace_and_its_invokers_are_found_in_it(io: Path) -> None:
    registry = load(io)
    assert registry.namespaces() == ["io"]
    with pytest.raises(KeyError, match="no tool 'io::read_fil'; did you mean 'io::read_file'"):
        registry.get("io::read_fil")


def test_e6_two_ensembles_may_have_a_tool_of_the_same_name(tmp_path: Path) -> None:
    invokers = '[[invokers]]\nname = "get"\n'
    written(tmp_path, a=f'ensemble = {{name = "a"}}\n{invokers}', b=f'ensemble = {{name = "b"}}\n{invokers}')
    registry = load(tmp_path, path=".")
    assert registry.tool_names() == ["a::get", "b::get"]
    with pytest.raises(ConfigurationInvalid, match=r"tools: 'get' is the name of several tools \(a::get, b::get\)"):
        registry.select(["get"])


def test_e7_a_folder_means_every_descriptor_in_it_but_nothing_below(io: Path) -> None:
    written(io, other='ensemble = {name = "other"}\n[[invokers]]\nname = "get"\n')
    assert load(io, path=".").namespaces() == ["io", "other"]


def test_d72_the_entrys_namespace_is_over_the_ensembles_name(io: Path) -> None:
    assert load(io, namespace="files").namespaces() == ["files"]


def test_e9_of_a_disabled_ensemble_nothing_is_read(io: Path) -> None:
    (io / "io/invokers/read_file.toml").unlink()
    (io / "io.toml").write_text(IO.replace("enabled = true", "enabled = false"))
    registry = load(io)
    assert (len(registry), registry.namespaces()) == (0, [])
    assert registry.select(["io::read_file", "io::*"]) == []


def test_e9_a_namespace_that_the_recipe_disables_is_not_even_looked_for(tmp_path: Path) -> None:
    registry = load(tmp_path, path="nowhere.toml", namespace="io", namespaces={"io": {"enabled": False}})
    assert len(registry) == 0
    assert registry.select(["io::anything"]) == []


@pytest.mark.parametrize("where", ["in its file", "in the descriptor", "in the recipe"])
def test_e9_a_disabled_invoker_is_not_there(io: Path, where: str) -> None:
    settings: dict[str, Any] = {}
    if where == "in its file":
        written(io, io__invokers__read_file=READ_FILE.replace("enabled = true", "enabled = false"))
    elif where == "in the descriptor":
        written(io, io=IO.replace('read_file.toml"', 'read_file.toml"\nenabled = false'))
    else:
        settings = {"io": {"tools": {"read_file": {"enabled": False}}}}
    registry = load(io, namespaces=settings)
    assert registry.tool_names() == ["io::write_file"]
    assert registry.select(["io::read_file"]) == []


def test_e9_the_recipe_may_switch_an_invoker_on_that_its_file_disables(io: Path) -> None:
    written(io, io__invokers__read_file=READ_FILE.replace("enabled = true", "enabled = false"))
    registry = load(io, namespaces={"io": {"tools": {"read_file": {"enabled": True}}}})
    assert registry.tool_names() == ["io::read_file", "io::write_file"]


def test_e10_an_invokers_defaults_are_over_its_ensembles(io: Path) -> None:
    registry = load(io)
    assert defaults_of(registry, "io::read_file") == ToolDefaults(timeout_seconds=30, max_retries=3)
    assert defaults_of(registry, "io::write_file") == ToolDefaults(timeout_seconds=5, max_retries=3)


def test_e10_defaults_beside_a_source_are_over_its_file(io: Path) -> None:
    written(io, io=IO.replace('write_file.toml"', 'write_file.toml"\ndefaults = {timeout = 7, max_result_chars = 9}'))
    expected = ToolDefaults(timeout_seconds=7, max_retries=3, max_result_chars=9)
    assert defaults_of(load(io), "io::write_file") == expected


def test_e10_the_recipe_is_over_the_ensemble_and_under_the_invoker(io: Path) -> None:
    registry = load(io, namespaces={"io": {"defaults": {"timeout_seconds": 12}}})
    assert defaults_of(registry, "io::read_file") == ToolDefaults(timeout_seconds=12, max_retries=3)
    assert defaults_of(registry, "io::write_file") == ToolDefaults(timeout_seconds=5, max_retries=3)


def test_e10_what_the_recipe_says_of_the_tool_itself_is_over_everything(io: Path) -> None:
    registry = load(io, namespaces={"io": {"tools": {"write_file": {"defaults": {"timeout_seconds": 1}}}}})
    assert defaults_of(registry, "io::write_file") == ToolDefaults(timeout_seconds=1, max_retries=3)


def test_e11_without_defaults_a_call_has_thirty_seconds(tmp_path: Path) -> None:
    registry = load(written(tmp_path, io='ensemble = {name = "io"}\n[[invokers]]\nname = "a"\n'))
    assert defaults_of(registry, "io::a").timeout_seconds == 30


def test_a_pinned_ensemble_needs_no_file_and_keeps_what_is_disabled_by_name(io: Path) -> None:
    block = {
        "registry": [{"type": "ensemble", "path": "io.toml"}],
        "namespaces": {"io": {"defaults": {"timeout_seconds": 12}, "tools": {"read_file": {"enabled": False}}}},
    }
    configuration = ToolsConfiguration.model_validate(block)
    registry = load_registry(configuration, folder=io, environment={})
    stored = ToolsConfiguration.model_validate(pinned(configuration, registry))
    again = load_registry(stored, folder=Path("/nowhere"), environment={})
    assert again == registry
    assert again.select(["io::read_file"]) == []
    assert pinned(stored, again) == pinned(configuration, registry)


@pytest.mark.parametrize(
    ("files", "cause"),
    [
        (
            {"io": "[ensemble]\nname = 'x'\nenbled = true\n"},
            r"ensemble\.enbled: unknown key 'enbled'; did you mean 'enabled'",
        ),
        ({"io": "[ensemble]\n"}, r"io\.toml: ensemble\.name: this key is needed"),
        ({"io": "[ensemble]\nname = 'x'\n[defaults]\ntimeot = 1\n"}, r"defaults\.timeot: unknown key 'timeot'"),
        ({"io": "[ensemble]\nname = 'x'\n[defaults]\ntimeout = 0\n"}, r"defaults\.timeout_seconds: .*greater than 0"),
        (
            {"io": "[ensemble]\nname = 'x'\n[[invokers]]\nenabled = true\n"},
            r"invokers\[0\]: an invoker needs a `source`",
        ),
        (
            {"io": "[ensemble]\nname = 'x'\n[[invokers]]\nsource = 'no.toml'\n"},
            r"invokers\[0\]: .*no\.toml: cannot be read",
        ),
        (
            {"io": "[ensemble]\nname = 'x'\n[[invokers]]\nsource = 'a.toml'\n", "a": "[invoker]\nnaem = 'x'\n"},
            r"invokers\[0\]: a\.toml: invoker\.",
        ),
        (
            {"io": "[ensemble]\nname = 'x'\n[[invokers]]\nname = 'a'\narguments = {type = 'string'}\n"},
            r"invokers\[0\]: tool 'a': parameters must be of type object",
        ),
        ({"io": "[ensemble\n"}, r"io\.toml: not TOML: .*line 1"),
        ({"io": "[ensemble]\nname = 'x'\nname = 'y'\n"}, r"io\.toml: not TOML: Cannot overwrite a value"),
        ({"io": "[ensemble]\nname = 'a::b'\n[[invokers]]\nname = 'a'\n"}, r"a namespace is text without '::'"),
        ({"io": "x = 1\n"}, r"io\.toml: ensemble: this key is needed|io\.toml: x: unknown key"),
        ({"other": ""}, r"io\.toml: cannot be read"),
    ],
)
def test_what_is_wrong_in_a_descriptor_is_said_with_file_and_key(
    tmp_path: Path, files: dict[str, str], cause: str
) -> None:
    with pytest.raises(ConfigurationInvalid, match=cause) as caught:
        load(written(tmp_path, **files))
    assert caught.value.at == ("registry", 0, "path")


@pytest.mark.parametrize(
    "source", ["../secret.toml", "/etc/secret.toml", "sub/../../secret.toml", "secret.yaml", "link.toml"]
)
def test_sec_s5_a_source_lies_in_the_ensembles_own_folder(tmp_path: Path, source: str) -> None:
    written(tmp_path, secret=READ_FILE, own__io=f"[ensemble]\nname = 'x'\n[[invokers]]\nsource = '{source}'\n")
    (tmp_path / "own/link.toml").symlink_to(tmp_path / "secret.toml")
    with pytest.raises(ConfigurationInvalid, match=r"a source is a \.toml file in .*own or below it"):
        load(tmp_path, path="own/io.toml")


def test_u2_of_an_optional_ensemble_the_invokers_that_can_be_built_load(io: Path) -> None:
    (io / "io/invokers/read_file.toml").unlink()
    assert load(io, optional=True).tool_names() == ["io::write_file"]


def test_an_empty_folder_and_another_suffix_are_refused(tmp_path: Path) -> None:
    (tmp_path / "io.yaml").write_text("{}")
    for path, cause in ((".", "no .toml file in this folder"), ("io.yaml", "an ensemble is a .toml file")):
        with pytest.raises(ConfigurationInvalid, match=cause):
            load(tmp_path, path=path)


def test_toml_files_of_tools_have_the_usual_shapes(tmp_path: Path) -> None:
    written(tmp_path, listed="[[x]]\nname = 'a'\n[[y]]\nname = 'b'\n", keyed="[a]\ndescription = 'A'\n")
    assert load(tmp_path, path="listed.toml", type="file").tool_names() == ["x::a", "y::b"]
    assert list(load(tmp_path, path="keyed.toml", type="file")) == [Tool("a", description="A")]
