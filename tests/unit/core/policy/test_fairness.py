"""What owners have used counts by age, by weight, and less on lent spares."""

import random
from typing import Any

import pytest

from rackwright.core.policy.fairness import Memory, decayed, standings
from rackwright.core.shares import Usage
from rackwright.core.snapshot import dump, load
from rackwright.wire.ids import Owner, QueueName
from rackwright.wire.policy import Policy
from tests.support.fleets import Cell, cell

HOUR, DAY = 3600.0, 86_400.0
ANN, BOB = Owner("ann"), Owner("bob")


def worked(hours: float = 1.0, *, lent: bool = False, **knobs: Any) -> Cell:
    """Ann has had four nodes for so long."""
    made = cell(1, policy=Policy(**knobs))
    made.sit("a", "r0", range(4), lent=lent)
    made.wait(hours * HOUR)
    return made


def test_use_is_counted_while_it_lasts_and_kept_when_it_ends() -> None:
    made = worked()
    assert standings(made.fleet, made.fleet.time) == {ANN: pytest.approx(16.0, rel=0.06)}
    before = standings(made.fleet, made.fleet.time)
    made.finish("a")
    assert standings(made.fleet, made.fleet.time) == pytest.approx(before)


def test_half_is_forgotten_in_a_half_life() -> None:
    made = worked(fair_half_life_s=2 * DAY)
    made.finish("a")
    now = made.fleet.time + DAY
    first, later = (standings(made.fleet, at)[ANN] for at in (now, now + 2 * DAY))
    assert later == pytest.approx(first / 2)


@pytest.mark.parametrize("ended", [False, True], ids=["it runs", "it has ended"])
def test_weights_of_owner_and_queue_and_what_lent_spares_count(ended: bool) -> None:
    def used(made: Cell) -> float:
        if ended:
            made.finish("a")
        return standings(made.fleet, made.fleet.time)[ANN]

    plain = used(worked())
    assert plain == pytest.approx(16.0, rel=0.06)
    assert used(worked(owner_weight={ANN: 4.0})) == pytest.approx(plain / 4)
    assert used(worked(queue_weight={QueueName("default"): 2.0})) == pytest.approx(plain / 2)
    assert used(worked(lent=True)) == pytest.approx(plain / 4)
    assert used(worked(lent=True, lent_weight=0.5)) == pytest.approx(plain / 2)


def test_days_are_kept_apart_and_old_ones_dropped() -> None:
    used = Usage().with_(2, 1, 0.5 * DAY).until(2.25 * DAY)
    assert [(one.day, one.gpu_s, one.lent_s) for one in used.days] == [
        (0, DAY, 0.5 * DAY),
        (1, 2 * DAY, DAY),
        (2, 0.5 * DAY, 0.25 * DAY),
    ]
    assert len(used.until(500 * DAY).days) == 64
    assert used.until(DAY).at == used.at


@pytest.mark.parametrize("seed", range(5))
def test_use_adds_up_whatever_the_steps(seed: int) -> None:
    rng = random.Random(seed)
    used, minutes = Usage(), 0
    days: dict[int, list[float]] = {}
    for _ in range(300):
        gpus, lent, lasts = rng.randrange(4), rng.randrange(3), rng.randrange(300)
        used = used.with_(gpus - used.gpus, lent - used.lent, minutes * 60.0)
        for minute in range(minutes, minutes + lasts):  # here by the minute, there at once
            day = days.setdefault(minute // 1440, [0.0, 0.0])
            day[0] += gpus * 60.0
            day[1] += lent * 60.0
        minutes += lasts
    used = used.until(minutes * 60.0)
    told = {one.day: [one.gpu_s, one.lent_s] for one in used.days if one.gpu_s or one.lent_s}
    assert told == {day: both for day, both in days.items() if any(both)}, f"seed {seed}"


@pytest.mark.parametrize("gpus", [0, 3])
def test_what_is_remembered_of_past_days_changes_no_standing(gpus: int) -> None:
    policy = Policy(fair_half_life_s=3 * DAY)
    usage = Usage().with_(2, 1, 0.3 * DAY).with_(gpus - 2, -1, 4.6 * DAY)
    for now in (4.7 * DAY, 5.2 * DAY, 9.9 * DAY):
        plain = sum(
            (day.gpu_s + policy.lent_weight * day.lent_s)
            / HOUR
            * 2.0 ** (-max(0.0, now - (day.day + 0.5) * DAY) / (3 * DAY))
            for day in usage.until(now).days
        )
        assert decayed(usage, policy, now) == pytest.approx(plain)


def test_one_who_asks_again_and_again_gets_the_same_as_one_who_asks_once() -> None:
    made = worked()
    memory: Memory = {}
    for hours in (0.0, 30.0, 1.0):
        made.wait(hours * HOUR)
        now = made.fleet.time
        assert standings(made.fleet, now, memory) == standings(made.fleet, now)
    made.finish("a")
    later = made.fleet.time + DAY
    assert standings(made.fleet, later, memory) == standings(made.fleet, later)


def test_a_snapshot_keeps_it() -> None:
    made = worked()
    again = load(dump(made.fleet))
    assert dict(again.usage) == dict(made.fleet.usage)
