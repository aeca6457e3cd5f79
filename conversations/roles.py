"""Who is offered which tools: the assistant, and a simulated user that has some of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from conversations.selection import Selector, ToolSelection
from conversations.user_settings import UserSettings
from engines.tool import Tool


@dataclass(frozen=True, slots=True)
class RoleTools:
    """The tools of one conversation; no tool is offered to both."""

    assistant: ToolSelection
    user: ToolSelection | None = None

    @classmethod
    def of(
        cls,
        selector: Selector,
        user: UserSettings | None,
        patterns: Sequence[str] | None,
        disabled: Sequence[str],
        *,
        seed: int,
    ) -> Self:
        """What a job's `tools` and `disabled_tools` leave to the assistant, and the recipe to the user."""
        own = user.tools if user is not None else ()
        assistant = selector.select(patterns, [*disabled, *own], seed=seed)
        return cls(assistant, selector.named(own, disabled) if own else None)

    @property
    def tools(self) -> list[Tool]:
        """Every tool that the conversation may touch."""
        return [*self.assistant.tools, *(self.user.tools if self.user is not None else ())]
