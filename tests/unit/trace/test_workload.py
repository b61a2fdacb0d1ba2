"""How two recorded traces become one workload, and what breaks in it."""

from pathlib import Path

import pytest

from benchmarks.trace.settings import hastened
from benchmarks.trace.troubles import Kind, burst_times, by_chance
from benchmarks.trace.workload import (
    DAY,
    HOUR,
    BadTrace,
    Mixture,
    Row,
    TimedJob,
    mixed,
    part,
    read,
)
from rackwright.wire.ids import JobId, NodeId
from rackwright.wire.jobs import JobClass
from rackwright.wire.policy import Policy

HOW = Mixture(installed_gpus=256, load=0.75, compress=2.0, seed=3)
LARGE = [
    Row(name=str(turn), submit_s=turn * 2 * HOUR, gpus=64, duration_s=HOUR) for turn in range(25)
]
SMALL = [
    Row(name=str(turn), submit_s=turn * 60.0, gpus=turn % 8 + 1, duration_s=1800.0 + turn % 7 * 600)
    for turn in range(6000)
]


def test_the_large_jobs_are_compressed_and_the_small_ones_fill_up_to_the_load() -> None:
    made = mixed(LARGE, SMALL, HOW)
    large = [job for job in made.jobs if job.id.startswith("large-")]
    assert [job.submit_s for job in large] == [row.submit_s / 2 for row in LARGE]
    assert {job.duration_s for job in large} == {HOUR}
    assert made.span_s == 24 * HOUR
    assert made.large_load == pytest.approx(25 * 64 * HOUR / (256 * 24 * HOUR))
    assert made.load == pytest.approx(0.75, abs=0.005)
    assert made.load == sum(job.work for job in made.jobs) / (256 * made.span_s)
    assert [job.submit_s for job in made.jobs] == sorted(job.submit_s for job in made.jobs)
    assert max(job.submit_s + job.duration_s for job in made.jobs) == made.end_s
    assert made.end_s <= 25 * HOUR


def test_a_fifth_of_the_small_jobs_is_interactive_and_sits_on_one_node() -> None:
    made = mixed(LARGE, SMALL, HOW)
    small = [job for job in made.jobs if job.id.startswith("small-")]
    interactive = [job for job in small if job.job_class is JobClass.INTERACTIVE]
    assert len(interactive) == round(len(small) / 5)
    assert all(job.gpus <= 4 and job.interval_s is None for job in interactive)


def test_the_same_seed_gives_the_same_workload_and_another_one_another() -> None:
    assert mixed(LARGE, SMALL, HOW) == mixed(LARGE, SMALL, HOW)
    other = Mixture(installed_gpus=256, load=0.75, compress=2.0, seed=4)
    assert mixed(LARGE, SMALL, HOW) != mixed(LARGE, SMALL, other)


def test_a_trace_that_is_too_short_or_too_light_is_refused() -> None:
    with pytest.raises(BadTrace, match=r"spans 0\.4 d, 1\.0 are needed"):
        mixed(LARGE, SMALL[:600], HOW)
    with pytest.raises(BadTrace, match="lacks"):
        mixed(LARGE, SMALL[::50], HOW)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("job,submit_s,gpus\n0,0,1\n", "duration_s"),
        ("job,submit_s,gpus,duration_s\n0,soon,1,2\n", "soon"),
        ("job,submit_s,gpus,duration_s\n", "no jobs"),
    ],
)
def test_a_file_that_is_no_trace_says_so(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadTrace, match=problem):
        read(path)


def test_rows_come_by_submit_time(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("job,submit_s,gpus,duration_s,kind\n1,9,8,2.5,x\n0,3,1,4,y\n", encoding="utf-8")
    assert read(path) == [
        Row(name="0", submit_s=3.0, gpus=1, duration_s=4.0),
        Row(name="1", submit_s=9.0, gpus=8, duration_s=2.5),
    ]


def test_a_part_of_the_time_begins_at_its_start() -> None:
    whole = mixed(LARGE, SMALL, HOW)
    some = part(whole, 6 * HOUR, 4 * HOUR)
    assert some.jobs
    assert all(0 <= job.submit_s <= 4 * HOUR >= job.duration_s for job in some.jobs)


def test_a_job_takes_whole_nodes_or_part_of_one_and_all_its_times_are_hastened() -> None:
    job = TimedJob(
        id=JobId("j"),
        submit_s=0.0,
        gpus=66,
        duration_s=HOUR,
        interval_s=600.0,
        saves_on_notice=True,
    )
    spec = job.spec(100.0)
    assert (spec.nodes, spec.gpus, spec.pretend_s) == (17, None, 36.0)
    checkpoint = spec.checkpoint
    assert (checkpoint.interval_s, checkpoint.restart_s, checkpoint.on_notice_s) == (6.0, 6.0, 0.6)
    small = TimedJob(id=JobId("j"), submit_s=0.0, gpus=3, duration_s=HOUR).spec(100.0)
    assert (small.nodes, small.gpus, small.checkpoint.on_notice_s) == (None, 3, None)


def test_a_decision_weighs_the_same_at_any_speed() -> None:
    usual, fast = Policy(), hastened(1000.0)
    for name in ("defrag_wait0_s", "defrag_victim_cost_gpu_h", "move_cost_s", "swap_cost_s"):
        assert getattr(fast, name) == getattr(usual, name) / 1000.0
    assert fast.defrag_kappa == usual.defrag_kappa


def test_failures_come_by_chance_and_are_the_same_for_a_seed() -> None:
    nodes = [NodeId(f"n{turn}") for turn in range(648)]
    found = by_chance(nodes, 300 * DAY, 1)
    assert found == by_chance(nodes, 300 * DAY, 1)
    assert len(found) == pytest.approx(648 * 300 / 490, rel=0.2)
    assert {one.kind for one in found} == set(Kind)
    assert [one.at_s for one in found] == sorted(one.at_s for one in found)


def test_bad_hours_are_spread_over_the_time() -> None:
    times = burst_times(100.0, 4, 1)
    assert [int(at // 25) for at in times] == [0, 1, 2, 3]
