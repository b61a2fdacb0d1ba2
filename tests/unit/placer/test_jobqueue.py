"""The queue by shape: order, back-off, and what is left alone until something helps."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.core.evolve import evolve
from rackwright.core.jobs import Job, JobState
from rackwright.placer.jobqueue import JobQueue, order_of
from rackwright.wire.ids import JobId, Owner, QueueName
from rackwright.wire.jobs import JobSpec


def job(
    name: str, at: float = 0.0, *, not_before: float = 0.0, owner: str = "ann", **spec: Any
) -> Job:
    return Job(
        id=JobId(name),
        owner=Owner(owner),
        spec=JobSpec(name=JobId(name), **({"nodes": 1} | spec)),
        spec_hash="h",
        state=JobState.QUEUED,
        seq=1,
        submitted_at=at,
        state_at=at,
        not_before=not_before,
    )


def names(queue: JobQueue, **whose: Any) -> list[str]:
    candidates = queue.candidates(**whose)
    found: list[str] = []
    while candidates:
        found.append(candidates.next()[0])
    return found


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(1, 3)),
        max_size=40,
    ),
    st.data(),
)
def test_candidates_come_in_order_whatever_their_shape(
    jobs: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    queue = JobQueue()
    made = [
        job(f"j{turn}", float(at), priority=priority, nodes=nodes)
        for turn, (priority, at, nodes) in enumerate(jobs)
    ]
    for one in data.draw(st.permutations(made)):
        queue.put(one, 0.0)
    gone = made[::3]
    for one in gone:
        queue.drop(one.id)
    wanted = [one.id for one in sorted(made, key=order_of) if one not in gone]
    assert names(queue) == wanted


def test_a_shape_in_vain_is_left_out_until_something_helps() -> None:
    queue = JobQueue()
    queue.put(job("a", nodes=4), 0.0)
    queue.put(job("b", nodes=2), 0.0)
    candidates = queue.candidates()
    _, shape = candidates.next()
    candidates.leave_out(shape)
    assert names(queue) == ["b"]
    queue.put(job("c", nodes=4), 0.0)
    assert names(queue) == ["b"]
    queue.helped()
    assert names(queue) == ["a", "b", "c"]


def test_back_off() -> None:
    queue = JobQueue()
    queue.put(job("a", not_before=10.0), 0.0)
    assert names(queue) == []
    assert list(queue.due(9.0)) == []
    assert list(queue.due(10.0)) == ["a"]
    assert list(queue.due(10.0)) == []


def test_only_blameless_work_is_the_head_of_its_band() -> None:
    first, later = job("a", 1.0), job("b", 2.0)
    sent_back = evolve(later, requeues=1)
    blamed = evolve(later, requeues=1, retries=1)
    assert order_of(sent_back) < order_of(first) < order_of(blamed)


def test_between_equals_the_owner_who_has_used_least_is_first() -> None:
    queue = JobQueue()
    for turn, owner in enumerate(("ann", "ann", "bob", "cyd")):
        queue.put(job(f"j{turn}", float(turn), owner=owner, nodes=1 + turn % 2), 0.0)
    used = {Owner("ann"): 10.0, Owner("bob"): 5.0}
    assert names(queue, standings=used) == ["j3", "j2", "j0", "j1"]
    assert names(queue) == ["j0", "j1", "j2", "j3"]


def test_owners_are_rivals_where_several_have_jobs_that_may_fit() -> None:
    queue = JobQueue()
    assert not queue.rivals()
    queue.put(job("a", owner="ann", nodes=1), 0.0)
    queue.put(job("b", owner="ann", nodes=2), 0.0)
    assert not queue.rivals()
    queue.put(job("c", owner="bob", nodes=3), 0.0)
    assert queue.rivals()
    queue.in_vain(queue.where[JobId("c")][0])
    assert not queue.rivals()


def test_priority_and_sent_back_work_are_before_fairness() -> None:
    queue = JobQueue()
    queue.put(job("fair", 0.0, owner="bob"), 0.0)
    queue.put(job("high", 1.0, priority=60), 0.0)
    queue.put(evolve(job("back", 2.0), requeues=1), 0.0)
    assert names(queue, standings={Owner("ann"): 99.0}) == ["high", "back", "fair"]


def test_the_starved_job_of_a_priority_is_before_fairness() -> None:
    queue = JobQueue()
    queue.put(job("old", 5.0, nodes=4), 0.0)
    queue.put(job("older", 3.0, nodes=8), 0.0)
    queue.put(job("poor", 50.0, owner="bob"), 0.0)
    queue.put(job("low", 1.0, priority=10), 0.0)
    queue.put(evolve(job("back", 4.0, nodes=8), requeues=1), 0.0)
    assert queue.starved(3.0) == {10: "low"}
    starved = queue.starved(10.0)
    assert starved == {50: "older", 10: "low"}
    used = {Owner("ann"): 9.0}
    order = names(queue, standings=used, starved=starved.values())
    assert order == ["back", "older", "poor", "old", "low"]


def test_a_queue_that_has_less_than_it_is_promised_is_first_of_its_priority() -> None:
    queue = JobQueue()
    ours = QueueName("ours")
    for one in (
        job("other", 1.0),
        job("ours-1", 2.0, queue=ours),
        job("ours-2", 3.0, queue=ours),
        job("high", 4.0, priority=60),
        job("starved", 5.0, owner="bob"),
    ):
        queue.put(one, 0.0)
    starved = [JobId("starved")]
    assert names(queue, starved=starved) == ["high", "starved", "other", "ours-1", "ours-2"]
    found = names(queue, starved=starved, promised=[ours])
    assert found == ["high", "starved", "ours-1", "ours-2", "other"]
    candidates = queue.candidates(promised=[ours], starved=starved)
    assert [candidates.next()[0] for _ in range(3)] == ["high", "starved", "ours-1"]
    candidates.has_its_share(QueueName("nobody"))
    candidates.has_its_share(ours)
    assert [candidates.next()[0] for _ in range(2)] == ["other", "ours-2"]
