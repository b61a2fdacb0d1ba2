"""How many signals one node may send about its kernel log. Pure: time is an argument.

The first of each kind goes out at once; repeats are counted and told once at the end of the
window. A million lines cost bounded memory and at most `2 x MOST` signals a window.
"""

from dataclasses import dataclass, field

from rackwright.agent.xid import XidLine, head_of, parse_xid

WINDOW_S = 60.0
MOST = 64  # kinds told in one window
KEPT = 16  # of them kept for an Xid not yet seen on a GPU: noise must not hide a fatal one
DETAILED = range(144, 151)  # the same number may mean different things: unit, link, status
RECOVERY_ACTION = 154

Key = tuple[str, int, str, int | None, tuple[int, ...], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class XidSignal:
    """What to tell: a line, how many like it, and where the first of them stood in its log.

    The same line read twice after a restart has the same `source`.
    """

    line: XidLine
    count: int
    source: str


@dataclass(slots=True)
class _Kind:
    line: XidLine
    source: str
    repeats: int = 0


@dataclass(slots=True)
class XidLimit:
    """Counters of one node. `lost`: lines beyond the limit, since the start."""

    lost: int = 0
    _ends_at: float = 0.0
    _kinds: dict[Key, _Kind] = field(default_factory=dict)
    _seen: set[tuple[str, int]] = field(default_factory=set)

    @property
    def ends_at(self) -> float:
        """When the window ends, on the caller's clock; 0 when none is open."""
        return self._ends_at

    def offer(self, raw: bytes, source: str, now: float) -> XidSignal | None:
        """Take a line; returns what is to be told of it at once."""
        head = head_of(raw)
        if head is None:
            return None
        if not self._ends_at:
            self._ends_at = now + WINDOW_S
        plain: Key = (*head, "", None, (), "")
        if plain in self._kinds:  # the cheap way for a storm: no need to read the rest
            self._kinds[plain].repeats += 1
            return None
        line = parse_xid(raw)
        if line is None:
            return None
        key = plain
        if line.xid in DETAILED or line.xid == RECOVERY_ACTION:
            key = (*head, line.mnemonic, line.link, line.words[:2], line.action)
        if key in self._kinds:
            self._kinds[key].repeats += 1
            return None
        if len(self._kinds) >= (MOST - KEPT if head in self._seen else MOST):
            self.lost += 1
            return None
        self._seen.add(head)
        self._kinds[key] = _Kind(line, source)
        return XidSignal(line=line, count=1, source=source)

    def flush(self) -> list[XidSignal]:
        """Close the window; returns one signal for each kind that came again."""
        repeated = [
            XidSignal(line=kind.line, count=kind.repeats, source=kind.source)
            for kind in self._kinds.values()
            if kind.repeats
        ]
        self._kinds.clear()
        self._seen.clear()
        self._ends_at = 0.0
        return repeated
