"""Where a reader of the ledger may start, and what snapshots and the archive are good for (P1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from rackwright.bus.ports import Appended, Bus
from rackwright.core.fleet import Fleet
from rackwright.core.machine import (
    CheckSnapshot,
    Effect,
    Event,
    Offer,
    SnapshotChecked,
    SnapshotStored,
    TrimLedger,
    Turn,
    WakeAt,
    WriteSnapshot,
)
from rackwright.core.snapshot import dump, shape
from rackwright.host import snapshots
from rackwright.host.archive import Archive
from rackwright.host.commits import Author
from rackwright.host.errors import NoValidStart
from rackwright.host.follower import Follower
from rackwright.host.hearing import Hears
from rackwright.host.runner import Runner
from rackwright.wire.entries.cell import LedgerTicked, SnapshotVerified
from rackwright.wire.ids import CellName, LedgerId
from rackwright.wire.subjects import Subjects
from tests.integration.host.helpers import ledger, running, until
from tests.support.full_disk import disk_takes_nothing


async def grow(bus: Bus, count: int) -> Fleet:
    """Append so many ticks; the fold of all."""
    follower = Follower(bus)
    feed = await follower.start()
    await feed.aclose()
    author = Author(CellName(bus.cell), "other", 0)
    for _ in range(count):
        sealed = author.seal(follower.fleet, Offer(entries=(LedgerTicked(),), compare=False), 0.0)
        assert isinstance(
            await bus.ledger.append(sealed.subject, sealed.data, expected=None), Appended
        )
    return await folded(bus)


async def folded(bus: Bus) -> Fleet:
    """The fold of all, from wherever it may start."""
    follower = Follower(bus)
    await (await follower.start()).aclose()
    return follower.fleet


async def save(bus: Bus, fleet: Fleet) -> None:
    author = Author(CellName(bus.cell), "dispatcher", 0)
    await snapshots.write(bus, author, fleet, dump(fleet), 0.0)


async def spoil(bus: Bus, fleet: Fleet, part: str, data: bytes) -> None:
    subject = Subjects(CellName(bus.cell)).snapshot(fleet.ledger, fleet.seq, part)
    await bus.snapshots.write(subject, data)


async def test_from_a_snapshot_it_folds_to_the_same(bus: Bus) -> None:
    early = await grow(bus, 3)
    await save(bus, early)
    late = await grow(bus, 3)
    await bus.ledger.purge_to(early.seq + 1)
    assert dump(await folded(bus)) == dump(late)


async def test_a_snapshot_at_the_very_end_is_enough(bus: Bus) -> None:
    fleet = await grow(bus, 3)
    await save(bus, fleet)
    await bus.ledger.purge_to(fleet.seq + 1)
    assert dump(await folded(bus)) == dump(fleet)


@pytest.mark.parametrize(("part", "data"), [("0", b"{}"), ("manifest", b"nonsense")])
async def test_a_bad_snapshot_is_passed_over_for_an_older_one(
    bus: Bus, part: str, data: bytes
) -> None:
    early = await grow(bus, 3)
    await save(bus, early)
    late = await grow(bus, 3)
    await save(bus, late)
    await spoil(bus, late, part, data)
    await bus.ledger.purge_to(early.seq + 1)
    assert dump(await folded(bus)) == dump(late)


async def test_a_snapshot_of_another_history_is_passed_over(bus: Bus) -> None:
    early = await grow(bus, 3)
    wrong = replace(early, last_id="somebody.else.1")  # type: ignore[arg-type]
    await save(bus, wrong)
    assert (await folded(bus)).last_id == early.last_id


async def test_a_commit_of_another_ledger_behind_a_snapshot_does_not_spoil_it(bus: Bus) -> None:
    early = await grow(bus, 3)
    await save(bus, early)
    foreign = replace(early, ledger=LedgerId("another"))
    author = Author(CellName(bus.cell), "other", 0)
    sealed = author.seal(foreign, Offer(entries=(LedgerTicked(),), compare=False), 0.0)
    await bus.ledger.append(sealed.subject, sealed.data, expected=None)
    late = await grow(bus, 2)
    await bus.ledger.purge_to(early.seq)
    assert (dump(await folded(bus)), late.voids) == (dump(late), 1)


async def test_without_a_valid_start_it_ends(bus: Bus) -> None:
    early = await grow(bus, 3)
    await save(bus, early)
    await grow(bus, 3)
    await bus.ledger.purge_to(early.seq + 2)
    with pytest.raises(NoValidStart, match=r"holds 6..7"):
        await folded(bus)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the keeper still has to ask for, and what it was told."""

    asks: tuple[Effect, ...]
    told: tuple[Event, ...] = ()


class Keeper:
    """Asks for things to be done with snapshots, one a turn."""

    service = "dispatcher"

    def __init__(self, *asks: Effect) -> None:
        self._asks = asks

    def start(self, copy: int) -> Kept:
        return Kept(asks=self._asks)

    def handle(self, state: Kept, fleet: Fleet, event: Event) -> tuple[Kept, list[Effect]]:
        match event:
            case SnapshotStored() | SnapshotChecked():
                return replace(state, told=(*state.told, event)), []
            case Turn() if state.asks:
                asked = [state.asks[0], WakeAt(mono=event.mono)]
                return replace(state, asks=state.asks[1:]), asked
            case _:
                return state, []


async def told(bus: Bus, count: int, *asks: Effect, archive: Path | None = None) -> list[Event]:
    """What a keeper that asks for this is told first."""
    runner = Runner(Keeper(*asks), Hears(snapshots=True), bus, archive=archive)

    def enough() -> bool:
        return runner.state is not None and len(runner.state.told) >= count

    async with running(runner):
        await until(enough)
        assert runner.state is not None
        return list(runner.state.told)


async def test_a_snapshot_is_stored_when_asked_for(bus: Bus) -> None:
    fleet = await grow(bus, 3)
    (stored,) = await told(bus, 1, WriteSnapshot(seq=fleet.seq))
    assert isinstance(stored, SnapshotStored)
    assert (stored.seq, stored.sha256) == (fleet.seq, snapshots.digest(dump(fleet)))
    (again,) = await told(bus, 1)
    assert isinstance(again, SnapshotStored)
    assert again.seq == fleet.seq


async def test_a_snapshot_is_checked_by_folding_elsewhere(bus: Bus) -> None:
    early = await grow(bus, 2)
    await save(bus, early)
    late = await grow(bus, 5)
    sha256 = snapshots.digest(dump(late))
    for right in (True, False):
        said = sha256 if right else "0" * 64
        events = await told(bus, 2, CheckSnapshot(seq=early.seq, to=late.seq, sha256=said))
        (checked,) = [event for event in events if isinstance(event, SnapshotChecked)]
        assert (checked.to, checked.equal) == (late.seq, right)


async def test_what_is_trimmed_is_archived_first(bus: Bus, tmp_path: Path) -> None:
    fleet = await grow(bus, 9)
    whole = await ledger(bus)
    await save(bus, fleet)
    asks = (TrimLedger(to=4), TrimLedger(to=7), WriteSnapshot(seq=fleet.seq))
    runner = Runner(Keeper(*asks), Hears(), bus, archive=tmp_path)
    async with running(runner):
        await until(lambda: runner.state is not None and len(runner.state.told) == 1)
    assert (await bus.ledger.ends()).first == 8
    segments = Archive(tmp_path, fleet.ledger).segments()
    assert [(segment.first, segment.last) for segment in segments] == [(1, 4), (5, 7)]
    kept = "".join(segment.path.read_text() for segment in segments)
    assert all(commit.id in kept for commit in whole[:7])
    assert dump(await folded(bus)) == dump(fleet)


async def test_nothing_is_trimmed_that_a_full_disk_did_not_take(bus: Bus, tmp_path: Path) -> None:
    """It is said, and done the next time, when there is room."""
    fleet = await grow(bus, 9)
    await save(bus, fleet)

    async def trim(to: int) -> None:
        asks = (TrimLedger(to=to), WriteSnapshot(seq=fleet.seq))
        runner = Runner(Keeper(*asks), Hears(), bus, archive=tmp_path)
        async with running(runner):
            await until(lambda: runner.state is not None and len(runner.state.told) == 1)

    with disk_takes_nothing(), capture_logs() as said:
        await trim(4)
    assert "trim.failed" in {one["event"] for one in said}
    assert (await bus.ledger.ends()).first == 1
    await trim(7)
    assert (await bus.ledger.ends()).first == 8
    segments = Archive(tmp_path, fleet.ledger).segments()
    assert [(segment.first, segment.last) for segment in segments] == [(1, 7)]


async def test_without_an_archive_nothing_is_trimmed(bus: Bus) -> None:
    fleet = await grow(bus, 3)
    await told(bus, 1, TrimLedger(to=2), WriteSnapshot(seq=fleet.seq))
    assert (await bus.ledger.ends()).first == 1


async def verified(bus: Bus, sha256: str, made_of: str = "") -> None:
    """Say in the ledger that two copies agreed on the fold at its end."""
    fleet = await folded(bus)
    author = Author(CellName(bus.cell), "dispatcher", 1)
    entry = SnapshotVerified(seq=fleet.seq, sha256=sha256, shape=made_of or shape())
    sealed = author.seal(fleet, Offer(entries=(entry,)), 0.0)
    outcome = await bus.ledger.append(sealed.subject, sealed.data, expected=fleet.seq)
    assert isinstance(outcome, Appended)


async def asked_for(bus: Bus, runner: Runner[Any]) -> Fleet:
    """The agreement after which this process remembers fleets, and one more entry."""
    await until(lambda: runner.standing.ready)
    await verified(bus, "1" * 64)
    fleet = await grow(bus, 1)
    await until(lambda: runner.standing.fleet.seq == fleet.seq)
    return fleet


async def test_a_fold_that_diverged_stops_deciding(bus: Bus) -> None:
    runner = Runner(Keeper(), Hears(), bus)
    async with running(runner):
        await asked_for(bus, runner)
        assert runner.standing.stopped_at is None
        await verified(bus, "0" * 64)
        await until(lambda: runner.standing.stopped_at is not None)
    assert "diverged" in runner.standing.why


async def test_a_fold_is_not_compared_with_that_of_another_release(bus: Bus) -> None:
    """In a rolling upgrade the dispatcher may be of another release, and nobody stops for it."""
    runner = Runner(Keeper(), Hears(), bus)
    with capture_logs() as said:
        async with running(runner):
            fleet = await asked_for(bus, runner)
            await verified(bus, "0" * 64, "another")
            await until(lambda: runner.standing.fleet.seq == fleet.seq + 1)
            assert runner.standing.stopped_at is None
    assert "fold.not_compared" in {one["event"] for one in said}


async def test_a_fold_that_agrees_goes_on_and_is_not_compared_again_soon(bus: Bus) -> None:
    runner = Runner(Keeper(), Hears(), bus)
    with capture_logs() as said:
        async with running(runner):
            fleet = await asked_for(bus, runner)
            await verified(bus, snapshots.digest(dump(fleet)))
            await until(lambda: any(one["event"] == "fold.verified" for one in said))
            await verified(bus, "0" * 64)
            fleet = await grow(bus, 1)
            await until(lambda: runner.standing.fleet.seq == fleet.seq)
    assert runner.standing.stopped_at is None
    assert [one["event"] for one in said].count("fold.verified") == 1


def test_an_archive_must_continue(tmp_path: Path) -> None:
    archive = Archive(tmp_path, LedgerId("one"))
    assert archive.last == 0
    assert archive.write([]) == 0
