"""Stories, what is kept of them, and what is counted."""

import pytest

from rackwright.core.histograms import BUCKETS, Histogram
from rackwright.gateway.chronicle import (
    FIRST_LINES,
    LAST_LINES,
    Chronicle,
    Story,
    job_key,
    node_key,
)
from rackwright.gateway.counts import Counts
from rackwright.gateway.views import Line
from rackwright.wire.entries.cell import LedgerTicked
from rackwright.wire.entries.job import JobRequeued
from rackwright.wire.entries.slice import NodeSwap, SliceSwapped
from rackwright.wire.ids import CellName, JobId, MessageId
from rackwright.wire.message import Commit, Entry
from rackwright.wire.reasons import Reason, Rung, RungTaken
from tests.support.fleets import LEDGER
from tests.unit.gateway.storied import Storied, storied


def line(seq: int) -> Line:
    return Line(seq=seq, at=0.0, type="job.blocked", by="placer/0", text="")


def story(first: int, last: int) -> Story:
    made = Story()
    for seq in range(first, last + 1):
        made.add(line(seq))
    return made


def seqs(made: Story) -> list[int]:
    return [one.seq for one in made.lines]


def test_of_a_long_story_the_middle_is_dropped() -> None:
    made = story(1, 1000)
    kept = FIRST_LINES + LAST_LINES
    assert seqs(made) == [*range(1, FIRST_LINES + 1), *range(1001 - LAST_LINES, 1001)]
    assert made.dropped == 1000 - kept


def test_a_story_joined_from_two_is_the_story_as_a_whole() -> None:
    for cut in (0, 1, 20, 40, 200, 300):
        made = story(1, cut)
        made.join(story(cut + 1, 400))
        whole = story(1, 400)
        assert set(seqs(made)) <= set(seqs(whole))
        assert made.dropped + len(made.lines) == 400
        assert seqs(made)[-100:] == seqs(whole)[-100:]


def test_ticks_are_told_to_nobody() -> None:
    made = storied(1)
    at = len(made.chronicle.events)
    made.add(LedgerTicked())
    assert (len(made.chronicle.events), made.chronicle.upto) == (at, made.fleet.seq)


def commit(entry: Entry) -> Commit[Entry]:
    return Commit(
        id=MessageId("c"),
        type=entry.TYPE,
        v=1,
        at=0.0,
        source="placer/1",
        cell=CellName("cell"),
        ledger=LEDGER,
        entries=(entry,),
    )


def test_what_had_no_effect_is_told_and_not_counted() -> None:
    made = storied(1)
    entry = JobRequeued(job=JobId("a"), reason=Reason(code="no-place"))
    (told,) = made.chronicle.take(99, commit(entry), made.fleet, made.fleet, "job a is unknown")
    assert (told.void, told.text, told.jobs) == (True, "no effect: job a is unknown", ("a",))
    assert made.chronicle.counts.entries[JobRequeued.TYPE] == 0


def test_what_is_only_believed_is_told_and_not_counted() -> None:
    made = Chronicle()
    entry = JobRequeued(job=JobId("a"), reason=Reason(code="no-place"))
    made.believe(7, 5.0, commit(entry), storied(1).fleet)
    assert [(one.seq, one.at) for one in made.story(job_key("a")).lines] == [(7, 5.0)]
    assert made.counts.entries[JobRequeued.TYPE] == 0
    assert (made.since, made.upto) == (7, 7)


def swap(job: str, membership: int, rank: int, new: int) -> SliceSwapped:
    return SliceSwapped(
        job=JobId(job),
        membership=membership,
        index=0,
        swaps=(NodeSwap(rank=rank, old=rank, new=new),),
        rungs=(
            RungTaken(rung=Rung.RESTART, taken=False, reason=Reason(code="node")),
            RungTaken(rung=Rung.SPARE, taken=True, reason=Reason(code="spare")),
        ),
    )


def recovered() -> Storied:
    made = storied(1)
    made.sit("a", "r0", range(16))
    made.unfit("r0-n03")
    made.wait(2.0)
    made.add(swap("a", 2, 3, 16))
    made.wait(5.0)
    made.start("a")
    return made


def test_recoveries_are_counted_and_timed_in_ledger_time() -> None:
    counts = recovered().chronicle.counts
    assert counts.rungs == {("spare", "node"): 1}
    assert (counts.of(SliceSwapped), counts.swapped_nodes) == (1, 1)
    assert counts.to_swap.number == 1
    assert counts.to_swap.total == pytest.approx(2.0)
    assert counts.to_rejoin.number == 1
    assert counts.to_rejoin.total == pytest.approx(7.0)
    assert not counts.open


def test_a_swap_is_part_of_the_story_of_its_nodes() -> None:
    made = recovered()
    types = [one.type for one in made.chronicle.story(node_key("r0-n16")).lines]
    assert types == ["node.joined", "slice.swapped"]


def test_counts_joined_from_two_stretches_are_those_of_the_whole() -> None:
    made = recovered()
    joined = Counts()
    joined.join(made.chronicle.counts)
    joined.join(made.chronicle.counts)
    assert joined.swapped_nodes == 2
    assert joined.to_swap.number == 2
    assert joined.rungs == {("spare", "node"): 2}


def test_histograms() -> None:
    made = Histogram()
    assert made.quantile(0.5) is None
    for seconds in (0.001, 0.02, 0.02, 1000.0):
        made.add(seconds)
    assert made.quantile(0.25) == BUCKETS[0]
    assert made.quantile(0.5) == 0.025
    assert made.quantile(0.99) is None  # above all bounds
    assert made.cumulative()[0] == ("0.005", 1.0)
    assert made.cumulative()[-1] == ("+Inf", 4.0)
