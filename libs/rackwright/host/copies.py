"""Which copy a process is, where nobody says so: copies that share a directory lock their numbers.

For containers that are scaled by a number alone. The kernel keeps the lock for as long as the
process lives, paused or not, and gives it back however the process ends.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from rackwright.host.errors import BadSetting


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A copy's number, held by an open file that nobody may close before the process ends."""

    copy: int
    descriptor: int


def claim_copy(directory: Path, service: str, highest: int) -> Claim:
    """Take the lowest number that no living copy has. Raises BadSetting."""
    for copy in range(highest + 1):
        try:
            directory.mkdir(parents=True, exist_ok=True)
            path = directory / f"{service}-{copy}"
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise BadSetting("copies-dir", f"{directory}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        return Claim(copy=copy, descriptor=descriptor)
    raise BadSetting("copies-dir", f"{directory}: all copies 0 to {highest} of {service} are taken")
