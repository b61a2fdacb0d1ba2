"""Standard output and error that end a command quietly when nobody reads them any more."""

import errno
import io
import os
import sys
from typing import Any, TextIO

NOT_READ = 141  # as the shell tells of a process that SIGPIPE ended
NOT_WRITTEN = 1


class NotRead(SystemExit):
    """Whoever read this output has gone: the command ends, and has nothing to complain of."""

    def __init__(self) -> None:
        super().__init__(NOT_READ)


class _Raw(io.FileIO):
    """A descriptor whose failures end the command. What is still buffered is dropped then."""

    def write(self, data: Any, /) -> int:
        """Raises SystemExit: NotRead for a closed pipe, else with a line that says why."""
        try:
            return super().write(data)
        except OSError as error:
            _drop(self.fileno())
            if error.errno == errno.EPIPE:
                raise NotRead from None
            if self.fileno() != 2:
                print(f"Error: output cannot be written: {error.strerror}", file=sys.stderr)
            raise SystemExit(NOT_WRITTEN) from None


def guard() -> None:
    """Use such streams from now on. One that was closed from the start swallows what is said."""
    sys.stdout = _guarded(sys.stdout, 1)
    sys.stderr = _guarded(sys.stderr, 2)


def _guarded(stream: TextIO | None, number: int) -> TextIO:
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    stream.flush()
    raw = _Raw(number, "wb", closefd=False)
    terminal = raw.isatty()
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=terminal or number == 2,
    )


def _drop(number: int) -> None:
    """What is written there from now on goes nowhere, also at the process's end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, number)
    finally:
        os.close(nowhere)
