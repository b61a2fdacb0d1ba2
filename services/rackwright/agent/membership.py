"""Who takes part in a job, and what is about to happen to it, told to a worker by files.

Each file is replaced atomically, so a reader sees the old or the new one and never a half. A
worker finds them by RACKWRIGHT_MEMBERSHIP_FILE and RACKWRIGHT_NOTICE_FILE.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from rackwright.agent.files import replace_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One rank: where its present process runs."""

    rank: int
    node: str
    rack: str
    slice: int
    worker: str
    incarnation: int
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Version `membership` of who takes part. `gone`: worker ids that left with this change."""

    job: str
    membership: int
    members: tuple[Member, ...]
    gone: tuple[str, ...] = ()
    master_addr: str = ""
    master_port: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """The worker will be stopped at `until` (Unix time, seconds); a checkpoint saved now counts."""

    reason: str
    at: float
    until: float


def write_membership(path: Path, membership: Membership) -> None:
    """Tell a worker who takes part."""
    replace_file(path, json.dumps(asdict(membership), indent=1) + "\n")


def write_notice(path: Path, notice: Notice) -> None:
    """Tell a worker what is about to happen."""
    replace_file(path, json.dumps(asdict(notice)) + "\n")


def read_notice(path: Path) -> Notice | None:
    """What a worker was told; None if nothing, or nothing that can be read."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return Notice(reason=told["reason"], at=float(told["at"]), until=float(told["until"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def withdraw_notice(path: Path) -> None:
    """Tell a worker that it may go on: the file is gone."""
    path.unlink(missing_ok=True)
