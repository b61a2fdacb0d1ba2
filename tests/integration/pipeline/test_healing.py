"""What happens to running work when nodes fail, are drained, or are needed by somebody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rackwright.core.jobs import JobState
from rackwright.wire.entries.cell import WishRefused
from rackwright.wire.entries.job import JobRequeued
from rackwright.wire.entries.node import NodeCordoned, NodeUncordoned, NodeUnfit
from rackwright.wire.entries.slice import SliceMoved, SliceSwapped
from rackwright.wire.ids import JobId, WorkerId
from rackwright.wire.jobs import JobClass
from rackwright.wire.nodes import Fitness
from rackwright.wire.wishes import Cordon, Drain, Swap, Uncordon
from tests.support.live import Identity, Live
from tests.support.world import appears

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="package")]


def rest(live: Live, name: str, *lost: WorkerId) -> dict[WorkerId, Identity]:
    """The processes of a job but those of some workers."""
    return {w: process for w, process in live.identities(name).items() if w not in lost}


def membership(live: Live, name: str, rank: int) -> dict[str, Any]:
    """What the membership file of a worker says that has been there from the start."""
    path = Path(live.env(name, rank, 1)["RACKWRIGHT_MEMBERSHIP_FILE"])
    told: dict[str, Any] = json.loads(path.read_bytes())
    return told


async def test_a_failed_node_is_swapped_in_its_rack(live: Live) -> None:
    job = await live.start(live.spec("swap", 8, membership_signal="SIGUSR2"))
    node, lost = live.nodes_of("swap")[2], job.worker(2)
    survivors = rest(live, "swap", lost)
    since = live.now()
    await live.xid(node)
    swap = await live.entry(SliceSwapped, since)
    after = await live.running("swap")
    assert (swap.index, [one.rank for one in swap.swaps], swap.evicted) == (0, [2], ())
    assert live.rack_of("swap") == live.fleet.rack_name(job.slices[0].rack)
    assert node not in live.nodes_of("swap")
    assert rest(live, "swap", after.worker(2)) == survivors
    assert after.worker(2) == "swap/2/2"
    assert (after.retries, after.membership) == (0, 2)
    assert live.node(node).fitness is Fitness.NONE
    assert live.env("swap", 2, 2)["RACKWRIGHT_MEMBERSHIP"] == "2"

    # Survivors are told by a file that is replaced, and by the signal their job asked for.
    await appears(lambda: (live.home / "swap.5.told").exists())
    members = membership(live, "swap", 5)
    assert (members["membership"], members["gone"]) == (2, ["swap/2/1"])
    assert [one["worker"] for one in members["members"]] == [after.worker(r) for r in range(8)]
    assert [one["node"] for one in members["members"]] == [
        *live.nodes_of("swap", 0),
        *live.nodes_of("swap", 1),
    ]


async def test_several_failures_of_one_rack_at_once(live: Live) -> None:
    job = await live.start(live.spec("several", 4))
    nodes = live.nodes_of("several")[1:3]
    survivors = rest(live, "several", job.worker(1), job.worker(2))
    for node in nodes:
        await live.xid(node)
    await live.until(lambda fleet: all(fleet.node(n).why for n in nodes), "both to be unfit")
    after = await live.running("several")
    assert set(nodes).isdisjoint(live.nodes_of("several"))
    assert after.slices[0].rack == job.slices[0].rack
    assert rest(live, "several", after.worker(1), after.worker(2)) == survivors


async def test_without_spares_only_that_slice_moves(live: Live) -> None:
    job = await live.start(live.spec("move", 8))
    staying = {w: p for w, p in live.identities("move").items() if int(w.split("/")[1]) < 4}
    old = rest(live, "move", *staying)
    for turn in range(3):
        since = live.now()
        await live.xid(live.nodes_of("move", 1)[turn])
        if turn < 2:
            await live.entry(SliceSwapped, since)
            await live.running("move")
    moved = await live.entry(SliceMoved, since)
    after = await live.running("move")
    assert (moved.index, after.slices[0].mask) == (1, job.slices[0].mask)
    assert after.slices[1].rack not in {part.rack for part in job.slices}
    now = live.identities("move")
    assert {w: now[w] for w in staying} == staying
    assert set(now.values()).isdisjoint(old.values())


async def test_a_tenant_on_lent_spares_makes_room_for_a_swap(live: Live) -> None:
    """Three slices and their spares fill the cell; small work sits on all of the spares."""
    job = await live.start(live.spec("lent", 12))
    for turn in range(6):
        await live.start(live.spec(f"small-{turn}", 1, priority=10))
    assert all(rack.usable == 0 for rack in live.fleet.racks.values())
    since = live.now()
    survivors = rest(live, "lent", job.worker(0))
    await live.xid(live.nodes_of("lent")[0])
    swap = await live.entry(SliceSwapped, since)
    assert len(swap.evicted) == 1
    after = await live.running("lent")
    assert rest(live, "lent", after.worker(0)) == survivors
    tenant = live.job(swap.evicted[0])
    assert (tenant.state, tenant.retries) == (JobState.QUEUED, 0)
    await live.board.until(lambda board: not board.pids(tenant.id))


async def test_nothing_is_left_but_the_queue(live: Live) -> None:
    await live.start(live.spec("pinned", 12, slice_nodes=6, job_class=JobClass.INTERACTIVE))
    await live.start(live.spec("stuck", 4))
    before = live.identities("pinned")
    for _ in range(2):
        since = live.now()
        await live.xid(live.nodes_of("stuck")[0])
        await live.entry(SliceSwapped, since)
        await live.running("stuck")
    since = live.now()
    await live.xid(live.nodes_of("stuck")[0])
    requeued = await live.entry(JobRequeued, since)
    assert (requeued.job, requeued.charge) == ("stuck", False)
    await live.board.until(lambda board: not board.pids("stuck"))
    assert live.identities("pinned") == before


async def test_an_operator_drains_a_node(live: Live) -> None:
    job = await live.start(live.spec("drain", 4))
    node = live.nodes_of("drain")[3]
    survivors = rest(live, "drain", job.worker(3))
    since = live.now()
    answer = await live.wish(Drain(node=node))
    assert isinstance(answer.entry, NodeCordoned)
    await live.entry(SliceSwapped, since)
    after = await live.running("drain")
    assert node not in live.nodes_of("drain")
    assert rest(live, "drain", after.worker(3)) == survivors
    assert live.node(node).draining


async def test_a_cordoned_node_keeps_its_work_and_gets_none(live: Live) -> None:
    await live.start(live.spec("stays", 4))
    node = live.nodes_of("stays")[0]
    before = live.identities("stays")
    answer = await live.wish(Cordon(node=node))
    assert isinstance(answer.entry, NodeCordoned)
    assert isinstance((await live.wish(Cordon(node=node))).entry, WishRefused)
    live.tell("stays", "exit 0")
    assert (await live.ended("stays")).state is JobState.FINISHED
    assert [p for p in before.values() if p in live.identities("stays").values()] == []
    await live.start(live.spec("other", 12, restartable=False))
    assert all(node not in live.nodes_of("other", index) for index in range(3))
    assert isinstance((await live.wish(Uncordon(node=node))).entry, NodeUncordoned)
    await live.start(live.spec("small", 6, slice_nodes=1, restartable=False))
    taken = [n for index in range(6) for n in live.nodes_of("small", index)]
    assert node in taken


async def test_an_owner_asks_for_a_swap(live: Live) -> None:
    job = await live.start(live.spec("ask", 4))
    node = live.nodes_of("ask")[1]
    survivors = rest(live, "ask", job.worker(1))
    since = live.now()
    await live.wish(Swap(job=JobId("ask"), rank=1, why="slow"))
    await live.entry(SliceSwapped, since)
    after = await live.running("ask")
    assert node not in live.nodes_of("ask")
    assert rest(live, "ask", after.worker(1)) == survivors
    refused = await live.wish(Swap(job=JobId("ask"), rank=4))
    assert isinstance(refused.entry, WishRefused)
    assert refused.entry.reason.code == "swap.no-such-rank"


async def test_hooks_of_the_site(live: Live) -> None:
    notes = live.home / "hooks.notes"
    script = f'echo "$RACKWRIGHT_HOOK $*" >> "{notes}"'

    def told() -> set[str]:
        return set(notes.read_text(encoding="ascii").splitlines()) if notes.exists() else set()

    with live.hook("prolog", script), live.hook("membership", script), live.hook("epilog", script):
        await live.start(live.spec("hooked", 2))
        first, second = live.nodes_of("hooked")
        rack = live.rack_of("hooked")
        assert told() == {f"prolog hooked {rack} {first},{second} 1"}
        since = live.now()
        await live.xid(second)
        await live.entry(SliceSwapped, since)
        await live.running("hooked")
        third = live.nodes_of("hooked")[1]
        wanted = {
            f"membership hooked {rack} {first},{third} 1",
            f"prolog hooked {rack} {first},{third} 2",
        }
        await appears(lambda: wanted <= told())
        live.tell("hooked", "exit 0")
        await live.ended("hooked")
        await appears(lambda: any(line.startswith("epilog hooked") for line in told()))


async def test_a_failed_hook_is_the_nodes_fault(live: Live) -> None:
    """The hook fails on the node that runs it first: the job runs beside it."""
    since = live.now()
    with live.hook("prolog", f"mkdir '{live.home}/struck' 2>/dev/null && exit 1; exit 0"):
        await live.start(live.spec("picky", 1))
        unfit = await live.entry(NodeUnfit, since)
        assert live.nodes_of("picky") != [unfit.node]
