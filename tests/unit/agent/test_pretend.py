"""Workers that only pretend: what they save, and what they say of it."""

import asyncio

import pytest

from rackwright.agent.lease import now_ns
from rackwright.agent.pretend import Checkpoints, Pretence, PretendedWorkers
from rackwright.agent.progress import Progress
from rackwright.agent.records import WorkerRecord, WorkerSpec, WorkerState
from rackwright.agent.refusals import HasEnded, NoLease

LONG = 3600.0
MINUTE_NS = 60_000_000_000


class Node:
    """Pretended workers of one plan, and what they told."""

    def __init__(self, plan: Pretence, checkpoints: Checkpoints | None = None) -> None:
        self.checkpoints = checkpoints or Checkpoints()
        self.told: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.workers = PretendedWorkers(
            self._changed, lambda worker: plan, self.checkpoints, self._progress
        )

    def _changed(self, record: WorkerRecord) -> None:
        self.told.put_nowait((record.worker_id, record.state.value))

    def _progress(self, worker: str, progress: Progress) -> None:
        assert progress.checkpoint_at is not None
        self.told.put_nowait((worker, "saved"))

    def start(self, worker: str) -> None:
        self.workers.feed(now_ns() + MINUTE_NS)
        self.workers.prepare(WorkerSpec(worker_id=worker, command=("true",)))
        self.workers.go(worker)

    async def hear(self, count: int) -> list[tuple[str, str]]:
        async with asyncio.timeout(10):
            return [await self.told.get() for _ in range(count)]


async def test_it_runs_for_its_time_and_is_spent() -> None:
    node = Node(Pretence(run_s=0.01, interval_s=None))
    node.start("j/0/1")
    assert await node.hear(2) == [("j/0/1", "running"), ("j/0/1", "exited")]
    with pytest.raises(HasEnded):
        node.workers.prepare(WorkerSpec(worker_id="j/0/1", command=("true",)))


async def test_rank_zero_saves_now_and_then_and_says_so() -> None:
    node = Node(Pretence(run_s=LONG, interval_s=0.05))
    node.start("j/1/1")
    node.start("j/0/1")
    expected = [("j/1/1", "running"), ("j/0/1", "running"), ("j/0/1", "saved"), ("j/0/1", "saved")]
    assert await node.hear(4) == expected
    assert node.checkpoints.saved["j"] >= 0.1
    node.workers.close()


async def test_what_was_saved_is_not_done_again() -> None:
    node = Node(Pretence(run_s=LONG, interval_s=None), Checkpoints(saved={"j": LONG}))
    node.start("j/0/2")
    assert await node.hear(2) == [("j/0/2", "running"), ("j/0/2", "exited")]


@pytest.mark.parametrize(("on_notice", "kept"), [(True, ["j"]), (False, [])])
async def test_only_who_saves_on_notice_does(on_notice: bool, kept: list[str]) -> None:
    node = Node(Pretence(run_s=LONG, interval_s=None, on_notice=on_notice))
    node.start("j/0/1")
    node.workers.save("j/0/1")
    node.workers.stop("j/0/1", 0.0)
    assert list(node.checkpoints.saved) == kept


async def test_without_a_lease_nothing_starts_and_what_runs_is_fenced() -> None:
    node = Node(Pretence(run_s=LONG, interval_s=None))
    with pytest.raises(NoLease):
        node.workers.prepare(WorkerSpec(worker_id="j/0/1", command=("true",)))
    node.workers.feed(now_ns() + 20_000_000)
    node.workers.prepare(WorkerSpec(worker_id="j/0/1", command=("true",)))
    node.workers.go("j/0/1")
    told = await node.hear(2)
    assert told == [("j/0/1", "running"), ("j/0/1", WorkerState.FENCED.value)]
