"""Answers to what operators wish of the cell: maintenance, pauses, holds, pins, racks, settings."""

from rackwright.core.fleet import Fleet
from rackwright.core.machine import Wished
from rackwright.core.policy.breaker import breaker
from rackwright.core.policy.settings import beyond_the_cell
from rackwright.core.policy.windows import missing_room
from rackwright.wire.entries.cell import (
    AutomationPaused,
    AutomationResumed,
    BreakerClosed,
    CellUpgraded,
    PolicySet,
    WishRefused,
)
from rackwright.wire.entries.job import JobApproved, JobPinned, JobReleased
from rackwright.wire.entries.node import (
    MaintenanceScheduled,
    RackDefined,
    RackHeld,
    RackReleased,
)
from rackwright.wire.message import Entry
from rackwright.wire.reasons import Reason
from rackwright.wire.versions import FOLD_VERSION
from rackwright.wire.wishes import (
    Approve,
    CloseBreaker,
    DefineRacks,
    HoldRack,
    LetGo,
    Pause,
    Pin,
    ReleaseRack,
    ScheduleMaintenance,
    SetPolicy,
    Unpause,
    Unpin,
    Upgrade,
)

CLOCKS_S = 60.0


class Settled(Exception):
    """The wish needs no entry: it is answered by what is in the ledger."""


def refused(wished: Wished, code: str, **numbers: int | float | str) -> WishRefused:
    """A wish that is not granted, and why."""
    wish = wished.wish
    about = next(
        (getattr(wish, name) for name in ("job", "rack", "automation") if hasattr(wish, name)), ""
    )
    return WishRefused(
        kind=wish.TYPE,
        owner=wished.owner,
        subject=str(about),
        reason=Reason(code=code, numbers=numbers),
        wish=wished.seq,
        cause=wished.id,
    )


def maintain(fleet: Fleet, wished: Wished, wish: ScheduleMaintenance) -> list[Entry]:
    """A planned absence, if not too much of the cell would be away at once."""
    problem = no_window(wished, wish) or too_many_away(fleet, wish)
    if problem is not None:
        return [refused(wished, problem.code, **problem.numbers)]
    missing = missing_room(fleet, set(wish.racks), set(wish.nodes))
    if missing is not None and wish.begin - wish.notice_s <= fleet.time:
        # It would begin to be left now: it opens only when there is somewhere to go.
        return [refused(wished, missing.code, **missing.numbers)]
    return [
        MaintenanceScheduled(
            missing=missing,
            racks=wish.racks,
            nodes=wish.nodes,
            begin=wish.begin,
            end=wish.end,
            notice_s=wish.notice_s,
            by=wished.owner,
            why=wish.why,
            wish=wished.seq,
            cause=wished.id,
        )
    ]


def no_window(wished: Wished, wish: ScheduleMaintenance) -> Reason | None:
    """A window begins in the future, but for a minute that clocks may differ by, and ends later."""
    ago = round(wished.at - wish.begin, 1)
    field, value, why, ask = "", 0.0, "", ""
    if ago > CLOCKS_S:
        field, value, why = "begin", wish.begin, f"lies {ago:g} s in the past"
        ask = "a time to come, in seconds since the epoch"
    elif wish.end <= wish.begin:
        field, value, why = "end", wish.end, "is not after the window's begin"
        ask = "a time after begin, in seconds since the epoch"
    if not field:
        return None
    numbers: dict[str, int | float | str] = {"field": field, "is": value, "why": why, "ask": ask}
    return Reason(code="maintenance.window", numbers=numbers)


def too_many_away(fleet: Fleet, wish: ScheduleMaintenance) -> Reason | None:
    """At most a share of the racks, but always one, is in maintenance at the same time.

    Single nodes do not count.
    """
    most = max(1, int(fleet.policy.maintenance_share * len(fleet.racks)))
    away = {name for name in wish.racks if name in fleet.rack_numbers}
    for window in fleet.maintenance:
        if window.begin < wish.end and wish.begin < window.end:
            away.update(window.racks)
    if len(away) <= most:
        return None
    why = f"would have {len(away)} racks in maintenance at a time"
    numbers: dict[str, int | float | str] = {
        "field": "racks",
        "is": len(wish.racks),
        "why": why,
        "ask": f"{most} or fewer at a time, or a larger maintenance_share",
    }
    return Reason(code="policy.maintenance_share", numbers=numbers)


def _until(fleet: Fleet, wished: Wished, for_s: float) -> float:
    """The end of something that lasts `for_s`: ledger time may be ahead of the server's clock."""
    return max(wished.at, fleet.time) + for_s


def pause(fleet: Fleet, wished: Wished, wish: Pause) -> list[Entry]:
    """An automation stops for a while."""
    return [
        AutomationPaused(
            automation=wish.automation,
            until=_until(fleet, wished, wish.for_s),
            by=wished.owner,
            why=wish.why,
            wish=wished.seq,
            cause=wished.id,
        )
    ]


def unpause(fleet: Fleet, wished: Wished, wish: Unpause) -> list[Entry]:
    """It acts again."""
    return [
        AutomationResumed(
            automation=wish.automation, by=wished.owner, wish=wished.seq, cause=wished.id
        )
    ]


def close_breaker(fleet: Fleet, wished: Wished, wish: CloseBreaker) -> list[Entry]:
    """What opened the breaker is real, says an operator: it closes now."""
    now = breaker(fleet, fleet.time)
    if not now.open:
        return [refused(wished, "breaker-not-open", culprits=now.culprits, limit=now.limit)]
    return [
        BreakerClosed(
            culprits=now.culprits,
            by=wished.owner,
            why=wish.why,
            wish=wished.seq,
            cause=wished.id,
        )
    ]


def hold(fleet: Fleet, wished: Wished, wish: HoldRack) -> list[Entry]:
    """A rack is held."""
    return [
        RackHeld(
            rack=wish.rack,
            owner=wished.owner,
            until=_until(fleet, wished, wish.for_s),
            why=wish.why,
            wish=wished.seq,
            cause=wished.id,
        )
    ]


def release(fleet: Fleet, wished: Wished, wish: ReleaseRack) -> list[Entry]:
    """A hold ends."""
    return [RackReleased(rack=wish.rack, wish=wished.seq, cause=wished.id)]


def let_go(fleet: Fleet, wished: Wished, wish: LetGo) -> list[Entry]:
    """Kept nodes take other work again."""
    if wish.job not in fleet.kept:
        return [refused(wished, "nothing-kept")]
    return [JobReleased(job=wish.job, by=wished.owner, wish=wished.seq, cause=wished.id)]


def pin(fleet: Fleet, wished: Wished, wish: Pin | Unpin) -> list[Entry]:
    """A job is pinned, or is not any more."""
    return [
        JobPinned(
            job=wish.job,
            pinned=isinstance(wish, Pin),
            by=wished.owner,
            why=wish.why,
            wish=wished.seq,
            cause=wished.id,
        )
    ]


def approve(fleet: Fleet, wished: Wished, wish: Approve) -> list[Entry]:
    """A plan may be carried out for a job."""
    until = _until(fleet, wished, wish.for_s)
    return [
        JobApproved(job=wish.job, until=until, by=wished.owner, wish=wished.seq, cause=wished.id)
    ]


def define(fleet: Fleet, wished: Wished, wish: DefineRacks) -> list[Entry]:
    """Racks that are defined just so already are passed over; the first entry is the answer."""
    new = [
        spec
        for spec in wish.racks
        if spec.rack not in fleet.rack_numbers or fleet.rack(spec.rack).spec != spec
    ]
    if not new:
        raise Settled
    return [
        RackDefined(rack=spec, cause=wished.id, wish=None if turn else wished.seq)
        for turn, spec in enumerate(new)
    ]


def policy(fleet: Fleet, wished: Wished, wish: SetPolicy) -> list[Entry]:
    """New settings."""
    problem = beyond_the_cell(fleet, wish.policy)
    if problem is not None:
        return [refused(wished, problem.code, **problem.numbers)]
    return [PolicySet(policy=wish.policy, by=wished.owner, wish=wished.seq, cause=wished.id)]


def upgrade(fleet: Fleet, wished: Wished, wish: Upgrade) -> list[Entry]:
    """What newer software brought may be used: each fold version after the cell's, one by one."""
    asked, now = wish.fold_version, fleet.fold_version
    if asked <= now:
        return [refused(wished, "upgrade.done", version=now)]
    if asked > FOLD_VERSION:
        return [refused(wished, "upgrade.unknown", asked=asked, version=FOLD_VERSION)]
    return [
        CellUpgraded(
            fold_version=version, cause=wished.id, wish=wished.seq if version == asked else None
        )
        for version in range(now + 1, asked + 1)
    ]
