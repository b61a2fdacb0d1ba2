"""When a job saved last, as the placer tells of it: what its ranks say now, however often asked."""

import pytest

from rackwright.placer.reports import Saved
from rackwright.wire.ids import JobId
from rackwright.wire.signals import WorkerState, WorkerStatus
from tests.support.fleets import cell
from tests.unit.placer.desk import Desk

NAME = JobId("a")


@pytest.fixture
def at() -> Desk:
    desk = Desk(cell=cell())
    desk.submit("a", nodes=2)
    desk.run()
    return desk


def saves(at: Desk, rank: int, when: float | None) -> None:
    """A rank tells of its last checkpoint."""
    job = at.cell.job("a")
    part = job.slice_of(rank)
    node = at.fleet.node_at(part.rack, part.nodes[rank - part.first_rank]).name
    worker = job.worker(rank)
    at.told.setdefault(node, {})[worker] = WorkerStatus(
        worker=worker, state=WorkerState.RUNNING, ready=True, checkpoint_at=when
    )
    at.status(node)


def asked(at: Desk) -> float | None:
    return Saved(at.state.reports, at.fleet).get(NAME)


def test_it_is_the_oldest_of_what_its_ranks_tell_of(at: Desk) -> None:
    assert asked(at) is None
    saves(at, 0, 50.0)
    assert asked(at) == 50.0
    saves(at, 1, 40.0)
    assert asked(at) == 40.0
    saves(at, 1, 60.0)
    assert asked(at) == 50.0
    saves(at, 0, None)
    assert asked(at) == 60.0


def test_what_a_node_no_longer_tells_of_does_not_count(at: Desk) -> None:
    saves(at, 0, 50.0)
    saves(at, 1, 40.0)
    assert asked(at) == 40.0
    for node, workers in at.told.items():
        if at.cell.job("a").worker(1) in workers:
            at.told[node] = {}
            at.status(node)
    assert asked(at) == 50.0


def test_a_job_that_has_ended_is_forgotten(at: Desk) -> None:
    saves(at, 0, 50.0)
    assert asked(at) == 50.0
    at.exit_all("a")
    at.run()
    assert NAME not in at.fleet.jobs
    assert NAME not in at.state.reports.saved
