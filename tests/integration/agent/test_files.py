"""What worker and agent tell each other by files, as it happens."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rackwright.agent.inotify import Change, Inotify
from rackwright.agent.membership import (
    Member,
    Membership,
    Notice,
    withdraw_notice,
    write_membership,
    write_notice,
)
from rackwright.agent.progress import Progress, ProgressReader
from rackwright.agent.records import WorkerFiles
from tests.integration.agent.helpers import PATIENCE_S, Node, written


class Told:
    """Collects what was told of workers."""

    def __init__(self) -> None:
        self.last: dict[str, Progress] = {}
        self.times = 0
        self._news = asyncio.Event()

    def __call__(self, worker_id: str, progress: Progress) -> None:
        self.last[worker_id] = progress
        self.times += 1
        self._news.set()

    async def until(self, worker_id: str, *, step: int) -> Progress:
        """Wait for a step."""
        async with asyncio.timeout(PATIENCE_S):
            while self.last.get(worker_id, Progress()).step != step:
                self._news.clear()
                await self._news.wait()
        return self.last[worker_id]


@pytest.fixture
async def inotify() -> AsyncIterator[Inotify]:
    inotify = Inotify()
    yield inotify
    inotify.close()


async def test_a_worker_reports(node: Node, inotify: Inotify) -> None:
    told = Told()
    reader = ProgressReader(inotify, told)
    files = node.store.files("j/0/1")
    script = f"""
        echo '{{"ready": true, "step": 1}}' >> {files.report}
        while [ ! -e {files.notice} ]; do sleep 0.02; done
        touch {files.checkpoint}
        echo '{{"step": 2}}' > {files.report}.new
        mv {files.report}.new {files.report}
        sleep 600
    """
    await node.run("j/0/1", script)
    reader.follow("j/0/1", files)
    reader.follow("j/0/1", files)
    first = await told.until("j/0/1", step=1)
    assert (first.ready, first.checkpoint_at) == (True, None)
    write_notice(files.notice, Notice(reason="defragmentation", at=1.0, until=121.0))
    second = await told.until("j/0/1", step=2)
    assert second.checkpoint_at is not None
    reader.release("j/0/1")
    reader.release("j/0/1")


async def test_a_busy_reporter_is_read_now_and_then(tmp_path: Path, inotify: Inotify) -> None:
    told, files = Told(), WorkerFiles(directory=tmp_path)
    files.shared.mkdir()
    reader = ProgressReader(inotify, told)
    reader.follow("j/0/1", files)
    for step in range(2_000):
        files.report.write_text(f'{{"step": {step}}}\n')
        if step % 100 == 0:
            await asyncio.sleep(0)
    await told.until("j/0/1", step=1_999)
    assert told.times < 200
    reader.release("j/0/1")


async def test_the_last_word_is_heard_at_the_end(tmp_path: Path, inotify: Inotify) -> None:
    told, files = Told(), WorkerFiles(directory=tmp_path)
    files.shared.mkdir()
    reader = ProgressReader(inotify, told)
    reader.follow("j/0/1", files)
    files.report.write_text('{"step": 1}\n')
    await told.until("j/0/1", step=1)
    files.report.write_text('{"step": 2}\n')
    reader.release("j/0/1")
    assert told.last["j/0/1"].step == 2


async def test_membership_is_seen_whole(node: Node, tmp_path: Path) -> None:
    files = node.store.files("j/0/1")
    script = f"""
        trap 'cp {files.membership} seen.new; mv seen.new seen' USR1
        echo up > up
        while :; do sleep 0.02; done
    """
    await node.run("j/0/1", script, cwd=str(tmp_path))
    await written(tmp_path / "up")
    member = Member(
        rank=1, node="n4", rack="r7", slice=0, worker="j/1/2", incarnation=2, address="10.0.0.4"
    )
    change = Membership(
        job="j",
        membership=2,
        members=(member,),
        gone=("j/1/1",),
        master_addr="10.0.0.4",
        master_port=23456,
    )
    write_membership(files.membership, change)
    node.store.signal("j/0/1", 10)
    assert json.loads(await written(tmp_path / "seen")) == {
        "job": "j",
        "membership": 2,
        "members": [
            {
                "rank": 1,
                "node": "n4",
                "rack": "r7",
                "slice": 0,
                "worker": "j/1/2",
                "incarnation": 2,
                "address": "10.0.0.4",
            }
        ],
        "gone": ["j/1/1"],
        "master_addr": "10.0.0.4",
        "master_port": 23456,
    }
    assert [path.name for path in files.shared.iterdir()] == ["membership.json"]


def test_a_notice_can_be_withdrawn(tmp_path: Path) -> None:
    path = tmp_path / "notice.json"
    withdraw_notice(path)
    write_notice(path, Notice(reason="defragmentation", at=1.0, until=121.0))
    assert json.loads(path.read_text()) == {"reason": "defragmentation", "at": 1.0, "until": 121.0}
    withdraw_notice(path)
    assert not path.exists()


async def test_two_watches_of_one_path(tmp_path: Path, inotify: Inotify) -> None:
    heard: list[str] = []
    done = asyncio.Event()
    first = inotify.watch(tmp_path, Change.CREATE, lambda _, name: heard.append(f"1 {name}"))
    inotify.watch(tmp_path, Change.MOVED_TO, lambda _, name: heard.append(f"2 {name}"))
    (tmp_path / "a").touch()
    (tmp_path / "a").rename(tmp_path / "b")
    inotify.watch(tmp_path, Change.CLOSE_WRITE, lambda *_: done.set())
    (tmp_path / "c").write_text("x")
    async with asyncio.timeout(PATIENCE_S):
        await done.wait()
    assert {"1 a", "2 b"} <= set(heard)
    inotify.unwatch(first)
    heard.clear()
    done.clear()
    (tmp_path / "d").write_text("x")
    async with asyncio.timeout(PATIENCE_S):
        await done.wait()
    assert [each for each in heard if each.startswith("1")] == []
