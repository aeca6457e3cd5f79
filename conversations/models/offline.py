"""The offline model: no network, no weights, the same reply to the same request; it ships in place of mocks."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import orjson

from conversations.messages import JSONObject, Message, assistant, text_of, tool_call, tool_calls_of
from conversations.models.fake_json import fake_document
from conversations.models.fake_values import names_number, snake
from conversations.models.model import Alternative, ModelReply, ModelRequest
from conversations.models.offline_texts import answer_from_results, plain_answer, thing_of, user_line
from conversations.models.settings import ModelSettings, OfflineSettings
from conversations.user_settings import PLAYS_USER
from engines.chance import derive_seed

_MOST_ROUNDS = 3
_SECOND_CALL_SHARE = 0.25
_CHARS_PER_TOKEN = 4
_CONSIDERED_TOOLS = 64
_SIGNIFICANT_WORD = 4
_CALL_MARK = "Tool call:"
_COUNTING = ("calculate_", "compute_", "convert_", "count_")
_DOING = ("create_", "generate_", "send_", "book_")


class OfflineModel:
    """A Model whose replies are composed from the request, a seed and nothing else."""

    __slots__ = ("_model", "_settings")

    def __init__(self, settings: ModelSettings) -> None:
        """`settings.offline` says how it behaves."""
        self._settings = settings.offline
        self._model = settings.model_name

    @property
    def model_id(self) -> str:
        """The name given, or `offline`."""
        return self._model

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def ask(self, request: ModelRequest) -> ModelReply:
        """The composed reply, after the latency asked for."""
        await asyncio.sleep(self._settings.latency_ms / 1000)
        return compose_reply(request, self._settings, model=self._model)


def compose_reply(request: ModelRequest, settings: OfflineSettings, *, model: str) -> ModelReply:
    """What the offline model says to a request: tool calls first, as many rounds as it plans, then a final text."""
    scene = _Scene.of(request.messages)
    seed = (settings.seed, "" if request.seed is None else request.seed, scene.question)
    count = _call_count(request, settings, scene, seed)
    is_free = settings.turns is None and (request.tool_choice is None or request.tool_choice == "auto")
    candidates = tuple(
        _candidate(request, scene, count, Random(derive_seed(*seed, scene.replies, number)), is_free=is_free)
        for number in range(request.candidates)
    )
    chosen = candidates[0].message
    is_calling = "tool_calls" in chosen
    return ModelReply(
        message=chosen,
        finish_reason="tool_calls" if is_calling else "stop",
        input_tokens=scene.characters // _CHARS_PER_TOKEN,
        output_tokens=sum(_spoken_chars(candidate.message) for candidate in candidates) // _CHARS_PER_TOKEN,
        model=model,
        alternatives=candidates if request.candidates > 1 or request.logprobs else (),
    )


@dataclass(frozen=True, slots=True)
class _Scene:
    """What the history says about where the conversation stands."""

    question: str
    replies: int
    rounds: int
    calls: tuple[tuple[str, str], ...]
    results: tuple[tuple[str, str], ...]
    characters: int

    @classmethod
    def of(cls, messages: Sequence[Message]) -> "_Scene":
        replies = rounds = characters = 0
        question = ""
        asked: dict[str, tuple[str, str]] = {}
        results: list[tuple[str, str]] = []
        for message in messages:
            text = text_of(message)
            characters += len(text)
            match message.get("role"):
                case "user":
                    question, rounds, results = text, 0, []
                    asked.clear()
                case "assistant":
                    replies += 1
                    calls = tool_calls_of(message)
                    rounds += bool(calls)
                    functions = [(call["id"], call["function"]) for call in calls]
                    asked.update((key, (made["name"], str(made.get("arguments")))) for key, made in functions)
                case "tool":
                    results.append((asked.get(message.get("tool_call_id", ""), ("tool", ""))[0], text))
                case _:
                    pass
        return cls(question, replies, rounds, tuple(asked.values()), tuple(results), characters)


def _call_count(request: ModelRequest, settings: OfflineSettings, scene: _Scene, seed: tuple[int | str, ...]) -> int:
    """How many calls this reply makes: `turns` fixes one in each but the last, else the seed plans the rounds."""
    if not request.tools or request.tool_choice == "none":
        return 0
    if request.tool_choice == "required" or isinstance(request.tool_choice, dict):
        return 1
    if settings.turns is not None:
        return int(scene.rounds < settings.turns - 1)
    plan = Random(derive_seed(*seed, "rounds"))
    if scene.rounds >= plan.randint(1, _MOST_ROUNDS):
        return 0
    return 2 if Random(derive_seed(*seed, "calls", scene.rounds)).random() < _SECOND_CALL_SHARE else 1


def _candidate(request: ModelRequest, scene: _Scene, count: int, chance: Random, *, is_free: bool) -> Alternative:
    calls: list[JSONObject] = []
    for number in range(count):
        call = _call(request, scene, number, chance)
        made = [(kept["function"]["name"], kept["function"]["arguments"]) for kept in calls]
        if not (is_free and _is_pointless(call["function"], (*scene.calls, *made), scene.question)):
            calls.append(call)
    message = assistant(None, calls) if calls else assistant(_final_text(request, scene, chance))
    tokens = max(1, _spoken_chars(message) // _CHARS_PER_TOKEN)
    return Alternative(message, round(tokens * math.log(chance.uniform(0.6, 0.99)), 4))


def _call(request: ModelRequest, scene: _Scene, number: int, chance: Random) -> JSONObject:
    function = _chosen_tool(request, scene, scene.rounds + number, chance)
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    arguments = fake_document({"type": "object", **schema}, chance, hint=scene.question, turn=scene.rounds + number)
    call_id = f"call_{chance.getrandbits(96):024x}"
    return tool_call(call_id, function["name"], orjson.dumps(arguments).decode())


def _is_pointless(function: JSONObject, calls: Sequence[tuple[str, str]], question: str) -> bool:
    """A tool is asked again only for something that the question names and that was not asked yet."""
    name, arguments = function["name"], function["arguments"]
    earlier = [asked for called, asked in calls if called == name]
    if not earlier:
        return False
    values = orjson.loads(arguments).values()
    return arguments in earlier or not any(str(value).lower() in question.lower() for value in values)


def _chosen_tool(request: ModelRequest, scene: _Scene, turn: int, chance: Random) -> JSONObject:
    """The forced tool; else first those whose names the question mentions, then any."""
    functions: list[JSONObject] = [tool["function"] for tool in request.tools or () if "function" in tool]
    if isinstance(request.tool_choice, dict):
        forced = request.tool_choice.get("function", {}).get("name")
        functions = [function for function in functions if function["name"] == forced] or functions
    if len(functions) == 1:
        return functions[0]
    asked = scene.question.lower()
    likely = [function for function in functions[:_CONSIDERED_TOOLS] if _is_mentioned(function["name"], asked)]
    return likely[turn] if turn < len(likely) else chance.choice(functions)


def _is_mentioned(name: str, asked: str) -> bool:
    return any(len(word) >= _SIGNIFICANT_WORD and word in asked for word in thing_of(name).lower().split("_"))


def _final_text(request: ModelRequest, scene: _Scene, chance: Random) -> str:
    wanted = request.response_format or {}
    if wanted.get("type") == "json_schema":
        schema = wanted.get("json_schema", {}).get("schema", {})
        document = fake_document(schema, chance, hint=scene.question, known=_known_arguments(scene.question))
        return orjson.dumps(document).decode()
    if wanted.get("type") == "json_object":
        return orjson.dumps(_plausible_object(scene, chance)).decode()
    first = text_of(request.messages[0]) if request.messages else ""
    if first.startswith(PLAYS_USER):
        return user_line(first, scene.replies, chance)
    if scene.results:
        return answer_from_results(scene.results, chance)
    return plain_answer(scene.question, chance)


def _tool_call_in(text: str) -> JSONObject:
    """The tool call that a question holds when it asks for a tool's result; empty otherwise."""
    _, mark, rest = text.rpartition(_CALL_MARK)
    start, end = rest.find("{"), rest.rfind("}")
    if not mark or start < 0 or end < start:
        return {}
    try:
        call = orjson.loads(rest[start : end + 1])
    except orjson.JSONDecodeError:
        return {}
    return call if isinstance(call, dict) else {}


def _known_arguments(text: str) -> Mapping[str, Any]:
    arguments = _tool_call_in(text).get("arguments")
    return arguments if isinstance(arguments, dict) else {}


def _plausible_object(scene: _Scene, chance: Random) -> JSONObject:
    """A result without a schema: the arguments again, and what the tool's name promises."""
    call = _tool_call_in(scene.question)
    if not call:
        return {"answer": plain_answer(scene.question, chance)}
    given = call.get("arguments")
    echoed = (
        {key: value for key, value in given.items() if not isinstance(value, dict | list)}
        if isinstance(given, dict)
        else {}
    )
    name = snake(str(call.get("name", "")).rpartition("::")[2])
    promised = _promised_property(name)
    schema = {"type": "object", "properties": promised, "required": list(promised)}
    return {**echoed, **fake_document(schema, chance), "status": "success"}


def _promised_property(name: str) -> JSONObject:
    """`get_stock_price` promises a number, `get_lyrics` a text, `send_email` something to refer to."""
    thing = thing_of(name)
    if name.startswith(_COUNTING) or names_number(thing):
        return {thing: {"type": "number"}}
    if thing == name or name.startswith(_DOING):
        return {"reference_id": {"type": "string"}}
    return {thing: {"type": "string"}}


def _spoken_chars(message: Message) -> int:
    calls = message.get("tool_calls") or ()
    return len(message.get("content") or "") + sum(
        len(call["function"]["name"]) + len(call["function"]["arguments"]) for call in calls
    )
