"""Queues take what they say they take, pinned work and interactive owners have a limit."""

from typing import Any

import pytest

from rackwright.core.policy.admission import Admitted, admit
from rackwright.core.policy.causes import why_blocked
from rackwright.core.policy.placement import place
from rackwright.core.policy.settings import beyond_the_cell
from rackwright.wire.ids import JobId, QueueName
from rackwright.wire.jobs import JobClass, JobSpec
from rackwright.wire.policy import Policy
from tests.support.fleets import Cell, cell

Q = QueueName("q")


def limited(racks: int = 2, **knobs: Any) -> Cell:
    return cell(racks, policy=Policy(**knobs))


def answer(made: Cell, **fields: Any) -> str:
    """`taken`, or the field that cannot stand."""
    found = admit(made.fleet, JobSpec(**({"name": JobId("j"), "queue": Q} | fields)))
    return "taken" if isinstance(found, Admitted) else str(found.numbers["field"])


def limit(made: Cell, owner: str = "ann", **fields: Any) -> tuple[str, Any]:
    """Where it waits and for what, or that it is placed."""
    known = made.queue("j", JobSpec(**({"name": JobId("j"), "queue": Q} | fields)), owner)
    found = place(made.fleet, known)
    why = why_blocked(made.fleet, known, made.fleet.time)
    return ("placed", "") if found is not None else (why.code, why.numbers.get("limit"))


@pytest.mark.parametrize(
    ("fields", "answered"),
    [
        ({"nodes": 1}, "taken"),
        ({"nodes": 1, "job_class": JobClass.SERVICE}, "taken"),
        ({"gpus": 1, "job_class": JobClass.INTERACTIVE}, "job_class"),
        ({"gpus": 1, "job_class": JobClass.INTERACTIVE, "queue": QueueName("other")}, "taken"),
    ],
)
def test_classes_of_a_queue(fields: dict[str, Any], answered: str) -> None:
    made = limited(queue_classes={Q: (JobClass.BATCH, JobClass.SERVICE)})
    assert answer(made, **fields) == answered


@pytest.mark.parametrize(("priority", "answered"), [(50, "taken"), (51, "priority")])
def test_highest_priority_of_a_queue(priority: int, answered: str) -> None:
    made = limited(queue_priority={Q: 50})
    assert answer(made, nodes=1, priority=priority) == answered
    assert answer(made, nodes=1, priority=100, queue=QueueName("other")) == "taken"


def test_more_than_a_queue_may_ever_have_is_refused() -> None:
    made = limited(queue_gpus={Q: 60})
    assert (answer(made, nodes=15), answer(made, nodes=16)) == ("taken", "nodes")


def test_an_interactive_job_is_small() -> None:
    made = limited()
    small = {"job_class": JobClass.INTERACTIVE}
    assert answer(made, gpus=4, **small) == "taken"
    assert answer(made, nodes=2, **small) == "nodes"


def test_an_owner_of_interactive_jobs_has_a_limit() -> None:
    made = limited()
    made.sit("n0", "r0", [0], job_class=JobClass.INTERACTIVE)
    fields: dict[str, Any] = {"gpus": 1, "job_class": JobClass.INTERACTIVE}
    assert limit(made.copy(), **fields) == ("placed", "")
    made.sit("n1", "r0", [1], job_class=JobClass.INTERACTIVE)
    assert limit(made.copy(), **fields) == ("quota", "interactive_owner_gpus")
    assert limit(made, owner="bob", **fields) == ("placed", "")


def test_pinned_work_has_a_share_of_the_cell_and_in_a_small_one_a_rack() -> None:
    made = limited(3, pinned_share=0.4)
    made.sit("p", "r0", range(16), restartable=False)
    assert limit(made.copy(), nodes=6, restartable=False) == ("quota", "pinned_share")
    assert limit(made.copy(), nodes=6, restartable=True) == ("placed", "")
    made = limited(3, pinned_share=0.01)
    assert limit(made.copy(), nodes=18, restartable=False) == ("placed", "")
    assert answer(made, nodes=19, restartable=False) == "nodes"


def test_pinned_work_of_one_queue() -> None:
    made = limited(queue_pinned_gpus={Q: 8})
    made.sit("p", "r0", [0], restartable=False, queue=Q)
    assert limit(made.copy(), nodes=1, restartable=False) == ("placed", "")
    assert answer(made, nodes=3, restartable=False) == "nodes"
    made.sit("p2", "r0", [1], restartable=False, queue=Q)
    assert limit(made, nodes=1, restartable=False) == ("quota", "queue_pinned_gpus")


@pytest.mark.parametrize(("most", "lent"), [(4, True), (3, False)])
def test_what_a_queue_may_have_on_lent_spares(most: int, lent: bool) -> None:
    made = limited(1, queue_lent_gpus={Q: most})
    made.sit("big", "r0", range(16))
    known = made.queue("j", JobSpec(name=JobId("j"), nodes=1, queue=Q))
    found = place(made.fleet, known)
    assert (found is not None) is lent


def test_no_queue_is_promised_more_than_the_cell() -> None:
    made = cell(1)
    assert beyond_the_cell(made.fleet, Policy(queue_gpus={Q: 72})) is None
    found = beyond_the_cell(made.fleet, Policy(queue_gpus={Q: 73}))
    assert found is not None
    assert (found.numbers["field"], found.numbers["ask"]) == ("queue_gpus.q", "72 or fewer")
    assert beyond_the_cell(cell(0).fleet, Policy(queue_gpus={Q: 73})) is None
