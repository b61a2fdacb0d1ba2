"""Going on with fewer slices or replicas, and getting them back."""

from typing import Any

import pytest

from rackwright.core.fold import apply
from rackwright.core.jobs import JobState
from rackwright.core.legality import illegal
from rackwright.core.policy.placement import place
from rackwright.core.policy.regrow import grow, lacks, missing
from rackwright.core.policy.windows import nodes_of, parts_there
from rackwright.core.snapshot import dump, load
from rackwright.wire.entries.cell import PolicySet
from rackwright.wire.entries.job import JobGrown, JobRequeued, JobShrunk, SlicePlacement
from rackwright.wire.ids import JobId, Owner, QueueName, RackId
from rackwright.wire.jobs import Group, JobClass, JobSpec
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason, Rung
from tests.support.fleets import Cell, cell, rack_spec
from tests.support.recovery import decided, rungs

A = JobId("a")


def three(**spec: Any) -> Cell:
    """Three racks full of a job of three slices, the second of which has lost a node, and a rack
    of somebody else."""
    made = cell(4, nodes=4)
    made.sit("b", "r3", range(4), job_class=JobClass.INTERACTIVE)
    made.spread("a", [(f"r{rack}", range(4)) for rack in range(3)], slice_nodes=4, **spec)
    made.unfit("r1-n02")
    return made


def service(decode: int = 3, least: int | None = 1, racks: int = 3) -> Cell:
    """A service with a router and replicas of a decoder, four nodes each."""
    made = cell(racks, nodes=5)
    groups = (
        Group(name=JobId("router"), nodes=1),
        Group(name=JobId("decode"), nodes=4, replicas=decode, min_replicas=least),
    )
    spec = JobSpec(name=A, groups=groups, job_class=JobClass.SERVICE, time_limit_s=None)
    made.queue("a", spec)
    found = place(made.fleet, made.job("a"))
    assert found is not None
    made.place("a", found)
    made.start("a")
    return made


def grown(made: Cell) -> JobGrown | None:
    """What it gets back; legal, and it leaves a sound fleet."""
    entry = grow(made.fleet, made.job("a"), made.fleet.time)
    if entry is not None:
        assert illegal(made.fleet, entry) is None
    return entry


def test_slices_of_a_shrunk_job_are_found_by_their_index() -> None:
    made = three(min_slices=2)
    made.add(*decided(made, "a"))
    assert [part.index for part in made.job("a").slices] == [0, 2]
    (found,) = parts_there(made.fleet, nodes_of(made.fleet, {RackId("r2")}, set()))
    assert (found[0].id, found[1].index) == ("a", 2)


def test_an_elastic_job_goes_on_without_the_slice() -> None:
    made = three(min_slices=2)
    before = made.job("a")
    (entry,) = decided(made)
    assert isinstance(entry, JobShrunk)
    assert entry.indexes == (1,)
    assert rungs(entry)[-2:] == [
        (Rung.EVICT, False, "victims.none"),
        (Rung.SHRINK, True, "shrink"),
    ]
    # All 48 GPUs wait 90 s for each other, and 16 are missed for half an hour.
    assert entry.rungs[-1].price_gpu_h == pytest.approx(48 * 90 / 3600 + 16 * 0.5)
    made.add(entry)
    job = made.job("a")
    assert (job.state, job.wounds, job.membership, job.ranks) == (JobState.RUNNING, (), 2, 8)
    assert [part.index for part in job.slices] == [0, 2]
    assert list(job.rank_numbers()) == [0, 1, 2, 3, 8, 9, 10, 11]
    assert [job.worker(rank) for rank in job.rank_numbers()] == [
        before.worker(rank) for rank in job.rank_numbers()
    ]
    assert not job.has_rank(5)
    assert made.fleet.leaving_of[A] == ("a/4/1", "a/5/1", "a/6/1", "a/7/1")
    assert dump(load(dump(made.fleet))) == dump(made.fleet)


def test_not_below_its_least() -> None:
    made = three(min_slices=3)
    (entry,) = decided(made)
    assert isinstance(entry, JobRequeued)
    assert (Rung.SHRINK, False, "slices.min") in rungs(entry)


def test_not_unless_it_says_so() -> None:
    (entry,) = decided(three())
    assert isinstance(entry, JobRequeued)
    assert (Rung.SHRINK, False, "not-elastic") in rungs(entry)


def test_a_free_rack_comes_first() -> None:
    made = cell(4, nodes=4)
    made.spread("a", [(f"r{n}", range(4)) for n in range(3)], slice_nodes=4, min_slices=2)
    made.unfit("r1-n02")
    (entry,) = decided(made)
    assert not isinstance(entry, JobShrunk)


def test_two_slices_lost_and_one_may_be() -> None:
    made = three(min_slices=2)
    made.unfit("r2-n00")
    (entry,) = decided(made)
    assert isinstance(entry, JobRequeued)


def test_it_grows_back_into_its_ranks_when_there_is_room() -> None:
    made = three(min_slices=2)
    made.add(*decided(made))
    assert lacks(made.job("a"))
    assert grown(made) is None  # the others have not joined anew
    made.start("a")
    assert grown(made) is None  # nowhere to go
    made.recover("r1-n02")
    assert grown(made) is None  # it was driven from there a moment ago
    made.finish("b")
    entry = grown(made)
    assert entry is not None
    (part,) = entry.slices
    assert (part.index, part.first_rank, part.rack) == (1, 4, "r3")
    assert entry.reason == Reason(code="grown", numbers={"slices": 1, "has": 3, "asked": 3})
    survivors = [made.job("a").worker(rank) for rank in made.job("a").rank_numbers()]
    made.add(entry)
    job = made.job("a")
    assert (job.shed, job.membership, job.started) == ((), 3, 2)
    assert [job.worker(rank) for rank in (0, 1, 2, 3, 8, 9, 10, 11)] == survivors
    assert job.worker(4) == "a/4/3"
    assert job.slices[1].gates_of(4) == ("a/4/1",)
    assert not lacks(job)


def test_a_shrunk_job_heals_its_other_slices_by_their_index() -> None:
    made = three(min_slices=1)
    made.add(*decided(made))
    made.start("a")
    made.unfit("r2-n00")
    (entry,) = decided(made)
    assert isinstance(entry, JobShrunk)
    assert entry.indexes == (2,)
    made.add(entry)
    made.start("a")
    made.unfit("r0-n00")
    (entry,) = decided(made)
    assert isinstance(entry, JobRequeued)
    made.add(entry)
    assert made.job("a").shed == ()


@pytest.mark.parametrize("gone", [(), (1, 1), (0,), (7,), (0, 1, 2)])
def test_only_wounded_slices_leave_and_never_all(gone: tuple[int, ...]) -> None:
    made = three(min_slices=2)
    entry = JobShrunk(job=A, membership=2, indexes=gone, reason=Reason(code="x"))
    assert (illegal(made.fleet, entry) is None) == (gone == (1, 1))


def test_a_slice_that_comes_back_is_the_one_that_went() -> None:
    made = three(min_slices=2)
    made.add(*decided(made))
    made.start("a")
    made.recover("r1-n02")

    def problem(**changes: Any) -> str | None:
        fields: dict[str, Any] = {
            "index": 1,
            "first_rank": 4,
            "rack": RackId("r1"),
            "nodes": 0b1111,
        } | changes
        part = SlicePlacement(**fields)
        why = Reason(code="x")
        return illegal(made.fleet, JobGrown(job=A, membership=3, slices=(part,), reason=why))

    assert problem() is None
    assert problem(first_rank=5) == "slice 1 of a comes back as another one"
    assert problem(nodes=0b111) == "slice 1 of a comes back as another one"
    assert problem(index=3, first_rank=12) == "slice 3 of a was never there"
    assert problem(rack=RackId("r0")) == "node r0-n00 is taken"


def test_a_service_gets_the_replicas_it_started_without() -> None:
    made = service(racks=2)
    assert [part.group for part in made.job("a").slices] == [0, 1, 1]
    assert grown(made) is None
    before = made.job("a")
    made.define(rack_spec("r9", 5))
    entry = grown(made)
    assert entry is not None
    (part,) = entry.slices
    assert (part.index, part.first_rank, part.group, part.replica) == (3, 9, 1, 2)
    made.add(entry)
    job = made.job("a")
    assert [job.worker(rank) for rank in range(9)] == [before.worker(rank) for rank in range(9)]
    assert not lacks(job)
    assert missing(made.fleet, job) == []


def test_a_replica_without_a_place_waits_alone() -> None:
    made = service()
    part = made.job("a").slices[2]
    rack = made.fleet.racks[part.rack]
    for number in range(2):
        made.unfit(rack.nodes[number].name)
    (entry,) = decided(made)
    assert isinstance(entry, JobShrunk)
    assert (entry.indexes, entry.reason.code) == ((2,), "replica.no-place")
    assert rungs(entry)[-1] == (Rung.REQUEUE, True, "no-place")
    made.add(entry)
    assert made.job("a").state is JobState.RUNNING
    made.start("a")
    assert grown(made) is None
    made.define(rack_spec("r9", 5))
    back = grown(made)
    assert back is not None
    assert [(one.index, one.replica) for one in back.slices] == [(2, 1)]


def test_the_last_replica_of_a_group_takes_the_service_along() -> None:
    made = service(decode=1, racks=1)
    made.unfit("r0-n01")
    made.unfit("r0-n02")
    (entry,) = decided(made)
    assert isinstance(entry, JobRequeued)


def test_batch_gangs_leave_together() -> None:
    made = cell(2, nodes=4)
    groups = (Group(name=JobId("g"), nodes=4, replicas=2),)
    made.queue("a", JobSpec(name=A, groups=groups))
    found = place(made.fleet, made.job("a"))
    assert found is not None
    made.place("a", found)
    made.start("a")
    made.unfit("r0-n00")
    (entry,) = decided(made)
    assert isinstance(entry, JobRequeued)
    one = JobShrunk(job=A, membership=2, indexes=(0,), reason=Reason(code="x"))
    assert illegal(made.fleet, one) == "job a is neither elastic nor a service of replicas"


def test_growth_keeps_within_the_limits_of_its_queue() -> None:
    made = three(min_slices=2)
    made.add(*decided(made))
    made.start("a")
    made.finish("b")
    policy = Policy(queue_gpus={QueueName("default"): 40})
    made.add(PolicySet(policy=policy, by=Owner("op")))
    assert grown(made) is None
    fleet = apply(made.fleet, PolicySet(policy=Policy(), by=Owner("op")))
    assert grow(fleet, fleet.jobs[A], fleet.time) is not None
