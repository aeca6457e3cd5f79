"""What the model is asked each turn: the history, the tools that are offered by now, a choice, a seed of the turn."""

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import ValidationError

from conversations.errors import ParametersInvalid, ToolChoiceInvalid
from conversations.models.model import Model, ModelReply, ModelRequest
from conversations.models.settings import Sampling
from conversations.offered import OfferedTools
from conversations.policy.forced import choice_for, is_forced
from conversations.state import State
from conversations.steps import AskModel
from engines.chance import derive_seed
from engines.nearest import hint

_SEED_RANGE = 2**31  # some model servers take no larger seed


class Asking:
    """The model's side of one conversation."""

    def __init__(
        self, model: Model, state: State, offered: OfferedTools, *, tool_choice: Any, seed: int, conversation_id: str
    ) -> None:
        """ToolChoiceInvalid for a choice of a tool that is not offered."""
        self._model, self._state, self._offered = model, state, offered
        self._seed, self._conversation_id = seed, conversation_id
        self._memory: dict[str, Any] = {}  # what the model's client makes of the history
        self._choice = offered.now.choice(tool_choice) if tool_choice is not None else None
        self._is_new_choice = False
        self._last_choice = self._choice if state.turns == 1 else None

    async def ask(self, step: AskModel, failed_call_ids: Collection[str]) -> ModelReply:
        """The reply to the history as it is; a ModelError reaches the caller."""
        state, tools = self._state, self._offered.now
        offered = tools if step.with_tools and tools.tools else None
        choice = choice_for(self._choice, is_first=step.is_first or self._is_new_choice) if offered else None
        request = ModelRequest(
            messages=state.messages,
            encoded_messages=state.encoded_messages(),
            tools=offered.native if offered else None,
            encoded_tools=offered.encoded if offered else None,
            encoded_extras=offered.extras if offered else b"",
            tool_choice=choice,
            parameters=state.parameters,
            seed=derive_seed(self._seed, "turn", state.turns) % _SEED_RANGE,
            session_id=self._conversation_id,
            failed_call_ids=failed_call_ids,
            memory=self._memory,
        )
        reply = await self._model.ask(request)
        self._last_choice, self._is_new_choice = choice, False
        return reply

    def choose(self, tool_choice: Any) -> None:
        """What the next requests say of choosing tools; one that forces a call is said once (rule U6)."""
        self._choice = self._offered.now.choice(tool_choice)
        self._is_new_choice = True

    def follow_offer(self) -> None:
        """Forget a choice of a tool that is no longer offered."""
        try:
            self._offered.now.choice(self._choice)
        except ToolChoiceInvalid:
            self._choice = None

    def was_forced(self, wire_name: str) -> bool:
        """Whether the last reply had to call this tool (rule U17)."""
        return is_forced(self._last_choice, wire_name, is_first=True)


def checked_parameters(said: Mapping[str, Any]) -> dict[str, Any]:
    """What a caller says of sampling, ready for requests; ParametersInvalid names the key and the way out."""
    known = Sampling.model_fields
    for name in said:
        if name not in known:
            raise ParametersInvalid(f"{name!r} is no parameter of a request; {hint(name, known)}")
    try:
        return Sampling.model_validate(said).model_dump(mode="json", exclude_unset=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ParametersInvalid(f"{place}: {first['msg']}") from error
