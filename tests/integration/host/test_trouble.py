"""What goes wrong: unreadable messages, unknown entries, lost streams, refusals, a closed bus."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from rackwright.bus.errors import BusClosed
from rackwright.bus.ports import Appended, Bus, Ready, Stored
from rackwright.bus.streams import Kind
from rackwright.core.fleet import Fleet
from rackwright.core.machine import Offer, Refused, StatusSeen, Wished, WishSkipped
from rackwright.host.auditing import audit_ledger
from rackwright.host.commits import Author
from rackwright.host.create import create_ledger
from rackwright.host.errors import ForeignLedger, TooManyStarts
from rackwright.host.follower import Follower
from rackwright.host.hearing import Hears, WishesReplaced, WishesShorter
from rackwright.host.runner import Runner
from rackwright.host.standing import Standing
from rackwright.wire.codec import encode
from rackwright.wire.entries.cell import LedgerTicked
from rackwright.wire.ids import CellName, MessageId, NodeId, RackId, SessionId
from rackwright.wire.message import Envelope
from rackwright.wire.nodes import Hardware
from rackwright.wire.signals import NodeStatus
from rackwright.wire.subjects import Subjects
from tests.integration.bus.harness import Harness
from tests.integration.host.helpers import FaultyBus, answers, ledger, running, until, wish
from tests.integration.host.machines import Anew, Apart, Refuser, Seen, Waverer

WISHES = Hears(wishes=True)


def subjects(bus: Bus) -> Subjects:
    return Subjects(CellName(bus.cell))


async def dead(bus: Bus) -> list[Stored]:
    """What has been set aside so far."""
    found = []
    async with bus.dead.follow(0.0) as feed:
        async for item in feed:
            if isinstance(item, Ready):
                break
            found.append(item)
    return found


async def tick(bus: Bus, fleet: Fleet, source: str = "other") -> None:
    """Somebody else's observation."""
    author = Author(CellName(bus.cell), source, 0)
    sealed = author.seal(fleet, Offer(entries=(LedgerTicked(),), compare=False), 0.0)
    outcome = await bus.ledger.append(sealed.subject, sealed.data, expected=None)
    assert isinstance(outcome, Appended)


def answered(runner: Runner[Seen], seq: int) -> bool:
    return runner.standing.fleet.answered("placer", seq)


UNREADABLE = [
    ("cancel", b"{", "not JSON in UTF-8"),
    ("cancel", b"\xff\xfe", "not JSON in UTF-8"),
    ("cancel", b'{"job": "a.b"}', "job"),
    ("cancel", b'{"job": "a", "wrong": 1}', "wrong"),
    ("dance", b"{}", "no wish 'wish.dance' is known"),
]


@pytest.mark.parametrize(("verb", "data", "why"), UNREADABLE)
async def test_an_unreadable_wish_is_set_aside_and_the_next_is_answered(
    bus: Bus, verb: str, data: bytes, why: str
) -> None:
    runner = Runner(Refuser(), WISHES, bus)
    async with running(runner):
        bad = await bus.wishes.publish(f"rackwright.{bus.cell}.wish.ann.{verb}", data)
        good = await wish(bus, "a")
        await until(lambda: runner.standing.fleet.answered("placer", good))
        state = runner.state
    assert state is not None
    told = [event for event in state.events if isinstance(event, Wished | WishSkipped)]
    assert [(type(event), event.seq) for event in told] == [(WishSkipped, bad), (Wished, good)]
    assert runner.standing.fleet.answers["placer"].floor == good
    (letter,) = await dead(bus)
    assert letter.subject == subjects(bus).dead("wish")
    assert letter.data == data
    assert why in letter.headers["Rackwright-Why"]
    assert letter.headers["Rackwright-Seq"] == str(bad)


async def test_a_wish_that_comes_too_late_is_set_aside(bus: Bus) -> None:
    runner = Runner(Refuser(), WISHES, bus)
    async with running(runner):
        await wish(bus, "late", not_after=1.0)
        good = await wish(bus, "a", not_after=32e9)
        await until(lambda: runner.standing.fleet.answered("placer", good))
    assert await answers(bus) == [good]
    (letter,) = await dead(bus)
    assert "not_after" in letter.headers["Rackwright-Why"]


async def test_a_wish_waits_for_the_entries_its_author_had_seen(bus: Bus) -> None:
    runner = Runner(Refuser(), WISHES, bus)
    async with running(runner):
        await until(lambda: runner.standing.ready)
        seq = await wish(bus, "a", obeyed=3)
        await until(lambda: runner._life is not None and len(runner._life._hearing.wishes) == 1)
        assert await answers(bus) == []
        await tick(bus, runner.standing.fleet)
        await tick(bus, runner.standing.fleet)
        await until(lambda: runner.standing.fleet.answered("placer", seq))
    assert [commit.source for commit in await ledger(bus)][1:] == [
        "other/0",
        "other/0",
        "placer/0",
    ]


async def test_an_unknown_entry_stops_the_fold_and_not_the_process(bus: Bus) -> None:
    runner = Runner(Refuser(), WISHES, bus)
    async with running(runner) as task:
        await until(lambda: runner.standing.ready)
        subject = f"rackwright.{bus.cell}.ledger.slice.mirrored"
        await bus.ledger.append(subject, b'{"entries":[]}', expected=1)
        await until(lambda: runner.standing.stopped_at is not None)
        await wish(bus, "a")
        again = Runner(Refuser(), WISHES, bus)
        async with running(again):
            await until(lambda: again.standing.stopped_at is not None)
        assert not task.done()
    for standing in (runner.standing, again.standing):
        assert standing.stopped_at == 2
        assert "slice.mirrored" in standing.why
        assert standing.fleet.seq == 1
        assert not standing.serving
    assert (await bus.ledger.ends()).last == 2


STRAYS = [
    ("job.placed", b'{"stream":"rackwright_lab_wish","seq":1}'),
    ("job.dreamt", b"[1]"),
    ("deep.er.still", b"{}"),
    ("job.placed", b""),
]


@pytest.mark.parametrize(("place", "data"), STRAYS)
async def test_an_answer_that_somebody_had_sent_to_the_ledger_is_void(
    bus: Bus, place: str, data: bytes
) -> None:
    runner = Runner(Refuser(), WISHES, bus)
    async with running(runner):
        await until(lambda: runner.standing.ready)
        await bus.ledger.append(f"rackwright.{bus.cell}.ledger.{place}", data, expected=1)
        seq = await wish(bus, "a")
        await until(lambda: answered(runner, seq))
    assert runner.standing.stopped_at is None
    assert runner.standing.fleet.voids == 1
    audit, fleet = await audit_ledger(bus)
    assert (audit.voids, audit.violations, fleet.seq) == (1, [], 3)


async def test_a_refused_offer_comes_back_and_is_offered_again(bus: Bus) -> None:
    faulty = FaultyBus(bus)
    runner = Runner(Refuser(), WISHES, faulty.port)
    async with running(runner):
        await until(lambda: runner.standing.ready)
        fleet = runner.standing.fleet

        async def first() -> None:
            await tick(bus, fleet)

        faulty.ledger.before_next = first
        seq = await wish(bus, "a")
        await until(lambda: runner.standing.fleet.answered("placer", seq))
        state = runner.state
    assert state is not None
    assert len([event for event in state.events if isinstance(event, Refused)]) == 1
    assert [commit.source for commit in await ledger(bus)] == ["admin/0", "other/0", "placer/0"]
    assert runner.standing.fleet.voids == 0


@pytest.mark.parametrize("machine", [Apart(), Anew()], ids=["again", "anew"])
async def test_what_waits_behind_a_commit_is_sent_though_somebody_else_came_between(
    bus: Bus, machine: Refuser
) -> None:
    """It goes back to the machine and is offered again; nothing else happens that could send it."""
    faulty = FaultyBus(bus)
    runner = Runner(machine, WISHES, faulty.port)
    async with running(runner):
        await until(lambda: runner.standing.ready)
        fleet = runner.standing.fleet

        async def between() -> None:
            await tick(bus, fleet)
            await until(lambda: runner.standing.fleet.seq == fleet.seq + 2)

        faulty.ledger.after_next = between
        for name in ("a", "b"):
            last = await wish(bus, name)
        await until(lambda: all(answered(runner, seq) for seq in (last - 1, last)))
        state = runner.state
    assert state is not None
    assert len([event for event in state.events if isinstance(event, Refused)]) == 1
    told = [commit.source for commit in await ledger(bus)]
    assert told == ["admin/0", "placer/0", "other/0", "placer/0"]
    assert runner.standing.fleet.voids == 0


async def test_after_a_gap_it_starts_anew(bus: Bus) -> None:
    await tick(bus, (await started(bus)).fleet)  # so that entry 1 is not read twice at the start
    faulty = FaultyBus(bus)
    faulty.ledger.gaps = 2
    runner = Runner(Refuser(), WISHES, faulty.port)
    async with running(runner):
        seq = await wish(bus, "a")
        await until(partial(answered, runner, seq))


async def test_after_three_gaps_it_ends(bus: Bus) -> None:
    await tick(bus, (await started(bus)).fleet)
    faulty = FaultyBus(bus)
    faulty.ledger.gaps = 3
    with pytest.raises(TooManyStarts, match="3 times"):
        await Runner(Refuser(), WISHES, faulty.port).run()


async def started(bus: Bus) -> Follower:
    """A follower that has read the ledger."""
    follower = Follower(bus)
    await (await follower.start()).aclose()
    return follower


async def test_a_noisy_source_does_not_delay_another(bus: Bus) -> None:
    for n in range(1200):
        await bus.wishes.publish(f"rackwright.{bus.cell}.wish.ann.cancel", b'{"job": "a"}')
        if n % 4 == 0:
            subject = subjects(bus).status(RackId("r1"), NodeId(f"n{n}"))
            await bus.status.put(subject, status(bus, NodeId(f"n{n}")))
    runner = Runner(Refuser(), Hears(wishes=True, status=True), bus)
    async with running(runner):
        await until(lambda: runner.standing.ready)
        state = runner.state
    assert state is not None
    kinds = [type(event) for event in state.events]
    assert kinds.count(StatusSeen) == 300
    # Once both feeds have come: four times as many wishes did not keep a status waiting.
    between = kinds[kinds.index(StatusSeen) : len(kinds) - kinds[::-1].index(StatusSeen)]
    assert between.count(Wished) <= 2 * between.count(StatusSeen)


def status(bus: Bus, node: NodeId) -> bytes:
    body = NodeStatus(
        node=node,
        rack=RackId("r1"),
        session=SessionId("s1"),
        boot="b",
        n=1,
        hardware=Hardware(serial=node, gpus=4),
    )
    return encode(
        Envelope(
            id=MessageId(f"status.{node}"),
            type=body.TYPE,
            v=body.VERSION,
            at=0.0,
            source=f"agent/{node}",
            cell=CellName(bus.cell),
            body=body,
        )
    )


async def test_another_ledger_ends_the_process(harness: Harness, bus: Bus) -> None:
    runner = Runner(Refuser(), WISHES, bus)
    task = asyncio.create_task(runner.run())
    await until(lambda: runner.standing.ready)
    await tick(bus, runner.standing.fleet)
    await until(lambda: runner.standing.fleet.seq == 2)
    await harness.forget(Kind.LEDGER)
    await create_ledger(await harness.bus())
    with pytest.raises(ForeignLedger):
        await task


async def test_another_wish_stream_ends_the_process(harness: Harness, bus: Bus) -> None:
    runner = Runner(Refuser(), WISHES, bus)
    async with running(runner):
        seq = await wish(bus, "a")
        await until(lambda: runner.standing.fleet.answered("placer", seq))
    await harness.forget(Kind.WISH)
    again = Runner(Refuser(), WISHES, bus)
    with pytest.raises(WishesReplaced):
        await again.run()


async def test_a_wish_stream_without_its_unanswered_end_can_be_read_on(
    harness: Harness, bus: Bus
) -> None:
    runner = Runner(Waverer(), WISHES, bus)
    task = asyncio.create_task(runner.run())
    await until(lambda: runner.standing.ready)
    seq = await wish(bus, "a")
    await until(lambda: runner.state is not None and runner.state.last == seq)
    await harness.forget(Kind.WISH)  # nobody has answered anything
    await harness.crash()
    await harness.recover()
    with pytest.raises(WishesShorter):
        await task
    again = Runner(Refuser(), WISHES, bus)
    async with running(again):
        seq = await wish(bus, "b")
        await until(lambda: again.standing.fleet.answered("placer", seq))


async def test_a_closed_bus_ends_the_process(harness: Harness) -> None:
    bus = await harness.bus()
    runner = Runner(Refuser(), WISHES, bus)
    task = asyncio.create_task(runner.run())
    await until(lambda: runner.standing.ready)
    await bus.close()
    with pytest.raises(BusClosed):
        await task


async def test_a_bus_that_goes_and_comes_back_costs_nothing(harness: Harness, bus: Bus) -> None:
    runner = Runner(Refuser(), WISHES, bus)
    async with running(runner):
        first = await wish(bus, "a")
        await until(lambda: runner.standing.fleet.answered("placer", first))
        await harness.crash()
        await until(lambda: not runner.standing.serving)
        await harness.recover()
        second = await wish(bus, "b")
        await until(lambda: runner.standing.fleet.answered("placer", second))
        assert runner.standing.serving
    assert await answers(bus) == [first, second]


async def test_a_bus_that_takes_no_commit_is_told_until_it_takes_one(bus: Bus) -> None:
    faulty = FaultyBus(bus)
    runner = Runner(Refuser(), WISHES, faulty.port)
    async with running(runner):
        await until(lambda: runner.standing.ready)
        faulty.ledger.lose_before = 10
        seq = await wish(bus, "a")
        await until(lambda: not runner.standing.serving)
        assert "has not taken a commit for 5 times running (no_answer" in runner.standing.reason
        await until(lambda: runner.standing.fleet.answered("placer", seq))
        await until(lambda: runner.standing.serving)
        assert runner.standing.reason == ""


async def test_copies_share_by_patience(harness: Harness) -> None:
    buses = [await harness.bus() for _ in range(2)]
    runners = [
        Runner(
            Refuser(),
            WISHES,
            bus,
            standing=Standing(service="placer", ordinal=k, cell=bus.cell, copies=(2, k)),
            patience_s=1.0,
        )
        for k, bus in enumerate(buses)
    ]
    async with running(runners[1]):
        async with running(runners[0]):
            await until(lambda: all(runner.standing.ready for runner in runners))
            for n in range(5):
                seq = await wish(buses[0], f"j{n}")
                await until(partial(answered, runners[1], seq))
        seq = await wish(buses[1], "alone")
        await until(partial(answered, runners[1], seq))
    sources = [commit.source for commit in await ledger(buses[1])][1:]
    assert sources == ["placer/0"] * 5 + ["placer/1"]
