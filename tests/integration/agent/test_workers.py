"""The agent's side: restarts, adoption, what is final, who may use a GPU."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rackwright.agent import lease, processes
from rackwright.agent.launch import Launcher, launch
from rackwright.agent.records import WorkerRecord, WorkerSpec, WorkerState
from rackwright.agent.refusals import (
    DiskRefuses,
    GpusBusy,
    HasEnded,
    NodeTaken,
    NoLease,
    UnknownWorker,
)
from tests.integration.agent.helpers import PATIENCE_S, Node, collect, gone, lives, written
from tests.support.full_disk import disk_takes_nothing

MakeNode = Callable[..., Node]
ROOT = Path(__file__).parents[3]


async def run_and_kill_agent(directory: Path, seconds: float, script: str) -> list[int]:
    """A real agent, killed when its worker runs; returns worker, supervisor, lease."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.integration.agent.fake_agent",
        str(directory),
        str(seconds),
        script,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        said = [int(word) for word in (await process.stdout.readline()).split()]
    process.kill()
    await process.wait()
    return said


async def test_agent_killed_its_worker_lives_until_the_lease_ends(tmp_path: Path) -> None:
    worker, supervisor, until = await run_and_kill_agent(tmp_path / "node", 2, "sleep 600")
    assert lives(worker)
    await gone(worker)
    assert lease.now_ns() >= until
    await gone(supervisor)
    state = (tmp_path / "node/workers/j.0.1/state").read_bytes()
    assert WorkerRecord.parse(state).state == "fenced"


async def test_agent_killed_and_started_again_has_the_same_worker(
    tmp_path: Path, make_node: MakeNode
) -> None:
    worker, _, _ = await run_and_kill_agent(tmp_path / "node", 600, "sleep 600")
    node = make_node()
    assert [(r.worker_id, r.pid, r.state) for r in node.alive] == [("j/0/1", worker, "running")]
    assert node.store.lease_ns > lease.now_ns()
    assert lives(worker)
    node.store.stop("j/0/1", 0)
    assert (await node.end("j/0/1")).code == -9
    assert not lives(worker)


async def test_adopted_worker_tells_its_own_exit(make_node: MakeNode, tmp_path: Path) -> None:
    node = make_node()
    node.feed(60)
    script = "while [ ! -e leave ]; do sleep 0.01; done; exit 6"
    first = await node.run("j/0/1", script, cwd=str(tmp_path))
    again = make_node()
    assert again.alive == (first,)
    (tmp_path / "leave").touch()
    record = await again.end("j/0/1")
    assert (record.pid, record.code) == (first.pid, 6)


async def test_what_ended_while_no_agent_ran_is_found(make_node: MakeNode) -> None:
    node = make_node()
    node.feed(60)
    record = await node.run("j/0/1", "exit 9")
    node.store.close()
    await gone(record.supervisor)
    again = make_node(closing=False)
    assert again.alive == ()
    assert again.store.records["j/0/1"].code == 9


async def test_ended_is_final(make_node: MakeNode, tmp_path: Path) -> None:
    spec = WorkerSpec(worker_id="j/0/1", run="echo ran >> ran", cwd=str(tmp_path))
    node = make_node()
    node.feed(60)
    node.store.prepare(spec)
    node.store.go("j/0/1")
    await node.end("j/0/1")
    with pytest.raises(HasEnded):
        node.store.go("j/0/1")
    again = make_node()
    with pytest.raises(HasEnded):
        again.store.prepare(spec)
    again.store.forget("j/0/1")
    with pytest.raises(HasEnded):
        again.store.prepare(spec)
    third = make_node()
    with pytest.raises(HasEnded):
        third.store.prepare(spec)
    assert (tmp_path / "ran").read_text() == "ran\n"
    assert list((tmp_path / "node/workers").iterdir()) == []


async def test_a_disk_that_takes_nothing_ends_no_agent(make_node: MakeNode) -> None:
    """What runs goes on, what cannot be done is refused, and done when there is room."""
    node = make_node()
    until = node.feed(60)
    ended = await node.run("j/0/1", "exit 0")
    await node.end("j/0/1")
    await gone(ended.supervisor)
    spec = WorkerSpec(worker_id="k/0/1", run="exit 0", env={"PATH": os.environ["PATH"]})
    with disk_takes_nothing(), capture_logs() as said:
        node.feed(600)
        assert node.store.lease_ns == until
        with pytest.raises(DiskRefuses) as refused:
            node.store.prepare(spec)
        assert str(refused.value).startswith("worker k/0/1: ")
        with pytest.raises(DiskRefuses):
            node.store.forget("j/0/1")
        with pytest.raises(DiskRefuses):
            node.store.spend("l/0/1")
        assert set(node.store.records) == {"j/0/1"}
    assert {one["event"] for one in said} == {"disk.refuses"}
    node.feed(600)
    assert node.store.lease_ns > until
    node.store.forget("j/0/1")
    assert (await node.run("k/0/1", "exit 0")).worker_id == "k/0/1"
    await node.end("k/0/1")


async def test_nothing_starts_without_a_lease(make_node: MakeNode) -> None:
    node = make_node()
    spec = WorkerSpec(worker_id="j/0/1", run="true")
    with pytest.raises(NoLease):
        node.store.prepare(spec)
    node.feed(0.5)
    node.store.prepare(spec)
    await node.end("j/0/1")
    node.store._records["j/0/1"] = replace(node.store.records["j/0/1"], state=WorkerState.PREPARED)
    with pytest.raises(NoLease):
        node.store.go("j/0/1")
    node.store._records["j/0/1"] = replace(node.store.records["j/0/1"], state=WorkerState.FENCED)


async def test_orders_repeated_change_nothing(node: Node) -> None:
    spec = WorkerSpec(worker_id="j/0/1", run="sleep 600")
    first = node.store.prepare(spec)
    assert node.store.prepare(spec) == first
    node.store.go("j/0/1")
    node.store.go("j/0/1")
    running = await node.reach("j/0/1", "running")
    node.store.go("j/0/1")
    node.store.stop("j/0/1", 0)
    node.store.stop("j/0/1", 0)
    ended = await node.end("j/0/1")
    node.store.stop("j/0/1", 0)
    assert (running.supervisor, ended.pid) == (first.supervisor, running.pid)
    with pytest.raises(UnknownWorker):
        node.store.stop("j/0/2", 0)


@pytest.mark.parametrize("with_server", [False, True])
async def test_however_it_was_started_a_supervisor_outlives_the_agent(
    make_node: MakeNode, launcher: Launcher, with_server: bool
) -> None:
    node = make_node(with_server=with_server)
    node.feed(60)
    first = await node.run("j/0/1", "sleep 600")
    launcher.close()
    again = make_node(with_server=with_server)
    assert again.alive == (first,)
    await again.run("j/1/1", "exit 3")
    assert (await again.end("j/1/1")).code == 3
    assert lives(first.pid)


async def test_a_fork_server_that_was_killed_is_done_without(
    make_node: MakeNode, launcher: Launcher
) -> None:
    node = make_node()
    node.feed(60)
    await node.run("j/0/1", "sleep 600")
    os.kill(launcher._pid, signal.SIGKILL)
    for rank in (1, 2):
        await node.run(f"j/{rank}/1", "exit 3")
        assert (await node.end(f"j/{rank}/1")).code == 3
    assert node.store.records["j/0/1"].state == "running"


async def test_one_supervisor_per_worker(node: Node) -> None:
    first = await node.run("j/0/1", "sleep 600")
    second = launch(node.store.files("j/0/1"))
    await gone(second)
    collect(second)
    assert node.store.records["j/0/1"] == first
    assert lives(first.pid)


async def test_one_agent_per_node(node: Node, tmp_path: Path) -> None:
    with pytest.raises(NodeTaken):
        Node(tmp_path / "node")


async def test_a_reused_pid_is_not_the_supervisor(make_node: MakeNode) -> None:
    node = make_node()
    node.feed(60)
    record = await node.run("j/0/1", "exit 0")
    node.store.close()
    await gone(record.supervisor)
    other = await asyncio.create_subprocess_exec("sleep", "600")
    pretended = replace(
        record, state=WorkerState.RUNNING, supervisor=other.pid, pid=other.pid, reaped=False
    )
    node.store.files("j/0/1").state.write_text(pretended.line())
    again = make_node(closing=False)
    assert again.alive == ()
    record = await again.end("j/0/1")
    assert (record.state, record.cause) == ("exited", "supervisor lost")
    assert lives(other.pid)
    other.kill()
    await other.wait()


async def test_a_reboot_ends_what_ran(make_node: MakeNode) -> None:
    node = make_node()
    node.feed(60)
    record = await node.run("j/0/1", "exit 0")
    await node.end("j/0/1")
    before = replace(record, state=WorkerState.RUNNING, reaped=False, boot_id="of-yesterday")
    node.store.files("j/0/1").state.write_text(before.line())
    again = make_node()
    record = again.store.records["j/0/1"]
    assert (again.alive, record.state, record.cause, record.reaped) == (
        (),
        "exited",
        "reboot",
        True,
    )


@pytest.mark.parametrize("in_cgroups", [False, True])
async def test_supervisor_killed_nothing_of_its_worker_is_left(
    make_node: MakeNode, tmp_path: Path, in_cgroups: bool
) -> None:
    node = make_node(in_cgroups=in_cgroups)
    node.feed(60)
    script = "setsid sleep 600 & echo $! > child; sleep 600 & wait"
    record = await node.run("j/0/1", script, cwd=str(tmp_path))
    child = int(await written(tmp_path / "child"))
    os.kill(record.supervisor, signal.SIGKILL)
    await gone(record.pid)
    ended = await node.end("j/0/1")
    node.store.forget("j/0/1")
    assert (ended.state, ended.cause, ended.code) == ("exited", "supervisor lost", None)
    assert [pid for pid in (record.pid, child) if lives(pid)] == []


async def test_what_a_supervisor_said_last_is_in_the_agents_log(make_node: MakeNode) -> None:
    node = make_node()
    node.feed(60)
    record = await node.run("j/0/1", "sleep 600")
    words = "Traceback (most recent call last):\nOSError: [Errno 22] Invalid argument\n"
    (node.store.files("j/0/1").directory / "supervisor.log").write_text(words)
    with capture_logs() as logs:
        os.kill(record.supervisor, signal.SIGKILL)
        await node.end("j/0/1")
    lost = [line for line in logs if line["event"] == "supervisor.lost"]
    assert [(one["worker"], one["said"]) for one in lost] == [
        ("j/0/1", "OSError: [Errno 22] Invalid argument")
    ]


async def test_supervisor_killed_while_no_agent_ran(make_node: MakeNode, tmp_path: Path) -> None:
    node = make_node()
    node.feed(60)
    record = await node.run("j/0/1", "sleep 600 & echo $! > child; wait", cwd=str(tmp_path))
    child = int(await written(tmp_path / "child"))
    node.store.close()
    os.kill(record.supervisor, signal.SIGKILL)
    await gone(record.pid)
    again = make_node(closing=False)
    assert again.alive == ()
    await again.end("j/0/1")
    assert not lives(child)


async def test_gpus_are_not_shared_and_come_free_with_the_last_process(node: Node) -> None:
    await node.run("j/0/1", "sleep 600", gpus=(0, 1))
    await node.run("k/0/1", "sleep 600", gpus=(2, 3))
    node.store.prepare(WorkerSpec(worker_id="l/0/1", run="exit 0", gpus=(1, 2)))
    with pytest.raises(GpusBusy) as refused:
        node.store.go("l/0/1")
    assert (refused.value.holder, refused.value.gpus) == ("j/0/1", frozenset({1}))
    node.store.stop("j/0/1", 0)
    await node.end("j/0/1")
    with pytest.raises(GpusBusy):
        node.store.go("l/0/1")
    node.store.stop("k/0/1", 0)
    await node.end("k/0/1")
    node.store.go("l/0/1")
    assert (await node.end("l/0/1")).code == 0


async def test_a_supervisor_too_refuses_gpus_in_use(node: Node) -> None:
    holder = await node.run("j/0/1", "sleep 600", gpus=(0,))
    node.store._records["j/0/1"] = replace(holder, gpus=())  # as if the agent had lost count
    await node.run("k/0/1", "exit 0", gpus=(0,))
    record = await node.end("k/0/1")
    assert (record.state, record.cause, record.pid) == ("exited", "gpus busy", 0)


async def test_unreaped_gpus_stay_out(node: Node) -> None:
    await node.run("j/0/1", "exit 0", gpus=(0,))
    ended = await node.end("j/0/1")
    node.store._records["j/0/1"] = replace(ended, reaped=False)
    node.store.prepare(WorkerSpec(worker_id="k/0/1", run="exit 0", gpus=(0,)))
    with pytest.raises(GpusBusy):
        node.store.go("k/0/1")
    node.store._records["j/0/1"] = ended
    node.store.go("k/0/1")
    assert (await node.end("k/0/1")).code == 0


async def test_the_lease_never_becomes_shorter(node: Node) -> None:
    until = node.store.lease_ns
    node.feed(1)
    assert node.store.lease_ns == until
    assert lease.read(str(node.store.root / "lease")) == until


async def test_a_burst_of_starts(node: Node) -> None:
    ids = [f"j/{rank}/1" for rank in range(16)]
    began = lease.now_ns()
    for worker_id in ids:
        node.store.prepare(WorkerSpec(worker_id=worker_id, run="exit 3"))
    prepared = lease.now_ns()
    for worker_id in ids:
        node.store.go(worker_id)
    codes = [(await node.end(worker_id)).code for worker_id in ids]
    ended = lease.now_ns()
    print(
        f"16 prepared in {(prepared - began) / 1e6:.1f} ms, run in {(ended - began) / 1e6:.1f} ms"
    )
    assert codes == [3] * 16


async def test_supervisors_are_not_in_the_agents_session(node: Node) -> None:
    record = await node.run("j/0/1", "sleep 600")
    sessions = {os.getsid(pid) for pid in (os.getpid(), record.supervisor, record.pid)}
    assert len(sessions) == 3
    assert processes.is_same(record.pid, record.started)
    assert processes.is_same(record.supervisor, record.supervisor_started)
