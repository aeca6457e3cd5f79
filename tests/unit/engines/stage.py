"""A stage for engines under test: tools that echo, wait, add, fail, played by functions or by a scripted model."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engines.errors import ToolFailed
from engines.local.context import Context
from engines.plain import JSONObject
from engines.speak import Speak, Utterance
from engines.tool import ErrorType, Tool
from engines.toolset import ToolDefaults, Toolset
from tests.support.http_backend import Received, Reply

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NOTHING: JSONObject = {"type": "object", "properties": {}}
NAMES = {"echo": TEXT, "wait": TEXT, "add": TEXT, "fail": TEXT, "long": NOTHING}


@dataclass
class Stage:
    """What a test looks at and decides: which calls ran, when a waiting one has started, when it may go on."""

    runs: list[tuple[str, str]] = field(default_factory=list)
    waiting: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""
    """Of the server that plays the tools (`staged_answer`), while there is one."""

    async def wait(self) -> None:
        """Say that a call has come this far, then wait for the gate."""
        async with self.changed:
            self.waiting += 1
            self.changed.notify_all()
        await self.gate.wait()

    async def until_waiting(self, number: int) -> None:
        async with self.changed, asyncio.timeout(10):
            await self.changed.wait_for(lambda: self.waiting >= number)


def toolset(namespace: str = "w", *, engine: str | None = None, **defaults: Any) -> Toolset:
    """Return the stage's tools in one namespace."""
    tools = tuple(Tool(name, namespace, f"does {name}", schema) for name, schema in NAMES.items())
    return Toolset(namespace, engine, tools, ToolDefaults(**defaults))


# The functions of the local engine: they find their stage in the session's auxdata.


async def echo(text: str, context: Context) -> JSONObject:
    context.auxdata["stage"].runs.append((context.session_id, text))
    return {"text": text}


async def wait(text: str, context: Context) -> JSONObject:
    await context.auxdata["stage"].wait()
    return await echo(text, context)


async def add(text: str, context: Context) -> JSONObject:
    context.namespace.setdefault("texts", []).append(text)
    return {"texts": context.namespace["texts"]}


async def fail(text: str) -> None:
    message = f"cannot {text}"
    raise ConnectionError(message)


async def long() -> str:
    return "0123456789" * 100


class ScriptedSpeak:
    """A model whose every answer is a function of the call it is asked to play."""

    def __init__(self, answer: Callable[[str, JSONObject], Any], *, model_id: str = "scripted") -> None:
        self.model_id = model_id
        self.asked: list[dict[str, Any]] = []
        self._answer = answer

    async def __call__(
        self,
        messages: list[JSONObject],
        *,
        response_format: JSONObject,
        candidates: int,
        seed: int,
        session_id: str,
    ) -> list[Utterance]:
        self.asked.append(
            {
                "messages": messages,
                "response_format": response_format,
                "candidates": candidates,
                "seed": seed,
                "session_id": session_id,
            }
        )
        call = json.loads(messages[-1]["content"].split("Tool call:\n")[1])
        answer = self._answer(call["name"].partition("::")[2], {**call["arguments"], "session_id": session_id})
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, list) and all(isinstance(each, Utterance) for each in answer):
            return answer
        return [Utterance(answer if isinstance(answer, str) else json.dumps(answer), None, 7, 3)]


def staged_speak(stage: Stage) -> ScriptedSpeak:
    """Return a model that plays the stage's tools."""

    async def answer(name: str, arguments: Mapping[str, Any]) -> Any:
        match name:
            case "fail":
                raise ToolFailed(ErrorType.network, f"ConnectionError: cannot {arguments['text']}")
            case "wait":
                await stage.wait()
            case "long":
                return {"text": "0123456789" * 100}
            case _:
                pass
        stage.runs.append((arguments["session_id"], arguments["text"]))
        return {"text": arguments["text"]}

    return ScriptedSpeak(answer)


async def staged_answer(stage: Stage, request: Received) -> Reply:
    """Play the stage's tools as a server: `GET /echo?text=…`, and who asks in `X-Session`."""
    arguments = dict(request.query)
    match request.path.removeprefix("/"):
        case "mcp":
            return await staged_mcp_answer(stage, request)
        case "fail":
            return Reply(f"ConnectionError: cannot {arguments['text']}".encode(), 503, {"content-type": "text/plain"})
        case "wait":
            await stage.wait()
        case "long":
            return Reply("0123456789" * 100)
        case _:
            pass
    stage.runs.append((request.header("x-session") or "", arguments["text"]))
    return Reply({"text": arguments["text"]})


async def staged_mcp_answer(stage: Stage, request: Received) -> Reply:
    """Play the stage's tools as an MCP server at /mcp."""
    if request.method != "POST":
        return Reply(status=405)
    message = request.json
    match message["method"]:
        case "initialize":
            info = {"name": "stage", "version": "1"}
            version = message["params"]["protocolVersion"]
            said: JSONObject = {"result": {"protocolVersion": version, "capabilities": {}, "serverInfo": info}}
        case "tools/call":
            said = await _staged_mcp_call(stage, message["params"]["name"], message["params"]["arguments"])
        case method if method.startswith("notifications/"):
            return Reply(status=202)
        case _:
            said = {"error": {"code": -32601, "message": "Method not found"}}
    return Reply({"jsonrpc": "2.0", "id": message["id"], **said})


async def _staged_mcp_call(stage: Stage, name: str, arguments: JSONObject) -> JSONObject:
    match name:
        case "fail":
            return {"error": {"code": -32000, "message": f"ConnectionError: cannot {arguments['text']}"}}
        case "wait":
            await stage.wait()
        case "long":
            return {"result": {"content": [{"type": "text", "text": "0123456789" * 100}]}}
        case _:
            pass
    stage.runs.append(("", arguments["text"]))
    return {"result": {"content": [], "structuredContent": {"text": arguments["text"]}}}


def no_speak(lm_config: JSONObject) -> Speak:
    message = f"no model is built in this test: {lm_config}"
    raise AssertionError(message)
