"""The rules and the tests that show them: `python scripts/rules.py [--junit FILE]` writes docs/rules.md.

FILE is what `pytest --junitxml=FILE` wrote; without it the page says which tests there are, but not whether they pass.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
MUST_BE_SHOWN = ("d", "e", "a", "u", "s")
_NAMED = re.compile(r"[a-z]\d{1,2}")
_PASSED, _FAILED, _SKIPPED = "passed", "failed", "skipped"
_MOST_NAMES = 6
_NONE = "-"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, and the decision record that says why it is not kept as its source has it."""

    id: str
    holds: str
    decision: str | None = None


@dataclass(frozen=True, slots=True)
class Test:
    """One test function; its parameters are told apart in its outcomes only."""

    path: str
    name: str

    @property
    def rules(self) -> list[str]:
        """Return the rules that its name says it shows: `test_d15_d16_…`; `test_sec_s5_…` names one of security."""
        named = [word for word in self.name.split("_") if _NAMED.fullmatch(word)]
        return [rule for rule in named if rule[0] != "s"] if self.name.startswith("test_sec_") else named


@dataclass(slots=True)
class Page:
    """Everything that docs/rules.md says."""

    rules: Mapping[str, Rule]
    tests: Sequence[Test]
    outcomes: Mapping[Test, list[str]] = field(default_factory=dict)

    def tests_of(self, rule: Rule) -> list[Test]:
        """Return the tests that name a rule."""
        return [test for test in self.tests if rule.id in test.rules]

    def problems(self) -> Iterator[str]:
        """Say which rules nobody shows, and which tests name rules that there are not."""
        groups = {rule.id[0] for rule in self.rules.values()}
        for rule in self.rules.values():
            if rule.id[0] in MUST_BE_SHOWN and rule.decision is None and not self.tests_of(rule):
                yield f"rule {rule.id.upper()} has neither a test (test_{rule.id}_…) nor a decision in tests/rules.toml"
        for test in self.tests:
            for name in test.rules:
                if name[0] in groups and name not in self.rules:
                    yield f"{test.path}: {test.name} names rule {name.upper()}, which tests/rules.toml does not have"

    def written(self) -> str:
        """Return the page."""
        shown = [rule for rule in self.rules.values() if self.tests_of(rule) or rule.decision]
        lines = [
            "# The rules, and the tests that show them",
            "",
            "Made by `make rules` of `tests/rules.toml` and the names of the tests.",
            "`grep -rn _d37_ tests` finds those of D37.",
            f"{len(shown)} of {len(self.rules)} rules have a test or a decision.",
        ]
        for group in dict.fromkeys(rule.id[0] for rule in self.rules.values()):
            lines += ["", f"## {group.upper()}: {_TITLES.get(group, group)}", ""]
            lines += ["| rule | what holds | tests | pass |", "|---|---|---|---|"]
            lines += [self._row(rule) for rule in self.rules.values() if rule.id[0] == group]
        return "\n".join(lines) + "\n"

    def _row(self, rule: Rule) -> str:
        tests = self.tests_of(rule)
        names = [f"`{test.name}`" for test in tests[:_MOST_NAMES]]
        if len(tests) > _MOST_NAMES:
            names.append(f"and {len(tests) - _MOST_NAMES} more")
        if rule.decision:
            names.append(f"[decision {rule.decision}]({_decision_file(rule.decision)})")
        return f"| {rule.id.upper()} | {rule.holds} | {'<br>'.join(names) or _NONE} | {self._passes(tests)} |"

    def _passes(self, tests: Iterable[Test]) -> str:
        outcomes = [outcome for test in tests for outcome in self.outcomes.get(test, ())]
        if not outcomes:
            return _NONE
        passed, skipped = outcomes.count(_PASSED), outcomes.count(_SKIPPED)
        told = f"{passed} of {len(outcomes)}"
        return f"{told} ({skipped} skipped)" if skipped else told


_TITLES = {
    "d": "tools, engines, loaders",
    "e": "invokers and ensembles",
    "a": "the tool runner",
    "u": "the tool manager",
    "s": "tools that somebody outside answers",
}


def read_rules(path: Path) -> dict[str, Rule]:
    """Read tests/rules.toml."""
    rules = {}
    for group, of_group in tomllib.loads(path.read_text()).items():
        for number, entry in of_group.items():
            rule = Rule(group + number, **(entry if isinstance(entry, dict) else {"holds": entry}))
            rules[rule.id] = rule
    return rules


def find_tests(root: Path) -> list[Test]:
    """Return every test function below tests/, in the order of files and lines."""
    found = []
    for path in sorted((root / "tests").rglob("test_*.py")):
        nodes = ast.walk(ast.parse(path.read_text(), str(path)))
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        place = path.relative_to(root).as_posix()
        found += [(place, node.lineno, node.name) for node in functions if node.name.startswith("test_")]
    return [Test(place, name) for place, _, name in sorted(found)]


def read_outcomes(junit: Path, tests: Sequence[Test]) -> dict[Test, list[str]]:
    """Return how each test's parameters went, as pytest's XML report says."""
    known = {(test.path.removesuffix(".py").replace("/", "."), test.name): test for test in tests}
    outcomes: dict[Test, list[str]] = defaultdict(list)
    for case in ET.parse(junit).iter("testcase"):  # noqa: S314  # pytest's own report
        key = (case.get("classname", ""), case.get("name", "").partition("[")[0])
        if key in known:
            outcomes[known[key]].append(_outcome(case))
    return dict(outcomes)


def _outcome(case: "ET.Element[str]") -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return _FAILED
    return _SKIPPED if case.find("skipped") is not None else _PASSED


def _decision_file(number: str) -> str:
    found = sorted((ROOT / "docs" / "decisions").glob(f"{number}-*.md"))
    if not found:
        raise SystemExit(f"tests/rules.toml names decision {number}, and docs/decisions has no {number}-….md")
    return f"decisions/{found[0].name}"


def page_of(root: Path, junit: Path | None = None) -> Page:
    """Gather the page of a checkout."""
    tests = find_tests(root)
    return Page(read_rules(root / "tests" / "rules.toml"), tests, read_outcomes(junit, tests) if junit else {})


def main(arguments: Sequence[str]) -> int:
    """Write the page; 1 when a rule is not shown."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--junit", type=Path, help="what `pytest --junitxml=FILE` wrote")
    page = page_of(ROOT, parser.parse_args(arguments).junit)
    (ROOT / "docs" / "rules.md").write_text(page.written())
    problems = list(page.problems())
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
