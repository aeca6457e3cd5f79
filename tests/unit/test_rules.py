"""Every rule has its test or its decision; docs/rules.md is made of what there is."""

import importlib.util
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def rules(checkout: Path) -> ModuleType:
    """Return the program that makes the page."""
    spec = importlib.util.spec_from_file_location("rules_program", checkout / "scripts" / "rules.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def small(rules: ModuleType, tmp_path: Path) -> Path:
    """A checkout of three rules and three tests."""
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "rules.toml").write_text('[d]\n1 = "one"\n2 = {holds = "two", decision = "0006"}\n[u]\n1 = "three"\n')
    (tests / "test_it.py").write_text(
        "def test_d1_u1_works(): ...\nasync def test_d1_also(): ...\ndef test_f3_of_another_table(): ...\n"
    )
    return tmp_path


def problems_of(rules: ModuleType, folder: Path) -> Sequence[str]:
    return list(rules.page_of(folder).problems())


def test_every_rule_has_a_test_or_a_decision_and_no_test_names_a_rule_that_is_not(
    rules: ModuleType, checkout: Path
) -> None:
    assert problems_of(rules, checkout) == []


def test_the_page_names_no_test_that_is_gone(rules: ModuleType, checkout: Path) -> None:
    there = {test.name for test in rules.find_tests(checkout)}
    named = set(re.findall(r"`(test_\w+)`", (checkout / "docs" / "rules.md").read_text()))
    assert named - there == set(), "run `make rules`"


def test_a_rule_that_nobody_shows_is_a_problem(rules: ModuleType, small: Path) -> None:
    assert problems_of(rules, small) == []
    with (small / "tests" / "rules.toml").open("a") as file:
        file.write(
            '2 = "nobody shows this either"\n[q]\n1 = "of a table that need not be complete"\n[e]\n1 = "nobody"\n'
        )
    assert [problem.partition(" has")[0] for problem in problems_of(rules, small)] == ["rule U2", "rule E1"]


def test_a_test_that_names_a_rule_that_is_not_is_a_problem(rules: ModuleType, small: Path) -> None:
    (small / "tests" / "test_more.py").write_text("def test_d88_there_is_no_such_rule(): ...\n")
    (problem,) = problems_of(rules, small)
    assert "tests/test_more.py: test_d88_there_is_no_such_rule names rule D88" in problem


def test_a_test_of_the_security_table_shows_no_rule_of_ours_by_its_number(rules: ModuleType, small: Path) -> None:
    test = "def test_sec_s5_d1_x(): ..."
    (small / "tests" / "test_more.py").write_text(f"{test}\n")
    (found,) = [test for test in rules.find_tests(small) if test.name.startswith("test_sec")]
    assert found.rules == ["d1"]


def test_a_decision_that_is_not_written_is_refused(rules: ModuleType, small: Path) -> None:
    toml = small / "tests" / "rules.toml"
    toml.write_text(toml.read_text().replace("0006", "9999"))
    with pytest.raises(SystemExit, match="9999"):
        rules.page_of(small).written()


def test_the_page_says_which_tests_show_a_rule_and_how_many_of_them_pass(rules: ModuleType, small: Path) -> None:
    junit = small / "junit.xml"
    junit.write_text(
        "<testsuites><testsuite>"
        '<testcase classname="tests.test_it" name="test_d1_u1_works[a]"/>'
        '<testcase classname="tests.test_it" name="test_d1_u1_works[b]"><failure/></testcase>'
        '<testcase classname="tests.test_it" name="test_d1_also"><skipped/></testcase>'
        '<testcase classname="tests.test_gone" name="test_d1_also"/>'
        "</testsuite></testsuites>"
    )
    page = rules.page_of(small, junit).written()
    assert "| D1 | one | `test_d1_u1_works`<br>`test_d1_also` | 1 of 3 (1 skipped) |" in page
    assert "| D2 | two | [decision 0006](decisions/0006-" in page
    assert "| U1 | three | `test_d1_u1_works` | 1 of 2 |" in page
    assert "| D1 | one | `test_d1_u1_works`<br>`test_d1_also` | - |" in rules.page_of(small).written()
