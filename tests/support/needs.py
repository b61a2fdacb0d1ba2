"""What some tests need of the machine, how to tell that it is not there, and how to get it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support import engine, prometheus

TESTS = Path(__file__).parent.parent
INTEGRATION = TESTS / "integration"
PROGRAMS = ("ip", "mount", "umount", "losetup", "mkfs.ext4", "fsfreeze", "blockdev")
NET_ADMIN, SYS_ADMIN = 12, 21  # capabilities(7), numbers as in linux/capability.h


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Tests at `paths` need `what`. `missing` says why it is not there, empty if it is.

    Where `require` is set in the environment they fail without it; elsewhere they are left out.
    """

    what: str
    paths: tuple[Path, ...]
    require: str
    missing: Callable[[], str]
    how: str

    def concerns(self, path: Path) -> bool:
        """Is this one of those tests?"""
        return any(path == one or one in path.parents for one in self.paths)


def administrator_missing() -> str:
    """Why no disks and networks can be made here; empty if they can."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(r"^CapEff:\s+([0-9a-f]+)$", status, re.MULTILINE)
    has = int(found[1], 16) if found else 0
    if os.geteuid() != 0 or not (has >> NET_ADMIN & 1 and has >> SYS_ADMIN & 1):
        return f"user {os.geteuid()} may not make disks and networks here"
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"there is no {', no '.join(lacking)}" if lacking else ""


NEEDS = (
    Need(
        what="containers",
        paths=(TESTS / "e2e",),
        require=engine.REQUIRE_ENV,
        missing=engine.engine_missing,
        how="Start a Docker engine with compose, then: make test-containers\n"
        "Without a registry make a base image first: sudo deploy/airgap/make-base",
    ),
    Need(
        what="a Prometheus",
        paths=(INTEGRATION / "gateway" / "test_prometheus.py",),
        require=prometheus.REQUIRE_ENV,
        missing=prometheus.prometheus_missing,
        how=f"Get one: {prometheus.HOW_TO_GET_IT}",
    ),
    Need(
        what="disks and networks of their own",
        paths=(
            INTEGRATION / "crash" / "test_disks.py",
            INTEGRATION / "crash" / "test_power.py",
            INTEGRATION / "cluster" / "test_partitions.py",
        ),
        require="RACKWRIGHT_REQUIRE_ROOT",
        missing=administrator_missing,
        how="Run them as root; programs: apt-get install -y iproute2 e2fsprogs mount util-linux",
    ),
)
