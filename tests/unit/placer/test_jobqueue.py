"""The queue by shape: order, back-off, and what is left alone until something helps."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.core.evolve import evolve
from rackwright.core.jobs import Job, JobState
from rackwright.placer.jobqueue import JobQueue, order_of
from rackwright.wire.ids import JobId, Owner
from rackwright.wire.jobs import JobSpec


def job(name: str, at: float = 0.0, *, not_before: float = 0.0, **spec: Any) -> Job:
    return Job(
        id=JobId(name),
        owner=Owner("ann"),
        spec=JobSpec(name=JobId(name), **({"nodes": 1} | spec)),
        spec_hash="h",
        state=JobState.QUEUED,
        seq=1,
        submitted_at=at,
        state_at=at,
        not_before=not_before,
    )


def names(queue: JobQueue) -> list[str]:
    candidates = queue.candidates()
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
