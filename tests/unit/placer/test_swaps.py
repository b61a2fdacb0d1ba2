"""How often a rank may be swapped on somebody's word, and what a refusal says."""

from dataclasses import replace
from typing import Any

import pytest

from rackwright.core.reasons import sentence
from rackwright.core.shares import DAY_S
from rackwright.core.snapshot import dump, load
from rackwright.wire.codec import encode
from rackwright.wire.entries.cell import WishRefused
from rackwright.wire.entries.node import NodeCordoned, NodeUncordoned
from rackwright.wire.ids import CellName, JobId, LedgerId, MessageId, Owner
from rackwright.wire.message import Commit, Entry
from rackwright.wire.policy import Policy
from rackwright.wire.versions import too_new
from rackwright.wire.wishes import Swap
from tests.support.fleets import cell
from tests.unit.placer.desk import Desk


def desk(version: int = 2, **policy: Any) -> Desk:
    """Jobs a and b of eight nodes each run, and nobody heals what is drained."""
    at = Desk(cell=cell(2, policy=Policy(**policy), fold_version=version))
    for job in ("a", "b"):
        at.started(job, nodes=8)
    return at


def swap(at: Desk, job: str, rank: int, owner: str = "ann") -> Entry:
    """The answer to a swap that is wished for now."""
    at.wish(Swap(job=JobId(job), rank=rank), owner=owner)
    (entry,) = at.run()
    return entry


def refusal(entry: Entry) -> dict[str, Any]:
    """The numbers of a no for want of room in a limit."""
    assert isinstance(entry, WishRefused)
    assert entry.reason.code == "swap.too-many"
    return dict(entry.reason.numbers)


def test_a_job_has_three_swaps_a_day_and_the_refusal_says_when_the_next_is_possible() -> None:
    at = desk()
    for rank in range(3):
        assert isinstance(swap(at, "a", rank, owner=f"o{rank}"), NodeCordoned)
        at.wait(60.0)
    no = swap(at, "a", 3)
    left = DAY_S - 180.0
    assert refusal(no) == {"limit": "swap_job_day", "swaps": 3, "allowed": 3, "in_s": left}
    assert isinstance(no, WishRefused)
    assert sentence(no.reason).endswith(f"swap_job_day allows 3: the next in {left:g} s")
    assert isinstance(swap(at, "b", 0, owner="ann"), NodeCordoned), "another job's are its own"
    at.cell.fleet.time += left - 1.0
    assert refusal(swap(at, "a", 3))["in_s"] == 1.0
    at.cell.fleet.time += 1.0
    assert isinstance(swap(at, "a", 3), NodeCordoned)
    assert refusal(swap(at, "a", 4))["in_s"] == 60.0


def test_an_owner_has_so_many_over_all_jobs() -> None:
    at = desk(swap_owner_day=2)
    for job in ("a", "b"):
        assert isinstance(swap(at, job, 0), NodeCordoned)
    no = refusal(swap(at, "a", 1))
    assert (no["limit"], no["swaps"], no["allowed"]) == ("swap_owner_day", 2, 2)
    assert isinstance(swap(at, "a", 1, owner="bob"), NodeCordoned)


def test_none_at_all_where_the_limit_is_nought() -> None:
    no = swap(desk(swap_job_day=0), "a", 0)
    assert refusal(no) == {"limit": "swap_job_day", "swaps": 0, "allowed": 0}
    assert isinstance(no, WishRefused)
    assert sentence(no.reason) == "swap_job_day allows none"


def test_an_operators_drain_does_not_count() -> None:
    at = desk(swap_job_day=1)
    at.other(NodeCordoned(node=at.cell.rack("r0").nodes[1].name, drain=True, by=Owner("ann")))
    assert isinstance(swap(at, "a", 0), NodeCordoned)
    refusal(swap(at, "a", 2))


def test_what_was_refused_does_not_count_and_a_restart_forgets_nothing() -> None:
    at = desk(swap_job_day=1)
    assert isinstance(swap(at, "a", 99), WishRefused)
    assert isinstance(swap(at, "a", 0), NodeCordoned)
    again = Desk(cell=replace(at.cell, fleet=load(dump(at.fleet))), seq=at.seq)
    refusal(swap(again, "a", 1))


def test_a_node_that_is_let_in_again_and_swapped_again_counts_twice() -> None:
    at = desk(swap_job_day=2)
    for _ in range(2):
        entry = swap(at, "a", 0)
        assert isinstance(entry, NodeCordoned)
        at.other(NodeUncordoned(node=entry.node, by=Owner("op")))
    refusal(swap(at, "a", 0))


def test_in_a_cell_that_is_not_upgraded_nothing_newer_is_said() -> None:
    at = desk(version=1)
    for rank in range(4):
        entry = swap(at, "a", rank)
        assert isinstance(entry, NodeCordoned)
        assert too_new(entry, 1) is None
    assert at.fleet.wished_swaps == ()


@pytest.mark.parametrize(("job", "said"), [(None, False), (JobId("a"), True)])
def test_a_later_field_is_written_only_where_it_is_used(job: JobId | None, said: bool) -> None:
    at = desk()
    entry = NodeCordoned(node=at.cell.rack("r0").nodes[0].name, by=Owner("op"), job=job)
    commit: Commit[Any] = Commit(
        id=MessageId("c"),
        type=entry.TYPE,
        v=1,
        at=0.0,
        source="test/0",
        cell=CellName("cell"),
        ledger=LedgerId("l"),
        entries=(entry,),
    )
    assert (b'"job"' in encode(commit)) is said
    assert (too_new(entry, 1) == "job needs fold version 2") is said
    assert too_new(entry, 2) is None
