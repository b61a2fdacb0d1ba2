"""The planner: published figures as its answer gives them, and what it says where it cannot."""

import pytest

from rackwright.core.policy.advice import Rule, advised, crossings, stretches
from rackwright.core.policy.capacity import Impossible, reliability
from rackwright.core.policy.interruptions import Habits, spare_lines
from rackwright.core.policy.planning import Answer, Cell, Question, answer
from rackwright.core.policy.rackfaults import RackFault, rack_fault, rack_up

NVL72 = Cell(racks=128, nodes_per_rack=18, gpus_per_node=4)
SIZES = (8, 9, 16, 17, 18)


def plan(cell: Cell = NVL72, unavailable: float = 0.02, **more: object) -> Answer:
    return answer(Question(cell=cell, unavailable=unavailable, **more))  # type: ignore[arg-type]


def test_128_racks_at_2_percent() -> None:
    """The article the project started from: 2,037 nodes in slices of 16, 1,602 of 18, 27 % more;
    4 % more than slices of 9; under 1 % fewer than slices of 8."""
    found = plan()
    mean = {line.slice_nodes: line.usable.mean for line in found.sizes}
    assert (round(mean[16]), round(mean[18])) == (2037, 1602)
    assert round(100 * (mean[16] / mean[18] - 1)) == 27
    assert round(100 * (mean[16] / mean[9] - 1)) == 4
    assert 0 < mean[8] / mean[16] - 1 < 0.01
    assert found.recommendation.slice_nodes == 16


def test_16_stays_within_1_percent_of_8_until_3_3_percent() -> None:
    """The same article."""
    told = plan().recommendation.reasons
    assert "slices of 8 gain less than 1 % on it up to 3.3% unavailability" in told


def test_490_days_a_node_are_27_a_rack_and_5_hours_a_cell() -> None:
    """The same article; 2 % and 490 days together are repairs of ten days (policies, 1.6)."""
    node = reliability(mtbf_days=490, unavailable=0.02)
    between = plan(node=node).between
    assert between is not None
    assert round(between.rack_days) == 27
    assert round(between.cell_hours) == 5
    assert node.repair_days == pytest.approx(10)


def test_17_beats_16_up_to_2_36_percent() -> None:
    """Policies, 1.6 and the issue: 17 beats 16 at 2 % and below and loses from 3 %."""
    found = [one for one in crossings(18, SIZES) if {one.below, one.above} == {16, 17}]
    assert [(one.below, round(one.unavailable, 4)) for one in found] == [(17, 0.0236)]


def test_crossings_are_where_means_are_equal_and_all_of_a_pair_are_told() -> None:
    found = [one for one in crossings(18, SIZES) if {one.below, one.above} == {9, 16}]
    assert [(one.below, round(one.unavailable, 3)) for one in found] == [(9, 0.014), (16, 0.123)]


@pytest.mark.parametrize(
    ("hours", "exhausted"),
    [(24, (1618, 53, 0.9, 0.01)), (72, (1523, 148, 7.7, 0.3)), (240, (1232, 394, 67, 8))],
)
def test_what_spares_buy(hours: float, exhausted: tuple[float, ...]) -> None:
    """Policies, 1.6: 140 racks, 490 days, exhaustions a cell-year for 0 to 3 spares."""
    lines = spare_lines(
        racks=140,
        nodes_per_rack=18,
        slice_nodes=16,
        most=3,
        node=reliability(mtbf_days=490, repair_days=hours / 24),
        faults=(),
        habits=Habits(),
    )
    digits = [len(str(figure).partition(".")[2]) for figure in exhausted]
    found = [round(one.unswappable, n) for one, n in zip(lines, digits, strict=True)]
    assert tuple(found) == exhausted
    assert [one.fits for one in lines] == [True, True, True, False]
    lost = [one.lost_with_swap_gpu_h for one in lines]
    assert all(one.lost_with_swap_gpu_h < one.lost_without_swap_gpu_h for one in lines)
    assert lost[0] > lost[1] > lost[2] > lost[3]


def test_what_a_fault_costs() -> None:
    """Policies, 1.10, for 512 GPUs and checkpoints every half hour: a swap 13 GPU-hours or 166,
    a move 26 or 179, a restart 213; a rack of 16 without spare loses 5.8 a day."""
    keep, reload = Habits(reload=False), Habits()
    assert [round(x.swap_gpu_h()) for x in (keep, reload)] == [13, 166]
    assert [round(x.move_gpu_h()) for x in (keep, reload)] == [26, 179]
    assert round(reload.restart_gpu_h()) == 213
    assert 16 / 490 * reload.move_gpu_h() == pytest.approx(5.85, abs=0.01)


def test_usable_nodes_do_not_depend_on_spares_but_a_slice_too_many_gives_way() -> None:
    node = reliability(mtbf_days=490, repair_days=1)
    line = plan(node=node, sizes=(9,)).size(9)
    assert [(one.spares, one.slices_given_up) for one in line.spares[:2]] == [(0, 0), (1, 1)]


@pytest.mark.parametrize(("hours", "spares"), [(4, 1), (24, 2), (72, 2), (240, 2)])
def test_advised_spares_follow_the_repair_time(hours: float, spares: int) -> None:
    """At most one exhaustion a rack in ten years (policies, 1.11), of those that cost no slice."""
    node = reliability(mtbf_days=490, repair_days=hours / 24)
    found = plan(unavailable=node.unavailable, node=node).recommendation
    assert found.spares == spares
    told = any("shorter repairs help more" in reason for reason in found.reasons)
    assert told == (hours == 240)


def test_without_rates_no_spares_are_advised() -> None:
    found = plan()
    assert found.recommendation.spares is None
    assert found.between is None
    assert all(not line.spares for line in found.sizes)


def test_rack_faults_take_whole_racks() -> None:
    """One a rack in two years is 70 a year in 140 racks (policies, 1.6)."""
    fault = rack_fault("switch=730/4")
    node = reliability(mtbf_days=490, repair_days=1)
    cell = Cell(racks=140, nodes_per_rack=18, gpus_per_node=4)
    plain = plan(cell, node.unavailable, node=node)
    faulty = plan(cell, node.unavailable, node=node, faults=(fault,))
    assert faulty.size(16).spares[2].rack_faults == pytest.approx(70)
    ratio = faulty.size(16).usable.mean / plain.size(16).usable.mean
    assert ratio == pytest.approx(rack_up([fault]))
    assert faulty.between is not None
    assert plain.between is not None
    assert faulty.between.rack_days < plain.between.rack_days
    assert any("no spare in the rack helps" in one for one in faulty.recommendation.reasons)


def test_the_advice_flips_where_it_says() -> None:
    found = stretches(18, SIZES, Rule())
    assert [one.slice_nodes for one in found] == [16, 8]
    edge = found[0].to
    assert edge == pytest.approx(0.0427, abs=1e-4)
    assert advised(18, SIZES, edge - 1e-4, Rule()) == 16
    assert advised(18, SIZES, edge + 1e-4, Rule()) == 8


def test_without_groups_any_size_may_win() -> None:
    assert advised(18, SIZES, 0.002, Rule(groups=False)) == 9
    assert advised(18, SIZES, 0.02, Rule(groups=False)) == 17
    assert advised(18, SIZES, 0.04, Rule(groups=False)) == 16
    assert advised(18, (17, 18), 0.02, Rule()) == 17


def test_quantiles_are_in_order() -> None:
    for line in plan().sizes:
        usable = line.usable
        assert usable.p1 <= usable.p10 <= usable.p50 <= usable.p90
        assert usable.p1 < usable.mean


@pytest.mark.parametrize(
    ("more", "figure"),
    [
        ({"sizes": (16, 19)}, "slice nodes"),
        ({"sizes": (0,)}, "slice nodes"),
        ({"gpu_hour_price": -1.0}, "GPU-hour price"),
        ({"most_spares": -1, "node": reliability(mtbf_days=490, repair_days=1)}, "spares"),
    ],
)
def test_impossible_questions_name_the_figure(more: dict[str, object], figure: str) -> None:
    with pytest.raises(Impossible) as caught:
        plan(**more)  # type: ignore[arg-type]
    assert caught.value.figure == figure


@pytest.mark.parametrize(
    "text", ["switch", "switch=730", "switch=x/4", "=730/4", "switch=0/4", "switch=730/-1"]
)
def test_a_rack_fault_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"fault|must be from 0.001"):
        rack_fault(text)


def test_a_rack_fault_as_typed() -> None:
    assert rack_fault("backplane=7300/24") == RackFault(
        name="backplane", mtbi_days=7300, repair_hours=24
    )


@pytest.mark.parametrize("name", ["racks", "nodes_per_rack", "gpus_per_node"])
def test_a_cell_of_nothing(name: str) -> None:
    figures = {"racks": 1, "nodes_per_rack": 18, "gpus_per_node": 4, name: 0}
    with pytest.raises(Impossible):
        Cell(**figures)
