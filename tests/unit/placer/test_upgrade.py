"""A cell uses what newer software brought when an operator says so, and not before."""

import pytest

from rackwright.gateway.context import notices
from rackwright.placer import operators
from rackwright.wire.entries.cell import CellUpgraded, WishRefused
from rackwright.wire.entries.job import JobStarted
from rackwright.wire.entries.node import NodeCordoned
from rackwright.wire.ids import NodeId, Owner
from rackwright.wire.versions import FOLD_VERSION
from rackwright.wire.wishes import Upgrade
from tests.support.fleets import cell
from tests.unit.placer.desk import Desk


def old() -> Desk:
    """A cell of version 1 under today's software."""
    return Desk(cell=cell(1, nodes=4, fold_version=1))


def test_the_cell_is_upgraded_step_by_step_and_once() -> None:
    at = old()
    assert any("rackwright upgrade" in one for one in notices(at.fleet, at.fleet.time))
    seq = at.wish(Upgrade(fold_version=FOLD_VERSION), owner="op")
    said = at.run()
    assert [entry.fold_version for entry in said if isinstance(entry, CellUpgraded)] == list(
        range(2, FOLD_VERSION + 1)
    )
    assert at.fleet.fold_version == FOLD_VERSION
    assert at.fleet.answered("placer", seq)
    assert notices(at.fleet, at.fleet.time) == ()
    at.wish(Upgrade(fold_version=FOLD_VERSION), owner="op")
    (entry,) = at.run()
    assert isinstance(entry, WishRefused)
    assert (entry.reason.code, entry.reason.numbers) == ("upgrade.done", {"version": FOLD_VERSION})


def test_not_to_what_the_placer_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "FOLD_VERSION", 1)
    at = old()
    at.wish(Upgrade(fold_version=2), owner="op")
    (entry,) = at.run()
    assert isinstance(entry, WishRefused)
    assert entry.reason.code == "upgrade.unknown"
    assert at.fleet.fold_version == 1


def test_a_job_that_may_be_started_since_then_is_started_at_once() -> None:
    at = old()
    at.submit("a", nodes=2)
    at.run()
    at.other(NodeCordoned(node=NodeId("r0-n01"), drain=True, by=Owner("op")))
    at.all_up("a")
    assert at.run() == []
    at.wish(Upgrade(fold_version=2), owner="op")
    assert [type(entry) for entry in at.run()] == [CellUpgraded, JobStarted]
