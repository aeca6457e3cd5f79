"""What a check looks at, and what it says."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from conversations.messages import JSONObject, Message, text_of
from conversations.selection import ToolSelection


@dataclass(frozen=True, slots=True)
class Finished:
    """A conversation that came to its end: its history, its results in the record's form, and what it was offered."""

    messages: Sequence[Message]
    tool_results: Sequence[JSONObject]
    tools: ToolSelection
    turns: int
    seed: int = 0
    id: str = ""

    @property
    def said(self) -> list[str]:
        """The assistant's texts, without the empty ones."""
        texts = (text_of(message) for message in self.messages if message.get("role") == "assistant")
        return [text for text in texts if text.strip()]


@dataclass(slots=True)
class Findings:
    """What the checks of one conversation came to: the first objection, and what they want to be kept with it."""

    rejected_by: str | None = None
    reason: str = ""
    notes: JSONObject | None = None


class Check(Protocol):
    """One check; `name` is what a rejected record says."""

    @property
    def name(self) -> str:
        """Its type in the recipe."""

    async def objection(self, finished: Finished, notes: JSONObject) -> str | None:
        """Why the conversation is not to be kept, None when it is; `notes` go into the record's metadata.

        A ModelError of a judge reaches the caller: nothing was decided.
        """
