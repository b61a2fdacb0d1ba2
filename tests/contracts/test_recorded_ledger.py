"""A ledger and a snapshot that an earlier version wrote: they fold to the same fleet for ever.

`recorded/ledger.jsonl` holds a story of the simulation commit by commit (subject, server's time,
the message), `recorded/middle.json` and `recorded/end.json` the fleet after half of it and after
all of it, as that version wrote snapshots. Never edit them; add others beside them.
"""

import json
from pathlib import Path

from rackwright.bus.ports import NO_HEADERS, Stored
from rackwright.core.audit import Audit
from rackwright.core.fleet import Fleet
from rackwright.core.snapshot import dump, load
from rackwright.host.steps import Steps
from rackwright.wire.ids import CellName

RECORDED = Path(__file__).parent / "recorded"


def commits() -> list[Stored]:
    """The ledger as its stream held it."""
    lines = (RECORDED / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    found = []
    for seq, line in enumerate(lines, 1):
        said = json.loads(line)
        found.append(
            Stored(
                seq=seq,
                subject=said["subject"],
                at=said["at"],
                headers=NO_HEADERS,
                data=said["data"].encode(),
            )
        )
    return found


def snapshot(name: str) -> Fleet:
    """A fleet as it was written."""
    return load((RECORDED / f"{name}.json").read_bytes())


def test_the_recorded_ledger_folds_to_the_recorded_fleets_and_breaks_nothing() -> None:
    steps, audit = Steps(CellName("sim")), Audit()
    middle = snapshot("middle")
    for stored in commits():
        before = steps.fleet
        step = steps.fold(stored)
        audit.take(before, step.commit, step.folding)
        if stored.seq == middle.seq:
            assert dump(steps.fleet) == dump(middle)
    assert dump(steps.fleet) == dump(snapshot("end"))
    assert audit.violations == []
    assert len(audit.counts) >= 15, "many kinds of entries"


def test_the_recorded_snapshot_folds_on_to_the_same_end() -> None:
    steps = Steps(CellName("sim"))
    middle = snapshot("middle")
    steps.begin(middle, middle.seq)
    for stored in commits()[middle.seq :]:
        steps.fold(stored)
    assert dump(steps.fleet) == dump(snapshot("end"))
