"""What becomes of the message a caller looks at when the caller changes the history (decision 3, rules A2-A7): pure."""

from collections.abc import Iterable, Sequence

from conversations.history import mended
from conversations.messages import Message, call_ids_of


def appended(history: Sequence[Message], held: Message | None, additions: Sequence[Message]) -> list[Message]:
    """The history with additions; without the held message, unless its calls still wait for their results.

    Then it stays, and so its results will come before the additions; a copy of it among these takes its place.
    """
    kept = list(history)
    if held is not None and (not call_ids_of(held) or maker_of(call_ids_of(held), additions) is not None):
        kept = [message for message in history if message is not held]
    return mended([*kept, *additions])


def replaced(history: Sequence[Message], held: Message | None, changed: Sequence[Message]) -> list[Message]:
    """The changed history; a held message whose calls it leaves out goes in, so that they get their results.

    It goes in before what was added, or at the end when the history before it was rewritten too.
    """
    result = list(changed)
    if held is not None and (call_ids := call_ids_of(held)) and maker_of(call_ids, changed) is None:
        result.insert(_place_of(held, call_ids, history, changed), held)
    return mended(result)


def maker_of(call_ids: Iterable[str], messages: Sequence[Message]) -> int | None:
    """The index of the message that makes one of these calls."""
    wanted = set(call_ids)
    return next((index for index, message in enumerate(messages) if not wanted.isdisjoint(call_ids_of(message))), None)


def index_of(wanted: Message, messages: Sequence[Message]) -> int | None:
    """The index of this very object; equal messages are other messages."""
    return next((index for index, message in enumerate(messages) if message is wanted), None)


def _place_of(held: Message, call_ids: Sequence[str], history: Sequence[Message], changed: Sequence[Message]) -> int:
    index = index_of(held, history)
    is_prefix = index is not None and list(changed[:index]) == list(history[:index])
    place = index if index is not None and is_prefix else len(changed)
    answered = (at for at, message in enumerate(changed) if message.get("tool_call_id") in call_ids)
    return min(place, next(answered, place))
