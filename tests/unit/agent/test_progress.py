"""What a worker may write, and what is believed of it."""

import os
from pathlib import Path

import pytest

from rackwright.agent.progress import TAIL_BYTES, Progress, read_progress
from rackwright.agent.records import WorkerFiles

NOW = 2_000_000_000.0


@pytest.fixture
def files(tmp_path: Path) -> WorkerFiles:
    """Files of a worker that has told nothing yet."""
    files = WorkerFiles(directory=tmp_path)
    files.shared.mkdir()
    return files


def told(files: WorkerFiles, report: str | bytes) -> tuple[bool | None, int | None, float | None]:
    """Ready, step and checkpoint by a report."""
    data = report.encode() if isinstance(report, str) else report
    files.report.write_bytes(data)
    progress = read_progress(files, now=NOW)
    return progress.ready, progress.step, progress.checkpoint_at


def test_nothing_told(files: WorkerFiles) -> None:
    assert read_progress(files, now=NOW) == Progress()


def test_lines_add_up_and_the_last_counts(files: WorkerFiles) -> None:
    lines = '{"ready": true}\n{"step": 1, "checkpoint_at": 100.5}\n{"step": 2}\n{"step": 3'
    assert told(files, lines) == (True, 2, 100.5)


@pytest.mark.parametrize(
    "report",
    [
        "hello",
        "[1]",
        "null",
        b"\xff\xfe\x00",
        '{"ready": "yes", "step": "12", "checkpoint_at": "now"}',
        '{"ready": 1, "step": true, "checkpoint_at": false}',
        '{"step": 1.5, "checkpoint_at": NaN}',
        '{"checkpoint_at": -5}',
        f'{{"step": {10**400}, "checkpoint_at": -{10**400}}}',
        "[" * 100_000,
    ],
)
def test_nonsense_is_nothing(files: WorkerFiles, report: str | bytes) -> None:
    assert told(files, report) == (None, None, None)


def test_nothing_lies_in_the_future(files: WorkerFiles) -> None:
    assert told(files, '{"checkpoint_at": 9e9}') == (None, None, NOW)
    assert told(files, '{"checkpoint_at": Infinity}') == (None, None, NOW)
    assert told(files, f'{{"checkpoint_at": {10**400}}}') == (None, None, NOW)


def test_a_touched_file_is_a_checkpoint(files: WorkerFiles) -> None:
    files.checkpoint.touch()
    os.utime(files.checkpoint, (0, 1_500.0))
    assert told(files, '{"checkpoint_at": 1400}') == (None, None, 1_500.0)
    assert told(files, '{"checkpoint_at": 1600}') == (None, None, 1_600.0)


def test_head_and_tail_of_a_long_report(files: WorkerFiles) -> None:
    middle = "x" * 100 + "\n"
    report = '{"ready": true}\n' + middle * (3 * TAIL_BYTES // 101) + '{"step": 9}\n'
    assert told(files, report) == (True, 9, None)


def test_only_ordinary_files_are_read(files: WorkerFiles, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text('{"step": 1}\n')
    files.report.symlink_to(secret)
    os.mkfifo(files.checkpoint)
    assert read_progress(files, now=NOW) == Progress()
