"""Output of workers that have ended: kept for people until newer output needs the room."""

import os
from contextlib import suppress
from pathlib import Path

from rackwright.agent.records import MEBIBYTE, WorkerFiles

KEPT_BYTES = 1024 * MEBIBYTE  # a node
KEPT_FILES = 512


def keep(files: WorkerFiles, directory: Path) -> None:
    """Move a worker's output to `directory`, named after the worker; the oldest there make room."""
    directory.mkdir(exist_ok=True)
    for path in (files.log.with_name(files.log.name + ".1"), files.log):
        name = path.name.replace("output.", f"{files.directory.name}.")
        with suppress(FileNotFoundError):  # it wrote little, or never ran
            os.replace(path, directory / name)
    make_room(directory)


def make_room(directory: Path) -> None:
    """Remove the oldest files until what is left is within the limits."""
    room, count = KEPT_BYTES, KEPT_FILES
    known = [(entry.stat(), Path(entry)) for entry in os.scandir(directory)]
    for stat, path in sorted(known, key=lambda one: (-one[0].st_mtime_ns, one[1].name)):
        room, count = room - stat.st_size, count - 1
        if room < 0 or count < 0:
            path.unlink()
