"""How this process stands: what it has folded, whether it may decide, why not."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from rackwright.core.fleet import Fleet
from rackwright.wire.ids import MessageId


@dataclass(slots=True, kw_only=True)
class Standing:
    """Shared by everything in the process that reports; only the runner and its life change it.

    `stopped_at` is the sequence the fold cannot pass, and `why` the reason, for people. `copies`
    is how many copies are present and which of them this is; `room` how full the ledger is and
    where submits are refused, as fractions; None: not known yet. `readied` is set when it may
    decide for the first time. `doubt` is the machine's own reason not to be relied on,
    `untaken` why the ledger takes nothing of what it decides.
    """

    service: str
    ordinal: int
    cell: str
    fleet: Fleet = field(default_factory=Fleet)
    ready: bool = False
    connected: bool = True
    stopping: bool = False
    stopped_at: int | None = None
    why: str = "starting"
    doubt: str = ""
    untaken: str = ""
    copies: tuple[int, int] | None = None
    room: tuple[float, float] | None = None
    cause: MessageId | None = None
    readied: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def name(self) -> str:
        """The source of this process's commits."""
        return f"{self.service}/{self.ordinal}"

    @property
    def serving(self) -> bool:
        """May it decide, and can it be heard?"""
        return self.ready and self.connected and not (self.doubt or self.untaken)

    @property
    def reason(self) -> str:
        """Why it is not serving, for people; empty if it is."""
        if not self.connected:
            return "the bus is away"
        return self.why or self.untaken or self.doubt

    @property
    def revision(self) -> int:
        """The ledger sequence that is folded."""
        return self.fleet.seq

    def set_ready(self) -> None:
        """It may decide."""
        self.ready, self.why = True, ""
        self.readied.set()

    def set_waiting(self, why: str) -> None:
        """It may not decide."""
        self.ready, self.why = False, why

    def set_stopped(self, seq: int, why: str) -> None:
        """It will never decide again."""
        self.ready, self.stopped_at, self.why = False, seq, why
