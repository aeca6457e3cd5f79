"""Which checks the tools that ran ask for, collected for whoever evaluates the conversation (rule U18)."""

from collections.abc import Iterable, Mapping

from conversations.messages import JSONObject

EVALUATION_CHECKS = "evaluation_checks"
"""The metadata key: of a tool, the checks it wants; of a record, those of the tools that ran."""


def evaluation_checks(results: Iterable[JSONObject], wanted: Mapping[str, Iterable[str]]) -> list[str]:
    """The names of the checks, sorted, each once; `wanted` by qualified tool name, `results` in the record's form."""
    ran = {entry["name"] for entry in results if "not_run" not in entry["metadata"]}
    return sorted({check for name in ran for check in wanted.get(name, ())})
