"""What a node without the bus makes of its witnesses' words: its lease carried on, or not.

Pure; times are ns of CLOCK_BOOTTIME. The lease runs on from the sending of the *question*, so no
answer that was under way for long can make it longer than a monitor reckons with.
"""

from dataclasses import dataclass, field

from rackwright.agent.hold import NS, Hold
from rackwright.core.policy.witnesses import majority
from rackwright.wire.ids import NodeId
from rackwright.wire.nodes import Witnesses

OUTSTANDING = 64  # questions without an answer that are remembered


@dataclass(slots=True)
class Alone:
    """`terms` are those of the live session. `asked`: whom each question went to, and when; `away`:
    the sending of the newest question to which each witness said that it has no bus either."""

    terms: Witnesses | None = None
    asked: dict[str, tuple[NodeId, int]] = field(default_factory=dict)
    away: dict[NodeId, int] = field(default_factory=dict)

    def agree(self, terms: Witnesses | None) -> None:
        """The terms of the session; what was said under others does not count."""
        if terms != self.terms:
            self.terms = terms
            self.asked.clear()
            self.away.clear()

    def ask(self, nonce: str, node: NodeId, now_ns: int) -> None:
        """A question goes out now."""
        self.asked[nonce] = (node, now_ns)
        while len(self.asked) > OUTSTANDING:
            del self.asked[next(iter(self.asked))]

    def answered(self, nonce: str, node: NodeId, *, away: bool) -> bool:
        """An answer; True if it is one to a question that went to this node."""
        witness, at = self.asked.get(nonce, (None, 0))
        if witness != node:
            return False
        del self.asked[nonce]
        if away:
            self.away[node] = max(at, self.away.get(node, 0))
        else:
            self.away.pop(node, None)
        return True

    def until(self, hold: Hold) -> int:
        """Until when the words of more than half of the witnesses carry the lease; 0: they do not.

        Never longer than the terms let a node go without an echo; nothing before the first one.
        """
        terms = self.terms
        if terms is None or not hold.echoed_ns:
            return 0
        said = sorted((self.away[one] for one in terms.nodes if one in self.away), reverse=True)
        enough = majority(len(terms.nodes))
        if len(said) < enough:
            return 0
        most = hold.echoed_ns + int(terms.alone_s * NS)
        return min(said[enough - 1] + int(terms.step_s * NS), most)
