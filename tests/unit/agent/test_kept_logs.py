"""What stays of a worker's output when the worker is forgotten."""

import os
from pathlib import Path

import pytest

from rackwright.agent import kept_logs
from rackwright.agent.records import WorkerFiles


def ended(root: Path, worker: str, *texts: str, at: int = 0) -> WorkerFiles:
    """The files of a worker: its newest output, and the older half if there is one."""
    files = WorkerFiles(directory=root / "workers" / worker)
    files.directory.mkdir(parents=True)
    for name, text in zip(("output.log", "output.log.1"), texts, strict=False):
        path = files.directory / name
        path.write_text(text)
        os.utime(path, (at, at))
    return files


def kept(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted((root / "logs").iterdir())}


def test_both_halves_are_kept_under_the_workers_name(tmp_path: Path) -> None:
    kept_logs.keep(ended(tmp_path, "j.0.1", "new", "old"), tmp_path / "logs")
    kept_logs.keep(ended(tmp_path, "j.0.2", "one"), tmp_path / "logs")
    kept_logs.keep(ended(tmp_path, "j.0.3"), tmp_path / "logs")
    assert kept(tmp_path) == {"j.0.1.log": "new", "j.0.1.log.1": "old", "j.0.2.log": "one"}


def test_the_oldest_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_logs, "KEPT_BYTES", 8)
    for at, worker in enumerate(("a.0.1", "b.0.1", "c.0.1")):
        kept_logs.keep(ended(tmp_path, worker, "four", at=at), tmp_path / "logs")
    assert sorted(kept(tmp_path)) == ["b.0.1.log", "c.0.1.log"]


def test_of_small_ones_no_more_than_so_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_logs, "KEPT_FILES", 1)
    for at, worker in enumerate(("a.0.1", "b.0.1")):
        kept_logs.keep(ended(tmp_path, worker, "", at=at), tmp_path / "logs")
    assert sorted(kept(tmp_path)) == ["b.0.1.log"]
