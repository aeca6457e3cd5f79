"""Reads compose.yaml and k8s/base as Docker Compose and kustomize would, as far as the tests need it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

JSONObject = dict[str, Any]

_REFERENCE = re.compile(r"\$(?:\$|\{(?P<name>\w+)(?::(?P<mark>[-?])(?P<rest>[^}]*))?\})")


def interpolated(value: Any, variables: Mapping[str, str]) -> Any:
    """Resolve `${NAME}`, `${NAME:-default}`, `${NAME:?message}` and `$$` in every string of a compose file."""
    if isinstance(value, dict):
        return {key: interpolated(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [interpolated(item, variables) for item in value]
    if isinstance(value, str):
        return _REFERENCE.sub(lambda found: _resolved(found, variables), value)
    return value


def _resolved(found: re.Match[str], variables: Mapping[str, str]) -> str:
    name, mark, rest = found["name"], found["mark"], found["rest"]
    if name is None:
        return "$"
    if variables.get(name):
        return variables[name]
    assert mark != "?", f"{name} is not set: {rest}"
    return rest if mark == "-" else ""


def compose_services(checkout: Path, variables: Mapping[str, str]) -> dict[str, JSONObject]:
    """Return the services of compose.yaml, merged and with their variables resolved."""
    services: dict[str, JSONObject] = interpolated(yaml.safe_load((checkout / "compose.yaml").read_text()), variables)[
        "services"
    ]
    return services


def k8s_objects(checkout: Path) -> list[JSONObject]:
    """Return every object of the files that kustomization.yaml lists."""
    base = checkout / "k8s" / "base"
    kustomization = yaml.safe_load((base / "kustomization.yaml").read_text())
    return [thing for name in kustomization["resources"] for thing in yaml.safe_load_all((base / name).read_text())]


def pods(objects: list[JSONObject]) -> Iterator[tuple[str, JSONObject]]:
    """Yield the name and the pod's spec of everything that runs pods."""
    for thing in objects:
        if thing["kind"] in {"Deployment", "Job", "StatefulSet", "DaemonSet"}:
            yield thing["metadata"]["name"], thing["spec"]["template"]["spec"]
