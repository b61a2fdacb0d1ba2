"""Leases in seconds, the way back of a node, and one fault against one node."""

from dataclasses import replace

import pytest

from rackwright.core.policy import health, leases, probation
from rackwright.core.policy.health import Answer
from rackwright.core.racks import Node, NodeFault, Rack
from rackwright.wire.ids import MessageId, NodeId, RackId, SessionId
from rackwright.wire.nodes import Fitness, Hardware, RackFitness, RackSpec, RepairAction
from rackwright.wire.policy import Policy
from rackwright.wire.signals import Fault, SignalKind

POLICY = Policy()
DEMO = Policy(heartbeat_s=0.5, suspect_after_s=1.5, fence_after_s=3, fresh_s=1, kill_s=0.5)
DAY = 86_400.0
NOW = 100 * DAY


def node(**fields: object) -> Node:
    given: dict[str, object] = {
        "name": NodeId("n"),
        "gpus": 4,
        "session": SessionId("s"),
        "boot": "b1",
        "hardware": Hardware(serial="sn", gpus=4),
        "fitness": Fitness.FULL,
    }
    return Node(**(given | fields))  # type: ignore[arg-type]


def faults(*days_ago: float, code: str = "xid.79", boot: str = "b0") -> tuple[NodeFault, ...]:
    return tuple(NodeFault(at=NOW - ago * DAY, code=code, boot=boot) for ago in days_ago)


# Leases


def test_w_is_the_one_of_the_protocol() -> None:
    assert leases.declare_after(POLICY) == pytest.approx(36.75)
    assert leases.declare_after(DEMO) == pytest.approx(4.725)


@pytest.mark.parametrize("policy", [POLICY, DEMO])
def test_a_tick_comes_well_before_freshness_ends(policy: Policy) -> None:
    assert leases.tick_after(policy) <= policy.fresh_s / 2


@pytest.mark.parametrize("policy", [POLICY, DEMO, Policy(heartbeat_s=9, suspect_after_s=6)])
def test_a_node_is_quiet_before_it_is_silent(policy: Policy) -> None:
    assert 0 < leases.quiet_after(policy) < policy.suspect_after_s


def test_freshness_counts_from_the_sending_and_never_goes_back() -> None:
    fresh = leases.Freshness().acked(10.0).acked(9.0)
    assert fresh.holds(POLICY, 12.9)
    assert not fresh.holds(POLICY, 13.0)
    assert not leases.Freshness().holds(POLICY, 0.0)


def test_only_a_live_session_without_suspicion_is_echoed() -> None:
    assert leases.may_echo(node(), SessionId("s"))
    assert not leases.may_echo(node(), SessionId("other"))
    assert not leases.may_echo(node(suspected=7), SessionId("s"))
    assert not leases.may_echo(node(session=None), SessionId("s"))


# The way back


@pytest.mark.parametrize(("count", "hours"), [(0, 1), (1, 2), (2, 4), (3, 8), (8, 168), (20, 168)])
def test_probation_doubles_with_each_fault_of_30_days(count: int, hours: float) -> None:
    old = faults(*[31.0] * 5)
    recent = faults(*[1.0] * count)
    until = probation.probation_until(node(faults=old + recent), POLICY, NOW)
    assert until == NOW + hours * 3600


def test_three_faults_in_30_days_make_a_lemon() -> None:
    assert probation.lemon(node(faults=faults(29, 1, 0)), POLICY, NOW)
    assert not probation.lemon(node(faults=faults(31, 1, 0)), POLICY, NOW)


@pytest.mark.parametrize(
    ("one", "other", "graver"),
    [
        (None, RepairAction.NONE, RepairAction.NONE),
        (RepairAction.RESET, RepairAction.REBOOT, RepairAction.REBOOT),
        (RepairAction.INSPECT, RepairAction.REBOOT, RepairAction.INSPECT),
        (RepairAction.INSPECT, RepairAction.REPLACE, RepairAction.REPLACE),
    ],
)
def test_of_two_repairs_the_one_that_includes_the_other(
    one: RepairAction | None, other: RepairAction, graver: RepairAction
) -> None:
    assert probation.gravest(one, other) is graver


OUT = {"fitness": Fitness.NONE, "repair": RepairAction.REBOOT, "faults": faults(0)}


@pytest.mark.parametrize(
    ("fields", "back"),
    [
        (OUT, True),
        (OUT | {"boot": "b0"}, False),
        (OUT | {"boot": "b0", "recovered_at": NOW}, True),
        (OUT | {"failed": True, "boot": "b0", "faults": faults(0, code="silence")}, True),
        (OUT | {"repair": RepairAction.REPLACE}, False),
        (OUT | {"repair": RepairAction.INSPECT}, False),
        (OUT | {"session": None}, False),
        (OUT | {"suspected": 9}, False),
        (OUT | {"hardware": Hardware(serial="sn", gpus=3)}, False),
        (OUT | {"faults": faults(2, 1, 0)}, False),
        ({}, False),
        ({"fitness": Fitness.NONE}, False),
    ],
)
def test_who_comes_back_without_anybodys_word(fields: dict[str, object], back: bool) -> None:
    assert probation.returns(node(**fields), 4, POLICY, NOW) is back


# One fault, one node


def rack(*nodes: Node, **fields: object) -> Rack:
    spec = RackSpec(rack=RackId("r"), nodes=tuple(one.name for one in nodes))
    given: dict[str, object] = {"spec": spec, "number": 0, "nodes": nodes, "free": 0}
    return Rack(**(given | fields))  # type: ignore[arg-type]


def found(**fields: object) -> health.Evidence:
    given = {"node": "n", "rack": "r", "session": "s", "kind": SignalKind.XID} | fields
    return health.evidence(Fault(**given), MessageId("m"), NOW)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "fault", "answer"),
    [
        ({}, {"xid": 79}, Answer.OUT),
        ({"fitness": Fitness.NONE, "repair": RepairAction.REBOOT}, {"xid": 79}, Answer.KNOWN),
        ({"fitness": Fitness.NONE, "repair": RepairAction.RESET}, {"xid": 79}, Answer.LATER),
        ({"recovered_at": NOW}, {"xid": 79}, Answer.KNOWN),
        ({"recovered_at": NOW - 1}, {"xid": 79}, Answer.OUT),
        ({"fitness": Fitness.RACK}, {"kind": SignalKind.IB_DOWN}, Answer.LATER),
        ({"session": None, "fitness": Fitness.NONE}, {"xid": 79}, Answer.WAIT),
        ({}, {"xid": 63}, Answer.LATER),
        ({"repair": RepairAction.RESET}, {"xid": 63}, Answer.KNOWN),
        ({}, {"xid": 45}, Answer.SYMPTOM),
        ({}, {"xid": 13}, Answer.NOTHING),
        ({}, {"xid": 12_345}, Answer.NOTHING),
        ({}, {"kind": SignalKind.START_FAILED}, Answer.NOTHING),
    ],
)
def test_what_a_fault_comes_to(
    fields: dict[str, object], fault: dict[str, object], answer: Answer
) -> None:
    assert health.answer(rack(node(**fields)), 0, found(**fault)) is answer


def test_an_open_event_of_the_rack_takes_the_blame_for_links_and_not_for_gpus() -> None:
    out = rack(node(), fitness=RackFitness.EVACUATE)
    assert health.answer(out, 0, found(kind=SignalKind.NVLINK_DOWN)) is Answer.RACK
    assert health.answer(out, 0, found(xid=79)) is Answer.OUT


def test_of_two_pieces_of_evidence_the_graver_whichever_came_first() -> None:
    port, reset, replace_ = found(kind=SignalKind.IB_DOWN), found(xid=46), found(xid=64)
    assert health.graver(port, reset) is reset
    assert health.graver(reset, port) is reset
    assert health.graver(reset, replace_) is replace_
    assert health.graver(None, port) is port
    assert health.graver(reset, found(xid=48)) is reset


def test_two_boots_that_did_not_heal_it_make_it_a_replacement() -> None:
    twice = node(
        boot="b3",
        faults=(*faults(2, boot="b1"), *faults(1, boot="b2")),
        recovered_at=NOW - 3600,
    )
    assert health.unfit(twice, found(xid=79)).action is RepairAction.REPLACE
    once = replace(twice, faults=faults(1, boot="b2"))
    assert health.unfit(once, found(xid=79)).action is RepairAction.REBOOT


def culprit(ago: float, code: str = "xid.79") -> Node:
    return node(faults=(NodeFault(at=NOW - ago, code=code),))


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ((culprit(1),), RackFitness.GOOD),
        ((culprit(1), culprit(29)), RackFitness.DEGRADED),
        ((culprit(1), culprit(31)), RackFitness.GOOD),
        ((culprit(1), culprit(2), culprit(3)), RackFitness.EVACUATE),
        ((culprit(1), culprit(1, "silence"), culprit(1, "hook-failed")), RackFitness.GOOD),
    ],
)
def test_what_several_culprits_say_of_their_rack(
    nodes: tuple[Node, ...], said: RackFitness
) -> None:
    assert health.rack_verdict(rack(*nodes), POLICY, NOW) is said


def test_a_rack_is_never_judged_better_than_it_was_said_to_be() -> None:
    down = rack(node(), fitness=RackFitness.DOWN)
    assert health.rack_verdict(down, POLICY, NOW) is RackFitness.DOWN
    assert not health.rack_may_return(down, POLICY, NOW)
