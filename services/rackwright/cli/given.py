"""Files that a command is given; `-` is standard input."""

import sys
from pathlib import Path

from rackwright.cli.failures import BadInput


def read_given(file: Path, most: int) -> tuple[bytes, str]:
    """At most so many bytes of it, and what to call it. Raises BadInput."""
    if str(file) == "-":
        return sys.stdin.buffer.read(most), "standard input"
    try:
        with file.open("rb") as opened:
            return opened.read(most), str(file)
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}") from error
