"""The planner's figures, to the digit where a source gives digits, else by counting every case."""

from itertools import product

import pytest

from rackwright.core.policy.capacity import (
    Disagreement,
    Impossible,
    break_even,
    mean_time_between_failures,
    reliability,
    unswappable_per_year,
    usable_nodes,
)


@pytest.mark.parametrize(
    ("slice_nodes", "nodes"), [(16, 2037), (18, 1602), (9, 1953), (8, 2043), (17, 2068)]
)
def test_128_racks_of_18_with_2_percent_down(slice_nodes: int, nodes: int) -> None:
    usable = usable_nodes(racks=128, nodes_per_rack=18, slice_nodes=slice_nodes, unavailable=0.02)
    assert round(usable.mean) == nodes


def test_16_gives_27_percent_more_than_18_and_4_more_than_9() -> None:
    sixteen, eighteen, nine = (
        usable_nodes(racks=128, nodes_per_rack=18, slice_nodes=size, unavailable=0.02).mean
        for size in (16, 18, 9)
    )
    assert round(100 * (sixteen / eighteen - 1)) == 27
    assert round(100 * (sixteen / nine - 1)) == 4


def counted(racks: int, nodes: int, size: int, unavailable: float) -> dict[int, float]:
    """Every state of every node of a small cell, one by one."""
    found: dict[int, float] = {}
    for state in product((0, 1), repeat=racks * nodes):
        chance = 1.0
        for healthy in state:
            chance *= 1 - unavailable if healthy else unavailable
        usable = sum(
            size * (sum(state[rack * nodes : (rack + 1) * nodes]) // size) for rack in range(racks)
        )
        found[usable] = found.get(usable, 0.0) + chance
    return found


def quantile(found: dict[int, float], share: float) -> int:
    total = 0.0
    for usable in sorted(found):
        total += found[usable]
        if total >= share:
            return usable
    return max(found)


@pytest.mark.parametrize("unavailable", [0.0, 0.07, 0.4, 1.0])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_small_cell_agrees_with_counting(size: int, unavailable: float) -> None:
    found = counted(3, 5, size, unavailable)
    usable = usable_nodes(racks=3, nodes_per_rack=5, slice_nodes=size, unavailable=unavailable)
    assert usable.mean == pytest.approx(sum(n * chance for n, chance in found.items()))
    assert (usable.p10, usable.p50) == (quantile(found, 0.10), quantile(found, 0.50))


def test_quantiles_of_a_cell() -> None:
    usable = usable_nodes(racks=128, nodes_per_rack=18, slice_nodes=16, unavailable=0.02)
    assert (usable.p10, usable.p50) == (2016, 2048)


def test_a_cell_of_14000_racks_is_answered() -> None:
    usable = usable_nodes(racks=14_000, nodes_per_rack=18, slice_nodes=1, unavailable=0.02)
    assert usable.mean == pytest.approx(14_000 * 18 * 0.98)
    assert 0 < usable.mean - usable.p10 < 0.001 * usable.mean


def test_490_days_a_node_are_27_a_rack_and_5_hours_a_cell() -> None:
    between = mean_time_between_failures(node_days=490, nodes_per_rack=18, racks=128)
    assert round(between.rack_days) == 27
    assert round(between.cell_hours, 1) == 5.1


@pytest.mark.parametrize(
    ("repair_days", "down_percent", "per_year"),
    [
        (4 / 24, 0.03, (1660, 9, 0.03, 0)),
        (1, 0.20, (1618, 53, 0.9, 0.01)),
        (3, 0.61, (1523, 148, 7.7, 0.3)),
        (7, 1.4, (1349, 304, 36, 3)),
        (10, 2.0, (1232, 394, 67, 8)),
    ],
)
def test_unswappable_interruptions_of_140_racks(
    repair_days: float, down_percent: float, per_year: tuple[float, ...]
) -> None:
    node = reliability(mtbf_days=490, repair_days=repair_days)
    rates = [
        unswappable_per_year(
            racks=140,
            slice_nodes=16,
            spares=spares,
            mtbf_days=node.mtbf_days,
            unavailable=node.unavailable,
        )
        for spares in range(4)
    ]
    digits = [len(str(figure).partition(".")[2]) for figure in per_year]
    assert tuple(round(rate, n) for rate, n in zip(rates, digits, strict=True)) == per_year
    down_digits = len(str(down_percent).partition(".")[2])
    assert round(100 * node.unavailable, down_digits) == down_percent


def test_17_beats_16_at_2_percent_and_loses_from_3() -> None:
    def ahead(unavailable: float) -> bool:
        seventeen, sixteen = (
            usable_nodes(racks=128, nodes_per_rack=18, slice_nodes=n, unavailable=unavailable).mean
            for n in (17, 16)
        )
        return seventeen > sixteen

    assert [ahead(percent / 100) for percent in (0.5, 1, 2, 3, 4)] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_break_even_between_slice_sizes() -> None:
    flip = break_even(nodes_per_rack=18, slice_nodes=17, other=16)
    assert flip == pytest.approx(0.0236, abs=5e-5)
    assert break_even(nodes_per_rack=18, slice_nodes=18, other=16) == pytest.approx(
        0.0065, abs=5e-5
    )


def test_16_stays_within_1_percent_of_8_until_3_3_percent_are_down() -> None:
    flip = break_even(nodes_per_rack=18, slice_nodes=16, other=8, shortfall=0.01)
    assert flip == pytest.approx(0.033, abs=5e-4)


def test_a_size_that_never_wins_has_no_break_even() -> None:
    assert break_even(nodes_per_rack=18, slice_nodes=16, other=8) is None


def test_two_figures_give_the_third() -> None:
    by_times = reliability(mtbf_days=490, repair_days=10)
    assert by_times.unavailable == pytest.approx(0.02)
    assert reliability(mtbf_days=490, unavailable=0.02).repair_days == pytest.approx(10)
    assert reliability(repair_days=10, unavailable=0.02).mtbf_days == pytest.approx(490)
    assert reliability(mtbf_days=490, repair_days=10, unavailable=0.02) == by_times


def test_three_figures_that_disagree_say_what_the_third_would_be() -> None:
    with pytest.raises(Disagreement, match=r"unavailable: 0\.02 .* make it 0\.002") as caught:
        reliability(mtbf_days=490, repair_days=1, unavailable=0.02)
    assert caught.value.implied == pytest.approx(1 / 491)


@pytest.mark.parametrize(
    "figures",
    [
        {},
        {"mtbf_days": 490.0},
        {"mtbf_days": 0.0, "repair_days": 1.0},
        {"mtbf_days": 490.0, "unavailable": 1.0},
        {"repair_days": -1.0, "unavailable": 0.1},
    ],
)
def test_figures_that_cannot_be(figures: dict[str, float]) -> None:
    with pytest.raises(Impossible):
        reliability(**figures)


@pytest.mark.parametrize(
    ("racks", "nodes", "size", "unavailable", "figure"),
    [
        (0, 18, 16, 0.02, "racks"),
        (1, 0, 1, 0.02, "nodes per rack"),
        (1, 18, 19, 0.02, "slice nodes"),
        (1, 18, 0, 0.02, "slice nodes"),
        (1, 18, 16, 1.1, "unavailable"),
        (1, 18, 16, -0.1, "unavailable"),
    ],
)
def test_cells_that_cannot_be(
    racks: int, nodes: int, size: int, unavailable: float, figure: str
) -> None:
    with pytest.raises(Impossible) as caught:
        usable_nodes(racks=racks, nodes_per_rack=nodes, slice_nodes=size, unavailable=unavailable)
    assert caught.value.figure == figure
