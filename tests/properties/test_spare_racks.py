"""Which racks are the cell's spares is read from shapes; a scan of the cell says the same."""

from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.core.fleet import Fleet
from rackwright.core.policy.ask import spare_racks
from rackwright.wire.policy import Policy
from tests.properties.test_accounts import disturb
from tests.properties.test_fold import NODES, RACKS, act
from tests.support.accounted import Accounted, accounted

WHOLE = 3


def scanned(fleet: Fleet) -> int:
    """The rule as the page of policies says it, rack by rack and tenant by tenant."""
    room: list[tuple[int, int]] = []
    for number, rack in fleet.racks.items():
        if not all(one.lent and not one.pinned for one in rack.tenancies):
            continue
        left = sum(
            not any(not one.lent for one in rack.tenants_at(place))
            and bool(rack.takes >> place & 1)
            for place in range(len(rack.nodes))
        )
        if left >= WHOLE:
            room.append((left, number))
    kept = sorted(room, reverse=True)[: fleet.policy.spare_racks]
    return sum(1 << number for _, number in kept)


def lend(made: Accounted, data: st.DataObject) -> None:
    """Work that is lent nodes of some rack, where some are free, or a few GPUs of one."""
    rack = made.rack(f"r{data.draw(st.integers(0, RACKS - 1))}")
    free = [place for place in range(NODES) if rack.usable >> place & 1]
    if not free:
        return
    name, some = f"lent-{made.fleet.seq}", data.draw(st.integers(1, len(free)))
    if data.draw(st.booleans()):
        made.sit(name, rack.spec.rack, free[:1], gpus=0b11, lent=True)
    else:
        made.sit(name, rack.spec.rack, free[:some], lent=True)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_spare_racks_of_a_cell_are_those_of_a_scan(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, RACKS - 1))
    made = accounted(RACKS, NODES, Policy(spare_racks=count, slice_nodes=WHOLE))
    for _ in range(data.draw(st.integers(1, 25))):
        match data.draw(st.integers(0, 4)):
            case 0:
                made.wait(data.draw(st.floats(0.5, 150.0)))
            case 1:
                act(made, data)
            case 2:
                disturb(made, data)
            case _:
                lend(made, data)
        assert spare_racks(made.fleet) == scanned(made.fleet)
