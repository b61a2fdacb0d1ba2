"""Planned maintenance: is there room, and who hears of it when."""

import pytest

from rackwright.core.reasons import sentence
from rackwright.wire.entries.cell import WishRefused
from rackwright.wire.entries.job import JobNotified
from rackwright.wire.entries.node import MaintenanceScheduled
from rackwright.wire.ids import Owner, RackId
from rackwright.wire.jobs import JobClass
from rackwright.wire.message import Entry
from rackwright.wire.wishes import ScheduleMaintenance
from tests.support.fleets import Cell, cell
from tests.unit.placer.desk import Desk, desk

HOUR = 3_600.0
R0 = RackId("r0")


def busy(nodes: int) -> Cell:
    """Six of eight nodes of r0 have a slice; r1 has so many nodes under work that stays."""
    made = cell(2, nodes=8)
    made.sit("a", "r0", range(6))
    if nodes:
        made.sit("b", "r1", range(nodes), restartable=False)
    return made


def planned(made: Cell, in_s: float) -> Entry:
    """What is said to a window of r0, an hour long, with half an hour's notice."""
    at = desk(made)
    begin = at.fleet.time + in_s
    at.wish(ScheduleMaintenance(racks=(R0,), begin=begin, end=begin + HOUR), owner="op")
    return at.run()[0]


@pytest.mark.parametrize(("nodes", "missing"), [(0, None), (2, None), (3, "maintenance.no-room")])
def test_it_is_asked_whether_what_must_move_has_room(nodes: int, missing: str | None) -> None:
    said = planned(busy(nodes), in_s=2 * HOUR)
    assert isinstance(said, MaintenanceScheduled)
    assert (said.missing.code if said.missing is not None else None) == missing
    if said.missing is not None:
        assert said.missing.numbers == {"slices": 1, "nodes": 6, "largest": 6}


def test_a_window_that_would_open_now_without_room_is_refused() -> None:
    said = planned(busy(3), in_s=600.0)
    assert isinstance(said, WishRefused)
    assert said.reason.code == "maintenance.no-room"
    assert isinstance(planned(busy(2), in_s=600.0), MaintenanceScheduled)


def told(said: list[Entry]) -> list[tuple[str, float, str]]:
    return [
        (one.job, one.notice_s, one.reason.code) for one in said if isinstance(one, JobNotified)
    ]


def ahead(in_s: float) -> tuple[Desk, float]:
    """Work that leaves and work that stays on r0, which will be away."""
    made = cell(2, nodes=8)
    made.sit("a", "r0", [0, 1])
    made.sit("i", "r0", [2], job_class=JobClass.INTERACTIVE, time_limit_s=48 * HOUR)
    made.sit("elsewhere", "r1", [2], job_class=JobClass.INTERACTIVE)
    at = desk(made)
    at.run()
    begin = made.fleet.time + in_s
    window = MaintenanceScheduled(racks=(R0,), begin=begin, end=begin + HOUR, by=Owner("op"))
    at.other(window)
    return at, begin


def wait_until(at: Desk, when: float) -> list[tuple[str, float, str]]:
    """Ledger time comes to `when`; what is told then."""
    at.cell.wait(when - at.fleet.time)
    at.folded()
    return told(at.run())


def test_owners_of_what_stays_hear_a_day_and_an_hour_before_of_what_leaves_at_the_notice() -> None:
    at, begin = ahead(in_s=30 * HOUR)
    assert told(at.run()) == []
    day, hour = begin - 24 * HOUR, begin - HOUR
    assert wait_until(at, day) == [("i", 24 * HOUR, "maintenance.stays")]
    assert wait_until(at, hour - 60.0) == []
    assert wait_until(at, hour) == [("i", HOUR, "maintenance.stays")]
    assert wait_until(at, begin - 1800.0) == [("a", 1800.0, "maintenance.leave")]
    assert wait_until(at, begin - 60.0) == []


def test_of_a_window_that_is_near_everybody_hears_at_once_and_once() -> None:
    at, begin = ahead(in_s=1200.0)
    assert told(at.run()) == [
        ("a", 1200.0, "maintenance.leave"),
        ("i", 1200.0, "maintenance.stays"),
    ]
    assert wait_until(at, begin - 60.0) == []


@pytest.mark.parametrize(
    ("begin_in", "end_in", "field"),
    [
        (-100.0, 3600.0, "begin"),
        (-7200.0, -3600.0, "begin"),
        (50.0, 50.0, "end"),
        (50.0, 9.0, "end"),
    ],
)
def test_a_window_in_the_past_or_without_an_end_is_refused_by_field(
    begin_in: float, end_in: float, field: str
) -> None:
    at = desk(cell(2, nodes=8))
    now = at.fleet.time
    at.wish(ScheduleMaintenance(racks=(R0,), begin=now + begin_in, end=now + end_in), owner="op")
    (said,) = at.run()
    assert isinstance(said, WishRefused)
    assert (said.reason.code, said.reason.numbers["field"]) == ("maintenance.window", field)
    assert sentence(said.reason).startswith(f"{field} ")


def test_a_window_may_begin_a_moment_ago_as_clocks_differ() -> None:
    assert isinstance(planned(cell(2, nodes=8), in_s=-5.0), MaintenanceScheduled)
