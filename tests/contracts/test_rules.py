"""`docs/rules.md`: each rule has a test for both of its outcomes, each setting has a rule."""

import ast
import re
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from rackwright.gateway.metrics import GROUPS
from rackwright.wire.policy import Policy

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "rules.md"
TEST = re.compile(r"`((?:\w+/)+test_\w+\.py)::(test_\w+)`")
SPAN = re.compile(r"`([^`]+)`")


class Row(NamedTuple):
    """A line of a table: what it says, the settings or names, and one or two cells of tests."""

    says: str
    names: list[str]
    tests: list[str]


def rows(outcomes: int) -> list[Row]:
    """Rows of the tables with so many cells of tests."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 2 + outcomes and TEST.search(line):
            found.append(Row(cells[0], SPAN.findall(cells[1]), cells[2:]))
    return found


@cache
def names_in(path: str) -> frozenset[str]:
    """Names of the tests of a file."""
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, kinds))


RULES, MEASURES = rows(2), rows(1)


def test_the_tables_are_read() -> None:
    assert len(RULES) > 100
    assert len(MEASURES) > 20


@pytest.mark.parametrize("row", RULES + MEASURES, ids=lambda row: row.says[:40])
def test_each_outcome_has_tests_and_they_exist(row: Row) -> None:
    for cell in row.tests:
        named = TEST.findall(cell)
        assert named, f"no test: {row.says}"
        assert len(named) == len(SPAN.findall(cell)), f"a name that is none: {cell}"
        missing = [f"{path}::{name}" for path, name in named if name not in names_in(path)]
        assert missing == []


def test_each_setting_that_is_named_exists_and_each_that_exists_is_named() -> None:
    named = {name for row in RULES for name in row.names}
    assert named == {field.name for field in fields(Policy)}


def test_each_measure_that_is_named_exists_and_each_that_exists_is_named() -> None:
    named = {name for row in MEASURES for name in row.names}
    assert named == {name for names in GROUPS.values() for name in names}
