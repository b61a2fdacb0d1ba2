"""How a command ends: exit codes, and errors told in one line instead of a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

OK = 0
FAILED = 1
BAD_INPUT = 2
UNREACHABLE = 3
UNANSWERED = 4

EXIT_CODES = """\b
Exit codes: 0 done; 1 refused or failed; 2 usage or bad input;
3 the cell cannot be reached; 4 not answered in time."""


class Failure(click.ClickException):
    """A command that did not do what it was asked; `exit_code` as in EXIT_CODES."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def bad_input(message: str) -> Failure:
    """What was typed or read cannot be used."""
    return Failure(message, BAD_INPUT)


def unreachable(message: str) -> Failure:
    """There is nobody to talk to."""
    return Failure(message, UNREACHABLE)


def unanswered(message: str) -> Failure:
    """Somebody was asked and has not said anything yet."""
    return Failure(message, UNANSWERED)


STATUS_EXITS = {400: BAD_INPUT, 413: BAD_INPUT, 503: UNANSWERED, 504: UNANSWERED}


@contextmanager
def explained() -> Iterator[None]:
    """Turn what the bus, files and ids raise into a Failure."""
    # Here, not above: `--help` needs none of them.
    from rackwright.bus.errors import (
        BusAway,
        BusError,
        NoResponder,
        RequestFailed,
        StreamMissing,
    )
    from rackwright.host.files.text import FileError
    from rackwright.wire.ids import InvalidId

    try:
        yield
    except (FileError, InvalidId) as error:
        raise bad_input(str(error)) from error
    except RequestFailed as error:
        code = STATUS_EXITS.get(error.code, FAILED)
        raise Failure(error.description or str(error), code) from error
    except NoResponder as error:
        raise unreachable(f"{error}: is that service running in this cell?") from error
    except StreamMissing as error:
        raise unreachable(f"{error}: is the name of the cell right?") from error
    except BusAway as error:
        raise unanswered(str(error)) from error
    except (BusError, OSError) as error:
        raise Failure(str(error)) from error
    except TimeoutError as error:
        raise unanswered("nothing came in time") from error
