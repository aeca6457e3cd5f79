"""Every kind of check: one row a builder; and all checks of a recipe, run one after the other."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from conversations.checks.calls import NoFailedCallsCheck, NoOrphanIdsCheck, ToolCoverageCheck, ValidCallsCheck
from conversations.checks.finished import Check, Findings, Finished
from conversations.checks.judged import JudgeCheck
from conversations.checks.settings import CheckSettings, Judge
from conversations.checks.texts import LengthCheck, NoRefusalCheck, NoRepetitionCheck
from conversations.messages import JSONObject
from conversations.models.model import Model

ModelFor = Callable[[JSONObject | None], Model]
"""The model of a block; None: the recipe's own."""

CHECKS: Mapping[str, Callable[[Any], Check]] = MappingProxyType(
    {
        "valid_calls": ValidCallsCheck,
        "no_failed_calls": NoFailedCallsCheck,
        "no_orphan_ids": NoOrphanIdsCheck,
        "no_refusal": NoRefusalCheck,
        "no_repetition": NoRepetitionCheck,
        "length": LengthCheck,
        "tool_coverage": ToolCoverageCheck,
    }
)


def build_checks(settings: Sequence[CheckSettings], model_for: ModelFor) -> list[Check]:
    """The checks, those that cost nothing first: a judge is not asked about what is rejected anyway."""
    free = [CHECKS[each.type](each) for each in settings if not isinstance(each, Judge)]
    return [*free, *(JudgeCheck(each, model_for(each.model)) for each in settings if isinstance(each, Judge))]


async def findings_of(checks: Sequence[Check], finished: Finished) -> Findings:
    """Run the checks until one objects. A judge's ModelError reaches the caller."""
    notes: JSONObject = {}
    for check in checks:
        if (reason := await check.objection(finished, notes)) is not None:
            return Findings(check.name, reason, notes or None)
    return Findings(notes=notes or None)
