"""A judge as a check: its points must reach the threshold, and are kept with the record."""

from conversations.checks.finished import Finished
from conversations.checks.settings import Judge
from conversations.judge import ModelJudge
from conversations.messages import JSONObject
from conversations.models.model import Model
from engines.chance import derive_seed

_SEED_RANGE = 2**31


class JudgeCheck:
    """Asks a model; its points, reason and tokens are noted under `judge`."""

    name = "judge"

    def __init__(self, settings: Judge, model: Model) -> None:
        self._threshold = settings.threshold
        self._judge = ModelJudge(model, settings.rubric)

    async def objection(self, finished: Finished, notes: JSONObject) -> str | None:
        """Tell the points and the judge's reason."""
        seed = derive_seed("judge", finished.seed) % _SEED_RANGE
        verdict = await self._judge.score(finished.messages, seed=seed, session_id=finished.id)
        notes["judge"] = {
            "score": verdict.value,
            "reason": verdict.reason,
            "input_tokens": verdict.input_tokens,
            "output_tokens": verdict.output_tokens,
        }
        if verdict.value >= self._threshold:
            return None
        return f"{verdict.value:g} points of 10, {self._threshold:g} are needed: {verdict.reason}"
