"""Output schemas that a model makes up."""

import json
from pathlib import Path
from typing import Any

import pytest
import structlog

from engines.enrichments.enrichment import EnrichmentParts, Material
from engines.enrichments.output_parameters import OutputParameters
from engines.errors import ConfigurationInvalid, ToolFailed
from engines.tool import INFERRED_OUTPUT, ErrorType, Tool
from tests.unit.engines.enrichments.materials import AnsweringSpeak, an_object, opening, shop_tools

SKY = an_object(degrees={"type": "number"})


def answering(*answers: str) -> AnsweringSpeak:
    return AnsweringSpeak(lambda _name, times: answers[min(times, len(answers)) - 1])


def enrichment(speak: AnsweringSpeak, cache: Path | None = None, **settings: Any) -> OutputParameters:
    written = {"type": "output_parameters", "lm_config": {"type": "scripted"}, **settings}
    return OutputParameters.from_parts(EnrichmentParts(written, ("enrichments", 0), cache, opening(speak)))


async def enriched(speak: AnsweringSpeak, cache: Path | None = None, **settings: Any) -> list[Tool]:
    material = Material(shop_tools())
    await enrichment(speak, cache, **settings).enrich(material)
    return material.tools


async def test_d77_only_tools_without_an_output_schema_are_asked_about() -> None:
    speak = answering(json.dumps(SKY))
    tools = await enriched(speak)
    assert speak.asked == ["sky::tell_weather"]
    assert tools[:3] == shop_tools()[:3]
    assert tools[3].output_parameters == SKY
    assert tools[3].metadata == {INFERRED_OUTPUT: True}


@pytest.mark.parametrize("text", ["nothing", "[]", '{"type": "string"}', '{"type": "object", "properties": {}}', ""])
async def test_d77_an_unusable_answer_is_asked_for_again(text: str) -> None:
    assert (await enriched(answering(text, f"```json\n{json.dumps(SKY)}\n```")))[3].output_parameters == SKY


async def test_d77_a_tool_about_which_nothing_usable_is_said_stays_as_it_is() -> None:
    broken = '{"type": "object", "properties": {"a": {"type": "nonsense"}}}'
    speak = answering(broken)
    with structlog.testing.capture_logs() as logs:
        assert await enriched(speak) == shop_tools()
    assert len(speak.asked) == 3
    assert [entry["tool"] for entry in logs] == ["sky::tell_weather"]


async def test_d79_what_was_made_up_once_is_kept_and_force_asks_again(tmp_path: Path) -> None:
    first, second, third, other_model = (answering(json.dumps(SKY)) for _ in range(4))
    other_model.model_id = "another"
    tools = await enriched(first, tmp_path)
    assert await enriched(second, tmp_path) == tools
    assert second.asked == []
    await enriched(third, tmp_path, force=True)
    assert third.asked == ["sky::tell_weather"]
    await enriched(other_model, tmp_path)
    assert other_model.asked == ["sky::tell_weather"]


async def test_a_model_that_cannot_be_reached_is_an_error_at_its_place() -> None:
    def refuse(_name: str, _times: int) -> str:
        raise ToolFailed(ErrorType.network, "nobody listens")

    with pytest.raises(ConfigurationInvalid, match=r"tools\.enrichments\[0\]\.lm_config: nobody listens"):
        await enriched(AnsweringSpeak(refuse))
    with pytest.raises(ConfigurationInvalid, match=r"tools\.enrichments\[0\]\.lm_config: no such model"):
        await enriched(answering("{}"), lm_config={"type": "broken"})


def test_where_no_model_can_be_opened_the_enrichment_is_refused() -> None:
    written = {"type": "output_parameters", "lm_config": {"type": "scripted"}}
    with pytest.raises(ConfigurationInvalid, match="there is no way to a model here"):
        OutputParameters.from_parts(EnrichmentParts(written, ("enrichments", 0)))
