"""Leases by echo: when a monitor may echo, when silence is doubt, and when a lease must be over.

The rules and the argument are protocol P2. Durations run on `mono`, CLOCK_BOOTTIME of one process;
no clock is compared with another's. An agent counts its lease from the sending of the heartbeat
that an echo answers, and a suspicion in the ledger recalls it: whoever echoes without knowing that
has an acknowledged append placed before it, sent less than `fresh_s` ago.
"""

from dataclasses import dataclass

from rackwright.core.racks import Node
from rackwright.wire.ids import SessionId
from rackwright.wire.policy import Policy

DRIFT = 1.05  # two clocks of CLOCK_BOOTTIME differ by less than 5 percent


def declare_after(policy: Policy) -> float:
    """W: seconds from the folding of `node.suspected` until every worker must have been killed.

    Source: protocol P2, W = 1.05 (F + R + K). The last echo that could go out answers a heartbeat
    sent before suspected + R, its lease ends F later and the kill takes at most K.
    """
    return DRIFT * (policy.fence_after_s + policy.fresh_s + policy.kill_s)


def tick_after(policy: Policy) -> float:
    """Seconds without an append of its own after which a monitor writes a tick.

    A third of what freshness lasts, so that one slow append does not end it; at most a second.
    """
    return min(1.0, policy.fresh_s / 3)


def echo_every(policy: Policy) -> float:
    """Least seconds between two echoes to one rack: twice as often as its nodes speak."""
    return policy.heartbeat_s / 2


def quiet_after(policy: Policy) -> float:
    """Seconds without a heartbeat after which a node is quiet: it is silent one heartbeat later.

    When the first node of many falls silent, all others that will have been heard last within the
    same heartbeat; so whoever judges that first one knows of them already.
    """
    return max(policy.suspect_after_s - policy.heartbeat_s, policy.suspect_after_s / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Proof that this monitor reaches a quorum: the sending, on `mono`, of its newest append that
    was acknowledged and is folded. None: there is no proof yet."""

    proved: float | None = None

    def acked(self, sent_mono: float) -> "Freshness":
        """An append sent then is in the ledger, and folded here."""
        if self.proved is not None and sent_mono <= self.proved:
            return self
        return Freshness(proved=sent_mono)

    def holds(self, policy: Policy, mono: float) -> bool:
        """May this monitor echo at `mono`?"""
        return self.proved is not None and mono < self.proved + policy.fresh_s


def may_echo(node: Node, session: SessionId) -> bool:
    """Does the fold show this session live and not suspected?"""
    return node.session == session and not node.suspected
