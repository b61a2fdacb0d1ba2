"""First signs of life after a recovery, from entries and from what nodes say."""

from typing import Any

from rackwright.core.machine import Folded
from rackwright.core.measures import Family
from rackwright.gateway.machine import Gateway
from rackwright.wire.ids import WorkerId
from rackwright.wire.message import Entry
from rackwright.wire.signals import WorkerState, WorkerStatus
from tests.support.recovery import decided
from tests.unit.gateway.storied import Storied, storied

RUNNING, PREPARED, EXITED = WorkerState.RUNNING, WorkerState.PREPARED, WorkerState.EXITED


def folded(made: Storied, *entries: Entry, void: bool = False) -> None:
    """Commit these and tell the gateway."""
    made.add(*entries)
    told(made, entries, void=void)


def told(made: Storied, entries: tuple[Entry, ...] = (), *, void: bool = False) -> None:
    event = Folded(
        now=made.fleet.time,
        mono=0.0,
        seq=made.fleet.seq,
        source="test/0",
        type="any",
        entries=entries,
        void=void,
    )
    made.state, effects = Gateway().handle(made.state, made.fleet, event)
    assert effects == []


def swapped(**more: Any) -> Storied:
    """Rank 1 of job a has been swapped from place 1 to place 4, ten seconds after its wound."""
    made = storied(1)
    made.sit("a", "r0", range(4))
    made.unfit("r0-n01")
    told(made)
    made.wait(10.0)
    folded(made, *decided(made), **more)
    return made


def says(made: Storied, node: str, worker: str, state: WorkerState, **more: Any) -> None:
    made.says(node, WorkerStatus(worker=WorkerId(worker), state=state, **more))


def sums(family: Family) -> dict[tuple[str, ...], tuple[int, float]]:
    return {labels: (one.number, round(one.total, 3)) for labels, one in family.by.items()}


def test_a_new_worker_runs_once() -> None:
    made = swapped()
    worker = made.job("a").worker(1)
    made.wait(5.0)
    says(made, "r0-n04", worker, PREPARED)
    says(made, "r0-n00", made.job("a").worker(0), RUNNING)
    assert sums(made.state.firsts.to_start) == {}
    made.wait(5.0)
    says(made, "r0-n04", worker, RUNNING)
    made.wait(5.0)
    says(made, "r0-n04", worker, RUNNING)
    assert sums(made.state.firsts.to_start) == {("spare",): (1, 20.0)}


def test_one_that_ends_before_it_was_seen_to_run_does_not_count() -> None:
    made = swapped()
    worker = made.job("a").worker(1)
    says(made, "r0-n04", worker, EXITED, code=1)
    says(made, "r0-n04", worker, RUNNING)
    assert sums(made.state.firsts.to_start) == {}


def test_progress_counts_from_after_the_recovery() -> None:
    made = swapped()
    worker = made.job("a").worker(0)
    at = made.fleet.time
    says(made, "r0-n00", worker, RUNNING, progress_at=at - 1.0)
    assert sums(made.state.firsts.to_progress) == {}
    made.wait(30.0)
    says(made, "r0-n00", worker, RUNNING, progress_at=at + 29.0)
    says(made, "r0-n00", worker, RUNNING, progress_at=at + 30.0)
    assert sums(made.state.firsts.to_progress) == {("spare",): (1, 40.0)}


def test_what_had_no_effect_or_has_ended_is_not_waited_for() -> None:
    made = swapped(void=True)
    assert (made.state.firsts.workers, made.state.firsts.jobs) == ({}, {})
    ended = swapped()
    assert list(ended.state.firsts.jobs) == ["a"]
    ended.finish("a")
    told(ended)
    assert ended.state.firsts.jobs == {}
