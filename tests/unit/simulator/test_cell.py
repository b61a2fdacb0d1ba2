"""Whole runs of small cells: what must hold of each, and what each policy does with one fault."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rackwright.core.fleet import Fleet
from rackwright.core.invariants import check
from rackwright.host.steps import Step
from rackwright.simulator.cell import SimCell, plain_racks
from rackwright.simulator.failures import BadModel, FailureModel
from rackwright.simulator.generator import ITP, generated
from rackwright.simulator.mixture import Habits, jobs
from rackwright.simulator.policies import ALL, POLICIES, UnknownPolicy, setups
from rackwright.simulator.running import Outcome, Plan, as_json, quantiles, run
from rackwright.simulator.stopping import Stop
from rackwright.simulator.workload import DAY, HOUR, SimJob
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import JobClass

CALM = FailureModel()
STORMY = FailureModel.of(
    unavailable=0.05,
    repair_h=4.0,
    seed=3,
    rack_mtbi_days=4.0,
    job_gpu_days=100.0,
    slow_mtbi_days=20.0,
    noise_mtbi_days=2.0,
    reboots=0.3,
)


def job(name: str, gpus: int, hours: float, at_h: float = 0.0, **more: object) -> SimJob:
    made = SimJob(id=JobId(name), submit_s=at_h * HOUR, gpus=gpus, work_s=hours * HOUR)
    return replace(made, **more)  # type: ignore[arg-type]


def mixed(days: float, seed: int = 1) -> Iterator[SimJob]:
    rows = generated(((ITP, 1.0),), load_gpus=150, span_s=days * DAY, seed=seed)
    return jobs((row for row in rows if row.duration_s < 12 * HOUR), Habits(seed=seed))


def sound(before: Fleet, step: Step) -> None:
    assert not step.folding.void, step.folding.why
    if step.stored.seq % 8 == 0:
        check(step.folding.fleet)


def outcome(
    policy: str,
    work: list[SimJob] | Iterator[SimJob],
    failures: FailureModel = CALM,
    **more: object,
) -> Outcome:
    plan = Plan(racks=plain_racks(4, 18, 4), failures=failures, **more)  # type: ignore[arg-type]
    return run(POLICIES[policy], work, plan)


@pytest.mark.parametrize("policy", [setup.name for setup in ALL])
def test_in_any_storm_the_fleet_is_sound_and_gpu_seconds_add_up(policy: str) -> None:
    plan = Plan(racks=plain_racks(4, 18, 4), failures=STORMY, span_s=DAY / 3)
    found = run(POLICIES[policy], mixed(0.3), plan, watchers=[sound])
    result = found.result
    assert result["faults"]["nodes"] > 3, "the storm did not come"
    total = sum(result["gpu_s"].values())
    assert total == pytest.approx(result["installed_gpu_s"], rel=1e-9)
    assert result["installed_gpu_s"] == pytest.approx(4 * 18 * 4 * DAY / 3)
    assert len(result["gpu_s"]) == 16
    assert result["interactive_touched"] == 0
    if policy not in {"scatter", "no-spares"}:
        assert result["cross_rack_slices"] == 0
    jobs_ = result["jobs"]
    ended = sum(count for name, count in jobs_.items() if name in {"finished", "failed"})
    assert ended + jobs_["alive"] == jobs_["submitted"]


def test_the_same_seed_gives_the_same_result() -> None:
    def one(seed: int) -> str:
        found = outcome("rackwright", mixed(0.1, seed), replace(STORMY, seed=seed), span_s=DAY / 8)
        result = {k: v for k, v in found.result.items() if k != "cpu_s"}
        result["engine"].pop("memory_mb")
        return as_json(result)

    assert one(5) == one(5)
    assert one(5) != one(6)


def test_undisturbed_work_takes_its_time_and_nothing_is_lost() -> None:
    found = outcome("rackwright", [job("a", 128, 2.0), job("b", 2, 1.0)])
    result = found.result
    assert result["jobs"]["finished"] == 2
    useful = result["gpu_s"]["useful"] + result["gpu_s"]["lent_useful"]
    assert useful == pytest.approx(128 * 2 * HOUR + 2 * HOUR, rel=1e-3)
    assert result["gpu_s"]["lost"] == 0.0
    assert result["training_goodput"] > 0.99
    assert result["work_goodput"] * result["installed_gpu_s"] == pytest.approx(258 * HOUR)


class Fault:
    """A cell with one job on which one node fails at a given time."""

    def __init__(self, policy: str, at_h: float = 1.2) -> None:
        self.counts: dict[str, int] = {}
        self.lost_s = self.ended_at = 0.0
        work = [job("a", 128, 3.0, checkpoint_s=1800.0)]
        cell = SimCell(
            setup=POLICIES[policy],
            racks=plain_racks(4, 18, 4),
            failures=CALM,
            watchers=[sound, self.count],
        )
        cell.ended = lambda one, _: self.over(one.lost_s, cell.engine.now)
        cell.begin(work)
        start = cell.engine.now
        cell.run(start + at_h * HOUR)
        fleet = cell.ledger.fleet
        held = fleet.jobs[JobId("a")].slices[0]
        cell.faults._fail(fleet.node_at(held.rack, held.nodes[3]).name, silent=False)
        cell.run(start + 30 * HOUR)
        self.took_h = (self.ended_at - start) / HOUR

    def count(self, before: Fleet, step: Step) -> None:
        self.counts[step.commit.type] = self.counts.get(step.commit.type, 0) + 1

    def over(self, lost_s: float, at: float) -> None:
        self.lost_s, self.ended_at = lost_s, at


def test_a_fault_is_a_swap_and_costs_work_since_the_last_checkpoint() -> None:
    found = Fault("rackwright")
    assert found.counts["slice.swapped"] == 1
    assert found.counts.get("job.requeued", 0) == 0
    # 1.2 h after the start the last checkpoint is 12 minutes old, less the seconds of starting.
    assert found.lost_s == pytest.approx(0.2 * HOUR, abs=15.0)
    stall = (90.0 + 180.0) / HOUR
    assert found.took_h == pytest.approx(3.0 + 0.2 + stall, abs=0.02)


def test_without_a_swap_it_is_a_restart_of_the_whole_job() -> None:
    found = Fault("no-swap")
    assert found.counts["job.requeued"] == 1
    assert found.counts.get("slice.swapped", 0) == 0
    assert found.took_h == pytest.approx(3.0 + 0.2 + 600.0 / HOUR, abs=0.02)


def test_one_fault_is_swapped_by_the_stand_in_of_kueue_too() -> None:
    assert Fault("kueue-like").counts["slice.swapped"] == 1


def test_scattered_work_is_as_slow_as_the_model_says() -> None:
    by_rack = outcome("rackwright", [job("a", 256, 2.0, communication=0.00846)])
    scattered = outcome("scatter", [job("a", 256, 2.0, communication=0.00846)])
    assert by_rack.result["cross_rack_slices"] == 0
    assert (
        scattered.result["completion_s"]["all"]["p50"]
        >= by_rack.result["completion_s"]["all"]["p50"]
    )


def test_strictly_in_order_a_small_job_waits_behind_a_large_one() -> None:
    work = [
        job("first", 256, 2.0),
        job("second", 256, 1.0, 0.1),
        job("third", 4, 0.5, 0.2),
    ]
    waits = {}
    for policy in ("rackwright", "fcfs"):
        found = outcome(policy, list(work))
        waits[policy] = next(one.wait_s for one in found.ended if one.gpus == 4)
    assert waits["rackwright"] < 60.0
    assert waits["fcfs"] > HOUR


def blocked_by_topology() -> tuple[list[SimJob], list[str], Outcome]:
    """Small work on all of three racks, half of it gone when a job of a rack comes; the types of
    its commits, and what came of it."""
    small = [
        job(f"s{n}", 12, 30.0, 0.001 * n, checkpoint_s=600.0, saves_on_notice=True)
        for n in range(8)
    ]
    short = [job(f"x{n}", 12, 1.0, 0.001 * n + 0.0005) for n in range(8)]
    work = sorted([*small, *short, job("big", 64, 1.0, 4.0)], key=lambda one: one.submit_s)
    types: list[str] = []
    plan = Plan(racks=plain_racks(3, 18, 4), failures=CALM, span_s=40 * HOUR)
    made = run(
        POLICIES["rackwright"],
        work,
        plan,
        recorders=[lambda _, step: types.append(step.commit.type)],
    )
    return work, types, made


def test_a_rack_is_cleared_for_a_job_blocked_by_topology() -> None:
    work, types, found = blocked_by_topology()
    assert (types.count("defrag.planned"), types.count("defrag.finished")) == (1, 1)
    assert found.result["jobs"]["finished"] == len(work)
    assert found.result["interactive_touched"] == 0


def test_ranks_on_free_nodes_wait_for_those_whose_nodes_are_being_left() -> None:
    """Victims have two minutes' notice, twice as long as a rank may take to start: it has begun."""
    _, types, _ = blocked_by_topology()
    assert {"worker.failed", "job.requeued", "slice.swapped"} & set(types) == set()


def test_a_job_larger_than_the_cell_is_rejected_and_counted() -> None:
    found = outcome("rackwright", [job("huge", 4 * 18 * 4 + 4, 1.0), job("a", 4, 1.0)])
    assert found.result["jobs"]["rejected"] == 1
    assert found.result["jobs"]["finished"] == 1


def test_ctrl_c_leaves_what_there_is_marked_partial() -> None:
    stop = Stop()

    def told(cell: SimCell, at: float) -> None:
        if at > 3 * HOUR:
            stop.ask()

    plan = Plan(racks=plain_racks(2, 18, 4), failures=CALM)
    found = run(POLICIES["rackwright"], [job("a", 4, 10.0)], plan, told=told, stop=stop)
    assert found.partial
    assert found.result["partial"]
    assert found.result["jobs"]["alive"] == 1


def test_interactive_work_is_run_and_not_moved() -> None:
    work = [job("i", 4, 1.0, job_class=JobClass.INTERACTIVE, checkpoint_s=None)]
    assert outcome("rackwright", work).result["jobs"]["finished"] == 1


def test_an_unknown_policy_says_which_there_are() -> None:
    with pytest.raises(UnknownPolicy, match="one of rackwright, no-spares"):
        setups("rackwright,best")
    assert [setup.name for setup in setups("scatter,fcfs")] == ["scatter", "fcfs"]
    assert setups("all") == list(ALL)


@pytest.mark.parametrize(
    ("knobs", "knob"),
    [
        ({"node_mtbi_days": 0.0}, "node_mtbi_days"),
        ({"node_mtbi_days": float("nan")}, "node_mtbi_days"),
        ({"silent": 1.5}, "silent"),
        ({"hangs": -0.1}, "hangs"),
        ({"repair_h": -1.0}, "repair_h"),
        ({"slow_speed": 0.0}, "slow_speed"),
    ],
)
def test_knobs_that_cannot_be(knobs: dict[str, float], knob: str) -> None:
    with pytest.raises(BadModel) as caught:
        FailureModel(**knobs)  # type: ignore[arg-type]
    assert caught.value.knob == knob


def test_unavailability_gives_the_rate() -> None:
    model = FailureModel.of(unavailable=0.02, repair_h=240.0)
    assert model.node_mtbi_days == pytest.approx(490.0)
    assert model.unavailable == pytest.approx(0.02)
    rates = [model.node_rate(f"n{n}") * 490.0 * DAY for n in range(4000)]
    assert sum(rates) / len(rates) == pytest.approx(1.0, abs=0.05)
    assert FailureModel.of(unavailable=0.0, repair_h=1.0).node_rate("n") == 0.0
    for wrong in ({"unavailable": 1.0, "repair_h": 1.0}, {"unavailable": 0.1, "repair_h": 0.0}):
        with pytest.raises(BadModel):
            FailureModel.of(**wrong)


def test_quantiles_of_few() -> None:
    assert quantiles([]) == {}
    assert quantiles([3.0, 1.0, 2.0]) == {"p50": 2.0, "p90": 3.0, "p99": 3.0}
