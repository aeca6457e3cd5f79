"""A stateful backend that outlives its users: a room is a session, and stays open until somebody ends it."""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from engines.engine import ToolEngine
from engines.session import Session
from engines.tool import Tool, ToolCall
from engines.toolset import Toolset


@dataclass
class Rooms:
    """What the backend knows. `most` is the largest number of rooms open at once."""

    open: dict[str, str] = field(default_factory=dict)
    opened: int = 0
    most: int = 0
    refuses_to_end: bool = False
    hangs: bool = False
    asked_to_end: asyncio.Event = field(default_factory=asyncio.Event)
    calls: list[tuple[str, str]] = field(default_factory=list)

    def enter(self, session_id: str) -> str:
        self.opened += 1
        room = f"room-{self.opened}"
        self.open[room] = session_id
        self.most = max(self.most, len(self.open))
        return room

    async def end(self, room: str) -> None:
        self.asked_to_end.set()
        if self.hangs:
            await asyncio.Event().wait()
        if self.refuses_to_end:
            raise RuntimeError("500: the room does not end")
        self.open.pop(room, None)


class RoomEngine(ToolEngine):
    """One room for each session, named in its scratch."""

    def __init__(self, toolsets: Iterable[Toolset], rooms: Rooms, *, takes_up: bool = False) -> None:
        super().__init__(toolsets)
        self.rooms = rooms
        self._takes_up = takes_up

    def leaves_behind(self, namespaces: Collection[str]) -> bool:
        return not self.toolsets.keys().isdisjoint(namespaces)

    def takes_up(self, namespaces: Collection[str]) -> frozenset[str]:
        return frozenset(self.toolsets.keys() & set(namespaces)) if self._takes_up else frozenset()

    async def _open_session(self, session: Session) -> None:
        if not (self._takes_up and "room" in session.scratch):
            session.scratch["room"] = self.rooms.enter(session.id)

    async def _close_session(self, session: Session) -> None:
        if "room" in session.scratch and session.kept.isdisjoint(self.toolsets):
            await self.rooms.end(session.scratch["room"])

    async def _call(self, session: Session, call: ToolCall, tool: Tool) -> Any:
        room = session.scratch["room"]
        if room not in self.rooms.open:
            raise RuntimeError(f"404: no {room}")
        self.rooms.calls.append((room, session.id))
        return {"room": room}
