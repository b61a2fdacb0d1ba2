"""What goes wrong, and when: each kind of fault with a chance of its own, drawn from the seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from rackwright.bus.streams import Kind
from rackwright.core.evolve import evolve
from rackwright.core.machine import Offer
from rackwright.host.commits import Author
from rackwright.sim.paths import WindyPath
from rackwright.wire.entries.cell import CellUpgraded, LedgerTicked
from rackwright.wire.ids import LedgerId, NodeId, Owner
from tests.simulation.agents import SimNode
from tests.simulation.knobs import RATES, RATES_ADDED
from tests.simulation.members import CELL, UPGRADED, Member
from tests.simulation.users import Users
from tests.simulation.world import World

PCI = b"0000:%02x:00"
FATAL = (
    b"NVRM: Xid (PCI:%s): 79, pid=1234, name=python, GPU has fallen off the bus.",
    b"NVRM: Xid (PCI:%s): 48, pid=77, name=python, An uncorrectable double bit error",
    b"NVRM: Xid (PCI:%s): 95, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",
    b"NVRM: Xid (PCI:%s): 119, pid=9, name=x, Timeout waiting for RPC from GSP",
    b"NVRM: Xid (PCI:%s): 149, NETIR_LINK_DOWN Fatal XC0 i0 Link 3 (0x1 0x2 0x3 0x4 0x5)",
)
SYMPTOM = b"NVRM: Xid (PCI:%s): 145, pid=4, name=a b, RLW_SRC_TRACK Nonfatal XC1 i2 Link 14"
NOISE = (
    b"NVRM: Xid (PCI:%s): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception",
    b"NVRM: Xid (PCI:%s): 9999, something that no table knows",
    b"NVRM: Xid (PCI:%s): 31, pid=5, name=python, MMU Fault",
    b"NVRM: Xid (PCI:zz): what is this",
    b"usb 1-1: new high-speed device",
)
HOUR = 3600.0
GARBAGE = (b"", b"{", b"[]", b'{"type":"wish.submit"}', b"\xff\xfe", b'{"job": 7}')


class Nemesis:
    """Draws the moments of every fault of this world, and lets it happen."""

    def __init__(self, world: World, users: Users) -> None:
        self.world = world
        self.users = users
        self.random = Random(0)
        self.lines = 0
        self.rotten: set[int] = set()
        self.acts: dict[str, Callable[[], None]] = {
            "process killed": lambda: self.member().kill(),
            "process paused": self._pause_process,
            "process cut off": self._cut_process,
            "process restarted old": self._restart_old,
            "agent killed": self._kill_agent,
            "agent paused": self._pause_agent,
            "node dies": lambda: self._power_off(self.random.uniform(0.5, 12.0)),
            "node reboots": lambda: self._power_off(0.0),
            "node leaves for good": lambda: self._power_off(None),
            "node cut off": lambda: self._cut([self.node().path]),
            "node in one direction": self._deafen,
            "rack cut off": self._cut_rack,
            "half cut off": self._cut_half,
            "kill stuck": self._stick,
            "fault": lambda: self._kernel(self.node(), self.random.choice(FATAL)),
            "symptoms of a rack": self._symptoms,
            "noise": lambda: self._kernel(self.node(), self.random.choice(NOISE)),
            "bus outage": self._outage,
            "values lost": self._lose_values,
            "statuses lost": self._lose_statuses,
            "snapshot corrupted": self._corrupt,
            "foreign commit": self._foreign,
            "garbage": self._garbage,
            "wish repeated": users.repeat,
            "job cancelled": users.cancel,
            "drain": users.drain,
            "cordon": users.cordon,
            "swap wished": users.swap,
            "hold": users.hold,
            "maintenance": users.maintain,
            "automation paused": users.pause,
            "read only": users.read_only,
            "policy set": users.policy,
            "repair": users.repair,
            "rack defined": users.define,
            "bus clock jumps": self._jump,
            "long silence": self._silence,
            "long outage": self._long_outage,
            "island": self._island,
            "minority": self._minority,
            "wall clock jumps": self._set_wall,
            "cell upgraded": self._upgrade,
        }
        assert set(self.acts) == {*RATES, *RATES_ADDED}

    def begin(self) -> None:
        """Draw when each fault comes; leaving one kind out moves no other."""
        knobs = self.world.knobs
        for kind, rate in knobs.rates.items():
            if kind not in self.acts:
                continue
            random = Random(f"{kind} {knobs.seed}")
            at = random.expovariate(rate / knobs.chaos_s)
            while at < knobs.chaos_s:
                self.world.engine.later(0.5 + at, self._happen, kind, random.random())
                at += random.expovariate(rate / knobs.chaos_s)

    def _happen(self, kind: str, draw: float) -> None:
        self.random = Random(f"{kind} {draw}")
        self.world.happened(kind)
        self.world.tell(f"-- {kind}")
        self.acts[kind]()

    def member(self) -> Member:
        """Any process."""
        return self.random.choice(self.world.members)

    def node(self) -> SimNode:
        """Any node."""
        return self.world.nodes[self.random.choice(list(self.world.nodes))]

    # Processes

    def _pause_process(self) -> None:
        process = self.member().process
        if process is not None:
            process.pause()
            self.world.engine.later(self.random.uniform(0.1, 6.0), process.resume)

    def _restart_old(self) -> None:
        """It comes back at once, from an older snapshot if there is one."""
        member = self.member()
        self._corrupt()
        member.kill()

    def _set_wall(self) -> None:
        """Somebody sets the wall clock of a process, by seconds or by days."""
        process = self.member().process
        if process is not None:
            by = self.random.choice((-1e6, -90.0, -5.0, 5.0, 90.0, 1e6))
            process.set_wall(by)

    # Ways

    def _silence(self) -> None:
        """A node is not heard for as long as it takes to declare it dead; its work may live on."""
        node, for_s = self.node(), self.random.uniform(9.0, 16.0)
        match self.random.randrange(4):
            case 0:
                self._cut([node.path], least_s=9.0, longest_s=16.0)
            case 1 if node.agent is not None:
                node.kill_agent()
                self.world.engine.later(for_s, self._agent_again, node)
            case 2 if node.agent is not None and not node.paused:
                node.pause_agent()
                self.world.engine.later(for_s, node.resume_agent)
            case _:
                node.deaf = True
                self.world.engine.later(for_s, self._undeafen, node)

    def _minority(self) -> None:
        """A server cut off from the quorum has a monitor and a node: they go on hearing each other,
        and of the ledger neither hears more."""
        world, node = self.world, self.node()
        monitors = [one for one in world.members if one.service == "health-monitor"]
        member = self.random.choice(monitors)
        if member.behind or node.heard_by is not None:
            return
        member.behind = True
        node.heard_by = member.name
        member.path.cut = True
        world.count_copies()
        world.engine.later(self.random.uniform(9.0, 16.0), self.join_again, member, node)

    def join_again(self, member: Member, node: SimNode) -> None:
        """The servers see each other again."""
        member.behind = False
        node.heard_by = None
        member.path.mend()
        self.world.count_copies()

    def _cut(self, paths: list[WindyPath], longest_s: float = 8.0, least_s: float = 0.3) -> None:
        for path in paths:
            path.cut = True
        self.world.engine.later(self.random.uniform(least_s, longest_s), self._mend, paths)

    def _mend(self, paths: list[WindyPath]) -> None:
        for path in paths:
            path.mend()

    def _cut_process(self) -> None:
        member = self.member()
        self._cut([member.path, member.core])

    def _cut_rack(self) -> None:
        rack = self.random.choice(self.world.racks).rack
        self._cut([node.path for node in self.world.nodes.values() if node.rack == rack])

    def _cut_half(self) -> None:
        nodes = list(self.world.nodes.values())
        self._cut([node.path for node in self.random.sample(nodes, len(nodes) // 2)])

    def _outage(self) -> None:
        """Nobody reaches the bus."""
        members = [path for member in self.world.members for path in (member.path, member.core)]
        nodes = [node.path for node in self.world.nodes.values()]
        self._cut([*members, *nodes, self.users.path], longest_s=5.0)

    def _long_outage(self) -> None:
        """Nobody reaches the bus for longer than a lease; neighbours reach each other."""
        members = [path for member in self.world.members for path in (member.path, member.core)]
        nodes = [node.path for node in self.world.nodes.values()]
        self._cut([*members, *nodes, self.users.path], least_s=6.0, longest_s=14.0)

    def _island(self) -> None:
        """A node, a rack or half of all nodes reach neither the bus nor anybody outside."""
        rack, nodes = self.random.choice(self.world.racks).rack, list(self.world.nodes.values())
        half = self.random.sample(nodes, len(nodes) // 2)
        inside = [one for one in nodes if one.rack == rack]
        name, island = self.random.choice(
            (("lone", [self.node()]), (rack, inside), ("half", half), ("half", half))
        )
        for one in island:
            one.island = name
            self.world.engine.later(self.random.uniform(9.0, 16.0), self._ashore, one)
        self._cut([one.path for one in island], longest_s=24.0, least_s=9.0)

    def _ashore(self, node: SimNode) -> None:
        node.island = ""

    def _deafen(self) -> None:
        node = self.node()
        node.deaf = True
        self.world.engine.later(self.random.uniform(1.0, 8.0), self._undeafen, node)

    def _undeafen(self, node: SimNode) -> None:
        node.deaf = False

    # Nodes

    def _kill_agent(self) -> None:
        node = self.node()
        if node.agent is not None:
            node.kill_agent()
            self.world.engine.later(self.random.uniform(0.1, 6.0), self._agent_again, node)

    def _agent_again(self, node: SimNode) -> None:
        if node.up and node.agent is None:
            self.world.load_jobs(node)
            node.start_agent()

    def _pause_agent(self) -> None:
        node = self.node()
        if node.agent is not None and not node.paused:
            node.pause_agent()
            self.world.engine.later(self.random.uniform(0.5, 8.0), node.resume_agent)

    def _power_off(self, back_s: float | None) -> None:
        node = self.node()
        if not node.up:
            return
        node.power_off()
        if back_s is not None:
            self.world.engine.later(back_s, self.boot, node)

    def boot(self, node: SimNode) -> None:
        """The host comes up if it is down."""
        if not node.up:
            self.world.load_jobs(node)
            node.boot()

    def give_back(self, node: SimNode) -> None:
        """Whatever was done to it is over."""
        node.deaf = False
        node.heard_by = None
        node.island = ""
        node.habits.stuck_until = 0.0
        self.boot(node)
        if node.paused:
            node.resume_agent()
        self._agent_again(node)

    def _stick(self) -> None:
        node = self.node()
        node.habits.stuck_until = self.world.engine.now + self.random.uniform(0.5, 6.0)

    def _kernel(self, node: SimNode, line: bytes) -> None:
        self.lines += 1
        filled = line % (PCI % self.random.randint(1, 4)) if b"%s" in line else line
        node.kernel_says(filled, f"log:{self.lines}")

    def _symptoms(self) -> None:
        """A switch: many nodes of a rack complain, perhaps one of them knows why."""
        rack = self.random.choice(self.world.racks).rack
        nodes = [node for node in self.world.nodes.values() if node.rack == rack]
        for node in nodes:
            if self.random.random() < 0.7:
                self._kernel(node, SYMPTOM)
        if self.random.random() < 0.5:
            self._kernel(self.random.choice(nodes), FATAL[-1])

    # The bus

    def _jump(self) -> None:
        """An hour either way, a few seconds, or right again."""
        ahead = self.random.uniform(*self.random.choice(((-HOUR, HOUR), (-5.0, 5.0), (0.0, 0.0))))
        self.world.bus_ahead = ahead

    def _upgrade(self) -> None:
        """An administrator has upgraded every copy and says so; one that was left out stops."""
        world = self.world
        fleet = world.ledger.fleet
        if fleet.fold_version < UPGRADED:
            entry = CellUpgraded(fold_version=fleet.fold_version + 1)
            author = Author(CELL, "admin", 0, token=f"u{fleet.seq}")
            sealed = author.seal(fleet, Offer(entries=(entry,)), world.engine.now)
            world.ledger.append(sealed)

    def _lose_values(self) -> None:
        """What the buckets keep in memory is gone; whoever reconnects looks again."""
        for kind in (Kind.ASSIGN, Kind.JOBS):
            self.world.forget(kind)
        for member in self.world.members:
            member.values_lost()

    def _lose_statuses(self) -> None:
        self.world.forget(Kind.STATUS)
        for node in self.world.nodes.values():
            node.say()

    def _corrupt(self) -> None:
        """A bit of the newest snapshot rots; the one before it is whole, as the promise needs."""
        world = self.world
        stream = world.store.stream(Kind.SNAP)
        chunks = [s for s in stream.messages.values() if s.subject.endswith(".0")]
        if len(chunks) > 1 and not any(chunk.seq in self.rotten for chunk in chunks):
            newest = max(chunks, key=lambda s: int(s.subject.split(".")[-2]))
            place = self.random.randrange(len(newest.data))
            self.rotten.add(newest.seq)
            data = bytearray(newest.data)
            data[place] ^= 1 << self.random.randrange(8)
            stream.messages[newest.seq] = replace(newest, data=bytes(data))

    def _foreign(self) -> None:
        """A commit made for another ledger, or chained to what was never there, is stored."""
        world = self.world
        fleet = world.ledger.fleet
        author = Author(CELL, "health-monitor", 7, token=f"f{self.lines}-{world.engine.handled}")
        offer = Offer(entries=(LedgerTicked(),), compare=self.random.random() < 0.5)
        other = evolve(fleet, ledger=LedgerId("another"))
        world.ledger.append(author.seal(other, offer, world.engine.now))

    def _garbage(self) -> None:
        world = self.world
        data = self.random.choice(GARBAGE)
        node = self.node()
        kind, subject = self.random.choice(
            (
                (Kind.WISH, world.subjects.wish(Owner("eve"), "wish.submit")),
                (Kind.SIGNAL, world.subjects.signal(node.rack, NodeId(node.name))),
                (Kind.STATUS, world.subjects.status(node.rack, NodeId(node.name))),
            )
        )
        world.store.append(kind, subject, data)
        if kind is Kind.STATUS:
            node.say()
