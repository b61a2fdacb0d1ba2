"""One worker under its supervisor: how it runs, how it ends, and that nothing of it is left."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from rackwright.agent import lease
from rackwright.agent.records import OnLostLease, WorkerSpec
from tests.integration.agent.helpers import PATIENCE_S, PYTHON, Node, gone, lives, written

MakeNode = Callable[..., Node]
SAVES_ON_TERM = "trap 'echo saved > saved; exit 0' TERM; echo up > up; while :; do sleep 0.05; done"
DETACHES = f"""
{PYTHON} -c '
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("detached.new", "w").write(f"{{os.getpid()}} {{os.getsid(0)}}\\n")
        os.rename("detached.new", "detached")
        time.sleep(600)
'
"""


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", -15), ("kill -SEGV $$", -11)],
)
async def test_exit_is_told_with_its_code(node: Node, script: str, code: int) -> None:
    await node.run("j/0/1", script)
    record = await node.end("j/0/1")
    assert (record.state, record.code, record.cause) == ("exited", code, "")
    assert node.states("j/0/1") == ["prepared", "running", "exited"]


async def test_command_that_is_not_there(node: Node) -> None:
    node.store.prepare(WorkerSpec(worker_id="j/0/1", command=("no-such-program",)))
    node.store.go("j/0/1")
    assert (await node.end("j/0/1")).code == 127
    assert "no-such-program" in node.store.files("j/0/1").log.read_text()


async def test_arguments_environment_and_directory_arrive_unchanged(
    node: Node, tmp_path: Path
) -> None:
    show = "import os,sys; print(sys.argv[1:], os.environ['A'], os.getcwd(), os.getpgid(0))"
    spec = WorkerSpec(
        worker_id="j/0/1",
        command=(PYTHON, "-c", show, "", "a b", "$HOME\n"),
        env={"A": "x=y\nzä", "PYTHONHASHSEED": "0"},
        cwd=str(tmp_path),
    )
    node.store.prepare(spec)
    node.store.go("j/0/1")
    record = await node.end("j/0/1")
    told = node.store.files("j/0/1").log.read_text()
    assert told == f"['', 'a b', '$HOME\\n'] x=y\nzä {tmp_path} {record.pid}\n"


async def test_setup_runs_first_and_its_failure_is_the_end(node: Node) -> None:
    await node.run("j/0/1", "echo main", setup="echo setup")
    await node.run("j/1/1", "echo main", setup="echo setup; exit 7")
    assert (await node.end("j/0/1")).code == 0
    assert (await node.end("j/1/1")).code == 7
    assert node.store.files("j/0/1").log.read_text() == "setup\nmain\n"
    assert node.store.files("j/1/1").log.read_text() == "setup\n"


async def test_limits_are_written_where_the_cgroup_has_them(tmp_path: Path) -> None:
    """Files stand for the kernel's: those that a controller would have made are there before."""
    root = tmp_path / "cgroups"
    limited = Node(tmp_path / "limited", cgroups=root)
    limited.feed(PATIENCE_S)
    made = limited.store._cgroup("j/0/1")
    assert made is not None
    made.mkdir(parents=True)
    (made / "cpu.max").touch()
    await limited.run("j/0/1", "true", cpus=2.5, memory_gb=1.5)
    await limited.end("j/0/1")
    assert (made / "cpu.max").read_text() == "250000 100000"
    assert not (made / "memory.max").exists(), "that controller is off"
    limited.store.close()


async def test_held_until_told_to_go(node: Node, tmp_path: Path) -> None:
    node.store.prepare(WorkerSpec(worker_id="j/0/1", run="echo ran > ran", cwd=str(tmp_path)))
    record = await node.reach("j/0/1", "prepared")
    await node.until(lambda: node.states("j/0/1") == ["prepared"])
    assert (record.pid, (tmp_path / "ran").exists()) == (0, False)
    node.store.stop("j/0/1", 30)
    record = await node.end("j/0/1")
    assert (record.state, record.pid, record.code) == ("stopped", 0, None)
    assert not (tmp_path / "ran").exists()


async def test_grace_is_used_to_save(node: Node, tmp_path: Path) -> None:
    await node.run("j/0/1", SAVES_ON_TERM, cwd=str(tmp_path))
    await written(tmp_path / "up")
    node.store.stop("j/0/1", 60)
    record = await node.end("j/0/1")
    assert (record.state, record.code) == ("stopped", 0)
    assert (tmp_path / "saved").exists()


async def test_grace_is_not_cut_by_a_shell_that_dies_first(node: Node, tmp_path: Path) -> None:
    child = "(" + SAVES_ON_TERM.replace("echo saved", "sleep 0.2; echo saved") + ")"
    await node.run("j/0/1", child + "; true", cwd=str(tmp_path))
    await written(tmp_path / "up")
    node.store.stop("j/0/1", 60)
    assert (await node.end("j/0/1")).code == -15
    assert (tmp_path / "saved").exists()


async def test_grace_ends(node: Node, tmp_path: Path) -> None:
    deaf = "trap '' TERM; echo up > up; while :; do sleep 0.05; done"
    await node.run("j/0/1", deaf, cwd=str(tmp_path))
    await written(tmp_path / "up")
    node.store.stop("j/0/1", 0.1)
    record = await node.end("j/0/1")
    assert (record.state, record.code) == ("stopped", -9)


async def test_a_second_stop_shortens_the_grace(node: Node, tmp_path: Path) -> None:
    deaf = "trap '' TERM; echo up > up; while :; do sleep 0.05; done"
    await node.run("j/0/1", deaf, cwd=str(tmp_path))
    await written(tmp_path / "up")
    node.store.stop("j/0/1", 600)
    node.store.stop("j/0/1", 0)
    assert (await node.end("j/0/1")).code == -9


async def test_no_grace_for_a_worker_of_a_faulty_node(node: Node, tmp_path: Path) -> None:
    await node.run("j/0/1", SAVES_ON_TERM, cwd=str(tmp_path))
    await written(tmp_path / "up")
    node.store.stop("j/0/1", 0)
    assert (await node.end("j/0/1")).code == -9
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize("ending", ["exit 0", "sleep 600"])
async def test_detached_descendants_are_gone_before_the_end_is_told(
    node: Node, tmp_path: Path, ending: str
) -> None:
    wait = "\nwhile [ ! -e detached ]; do sleep 0.01; done\n"
    await node.run("j/0/1", DETACHES + wait + ending, cwd=str(tmp_path))
    detached, session = map(int, (await written(tmp_path / "detached")).split())
    assert session not in {0, node.store.records["j/0/1"].pid}
    if ending != "exit 0":
        node.store.stop("j/0/1", 0)
    await node.until(lambda: node.store.records["j/0/1"].ended)
    assert not lives(detached)


async def test_lease_end_kills_everything(make_node: MakeNode, tmp_path: Path) -> None:
    node = make_node()
    until = node.feed(1)
    record = await node.run("j/0/1", DETACHES + "sleep 600", cwd=str(tmp_path))
    detached = int((await written(tmp_path / "detached")).split()[0])
    assert lives(record.pid)
    record = await node.end("j/0/1")
    assert lease.now_ns() >= until
    assert (record.state, record.code, record.cause) == ("fenced", -9, "lease ended")
    assert [pid for pid in (record.pid, detached) if lives(pid)] == []


async def test_a_lease_that_is_fed_keeps_the_worker(make_node: MakeNode) -> None:
    node = make_node()
    first = node.feed(1)
    await node.run("j/0/1", "sleep 1.1; exit 5")
    until = node.feed(60)
    assert until > first
    record = await node.end("j/0/1")
    assert lease.now_ns() > first
    assert (record.state, record.code) == ("exited", 5)


async def test_a_job_may_run_on_without_a_lease(make_node: MakeNode) -> None:
    node = make_node()
    until = node.feed(1)
    await node.run("j/0/1", "sleep 1.1; exit 5", on_lost_lease=OnLostLease.RUN)
    record = await node.end("j/0/1")
    assert lease.now_ns() > until
    assert (record.state, record.code) == ("exited", 5)


async def test_a_held_worker_is_fenced_whatever_its_job_says(make_node: MakeNode) -> None:
    node = make_node()
    node.feed(0.5)
    spec = WorkerSpec(worker_id="j/0/1", run="true", on_lost_lease=OnLostLease.RUN)
    node.store.prepare(spec)
    record = await node.end("j/0/1")
    assert (record.state, record.pid) == ("fenced", 0)


async def test_output_is_bounded_and_keeps_the_end(node: Node) -> None:
    flood = f"{PYTHON} -c \"import os\nfor i in range(200): os.write(1, b'x' * 65535 + b'\\n')\""
    await node.run("j/0/1", flood + "; echo the end", log_bytes=1_000_000)
    assert (await node.end("j/0/1")).code == 0
    log = node.store.files("j/0/1").log
    older = log.with_name("output.log.1")
    assert log.stat().st_size + older.stat().st_size <= 1_000_000
    assert (older.read_bytes() + log.read_bytes()).endswith(b"the end\n")


async def test_a_log_that_cannot_be_written_does_not_hold_the_worker(node: Node) -> None:
    flood = f"{PYTHON} -c \"import os\nfor i in range(200): os.write(1, b'x' * 65536)\""
    spec = WorkerSpec(worker_id="j/0/1", run=flood + "; exit 4", log_bytes=1_000_000)
    node.store.prepare(spec)
    await node.until(lambda: node.states("j/0/1") == ["prepared"])
    # A directory in the way of rotation: every write of the log fails from then on.
    older = node.store.files("j/0/1").log.with_name("output.log.1")
    older.mkdir()
    (older / "x").touch()
    node.store.go("j/0/1")
    assert (await node.end("j/0/1")).code == 4


async def test_signals_reach_the_leader(node: Node, tmp_path: Path) -> None:
    script = "trap 'echo told > told' USR1; echo up > up; while :; do sleep 0.02; done"
    await node.run("j/0/1", script, cwd=str(tmp_path))
    await written(tmp_path / "up")
    node.store.signal("j/0/1", signal.SIGUSR1)
    assert await written(tmp_path / "told") == "told"
    assert node.store.records["j/0/1"].state == "running"


async def test_a_supervisor_asked_to_end_gives_its_grace(node: Node, tmp_path: Path) -> None:
    record = await node.run("j/0/1", SAVES_ON_TERM, cwd=str(tmp_path), grace_s=60)
    await written(tmp_path / "up")
    os.kill(record.supervisor, signal.SIGTERM)
    assert (await node.end("j/0/1")).state == "stopped"
    assert (tmp_path / "saved").exists()
    await gone(record.supervisor)
