"""What is concluded from /proc, on one laid out by the test."""

import os
from pathlib import Path

import pytest

from rackwright.agent import processes


def lay_out(proc: Path, pid: int, parent: int, *, state: str = "S", pending: str = "0") -> None:
    """A process as the kernel shows it, with a name made to confuse."""
    folder = proc / str(pid)
    (folder / "task" / str(pid)).mkdir(parents=True)
    after = [state, str(parent), *["0"] * 17, str(1_000 + pid)]
    (folder / "stat").write_text(f"{pid} (a) b (c) {' '.join(after)} 0 0\n")
    (folder / "status").write_text(
        f"Name:\ta) b: (c\nState:\t{state} (x)\nSigPnd:\t{pending}\nShdPnd:\t{'0' * 16}\n"
    )


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """1 - 10 - 20, 21 - 30, and a stranger 11."""
    for pid, parent in ((1, 0), (10, 1), (11, 1), (20, 10), (21, 10), (30, 21)):
        lay_out(tmp_path, pid, parent)
    return tmp_path


def test_descendants_by_the_parent_each_names(proc: Path) -> None:
    assert sorted(processes.descendants(10, str(proc))) == [20, 21, 30]
    assert processes.descendants(30, str(proc)) == []


def test_descendants_by_the_kernels_list(proc: Path) -> None:
    listed = {1: "10 11", 10: "20 21 ", 11: "", 20: "", 21: "30 ", 30: ""}
    for pid, children in listed.items():
        (proc / str(pid) / "task" / str(pid) / "children").write_text(children)
    assert sorted(processes.descendants(10, str(proc))) == [20, 21, 30]
    assert processes.descendants(99, str(proc)) == []


def test_identity_is_pid_and_start(proc: Path) -> None:
    assert processes.is_same(20, 1_020, str(proc))
    assert not processes.is_same(20, 1_021, str(proc))
    assert not processes.is_same(99, 1_099, str(proc))
    assert not processes.is_same(0, 0, str(proc))


def test_a_zombie_no_longer_lives(proc: Path) -> None:
    lay_out(proc, 40, 1, state="Z")
    assert processes.start_time(40, str(proc)) == 0


@pytest.mark.parametrize(
    ("state", "pending", "doomed"),
    [
        ("S", "0000000000000000", False),
        ("D", "0000000000000000", False),
        ("D", "0000000000000100", True),
        ("D", "0000000000004000", False),  # SIGTERM
        ("R", "0000000000004100", True),
        ("Z", "0000000000000000", True),
    ],
)
def test_doomed_is_dead_or_to_die_by_sigkill(
    proc: Path, state: str, pending: str, doomed: bool
) -> None:
    lay_out(proc, 50, 1, state=state, pending=pending)
    assert processes.is_doomed(50, str(proc)) is doomed


def test_who_is_gone_is_doomed(proc: Path) -> None:
    assert processes.is_doomed(99, str(proc))


def test_on_the_real_proc() -> None:
    assert processes.start_time(os.getpid()) > 0
    assert os.getpid() in processes.descendants(os.getppid())
