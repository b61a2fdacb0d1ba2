"""Entries in words, and whose story each belongs to."""

from rackwright.core.fleet import Fleet
from rackwright.core.reasons import sentence
from rackwright.core.telling import bounded, subjects, tell
from rackwright.wire.codec import decode_commit
from rackwright.wire.entries import ENTRIES
from rackwright.wire.entries.job import JobBlocked, JobPlaced, SlicePlacement, WorkerFailed
from rackwright.wire.entries.node import NodeFailed
from rackwright.wire.entries.slice import NodeSwap, SliceSwapped
from rackwright.wire.ids import JobId, NodeId, RackId, SessionId, WorkerId
from rackwright.wire.reasons import Reason, Rung, RungTaken
from tests.support.fleets import cell
from tests.tidy.source import ROOT

EXAMPLES = ROOT / "proto" / "examples" / "v1"


def test_every_entry_has_words_of_its_own() -> None:
    silent = []
    for name in sorted(ENTRIES):
        commit = decode_commit(name, (EXAMPLES / f"{name}.json").read_bytes())
        for entry in commit.entries:
            text = tell(entry, Fleet())
            subjects(entry, Fleet())
            if text == entry.TYPE or not text:
                silent.append(name)
    assert silent == []


def swap(**more: object) -> SliceSwapped:
    rungs = (RungTaken(rung=Rung.SPARE, taken=True, price_gpu_h=1.5, reason=Reason(code="spare")),)
    return SliceSwapped(
        job=JobId("a"),
        membership=2,
        index=0,
        swaps=(NodeSwap(rank=1, old=1, new=16),),
        rungs=rungs,
        **more,  # type: ignore[arg-type]
    )


def test_a_swap_names_its_nodes_and_is_part_of_their_stories() -> None:
    made = cell(1)
    made.sit("a", "r0", range(16))
    assert tell(swap(evicted=(JobId("b"),)), made.fleet) == (
        "slice 0 swapped (membership 2): rank 1 from r0-n01 to r0-n16; evicts b;"
        " spare taken: a free spare of the rack, 1.5 GPU-h"
    )
    assert subjects(swap(evicted=(JobId("b"),)), made.fleet) == (
        ("a", "b"),
        ("r0-n01", "r0-n16"),
    )


def test_places_have_numbers_where_the_fleet_does_not_know_them() -> None:
    assert "rank 1 from place 1 to place 16" in tell(swap(), Fleet())
    assert subjects(swap(), Fleet()) == (("a",), ())


def test_what_becomes_of_a_node_is_told_to_the_jobs_on_it() -> None:
    made = cell(1)
    made.sit("a", "r0", [0, 1])
    made.sit("b", "r0", [2])
    failed = NodeFailed(
        node=NodeId("r0-n01"),
        of=1,
        session=SessionId("s"),
        fenced=True,
        reason=Reason(code="silence", numbers={"waited_s": 36.75}),
    )
    assert subjects(failed, made.fleet) == (("a",), ("r0-n01",))
    assert tell(failed, made.fleet) == (
        "r0-n01 failed, its lease has ended: no heartbeat for 36.75 s after it was suspected"
    )


def test_placements_and_blocks() -> None:
    whole = SlicePlacement(index=0, first_rank=0, rack=RackId("r0"), nodes=0xFFFF)
    part = SlicePlacement(index=1, first_rank=16, rack=RackId("r1"), nodes=1, gpus=0b11)
    numbers: dict[str, int | float | str] = {"nodes": 17, "slices": 2, "racks": 2}
    placed = JobPlaced(
        job=JobId("a"),
        membership=1,
        slices=(whole, part),
        reason=Reason(code="placed", numbers=numbers),
    )
    assert tell(placed, Fleet()) == (
        "placed (membership 1) on r0 (16 nodes), r1 (2 GPUs): 17 nodes in 2 slices on 2 racks"
    )
    lent = Reason(code="placed", numbers={"nodes": 1, "slices": 1, "racks": 1, "lent": 1})
    assert sentence(lent) == (
        "1 node in 1 slice on 1 rack, 1 of them lent: small work that may be killed goes on spares"
        " before it breaks a whole rack"
    )
    blocked = JobBlocked(job=JobId("a"), reason=Reason(code="capacity"))
    assert tell(blocked, Fleet()) == "blocked by capacity: too few nodes are free"
    ended = WorkerFailed(
        job=JobId("a"),
        rank=3,
        worker=WorkerId("a/3/1"),
        code=137,
        reason=Reason(code="exit.137", numbers={"exit": 137}),
    )
    assert tell(ended, Fleet()) == "worker a/3/1 ended with 137: its process ended with 137"


def test_long_sentences_are_cut() -> None:
    assert bounded("x" * 500) == "x" * 397 + "..."
    assert bounded("short") == "short"
