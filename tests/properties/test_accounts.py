"""The states of all GPUs add up to installed time, whatever happens in the cell."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.core.occupancy import GpuState, in_maintenance, rack_use
from rackwright.core.policy.ask import spare_racks
from rackwright.core.rackuse import RackUses
from rackwright.wire.entries.job import JobPlaced, SlicePlacement
from rackwright.wire.entries.node import (
    MaintenanceScheduled,
    NodeCordoned,
    NodeSuspected,
    RackHeld,
    RackIsolated,
    RackRestored,
)
from rackwright.wire.ids import JobId, Owner, RackId
from rackwright.wire.jobs import JobSpec
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from tests.properties.test_fold import NODES, RACKS, WHY, act, offer
from tests.support.accounted import Accounted, accounted
from tests.support.fleets import node_name


def disturb(made: Accounted, data: st.DataObject) -> None:
    """Something that is about racks and not about jobs."""
    rack = RackId(f"r{data.draw(st.integers(0, RACKS - 1))}")
    now, span = made.fleet.time, data.draw(st.floats(1.0, 200.0))
    match data.draw(st.integers(0, 7)):
        case 0:
            offer(made, RackHeld(rack=rack, owner=Owner("op"), until=now + span))
        case 1:
            begin, end = now + span, now + 2 * span
            offer(made, MaintenanceScheduled(racks=(rack,), begin=begin, end=end, by=Owner("op")))
        case 2:
            offer(made, RackIsolated(rack=rack, reason=Reason(code="test")))
        case 3:
            offer(made, RackRestored(rack=rack, reason=Reason(code="test")))
        case 4:
            name = node_name(rack, data.draw(st.integers(0, NODES - 1)))
            known = made.fleet.node(name)
            if known.failed and known.session is not None:
                made.recover(name, probation_s=span)
        case 5:
            doubt_node(made, rack, data)
        case 6:
            share_node(made, rack, data)
        case _:
            job = JobId(f"j{data.draw(st.integers(0, 5))}")
            made.accounts.saved(job, made.fleet.time - data.draw(st.floats(0.0, 100.0)))


def doubt_node(made: Accounted, rack: RackId, data: st.DataObject) -> None:
    """An operator keeps work from a node, or its monitor hears nothing of it."""
    node = made.fleet.node(node_name(rack, data.draw(st.integers(0, NODES - 1))))
    if node.session is not None and data.draw(st.booleans()):
        offer(
            made,
            NodeSuspected(node=node.name, of=node.last, session=node.session, reason=WHY),
        )
        return
    drain = data.draw(st.booleans())
    offer(made, NodeCordoned(node=node.name, drain=drain, by=Owner("op"), why="test"))


def share_node(made: Accounted, rack: RackId, data: st.DataObject) -> None:
    """A job that has some GPUs of one node."""
    name = f"part-{made.fleet.seq}"
    gpus = data.draw(st.integers(1, 3))
    made.queue(name, JobSpec(name=JobId(name), gpus=gpus))
    place = data.draw(st.integers(0, NODES - 1))
    free = [gpu for gpu in range(4) if not made.fleet.rack(rack).taken_gpus(place) >> gpu & 1]
    part = SlicePlacement(
        index=0,
        first_rank=0,
        rack=rack,
        nodes=1 << place,
        gpus=sum(1 << gpu for gpu in free[:gpus]),
    )
    offer(made, JobPlaced(job=JobId(name), membership=1, slices=(part,), reason=WHY))


def look_at_racks(made: Accounted, uses: RackUses) -> None:
    """Counted by sets of nodes and node by node, a rack is the same."""
    now = made.fleet.time
    out, spare = in_maintenance(made.fleet, now), spare_racks(made.fleet)
    for number in made.fleet.racks:
        one, other = (
            count(made.fleet, number, 4, now, out, spare) for count in (uses.of, rack_use)
        )
        assert (+one.states, one.jobs) == (+other.states, other.jobs)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_gpu_second_is_in_one_state(data: st.DataObject) -> None:
    spare = data.draw(st.integers(0, RACKS - 1))
    made = accounted(RACKS, NODES, Policy(spare_racks=spare, slice_nodes=4))
    uses = RackUses()
    began, installed = made.fleet.time, made.fleet.installed_gpus
    for _ in range(data.draw(st.integers(1, 30))):
        step = data.draw(st.integers(0, 2))
        if step == 0:
            made.wait(data.draw(st.floats(0.5, 150.0)))
        else:
            act(made, data) if step == 1 else disturb(made, data)
        look_at_racks(made, uses)
    accounts = made.accounts
    assert set(accounts.seconds) == set(GpuState)
    assert accounts.installed_s == pytest.approx(installed * (made.fleet.time - began))
    assert sum(accounts.seconds.values()) == pytest.approx(accounts.installed_s)
    assert min(accounts.seconds.values()) >= -1e-6
    for known in accounts.jobs.values():
        assert -1e-6 <= known.lost_s <= known.useful_s + 1e-6
        assert known.useful_s <= known.wall_s + 1e-6
