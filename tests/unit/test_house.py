"""The house: who may import whom, what may be imported at all, and that what keeps watch really barks."""

import ast
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FLOORS = ("engines", "results", "conversations", "jobs", "workers", "producer")
DRAWERS = {"utils", "util", "helpers", "helper", "common", "base", "misc", "manager", "managers"}
# SDKs that cost seconds to import, and the test machinery: nothing of it may come with `parley --help`.
SLOW_OR_FOREIGN = {
    "mcp",
    "openai",
    "anthropic",
    "httpx",
    "httpx2",
    "celery",
    "kombu",
    "moto",
    "pytest",
    "duckdb",
    "polars",
}


@pytest.fixture(scope="session")
def pyproject(checkout: Path) -> dict[str, Any]:
    return tomllib.loads((checkout / "pyproject.toml").read_text())


def product_files(checkout: Path) -> Iterator[Path]:
    for floor in FLOORS:
        yield from sorted((checkout / floor).rglob("*.py"))


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run([program, "--no-cache"], cwd=folder, capture_output=True, text=True, timeout=90, check=False)


@pytest.fixture
def copy_of_the_house(checkout: Path, tmp_path: Path) -> Path:
    for floor in FLOORS:
        shutil.copytree(checkout / floor, tmp_path / floor, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(checkout / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_floors_are_kept(checkout: Path) -> None:
    outcome = lint_imports(checkout)

    assert outcome.returncode == 0, outcome.stdout


@pytest.mark.parametrize(
    ("intruder", "imported", "contract"),
    [
        ("engines/intruder.py", "conversations", "A floor imports only floors below it"),
        ("engines/intruder.py", "results", "A floor imports only floors below it"),
        ("results/intruder.py", "engines", "A floor imports only floors below it"),
        ("results/intruder.py", "jobs", "A floor imports only floors below it"),
        ("conversations/intruder.py", "jobs", "A floor imports only floors below it"),
        ("jobs/intruder.py", "workers", "A floor imports only floors below it"),
        ("jobs/intruder.py", "producer", "A floor imports only floors below it"),
        ("workers/intruder.py", "producer", "A floor imports only floors below it"),
        ("producer/intruder.py", "workers", "A floor imports only floors below it"),
        ("engines/intruder.py", "redis", "Only jobs, workers and producer know the broker"),
        ("results/intruder.py", "celery", "Only jobs, workers and producer know the broker"),
        ("conversations/intruder.py", "kombu", "Only jobs, workers and producer know the broker"),
    ],
)
def test_an_import_that_breaks_a_contract_is_found(
    copy_of_the_house: Path, intruder: str, imported: str, contract: str
) -> None:
    (copy_of_the_house / intruder).write_text(f'"""Breaks a contract."""\n\nimport {imported}\n')

    outcome = lint_imports(copy_of_the_house)

    assert outcome.returncode == 1
    assert re.search(rf"^{contract}.* BROKEN$", outcome.stdout, re.MULTILINE), outcome.stdout


def test_an_import_inside_a_function_breaks_a_contract_too(copy_of_the_house: Path) -> None:
    hidden = '"""Hides."""\n\n\ndef look() -> None:\n    """Hide."""\n    import redis\n'
    (copy_of_the_house / "engines" / "intruder.py").write_text(hidden)

    assert lint_imports(copy_of_the_house).returncode == 1


def test_sec_s22_only_declared_libraries_are_imported(checkout: Path, pyproject: dict[str, Any]) -> None:
    declared = [*pyproject["project"]["dependencies"]]
    for name, extra in pyproject["project"]["optional-dependencies"].items():
        if name not in {"test", "dev"}:
            declared += extra
    allowed = {canonicalize_name(Requirement(requirement).name) for requirement in declared}
    distributions = importlib.metadata.packages_distributions()

    undeclared = {
        f"{path.relative_to(checkout)}: {top}"
        for path in product_files(checkout)
        for top in _imported_tops(path)
        if top not in sys.stdlib_module_names
        and top not in FLOORS
        and not {canonicalize_name(name) for name in distributions.get(top, [])} & allowed
    }

    assert undeclared == set()


def _imported_tops(path: Path) -> set[str]:
    tops: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            tops |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            tops.add((node.module or "").partition(".")[0])
    return tops


def test_no_file_is_a_drawer(checkout: Path) -> None:
    assert [path for path in product_files(checkout) if path.stem.strip("_") in DRAWERS] == []


def test_every_file_says_what_it_is(checkout: Path) -> None:
    silent = [path for path in product_files(checkout) if not ast.get_docstring(ast.parse(path.read_text()))]

    assert silent == []


def test_the_command_line_starts_without_slow_libraries(checkout: Path) -> None:
    question = "import sys, producer.cli; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    outcome = subprocess.run(
        [sys.executable, "-c", question], cwd=checkout, capture_output=True, text=True, timeout=60, check=True
    )

    assert set(outcome.stdout.split()) & SLOW_OR_FOREIGN == set()


@pytest.mark.parametrize("floor", FLOORS)
def test_importing_a_floor_starts_no_thread_and_writes_nothing(checkout: Path, floor: str, tmp_path: Path) -> None:
    script = (
        "import importlib, pkgutil, sys, threading\n"
        f"import {floor}\n"
        f"for module in pkgutil.walk_packages({floor}.__path__, '{floor}.'):\n"
        "    if module.name != 'workers.app':\n"  # Celery's entry point: being imported is its whole work
        "        importlib.import_module(module.name)\n"
        "assert threading.active_count() == 1, threading.enumerate()\n"
    )
    environment = {"PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(tmp_path)}
    outcome = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip

    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_the_wheel_has_every_file_of_the_floors_and_nothing_else(checkout: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=checkout, capture_output=True, timeout=90, check=True)

    (wheel,) = tmp_path.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    here = {
        str(path.relative_to(checkout)) for floor in FLOORS for path in (checkout / floor).rglob("*") if path.is_file()
    }
    assert packed == {name for name in here if "__pycache__" not in name}
    assert "jobs/ledger/prelude.lua" in packed


@pytest.mark.parametrize("document", ["README.md", "examples/weather/README.md", "examples/bring_your_tools/README.md"])
def test_the_links_of_a_document_lead_somewhere(checkout: Path, document: str) -> None:
    path = checkout / document
    links = [link for link in re.findall(r"\]\(([^)#]+)", path.read_text()) if "://" not in link]

    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_readme_is_read_in_one_sitting(checkout: Path) -> None:
    assert len((checkout / "README.md").read_text().splitlines()) <= 150


def test_the_readme_names_only_targets_that_the_makefile_has(checkout: Path) -> None:
    named = set(re.findall(r"\bmake ([a-z]+)\b", (checkout / "README.md").read_text()))
    targets = set(re.findall(r"^([a-z]+):", (checkout / "Makefile").read_text(), re.MULTILINE))

    assert named
    assert named <= targets
