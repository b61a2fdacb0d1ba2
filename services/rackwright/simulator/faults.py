"""Lets things break: nodes, racks, jobs, by the failure model, each with a chance of its own.

Every node and rack draws from its own sequence, so two policies meet the same faults at the same
times whatever they do with them.
"""

import random
from dataclasses import dataclass, field

from rackwright.core.policy.probation import probation_until
from rackwright.core.racks import Node, Rack
from rackwright.simulator.failures import FailureModel
from rackwright.simulator.runs import Run
from rackwright.simulator.stage import Stage
from rackwright.simulator.workload import DAY, HOUR
from rackwright.simulator.world import World
from rackwright.wire.entries.node import (
    NodeCleared,
    NodeCordoned,
    NodeFailed,
    NodeRecovered,
    NodeSuspected,
    NodeUncordoned,
    NodeUnfit,
    RackDegraded,
    RackRestored,
    RepairRequested,
)
from rackwright.wire.ids import NodeId, Owner
from rackwright.wire.nodes import Fitness, RackFitness, RepairAction
from rackwright.wire.reasons import Reason

GONE = Reason(code="xid.79")
SILENT = Reason(code="silence")
RACK_EVENT = Reason(code="rack.event")
RETURNED = Reason(code="returned")
OPERATOR = Owner("operator")


@dataclass(slots=True, kw_only=True)
class Counts:
    """What has happened so far."""

    nodes: int = 0
    racks: int = 0
    jobs: int = 0
    hangs: int = 0
    slow: int = 0
    noise: int = 0


@dataclass(slots=True, kw_only=True)
class Faults:
    """`down` are nodes in repair, with how many causes keep each away."""

    stage: Stage
    world: World
    model: FailureModel
    counts: Counts = field(default_factory=Counts)
    down: dict[NodeId, int] = field(default_factory=dict)
    _chances: dict[str, random.Random] = field(default_factory=dict)

    def begin(self) -> None:
        """From now on things break; some nodes are down already, as they are on average."""
        first: list[NodeId] = []
        for rack in self.stage.fleet.racks.values():
            self._rack_later(rack.spec.rack)
            for node in rack.nodes:
                if self._of(node.name).random() < self.model.unavailable:
                    first.append(node.name)
                else:
                    self._node_later(node.name)
                self._slow_later(node.name)
                self._noise_later(node.name)
        for name in first:
            self._fail(name, silent=False)

    def _of(self, name: str) -> random.Random:
        known = self._chances.get(name)
        if known is None:
            known = self._chances[name] = random.Random(f"{self.model.seed}/{name}")
        return known

    def _node(self, name: NodeId) -> Node:
        return self.stage.fleet.node(name)

    # Nodes

    def _node_later(self, name: NodeId) -> None:
        rate = self.model.node_rate(name)
        if rate:
            wait = self._of(name).expovariate(rate)
            self.stage.engine.later(wait, self._fault, name)

    def _fault(self, name: NodeId) -> None:
        silent = self._of(name).random() < self.model.silent
        if name in self.down:
            self._node_later(name)  # it is away with its rack
        else:
            self._fail(name, silent=silent)

    def _fail(self, name: NodeId, *, silent: bool) -> None:
        self.counts.nodes += 1
        self._take_down([name])
        engine, timing = self.stage.engine, self.world.timing
        self.world.node_gone(name, silent=silent)
        seconds = self.model.repair_s(self._of(name))
        if silent:
            suspect, declare = timing.silence_s(self.stage.fleet.policy)
            engine.later(suspect, self._suspect, name)
            engine.later(suspect + declare, self._declare, name)
            seconds = max(seconds, suspect + declare + 60.0)
        else:
            engine.later(timing.notice_of_fault_s, self._unfit, name)
            seconds = max(seconds, timing.notice_of_fault_s + 60.0)
        engine.later(seconds, self._repaired, name)

    def _take_down(self, names: list[NodeId]) -> None:
        for name in names:
            self.down[name] = self.down.get(name, 0) + 1

    def _unfit(self, name: NodeId) -> None:
        node = self._node(name)
        if node.fitness is Fitness.NONE or node.failed:
            return
        self.stage.observe([unfit(node, GONE)])
        self._ask_repair(name)

    def _suspect(self, name: NodeId) -> None:
        node = self._node(name)
        if node.session is not None and not node.suspected:
            entry = NodeSuspected(node=name, of=node.last, session=node.session, reason=SILENT)
            self.stage.observe([entry])

    def _declare(self, name: NodeId) -> None:
        node = self._node(name)
        if node.failed or node.session is None:
            return
        self.stage.observe(
            [NodeFailed(node=name, of=node.last, session=node.session, fenced=True, reason=SILENT)]
        )
        self._ask_repair(name)

    def _ask_repair(self, name: NodeId) -> None:
        node = self._node(name)
        action = RepairAction.REPLACE
        self.stage.observe(
            [RepairRequested(node=name, of=node.last, action=action, reason=Reason(code=node.why))]
        )

    def _repaired(self, name: NodeId) -> None:
        self._give_back([name])
        self._node_later(name)

    def _give_back(self, names: list[NodeId]) -> None:
        """Back in service, on probation as the policy wants it."""
        back = []
        for name in names:
            left = self.down[name] - 1
            if left:
                self.down[name] = left
            else:
                del self.down[name]
                self.world.dead.discard(name)
                back.append(name)
        fleet, now = self.stage.fleet, self.stage.engine.now
        self.stage.observe(self.stage.joined(n) for n in back if fleet.node(n).session is None)
        entries = []
        for name in back:
            node = self._node(name)
            until = probation_until(node, fleet.policy, now)
            entries.append(
                NodeRecovered(
                    node=name,
                    of=node.last,
                    fitness=Fitness.FULL,
                    probation_until=until,
                    reason=RETURNED,
                )
            )
        self.stage.observe(entries)

    # Racks

    def _rack_later(self, rack: str) -> None:
        if self.model.rack_mtbi_days is not None:
            wait = self._of(rack).expovariate(1 / (self.model.rack_mtbi_days * DAY))
            self.stage.engine.later(wait, self._rack_fault, rack)

    def _rack_fault(self, name: str) -> None:
        self.counts.racks += 1
        rack = self._rack(name)
        names = [node.name for node in rack.nodes]
        self._take_down(names)
        for node in names:
            self.world.node_gone(node, silent=False)
        self.stage.decide(
            (RackDegraded(rack=rack.spec.rack, fitness=RackFitness.EVACUATE, reason=RACK_EVENT),)
        )
        nodes = [node for node in self._rack(name).nodes if node.fitness is not Fitness.NONE]
        self.stage.observe(unfit(node, RACK_EVENT) for node in nodes if not node.failed)
        seconds = self._of(name).expovariate(1 / (self.model.rack_repair_h * HOUR))
        self.stage.engine.later(max(60.0, seconds), self._rack_repaired, name)

    def _rack(self, name: str) -> Rack:
        fleet = self.stage.fleet
        return next(rack for rack in fleet.racks.values() if rack.spec.rack == name)

    def _rack_repaired(self, name: str) -> None:
        rack = self._rack(name)
        self._give_back([node.name for node in rack.nodes])
        self.stage.decide((RackRestored(rack=rack.spec.rack, reason=RETURNED),))
        self._rack_later(name)

    # Jobs

    def job_goes_on(self, run: Run) -> None:
        """Work has begun or goes on: when will its own software fail?"""
        days = self.model.job_gpu_days
        if days is None:
            return
        rng = random.Random(f"{self.model.seed}/{run.job.id}/{run.done_s:.3f}/{run.started}")
        wait = rng.expovariate(run.job.gpus / (days * DAY))
        if wait < run.job.work_s - run.done_s:
            hang = rng.random() < self.model.hangs
            self.stage.engine.later(wait, self._job_fault, run, run.started, hang)

    def _job_fault(self, run: Run, membership: int, hang: bool) -> None:
        if not run.speed or run.started != membership or run.job.id not in self.world.runs:
            return
        self.counts.jobs += 1
        if not hang:
            self.world.exit(run, 1)
            return
        self.counts.hangs += 1
        self.world.stall(run)
        self.stage.engine.later(self.model.hang_s, self._seen_to_hang, run, membership)

    def _seen_to_hang(self, run: Run, membership: int) -> None:
        if run.started == membership and not run.speed and run.job.id in self.world.runs:
            self.world.exit(run, 1)

    # Slow nodes, and noise

    def _slow_later(self, name: NodeId) -> None:
        if self.model.slow_mtbi_days is not None:
            wait = self._of(f"{name}/slow").expovariate(1 / (self.model.slow_mtbi_days * DAY))
            self.stage.engine.later(wait, self._slow, name)

    def _slow(self, name: NodeId) -> None:
        self.counts.slow += 1
        self.world.slow_down(name, self.model.slow_speed)
        found = self._of(f"{name}/slow").expovariate(1 / (self.model.slow_found_h * HOUR))
        self.stage.engine.later(found, self._drained, name)

    def _drained(self, name: NodeId) -> None:
        """An operator has found it: what runs leaves it, and it comes back as fast as others."""
        self.stage.decide((NodeCordoned(node=name, drain=True, by=OPERATOR, why="slow"),))
        self.stage.engine.later(self.model.repair_h * HOUR, self._fast_again, name)

    def _fast_again(self, name: NodeId) -> None:
        self.world.slow.pop(name, None)
        self.stage.decide((NodeUncordoned(node=name, by=OPERATOR),))
        self._slow_later(name)

    def _noise_later(self, name: NodeId) -> None:
        if self.model.noise_mtbi_days is not None:
            wait = self._of(f"{name}/noise").expovariate(1 / (self.model.noise_mtbi_days * DAY))
            self.stage.engine.later(wait, self._noise, name)

    def _noise(self, name: NodeId) -> None:
        self.counts.noise += 1
        if name not in self.down:
            self._suspect(name)
            self.stage.engine.later(4.0, self._heard, name)
        self._noise_later(name)

    def _heard(self, name: NodeId) -> None:
        node = self._node(name)
        if node.suspected and node.session is not None and name not in self.down:
            self.stage.observe([NodeCleared(node=name, of=node.last, session=node.session)])


def unfit(node: Node, reason: Reason) -> NodeUnfit:
    """The node is good for nothing."""
    return NodeUnfit(
        node=node.name,
        of=node.last,
        fitness=Fitness.NONE,
        action=RepairAction.REPLACE,
        reason=reason,
    )
