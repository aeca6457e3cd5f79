"""Programs that know Docker Compose, Kubernetes and Dockerfiles find nothing wrong with ours."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml


def say(command: Sequence[str | Path], checkout: Path) -> "subprocess.CompletedProcess[str]":
    here = Path(sys.executable).with_name(str(command[0]))
    words = [here if here.exists() else command[0], *command[1:]]
    return subprocess.run(words, cwd=checkout, capture_output=True, text=True, timeout=300, check=False)


def assert_clean(outcome: "subprocess.CompletedProcess[str]") -> None:
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@pytest.fixture(scope="session")
def rendered(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl on this machine (Debian: apt install kubernetes-client)")
    outcome = say(["kubectl", "kustomize", "k8s/base"], checkout)
    assert_clean(outcome)
    path = tmp_path_factory.mktemp("k8s") / "rendered.yaml"
    path.write_text(outcome.stdout)
    return path


def test_compose_knows_every_key(checkout: Path) -> None:
    assert_clean(say(["check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml"], checkout))


def test_check_jsonschema_would_find_a_misspelt_key(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text((checkout / "compose.yaml").read_text().replace("pids_limit", "pid_limits"))
    schema = ["--builtin-schema", "vendor.compose-spec"]

    assert say(["check-jsonschema", *schema, tmp_path / "compose.yaml"], checkout).returncode != 0


@pytest.mark.timeout(330)
def test_dclint_finds_nothing(checkout: Path) -> None:
    if shutil.which("npx") is None:
        pytest.skip("no npx on this machine")
    if say(["npx", "--yes", "dclint@3", "--version"], checkout).returncode != 0:
        pytest.skip("npx cannot get dclint here")
    settings = ["-c", "tests/cluster_files/dclint.yaml", "--max-warnings", "0"]

    assert_clean(say(["npx", "--yes", "dclint@3", *settings, "compose.yaml"], checkout))


def test_kubernetes_knows_every_key_of_the_files(checkout: Path) -> None:
    base = checkout / "k8s" / "base"
    names = yaml.safe_load((base / "kustomization.yaml").read_text())["resources"]

    assert_clean(say(["kubernetes-validate", "--strict", *(base / name for name in names)], checkout))


def test_kubernetes_knows_every_key_of_what_kustomize_makes(checkout: Path, rendered: Path) -> None:
    assert_clean(say(["kubernetes-validate", "--strict", rendered], checkout))


def test_kubernetes_validate_would_find_a_misspelt_key(checkout: Path, tmp_path: Path) -> None:
    text = (checkout / "k8s" / "base" / "flower.yaml").read_text()
    (tmp_path / "flower.yaml").write_text(text.replace("readOnlyRootFilesystem", "readonlyRootFilesystem"))

    assert say(["kubernetes-validate", "--strict", tmp_path / "flower.yaml"], checkout).returncode != 0


def test_kustomize_names_every_file_and_gives_every_pod_its_settings(checkout: Path, rendered: Path) -> None:
    things = list(yaml.safe_load_all(rendered.read_text()))
    settings = [thing for thing in things if thing["kind"] == "ConfigMap"]
    base = checkout / "k8s" / "base"
    files = {path.name for path in base.glob("*.yaml")} - {"kustomization.yaml"}

    assert set(yaml.safe_load((base / "kustomization.yaml").read_text())["resources"]) == files
    for thing in settings:
        assert thing["metadata"]["name"] in rendered.read_text().replace(f"name: {thing['metadata']['name']}", "", 1)


def test_hadolint_finds_nothing(checkout: Path) -> None:
    if not Path(sys.executable).with_name("hadolint").exists() and shutil.which("hadolint") is None:
        pytest.skip("no hadolint for this machine")

    assert_clean(say(["hadolint", "Dockerfile"], checkout))


def test_yamllint_finds_nothing(checkout: Path) -> None:
    assert_clean(say(["yamllint", "--strict", "compose.yaml", "k8s", "examples", ".yamllint.yaml"], checkout))


def test_shellcheck_finds_nothing(checkout: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck on this machine (Debian: apt install shellcheck)")

    assert_clean(say(["shellcheck", *sorted((checkout / "scripts").glob("*.sh")), ".ci/run"], checkout))
