"""A job: one conversation to make, as a line of the user's file and as an index of a run."""

from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from engines.chance import derive_seed
from jobs.earlier import EarlierTurns

JSONObject = dict[str, Any]


class JobLine(BaseModel):
    """One line of the jobs file (JSONL): the conversation that the user wants.

    Without `messages` and `prompt` a simulated user begins; a recipe that has none refuses such a line.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str | None = Field(default=None, min_length=1, max_length=256)
    messages: tuple[JSONObject, ...] | None = Field(default=None, min_length=1)
    prompt: str | None = Field(default=None, min_length=1)
    variables: JSONObject = Field(default_factory=dict)
    tools: tuple[str, ...] | None = None
    tool_choice: str | JSONObject | None = None
    disabled_tools: tuple[str, ...] = ()
    seed: int | None = None
    max_turns: int | None = Field(default=None, ge=1)
    metadata: JSONObject = Field(default_factory=dict)
    history: EarlierTurns | None = None

    @model_validator(mode="after")
    def _has_one_beginning_at_most(self) -> Self:
        if self.messages is not None and self.prompt is not None:
            raise ValueError('a job needs either "messages" or "prompt", not both')
        return self

    @model_validator(mode="after")
    def _messages_have_roles(self) -> Self:
        for position, message in enumerate(self.messages or ()):
            if message.get("role") not in {"system", "developer", "user", "assistant", "tool"}:
                raise ValueError(f'messages[{position}] needs a "role" of system, developer, user, assistant or tool')
        return self

    @model_validator(mode="after")
    def _holds_the_turns_of_its_history(self) -> Self:
        if self.history is not None:
            self.history.check_against(self.messages)
        return self


def seed_of(line: JobLine, run_seed: int, index: int) -> int:
    """Return the seed of a job: its own, else one of the run's seed and its index: the same on any machine."""
    return line.seed if line.seed is not None else derive_seed(run_seed, index)


def model_seed_of(line: JobLine, seed: int) -> int:
    """Return the seed of what the models say: the job's, but for a fork, which says something else than its parent."""
    own = line.history.seed if line.history is not None else None
    return seed if own is None else own


@dataclass(frozen=True, slots=True)
class JobReference:
    """What a task message carries and nothing more: which job of which run, and the stateful namespaces it needs."""

    run_id: str
    index: int
    namespaces: tuple[str, ...] = ()

    @property
    def task_id(self) -> str:
        """Return the readable task id, such as ``weather-1a2b3c4d.000042``."""
        return task_id(self.run_id, self.index)


def task_id(run_id: str, index: int) -> str:
    """Name a job so that lists of tasks read well: ``RUN.000042``."""
    return f"{run_id}.{index:06d}"
