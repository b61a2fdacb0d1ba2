"""What may follow, and what follows of it, is frozen with each fold version.

Who changes a rule sees it here. The change then belongs to a new fold version, with the old rule
kept for the old one; see `proto/README.md`, "How to change a contract".
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from rackwright.core import legality
from rackwright.wire.entries import ENTRIES
from rackwright.wire.versions import FOLD_VERSION
from tests.contracts.legality import FROZEN, cases, edges, now, then, versions

RULES = Path(legality.__file__).parent
# Sentences that no entry meets today, because another rule comes first.
SHADOWED = frozenset({"a slice is given twice", "part of a node means one node"})
DIFFERENT = frozenset({"job.started", "cell.upgraded"})  # in version 2 from version 1


@pytest.mark.parametrize("version", versions())
def test_each_fold_version_says_what_it_said(version: int) -> None:
    said, frozen = now(version), then(version)
    assert set(frozen["edges"]) <= set(said["edges"]), "an edge of the state graph is gone"
    known = len(frozen["verdicts"])
    changed = [
        (case.entry.TYPE, before, after)
        for case, before, after in zip(cases(), frozen["verdicts"], said["verdicts"], strict=False)
        if before != after
    ]
    assert changed == [], f"fold version {version} is frozen"
    assert known == len(cases()) or version < FOLD_VERSION, "cases without a frozen verdict"


def test_the_newest_version_has_all_edges_and_they_are_its_own() -> None:
    assert then(FOLD_VERSION)["edges"] == edges()


def test_versions_differ_where_the_record_of_decisions_says_so() -> None:
    old, new = then(1)["verdicts"], then(2)["verdicts"]
    differ = {
        case.entry.TYPE
        for case, before, after in zip(cases(), old, new, strict=False)
        if before.startswith("illegal") != after.startswith("illegal")
    }
    assert differ == DIFFERENT


def returned() -> Iterator[str]:
    """Every sentence that a rule can return, as a pattern."""
    for path in sorted(RULES.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Return) and node.value is not None:
                yield from _patterns(node.value)


def _patterns(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.IfExp(body=body, orelse=other):
            yield from _patterns(body)
            yield from _patterns(other)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _patterns(value)
        case ast.JoinedStr(values=values):
            yield "".join(_pattern(value) for value in values)
        case ast.Constant(value=str(text)) if " " in text:
            yield re.escape(text)
        case _:
            pass


def _pattern(node: ast.expr) -> str:
    return re.escape(str(node.value)) if isinstance(node, ast.Constant) else ".*"


@pytest.mark.parametrize("pattern", sorted(set(returned())))
def test_every_rule_is_met_by_a_frozen_case(pattern: str) -> None:
    said = [one.removeprefix("illegal: ") for one in then(FOLD_VERSION)["verdicts"]]
    met = any(re.fullmatch(pattern, one) for one in said)
    assert met != any(re.fullmatch(pattern, one) for one in SHADOWED)


@pytest.mark.parametrize("kind", sorted(ENTRIES))
def test_every_entry_is_legal_in_a_frozen_case(kind: str) -> None:
    said = zip(cases(), then(FOLD_VERSION)["verdicts"], strict=True)
    assert any(kind == case.entry.TYPE and one.startswith("after") for case, one in said)


def said_in(kind: Any, seen: set[Any]) -> Iterator[tuple[str, Any]]:
    """Each field of a type and of all types in it."""
    for inner in get_args(kind):
        yield from said_in(inner, seen)
    if not isinstance(kind, type) or not is_dataclass(kind) or kind in seen:
        return
    seen.add(kind)
    hints = get_type_hints(kind)
    for one in fields(kind):
        yield f"{kind.__name__}.{one.name}", one
        yield from said_in(hints[one.name], seen)


def everything_said() -> dict[str, Any]:
    """All fields that an entry can hold, by name."""
    seen: set[Any] = set()
    return {name: one for kind in ENTRIES.values() for name, one in said_in(kind, seen)}


def test_a_field_that_version_one_had_not_names_the_version_that_brought_it() -> None:
    first = set((FROZEN / "fields-1.txt").read_text(encoding="utf-8").split())
    found = everything_said()
    assert first <= set(found), "a field is gone"
    later = {name for name, one in found.items() if "since" in one.metadata}
    assert set(found) - first == later
    assert all(1 < found[name].metadata["since"] <= FOLD_VERSION for name in later)


def test_an_entry_type_that_version_one_had_not_names_the_version_that_brought_it() -> None:
    first = set((FROZEN / "types-1.txt").read_text(encoding="utf-8").split())
    assert first <= set(ENTRIES)
    assert all(getattr(ENTRIES[name], "SINCE", 1) > 1 for name in set(ENTRIES) - first)
