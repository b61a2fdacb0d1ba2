"""Why a service cannot go on: each error is a class with fields."""

from __future__ import annotations


class HostError(Exception):
    """Base of what the host raises on purpose."""


class ForeignLedger(HostError):
    """The stream holds another ledger than the one this process has followed: it must end."""

    def __init__(self, followed: str, found: str, seq: int) -> None:
        super().__init__(
            f"the ledger of this cell is {found!r} at {seq}, this process has followed"
            f" {followed!r}: the stream was recreated or restored; start again with the right one"
        )
        self.followed = followed
        self.found = found
        self.seq = seq


class NoValidStart(HostError):
    """The ledger is trimmed and no good snapshot reaches its first commit."""

    def __init__(self, first: int, last: int, tried: tuple[int, ...]) -> None:
        looked = ", ".join(map(str, tried)) or "none"
        super().__init__(
            f"no valid start: the ledger holds {first}..{last} and no good snapshot reaches it"
            f" (looked at {looked}); restore the snapshots or the ledger's archive"
        )
        self.first = first
        self.last = last
        self.tried = tried


class TooManyStarts(HostError):
    """The fold had to be thrown away again and again."""

    def __init__(self, times: int, why: str) -> None:
        super().__init__(f"started to read the ledger {times} times, and each time: {why}")
        self.times = times
        self.why = why


class Misread(HostError):
    """What was read cannot follow what is folded: throw the fold away and start again."""

    def __init__(self, seq: int, why: str) -> None:
        super().__init__(f"at {seq}: {why}")
        self.seq = seq
        self.why = why


class Stopped(HostError):
    """The fold stopped at an entry that this version cannot read. It decides nothing any more."""

    def __init__(self, seq: int, why: str) -> None:
        super().__init__(f"stopped at {seq}: {why}")
        self.seq = seq
        self.why = why


class OfferOutOfTurn(HostError):
    """A machine offered entries when nobody had asked it to: a fault of the machine."""

    def __init__(self, service: str, event: str) -> None:
        super().__init__(f"{service} offered entries on {event}; only Turn and Refused allow that")
        self.service = service
        self.event = event


class BadSetting(HostError):
    """A setting that cannot be used; says which and what would be right."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name
        self.problem = problem
