"""A recovery uses up a retry only if its entry says so, also where a commit holds several."""

from typing import Any

import pytest

from rackwright.core.audit import Audit
from rackwright.core.evolve import evolve
from rackwright.core.fold import Folding, fold
from rackwright.wire.entries.slice import SliceRestarted
from rackwright.wire.ids import CellName, JobId, MessageId
from rackwright.wire.message import Commit
from rackwright.wire.reasons import Reason, Rung, RungTaken
from tests.support.fleets import EPOCH, LEDGER, Cell, cell

TAKEN = (RungTaken(rung=Rung.SPARE, taken=True, reason=Reason(code="test")),)


def restarted(rank: int, membership: int, *, charge: bool) -> SliceRestarted:
    return SliceRestarted(
        job=JobId("j"),
        membership=membership,
        index=0,
        ranks=(rank,),
        charge=charge,
        rungs=TAKEN,
    )


def committed(made: Cell, *charges: bool) -> tuple[Commit[Any], Folding]:
    """One commit with an entry for each rank of the job, charged or not."""
    fleet = made.fleet
    commit: Commit[Any] = Commit(
        id=MessageId("c"),
        type="slice.restarted",
        v=1,
        at=EPOCH,
        source="spare-manager/0",
        cell=CellName("cell"),
        ledger=LEDGER,
        prev=fleet.last_id,
        entries=tuple(
            restarted(rank, made.job("j").membership + 1 + rank, charge=charge)
            for rank, charge in enumerate(charges)
        ),
    )
    folding = fold(fleet, fleet.seq + 1, EPOCH, commit)
    assert not folding.void, folding.why
    return commit, folding


@pytest.fixture
def made() -> Cell:
    made = cell(racks=1, nodes=3)
    made.sit("j", "r0", [0, 1])
    for node in ("r0-n00", "r0-n01"):
        made.join(node)  # their agents have started anew and found nobody alive
    return made


@pytest.mark.parametrize("charges", [(False, False), (True, False), (True, True)])
def test_as_many_retries_as_were_charged_are_right(made: Cell, charges: tuple[bool, ...]) -> None:
    audit = Audit()
    audit.take(made.fleet, *committed(made, *charges))
    assert audit.violations == []


def test_one_more_than_was_charged_is_found(made: Cell) -> None:
    commit, folding = committed(made, True, False)
    after = folding.fleet
    job = after.jobs[JobId("j")]
    after.jobs = after.jobs.set(job.id, evolve(job, retries=job.retries + 1))
    audit = Audit()
    audit.take(made.fleet, commit, folding)
    assert [one.what for one in audit.violations] == ["j: a recovery used up a retry"]
