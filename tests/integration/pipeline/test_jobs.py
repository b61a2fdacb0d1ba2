"""Jobs from a message on the bus to their end, as real processes."""

from __future__ import annotations

import json
from pathlib import Path

import nats
import pytest

from rackwright.agent.environment import master_port
from rackwright.core.jobs import JobState
from rackwright.wire.entries.cell import WishRefused
from rackwright.wire.entries.job import (
    JobBlocked,
    JobCancelled,
    JobFinishing,
    JobPlaced,
    JobQueued,
    JobRejected,
    JobRequeued,
    JobStarted,
    WorkerFailed,
)
from rackwright.wire.entries.slice import SliceRestarted
from rackwright.wire.ids import JobId, QueueName
from rackwright.wire.jobs import Group
from rackwright.wire.wishes import Cancel
from tests.support.live import Live
from tests.support.world import WORKER, appears

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="package")]


def log_of(live: Live, node: str, worker: str) -> Path:
    """Where the output of an ended worker is kept."""
    name = worker.replace("/", ".")
    return live.stack.options.state_dir / "nodes" / node / "logs" / f"{name}.log"


async def test_one_json_message_of_any_client(live: Live) -> None:
    since = live.now()
    spec = {"name": "hello", "nodes": 8, "run": WORKER, "env": {"LIVE_HOME": str(live.home)}}
    password = live.stack.credentials.password("ann")
    bus = await nats.connect(live.stack.server.url, user="ann", password=password)
    wish = json.dumps({"job": "hello-1", "spec": spec}).encode()
    ack = await bus.jetstream().publish("rackwright.main.wish.ann.submit", wish)
    await bus.close()

    job = await live.running("hello-1")
    assert (job.owner, job.ranks, [part.size for part in job.slices]) == ("ann", 8, [4, 4])
    [queued] = live.entries(JobQueued, since)
    assert (queued.wish, queued.job) == (ack.seq, "hello-1")

    nodes = [node for index in (0, 1) for node in live.nodes_of("hello-1", index)]
    racks = [live.rack_of("hello-1", index) for index in (0, 1)]
    for rank, node in enumerate(nodes):
        part = job.slice_of(rank)
        env = live.env("hello-1", rank, 1)
        ours = {key: value for key, value in env.items() if key.startswith("RACKWRIGHT_")}
        files = live.stack.options.state_dir / "nodes" / node / "workers" / f"hello-1.{rank}.1"
        assert ours == {
            "RACKWRIGHT_CELL": "main",
            "RACKWRIGHT_JOB": "hello-1",
            "RACKWRIGHT_RANK": str(rank),
            "RACKWRIGHT_NODE": node,
            "RACKWRIGHT_RACK": racks[part.index],
            "RACKWRIGHT_SLICE": str(part.index),
            "RACKWRIGHT_SLICE_RANK": str(rank - part.first_rank),
            "RACKWRIGHT_GROUP": "hello",
            "RACKWRIGHT_REPLICA": "0",
            "RACKWRIGHT_MEMBERSHIP": "1",
            "RACKWRIGHT_INCARNATION": "1",
            "RACKWRIGHT_WORKER": f"hello-1/{rank}/1",
            "RACKWRIGHT_GPUS": "0,1,2,3",
            "RACKWRIGHT_CPUS": "144",
            "RACKWRIGHT_MEMORY_GB": "960",
            "RACKWRIGHT_MEMBERSHIP_FILE": str(files / "files/membership.json"),
            "RACKWRIGHT_NOTICE_FILE": str(files / "files/notice.json"),
            "RACKWRIGHT_REPORT_FILE": str(files / "files/report"),
            "RACKWRIGHT_CHECKPOINT_FILE": str(files / "files/checkpoint"),
            "RACKWRIGHT_WORKER_DIR": str(files),
        }
        peers = {key: env[key] for key in env if key.startswith(("MASTER_", "N", "WORLD_"))}
        assert peers == {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(master_port("hello-1")),
            "NODE_RANK": str(rank),
            "NNODES": "8",
            "NPROC_PER_NODE": "4",
            "WORLD_SIZE": "32",
        }
        assert env["SKYPILOT_NUM_NODES"] == "8"
        assert len(env["SKYPILOT_NODE_IPS"].splitlines()) == 8
        assert "CUDA_VISIBLE_DEVICES" not in env

    live.tell("hello-1", "exit 0")
    assert (await live.ended("hello-1")).state is JobState.FINISHED
    for rank, node in enumerate(nodes):
        log = log_of(live, node, f"hello-1/{rank}/1")
        await appears(log.exists)
        assert log.read_text() == f"rank {rank} of hello-1 is here\n"
    assert [live.starts("hello-1", rank) for rank in range(8)] == [[(1, 0)]] * 8


async def test_the_first_good_end_makes_it_finishing_and_the_last_one_ends_it(live: Live) -> None:
    since = live.now()
    await live.start(live.spec("ends", 2))
    live.tell("ends", "exit 0", 1)
    await live.entry(JobFinishing, since)
    live.tell("ends", "exit 0", 0)
    assert (await live.ended("ends")).state is JobState.FINISHED


@pytest.mark.parametrize(
    ("name", "more", "code"),
    [
        ("exits", {"env": {"LIVE_EXIT": "5"}}, "exit.5"),
        ("killed", {"run": "kill -9 $$"}, "exit.-9"),
        ("missing", {"run": "", "command": ("no-such-program",)}, "exit.127"),
        ("setup", {"setup": "exit 9"}, "exit.9"),
    ],
)
async def test_a_bad_end_is_told_with_its_code(
    live: Live, name: str, more: dict[str, object], code: str
) -> None:
    await live.submit(live.spec(f"bad-{name}", 1, **more))
    stone = await live.ended(f"bad-{name}")
    assert stone.state is JobState.FAILED
    assert stone.reason is not None
    assert stone.reason.code == code
    assert len(live.starts(f"bad-{name}", 0)) == (1 if name == "exits" else 0)


async def test_retries_within_the_budget_then_failed(live: Live) -> None:
    since = live.now()
    await live.start(live.spec("tries", 2, retry_budget=2))
    other = live.identities("tries")[live.job("tries").worker(1)]
    for attempt in (1, 2):
        live.tell("tries", "exit 3", 0)
        await live.until(lambda fleet: len(live.entries(SliceRestarted, since)) == attempt, "it")  # noqa: B023
        job = await live.running("tries")
        assert (job.retries, job.worker(0)) == (attempt, f"tries/0/{attempt + 1}")
    assert live.identities("tries")[job.worker(1)] == other
    live.tell("tries", "exit 3", 0)
    stone = await live.ended("tries")
    assert stone.reason is not None
    assert (stone.state, stone.reason.code) == (JobState.FAILED, "exit.3")
    assert [one.reason.code for one in live.entries(WorkerFailed, since)] == ["exit.3"] * 2
    assert [incarnation for incarnation, _ in live.starts("tries", 0)] == [1, 2, 3]


async def test_a_job_that_fails_before_it_is_up_goes_back_to_the_queue(live: Live) -> None:
    since = live.now()
    failing = live.spec("stumbles", 2, retry_budget=1, env={"LIVE_EXIT": "7"})
    await live.submit(failing)
    stone = await live.ended("stumbles")
    assert stone.state is JobState.FAILED
    tries = len(live.entries(JobRequeued, since)) + len(live.entries(SliceRestarted, since))
    assert tries == 1
    assert len(live.starts("stumbles", 0)) <= 2


async def test_a_time_limit_ends_it(live: Live) -> None:
    await live.start(live.spec("long", 2, time_limit_s=1.5))
    stone = await live.ended("long")
    assert stone.reason is not None
    assert (stone.state, stone.reason.code) == (JobState.FAILED, "time-limit")


async def test_cancelled_while_queued(live: Live) -> None:
    since = live.now()
    await live.start(live.spec("fills", 18, slice_nodes=6, restartable=False))
    await live.submit(live.spec("waits", 2))
    blocked = await live.entry(JobBlocked, since, lambda one: one.job == "waits")
    assert blocked.reason.code == "capacity"
    answer = await live.wish(Cancel(job=JobId("waits")))
    assert isinstance(answer.entry, JobCancelled)
    assert (await live.ended("waits")).state is JobState.CANCELLED
    assert live.starts("waits", 0) == []


async def test_cancelled_while_placed(live: Live) -> None:
    """A prolog holds its start."""
    since = live.now()
    gate = live.home / "open"
    with live.hook("prolog", f'while [ ! -e "{gate}" ]; do sleep 0.05; done'):
        await live.submit(live.spec("starts", 2))
        await live.entry(JobPlaced, since)
        await live.board.until(lambda board: board.worker("starts/1/1") is not None)
        assert live.job("starts").state is JobState.PLACED
        await live.wish(Cancel(job=JobId("starts")))
        assert (await live.ended("starts")).state is JobState.CANCELLED
        await live.board.until(lambda board: board.worker("starts/1/1") is None)
        gate.touch()
    assert live.starts("starts", 0) == []
    assert live.entries(JobStarted, since) == []


async def test_cancelled_while_running(live: Live) -> None:
    await live.start(live.spec("runs", 3))
    await live.wish(Cancel(job=JobId("runs")))
    assert (await live.ended("runs")).state is JobState.CANCELLED
    await live.board.until(lambda board: not board.pids("runs"))


async def test_cancelled_while_finishing(live: Live) -> None:
    since = live.now()
    await live.start(live.spec("nearly", 2))
    live.tell("nearly", "exit 0", 0)
    await live.entry(JobFinishing, since)
    await live.wish(Cancel(job=JobId("nearly")))
    assert (await live.ended("nearly")).state is JobState.CANCELLED
    await live.board.until(lambda board: not board.pids("nearly"))


async def test_a_cancel_that_comes_before_its_submit(live: Live) -> None:
    await live.wish(Cancel(job=JobId("early")))
    answer = await live.submit(live.spec("early", 1))
    assert isinstance(answer.entry, WishRefused)
    assert answer.entry.reason.code == "cancelled-before"
    assert live.fleet.tombstones[JobId("early")].state is JobState.CANCELLED
    assert live.starts("early", 0) == []


async def test_jobs_that_share_a_node_have_gpus_of_their_own(live: Live) -> None:
    sizes = {"g1": 1, "g2": 2, "g3": 1}
    for name, gpus in sizes.items():
        await live.start(live.spec(name, None, gpus=gpus))
    assert len({live.nodes_of(name)[0] for name in sizes}) == 1
    seen = {name: live.env(name, 0, 1)["CUDA_VISIBLE_DEVICES"].split(",") for name in sizes}
    assert {name: len(gpus) for name, gpus in seen.items()} == sizes
    assert sorted(gpu for gpus in seen.values() for gpu in gpus) == ["0", "1", "2", "3"]
    assert live.env("g2", 0, 1)["NPROC_PER_NODE"] == "2"
    shares = [live.env(name, 0, 1)["RACKWRIGHT_CPUS"] for name in sizes]
    assert shares == ["36", "72", "36"]
    live.tell("g2", "exit 0")
    await live.ended("g2")
    await live.start(live.spec("g4", None, gpus=2))
    assert live.env("g4", 0, 1)["CUDA_VISIBLE_DEVICES"].split(",") == seen["g2"]


async def test_work_without_gpus_sees_none_and_has_what_it_asked_for(live: Live) -> None:
    await live.start(live.spec("large", 4))
    asked = live.spec("tokens", None, gpus=0, cpus=40.0, memory_gb=100.0, queue=QueueName("cpu"))
    job = await live.start(asked)
    assert [(part.rack, part.gpus.bit_count(), part.lent) for part in job.slices] == [
        (live.job("large").slices[0].rack, 2, True)
    ]
    env = live.env("tokens", 0, 1)
    shown = ("CUDA_VISIBLE_DEVICES", "RACKWRIGHT_GPUS", "RACKWRIGHT_CPUS", "RACKWRIGHT_MEMORY_GB")
    assert [env[name] for name in shown] == ["", "", "40", "100"]
    refused = await live.submit(live.spec("no-gpus", None, gpus=0))
    assert isinstance(refused.entry, JobRejected)
    assert refused.entry.reason.numbers["field"] == "gpus"


async def test_groups_start_together_and_know_who_they_are(live: Live) -> None:
    groups = (Group(name="lead", nodes=1), Group(name="work", nodes=2, replicas=2))  # type: ignore[arg-type]
    job = await live.start(live.spec("grouped", None, groups=groups))
    told = [
        (live.env("grouped", rank, 1)["RACKWRIGHT_GROUP"], live.env("grouped", rank, 1)["NNODES"])
        for rank in range(job.ranks)
    ]
    assert told == [("lead", "5")] + [("work", "5")] * 4
    replicas = [live.env("grouped", rank, 1)["RACKWRIGHT_REPLICA"] for rank in range(job.ranks)]
    assert replicas == ["0", "0", "0", "1", "1"]
