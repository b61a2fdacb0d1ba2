"""Log lines: JSON on standard error, each with service, copy, cell, revision and cause.

Secrets never get into a line: fields with a telling name are struck out, and so are the user and
password in the URL of a server. `console` is the same for people.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from enum import StrEnum
from types import TracebackType
from typing import Any, TextIO, cast

import structlog
from structlog.typing import EventDict, Processor

from rackwright.host.standing import Standing
from rackwright.wire.codec import to_json

SECRET = re.compile(
    r"pass(word|wd)?$|secret|token$|seed|nkey|credential|authorization", re.IGNORECASE
)
IN_URL = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)[^/\s@]+@", re.IGNORECASE)
STRUCK = "***"


class LogFormat(StrEnum):
    """For machines or for people."""

    JSON = "json"
    CONSOLE = "console"


class LogLevel(StrEnum):
    """The least that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def redact(_: Any, __: str, event: EventDict) -> EventDict:
    """Strike out what is secret."""
    return {name: _clean(name, value) for name, value in event.items()}


def _clean(name: str, value: Any) -> Any:
    if SECRET.search(name):
        return STRUCK
    match value:
        case str():
            return IN_URL.sub(rf"\g<scheme>{STRUCK}@", value)
        case dict():
            return {key: _clean(str(key), inner) for key, inner in value.items()}
        case list() | tuple():
            return [_clean("", inner) for inner in value]
        case _:
            return value


class Whereabouts:
    """Adds who says it, what he has folded, and which message led to it."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing

    def __call__(self, _: Any, __: str, event: EventDict) -> EventDict:
        """A processor of structlog."""
        standing = self._standing
        event["service"] = standing.service
        event["copy"] = standing.ordinal
        event["cell"] = standing.cell
        event["revision"] = standing.revision
        event.setdefault("cause", standing.cause)
        return event


def _json(_: Any, __: str, event: MutableMapping[str, Any]) -> str:
    try:
        return to_json(dict(event)).decode()
    except TypeError:
        plain = {name: value if _plain(value) else str(value) for name, value in event.items()}
        return to_json(plain).decode()


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


class Lossy:
    """A stream on a disk that may be full: that costs lines, never the process."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        """See TextIO."""
        try:
            return self._out.write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        """See TextIO. What is left in the stream's buffer goes out when there is room."""
        try:
            self._out.flush()
        except OSError:
            return


def set_up(
    standing: Standing, *, level: LogLevel, style: LogFormat, out: TextIO = sys.stderr
) -> None:
    """From here on everything that is logged in this process goes to `out`, libraries included.

    An error that nobody catches is logged too before it ends the process.
    """
    least = logging.getLevelNamesMapping()[level.upper()]
    lossy = cast(TextIO, Lossy(out))
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        Whereabouts(standing),
        structlog.processors.format_exc_info,
        redact,
    ]
    last: Processor = (
        _json if style is LogFormat.JSON else structlog.dev.ConsoleRenderer(colors=out.isatty())
    )
    structlog.configure(
        processors=[*shared, last],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=structlog.WriteLoggerFactory(lossy),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(lossy)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(least, logging.WARNING), force=True)
    sys.excepthook = _log_uncaught


def _log_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    structlog.get_logger().critical("process.died", exc_info=(kind, error, trace))
