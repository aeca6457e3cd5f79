"""Workload W: system and user message, four assistant turns that each call one tool, a final text."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.weather import TOOL
from engines.configuration import ToolsConfiguration

MODEL_CALLS = 5
TOOL_CALLS = 4
SYSTEM = "You are a weather desk. Look things up with the tool, and name the place you speak of."
_CITIES = ("Lisbon", "Bergen", "Nairobi", "Kyoto", "Quito", "Reykjavik", "Hanoi", "Tromsø", "Cusco", "Adelaide")


def question(number: int) -> str:
    """Return the user's message of one conversation."""
    cities = [_CITIES[(number + step) % len(_CITIES)] for step in range(TOOL_CALLS)]
    return f"Question {number}: what is the weather in {', '.join(cities[:-1])} and {cities[-1]}?"


def tools_block(*, inline: bool = True) -> dict[str, Any]:
    """Return the recipe's `tools`."""
    return {
        "registry": [{"type": "inline", "namespace": "weather", "engine": "local", "tools": [TOOL]}],
        "engines": {"local": {"type": "local", "module": "benchmarks.weather", "inline": inline}},
    }


def tools_configuration(*, inline: bool = True) -> ToolsConfiguration:
    """Return the same, checked."""
    return ToolsConfiguration.model_validate(tools_block(inline=inline))


def write_files(folder: Path, base_url: str, jobs: int, *, name: str = "w") -> tuple[Path, Path]:
    """Write recipe and jobs of a run of W; JSON is YAML."""
    recipe = {
        "name": name,
        "model": {"provider": "openai", "model": "mock", "base_url": base_url, "api_key": "none"},
        "conversation": {"system": SYSTEM},
        "tools": tools_block(),
    }
    recipe_path, jobs_path = folder / f"{name}.yaml", folder / f"{name}.jsonl"
    recipe_path.write_text(json.dumps(recipe, indent=2))
    jobs_path.write_text("".join(_job_lines(jobs)))
    return recipe_path, jobs_path


def _job_lines(jobs: int) -> Iterator[str]:
    for number in range(jobs):
        yield json.dumps({"id": f"job-{number}", "prompt": question(number)}) + "\n"
