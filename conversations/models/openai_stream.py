"""A chat completion that comes in pieces, put together: nothing of it is a reply before its end has come (F19)."""

from typing import Any

import orjson

from conversations.errors import MalformedReply, ModelUnavailable
from conversations.messages import JSONObject
from conversations.models.events import EventReader

_END = b"[DONE]"
_SEEN_BYTES = 1 << 16
_MOST_CHOICES = 128
_MOST_CALLS = 1024
_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")


class CompletionStream:
    """Takes the chunks of `chat.completion.chunk` events; `finished` is the completion as it would have come whole."""

    def __init__(self, place: str) -> None:
        """`place` names the model in errors."""
        self.seen = b""
        """The beginning of what came, for errors."""
        self._place = place
        self._events = EventReader()
        self._choices: dict[int, JSONObject] = {}
        self._top: JSONObject = {}
        self._is_done = False

    def feed(self, chunk: bytes) -> None:
        """Take a piece; MalformedReply for what is no event of a completion."""
        if len(self.seen) < _SEEN_BYTES:
            self.seen += chunk[: _SEEN_BYTES - len(self.seen)]
        try:
            for data in self._events.events_in(chunk):
                if data.strip() == _END:
                    self._is_done = True
                elif not self._is_done:
                    self._take(orjson.loads(data))
        except ValueError as error:
            raise MalformedReply(f"{self._place}: the stream cannot be read: {error}") from None

    def finished(self) -> JSONObject:
        """The completion; ModelUnavailable when the stream ended before it did."""
        if "error" in self._top and not self._choices:
            return {"error": self._top["error"]}
        is_whole = self._choices and all(choice.get("finish_reason") for choice in self._choices.values())
        if not is_whole and not (self._is_done and not self._choices):
            raise ModelUnavailable(f"{self._place}: the reply broke off: its stream ended before its last event")
        choices = [_whole(self._choices[index]) for index in sorted(self._choices)]
        return {**self._top, "choices": choices}

    def _take(self, event: Any) -> None:
        if not isinstance(event, dict):
            raise ValueError("an event is no object")  # noqa: TRY004 - caught above, with what orjson raises
        for key in ("model", "usage", "error"):
            if event.get(key):
                self._top[key] = event[key]
        pieces = event.get("choices")
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(piece, dict):
                self._take_choice(piece)

    def _take_choice(self, piece: JSONObject) -> None:
        index = piece.get("index")
        number = index if isinstance(index, int) else 0
        if number not in self._choices and len(self._choices) >= _MOST_CHOICES:
            raise ValueError(f"more than {_MOST_CHOICES} choices")
        choice = self._choices.setdefault(number, {"message": {}, "calls": {}, "logprobs": []})
        if piece.get("finish_reason"):
            choice["finish_reason"] = piece["finish_reason"]
        logprobs = piece.get("logprobs")
        if isinstance(logprobs, dict) and isinstance(logprobs.get("content"), list):
            choice["logprobs"] += logprobs["content"]
        delta = piece.get("delta")
        if not isinstance(delta, dict):
            return
        for key in _TEXTS:
            if isinstance(delta.get(key), str):
                choice["message"].setdefault(key, []).append(delta[key])
        calls = delta.get("tool_calls")
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            _take_call(choice["calls"], call, position)


def _take_call(calls: dict[int, JSONObject], piece: Any, position: int) -> None:
    if not isinstance(piece, dict):
        raise ValueError("a tool call of the stream is no object")  # noqa: TRY004 - caught above
    index = piece.get("index")
    number = index if isinstance(index, int) else position
    if number not in calls and len(calls) >= _MOST_CALLS:
        raise ValueError(f"more than {_MOST_CALLS} tool calls")
    call = calls.setdefault(number, {"id": None, "name": None, "arguments": []})
    function = piece.get("function")
    function = function if isinstance(function, dict) else {}
    call["id"] = call["id"] or piece.get("id")
    call["name"] = call["name"] or function.get("name")
    if isinstance(function.get("arguments"), str):
        call["arguments"].append(function["arguments"])


def _whole(choice: JSONObject) -> JSONObject:
    message: JSONObject = {"role": "assistant", "content": None}
    message |= {key: "".join(parts) for key, parts in choice["message"].items()}
    if choice["calls"]:
        message["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": text}}
            for _, call in sorted(choice["calls"].items())
            for text in ["".join(call["arguments"])]
        ]
    whole = {"message": message, "finish_reason": choice.get("finish_reason")}
    return whole | ({"logprobs": {"content": choice["logprobs"]}} if choice["logprobs"] else {})
