"""One line in a log instead of a thousand alike, with how often it was."""

from __future__ import annotations

from rackwright.host.clock import Clock

APART_S = 10.0
MOST = 64  # texts kept


class Seldom:
    """Says of each text how often it came since it was told last; told at most every `APART_S`."""

    def __init__(self, mono: Clock) -> None:
        self._mono = mono
        self._told: dict[str, tuple[float, int]] = {}

    def count(self, text: str) -> int:
        """How many to tell of now, this one too; 0: not now."""
        now = self._mono()
        at, silent = self._told.get(text, (float("-inf"), 0))
        if now - at < APART_S:
            self._told[text] = (at, silent + 1)
            return 0
        self._told.pop(text, None)
        while len(self._told) >= MOST:
            self._told.pop(next(iter(self._told)))
        self._told[text] = (now, 0)
        return silent + 1
