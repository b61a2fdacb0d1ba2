"""The probe of the disk."""

from __future__ import annotations

from pathlib import Path

from rackwright.bus.disk import fsync_p50_ms


def test_the_probe_leaves_nothing_behind(tmp_path: Path) -> None:
    directory = tmp_path / "new"
    assert fsync_p50_ms(directory, writes=5) > 0
    assert list(directory.iterdir()) == []
