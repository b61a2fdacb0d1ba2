"""All metrics of the cell as an answer: each in one topic, with what Prometheus gets."""

from prometheus_client.core import HistogramMetricFamily

from rackwright.gateway import asked
from rackwright.gateway.answers.cell import stats
from rackwright.gateway.families import families
from rackwright.gateway.metrics import GROUPS, MOST, PREFIX, metrics
from rackwright.gateway.views import MetricValue, MetricView
from rackwright.wire.entries.job import JobFailed
from rackwright.wire.entries.slice import DefragPlanned
from rackwright.wire.ids import JobId, PlanId
from rackwright.wire.jobs import JobClass, JobSpec
from rackwright.wire.reasons import Reason
from tests.unit.gateway.storied import Storied, storied


def worked() -> Storied:
    """r0 and r1 with a protected slice each; a swap in one."""
    made = storied(2)
    for rack in ("r0", "r1"):
        made.sit(f"a-{rack}", rack, range(16))
    made.wait(60.0)
    return made


def of(made: Storied, name: str) -> MetricView:
    (found,) = (one for one in metrics(made.context()) if one.name == f"{PREFIX}{name}")
    return found


def test_every_metric_of_the_cell_has_one_topic() -> None:
    made = storied(1)
    grouped = [name for names in GROUPS.values() for name in names]
    assert len(grouped) == len(set(grouped))
    served = {family.name.removeprefix(PREFIX) for family in families(made.context())}
    assert served - set(grouped) == set()
    assert set(grouped) - served == set(GROUPS["system"])


def test_they_come_with_the_numbers_only_when_asked_for() -> None:
    made = worked()
    assert stats(made.context(), asked.Stats()).metrics == ()
    found = stats(made.context(), asked.Stats(metrics=True)).metrics
    assert found == metrics(made.context())
    assert list(dict.fromkeys(one.group for one in found)) == list(GROUPS)


def test_how_far_plans_are_from_the_best_there_could_have_been() -> None:
    made = worked()
    assert of(made, "defrag_optimality_gap").values == ()
    assert stats(made.context(), asked.Stats()).defrags.optimality_gap is None
    made.queue("p", JobSpec(name=JobId("p"), nodes=1))
    counts = made.chronicle.counts
    for cost, bound in ((10.0, 10.0), (30.0, 20.0), (99.0, None)):
        entry = DefragPlanned(
            plan=PlanId("x"),
            job=JobId("p"),
            membership=1,
            slices=(),
            victims=(),
            notice_s=0.0,
            expires_at=0.0,
            cost_gpu_h=cost,
            benefit_gpu_h=0.0,
            bound_gpu_h=bound,
            reason=Reason(code="test"),
        )
        counts.take((entry,), made.fleet, made.fleet)
    assert of(made, "defrag_optimality_gap").values == (MetricValue(value=0.25),)
    assert of(made, "defrag_bounded_est_gpu_h").values == (MetricValue(value=40.0),)
    assert of(made, "defrag_bound_gpu_h").values == (MetricValue(value=30.0),)
    assert stats(made.context(), asked.Stats()).defrags.optimality_gap == 0.25


def test_values_by_labels() -> None:
    made = worked()
    useful = MetricValue(labels={"state": "useful"}, value=128.0)
    assert useful in of(made, "gpus").values
    assert of(made, "installed_gpus").values == (MetricValue(value=144.0),)


def test_values_of_racks_are_summed() -> None:
    assert of(worked(), "spares_free").values == (MetricValue(value=4.0),)
    assert of(storied(1), "spares_free").values == ()


def test_histograms_are_told_in_three_figures() -> None:
    (found,) = of(worked(), "queue_wait_seconds").values
    assert found.labels == {"band": "33-64", "class": "batch", "queue": "default"}
    assert (found.count, found.value, found.p50, found.p99) == (2, 0.0, 1.0, 1.0)
    (none,) = of(worked(), "time_to_swap_seconds").values
    assert (none.count, none.p50) == (0, None)


def test_the_bound_above_all_bounds_is_none() -> None:
    made = worked()
    made.queue("p", JobSpec(name=JobId("p"), nodes=1))
    counts = made.chronicle.counts
    counts.to_swap.add(1e9)
    family = next(f for f in families(made.context()) if f.name == f"{PREFIX}time_to_swap_seconds")
    assert isinstance(family, HistogramMetricFamily)
    (found,) = of(made, "time_to_swap_seconds").values
    assert (found.count, found.value, found.p50) == (1, 1e9, None)


def test_of_many_values_the_largest_are_told() -> None:
    made = storied(1)
    for turn in range(MOST + 2):
        made.chronicle.counts.measures.stalled_gpu_h[f"rung-{turn}",] = float(turn)
    found = of(made, "stalled_gpu_hours")
    assert (len(found.values), found.more) == (MOST, 2)
    assert found.values[0].value == MOST + 1.0
    assert min(one.value for one in found.values) == 2.0


def test_interactive_work_that_hardware_took_is_counted_apart() -> None:
    """Lost to its node, and ended by itself: the first is counted, beside who was touched."""
    made = storied(1)
    for name, code in (("a", "lost.node"), ("b", "exit.1")):
        made.sit(name, "r0", [0 if name == "a" else 1], job_class=JobClass.INTERACTIVE)
        made.add(JobFailed(job=JobId(name), reason=Reason(code=code)))
    made.sit("c", "r0", [2])
    made.add(JobFailed(job=JobId("c"), reason=Reason(code="lost.node")))
    assert of(made, "interactive_lost").values == (MetricValue(value=1.0),)
    assert of(made, "interactive_touched").values == (MetricValue(value=0.0),)
