"""What the health-monitor makes of faults: who leaves, who stays, and how often it says so."""

import pytest

from rackwright.core.machine import Offer
from rackwright.wire.entries.job import JobFinished
from rackwright.wire.entries.node import NodeUnfit, RackDefined, RackDegraded, RepairRequested
from rackwright.wire.nodes import Fitness, RackFitness, RepairAction
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from rackwright.wire.signals import SignalKind
from tests.support.fleets import cell, node_name
from tests.support.fleets import rack_spec as spec_of
from tests.support.monitors import Bench, bench


@pytest.fixture
def b() -> Bench:
    return bench(cell(racks=2, nodes=6))


def test_an_immediate_signal_names_its_own_culprit_at_the_next_turn(b: Bench) -> None:
    last = b.node("r0-n01").last
    assert b.fault("r0-n01", xid=79, gpu=2, observed_at=7.5) == []
    assert b.turn() == [
        Offer(
            entries=(
                NodeUnfit(
                    node=node_name("r0", 1),
                    of=last,
                    fitness=Fitness.NONE,
                    action=RepairAction.REBOOT,
                    gpu=2,
                    observed_at=7.5,
                    reason=Reason(code="xid.79", numbers={"count": 1, "xid": 79, "gpu": 2}),
                    serial="sn-r0-n01",
                    cause="fault-r0-n01",  # type: ignore[arg-type]
                ),
            ),
            compare=False,
        )
    ]


def test_somebody_is_asked_to_repair_it_once(b: Bench) -> None:
    b.fault("r0-n01", xid=79)
    (_, asked) = b.settle()
    assert asked == RepairRequested(
        node=node_name("r0", 1),
        of=b.fleet.seq - 1,
        action=RepairAction.REBOOT,
        reason=Reason(code="xid.79"),
    )
    assert b.settle() == []


def test_a_repeated_fault_does_nothing(b: Bench) -> None:
    b.fault("r0-n01", xid=79)
    b.settle()
    for _ in range(3):
        b.fault("r0-n01", xid=79)
        b.fault("r0-n01", xid=46)
    assert b.settle() == []


def test_a_fault_replayed_after_the_repair_does_nothing(b: Bench) -> None:
    """NVSentinel 1280: a replayed event rebooted a healthy node."""
    stored = b.now
    b.fault("r0-n01", xid=46)
    b.settle()
    b.mono += 20
    b.cell.recover("r0-n01")
    b.mono += 20
    again = bench(b.cell, mono=b.mono)
    again.fault("r0-n01", xid=46, at=stored)
    assert again.settle() == []
    again.fault("r0-n01", xid=46)
    assert [entry.TYPE for entry in again.settle()] == ["node.unfit", "node.repair_requested"]


def test_a_graver_fault_of_a_node_that_is_out_asks_for_more(b: Bench) -> None:
    b.fault("r0-n01", xid=46)
    b.settle()
    b.fault("r0-n01", xid=64)
    (asked,) = b.settle()
    assert isinstance(asked, RepairRequested)
    assert asked.action is RepairAction.REPLACE


def test_of_two_faults_before_a_turn_the_graver_counts(b: Bench) -> None:
    b.fault("r0-n01", kind=SignalKind.IB_DOWN)
    b.fault("r0-n01", xid=64)
    b.fault("r0-n01", xid=46)
    first = b.settle()[0]
    assert isinstance(first, NodeUnfit)
    assert (first.fitness, first.action) == (Fitness.NONE, RepairAction.REPLACE)


def test_a_lost_port_leaves_the_node_to_work_inside_its_rack(b: Bench) -> None:
    b.fault("r0-n01", kind=SignalKind.IB_DOWN)
    b.settle()
    assert b.node("r0-n01").fitness is Fitness.RACK


def test_a_storm_of_application_errors_takes_no_node_out(b: Bench) -> None:
    """NVSentinel PR 1629: one crashed job flagged 77 nodes in 11 racks through Xid 45."""
    for place in range(6):
        for _ in range(50):
            b.fault(node_name("r0", place), xid=45)
            b.fault(node_name("r1", place), xid=45)
    b.until(200.0)
    assert b.types() == []
    assert len(b.notes()) < 40, "told, but not for each line"


def test_an_unknown_signal_is_told_and_nothing_else(b: Bench) -> None:
    (note,) = b.fault("r0-n01", xid=999)
    assert b.notes() == ["signal.not_understood"], note
    assert b.fault("r0-n01", xid=999) == []
    b.mono += 61
    assert [effect.event for effect in b.fault("r0-n01", xid=999)] == ["signal.not_understood"]  # type: ignore[union-attr]
    assert b.settle() == []


def test_one_link_down_and_sixty_echoes_take_out_one_node(b: Bench) -> None:
    """marin 9086: the symptoms came first, from everybody else in the rack."""
    for place in range(6):
        if place != 3:
            for gpu in range(4):
                b.fault(node_name("r0", place), xid=145, mnemonic="RLW_SRC_TRACK", gpu=gpu)
    b.mono += 2
    b.fault("r0-n03", xid=149, mnemonic="NETIR_LINK_DOWN", words=(0, 0))
    for place in range(6):
        b.fault(node_name("r0", place), xid=145, mnemonic="RLW_SRC_TRACK")
    b.until(200.0, beating=all_nodes(b))
    assert b.types() == ["node.unfit", "node.repair_requested"]
    assert b.node("r0-n03").fitness is Fitness.NONE
    assert "symptoms.unexplained" not in b.notes()


def test_symptoms_without_a_culprit_take_nobody_out_and_are_told(b: Bench) -> None:
    b.fault("r0-n01", xid=145, mnemonic="RLW_SRC_TRACK")
    b.fault("r0-n02", xid=145, mnemonic="RLW_SRC_TRACK")
    b.until(129.0, beating=all_nodes(b))
    assert b.notes() == []
    b.until(132.0, beating=all_nodes(b))
    assert b.notes() == ["symptoms.unexplained"]
    assert b.types() == []


def test_a_culprit_in_another_rack_explains_nothing(b: Bench) -> None:
    b.fault("r0-n01", xid=145, mnemonic="RLW_SRC_TRACK")
    b.fault("r1-n01", xid=79)
    b.until(132.0, beating=all_nodes(b))
    assert b.notes() == ["symptoms.unexplained"]


def test_a_node_that_fell_silent_explains_the_symptoms_of_its_peers(b: Bench) -> None:
    rest = [name for name in all_nodes(b) if name != "r0-n05"]
    b.fault("r0-n01", xid=145, mnemonic="RLW_SRC_TRACK")
    b.until(150.0, beating=rest)
    assert "symptoms.unexplained" not in b.notes()


def test_an_unhealthy_imex_on_an_idle_node_is_no_fault(b: Bench) -> None:
    """aicr 2641."""
    b.fault("r0-n01", kind=SignalKind.FABRIC, mnemonic="IMEX")
    b.until(140.0, beating=all_nodes(b))
    assert b.types() == []
    assert "symptoms.unexplained" not in b.notes()
    b.cell.sit("job", "r0", [1], name="job")
    b.fault("r0-n01", kind=SignalKind.FABRIC, mnemonic="IMEX")
    b.until(180.0, beating=all_nodes(b))
    assert "symptoms.unexplained" in b.notes()


def test_what_can_wait_is_asked_for_and_the_node_works_on(b: Bench) -> None:
    b.fault("r0-n01", xid=63)
    (asked,) = b.settle()
    assert isinstance(asked, RepairRequested)
    assert asked.action is RepairAction.RESET
    assert b.node("r0-n01").fitness is Fitness.FULL
    b.fault("r0-n01", xid=63)
    assert b.settle() == []


def test_a_contained_error_that_nobody_else_explains_asks_for_a_reset(b: Bench) -> None:
    b.fault("r0-n01", xid=94)
    assert b.until(125.0, beating=all_nodes(b)) == []
    b.until(135.0, beating=all_nodes(b))
    assert b.types() == ["node.repair_requested"]
    assert b.node("r0-n01").repair is RepairAction.RESET


def test_a_contained_error_beside_a_culprit_asks_for_nothing(b: Bench) -> None:
    b.fault("r0-n01", xid=94)
    b.fault("r0-n02", xid=79)
    b.until(135.0, beating=all_nodes(b))
    assert b.node("r0-n01").repair is None


def test_one_gpu_that_fails_three_jobs_alike_is_told(b: Bench) -> None:
    for job in ("one", "two", "three"):
        b.cell.sit(job, "r0", [1], name=job)
        b.fault("r0-n01", xid=31, gpu=0)
        b.others(JobFinished(job=b.cell.job(job).id))
    assert b.notes().count("signal.repeated") == 1
    assert b.settle() == []


def test_a_second_culprit_makes_the_rack_suspect_and_a_third_is_its_event(b: Bench) -> None:
    b.fault("r0-n00", xid=79)
    b.settle()
    assert b.fleet.rack(b.cell.rack("r0").spec.rack).fitness is RackFitness.GOOD
    b.mono += 10
    b.fault("r0-n01", xid=79)
    said = [entry for entry in b.settle() if isinstance(entry, RackDegraded)]
    assert [entry.fitness for entry in said] == [RackFitness.DEGRADED]
    b.mono += 10
    b.fault("r0-n02", xid=149, mnemonic="NETIR_LINK_DOWN", words=(0, 0))
    said = [entry for entry in b.settle() if isinstance(entry, RackDegraded)]
    assert [entry.fitness for entry in said] == [RackFitness.EVACUATE]


def test_culprits_far_apart_in_time_are_no_event_of_the_rack(b: Bench) -> None:
    for place in range(3):
        b.fault(node_name("r0", place), xid=79)
        b.until(b.mono + 31, beating=all_nodes(b))
    assert "rack.degraded" not in b.types()


def test_in_an_event_of_the_rack_lost_links_blame_no_node_but_a_lost_gpu_does(b: Bench) -> None:
    for place in range(3):
        b.fault(node_name("r0", place), xid=149, mnemonic="NETIR_LINK_DOWN", words=(0, 0))
        b.settle()
    assert b.cell.rack("r0").fitness is RackFitness.EVACUATE
    begin = len(b.entries)
    b.fault("r0-n03", xid=149, mnemonic="NETIR_LINK_DOWN", words=(0, 0))
    b.fault("r0-n04", kind=SignalKind.NVLINK_DOWN)
    assert b.settle() == []
    b.fault("r0-n05", xid=79)
    b.settle()
    assert b.types(begin) == ["node.unfit", "node.repair_requested"]


def test_750_faults_in_a_second_go_in_twelve_commits_and_none_starves() -> None:
    policy = Policy(rack_event_nodes=18, symptom_window_s=1.0)
    b = bench(cell(racks=42, nodes=18, policy=policy, sound=False))
    names = [node_name(f"r{rack}", place) for rack in range(42) for place in range(18)][:750]
    for name in names:
        b.fault(name, xid=79)
    commits = []
    while any(b.node(name).fitness is not Fitness.NONE for name in names):
        (offer,) = [effect for effect in b.turn() if isinstance(effect, Offer)]
        commits.append((type(offer.entries[0]).TYPE, len(offer.entries)))
        b.commit(offer)
    unfit = [size for kind, size in commits if kind == "node.unfit"]
    assert len(unfit) == 12
    assert sum(unfit) == 750
    assert "node.repair_requested" in {kind for kind, _ in commits}, "others have their turn"


def test_a_void_observation_is_made_again_on_what_the_node_is_now(b: Bench) -> None:
    b.fault("r0-n01", xid=79)
    (offer,) = [effect for effect in b.turn() if isinstance(effect, Offer)]
    b.cell.unfit("r0-n01", Fitness.RACK, "ib-down")
    assert b.commit(offer) is False
    again = [entry for entry in b.settle() if isinstance(entry, NodeUnfit)]
    assert [entry.fitness for entry in again] == [Fitness.NONE]


def test_a_fault_seen_before_the_node_joins_counts_when_it_has() -> None:
    made = cell(racks=1, nodes=2)
    made.define(spec_of("r9", 2), join=False)
    b = bench(made)
    b.fault("r9-n00", xid=79)
    assert b.settle() == []
    b.status("r9-n00", "s-new")
    assert [entry.TYPE for entry in b.settle()] == [
        "node.joined",
        "node.unfit",
        "node.repair_requested",
    ]


def test_a_fault_of_an_unknown_node_is_counted_and_told_once_a_minute(b: Bench) -> None:
    for _ in range(100):
        b.fault("r7-n00", xid=79)
    b.until(161.0, beating=all_nodes(b))
    assert b.notes() == ["node.unknown"]


def all_nodes(b: Bench) -> list[str]:
    return [node.name for rack in b.fleet.racks.values() for node in rack.nodes]


def test_what_can_wait_stays_out_of_the_way_between_a_fault_and_its_swap(b: Bench) -> None:
    b.cell.sit("job", "r0", (0, 1))
    b.fault("r0-n01", xid=79)
    assert [entry.TYPE for entry in b.settle()] == ["node.unfit"]
    b.mono += 0.2
    b.cell.wait(0.2)
    assert [entry.TYPE for entry in b.settle()] == ["node.repair_requested"]


def test_who_is_defined_since_is_no_stranger(b: Bench) -> None:
    b.fault("r9-n00", xid=79)
    b.others(RackDefined(rack=spec_of("r9", 1)))
    b.until(161.0, beating=all_nodes(b))
    assert "node.unknown" not in b.notes()


def test_reports_are_counted_by_what_they_are_taken_for(b: Bench) -> None:
    b.fault("r0-n01", xid=79)
    b.settle()
    b.fault("r0-n01", xid=79)
    for place in range(3):
        b.fault(node_name("r1", place), xid=94)
    b.fault("r1-n04", xid=9999)
    b.fault("r1-n04", xid=13)
    assert b.tallied == {"culprit": 1, "known": 1, "symptom": 3, "unmapped": 1, "noted": 1}
