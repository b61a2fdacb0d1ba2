"""What a worker finds in its environment."""

from pathlib import Path

import pytest

from rackwright.agent.environment import FIRST_PORT, PORTS, Place, build, master_port
from rackwright.agent.membership import Member
from rackwright.agent.records import WorkerFiles

FILES = WorkerFiles(directory=Path("/state/workers/j.1.4"))


def member(rank: int) -> Member:
    """One rank on a node of its own."""
    return Member(
        rank=rank,
        node=f"n{rank}",
        rack="r7",
        slice=rank // 2,
        worker=f"j/{rank}/4",
        incarnation=4,
        address=f"10.0.{rank // 250}.{rank % 250}",
    )


def place(ranks: int = 3, *, gpus: tuple[int, ...] = (0, 1, 2, 3), whole: bool = True) -> Place:
    """Rank 1 of some."""
    return Place(
        cell="c",
        job="j",
        rank=1,
        node="n1",
        rack="r7",
        slice=0,
        slice_rank=1,
        group="workers",
        replica=2,
        membership=5,
        incarnation=4,
        gpus=gpus,
        cpus=36.0,
        memory_gb=240.5,
        whole_node=whole,
        members=tuple(member(rank) for rank in reversed(range(ranks))),
        master_port=23456,
    )


def test_everything_a_rank_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.setenv("NATS_PASSWORD", "secret")
    assert build(place(), FILES, {"EPOCHS": "3"}, inherited=("PATH", "ABSENT")) == {
        "PATH": "/bin",
        "EPOCHS": "3",
        "RACKWRIGHT_CELL": "c",
        "RACKWRIGHT_JOB": "j",
        "RACKWRIGHT_RANK": "1",
        "RACKWRIGHT_NODE": "n1",
        "RACKWRIGHT_RACK": "r7",
        "RACKWRIGHT_SLICE": "0",
        "RACKWRIGHT_SLICE_RANK": "1",
        "RACKWRIGHT_GROUP": "workers",
        "RACKWRIGHT_REPLICA": "2",
        "RACKWRIGHT_MEMBERSHIP": "5",
        "RACKWRIGHT_INCARNATION": "4",
        "RACKWRIGHT_WORKER": "j/1/4",
        "RACKWRIGHT_GPUS": "0,1,2,3",
        "RACKWRIGHT_CPUS": "36",
        "RACKWRIGHT_MEMORY_GB": "240.5",
        "RACKWRIGHT_MEMBERSHIP_FILE": "/state/workers/j.1.4/files/membership.json",
        "RACKWRIGHT_NOTICE_FILE": "/state/workers/j.1.4/files/notice.json",
        "RACKWRIGHT_REPORT_FILE": "/state/workers/j.1.4/files/report",
        "RACKWRIGHT_CHECKPOINT_FILE": "/state/workers/j.1.4/files/checkpoint",
        "MASTER_ADDR": "10.0.0.0",
        "MASTER_PORT": "23456",
        "NODE_RANK": "1",
        "NNODES": "3",
        "NPROC_PER_NODE": "4",
        "WORLD_SIZE": "12",
        "SKYPILOT_NODE_RANK": "1",
        "SKYPILOT_NUM_NODES": "3",
        "SKYPILOT_NUM_GPUS_PER_NODE": "4",
        "SKYPILOT_NODE_IPS": "10.0.0.0\n10.0.0.1\n10.0.0.2",
    }


def test_the_user_overrides_the_customary_but_not_ours() -> None:
    user = {"MASTER_PORT": "1", "RACKWRIGHT_RANK": "0", "RACKWRIGHT_OTHER": "x"}
    env = build(place(), FILES, user)
    assert (env["MASTER_PORT"], env["RACKWRIGHT_RANK"]) == ("1", "1")
    assert "RACKWRIGHT_OTHER" not in env


@pytest.mark.parametrize(
    ("gpus", "whole", "visible"), [((1, 3), False, "1,3"), ((), False, ""), ((0, 1), True, "all")]
)
def test_visible_gpus(gpus: tuple[int, ...], whole: bool, visible: str) -> None:
    env = build(place(gpus=gpus, whole=whole), FILES, {"CUDA_VISIBLE_DEVICES": "all"})
    assert env["CUDA_VISIBLE_DEVICES"] == visible


def test_a_list_too_long_for_an_environment_is_left_to_the_file() -> None:
    env = build(place(10_000), FILES, {})
    assert "SKYPILOT_NODE_IPS" not in env
    assert env["NNODES"] == "10000"


def test_the_port_is_the_jobs_own_and_below_the_ephemeral_range() -> None:
    ports = {master_port(f"job-{n}") for n in range(1_000)}
    assert len(ports) > 900
    assert all(FIRST_PORT <= port < FIRST_PORT + PORTS for port in ports)
    assert master_port("j") == master_port("j")
