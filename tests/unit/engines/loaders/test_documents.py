"""Files of tools: what is read, and what is refused with its place."""

from pathlib import Path

import pytest

from engines.errors import InvalidTool
from engines.loaders import documents
from engines.loaders.documents import read_document

BOMB = "\n".join(
    ["a: &a [x, x, x, x, x, x, x, x, x]"]
    + [f"{b}: &{b} [{', '.join(['*' + a] * 9)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
)
MERGE_BOMB = "\n".join(
    ["a: &a {x: 1}"]
    + [f"{b}: &{b} {{<<: [{', '.join(['*' + a] * 9)}], {b}: 1}}" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
)


def written(folder: Path, text: str | bytes, name: str = "tools.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_yaml_and_json_read_the_same(tmp_path: Path) -> None:
    yaml = written(tmp_path, "a: {b: [1, 2.5, true, null, yes]}\n")
    for name in ("tools.json", "TOOLS.JSON"):
        json = written(tmp_path, '{"a": {"b": [1, 2.5, true, null, "yes"]}}', name)
        assert read_document(json) == read_document(yaml) == {"a": {"b": [1, 2.5, True, None, "yes"]}}


def test_values_that_json_lacks_become_text(tmp_path: Path) -> None:
    path = written(tmp_path, "day: 2024-05-01\n2: two\ntrue: t\nnull: n\n")
    assert read_document(path) == {"day": "2024-05-01", "2": "two", "true": "t", "null": "n"}


def test_honest_aliases_work_and_share_nothing(tmp_path: Path) -> None:
    document = read_document(written(tmp_path, "a: &a {x: [1]}\nb: *a\nc: {<<: *a, y: 2}\n"))
    assert document == {"a": {"x": [1]}, "b": {"x": [1]}, "c": {"x": [1], "y": 2}}
    assert document["a"]["x"] is not document["b"]["x"]


@pytest.mark.parametrize(
    ("text", "name", "cause"),
    [
        ("a: 1\na: 2\n", "tools.yaml", r"tools\.yaml:2:1: found duplicate key \"a\""),
        ('{"a": 1, "a": 2}', "tools.json", r"tools\.json: the key 'a' stands twice in one object"),
        ("a: [1\n", "tools.yaml", r"tools\.yaml:2:1: "),
        ('{"a": }', "tools.json", r"tools\.json:1:7: not JSON"),
        ("a: .nan\n", "tools.yaml", "nan is no JSON number"),
        ('a: {1: x, "1": y}', "tools.yaml", "two keys of one object read as the same text"),
        ('{"a": NaN}', "tools.json", "nan is no JSON number"),
        ("a: !!python/object/apply:os.system [ls]\n", "tools.yaml", "could not determine a constructor"),
        ("a: &a [*a]\n", "tools.yaml", "an alias contains itself"),
        (BOMB, "tools.yaml", "its aliases expand to more than"),
        (MERGE_BOMB, "tools.yaml", "its aliases expand to more than"),
        ("a: 1\n---\nb: 2\n", "tools.yaml", r"tools\.yaml:"),
        ("[" * 5000, "tools.yaml", "nested too deeply"),
        ("[" * 100_000 + "]" * 100_000, "tools.json", "nested too deeply"),
        (b"\xff\xfe", "tools.yaml", "not UTF-8 text"),
        ("a", "tools.xml", r"tools are read from \.yaml, \.yml, \.json, \.toml files, not '\.xml'"),
        ("a", "tools", "not 'this'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str | bytes, name: str, cause: str) -> None:
    with pytest.raises(InvalidTool, match=cause):
        read_document(written(tmp_path, text, name))


def test_a_file_over_the_size_cap_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_BYTES", 1 << 20)
    with pytest.raises(InvalidTool, match="larger than 1 MB; split the file"):
        read_document(written(tmp_path, b"#" * ((1 << 20) + 1)))


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.yaml").mkdir()
    for name in ("nowhere.yaml", "folder.yaml"):
        with pytest.raises(InvalidTool, match=r"cannot be read: .*; check the path"):
            read_document(tmp_path / name)


@pytest.mark.parametrize("suffix", [".yaml", ".yml", ".json", ".toml"])
def test_sec_s16_of_a_hundred_megabytes_only_as_many_as_allowed_are_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"tools{suffix}"
    with path.open("wb") as file:
        file.write(b"- name: a\n")
        file.truncate(100 << 20)  # sparse: it costs no disk
    with pytest.raises(InvalidTool, match="larger than 16 MB; split the file"):
        read_document(path)


@pytest.mark.parametrize(
    "tag", ["!!python/object/apply:os.system", "!!python/object/new:os.system", "!!python/name:os"]
)
def test_sec_s16_a_file_of_tools_runs_nothing(tmp_path: Path, tag: str) -> None:
    canary = tmp_path / "canary"
    with pytest.raises(InvalidTool, match="could not determine a constructor"):
        read_document(written(tmp_path, f"a: {tag} ['touch {canary}']\n"))
    assert not canary.exists()


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("a" + ".a" * 500_000 + " = 1", "more than 100 names joined by dots"),
        ("a = " + "[" * 1_000_000, "nested too deeply"),
        ("a = " + "9" * 1_000_000, "Exceeds the limit|too large"),
        ("a = 1\na = 2", "not TOML: Cannot overwrite a value"),
        ("a = inf", "inf is no JSON number"),
    ],
)
def test_sec_s16_toml_bombs_are_refused(tmp_path: Path, text: str, cause: str) -> None:
    with pytest.raises(InvalidTool, match=cause):
        read_document(written(tmp_path, text, "tools.toml"))


def test_toml_reads_as_json(tmp_path: Path) -> None:
    path = written(tmp_path, "a = {b = [1, 2.5, true]}\nday = 2024-05-01\n", "tools.toml")
    assert read_document(path) == {"a": {"b": [1, 2.5, True]}, "day": "2024-05-01"}
