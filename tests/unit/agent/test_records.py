"""Specs, records and names on disk."""

from pathlib import Path

import pytest

from rackwright.agent.records import (
    WorkerFiles,
    WorkerRecord,
    WorkerSpec,
    WorkerState,
    directory_name,
    full_command,
    unheard,
)


def test_a_record_reads_what_it_writes() -> None:
    record = WorkerRecord(
        worker_id="j/0/1",
        state=WorkerState.EXITED,
        cause="gpus busy",
        supervisor=12,
        supervisor_started=34,
        pid=56,
        started=78,
        boot_id="b",
        code=-9,
        reaped=False,
        gpus=(0, 3),
        at=1.5,
    )
    assert WorkerRecord.parse(record.line()) == record


@pytest.mark.parametrize(
    ("state", "code", "told"),
    [
        (WorkerState.EXITED, -9, None),
        (WorkerState.EXITED, -15, None),
        (WorkerState.EXITED, 143, None),
        (WorkerState.EXITED, -11, -11),
        (WorkerState.EXITED, 1, 1),
        (WorkerState.EXITED, 0, 0),
        (WorkerState.STOPPED, -15, -15),
    ],
)
def test_what_a_new_agent_makes_of_an_end(state: WorkerState, code: int, told: int | None) -> None:
    record = WorkerRecord(worker_id="j/0/1", state=state, code=code)
    assert unheard(record).code == told
    assert unheard(record).state is state


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"state": "flying", "gpus": []}'])
def test_what_is_no_record(data: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        WorkerRecord.parse(data)


@pytest.mark.parametrize(
    "worker_id",
    [
        "",
        "j",
        "j/0",
        "j/0/1/2",
        "../0/1",
        "j.k/0/1",
        "j/x/1",
        "j/0/1\n",
        "*/0/1",
        64 * "a" + "/0/1",
    ],
)
def test_what_is_no_worker_id(worker_id: str) -> None:
    with pytest.raises(ValueError, match="not a worker id"):
        directory_name(worker_id)
    with pytest.raises(ValueError, match="not a worker id"):
        WorkerSpec(worker_id=worker_id, run="true")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"command": ("true",), "run": "true"},
        {"run": "a\0b"},
        {"command": ("a\0",)},
        {"run": "true", "env": {"A": "\0"}},
        {"run": "true", "env": {"A=B": "1"}},
        {"run": "true", "env": {"": "1"}},
    ],
)
def test_what_is_no_spec(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        WorkerSpec(worker_id="j/0/1", **fields)  # type: ignore[arg-type]


def test_commands() -> None:
    assert full_command(WorkerSpec(worker_id="j/0/1", command=("a", "b c"))) == ("a", "b c")
    shell, *rest = full_command(WorkerSpec(worker_id="j/0/1", run="a\nb"))
    assert (shell in {"/bin/bash", "/bin/sh"}, rest) == (True, ["-c", "a\nb"])
    *_, setup, first, second = full_command(
        WorkerSpec(worker_id="j/0/1", command=("a", "b"), setup="s")
    )
    assert (setup, first, second) == ("s", "a", "b")


def test_files_lie_apart_by_worker() -> None:
    files = WorkerFiles(directory=Path("/n") / directory_name("j-1/0/12"))
    assert str(files.membership) == "/n/j-1.0.12/files/membership.json"
    assert str(files.log) == "/n/j-1.0.12/output.log"
