"""Files that a reader sees whole: the old one or the new one, never a part."""

from pathlib import Path

import structlog

log = structlog.get_logger()


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
        disk_refuses(error)


def disk_refuses(error: OSError) -> None:
    """Tell people that the agent's own disk takes nothing."""
    log.error("disk.refuses", path=str(error.filename or ""), problem=error.strerror)
