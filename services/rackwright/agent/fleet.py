"""The nodes of one agent process, on one connection: one real node, or many virtual ones."""

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import structlog

from rackwright.agent.backend import Backend
from rackwright.agent.checks import check_of
from rackwright.agent.gpus import Finding, GpuWatch
from rackwright.agent.inotify import Inotify
from rackwright.agent.kernel_log import LogFile
from rackwright.agent.kernel_ring import KernelRing, open_ring
from rackwright.agent.launch import Launcher
from rackwright.agent.lease import now_ns
from rackwright.agent.leftovers import GpuMemory
from rackwright.agent.limits import XidSignal
from rackwright.agent.links import Jobs, Racks
from rackwright.agent.neighbours import Neighbours
from rackwright.agent.node import NodeAgent
from rackwright.agent.outbox import Outbox
from rackwright.agent.pretend import Checkpoints, Pretence, PretendedWorkers
from rackwright.agent.processes import boot_id
from rackwright.agent.progress import ProgressReader
from rackwright.agent.said import Who, gpu_fault, xid_fault
from rackwright.agent.workers import WorkerStore
from rackwright.bus.ports import Bus
from rackwright.wire.codec import encode
from rackwright.wire.ids import CellName, NodeId, RackId, SessionId
from rackwright.wire.message import Body, Envelope
from rackwright.wire.nodes import Hardware
from rackwright.wire.signals import Echo, Fault
from rackwright.wire.subjects import Subjects
from rackwright.wire.values import JobValue, RackAssignments

FIRST_HEARTBEAT_S = 0.5  # until an echo has told the cell's own
REANNOUNCE_S = 60.0
WATCH_EVERY_JOB = 32  # nodes; a process that hosts so many listens to all jobs at once
KMSG = Path("/dev/kmsg")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """One node to host. `root` is its directory; `kernel_log` a file, /dev/kmsg, or None.

    `driver`: its GPUs are real, and the NVIDIA driver is asked about them.
    """

    node: NodeId
    rack: RackId
    hardware: Hardware
    root: Path
    kernel_log: Path | None = None
    gpu_pci: tuple[str, ...] = ()
    driver: bool = False


class AgentProcess:
    """Hosts `nodes` on `bus`. `pretend`: workers are no processes. `key`: neighbours may ask at
    UDP address `asked_at` (port 0: a free one); None: the nodes have no second tier of leases."""

    def __init__(
        self,
        bus: Bus,
        nodes: tuple[NodeConfig, ...],
        *,
        pretend: bool = False,
        hooks: Path | None = None,
        cgroups: Path | None = None,
        key: bytes | None = None,
        asked_at: tuple[str, int] = ("0.0.0.0", 0),
    ) -> None:
        self._bus = bus
        self._cell = CellName(bus.cell)
        self._subjects = Subjects(self._cell)
        self._pretend = pretend
        self._hooks = hooks
        self._cgroups = cgroups
        self._checkpoints = Checkpoints()
        self._inotify = Inotify()
        self._launcher = None if pretend else Launcher()
        self._logs: list[LogFile | KernelRing] = []
        self._gpu_watches: list[GpuWatch] = []
        self._heartbeat_s = FIRST_HEARTBEAT_S
        self._counter = 0
        self.nodes: dict[NodeId, NodeAgent] = {}
        self._neighbours = Neighbours(self._cell, self.nodes, key=key)
        self._asked_at = asked_at
        self._by_rack: dict[RackId, list[NodeAgent]] = {}
        self._by_status: dict[str, NodeAgent] = {}
        self._outbox = Outbox(bus, self._status_bytes)
        self._jobs = Jobs(bus, self._on_job, every=len(nodes) >= WATCH_EVERY_JOB)
        self._configs = nodes

    async def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Find what lives, join, and go on until cancelled; workers outlive this process."""
        await self._neighbours.open(self._asked_at)
        for config in self._configs:
            self._add(config)
        racks = Racks(self._bus, self._by_rack, self._on_value, self._on_echo)
        self._bus.link.on_reconnect(self._announce)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._outbox.run())
                tasks.create_task(self._jobs.run())
                tasks.create_task(racks.run())
                tasks.create_task(self._beat())
                tasks.create_task(self._remind())
                tasks.create_task(self._neighbours.run())
                for watch in self._gpu_watches:
                    tasks.create_task(watch.run())
                ready()
        finally:
            self._neighbours.close()
            for one in self._logs:
                one.close()
            for node in self.nodes.values():
                node.workers.close()
            await self._jobs.close()
            self._inotify.close()
            if self._launcher is not None:
                self._launcher.close()

    def _add(self, config: NodeConfig) -> None:
        who = Who(
            node=config.node,
            rack=config.rack,
            session=SessionId(f"s{secrets.token_hex(6)}"),
            boot=boot_id(),
        )
        status = self._subjects.status(who.rack, who.node)
        node = NodeAgent(
            cell=self._cell,
            who=who,
            hardware=replace(
                config.hardware,
                checks=check_of(self._hooks) is not None,
                port=self._neighbours.port,
            ),
            job_of=self._jobs.value,
            say=lambda: self._outbox.status_changed(status),
            tell=self._tell,
            root=None if self._pretend else config.root,
            hooks=self._hooks,
            memory=GpuMemory() if config.driver and not self._pretend else None,
        )
        self.nodes[config.node] = node
        self._by_rack.setdefault(config.rack, []).append(node)
        self._by_status[status] = node
        if self._pretend:
            workers = PretendedWorkers(
                node.on_record, self._pretence, self._checkpoints, node.on_progress
            )
            node.attach(workers, None, workers.save)
        else:
            self._add_real(node, config)
        self._follow_log(node, config)
        if config.driver:
            self._watch_gpus(node, config)

    def _add_real(self, node: NodeAgent, config: NodeConfig) -> None:
        config.root.mkdir(parents=True, exist_ok=True)
        store = WorkerStore(
            config.root, node.on_record, cgroups=self._cgroups, launcher=self._launcher
        )
        reader = ProgressReader(self._inotify, node.on_progress)
        node.read_progress_with(reader)
        node.attach(store, store.files)  # first: what has died meanwhile is told while it opens
        for record in store.open():
            reader.follow(record.worker_id, store.files(record.worker_id))
            log.info("worker.adopted", node=config.node, worker=record.worker_id, pid=record.pid)

    def _pretence(self, worker: str) -> Pretence:
        return Pretence.of(self._jobs.value(worker.partition("/")[0]))

    def _follow_log(self, node: NodeAgent, config: NodeConfig) -> None:
        if config.kernel_log is None:
            return
        gpus = {pci: index for index, pci in enumerate(config.gpu_pci)}

        def on_xid(signal: XidSignal) -> None:
            self._tell(xid_fault(node.who, signal, gpus, time.time()))

        config.root.mkdir(parents=True, exist_ok=True)
        position = config.root / "kernel-log.position"
        if config.kernel_log == KMSG:
            self._logs.append(KernelRing(open_ring(position), position, on_xid))
        else:
            config.kernel_log.parent.mkdir(parents=True, exist_ok=True)
            self._logs.append(LogFile(config.kernel_log, position, self._inotify, on_xid))

    def _watch_gpus(self, node: NodeAgent, config: NodeConfig) -> None:
        def tell(finding: Finding) -> None:
            self._tell(gpu_fault(node.who, finding, time.time()))

        self._gpu_watches.append(GpuWatch(config.hardware.gpus, tell, seen=node.on_gpus))

    def _envelope(self, who: Who, body: Body) -> bytes:
        self._counter += 1
        return encode(
            Envelope(
                id=f"{who.node}-{who.session}-{self._counter}",  # type: ignore[arg-type]
                type=body.TYPE,
                v=body.VERSION,
                at=time.time(),
                source=f"node-agent/{who.node}",
                cell=self._cell,
                body=body,
            )
        )

    def _status_bytes(self, subject: str) -> bytes:
        node = self._by_status[subject]
        return self._envelope(node.who, node.status())

    def _tell(self, fault: Fault) -> None:
        who = self.nodes[fault.node].who
        self._outbox.fault(self._subjects.signal(who.rack, who.node), self._envelope(who, fault))

    def _on_job(self, value: JobValue) -> None:
        for part in value.slices:
            for node in self._by_rack.get(part.rack, ()):
                node.job_changed(value)

    def _on_value(self, value: RackAssignments) -> None:
        for node in self._by_rack.get(value.rack, ()):
            node.assigned(value)
            self._neighbours.know(node.neighbours)
        if not self._jobs.every:
            nodes = self.nodes.values()
            self._jobs.keep(worker.partition("/")[0] for node in nodes for worker in node.named())

    def _on_echo(self, echo: Echo) -> None:
        if echo.heartbeat_s > 0:
            self._heartbeat_s = echo.heartbeat_s
        for line in echo.lines:
            node = self.nodes.get(line.node)
            if node is not None:
                node.echoed(line.session, line.n, echo.lease_s, echo.head)

    async def _beat(self) -> None:
        """Heartbeats of all nodes, spread over the interval so that they do not come in bursts."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            nodes = list(self.nodes.values())
            share = max(1, len(nodes) // 10)
            for start in range(0, len(nodes), share):
                for node in nodes[start : start + share]:
                    await self._send_heartbeat(node)
                due += self._heartbeat_s * min(share, len(nodes)) / len(nodes)
                await asyncio.sleep(max(0.0, due - loop.time()))
            due = max(due, loop.time())

    async def _send_heartbeat(self, node: NodeAgent) -> None:
        node.renew_if_lapsed()
        if node.silent:
            return
        node.remind()
        self._neighbours.ask_for(node)
        who, beat = node.who, node.beat(now_ns())
        subject = self._subjects.heartbeat(who.rack, who.node)
        await self._bus.core.publish(subject, self._envelope(who, beat))

    def _announce(self) -> None:
        """After a reconnect: the bus may have forgotten what is kept in memory."""
        for status in self._by_status:
            self._outbox.status_changed(status)

    async def _remind(self) -> None:
        while True:
            await asyncio.sleep(REANNOUNCE_S)
            self._announce()


def workers_of(process: AgentProcess) -> dict[str, Any]:
    """For people: every worker of this process with its record."""
    backends: list[Backend] = [node.workers for node in process.nodes.values()]
    return {worker: record for one in backends for worker, record in one.records.items()}
