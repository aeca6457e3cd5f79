"""`parley validate`: check a recipe, its tools and its job lines on this machine; nothing is stored or sent."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from engines.toolset import Toolset
from jobs.routing import Route, queue_of
from producer.checked_recipe import CheckedRecipe, check_recipe
from producer.errors import InputInvalid
from producer.intake import BadLine, read_jobs
from producer.staged_input import open_jobs, shown_name
from producer.submission import JOBS_BESIDE_RECIPE
from producer.terminal import printable, say

_SHOWN_BAD_LINES = 20


@dataclass(slots=True)
class JobsFound:
    """What the job lines are."""

    source: str
    good: int = 0
    bad: int = 0
    routes: Counter[Route] = field(default_factory=Counter)


def validate(
    *,
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="The recipe (YAML or TOML).")],
    jobs: Annotated[
        str | None, typer.Option(metavar="FILE|-", help="Job lines (JSONL). Default: jobs.jsonl beside the recipe.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as one JSON object.")] = False,
) -> None:
    """Check RECIPE, the tools and engines it names, and its job lines, without a network; exit code 3 on errors."""
    checked = check_recipe(recipe, is_local=True)
    beside = recipe.parent / JOBS_BESIDE_RECIPE
    source = jobs or (str(beside) if beside.is_file() else None)
    found = None if source is None else _look_through(source, checked)
    print(json.dumps(_to_json(checked, found)) if as_json else printable("\n".join(_to_text(checked, found))))  # noqa: T201
    if found is not None and (found.bad or not found.good):
        counted = f"{found.bad} of its {found.good + found.bad} lines cannot run" if found.bad else "no jobs in it"
        raise InputInvalid(f"{shown_name(found.source)}: {counted}")


def _look_through(source: str, checked: CheckedRecipe) -> JobsFound:
    found = JobsFound(source)
    with open_jobs(source) as stream:
        for line in read_jobs(stream, name=shown_name(source), route_of_job=checked.route_of_job):
            if isinstance(line, BadLine):
                found.bad += 1
                if found.bad <= _SHOWN_BAD_LINES:
                    say(str(line))
                continue
            found.good += 1
            found.routes[line.route] += 1
    return found


def _to_text(checked: CheckedRecipe, found: JobsFound | None) -> Iterator[str]:
    yield f"{checked.path}: ok"
    yield f"  name       {checked.name}"
    for endpoint in checked.models:
        yield f"  model      {endpoint}"
    for toolset in checked.registry.toolsets.values():
        count = len(toolset.tools)
        yield f"  tools      {toolset.namespace}: {count}, engine {_engine(toolset)}{_state(toolset)}"
    if found is None:
        yield "  jobs       not looked at (name them with --jobs FILE)"
        return
    yield f"  jobs       {found.good} in {shown_name(found.source)}" + (f", {found.bad} bad" if found.bad else "")
    for route, count in sorted(found.routes.items()):
        yield f"  queue      {queue_of(route, checked.permit_limits)}: {count} jobs"


def _to_json(checked: CheckedRecipe, found: JobsFound | None) -> dict[str, Any]:
    return {
        "recipe": str(checked.path),
        "name": checked.name,
        "models": [str(endpoint) for endpoint in checked.models],
        "tools": {
            toolset.namespace: {
                "tools": [tool.name for tool in toolset.tools],
                "engine": _engine(toolset),
                "stateful": toolset.stateful,
            }
            for toolset in checked.registry.toolsets.values()
        },
        "jobs": None if found is None else found.good,
        "bad_lines": None if found is None else found.bad,
        "queues": {}
        if found is None
        else {queue_of(route, checked.permit_limits): count for route, count in sorted(found.routes.items())},
    }


def _engine(toolset: Toolset) -> str:
    return toolset.engine or "(the only one)"


def _state(toolset: Toolset) -> str:
    return f", stateful, at most {toolset.max_concurrency or 1} conversations at once" if toolset.stateful else ""
