"""The examples are what their documents say: every line a job, every tool a function, every recipe valid."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from conversations.recipe_files import load_recipe
from engines.engine import ToolEngine
from engines.loading import load_registry
from engines.registry import ToolRegistry
from engines.tool import ErrorType, ToolCall, ToolResult
from engines.wiring import build_engine
from jobs.job import JobLine


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(("example", "count"), [("weather", 50), ("bring_your_tools", 200), ("external", 5)])
def test_every_line_is_a_job_with_an_id_of_its_own(checkout: Path, example: str, count: int) -> None:
    jobs = [JobLine.model_validate(line) for line in lines(checkout / "examples" / example / "jobs.jsonl")]

    assert len(jobs) == count
    assert len({job.id for job in jobs}) == count


def test_the_weather_jobs_show_every_key_of_a_job(checkout: Path) -> None:
    used = {key for line in lines(checkout / "examples" / "weather" / "jobs.jsonl") for key in line}

    assert used == set(JobLine.model_fields) - {"history"}  # a fork writes that one


def registry_of(checkout: Path, example: str, **environment: str) -> ToolRegistry:
    loaded = load_recipe(checkout / "examples" / example / "recipe.yaml")
    return load_registry(loaded.recipe.tools, folder=loaded.folder, environment=environment)


def test_the_weather_jobs_choose_tools_that_there_are(checkout: Path) -> None:
    registry = registry_of(checkout, "weather")

    for line in lines(checkout / "examples" / "weather" / "jobs.jsonl"):
        assert registry.select(line.get("tools"), line.get("disabled_tools", ()))


FIVE = [
    {"name": name, "parameters": {"type": "object", "properties": {}}} for name in ("cut", "dye", "fold", "hem", "sew")
]


@pytest.mark.parametrize(
    "tools",
    [{tool["name"]: tool for tool in FIVE}, FIVE, {"paper": FIVE}],
    ids=["a dict of tools", "a list of tools", "a dict of namespaces"],
)
def test_bring_your_tools_takes_the_shapes_that_its_readme_names(checkout: Path, tmp_path: Path, tools: Any) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(tools))

    registry = registry_of(checkout, "bring_your_tools", TOOLS_FILE=str(tmp_path / "tools.json"))

    assert registry.tool_names() == ["yours::cut", "yours::dye", "yours::fold", "yours::hem", "yours::sew"]


def test_bring_your_tools_comes_with_more_tools_than_a_job_draws(checkout: Path) -> None:
    loaded = load_recipe(checkout / "examples" / "bring_your_tools" / "recipe.yaml")
    registry = registry_of(checkout, "bring_your_tools", TOOLS_FILE="tools.yaml")

    assert loaded.recipe.tools.sample is not None
    assert loaded.recipe.tools.sample.k == 5
    assert len(registry) == 10


def test_the_recipe_of_the_readme_is_a_recipe(checkout: Path, tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", (checkout / "README.md").read_text(), re.DOTALL)
    (tmp_path / "recipe.yaml").write_text(block)

    assert set(load_recipe(tmp_path / "recipe.yaml").recipe.tools.engines) == {"simulated", "python", "hr", "shop"}


@pytest.fixture
def weather(checkout: Path) -> ToolEngine:
    loaded = load_recipe(checkout / "examples" / "weather" / "recipe.yaml")
    only_functions = loaded.recipe.tools.model_copy(
        update={
            "registry": loaded.recipe.tools.registry[:1],
            "engines": {"python": loaded.recipe.tools.engines["python"]},
            "namespaces": {},
        }
    )
    registry = load_registry(only_functions, folder=loaded.folder, environment={})

    def no_model(_: dict[str, Any]) -> Any:
        raise AssertionError("the functions need no model")

    return build_engine(only_functions, registry, speak_for=no_model)


async def call(engine: ToolEngine, name: str, **arguments: Any) -> ToolResult:
    (result,) = await engine.execute("s", [ToolCall(name, "station", arguments, "c1")])
    return result


async def test_every_station_tool_has_a_function_that_answers(weather: ToolEngine) -> None:
    await weather.setup("s")

    now = await call(weather, "current_weather", city="Lisbon")
    assert (now.error, now.result["city"], now.result["unit"]) == (None, "Lisbon", "°C")
    assert (await call(weather, "current_weather", city="Lisbon", units="imperial")).result["unit"] == "°F"
    assert len((await call(weather, "forecast", city="Lisbon")).result["days"]) == 3
    assert len((await call(weather, "forecast", city="Lisbon", days=7)).result["days"]) == 7
    assert (
        await call(weather, "convert_temperature", value=350, from_unit="fahrenheit", to_unit="celsius")
    ).result == {
        "value": 176.67,
        "unit": "celsius",
    }
    assert (await call(weather, "convert_temperature", value=0, from_unit="celsius", to_unit="kelvin")).result[
        "value"
    ] == (273.15)
    await weather.teardown("s")


async def test_the_weather_of_a_place_is_the_same_whoever_asks(weather: ToolEngine) -> None:
    await weather.setup("s")

    assert (await call(weather, "current_weather", city="Oslo")).result["temperature"] == (
        await call(weather, "current_weather", city=" oslo ")
    ).result["temperature"]
    await weather.teardown("s")


async def test_an_impossible_temperature_is_an_error_that_the_model_sees(weather: ToolEngine) -> None:
    await weather.setup("s")

    result = await call(weather, "convert_temperature", value=-300, from_unit="celsius", to_unit="kelvin")

    assert result.error_type is ErrorType.execution
    assert "absolute zero" in str(result.error)
    await weather.teardown("s")


async def test_the_notebook_belongs_to_one_conversation(weather: ToolEngine) -> None:
    await weather.setup("s")
    await call(weather, "note_place", city="Bergen", remark="rainy, lovely")

    assert (await call(weather, "noted_places")).result == {"places": [{"city": "Bergen", "remark": "rainy, lovely"}]}

    await weather.teardown("s")
    await weather.setup("s")
    assert (await call(weather, "noted_places")).result == {"places": []}
    await weather.teardown("s")
