"""What a recipe says of the simulated user: who it is, what it wants, and for how long it goes on."""

from random import Random
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from conversations.messages import JSONObject
from engines.chance import derive_seed

STOP = "###STOP###"
PLAYS_USER = "You play a user who talks to an assistant."
"""How the instructions of a user's model begin; the offline model knows its part by it."""
GOAL_MARK = "What you want: "


class UserSettings(BaseModel):
    """`model` None means the recipe's own; of `personas` each job gets one, drawn by its seed.

    `persona` and `goal` are templates over a job's variables. `stop` is what the user's model writes when it is done:
    it never enters the transcript, and before `min_user_turns` it counts for nothing. With `opens` the user speaks
    first. `tools` are the user's own: run on the job's session, never shown to the assistant.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: JSONObject | None = None
    persona: str | None = None
    personas: tuple[str, ...] = ()
    goal: str | None = None
    tools: tuple[str, ...] = ()
    stop: str = Field(default=STOP, min_length=1)
    max_user_turns: int = Field(default=4, ge=1)
    min_user_turns: int = Field(default=0, ge=0)
    opens: bool = False

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.persona is not None and self.personas:
            raise ValueError("`persona` and `personas` cannot both be given; put the one into the list")
        if self.min_user_turns > self.max_user_turns:
            raise ValueError("min_user_turns is more than max_user_turns")
        return self

    def persona_for(self, seed: int) -> str:
        """The persona of a job: the same in every attempt, on any worker."""
        if not self.personas:
            return self.persona or ""
        return Random(derive_seed("persona", seed)).choice(self.personas)

    def texts(self) -> list[str]:
        """Every template in here."""
        return [text for text in (self.persona, self.goal, *self.personas) if text]
