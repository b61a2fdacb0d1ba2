"""Keeps one voice from being all that is heard: what it says beyond reason is not even read."""

from collections import Counter
from dataclasses import dataclass, field

MOST = 256  # a second of each; an agent of ours says 128 a minute at most


@dataclass(slots=True, kw_only=True)
class Talkers:
    """Counts messages by subject and second of the server's time. `excess`: those beyond `most`."""

    most: int = MOST
    excess: int = 0
    _second: int = -1
    _said: Counter[str] = field(default_factory=Counter)

    def too_much(self, subject: str, at: float) -> bool:
        """Is the message that was stored on `subject` at `at` (s) one too many?"""
        second = int(at)
        if second != self._second:
            self._second = second
            self._said.clear()
        self._said[subject] += 1
        if self._said[subject] <= self.most:
            return False
        self.excess += 1
        return True
