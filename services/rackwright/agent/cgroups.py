"""Where this agent may make cgroups (version 2) for its workers, if anywhere, and limit them there.

A cgroup that holds processes cannot give its children limits (cgroups(7), no internal processes).
So workers are limited where the agent itself sits in a subgroup of what was delegated to it, as
systemd's `DelegateSubgroup=agent` has it; then they are made beside it.
"""

import os
from pathlib import Path

SUBGROUP = "agent"
CONTROLLERS = ("cpu", "memory")


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
    return root_for(mount / own[0] if own else mount)


def root_for(own: Path) -> Path | None:
    """That directory for an agent in the cgroup `own`: beside it if that is a subgroup."""
    roots = (own.parent, own) if own.name == SUBGROUP else (own,)
    return next((root for root in roots if _takes(root)), None)


def _takes(root: Path) -> bool:
    trial = root / f"rackwright-trial-{os.getpid()}"
    try:
        trial.mkdir()
    except OSError:  # read-only, as in most containers, or not ours
        return False
    try:
        return (trial / "cgroup.kill").exists()
    finally:
        trial.rmdir()


def turn_on_limits(root: Path) -> bool:
    """Let cgroups below limit cores and memory; False where the kernel or its owner does not."""
    control = root / "cgroup.subtree_control"
    try:
        if not _on(control):
            control.write_text(" ".join(f"+{one}" for one in CONTROLLERS), encoding="ascii")
        return _on(control)
    except OSError:  # processes sit in it, or the controllers were not delegated
        return False


def _on(control: Path) -> bool:
    return set(CONTROLLERS) <= set(control.read_text(encoding="ascii").split())
