"""The gateway's mind remembers what nodes said, and offers nothing."""

from rackwright.core.machine import Event, Turn
from rackwright.gateway.machine import Gateway, checkpoints
from rackwright.wire.ids import NodeId, WorkerId
from rackwright.wire.signals import WorkerState, WorkerStatus
from tests.unit.gateway.storied import storied


def worker(name: str, at: float | None = None) -> WorkerStatus:
    return WorkerStatus(worker=WorkerId(name), state=WorkerState.RUNNING, checkpoint_at=at)


def test_a_turn_changes_nothing() -> None:
    made = storied(1)
    state = Gateway().start(0)
    events: list[Event] = [Turn(now=1.0, mono=1.0)]
    assert [Gateway().handle(state, made.fleet, event) for event in events] == [(state, [])]


def test_the_last_word_of_a_node_counts() -> None:
    made = storied(1)
    made.says("r0-n00", worker("a/0/1"))
    made.says("r0-n00", worker("a/0/2"))
    seen = made.state.seen[NodeId("r0-n00")]
    assert seen.worker(WorkerId("a/0/1")) is None
    assert seen.worker(WorkerId("a/0/2")) == worker("a/0/2")


def test_checkpoints_of_placed_jobs_are_the_oldest_of_their_workers() -> None:
    made = storied(1)
    made.sit("a", "r0", [0, 1])
    made.sit("b", "r0", [2])
    made.says("r0-n00", worker("a/0/1", 10.0))
    made.says("r0-n01", worker("a/1/1", 12.0), worker("gone/0/1", 99.0))
    made.says("r0-n02", worker("b/0/1"))
    assert checkpoints(made.state, made.fleet) == {"a": 10.0}
