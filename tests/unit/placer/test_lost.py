"""Ends that may be those of a node, of its agent or of their container, and not of the job."""

import pytest

from rackwright.wire.entries.node import NodeCleared, NodeCordoned, NodeJoined
from rackwright.wire.ids import NodeId, Owner, SessionId, WorkerId
from rackwright.wire.signals import WorkerState, WorkerStatus
from tests.support.fleets import cell, hardware
from tests.unit.placer.desk import Desk, desk, ends, failures

EXITED = WorkerState.EXITED


@pytest.fixture
def at() -> Desk:
    return desk(cell(2))


def join(at: Desk, node: str, exited: tuple[str, ...] = ()) -> None:
    """The health-monitor admits the session in which the node speaks now."""
    name = NodeId(node)
    at.other(
        NodeJoined(
            node=name,
            of=at.fleet.node(name).last,
            session=at.sessions[name],
            boot=at.fleet.node(name).boot,
            hardware=hardware(name),
            exited=tuple(WorkerId(worker) for worker in exited),
        )
    )


def came_back(at: Desk, rank: int, code: int | None) -> str:
    """The agent of a rank of job a is a new one, and says that the worker is not there any more."""
    part = at.cell.job("a").slice_of(rank)
    node = at.fleet.node_at(part.rack, part.nodes[rank - part.first_rank]).name
    at.sessions[node] = SessionId(f"again-{rank}")
    at.worker("a", rank, EXITED, code)
    return node


@pytest.mark.parametrize("code", [None, -9, 1])
def test_what_a_session_says_that_nobody_admitted_is_not_judged(at: Desk, code: int | None) -> None:
    """However long it takes the health-monitor: it may be the end of the node, not of the job."""
    at.started("a", nodes=2)
    came_back(at, 0, code)
    assert at.live(120) == []


def test_a_worker_that_was_lost_with_its_agent_costs_nothing(at: Desk) -> None:
    """The join wounds its rank; no verdict comes before it, with no try left neither."""
    at.started("a", nodes=2)
    node = came_back(at, 0, None)
    assert at.live(60) == []
    join(at, node)
    assert [(one.code, one.charge) for one in at.cell.job("a").wounds] == [("session.lost", False)]
    assert at.live(60) == []


def test_an_exit_that_is_found_by_a_new_agent_is_judged_when_it_has_joined(at: Desk) -> None:
    at.started("a", nodes=2)
    node = came_back(at, 0, 3)
    assert at.live(60) == []
    join(at, node, ("a/0/1",))
    assert ends(at.run()) == [("job.failed", "exit.3")]


def test_an_exit_of_a_session_that_joined_first_is_judged_when_it_is_told(at: Desk) -> None:
    at.started("a", nodes=2, retry_budget=1)
    at.worker("a", 0, EXITED, 3)
    part = at.cell.job("a").slices[0]
    node = at.fleet.node_at(part.rack, part.nodes[0]).name
    at.sessions[node] = SessionId("again")
    join(at, node, ("a/0/1",))
    assert at.live(60) == []
    at.status(node)
    assert failures(at.run()) == [(0, "exit.3")]


def test_the_verdict_waits_while_the_node_is_in_doubt(at: Desk) -> None:
    at.started("a", nodes=2, retry_budget=1)
    at.worker("a", 0, EXITED, -9)
    at.cell.suspect("r0-n00")
    at.folded()
    assert at.live(60) == []
    node = at.fleet.node(NodeId("r0-n00"))
    at.other(NodeCleared(node=node.name, of=node.last, session=node.session or SessionId("-")))
    assert failures(at.run()) == [(0, "exit.-9")]


def test_a_worker_killed_while_its_agent_lives_is_charged(at: Desk) -> None:
    """As by a kernel that is short of memory."""
    at.started("a", nodes=2)
    at.worker("a", 0, EXITED, -9)
    assert ends(at.live(60)) == [("job.failed", "exit.-9")]


@pytest.mark.parametrize("cordoned", [False, True])
def test_a_lost_supervisor_is_nobodys_fault(at: Desk, cordoned: bool) -> None:
    at.started("a", nodes=2)
    if cordoned:
        at.other(NodeCordoned(node=NodeId("r0-n00"), by=Owner("op")))
    at.worker("a", 0, EXITED)
    assert failures(at.run()) == [(0, "supervisor.lost")]  # a cordon is about new work
    assert not at.cell.job("a").wounds[0].charge


def test_a_worker_that_never_ran_was_failed_by_its_node(at: Desk) -> None:
    """Its GPUs are held by something, or its supervisor was killed before the start."""
    at.submit("a", nodes=2)
    at.run()
    part = at.cell.job("a").slices[0]
    node = at.fleet.node_at(part.rack, part.nodes[0]).name
    worker = at.cell.job("a").worker(0)
    at.told[node] = {worker: WorkerStatus(worker=worker, state=EXITED)}
    at.status(node)
    assert failures(at.run()) == [(0, "start-timeout")]
