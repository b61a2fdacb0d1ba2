"""Protocol P2, explored to the end: no promise can be broken; and each rule left out breaks one."""

from collections.abc import Iterator

import pytest
import structlog

from tests.simulation.fencing import alone, alone_mutants
from tests.simulation.fencing.alone import AloneSize
from tests.simulation.fencing.mutants import MUTANTS, Mutant
from tests.simulation.fencing.search import explore
from tests.simulation.fencing.sizes import SMALL, Size

ALL: tuple[tuple[Mutant, Size | AloneSize], ...] = (*MUTANTS, *alone_mutants.MUTANTS)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """A refused order is a line of the agent's log; here there are thousands."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    yield
    structlog.reset_defaults()


@pytest.mark.parametrize("size", [*SMALL, *alone.SMALL], ids=lambda size: size.name)
def test_no_order_of_events_breaks_a_promise(size: Size | AloneSize) -> None:
    found = explore(size)
    print(found.told())
    assert found.harm == "", found.way
    assert found.whole
    assert found.states > 1000, "the space is not empty by mistake"


@pytest.mark.parametrize(("mutant", "size"), ALL, ids=[mutant.__name__ for mutant, _ in ALL])
def test_a_rule_left_out_breaks_one(
    mutant: Mutant, size: Size | AloneSize, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    found = explore(size)
    print(f"{mutant.__name__}: {found.told()}", *found.way, sep="\n  ")
    assert found.harm
