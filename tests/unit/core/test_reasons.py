"""Every reason that the program can give has a sentence; any other one has a fair one."""

import ast
import re
from collections.abc import Iterator

import pytest

from rackwright.core.reasons import FAMILIES, TEMPLATES, known, number, rung, sentence
from rackwright.wire.reasons import Cause, Reason, Rung, RungTaken
from tests.tidy.source import ROOT, modules, tree

CODE = re.compile(r"[a-z][a-z0-9]*(?:[._-][a-z0-9]+)*\.?")
# Functions and methods whose arguments hold the code of a reason.
MAKERS = {"Reason", "refused", "skip", "take", "_skip", "_take", "_note", "note", "withdrawn"}
WHERE = ("libs/rackwright/core/policy", "libs/rackwright/core/fold", "services")
NO_CODES = {"agent", "cli", "gateway"}  # packages of services that give no reasons


def literals(node: ast.expr) -> Iterator[str]:
    """Texts in an expression; of an f-string what stands before the first value."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from literals(body)
            yield from literals(orelse)
        case ast.BoolOp(values=values):
            for value in values:
                yield from literals(value)
        case _:
            return


def emitted() -> Iterator[tuple[str, str]]:
    """Codes in the source, with where they stand."""
    for path in modules(*WHERE):
        if NO_CODES.intersection(path.parts):
            continue
        for call in ast.walk(tree(path)):
            if not isinstance(call, ast.Call):
                continue
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            name = call.func.id if isinstance(call.func, ast.Name) else name
            if name not in MAKERS:
                continue
            told = [word.value for word in call.keywords if word.arg == "code"]
            told += [] if name == "Reason" else call.args
            for argument in told:
                for text in literals(argument):
                    if CODE.fullmatch(text):
                        yield text, f"{path.relative_to(ROOT)}:{call.lineno}"


def test_every_code_that_is_emitted_has_a_sentence() -> None:
    codes = list(emitted())
    assert len({code for code, _ in codes}) > 40  # the search itself works
    # A code that ends with a dot is the beginning of several; `defrag.` are named one by one.
    unknown = sorted(
        f"{where} {code}"
        for code, where in codes
        if not (known(code) or known(f"defrag.{code}") or known(f"{code}x") or code == "defrag.")
    )
    assert unknown == []


def test_the_seven_causes_have_sentences_of_their_own() -> None:
    assert [cause for cause in Cause if cause not in TEMPLATES] == []


def test_the_richest_sentence_whose_numbers_are_there_is_taken() -> None:
    whole: dict[str, int | float | str] = {
        "asked_nodes": 900,
        "cell_nodes": 72,
        "ask": "72 nodes or fewer",
    }
    assert sentence(Reason(code="never", numbers=whole)) == (
        "can never fit: 900 nodes are asked for, the cell has 72; ask for 72 nodes or fewer"
    )
    assert sentence(Reason(code="never", numbers={"cell_nodes": 0})) == (
        "can never fit: the cell has 0 nodes"
    )
    assert sentence(Reason(code="never")) == "can never fit this cell"


def test_families_name_what_comes_after_them() -> None:
    assert sentence(Reason(code="xid.79")) == "a GPU reported Xid 79"
    assert sentence(Reason(code="xid.48", numbers={"gpu": 2})) == "GPU 2 reported Xid 48"
    told: dict[str, int | float | str] = {
        "field": "gpus",
        "is": 5,
        "why": "is no whole number of nodes",
        "ask": "4 or 8",
    }
    assert sentence(Reason(code="spec.gpus", numbers=told)) == (
        "gpus 5 is no whole number of nodes; ask for 4 or 8"
    )


def test_an_unknown_code_still_says_all_there_is() -> None:
    assert sentence(Reason(code="solar-flare.big", numbers={"size": 3.14159, "of": "sun"})) == (
        "solar flare: big (size 3.14, of sun)"
    )
    assert sentence(Reason(code="solar-flare")) == "solar flare"


@pytest.mark.parametrize(
    ("taken", "price", "expected"),
    [
        (True, 1.0666, "spare taken: a free spare of the rack, 1.07 GPU-h"),
        (False, None, "spare skipped: a free spare of the rack"),
    ],
)
def test_rungs(taken: bool, price: float | None, expected: str) -> None:
    one = RungTaken(rung=Rung.SPARE, taken=taken, price_gpu_h=price, reason=Reason(code="spare"))
    assert rung(one) == expected


def test_numbers_are_short() -> None:
    shown = [number(one) for one in (3, 2.0, 0.1 + 0.2, 604_800.0, 1e9, "x")]
    assert shown == ["3", "2", "0.3", "604800", "1000000000", "x"]


def test_templates_end_without_a_full_stop() -> None:
    every = [text for texts in (*TEMPLATES.values(), *FAMILIES.values()) for text in texts]
    assert [text for text in every if text.endswith(".")] == []
