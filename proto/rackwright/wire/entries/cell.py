"""Entries about the cell itself: its ledger, its policy, its automations, unanswerable wishes."""

from dataclasses import dataclass
from typing import ClassVar

from rackwright.wire.ids import LedgerRef, OwnerRef
from rackwright.wire.message import Counted, Entry, Natural
from rackwright.wire.policy import Automation, Policy
from rackwright.wire.quick import quick
from rackwright.wire.reasons import Reason
from rackwright.wire.wishes import Why


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCreated(Entry):
    """Entry 1: the identity of this ledger, for ever."""

    TYPE: ClassVar[str] = "ledger.created"
    ledger: LedgerRef
    fold_version: Counted
    policy: Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class CellUpgraded(Entry):
    """From here on entries and rules of this fold version are in use."""

    TYPE: ClassVar[str] = "cell.upgraded"
    fold_version: Counted


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerTicked(Entry):
    """Nothing happened: proof for a health-monitor that it reaches a quorum of the bus."""

    TYPE: ClassVar[str] = "ledger.ticked"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotVerified(Entry):
    """Two copies folded to the same state at `seq`; `sha256` is the hash of its bytes.

    `shape` names what those bytes are made of: only a release that keeps the same of a fleet can
    compare its own. Empty: written before releases said it.
    """

    TYPE: ClassVar[str] = "snapshot.verified"
    seq: Counted
    sha256: str
    shape: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySet(Entry):
    """The settings of the cell from here on."""

    TYPE: ClassVar[str] = "policy.set"
    policy: Policy
    by: OwnerRef


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomationPaused(Entry):
    """An operator's pause, with its end (seconds of ledger time)."""

    TYPE: ClassVar[str] = "automation.paused"
    automation: Automation
    until: float
    by: OwnerRef
    why: Why = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomationResumed(Entry):
    """It acts again."""

    TYPE: ClassVar[str] = "automation.resumed"
    automation: Automation
    by: OwnerRef


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerClosed(Entry):
    """An operator: the culprits so far are real. They count for the breaker no more."""

    TYPE: ClassVar[str] = "breaker.closed"
    culprits: Natural
    by: OwnerRef
    why: Why = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WishRefused(Entry):
    """A wish that was understood and is not granted. `kind` is the wish's type."""

    TYPE: ClassVar[str] = "wish.refused"
    kind: str
    owner: OwnerRef
    subject: str
    reason: Reason


CELL_ENTRIES = (
    LedgerCreated,
    CellUpgraded,
    LedgerTicked,
    SnapshotVerified,
    PolicySet,
    AutomationPaused,
    AutomationResumed,
    BreakerClosed,
    WishRefused,
)
