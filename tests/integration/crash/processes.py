"""What the kernel says of workers: which rank of which job each process belongs to."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path


def alive(root: Path) -> dict[tuple[str, str], set[str]]:
    """By job and rank: the incarnations that have a living process below `root`."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    mark = os.fsencode(root)
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            raw = (entry / "environ").read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        if mark not in raw or b"RACKWRIGHT_RANK=" not in raw or _is_dying(entry):
            continue
        env = dict(part.split(b"=", 1) for part in raw.split(b"\0") if b"=" in part)
        key = env[b"RACKWRIGHT_JOB"].decode(), env[b"RACKWRIGHT_RANK"].decode()
        found[key].add(env[b"RACKWRIGHT_INCARNATION"].decode())
    return found


def _is_dying(entry: Path) -> bool:
    """A process with SIGKILL pending never returns to user mode: it has ended."""
    try:
        status = (entry / "status").read_text()
    except OSError:
        return True
    pending = 0
    for line in status.splitlines():
        if line.startswith("State:") and line.split()[1] in "ZX":
            return True
        if line.startswith(("SigPnd:", "ShdPnd:")):
            pending |= int(line.split()[1], 16)
    return bool(pending >> 8 & 1)


def twice(root: Path) -> list[str]:
    """Ranks that live in two incarnations; what is seen in passing is looked at again."""
    first = {key: have for key, have in alive(root).items() if len(have) > 1}
    if not first:
        return []
    again = alive(root)
    return [
        f"rank {rank} of {job} lives as {sorted(have & again[job, rank])}"
        for (job, rank), have in sorted(first.items())
        if len(have & again[job, rank]) > 1
    ]


def supervisors(root: Path) -> dict[str, int]:
    """By worker id: the process that supervises it, as its record says and the kernel confirms."""
    found = {}
    # A walk, unlike a glob, passes over a directory that is removed under it.
    for folder, _, names in os.walk(root / "nodes"):
        if "state" not in names:
            continue
        try:
            record = json.loads(Path(folder, "state").read_bytes())
        except (OSError, ValueError):
            continue
        if record.get("state") == "running" and record.get("supervisor"):
            found[str(record["worker_id"])] = int(record["supervisor"])
    return found
