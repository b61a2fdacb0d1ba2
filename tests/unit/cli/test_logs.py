"""What workers have printed, read where their nodes are on this machine."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rackwright.cli.__main__ import rackwright
from rackwright.cli.logs import MOST_BYTES, last_lines


def logs(state: Path, *words: str) -> Result:
    """The command on a state directory without a cell."""
    runner = CliRunner(env={"RACKWRIGHT_STATE_DIR": str(state), "RACKWRIGHT_NATS": None})
    return runner.invoke(rackwright, ["logs", *words])


def living(state: Path, node: str, worker: str, text: str) -> None:
    path = state / "nodes" / node / "workers" / worker / "output.log"
    path.parent.mkdir(parents=True)
    path.write_text(text)


def ended(state: Path, node: str, worker: str, text: str) -> None:
    path = state / "nodes" / node / "logs" / f"{worker}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Rank 0 of `a` lives on n2 and had a worker on n1; rank 1 has ended; `a-b` is another job."""
    ended(tmp_path, "n1", "a.0.1", "old\n")
    living(tmp_path, "n2", "a.0.2", "one\ntwo\nthree\n")
    ended(tmp_path, "n1", "a.1.1", "bye")
    ended(tmp_path, "n1", "a-b.0.1", "not this\n")
    ended(tmp_path, "n1", "a.0.1.log", "older half\n")
    return tmp_path


def test_the_newest_worker_of_each_rank(state: Path) -> None:
    result = logs(state, "a")
    assert (result.exit_code, result.output) == (
        0,
        "==> rank 0, incarnation 2, n2 <==\none\ntwo\nthree\n"
        "==> rank 1, incarnation 1, n1 <==\nbye\n",
    )


def test_of_one_rank_only_what_it_printed(state: Path) -> None:
    assert logs(state, "a", "0", "--lines", "2").output == "two\nthree\n"
    assert logs(state, "a", "0", "--all").output == (
        "==> rank 0, incarnation 1, n1 <==\nold\n"
        "==> rank 0, incarnation 2, n2 <==\none\ntwo\nthree\n"
    )
    told = json.loads(logs(state, "a", "1", "--json").output)
    assert (told["rank"], told["incarnation"], told["node"], told["text"]) == (1, 1, "n1", "bye")
    assert told["path"] == str(state / "nodes" / "n1" / "logs" / "a.1.1.log")


@pytest.mark.parametrize("words", [("none",), ("a", "7")])
def test_what_is_not_here_is_asked_of_the_cell(state: Path, words: tuple[str, ...]) -> None:
    result = logs(state, *words)
    assert (result.exit_code, "rackwright up" in result.output) == (3, True)


def test_of_a_long_file_only_the_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * MOST_BYTES + b"\nlast\xff\n")
    assert last_lines(path, 1) == "last\ufffd\n"
    assert len(last_lines(path, 10)) == MOST_BYTES
