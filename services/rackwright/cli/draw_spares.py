"""Spares in words, the same ones wherever they are told."""

from typing import Protocol


class Counted(Protocol):
    """Spares of a rack or of the cell, in nodes, as docs/api.md defines them."""

    @property
    def wanted(self) -> int: ...
    @property
    def free(self) -> int: ...
    @property
    def lent(self) -> int: ...
    @property
    def short(self) -> int: ...


def spares_text(found: Counted) -> str:
    """Those free of those wanted, what is lent, and what is short; nothing where none is wanted."""
    if not found.wanted and not found.lent:
        return ""
    lent = f", {found.lent} lent" if found.lent else ""
    short = f", {found.short} short" if found.short else ""
    return f"{found.free} of {found.wanted}{lent}{short}"
