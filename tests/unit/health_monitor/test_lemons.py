"""History goes with the hardware and stays with the slot."""

from dataclasses import replace
from typing import Any

import pytest

from rackwright.core.fleet import Fleet
from rackwright.core.snapshot import dump, load
from rackwright.wire.entries.node import NodeRecovered, NodeUnfit, RepairRequested
from rackwright.wire.ids import NodeId
from rackwright.wire.message import Entry
from rackwright.wire.nodes import Fitness, Hardware
from rackwright.wire.wishes import Repaired
from tests.support.fleets import cell
from tests.support.monitors import Bench, bench

ONE, OTHER = "r0-n01", "r0-n02"


@pytest.fixture
def b() -> Bench:
    return bench(cell(racks=1, nodes=4))


def put(b: Bench, name: str, serial: str) -> list[Entry]:
    """This hardware is in that slot now, and its agent starts."""
    b.beats += 1
    event: Any = b.make_status(name, session=f"x{b.beats}", boot=f"x{b.beats}")
    found = Hardware(serial=serial, gpus=4, gpu_model="gb200")
    b.tell(replace(event, status=replace(event.status, hardware=found)))
    return b.settle()


def break_down(b: Bench, name: str) -> None:
    """A fault that only a repair answers."""
    b.mono += 40.0
    b.fault(name, xid=64)
    b.settle()


def let_in(b: Bench, name: str) -> list[Entry]:
    b.mono += 40.0
    b.wish(Repaired(node=NodeId(name)))
    return b.settle()


def codes(entries: list[Entry]) -> list[str]:
    kinds = NodeUnfit | RepairRequested | NodeRecovered
    return [one.reason.code for one in entries if isinstance(one, kinds)]


def last_request(b: Bench) -> RepairRequested:
    return [one for one in b.entries if isinstance(one, RepairRequested)][-1]


def test_a_fault_is_noted_of_slot_and_hardware(b: Bench) -> None:
    break_down(b, ONE)
    assert [fault.serial for fault in b.node(ONE).faults] == [f"sn-{ONE}"]
    assert [fault.code for fault in b.fleet.histories[f"sn-{ONE}"].faults] == ["xid.64"]
    assert b.fleet.histories.get(f"sn-{OTHER}") is None


def test_hardware_that_moves_with_an_unanswered_fault_is_out_where_it_comes_to(b: Bench) -> None:
    break_down(b, ONE)
    assert codes(put(b, OTHER, f"sn-{ONE}")) == ["moved", "moved"]
    node = b.node(OTHER)
    assert (node.fitness, node.faults) == (Fitness.NONE, ()), "the slot has had no fault"
    assert codes(let_in(b, OTHER)) == ["repaired.inspect"]
    assert b.node(OTHER).fitness is Fitness.FULL
    assert codes(put(b, OTHER, f"sn-{ONE}")) == [], "it has been let in"


def test_hardware_that_was_let_in_may_move(b: Bench) -> None:
    break_down(b, ONE)
    let_in(b, ONE)
    assert codes(put(b, OTHER, f"sn-{ONE}")) == []
    assert b.node(OTHER).fitness is Fitness.FULL


def test_faults_of_hardware_in_several_slots_make_a_lemon(b: Bench) -> None:
    for name in (ONE, OTHER, "r0-n03"):
        put(b, name, "wanderer")
        if b.node(name).fitness is Fitness.NONE:
            let_in(b, name)
        break_down(b, name)
    asked = last_request(b)
    assert asked.reason.code == "lemon.hardware"
    assert asked.reason.numbers == {"faults": 3, "serial": "wanderer"}


def test_a_slot_that_eats_boards_is_seen(b: Bench) -> None:
    for serial in ("first", "second", "third"):
        put(b, ONE, serial)
        if b.node(ONE).fitness is Fitness.NONE:
            let_in(b, ONE)
        break_down(b, ONE)
    asked = last_request(b)
    assert asked.reason.code == "lemon.slot"
    assert asked.reason.numbers == {"faults": 3, "boards": 3}


def test_histories_outlive_a_snapshot(b: Bench) -> None:
    break_down(b, ONE)
    let_in(b, ONE)
    again: Fleet = load(dump(b.fleet))
    assert dict(again.histories) == dict(b.fleet.histories)
    assert again.histories[f"sn-{ONE}"].cleared_at == b.fleet.time
