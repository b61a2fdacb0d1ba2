"""Every GPU is in exactly one state."""

from collections import Counter

import pytest

from benchmarks.fleets import filled_cell
from benchmarks.trace.states import State, snapshot


@pytest.mark.parametrize("seed", range(8))
def test_the_states_add_up_to_what_is_installed(seed: int) -> None:
    fleet = filled_cell(12, 0.7, seed)
    nodes, gpus = snapshot(fleet)
    assert len(nodes) == fleet.installed_nodes
    assert sum(gpus.values()) == fleet.installed_gpus
    assert set(nodes) <= {state.value for state in State}


def test_free_nodes_are_spares_first_and_scraps_where_no_slice_fits() -> None:
    fleet = filled_cell(12, 0.7, 1)
    nodes, _ = snapshot(fleet)
    for number, rack in sorted(fleet.racks.items()):
        found = Counter(nodes[number * 18 : number * 18 + 18])
        spares = min(rack.usable.bit_count(), rack.shape.target)
        assert found[State.SPARE] == spares
        assert (found[State.WHOLE_FREE] > 0) == (rack.usable.bit_count() - spares > 0) * (
            rack.usable.bit_count() >= 16
        )
