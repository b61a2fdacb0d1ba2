"""Cutting a job into slices: sizes, ranks, warnings, and what is refused with what to ask for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.core.policy.cut import Cut, cut, least_replicas
from rackwright.core.topology import Topology
from rackwright.wire.ids import JobId, QueueName
from rackwright.wire.jobs import Group, JobSpec, Parallel, TopologyNeed, Uneven
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from tests.support.fleets import rack_spec


def cell(racks: int = 8, nodes: int = 18, gpus: int = 4) -> Topology:
    made = Topology()
    for number in range(racks):
        made = made.with_rack(number, rack_spec(f"r{number}", nodes, gpus=gpus))
    return made


def spec(**fields: Any) -> JobSpec:
    return JobSpec(name=JobId("j"), **fields)


def sizes(made: Cut | Reason) -> list[int]:
    assert isinstance(made, Cut), made
    return [piece.nodes for piece in made.pieces]


def sentence(made: Cut | Reason) -> str:
    assert isinstance(made, Reason), made
    said = made.numbers
    return f"{said['field']}: {said['is']} {said['why']}; ask {said['ask']}"


def of(policy: Policy | None = None, **fields: Any) -> list[int]:
    return sizes(cut(spec(**fields), policy or Policy(), cell()))


def test_up_to_a_slice_is_one_slice() -> None:
    assert [of(nodes=nodes) for nodes in (1, 2, 15, 16)] == [[1], [2], [15], [16]]


def test_between_slice_and_rack_is_one_slice_with_a_warning_of_few_spares() -> None:
    made = cut(spec(nodes=17), Policy(), cell())
    assert sizes(made) == [17]
    assert isinstance(made, Cut)
    assert [(one.code, one.numbers["spares"]) for one in made.warnings] == [("slice.wide", 1)]
    assert of(nodes=18) == [18]


def test_a_wide_slice_that_leaves_its_spares_needs_no_warning() -> None:
    policy = Policy(queue_slice_nodes={QueueName("small"): 8})
    made = cut(spec(nodes=12, queue=QueueName("small")), policy, cell())
    assert sizes(made) == [12]
    assert isinstance(made, Cut)
    assert made.warnings == ()


@pytest.mark.parametrize("need", [TopologyNeed.PREFERRED, TopologyNeed.ANY])
def test_a_wide_slice_only_where_topology_is_required(need: TopologyNeed) -> None:
    assert of(nodes=17, topology=need) == [16, 1]


def test_a_wide_slice_only_if_the_owner_gave_no_size() -> None:
    assert of(nodes=17, slice_nodes=16) == [16, 1]


@pytest.mark.parametrize(
    ("size", "nodes", "wanted"),
    [
        (8, 128, [8] * 16),
        (9, 36, [9] * 4),
        (16, 128, [16] * 8),
        (17, 34, [17] * 2),
        (18, 54, [18] * 3),
    ],
)
def test_slice_sizes_of_the_owner_of_the_cell_and_of_a_queue(
    size: int, nodes: int, wanted: list[int]
) -> None:
    by_queue = Policy(queue_slice_nodes={QueueName("default"): size}, slice_nodes=4)
    assert of(nodes=nodes, slice_nodes=size) == wanted
    assert of(Policy(slice_nodes=size), nodes=nodes) == wanted
    assert of(by_queue, nodes=nodes) == wanted


def test_the_policy_cannot_ask_for_more_than_a_rack_has() -> None:
    made = cut(spec(nodes=8), Policy(slice_nodes=16), cell(nodes=4))
    assert sizes(made) == [4, 4]


def test_uneven_last_is_smaller_with_a_warning() -> None:
    made = cut(spec(nodes=40), Policy(), cell())
    assert sizes(made) == [16, 16, 8]
    assert isinstance(made, Cut)
    assert [(one.code, one.numbers["ask"]) for one in made.warnings] == [
        ("slice.uneven", "32 or 48")
    ]


def test_uneven_balanced_differs_by_at_most_the_multiple() -> None:
    assert of(nodes=40, uneven=Uneven.BALANCED) == [14, 13, 13]
    assert of(nodes=40, uneven=Uneven.BALANCED, slice_multiple=4) == [16, 12, 12]
    assert of(nodes=32, uneven=Uneven.BALANCED) == [16, 16]


def test_uneven_refuse_names_the_sizes_that_work() -> None:
    made = cut(spec(nodes=40, uneven=Uneven.REFUSE), Policy(), cell())
    assert sentence(made) == "nodes: 40 is no multiple of the slice of 16; ask 32 or 48"
    assert of(nodes=32, uneven=Uneven.REFUSE) == [16, 16]


def test_slices_are_multiples() -> None:
    assert of(Policy(slice_nodes=18), nodes=32, slice_multiple=4) == [16, 16]
    made = cut(spec(nodes=30, slice_multiple=4), Policy(), cell())
    assert sentence(made) == "nodes: 30 is no multiple of slice_multiple 4; ask 28 or 32"
    made = cut(spec(nodes=32, slice_multiple=4, slice_nodes=9), Policy(), cell())
    why = "does not divide into steps of slice_multiple 4"
    assert sentence(made) == f"slice_nodes: 9 {why}; ask 8 or 12"


def test_a_slice_larger_than_a_rack_is_refused() -> None:
    made = cut(spec(nodes=64, slice_nodes=32), Policy(), cell())
    why = "is more than the 18 nodes of the largest rack"
    assert sentence(made) == f"slice_nodes: 32 {why}; ask 18 or fewer"


def test_gpus_are_part_of_a_node_or_whole_nodes() -> None:
    part = cut(spec(gpus=3), Policy(), cell())
    assert isinstance(part, Cut)
    assert [(piece.nodes, piece.gpus) for piece in part.pieces] == [(1, 3)]
    whole = cut(spec(gpus=4), Policy(), cell())
    assert isinstance(whole, Cut)
    assert [(piece.nodes, piece.gpus) for piece in whole.pieces] == [(1, 0)]
    assert of(gpus=128) == [16, 16]


def test_gpus_between_nodes_are_refused_with_what_to_ask() -> None:
    made = cut(spec(gpus=5), Policy(), cell())
    why = "is more than one node's 4 and no whole number of nodes"
    assert sentence(made) == f"gpus: 5 {why}; ask 4 or 8"


def test_gpus_in_a_cell_without_any() -> None:
    made = cut(spec(gpus=1), Policy(), cell(gpus=0))
    assert sentence(made) == "gpus: 1 no node of this cell has GPUs; ask nodes instead"


def test_gpus_count_in_nodes_of_the_larger_model() -> None:
    mixed = cell(2, gpus=4).with_rack(2, rack_spec("big", 18, gpus=8))
    made = cut(spec(gpus=16), Policy(), mixed)
    assert isinstance(made, Cut)
    assert (sizes(made), made.node_gpus) == ([2], 8)


def test_tp_and_ep_must_divide_every_slice() -> None:
    assert of(nodes=32, parallel=Parallel(tp=4, ep=16)) == [16, 16]
    made = cut(spec(nodes=24, parallel=Parallel(tp=4, ep=16)), Policy(), cell())
    assert sentence(made) == (
        "parallel: 64 is tp x ep and does not divide a slice's 32 GPUs; ask 32"
    )
    made = cut(spec(nodes=9, parallel=Parallel(tp=8)), Policy(), cell())
    assert sentence(made).endswith("does not divide a slice's 36 GPUs; ask 6 or 9")


def test_groups_are_cut_each_with_ranks_in_order() -> None:
    groups = (
        Group(name=JobId("lead"), nodes=1),
        Group(name=JobId("work"), nodes=20, replicas=2, slice_nodes=10),
    )
    made = cut(spec(groups=groups), Policy(), cell())
    assert isinstance(made, Cut)
    assert [
        (piece.index, piece.group, piece.replica, piece.first_rank, piece.nodes)
        for piece in made.pieces
    ] == [
        (0, 0, 0, 0, 1),
        (1, 1, 0, 1, 10),
        (2, 1, 0, 11, 10),
        (3, 1, 1, 21, 10),
        (4, 1, 1, 31, 10),
    ]


def test_fewer_replicas() -> None:
    groups = (
        Group(name=JobId("a"), nodes=2, replicas=4, min_replicas=1),
        Group(name=JobId("b"), nodes=1, replicas=2),
    )
    asked = spec(groups=groups)
    assert least_replicas(asked) == (1, 2)
    assert sizes(cut(asked, Policy(), cell(), (1, 2))) == [2, 1, 1]


def test_a_group_may_have_a_topology_of_its_own() -> None:
    groups = (
        Group(name=JobId("a"), nodes=2),
        Group(name=JobId("b"), nodes=2, topology=TopologyNeed.ANY),
    )
    made = cut(spec(groups=groups), Policy(), cell())
    assert isinstance(made, Cut)
    assert made.needs == (TopologyNeed.REQUIRED, TopologyNeed.ANY)


@given(
    nodes=st.integers(1, 200),
    size=st.none() | st.integers(1, 18),
    multiple=st.integers(1, 6),
    uneven=st.sampled_from(Uneven),
    need=st.sampled_from(TopologyNeed),
)
def test_every_node_is_in_one_slice_that_a_rack_can_hold(
    nodes: int, size: int | None, multiple: int, uneven: Uneven, need: TopologyNeed
) -> None:
    asked = spec(
        nodes=nodes, slice_nodes=size, slice_multiple=multiple, uneven=uneven, topology=need
    )
    made = cut(asked, Policy(), cell())
    if isinstance(made, Reason):
        assert {"field", "is", "why", "ask"} <= set(made.numbers)
        return
    parts = sizes(made)
    assert sum(parts) == nodes
    assert max(parts) <= 18
    assert all(part % multiple == 0 for part in parts)
    if uneven is Uneven.BALANCED:
        assert max(parts) - min(parts) <= multiple
    assert [piece.first_rank for piece in made.pieces] == [
        sum(parts[:index]) for index in range(len(parts))
    ]
