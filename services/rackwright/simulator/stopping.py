"""Ctrl-C and SIGTERM end a run between two events, so that what there is can still be told."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType


@dataclass(slots=True)
class Stop:
    """Whether somebody has asked for the end; `heard` are called when it happens."""

    asked: bool = False
    heard: list[Callable[[], None]] = field(default_factory=list)

    def ask(self) -> None:
        """End what runs, and begin nothing more."""
        self.asked = True
        for call in self.heard:
            call()


@contextmanager
def stopping(numbers: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM)) -> Iterator[Stop]:
    """The first of these signals asks for the end; the next one does what it did before."""
    stop = Stop()
    before = {number: signal.getsignal(number) for number in numbers}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def asked(_number: int, _frame: FrameType | None) -> None:
        restore()
        stop.ask()

    for number in numbers:
        signal.signal(number, asked)
    try:
        yield stop
    finally:
        restore()
