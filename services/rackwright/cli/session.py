"""What every command shares: which cell, as whom, and how its answer is shown."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from rackwright.bus.errors import (
    BusAway,
    BusDenied,
    BusError,
    NoResponder,
    RequestFailed,
    StreamMissing,
)
from rackwright.bus.jetstream import connect
from rackwright.bus.options import ConnectOptions
from rackwright.cli.asking import Cell
from rackwright.cli.credentials import Context
from rackwright.cli.failures import BadInput, Failure, Unanswered, Unreachable
from rackwright.host.files.text import FileError
from rackwright.wire.ids import InvalidId, Owner, check_name

T = TypeVar("T")
ENV = "RACKWRIGHT"
CONNECT_S = 3.0
DEFAULT_USER = "operator"
SCHEMES = ("nats", "tls", "ws", "wss")


def default_state_dir() -> Path:
    """`$XDG_STATE_HOME/rackwright`, which is `~/.local/state/rackwright` where that is not set."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "rackwright"


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Which cell and as whom, as far as it was told; the rest is in the state directory."""

    state_dir: Path
    nats: str | None = None
    cell: str | None = None
    user: str | None = None
    password_file: Path | None = None

    @asynccontextmanager
    async def reach(self) -> AsyncIterator[Cell]:
        """A connection for one command (`asking.Cell`). Raises Failure and what the bus raises."""
        options, cell = self.connection()
        try:
            bus = await connect(options, cell)
        except (BusError, OSError, ValueError) as error:
            at = ",".join(options.servers)
            raise Unreachable(f"cell {cell} at {at}: {error}") from error
        try:
            yield Cell(bus=bus, user=Owner(options.identity))
        except BusDenied as error:
            raise self._denied(error, cell) from error
        finally:
            await bus.close()

    def _denied(self, error: BusDenied, cell: str) -> Failure:
        """Every user belongs to one cell: in another one all is denied."""
        saved = self._saved()
        if saved is None or saved.cell == cell:
            return Failure(str(error))
        return Unreachable(f"{error}: the cell of {self.state_dir} is {saved.cell}, not {cell}")

    def connection(self) -> tuple[ConnectOptions, str]:
        """How to connect, and to which cell. Raises Failure."""
        nats, cell, user, password = self._found()
        check_name("user", user)
        check_name("cell", cell)
        for server in nats.split(","):
            scheme, separator, _ = server.partition("://")
            if separator and scheme not in SCHEMES:
                raise BadInput(f"--nats: {server!r} must begin with {', '.join(SCHEMES)}")
        options = ConnectOptions(
            servers=tuple(nats.split(",")),
            identity=user,
            user=user if password is not None else None,
            password=password,
            connect_s=CONNECT_S,
        )
        return options, cell

    def named(self) -> tuple[str, str]:
        """The cell and the user. Raises Failure."""
        _, cell, user, _ = self._found()
        return cell, user

    def _found(self) -> tuple[str, str, str, str | None]:
        """Server, cell, user and password. Raises Failure."""
        nats, cell, user, file = self.nats, self.cell, self.user, self.password_file
        if nats is None or cell is None or user is None or file is None:
            saved = self._saved()
            if saved is None and nats is None:
                raise Unreachable(
                    f"no cell was started with state directory {self.state_dir}: start one with"
                    " `rackwright up`, or say --state-dir, or --nats with --cell and --user"
                )
            if saved is not None:
                same = user is None or user == saved.user
                nats, cell = nats or saved.nats, cell or saved.cell
                user = user or saved.user
                if file is None:
                    file = Path(saved.password_file) if same else _beside(saved, user)
        password = None if file is None else _password(file)
        return nats or "", cell or "main", user or DEFAULT_USER, password

    def _saved(self) -> Context | None:
        try:
            return Context.load(self.state_dir)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            path = Context.path(self.state_dir)
            raise BadInput(f"{path} cannot be read as a context: {error}") from error

    def http(self) -> str | None:
        """Where the cell's gateway serves HTTP, if the state directory knows."""
        saved = self._saved()
        return None if saved is None else str(saved.http)


def _beside(saved: Context, user: str) -> Path | None:
    """Another user of the same local cell has its password beside."""
    path = Path(saved.password_file).parent / user
    return path if path.exists() else None


def _password(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"password file: {error}") from error


def state_dir_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--state-dir`."""
    return click.option(
        "--state-dir",
        type=click.Path(file_okay=False, path_type=Path),
        envvar=f"{ENV}_STATE_DIR",
        default=default_state_dir,
        show_default="~/.local/state/rackwright",
        show_envvar=True,
        help="Directory of a local cell: its data, its logs, and how to reach it.",
    )(command)


def reaching(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say which cell and as whom; the command gets `where`."""

    @wraps(command)
    def wrapped(
        *args: Any,
        state_dir: Path,
        nats: str | None,
        cell: str | None,
        user: str | None,
        password_file: Path | None,
        **more: Any,
    ) -> Any:
        where = Where(
            state_dir=state_dir, nats=nats, cell=cell, user=user, password_file=password_file
        )
        return command(*args, where=where, **more)

    options = (
        click.option("--nats", envvar=f"{ENV}_NATS", show_envvar=True, help="Servers of the bus."),
        click.option("--cell", envvar=f"{ENV}_CELL", show_envvar=True, help="Name of the cell."),
        click.option("--user", envvar=f"{ENV}_USER", show_envvar=True, help="User at the bus."),
        click.option(
            "--password-file",
            type=click.Path(dir_okay=False, path_type=Path),
            envvar=f"{ENV}_PASSWORD_FILE",
            show_envvar=True,
            help="File with the user's password.",
        ),
    )
    for option in reversed(options):
        wrapped = option(wrapped)
    return state_dir_option(wrapped)


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--json`: the command gets `as_json`."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print the answer as JSON, for programs."
    )(command)


STATUS_FAILURES: dict[int, type[Failure]] = {
    400: BadInput,
    413: BadInput,
    503: Unanswered,
    504: Unanswered,
}


@contextmanager
def explained() -> Iterator[None]:
    """Turn what the bus, files and ids raise into a Failure: one line instead of a traceback."""
    try:
        yield
    except (FileError, InvalidId) as error:
        raise BadInput(str(error), field=error.field) from error
    except RequestFailed as error:
        kind = STATUS_FAILURES.get(error.code, Failure)
        raise kind(error.description or str(error)) from error
    except NoResponder as error:
        raise Unreachable(f"{error}: is that service running in this cell?") from error
    except StreamMissing as error:
        raise Unreachable(f"{error}: is the name of the cell right?") from error
    except BusAway as error:
        raise Unanswered(str(error)) from error
    except (BusError, OSError) as error:
        raise Failure(str(error)) from error
    except TimeoutError as error:
        raise Unanswered("nothing came in time") from error


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work; what goes wrong becomes a Failure, Ctrl-C a quiet end."""
    with explained():
        try:
            return asyncio.run(work)
        except KeyboardInterrupt:
            raise SystemExit(130) from None
