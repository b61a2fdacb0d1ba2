"""Joins, returns, probation, repairs, and the telling of workers that have ended."""

from dataclasses import replace

import pytest

from rackwright.core.machine import Offer
from rackwright.wire.entries.job import JobCancelled
from rackwright.wire.entries.node import (
    NodeCleaning,
    NodeJoined,
    NodeRecovered,
    RackDefined,
    RepairRequested,
)
from rackwright.wire.ids import JobId, Owner, SessionId, WorkerId, worker_id
from rackwright.wire.nodes import Fitness, Hardware, RackFitness, RepairAction
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from rackwright.wire.signals import WorkerState, WorkerStatus
from rackwright.wire.wishes import Repaired
from tests.support.fleets import EPOCH, cell, node_name, rack_spec
from tests.support.monitors import Bench, bench

HOUR = 3600.0


@pytest.fixture
def b() -> Bench:
    return bench(cell(racks=2, nodes=6))


def every(b: Bench, *but: str) -> list[str]:
    names = [node.name for rack in b.fleet.racks.values() for node in rack.nodes]
    return [name for name in names if name not in but]


def worker(text: str, state: WorkerState, code: int | None = None) -> WorkerStatus:
    return WorkerStatus(worker=WorkerId(text), state=state, code=code)


def die(b: Bench, name: str) -> None:
    """The node falls silent and is declared dead."""
    b.until(b.mono + 55, beating=every(b, name))
    assert b.node(name).failed


# Joins


def test_a_new_session_is_admitted_with_what_it_found_alive(b: Bench) -> None:
    last = b.node("r0-n01").last
    b.status(
        "r0-n01",
        "s-new",
        boot="b-new",
        workers=(
            worker("j/0/1", WorkerState.RUNNING),
            worker("j/1/1", WorkerState.PREPARED),
            worker("j/2/1", WorkerState.EXITED, 3),
            worker("j/3/1", WorkerState.FENCED),
        ),
    )
    assert b.turn() == [
        Offer(
            entries=(
                NodeJoined(
                    node=node_name("r0", 1),
                    of=last,
                    session=SessionId("s-new"),
                    boot="b-new",
                    hardware=Hardware(serial="sn-r0-n01", gpus=4, gpu_model="gb200"),
                    running=(WorkerId("j/0/1"), WorkerId("j/1/1")),
                    exited=(WorkerId("j/2/1"),),
                    cause="status-r0-n01",  # type: ignore[arg-type]
                ),
            ),
            compare=False,
        )
    ]
    b.settle()
    assert b.node("r0-n01").session == "s-new"


def test_a_status_of_the_live_session_is_no_join(b: Bench) -> None:
    b.status("r0-n01", n=3)
    assert b.settle() == []


def test_an_earlier_session_never_comes_back(b: Bench) -> None:
    old = b.node("r0-n01").session
    b.status("r0-n01", "s-new")
    b.settle()
    b.status("r0-n01", old)
    assert b.settle() == []
    assert b.node("r0-n01").session == "s-new"


def test_a_status_of_an_agent_that_was_overtaken_does_not_replace_the_live_session(
    b: Bench,
) -> None:
    """It was stored before the second agent was admitted by another copy, and is read late."""
    first = b.make_status("r0-n01", session="s-first", boot="b")
    b.mono += 1.0
    second = b.make_status("r0-n01", session="s-second", boot="b")
    b.tell(second)
    assert [entry.TYPE for entry in b.settle()] == ["node.joined"]
    b.tell(replace(first, mono=b.mono))
    assert b.settle() == []
    assert b.node("r0-n01").session == "s-second"


def test_what_was_taken_for_overtaken_is_admitted_when_it_is_said_again(b: Bench) -> None:
    early = b.make_status("r0-n01", session="s-new", boot="b")
    b.mono += 1.0
    b.status("r0-n01", "s-between")
    b.settle()
    b.tell(replace(early, mono=b.mono))
    assert b.settle() == []
    b.mono += 1.0
    b.status("r0-n01", "s-new", n=1)
    assert [entry.TYPE for entry in b.settle()] == ["node.joined"]


def test_a_clock_that_ran_ahead_keeps_no_session_out_for_ever(b: Bench) -> None:
    early = b.make_status("r0-n01", session="s-new", boot="b")
    b.mono += 1.0
    b.status("r0-n01", "s-between")
    b.settle()
    b.mono += 61.0
    b.tell(replace(early, mono=b.mono))
    assert next(entry.TYPE for entry in b.settle()) == "node.joined"


def test_a_fenced_session_never_comes_back_though_the_monitor_restarts(b: Bench) -> None:
    """The last value of a dead node is still there when a monitor starts."""
    old = b.node("r0-n01").session
    b.status("r0-n01", old)
    die(b, "r0-n01")
    again = Bench(cell=b.cell, mono=b.mono)
    again.status("r0-n01", old)
    assert "node.joined" not in [entry.TYPE for entry in again.settle()]
    assert again.node("r0-n01").session is None


def test_a_join_in_doubt_ends_the_doubt(b: Bench) -> None:
    b.until(112.0, beating=every(b, "r0-n01"))
    assert b.node("r0-n01").suspected
    b.status("r0-n01", "s-new")
    assert [entry.TYPE for entry in b.settle()] == ["node.joined"]
    assert not b.node("r0-n01").suspected
    assert [one.TYPE for one in b.until(b.mono + 60, beating=every(b))] == []


def test_last_values_read_before_the_first_turn_are_joined_then() -> None:
    made = cell(racks=1, nodes=2)
    made.define(rack_spec("r9", 2), join=False)
    b = Bench(cell=made)
    b.status("r9-n00", "s1")
    b.status("r9-n01", "s2")
    assert [entry.TYPE for entry in b.settle()] == ["node.joined"] * 2
    assert b.node("r9-n01").fitness is Fitness.FULL


def test_a_node_that_speaks_before_its_rack_is_defined_joins_when_it_is(b: Bench) -> None:
    b.status("r9-n00", "s1")
    assert b.settle() == []
    b.others(RackDefined(rack=rack_spec("r9", 2)))
    assert [entry.TYPE for entry in b.settle()] == ["node.joined"]


def test_a_node_in_another_rack_than_it_says_does_not_join(b: Bench) -> None:
    b.tell(b.make_status("r0-n01", rack="r1", session="s-new"))
    assert b.settle() == []


def test_a_node_that_joins_with_a_gpu_missing_is_unfit(b: Bench) -> None:
    b.status("r0-n01", "s-new", boot="b2", gpus=3)
    types = [entry.TYPE for entry in b.settle()]
    assert types == ["node.joined", "node.unfit", "node.repair_requested"]
    assert b.node("r0-n01").why == "gpu-count"


# Returns


def test_after_silence_a_join_brings_it_back_on_probation(b: Bench) -> None:
    die(b, "r0-n01")
    assert b.types()[-1] == "node.repair_requested"
    b.status("r0-n01", "s-new", boot=b.node("r0-n01").boot)
    last = b.fleet.seq + 1
    assert b.settle()[1:] == [
        NodeRecovered(
            node=node_name("r0", 1),
            of=last,
            fitness=Fitness.FULL,
            probation_until=b.now + 2 * HOUR,
            reason=Reason(code="returned", numbers={"faults": 1}),
            serial="sn-r0-n01",
        )
    ]
    assert (b.node("r0-n01").fitness, b.node("r0-n01").repair) == (Fitness.FULL, None)


def test_after_a_fault_only_a_reboot_brings_it_back(b: Bench) -> None:
    b.fault("r0-n01", xid=79)
    b.settle()
    boot = b.node("r0-n01").boot
    b.status("r0-n01", "s-same-boot", boot=boot)
    assert [entry.TYPE for entry in b.settle()] == ["node.joined"]
    assert b.node("r0-n01").fitness is Fitness.NONE
    b.status("r0-n01", "s-new-boot", boot="boot-new")
    assert [entry.TYPE for entry in b.settle()] == ["node.joined", "node.recovered"]


def test_a_fault_and_then_silence_is_one_fault_and_still_wants_its_reboot(b: Bench) -> None:
    b.fault("r0-n01", xid=79)
    b.settle()
    boot = b.node("r0-n01").boot
    die(b, "r0-n01")
    assert len(b.node("r0-n01").faults) == 1
    b.status("r0-n01", "s-same-boot", boot=boot)
    assert [entry.TYPE for entry in b.settle()] == ["node.joined"]
    b.status("r0-n01", "s-new-boot", boot="boot-new")
    assert [entry.TYPE for entry in b.settle()] == ["node.joined", "node.recovered"]


def test_what_must_be_replaced_stays_out_until_a_person_says_so(b: Bench) -> None:
    b.fault("r0-n01", xid=64)
    b.settle()
    b.status("r0-n01", "s-new", boot="boot-new")
    assert [entry.TYPE for entry in b.settle()] == ["node.joined"]
    seq = b.wish(Repaired(node=node_name("r0", 1), action=RepairAction.REPLACE))
    (back,) = b.settle()
    assert isinstance(back, NodeRecovered)
    assert (back.wish, back.reason.code) == (seq, "repaired.replace")


def test_the_same_reboot_class_signal_after_two_reboots_means_replace(b: Bench) -> None:
    for boot in range(3):
        b.fault("r0-n01", xid=79)
        b.settle()
        b.status("r0-n01", f"s{boot}-new", boot=f"boot-{boot}")
        b.settle()
        b.mono += 1
    assert b.node("r0-n01").repair is RepairAction.REPLACE
    assert b.node("r0-n01").fitness is Fitness.NONE


def test_a_lemon_does_not_come_back_by_itself() -> None:
    b = bench(cell(racks=2, nodes=6, policy=Policy(probation_s=60.0)))
    for turn in range(3):
        die(b, "r0-n01")
        b.status("r0-n01", f"s-{turn}-new", boot=f"boot-{turn}")
        b.settle()
    node = b.node("r0-n01")
    assert (node.fitness, node.repair) == (Fitness.NONE, RepairAction.INSPECT)
    asked = [entry for entry in b.entries if isinstance(entry, RepairRequested)]
    assert asked[-1].reason == Reason(code="lemon", numbers={"faults": 3})
    b.wish(Repaired(node=node.name))
    assert [entry.TYPE for entry in b.settle()] == ["node.recovered"]
    assert b.node("r0-n01").probation_until == b.now + 8 * 60


def test_a_monitor_that_starts_after_the_join_lets_the_node_in(b: Bench) -> None:
    die(b, "r0-n01")
    b.cell.join("r0-n01")
    again = Bench(cell=b.cell, mono=b.mono + 1)
    assert [entry.TYPE for entry in again.settle()] == ["node.recovered"]


def test_a_repair_nobody_answers_is_told_once_a_day(b: Bench) -> None:
    b.fault("r0-n01", xid=64)
    b.settle()
    b.cell.sound = False
    for hours in (23.0, 25.0, 30.0, 50.0):
        b.mono = 100 + hours * HOUR
        b.settle()
    overdue = [note for note in b.notes() if note == "repair.overdue"]
    assert len(overdue) == 2


def test_a_rack_that_its_culprits_made_suspect_is_trusted_again_after_probation(b: Bench) -> None:
    b.fault("r0-n00", xid=79)
    b.fault("r0-n01", xid=79)
    b.settle()
    assert b.cell.rack("r0").fitness is RackFitness.DEGRADED
    begin = b.mono
    b.mono = begin + HOUR - 1
    b.hear(*every(b))
    b.settle()
    assert b.cell.rack("r0").fitness is RackFitness.DEGRADED
    b.mono = begin + HOUR + 1
    b.hear(*every(b))
    b.settle()
    assert b.cell.rack("r0").fitness is RackFitness.GOOD


def test_after_an_event_of_the_rack_its_repairs_must_be_answered_too(b: Bench) -> None:
    for place in range(3):
        b.fault(node_name("r0", place), xid=79)
    b.settle()
    b.mono += 2 * HOUR
    b.settle()
    assert b.cell.rack("r0").fitness is RackFitness.EVACUATE
    for place in range(3):
        b.wish(Repaired(node=node_name("r0", place)))
    b.settle()
    b.mono += 2
    b.settle()
    assert b.cell.rack("r0").fitness is RackFitness.GOOD


# Workers that have ended


def cancelled(b: Bench, job: str) -> list[WorkerId]:
    """The job runs on two nodes and is cancelled; returns its workers, which are leaving."""
    b.cell.sit(job, "r0", [1, 2], name=job)
    why = Reason(code="wish")
    b.others(JobCancelled(job=JobId(job), by=Owner("ann"), reason=why))
    return [worker_id(JobId(job), rank, 1) for rank in range(2)]


def test_a_worker_that_is_to_end_is_recorded_when_its_node_says_it_has(b: Bench) -> None:
    first, second = cancelled(b, "j")
    assert b.settle() == []
    last = b.node("r0-n01").last
    b.status("r0-n01", workers=(worker(first, WorkerState.STOPPED),))
    assert b.settle() == [
        NodeCleaning(
            node=node_name("r0", 1),
            of=last,
            job=JobId("j"),
            done=True,
            ended=(first,),
            cause="status-r0-n01",  # type: ignore[arg-type]
        )
    ]
    assert set(b.fleet.leaving) == {second}


def test_a_worker_that_had_ended_before_it_was_to_is_recorded_too(b: Bench) -> None:
    b.cell.sit("j", "r0", [1], name="j")
    mine = worker_id(JobId("j"), 0, 1)
    b.status("r0-n01", workers=(worker(mine, WorkerState.EXITED, 0),))
    assert b.settle() == []
    b.others(JobCancelled(job=JobId("j"), by=Owner("ann"), reason=Reason(code="wish")))
    assert [entry.TYPE for entry in b.settle()] == ["node.cleaning"]
    assert not b.fleet.leaving


def test_a_worker_that_still_runs_is_not_taken_for_ended(b: Bench) -> None:
    first, _ = cancelled(b, "j")
    b.status("r0-n01", workers=(worker(first, WorkerState.RUNNING),))
    b.status("r0-n02", workers=())
    assert b.settle() == []


def test_another_nodes_word_is_not_taken(b: Bench) -> None:
    first, _ = cancelled(b, "j")
    b.status("r1-n05", workers=(worker(first, WorkerState.STOPPED),))
    assert b.settle() == []


def test_an_older_writing_of_a_session_is_not_taken(b: Bench) -> None:
    first, _ = cancelled(b, "j")
    b.status("r0-n01", n=5, workers=(worker(first, WorkerState.RUNNING),))
    b.status("r0-n01", n=4, workers=(worker(first, WorkerState.STOPPED),))
    assert b.settle() == []


def test_ledger_time_of_the_bench_is_the_cells() -> None:
    """The stories above compare entries by ledger time."""
    b = bench(cell(racks=1, nodes=2))
    b.mono += 1
    b.settle()
    assert b.fleet.time == EPOCH + b.mono
