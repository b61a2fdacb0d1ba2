"""Random lives of a small cell: invariants after every entry, snapshots that lose nothing."""

from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.core.invariants import check
from rackwright.core.legality import illegal
from rackwright.core.snapshot import dump, load
from rackwright.wire.entries.job import (
    JobCancelled,
    JobFinished,
    JobPlaced,
    JobRequeued,
    JobStarted,
    SlicePlacement,
)
from rackwright.wire.entries.slice import NodeSwap, SliceMoved, SliceSwapped
from rackwright.wire.ids import JobId, Owner, RackId
from rackwright.wire.jobs import JobSpec
from rackwright.wire.message import Entry
from rackwright.wire.reasons import Reason, Rung, RungTaken
from tests.support.fleets import Cell, cell, node_name

WHY = Reason(code="test")
RUNGS = (RungTaken(rung=Rung.SPARE, taken=True, reason=WHY),)
RACKS, NODES = 3, 6

names = st.sampled_from([f"j{number}" for number in range(6)])
racks = st.integers(0, RACKS - 1)
masks = st.integers(1, (1 << NODES) - 1)


def offer(made: Cell, entry: Entry) -> None:
    """Fold it if it is legal; a legal entry must leave a sound fleet."""
    if illegal(made.fleet, entry) is None:
        made.add(entry)


def act(made: Cell, draw: st.DataObject) -> None:
    """One random thing that happens."""
    name = draw.draw(names)
    job = made.fleet.jobs.get(JobId(name))
    kind = draw.draw(st.integers(0, 9))
    if job is None:
        if JobId(name) not in made.fleet.tombstones:
            made.queue(name, JobSpec(name=JobId(name), nodes=draw.draw(st.integers(1, 4))))
        return
    rack = RackId(f"r{draw.draw(racks)}")
    membership = job.membership + 1
    if kind < 3:
        part = SlicePlacement(index=0, first_rank=0, rack=rack, nodes=draw.draw(masks))
        offer(made, JobPlaced(job=job.id, membership=membership, slices=(part,), reason=WHY))
    elif kind == 3:
        offer(made, JobStarted(job=job.id, membership=job.membership))
    elif kind == 4:
        offer(made, JobRequeued(job=job.id, reason=WHY))
    elif kind == 5:
        end = draw.draw(st.booleans())
        ended = JobFinished(job=job.id)
        offer(made, ended if end else JobCancelled(job=job.id, by=Owner("ann"), reason=WHY))
    elif kind == 6:
        break_node(made, node_name(rack, draw.draw(st.integers(0, NODES - 1))))
    elif job.slices and job.wounds:
        recover(made, name, rack, draw)


def break_node(made: Cell, node: str) -> None:
    found = made.fleet.node(node)  # type: ignore[arg-type]
    if found.session is None:
        made.join(node)
        made.recover(node)
    else:
        made.fail(node)


def recover(made: Cell, name: str, rack: RackId, draw: st.DataObject) -> None:
    job = made.job(name)
    part = job.slices[0]
    if draw.draw(st.booleans()):
        swaps = tuple(
            NodeSwap(
                rank=wound.rank,
                old=part.nodes[wound.rank],
                new=draw.draw(st.integers(0, NODES - 1)),
            )
            for wound in job.wounds
        )
        entry: Entry = SliceSwapped(
            job=job.id, membership=job.membership + 1, index=0, swaps=swaps, rungs=RUNGS
        )
    else:
        entry = SliceMoved(
            job=job.id,
            membership=job.membership + 1,
            index=0,
            rack=rack,
            nodes=draw.draw(masks),
            rungs=RUNGS,
        )
    offer(made, entry)


@settings(max_examples=60)
@given(st.data())
def test_every_legal_life_leaves_a_sound_fleet_that_a_snapshot_keeps(data: st.DataObject) -> None:
    made = cell(RACKS, NODES)
    for _ in range(data.draw(st.integers(1, 40))):
        act(made, data)
    again = load(dump(made.fleet))
    check(again)
    assert dump(again) == dump(made.fleet)
