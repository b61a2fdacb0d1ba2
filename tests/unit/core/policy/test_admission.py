"""Which jobs are taken at all; a refusal names the field and what would be right."""

from typing import Any

import pytest

from rackwright.core.fleet import Fleet
from rackwright.core.policy.admission import Admitted, admit
from rackwright.core.reasons import sentence
from rackwright.wire.ids import JobId, NodeId, QueueName
from rackwright.wire.jobs import Checkpoint, CheckpointPlace, Group, JobClass, JobSpec, TopologyNeed
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from tests.support.fleets import cell, rack_spec

HOUR = 3600.0


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return cell(4).fleet


def spec(**fields: Any) -> JobSpec:
    return JobSpec(name=JobId("j"), **fields)


def taken(fleet: Fleet, **fields: Any) -> Admitted:
    found = admit(fleet, spec(**fields))
    assert isinstance(found, Admitted), found
    return found


def refused(fleet: Fleet, **fields: Any) -> Reason:
    found = admit(fleet, spec(**fields))
    assert isinstance(found, Reason), found
    return found


def test_exactly_one_size(fleet: Fleet) -> None:
    assert refused(fleet).numbers["is"] == "none of them"
    both = refused(fleet, nodes=1, gpus=1)
    assert (both.code, both.numbers["is"]) == ("spec.nodes", "nodes and gpus")
    group = Group(name=JobId("g"), nodes=1)
    assert refused(fleet, gpus=1, groups=(group,)).numbers["is"] == "gpus and groups"


def test_larger_than_the_cell_never_fits(fleet: Fleet) -> None:
    found = refused(fleet, nodes=73)
    assert found.code == "never"
    assert found.numbers == {
        "field": "nodes",
        "asked_nodes": 73,
        "cell_nodes": 72,
        "ask": "72 nodes or fewer",
    }


def test_more_slices_than_racks_never_fit(fleet: Fleet) -> None:
    found = refused(fleet, nodes=72, slice_nodes=12)
    assert (found.code, found.numbers["slices"], found.numbers["fits"]) == ("never", 6, 4)
    taken(fleet, nodes=64)
    taken(fleet, nodes=72, slice_nodes=18)


def test_spread_needs_racks(fleet: Fleet) -> None:
    taken(fleet, nodes=8, slice_nodes=2, max_per_rack=1)
    assert refused(fleet, nodes=10, slice_nodes=2, max_per_rack=1).numbers["fits"] == 4


def test_scattered_work_needs_nodes_only(fleet: Fleet) -> None:
    taken(fleet, nodes=72, topology=TopologyNeed.ANY)
    taken(fleet, nodes=72, topology=TopologyNeed.PREFERRED)


def test_a_cell_without_racks_takes_nothing() -> None:
    assert refused(cell(0).fleet, nodes=1).code == "never"


def test_odd_gpus_and_slices_are_refused(fleet: Fleet) -> None:
    assert refused(fleet, gpus=5).code == "spec.gpus"
    assert refused(fleet, nodes=20, slice_nodes=20).code == "spec.slice_nodes"


def test_a_service_may_start_with_fewer_replicas(fleet: Fleet) -> None:
    group = Group(name=JobId("g"), nodes=16, replicas=6, min_replicas=2)
    taken(fleet, groups=(group,), job_class=JobClass.SERVICE)
    assert refused(fleet, groups=(group,)).code == "spec.groups.g.min_replicas"
    more = Group(name=JobId("g"), nodes=1, replicas=1, min_replicas=2)
    found = refused(fleet, groups=(more,), job_class=JobClass.SERVICE)
    assert found.numbers["ask"] == "1 or fewer"


def test_group_names_differ(fleet: Fleet) -> None:
    twin = Group(name=JobId("g"), nodes=1)
    assert refused(fleet, groups=(twin, twin)).numbers["why"] == "is the name of two groups"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"command": ("a",), "run": "b"}, "spec.run"),
        ({"pretend_s": 5.0, "run": "b"}, "spec.pretend_s"),
        ({"retry_budget": 1, "restartable": False}, "spec.retry_budget"),
        ({"movable": True, "restartable": False}, "spec.movable"),
        (
            {"movable": True, "checkpoint": Checkpoint(where=CheckpointPlace.LOCAL)},
            "spec.checkpoint.where",
        ),
        ({"min_slices": 2}, "spec.min_slices"),
    ],
)
def test_contradictions(fleet: Fleet, fields: dict[str, Any], code: str) -> None:
    assert refused(fleet, nodes=1, **fields).code == code


def test_time_limits_by_what_may_be_moved(fleet: Fleet) -> None:
    local = Checkpoint(where=CheckpointPlace.LOCAL)
    assert [
        taken(fleet, nodes=1, **fields).spec.time_limit_s
        for fields in (
            {},
            {"job_class": JobClass.INTERACTIVE},
            {"restartable": False},
            {"preemptible": False},
            {"checkpoint": local},
            {"job_class": JobClass.SERVICE},
            {"time_limit_s": 60.0},
        )
    ] == [168 * HOUR, 12 * HOUR, 24 * HOUR, 24 * HOUR, 24 * HOUR, None, 60.0]


def test_limits_are_limits(fleet: Fleet) -> None:
    for fields, most in (
        ({}, 168 * HOUR),
        ({"job_class": JobClass.INTERACTIVE}, 12 * HOUR),
        ({"restartable": False}, 24 * HOUR),
    ):
        taken(fleet, nodes=1, time_limit_s=most, **fields)
        found = refused(fleet, nodes=1, time_limit_s=most + 1, **fields)
        assert found.code == "spec.time_limit_s"
        assert str(found.numbers["ask"]).startswith(f"{most:g} or less")


def test_interactive_work_is_not_preemptible_unless_its_queue_says_so() -> None:
    policy = Policy(interactive_movable_queues=(QueueName("demo"),))
    fleet = cell(1, policy=policy).fleet
    plain = taken(fleet, gpus=1, job_class=JobClass.INTERACTIVE)
    demo = taken(fleet, gpus=1, job_class=JobClass.INTERACTIVE, queue=QueueName("demo"))
    assert (plain.spec.preemptible, demo.spec.preemptible) == (False, True)


def test_hints(fleet: Fleet) -> None:
    local = Checkpoint(where=CheckpointPlace.LOCAL, interval_s=600.0)
    codes = [
        [one.code for one in taken(fleet, nodes=2, **fields).warnings]
        for fields in ({}, {"checkpoint": Checkpoint(interval_s=600.0)}, {"checkpoint": local})
    ]
    assert codes == [["checkpoint.none"], [], ["checkpoint.local"]]


def test_a_gpu_model_that_no_node_has_is_refused_at_submit() -> None:
    made = cell(2)
    refused = admit(made.fleet, JobSpec(name=JobId("a"), nodes=1, labels={"gpu_model": "h100"}))
    assert isinstance(refused, Reason)
    assert (refused.code, refused.numbers["is"], refused.numbers["ask"]) == (
        "spec.labels",
        "h100",
        "gb200",
    )
    fits = admit(made.fleet, JobSpec(name=JobId("a"), nodes=1, labels={"gpu_model": "gb200"}))
    assert isinstance(fits, Admitted)


def test_a_cell_that_does_not_know_all_its_models_refuses_none() -> None:
    made = cell(1)
    made.define(rack_spec("r9"), join=False)
    asked = admit(made.fleet, JobSpec(name=JobId("a"), nodes=1, labels={"gpu_model": "h100"}))
    assert isinstance(asked, Admitted)


@pytest.mark.parametrize(
    ("size", "field", "told"),
    [
        ({"nodes": 2}, "nodes", 2),
        ({"gpus": 8}, "gpus", 8),
        ({"groups": (Group(name=JobId("g"), nodes=2),)}, "groups", 8),
    ],
)
def test_a_size_above_a_limit_is_told_as_it_was_asked_for(
    fleet: Fleet, size: dict[str, Any], field: str, told: int
) -> None:
    found = refused(fleet, **size, job_class=JobClass.INTERACTIVE)
    assert (found.numbers["field"], found.numbers["is"]) == (field, told)
    assert found.numbers["why"] == "asks for 8 GPUs, interactive_job_gpus allows 4"


def test_excluded_nodes_that_the_cell_does_not_have_are_told_and_no_others(fleet: Fleet) -> None:
    def told(*nodes: str) -> list[str]:
        names = tuple(NodeId(node) for node in nodes)
        found = admit(fleet, JobSpec(name=JobId("a"), nodes=1, exclude_nodes=names))
        assert isinstance(found, Admitted)
        return [sentence(one) for one in found.warnings]

    assert told("r0-n01") == []
    assert told("r0-n01", "r77-n01", "r0-n1") == [
        "exclude_nodes: the cell has no nodes r77-n01, r0-n1"
    ]
