"""Calls that are only simulated: made, rolled back, refused, or played by another engine (decision 8)."""

import json
from pathlib import Path
from typing import Any

import pytest

from engines.calling.effects import Effects
from engines.calling.faults import ErrorCategory
from engines.calling.prepared import PreparedTool
from engines.calling.simulation import Way, way_of
from engines.configuration import ToolsConfiguration
from engines.engine import ToolEngine
from engines.errors import ConfigurationInvalid
from engines.kind_settings import EngineParts
from engines.kinds import ENGINE_KINDS
from engines.lm.engine import LMToolEngine
from engines.loading import load_registry
from engines.session import Session
from engines.tool import ErrorType, Tool, ToolCall
from engines.toolset import Toolset
from engines.wiring import build_engine
from tests.unit.engines.stage import ScriptedSpeak

READER = Tool("read", "w", metadata={"read_only": True})
WRITER = Tool("write", "w")


class Backend(ToolEngine):
    """Something real, which counts what it is asked."""

    def __init__(self, *toolsets: Toolset, **contract: Any) -> None:
        super().__init__(toolsets, **contract)
        self.asked: list[str] = []

    async def _call(self, session: Session, call: ToolCall, tool: Tool) -> Any:
        self.asked.append(tool.name)
        session.scratch["asked"] = session.scratch.get("asked", 0) + 1
        return {"asked": tool.name}


class Kept(Backend):
    """One that changes its session only."""

    effects = Effects.session


class Lookup(Backend):
    """One that changes nothing."""

    effects = Effects.nothing


def toolset(simulate: str | None = None) -> Toolset:
    return Toolset("w", None, (READER, WRITER), simulate=simulate)


def player() -> ScriptedSpeak:
    return ScriptedSpeak(lambda name, _arguments: {"played": name})


READ, WRITE = ToolCall("read", "w", {}, "r"), ToolCall("write", "w", {}, "w")


@pytest.mark.parametrize(
    ("effects", "simulate", "reader", "writer"),
    [
        (Effects.backend, None, Way.make, Way.refuse),
        (Effects.backend, "live", Way.make, Way.make),
        (Effects.backend, "refuse", Way.make, Way.refuse),
        (Effects.backend, "lm_sim", Way.make, Way.stand_in),
        (Effects.session, None, Way.make, Way.make),
        (Effects.session, "live", Way.make, Way.make),
        (Effects.session, "refuse", Way.make, Way.refuse),
        (Effects.session, "lm_sim", Way.make, Way.stand_in),
        (Effects.nothing, None, Way.make, Way.make),
        (Effects.nothing, "refuse", Way.make, Way.make),
    ],
)
def test_d16_how_a_tool_is_simulated(effects: Effects, simulate: str | None, reader: Way, writer: Way) -> None:
    ways = [way_of(PreparedTool.of(tool, toolset(simulate)), effects) for tool in (READER, WRITER)]
    assert ways == [reader, writer]


async def test_d16_on_a_backend_readers_are_asked_and_writers_refused_with_a_reason() -> None:
    engine = Backend(toolset())
    await engine.setup("s")
    read, write = await engine.simulate("s", [READ, WRITE])
    assert read.result == {"asked": "read"}
    assert (write.error_type, write.result) == (ErrorType.permission, None)
    assert write.error == (
        "not run: this is a simulation, and 'w::write' may change what is real; the recipe may say "
        "namespaces.w.simulate: live, or name an lm engine that plays it"
    )
    assert engine.asked == ["read"]


async def test_d16_a_toolset_that_says_live_is_asked_once_for_each_simulated_call() -> None:
    engine = Backend(toolset("live"))
    await engine.setup("s")
    assert [result.is_error for result in await engine.simulate("s", [READ, WRITE])] == [False, False]
    assert engine.asked == ["read", "write"]


@pytest.mark.parametrize("simulate", [None, "live", "refuse"])
async def test_d15_whatever_is_asked_the_session_is_as_it_was(simulate: str | None) -> None:
    engine = Backend(toolset(simulate))
    await engine.setup("s")
    await engine.execute("s", [WRITE])
    before = await engine.get_session_state("s")
    await engine.simulate("s", [READ, WRITE, READ])
    assert await engine.get_session_state("s") == before


async def test_d16_an_engine_that_looks_things_up_is_asked() -> None:
    engine = Lookup(toolset("refuse"))
    await engine.setup("s")
    assert [result.is_error for result in await engine.simulate("s", [READ, WRITE])] == [False, False]


async def test_e13_a_simulated_refusal_never_aborts() -> None:
    strict = Toolset("w", None, (WRITER,)).defaults.model_copy(update={"on_error": "raise"})
    engine = Backend(Toolset("w", None, (WRITER,), strict))
    await engine.setup("s")
    (result,) = await engine.simulate("s", [WRITE])
    assert result.error_type is ErrorType.permission


async def test_decision_8_an_lm_engine_plays_the_writers_and_sees_what_came_before() -> None:
    speak = player()
    stand_in = LMToolEngine([Toolset("w", None, (WRITER,))], speak)
    engine = Backend(toolset("lm_sim"), stand_ins={"lm_sim": stand_in})
    await engine.setup("s", seed=3)
    await engine.execute("s", [WRITE])
    before = await engine.get_session_state("s")
    read, write, again = await engine.simulate("s", [READ, WRITE, WRITE])
    assert engine.asked == ["write", "read"]
    assert read.result == {"asked": "read"}
    assert [result.result for result in (write, again)] == [{"played": "write"}] * 2
    assert write.metadata["simulated_by"] == "lm_sim"
    # Rules, two turns for each earlier call (the last time: the executed one, the read, the first write), the call.
    assert [len(asked["messages"]) for asked in speak.asked] == [1 + 2 * 2 + 1, 1 + 2 * 3 + 1]
    assert speak.asked[0]["seed"] != speak.asked[1]["seed"]
    assert json.loads(speak.asked[1]["messages"][-2]["content"]) == {"played": "write"}
    assert await engine.get_session_state("s") == before
    assert await stand_in.get_session_state("s") is None


async def test_decision_8_what_is_played_fits_what_was_asked_in_between() -> None:
    speak = player()
    stand_in = LMToolEngine([Toolset("w", None, (WRITER,))], speak)
    engine = Backend(toolset("lm_sim"), stand_ins={"lm_sim": stand_in})
    seeds = []
    for session_id, seed in (("s", 3), ("t", 4)):
        await engine.setup(session_id, seed=seed)
        await engine.simulate(session_id, [WRITE, READ, WRITE])
        said = [message["content"] for message in speak.asked[-1]["messages"] if message["role"] == "assistant"]
        assert [json.loads(each) for each in said] == [{"played": "write"}, {"asked": "read"}]
        seeds.append(speak.asked[-1]["seed"])
    assert seeds[0] != seeds[1]


async def test_decision_8_a_simulation_may_be_repeated_and_comes_to_the_same() -> None:
    speak = player()
    stand_in = LMToolEngine([Toolset("w", None, (WRITER,))], speak)
    engine = Backend(toolset("lm_sim"), stand_ins={"lm_sim": stand_in})
    await engine.setup("s")
    assert await engine.simulate("s", [WRITE]) == await engine.simulate("s", [WRITE])
    assert speak.asked[0] == speak.asked[1]


async def test_d32_faults_of_the_engine_fire_in_its_simulation_too() -> None:
    always = ErrorCategory(type="network_error", probability=1)
    stand_in = LMToolEngine([Toolset("w", None, (WRITER,))], player())
    engine = Backend(toolset("lm_sim"), stand_ins={"lm_sim": stand_in}, error_categories=[always])
    await engine.setup("s")
    results = await engine.simulate("s", [READ, WRITE])
    assert [result.metadata for result in results] == [{"injected": "network_error"}] * 2
    assert engine.asked == []


async def test_d31_a_stand_in_of_one_engine_sees_the_calls_of_the_others() -> None:
    speak = player()
    engine, backend = wired(speak, simulate="lm_sim")
    await engine.setup("s")
    await engine.execute("s", [ToolCall("ask", "other", {})])
    await engine.simulate("s", [WRITE])
    assert backend.asked == []
    contents = [message["content"] for message in speak.asked[-1]["messages"]]
    assert "other::ask" in contents[1]
    assert json.loads(contents[2]) == {"played": "ask"}


# From the recipe's words to the stand-in


def block(simulate: str, **engines: Any) -> ToolsConfiguration:
    return ToolsConfiguration.model_validate(
        {
            "registry": [
                {"type": "inline", "namespace": "w", "engine": "real", "tools": [READER.to_dict(), WRITER.to_dict()]},
                {"type": "inline", "namespace": "other", "engine": "lm_sim", "tools": [{"name": "ask"}]},
            ],
            "engines": {
                "real": {"type": "real"},
                "lm_sim": {
                    "type": "lm",
                    "lm_config": {"type": "offline"},
                    "error_categories": [
                        {"type": "timeout", "probability": 1, "tools": ["other::ask"], "message": "x"}
                    ],
                }
                | engines,
            },
            "namespaces": {"w": {"simulate": simulate}},
        }
    )


def wired(speak: ScriptedSpeak, simulate: str) -> tuple[ToolEngine, Backend]:
    """An engine of the recipe above, with `Backend` for its type `real`; faults are of another test."""
    configuration = block(simulate)
    configuration.engines["lm_sim"].pop("error_categories")
    return built(configuration, speak)


def built(configuration: ToolsConfiguration, speak: ScriptedSpeak) -> tuple[ToolEngine, Backend]:
    made: list[Backend] = []

    def backend(parts: EngineParts) -> Backend:
        made.append(Backend(*parts.toolsets, stand_ins=parts.stand_ins))
        return made[-1]

    registry = load_registry(configuration, folder=Path(), environment={})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engines.wiring.ENGINE_KINDS", {**ENGINE_KINDS, "real": backend})
        engine = build_engine(configuration, registry, speak_for=lambda _config: speak)
    return engine, made[0]


async def test_decision_8_a_stand_in_is_an_engine_apart_whose_own_faults_do_not_fire() -> None:
    speak = player()
    engine, backend = built(block("lm_sim"), speak)
    await engine.open()
    await engine.setup("s")
    (asked,) = await engine.execute("s", [ToolCall("ask", "other", {})])
    assert asked.metadata == {"injected": "timeout"}
    (played,) = await engine.simulate("s", [WRITE])
    assert (played.result, played.metadata["simulated_by"]) == ({"played": "write"}, "lm_sim")
    (stand_in,) = backend.stand_ins.values()
    assert [tool.name for tool in stand_in.toolsets["w"].tools] == ["write"]
    await engine.teardown("s")
    await engine.close()


async def test_stand_ins_are_opened_and_closed_with_the_engine_they_stand_in_for() -> None:
    log: list[str] = []

    class Noting(Backend):
        async def open(self) -> None:
            log.append("open")

        async def close(self) -> None:
            log.append("close")

    engine, backend = wired(player(), "lm_sim")
    backend.stand_ins = {"lm_sim": Noting()}
    await engine.open()
    await engine.close()
    assert log == ["open", "close"]


@pytest.mark.parametrize(
    ("simulate", "message"),
    [
        ("lm_smi", r"tools\.namespaces\.w\.simulate: no engine 'lm_smi'; did you mean 'lm_sim'"),
        (
            "real",
            r"tools\.namespaces\.w\.simulate: engine 'real' is of type 'real', whose calls are real too; name one",
        ),
    ],
)
def test_decision_8_a_stand_in_must_be_there_and_must_only_play(simulate: str, message: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=message):
        built(block(simulate), player())


def test_decision_8_an_engine_that_no_toolset_names_stands_in_for_nobody() -> None:
    _, backend = wired(player(), "refuse")
    assert backend.stand_ins == {}
