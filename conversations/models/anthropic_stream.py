"""An Anthropic message that comes in pieces, put together: nothing of it is a reply before its end has come (F19)."""

from typing import Any

import orjson

from conversations.errors import MalformedReply, ModelUnavailable
from conversations.messages import JSONObject
from conversations.models.events import EventReader

_SEEN_BYTES = 1 << 16
_MOST_BLOCKS = 4096
# Pieces of a block, by the type of the delta: which key of the delta grows which key of the block.
_GROWING = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
}


class MessageStream:
    """Takes the chunks of a message's events; `finished` is the message as it would have come whole."""

    def __init__(self, place: str) -> None:
        """`place` names the model in errors."""
        self.seen = b""
        """The beginning of what came, for errors."""
        self._place = place
        self._events = EventReader()
        self._message: JSONObject = {}
        self._blocks: dict[int, JSONObject] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self._is_whole = False

    def feed(self, chunk: bytes) -> None:
        """Take a piece; MalformedReply for what is no event of a message."""
        if len(self.seen) < _SEEN_BYTES:
            self.seen += chunk[: _SEEN_BYTES - len(self.seen)]
        try:
            for data in self._events.events_in(chunk):
                if not self._is_whole:
                    self._take(orjson.loads(data))
        except (ValueError, KeyError) as error:
            raise MalformedReply(f"{self._place}: the stream cannot be read: {error}") from None

    def finished(self) -> JSONObject:
        """The message, or the error that ended it; ModelUnavailable when the stream ended before either."""
        if self._message.get("type") == "error":
            return self._message
        if not self._is_whole:
            raise ModelUnavailable(f"{self._place}: the reply broke off: its stream ended before its last event")
        return self._message | {"content": [self._whole_block(index) for index in sorted(self._blocks)]}

    def _take(self, event: Any) -> None:
        match event:
            case {"type": "error"}:
                self._message, self._is_whole = event, True
            case {"type": "message_start", "message": dict(message)}:
                self._message = message
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                if index not in self._blocks and len(self._blocks) >= _MOST_BLOCKS:
                    raise ValueError(f"more than {_MOST_BLOCKS} blocks")
                self._blocks[index] = block
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
                self._grow(index, delta)
            case {"type": "message_delta", "delta": dict(delta)}:
                self._message |= {key: delta[key] for key in ("stop_reason", "stop_sequence") if key in delta}
                if isinstance(event.get("usage"), dict):
                    before = self._message.get("usage")
                    self._message["usage"] = (before if isinstance(before, dict) else {}) | event["usage"]
            case {"type": "message_stop"}:
                self._is_whole = bool(self._message)
            case _:  # pings, and kinds that came after this was written
                pass

    def _grow(self, index: int, delta: JSONObject) -> None:
        if index not in self._blocks:
            raise ValueError(f"block {index} grows before it begins")
        given, key = _GROWING.get(str(delta.get("type")), ("", ""))
        if isinstance(delta.get(given), str):
            self._pieces.setdefault((index, key), []).append(delta[given])

    def _whole_block(self, index: int) -> JSONObject:
        block = dict(self._blocks[index])
        for (own, key), pieces in self._pieces.items():
            if own == index:
                text = "".join(pieces)
                if key == "input":
                    # As text: what is no JSON (cut off at the token limit) is dealt with where calls are read.
                    block[key] = text if text.strip() else block.get("input") or {}
                else:
                    block[key] = str(block.get(key) or "") + text
        return block
