"""A whole cell on this machine: nats-server, every service as a process, a fleet of agents."""

import asyncio
import socket
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import structlog

from rackwright.agent.config import write_fleet
from rackwright.bus.embedded import EmbeddedOptions, EmbeddedServer
from rackwright.bus.jetstream import JetStreamBus, connect
from rackwright.bus.options import ConnectOptions
from rackwright.cli.credentials import ADMIN, AGENT, NEIGHBOURS, Context, Credentials
from rackwright.cli.keeper import Kept, Program, Tell, stop_all
from rackwright.cli.preparing import deal, prepare
from rackwright.cli.session import DEFAULT_USER
from rackwright.cli.watcher import Watched, watch
from rackwright.core.fleet import Fleet
from rackwright.wire.nodes import RackSpec
from rackwright.wire.policy import Policy

SERVICES = (
    "placer",
    "health-monitor",
    "spare-manager",
    "defragmenter",
    "dispatcher",
    "gateway",
)
# All of them share these processors: who tells of faults, finds the culprit and heals comes first.
NICE = {"placer": 5, "dispatcher": 5, "defragmenter": 10, "gateway": 10}

log = structlog.get_logger()


def _log_only(_: str) -> None:
    """The keeper logs what it does anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """What to start. `solo` nodes have an agent process of their own, the racks' other nodes are
    dealt out to `agents` more (0: nobody hosts them). `pretend`: workers are no processes.
    `hooks`: directory of the site's hooks."""

    state_dir: Path
    racks: tuple[RackSpec, ...]
    cell: str = "main"
    policy: Policy = Policy()
    owner: str = DEFAULT_USER
    owners: tuple[str, ...] = ()
    nats_port: int = -1
    http_port: int = 0
    copies: dict[str, int] = field(default_factory=dict)
    pretend: bool = False
    agents: int = 1
    solo: frozenset[str] = frozenset()
    log_level: str = "info"
    trace_dir: Path | None = None
    hooks: Path | None = None


class Stack:
    """Starts and stops a cell; a context manager. Raises what the bus raises.

    `tell` gets a line when a process has ended by itself, and one when it is back.
    """

    def __init__(self, options: StackOptions, tell: Tell = _log_only) -> None:
        self.options = options
        self._tell = tell
        self.credentials = Credentials(root=options.state_dir / "credentials")
        self._agents = deal(options.racks, options.agents, options.solo)
        self.server = EmbeddedServer(
            EmbeddedOptions(
                data_dir=options.state_dir / "nats",
                port=options.nats_port,
                users=self.credentials.users(
                    options.cell,
                    {**options.copies, AGENT: len(self._agents)},
                    (options.owner, *options.owners),
                ),
                adopt=True,
                tied=True,
            )
        )
        self.kept: dict[str, Kept] = {}
        self._ports: dict[str, int] = {}

    async def start(self) -> None:
        """Start all of it, in order; what is there already is kept."""
        self.options.state_dir.mkdir(parents=True, exist_ok=True)
        if self.options.http_port:
            _check_free(self.options.http_port)
        await self.server.start()
        admin = await self.connect(ADMIN)
        try:
            options = self.options
            await prepare(admin, options.policy, options.racks, options.owner, "up")
        finally:
            await admin.close()
        self.context.save(self.options.state_dir)
        for program in (*self._services(), *self._agent_programs()):
            ready = partial(self.answers, program.name) if program.name in self._ports else None
            logs = self.options.state_dir / "logs"
            kept = Kept(program, logs, tell=self._tell, ready=ready)
            self.kept[program.name] = kept
            kept.start()

    @property
    def context(self) -> Context:
        """How commands find this cell."""
        return Context(
            nats=self.server.url,
            cell=self.options.cell,
            user=self.options.owner,
            password_file=str(self.credentials.password_file(self.options.owner)),
            http=f"http://127.0.0.1:{self._port('gateway-0')}",
        )

    async def connect(self, user: str) -> JetStreamBus:
        """A connection as one of the cell's users."""
        options = ConnectOptions(
            servers=(self.server.url,),
            identity=user,
            user=user,
            password=self.credentials.password(user),
        )
        return await connect(options, self.options.cell)

    async def ready(self, watched: Watched) -> Fleet:
        """Wait until every service may decide and every node has joined; the fleet then."""
        await asyncio.gather(*(self.answers(name) for name in self._service_names()))
        return await watched.until(_all_joined)

    async def stop(self) -> None:
        """Stop agents and services, then the server. Workers end by their lease."""
        await stop_all([kept for name, kept in self.kept.items() if name.startswith(AGENT)])
        await stop_all([kept for name, kept in self.kept.items() if not name.startswith(AGENT)])
        await self.server.stop()

    async def __aenter__(self) -> "Stack":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def watching(self) -> AbstractAsyncContextManager[Watched]:
        """A fold of the ledger in this process, as the administrator sees it."""
        return watch(self.connect, ADMIN)

    def _service_names(self) -> list[str]:
        copies = self.options.copies
        return [f"{name}-{copy}" for name in SERVICES for copy in range(copies.get(name, 1))]

    def _services(self) -> Iterable[Program]:
        for name in self._service_names():
            service, _, copy = name.rpartition("-")
            yield Program(
                name=name,
                module=f"rackwright.{service.replace('-', '_')}",
                arguments=("--copy", copy, *self._common(name), "--http-port", self._port(name)),
                nice=NICE.get(service, 0),
            )

    def _common(self, name: str) -> tuple[str, ...]:
        options = self.options
        traces: tuple[str, ...] = ()
        if options.trace_dir is not None:
            traces = ("--trace-file", str(options.trace_dir / f"{name}.jsonl"))
        return (
            *("--nats", self.server.url),
            *("--cell", options.cell),
            *("--user", name),
            *("--password-file", str(self.credentials.password_file(name))),
            *("--log-level", options.log_level),
            *("--state-dir", str(options.state_dir / name)),
            *traces,
        )

    def _port(self, name: str) -> str:
        if name not in self._ports:
            wanted = self.options.http_port if name == "gateway-0" else 0
            self._ports[name] = wanted or free_port_besides(self._ports.values(), _free_port)
        return str(self._ports[name])

    def _agent_programs(self) -> Iterable[Program]:
        state = self.options.state_dir
        more = ("--pretend",) if self.options.pretend else ()
        if self.options.hooks is not None:
            more = (*more, "--hooks", str(self.options.hooks))
        for copy, group in enumerate(self._agents):
            name = f"{AGENT}-{copy}"
            fleet = state / f"{name}.fleet.json"
            write_fleet(fleet, group)
            common = [*self._common(name)]
            common[common.index("--state-dir") + 1] = str(state)
            self.credentials.password(NEIGHBOURS)  # each agent has a user, and they share this
            common += ["--neighbours-key", str(self.credentials.password_file(NEIGHBOURS))]
            common += ["--neighbours-host", "127.0.0.1"]
            yield Program(
                name=name,
                module="rackwright.agent",
                arguments=("--copy", str(copy), *common, "--fleet", str(fleet), "--inject", *more),
            )

    def agent_of(self, node: str) -> Kept:
        """The agent process that hosts a node. Raises KeyError."""
        for copy, group in enumerate(self._agents):
            if any(one.node == node for one in group):
                return self.kept[f"{AGENT}-{copy}"]
        raise KeyError(node)

    async def answers(self, name: str) -> None:
        """Wait until a service says on its own port that it is ready."""
        port = int(self._port(name))
        while not await _is_ready(port):  # noqa: ASYNC110 - another process has no event of ours
            await asyncio.sleep(0.05)


async def _is_ready(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    try:
        writer.write(b"GET /readyz HTTP/1.0\r\n\r\n")
        line = await reader.readline()
    except OSError:
        return False
    finally:
        writer.close()
    return b" 200 " in line


def _all_joined(fleet: Fleet) -> bool:
    if not fleet.racks:
        return False
    return all(node.session for rack in fleet.racks.values() for node in rack.nodes)


class PortTaken(OSError):
    """Somebody else listens on a port that was asked for."""

    def __init__(self, port: int) -> None:
        super().__init__(f"port {port} is taken: give another --http-port, or 0 for any free one")
        self.port = port


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise PortTaken(port) from error


def free_port_besides(taken: Collection[int], find: Callable[[], int]) -> int:
    """A free port that is not among those given out already: until somebody listens on it, the
    system may name it twice. `find` asks the system for one."""
    while (port := find()) in taken:
        continue
    return port


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
