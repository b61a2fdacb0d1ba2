"""Where this agent may make cgroups (version 2) for its workers, if anywhere."""

import os
from pathlib import Path


def _mount() -> Path | None:
    """Where the version 2 hierarchy is mounted."""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup2 "):
            return Path(before.split()[4])
    return None


def writable_root() -> Path | None:
    """A directory below which worker cgroups can be made and killed; None if there is none."""
    mount = _mount()
    if mount is None:
        return None
    own = [
        line.removeprefix("0::/")
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
        if line.startswith("0::/")
    ]
    root = mount / own[0] if own else mount
    trial = root / f"rackwright-trial-{os.getpid()}"
    try:
        trial.mkdir()
    except OSError:  # read-only, as in most containers, or not ours
        return None
    try:
        return root if (trial / "cgroup.kill").exists() else None
    finally:
        trial.rmdir()
