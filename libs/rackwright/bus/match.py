"""How NATS subjects are matched and which subjects a stream takes."""

from __future__ import annotations

from rackwright.bus.errors import WrongSubject

FORBIDDEN = frozenset(" \t\r\n*>")


def matches(pattern: str, subject: str) -> bool:
    """Whether a subject falls under a pattern with `*` (one token) and a last `>` (one or more)."""
    want = pattern.split(".")
    have = subject.split(".")
    if want[-1] == ">":
        want.pop()
        if len(have) <= len(want):
            return False
        have = have[: len(want)]
    return len(want) == len(have) and all(w in ("*", h) for w, h in zip(want, have, strict=True))


def is_plain(subject: str) -> bool:
    """Whether a message can be published there: no wildcard, no blank, no empty token."""
    return bool(subject) and FORBIDDEN.isdisjoint(subject) and "" not in subject.split(".")


def check_below(root: str, subject: str) -> None:
    """Raises WrongSubject unless `subject` is plain and below `root` (which ends in a dot)."""
    if not (subject.startswith(root) and is_plain(subject)):
        raise WrongSubject(subject, root)
