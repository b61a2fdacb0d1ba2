"""What the dispatcher writes, and when: lists of effects."""

from typing import Any

from rackwright.core.machine import (
    CheckSnapshot,
    Effect,
    Folded,
    Note,
    Offer,
    Project,
    SnapshotChecked,
    SnapshotStored,
    StatusSeen,
    TrimLedger,
    Turn,
    WriteSnapshot,
)
from rackwright.core.snapshot import shape
from rackwright.dispatcher.machine import (
    SNAPSHOT_ENTRIES,
    SNAPSHOT_S,
    WRITE_S,
    Dispatcher,
    State,
)
from rackwright.wire.entries.cell import SnapshotVerified
from rackwright.wire.entries.job import JobCancelled, JobRequeued
from rackwright.wire.ids import JobId, MessageId, NodeId, Owner, RackId, SessionId, WorkerId
from rackwright.wire.message import Entry
from rackwright.wire.nodes import Hardware, Witnesses
from rackwright.wire.reasons import Reason
from rackwright.wire.signals import NodeStatus, WorkerState, WorkerStatus
from rackwright.wire.values import AssignmentLine, JobValue, Neighbour, RackAssignments, StopLine
from tests.support.fleets import cell, hardware

DISPATCHER = Dispatcher()
GONE = Reason(code="test")


class Bench:
    """A cell and a dispatcher that hears each of its commits."""

    def __init__(self) -> None:
        self.cell = cell(2, 4)
        self.state: State = DISPATCHER.start(0)
        self.mono = 0.0

    def hear(self, event: Any) -> list[Effect]:
        self.state, effects = DISPATCHER.handle(self.state, self.cell.fleet, event)
        return effects

    def turn(self) -> list[Effect]:
        return self.hear(Turn(now=0.0, mono=self.mono))

    def joined(self) -> list[Effect]:
        """The last commit was a join."""
        seq, entries = self.cell.fleet.seq, self.cell.last
        self.hear(Folded(now=0.0, mono=self.mono, seq=seq, source="t/0", type="t", entries=entries))
        return self.turn()

    def folded(self) -> list[Effect]:
        self.hear(
            Folded(
                now=0.0, mono=self.mono, seq=self.cell.fleet.seq, source="t/0", type="t", entries=()
            )
        )
        return self.turn()

    def add(self, *entries: Entry) -> list[Effect]:
        self.cell.add(*entries)
        return self.folded()

    def status(self, node: str, worker: str, state: WorkerState) -> list[Effect]:
        status = NodeStatus(
            node=NodeId(node),
            rack=RackId("r0"),
            session=SessionId("s1"),
            boot="b",
            n=1,
            hardware=Hardware(serial="sn", gpus=4),
            workers=(WorkerStatus(worker=WorkerId(worker), state=state),),
        )
        self.hear(StatusSeen(now=0.0, mono=self.mono, id=MessageId("m"), at=0.0, status=status))
        return self.turn()


def racks(effects: list[Effect]) -> list[RackAssignments]:
    return [
        effect.value
        for effect in effects
        if isinstance(effect, Project) and isinstance(effect.value, RackAssignments)
    ]


def jobs(effects: list[Effect]) -> dict[str, JobValue | None]:
    return {
        effect.key: effect.value
        for effect in effects
        if isinstance(effect, Project)
        and effect.bucket == "jobs"
        and (effect.value is None or isinstance(effect.value, JobValue))
    }


def test_at_start_every_rack_is_written_and_then_only_what_a_commit_touched() -> None:
    bench = Bench()
    assert [value.rack for value in racks(bench.turn())] == ["r0", "r1"]
    assert racks(bench.turn()) == []
    bench.cell.sit("j", "r0", (0, 1), start=False)
    effects = bench.folded()
    value = bench.cell.fleet
    assert [one.rack for one in racks(effects)] == ["r0"]
    assert racks(effects)[0].seq == value.seq


def test_a_placed_job_has_run_lines_and_a_value_before_them() -> None:
    bench = Bench()
    bench.turn()
    bench.cell.sit("j", "r0", (0, 1), start=False)
    effects = bench.folded()
    assert isinstance(effects[0], Project)
    assert effects[0].bucket == "jobs"
    (value,) = racks(effects)
    assert value.nodes[NodeId("r0-n00")].run == (
        AssignmentLine(worker=WorkerId("j/0/1"), job=JobId("j"), rank=0, membership=1, open=True),
    )
    told = jobs(effects)["j"]
    assert told is not None
    assert told.slices[0].nodes == ("r0-n00", "r0-n01")


def test_a_job_that_leaves_has_stop_lines_and_no_value() -> None:
    bench = Bench()
    bench.cell.sit("j", "r0", (0,), start=False)
    bench.turn()
    effects = bench.add(JobCancelled(job=JobId("j"), by=Owner("ann"), reason=GONE))
    (value,) = racks(effects)
    node = value.nodes[NodeId("r0-n00")]
    assert node.run == ()
    assert node.stop == (StopLine(worker=WorkerId("j/0/1"), notice_s=0.0, grace_s=10.0),)
    assert jobs(effects) == {"j": None}


def test_a_gate_opens_by_the_nodes_own_word() -> None:
    bench = Bench()
    bench.cell.sit("old", "r0", (0,), start=False)
    bench.turn()
    bench.add(JobRequeued(job=JobId("old"), reason=GONE))
    bench.cell.sit("new", "r0", (0,), start=False)
    (shut,) = racks(bench.folded())
    assert [line.open for line in shut.nodes[NodeId("r0-n00")].run] == [False]
    assert racks(bench.status("r0-n00", "old/0/1", WorkerState.RUNNING)) == []
    (open_,) = racks(bench.status("r0-n00", "old/0/1", WorkerState.STOPPED))
    assert [line.open for line in open_.nodes[NodeId("r0-n00")].run] == [True]


def test_an_end_told_before_the_worker_left_in_the_ledger_opens_the_gate_too() -> None:
    bench = Bench()
    bench.cell.sit("old", "r0", (0,), start=False)
    bench.turn()
    bench.status("r0-n00", "old/0/1", WorkerState.EXITED)
    bench.add(JobRequeued(job=JobId("old"), reason=GONE))
    bench.cell.sit("new", "r0", (0,), start=False)
    (value,) = racks(bench.folded())
    assert [line.open for line in value.nodes[NodeId("r0-n00")].run] == [True]


def test_a_snapshot_is_due_by_entries_and_by_time_and_not_without_news() -> None:
    bench = Bench()
    first = bench.turn()
    assert not [one for one in first if isinstance(one, WriteSnapshot)]
    bench.state.entries = SNAPSHOT_ENTRIES
    assert WriteSnapshot(seq=bench.cell.fleet.seq) in bench.turn()
    bench.hear(SnapshotStored(now=0.0, mono=bench.mono, seq=bench.cell.fleet.seq, sha256="a"))
    bench.mono += SNAPSHOT_S
    assert not [one for one in bench.turn() if isinstance(one, WriteSnapshot)]
    bench.cell.wait(1.0)
    assert WriteSnapshot(seq=bench.cell.fleet.seq) in bench.folded()


def test_a_snapshot_that_is_being_written_is_not_asked_for_again_for_a_while() -> None:
    bench = Bench()
    bench.turn()
    bench.mono += SNAPSHOT_S

    def asked() -> list[Effect]:
        bench.cell.wait(1.0)
        return [one for one in bench.folded() if isinstance(one, WriteSnapshot)]

    assert len(asked()) == 1
    assert asked() == []
    bench.mono += WRITE_S
    assert asked() == [WriteSnapshot(seq=bench.cell.fleet.seq)]


def test_a_snapshot_is_checked_against_the_one_before_and_verified_once() -> None:
    bench = Bench()
    bench.turn()
    assert bench.hear(SnapshotStored(now=0.0, mono=0.0, seq=3, sha256="a")) == []
    check = CheckSnapshot(seq=3, to=5, sha256="b")
    assert bench.hear(SnapshotStored(now=0.0, mono=0.0, seq=5, sha256="b")) == [check]
    good = SnapshotChecked(now=0.0, mono=0.0, seq=3, to=5, sha256="b", equal=True)
    assert bench.hear(good) == []
    verified = SnapshotVerified(seq=5, sha256="b", shape=shape())
    assert Offer(entries=(verified,)) in bench.turn()
    bench.cell.add(verified)
    assert not [one for one in bench.folded() if isinstance(one, Offer)]


def test_a_diverged_snapshot_is_an_alarm_and_no_entry() -> None:
    bench = Bench()
    bench.turn()
    bad = SnapshotChecked(now=0.0, mono=0.0, seq=3, to=5, sha256="b", equal=False)
    (note,) = bench.hear(bad)
    assert isinstance(note, Note)
    assert (note.level, note.event) == ("error", "snapshot.diverged")
    assert not [one for one in bench.turn() if isinstance(one, Offer)]


def test_the_ledger_is_trimmed_behind_two_verified_snapshots() -> None:
    bench = Bench()
    bench.turn()
    bench.cell.add(SnapshotVerified(seq=20_000, sha256="a"))
    assert not [one for one in bench.folded() if isinstance(one, TrimLedger)]
    bench.cell.add(SnapshotVerified(seq=30_000, sha256="b"))
    assert TrimLedger(to=10_000) in bench.folded()
    assert not [one for one in bench.turn() if isinstance(one, TrimLedger)]


def test_who_asks_a_witness_is_told_where_it_is_asked_now() -> None:
    bench = Bench()
    terms = Witnesses(nodes=(NodeId("r1-n02"),), step_s=30.0, alone_s=1800.0)
    bench.cell.join("r0-n00", witnesses=terms)
    first = racks(bench.turn())[0].nodes[NodeId("r0-n00")]
    assert (first.witnesses, first.neighbours) == (
        terms,
        (Neighbour(node=NodeId("r1-n02"), host="r1-n02", port=0),),
    )
    bench.cell.join("r1-n02", hardware("r1-n02", port=7, address="10.0.0.2"))
    written = racks(bench.joined())
    assert [value.rack for value in written] == ["r1", "r0"]
    assert written[1].nodes[NodeId("r0-n00")].neighbours == (
        Neighbour(node=NodeId("r1-n02"), host="10.0.0.2", port=7),
    )
    bench.cell.join("r1-n03")
    assert [value.rack for value in racks(bench.joined())] == ["r1"], "nobody asks it"
