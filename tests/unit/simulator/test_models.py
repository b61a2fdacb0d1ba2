"""What the simulator assumes of jobs: their sizes and lengths, their habits, their speed."""

import pytest

from rackwright.simulator.fragmentation import block_fragmentation
from rackwright.simulator.generator import (
    ITP,
    KALOS,
    KALOS_LENGTHS,
    LONGEST_S,
    generated,
    length,
    mean_length,
    scaled,
)
from rackwright.simulator.mixture import Habits, jobs
from rackwright.simulator.speed import BY_RACK_S, SCATTERED_S, across, speed
from rackwright.simulator.workload import DAY, Row, work_gpu_s
from rackwright.wire.jobs import JobClass

SIZES = (4, 8, 16, 32, 64)


@pytest.mark.parametrize(
    ("unavailable", "metric"),
    [(range(32), 160), ((), 0), ((0,), 61), ((0, 1, 2), 63), ((0, 1, 2, 31), 92)],
)
def test_fragmentation_as_slurm_counts_it(unavailable: range, metric: int) -> None:
    """The five values of SchedMD/slurm, testsuite/python/check/topology/test_topology.c."""
    gone = set(unavailable)
    assert block_fragmentation([node in gone for node in range(32)], SIZES) == metric


def test_512_gpus_take_1_59_s_scattered_and_1_39_s_by_rack() -> None:
    """The published pair the model is calibrated to; 128 nodes of 4 GPUs."""
    assert BY_RACK_S / speed([node // 16 for node in range(128)]) == pytest.approx(1.39)
    assert BY_RACK_S / speed(list(range(128))) == pytest.approx(SCATTERED_S)


def test_slices_that_are_no_multiple_of_a_group_are_slower_than_by_rack() -> None:
    assert speed(list(range(128))) < speed([node // 18 for node in range(128)]) < 1.0


def test_across_counts_pairs() -> None:
    assert (across([]), across([3]), across([3, 3]), across([3, 4])) == (0.0, 0.0, 0.0, 1.0)
    assert across([1, 1, 2]) == pytest.approx(2 / 3)


def test_lengths_follow_the_published_curve() -> None:
    drawn = [length(KALOS_LENGTHS, (n + 0.5) / 20_000) for n in range(20_000)]
    for share, seconds in ((0.438378, 512.0), (0.769111, 8192.0), (0.932917, 65536.0)):
        below = sum(one <= seconds for one in drawn) / len(drawn)
        assert below == pytest.approx(share, abs=0.001)
    assert sum(drawn) / len(drawn) == pytest.approx(mean_length(KALOS_LENGTHS), rel=0.001)
    assert length(KALOS_LENGTHS, 0.0) == 16.0
    assert length(KALOS_LENGTHS, 1.0) == pytest.approx(LONGEST_S)


def test_generated_work_is_what_was_asked_for() -> None:
    shares = ((KALOS, 0.7), (ITP, 0.3))
    made = generated(shares, load_gpus=800, span_s=4 * DAY, seed=3)
    assert made == generated(shares, load_gpus=800, span_s=4 * DAY, seed=3)
    assert made != generated(shares, load_gpus=800, span_s=4 * DAY, seed=4)
    work = sum(row.gpus * row.duration_s for row in made)
    assert work == pytest.approx(800 * 4 * DAY, rel=1e-6)
    assert [row.submit_s for row in made] == sorted(row.submit_s for row in made)
    assert max(row.duration_s for row in made) <= LONGEST_S


def test_scaling_stops_at_seven_days() -> None:
    row = Row(row=1, name="a", submit_s=0.0, gpus=1, duration_s=10.0)
    assert scaled([row], 1e9)[0].duration_s == LONGEST_S
    assert scaled([], 5.0) == []


def test_habits_belong_to_the_job_and_not_to_its_turn() -> None:
    rows = [
        Row(row=n, name=f"r{n}", submit_s=100.0 + n, gpus=gpus, duration_s=3600.0)
        for n, gpus in enumerate([1, 4, 64, 512] * 200)
    ]
    habits = Habits(seed=5)
    made = list(jobs(rows, habits))
    assert made[0].submit_s == 0.0
    assert habits.job(rows[9]).restartable == made[9].restartable
    large = [job for job in made if job.gpus >= 64]
    assert all(job.restartable and job.checkpoint_s is not None for job in large)
    small = [job for job in made if job.gpus < 64]
    share = sum(job.job_class is JobClass.INTERACTIVE for job in small) / len(small)
    assert share == pytest.approx(0.2, abs=0.06)
    assert all(job.communication == 0.0 for job in small if job.gpus <= 4)


def test_a_job_takes_whole_nodes_or_part_of_one() -> None:
    rows = [
        Row(row=n, name=f"r{n}", submit_s=0.0, gpus=gpus, duration_s=10.0)
        for n, gpus in enumerate((1, 4, 6))
    ]
    made = list(jobs(rows, Habits(seed=1)))
    assert [job.nodes(4) for job in made] == [None, 1, 2]
    assert work_gpu_s(made, 4) == 10.0 * (1 + 4 + 8)
    specs = [job.spec(4) for job in made]
    assert [(spec.gpus, spec.nodes) for spec in specs] == [(1, None), (None, 1), (None, 2)]
