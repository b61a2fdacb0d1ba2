"""Jobs that are owed their place are looked at, whatever the priority of those who have it."""

from rackwright.defragmenter.machine import to_look_at
from rackwright.defragmenter.state import State
from rackwright.gateway.families import families
from rackwright.wire.entries.job import JobBlocked
from rackwright.wire.ids import JobId, QueueName
from rackwright.wire.jobs import JobSpec
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Cause, Reason
from tests.support.fleets import cell
from tests.unit.core.policy.defrag_cells import pass_time
from tests.unit.gateway.storied import storied


def test_for_what_a_queue_is_promised_the_first_of_the_queue_is_looked_at() -> None:
    mine, other = QueueName("mine"), QueueName("other")
    made = cell(1, policy=Policy(queue_guarantee={mine: 40}))
    made.sit("high", "r0", range(18), priority=90, queue=other)
    state = State(copy=0)
    for name, nodes, queue in (("a", 8, other), ("b", 8, mine), ("c", 8, mine), ("d", 12, mine)):
        spec = JobSpec(name=JobId(name), nodes=nodes, priority=20, queue=queue)
        made.queue(name, spec)
        made.add(JobBlocked(job=JobId(name), reason=Reason(code=Cause.CAPACITY)))
        state.follow(made.fleet, JobId(name))
        pass_time(made, 1.0)
    assert to_look_at(state, made.fleet, made.fleet.time) == ["b"]
    made.finish("high")
    assert to_look_at(state, made.fleet, made.fleet.time + 60.0) == []


def test_who_has_what_is_told_by_queue() -> None:
    mine, other = QueueName("mine"), QueueName("other")
    made = storied(1, policy=Policy(queue_guarantee={mine: 40, other: 8}))
    made.sit("a", "r0", range(4), queue=other)
    found = {
        one.name: {sample.labels["queue"]: sample.value for sample in one.samples}
        for one in families(made.context())
        if one.name.startswith("rackwright_queue_") and one.name.endswith("gpus")
    }
    assert found == {
        "rackwright_queue_gpus": {"mine": 0.0, "other": 16.0},
        "rackwright_queue_guaranteed_gpus": {"mine": 40.0, "other": 8.0},
        "rackwright_queue_borrowed_gpus": {"mine": 0.0, "other": 8.0},
    }
