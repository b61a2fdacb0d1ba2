"""Files that a reader sees whole: the old one or the new one, never a part."""

from pathlib import Path

import structlog

from rackwright.host.clock import boottime
from rackwright.host.seldom import Seldom

log = structlog.get_logger()
_seldom = Seldom(boottime)  # a lease alone is written several times a second


def replace_file(path: Path, text: str) -> None:
    """Write a file in place of what was there. Not flushed: a power loss may take it back.

    Raises OSError; what was there is still there then.
    """
    scratch = path.with_name(f".{path.name}.new")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)


def try_to_replace(path: Path, text: str) -> None:
    """The same of a file that only the next agent reads: a full disk must not end this one."""
    try:
        replace_file(path, text)
    except OSError as error:
        disk_refuses(path, error)


def disk_refuses(path: Path, error: OSError) -> None:
    """Tell people that the agent's own disk takes nothing: of each file now and then."""
    if times := _seldom.count(f"{path}: {error.strerror}"):
        log.error("disk.refuses", path=str(path), problem=error.strerror, times=times)
