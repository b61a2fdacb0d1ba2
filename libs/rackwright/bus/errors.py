"""What can go wrong on the bus; each error is a class with fields."""

from __future__ import annotations


class BusError(Exception):
    """Base of everything the bus raises on purpose."""


class BusAway(BusError):
    """The bus did not take or answer a message; it may or may not have been stored."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: the bus is away ({reason})")
        self.what = what
        self.reason = reason


class BusFull(BusError):
    """The stream refuses new messages because a limit is reached."""

    def __init__(self, stream: str, limit: str, code: int | None = None) -> None:
        super().__init__(f"stream {stream} is full: {limit}")
        self.stream = stream
        self.limit = limit
        self.code = code


class BusDenied(BusError):
    """This identity may not publish or subscribe there."""

    def __init__(self, operation: str, subject: str) -> None:
        super().__init__(f"{operation} on {subject} is not permitted for this identity")
        self.operation = operation
        self.subject = subject


class BusRejected(BusError):
    """The server answered with an error that has no better class here."""

    def __init__(self, what: str, code: int, description: str) -> None:
        super().__init__(f"{what}: {description} ({code})")
        self.what = what
        self.code = code
        self.description = description


class MessageTooLarge(BusError):
    """Found before sending: the message is above its stream's limit. Sizes in bytes."""

    def __init__(self, subject: str, size: int, limit: int) -> None:
        super().__init__(f"message of {size} bytes on {subject}, at most {limit} are allowed")
        self.subject = subject
        self.size = size
        self.limit = limit


class WrongSubject(BusError):
    """A message was offered to a port whose stream does not hold that subject."""

    def __init__(self, subject: str, root: str) -> None:
        super().__init__(f"subject {subject!r} is not a plain subject below {root}")
        self.subject = subject
        self.root = root


class AppendInFlight(BusError):
    """A second append was started before the first was answered: never pipeline the ledger."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"append to {second} while the one to {first} is in flight")
        self.first = first
        self.second = second


class LedgerGap(BusError):
    """The next message is not the one wanted: throw the fold away and start again.

    `got` is what the stream offers instead (its first sequence, its end plus one, or the sequence
    that came).
    """

    def __init__(self, expected: int, got: int) -> None:
        super().__init__(f"wanted message {expected} of the ledger, the stream offers {got}")
        self.expected = expected
        self.got = got


class StreamReplaced(BusError):
    """The stream under a running feed is another one now (recreated or restored)."""

    def __init__(self, stream: str, expected: int, last: int) -> None:
        super().__init__(f"stream {stream} was replaced: wanted {expected}, it ends at {last}")
        self.stream = stream
        self.expected = expected
        self.last = last


class NoResponder(BusError):
    """Nobody listens on the subject of a request."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"nobody answers on {subject}")
        self.subject = subject


class RequestFailed(BusError):
    """The responder answered a request with an error; `code` as in HTTP."""

    def __init__(self, subject: str, code: int, description: str) -> None:
        super().__init__(f"{subject} answered {code}: {description}")
        self.subject = subject
        self.code = code
        self.description = description


class BusClosed(BusError):
    """The connection or the feed is closed and will not come back."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"closed: {reason}")
        self.reason = reason
