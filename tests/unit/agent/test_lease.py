"""The lease of a node on disk: the newest counts, and its room is there before the first one."""

from pathlib import Path

import pytest

from rackwright.agent import lease
from tests.support.full_disk import disk_takes_nothing


def test_the_newest_counts(tmp_path: Path) -> None:
    path = str(tmp_path / "lease")
    assert lease.read(path) == 0
    for until in (5, 7, 12):
        lease.write(path, until)
        assert lease.read(path) == until


def test_the_first_has_room_for_the_second(tmp_path: Path) -> None:
    """A disk may become full between the two."""
    path = tmp_path / "lease"
    lease.write(str(path), 5)
    room = {one.name: one.stat().st_size for one in tmp_path.iterdir()}
    assert room == {"lease": path.stat().st_size, "lease.new": path.stat().st_size}


def test_a_first_one_without_room_does_not_count(tmp_path: Path) -> None:
    path = str(tmp_path / "lease")
    with disk_takes_nothing(), pytest.raises(OSError, match="File too large"):
        lease.write(path, 5)
    assert lease.read(path) == 0
    lease.write(path, 6)
    assert lease.read(path) == 6
