"""How messages travel between somebody and the bus: at once, or late, lost, doubled, held up."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from rackwright.sim.engine import Engine

Call: TypeAlias = Callable[..., object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """Knobs of a path. Seconds and chances a message; `slow` is how long a late one may take."""

    delay_s: float = 0.0
    late: float = 0.0
    slow_s: float = 0.0
    lost: float = 0.0
    doubled: float = 0.0


CALM = Weather()


class Pipe(Protocol):
    """Messages that arrive once and in order, as a stream's consumer gets them."""

    def push(self, call: Call, *args: Any) -> None:
        """One more."""
        ...

    def close(self) -> None:
        """What is under way does not arrive."""
        ...


class Path(Protocol):
    """The way between one process or node and the bus."""

    def pipe(self) -> Pipe:
        """A way on which nothing is lost and nothing overtakes."""
        ...

    def toss(self, call: Call, *args: Any) -> None:
        """A message on its own: it may be lost, come twice or overtake another."""
        ...


class DirectPipe:
    """Everything arrives at once."""

    def push(self, call: Call, *args: Any) -> None:
        """It is there."""
        call(*args)

    def close(self) -> None:
        """Nothing is under way."""


class Direct:
    """No way at all: whatever is sent is there at once."""

    def pipe(self) -> Pipe:
        """See Path."""
        return DirectPipe()

    def toss(self, call: Call, *args: Any) -> None:
        """See Path."""
        call(*args)


DIRECT = Direct()


class WindyPath:
    """A way with weather; while `cut`, single messages are lost and pipes hold theirs back.

    `told` is called with the name of each fault that happens.
    """

    def __init__(
        self, engine: Engine, weather: Weather, told: Callable[[str], None] = lambda _: None
    ) -> None:
        self.engine = engine
        self.weather = weather
        self.told = told
        self.cut = False
        self._pipes: list[WindyPipe] = []

    def delay(self) -> float:
        """Seconds that the next message takes."""
        weather, random = self.weather, self.engine.random
        delay = weather.delay_s * (0.5 + random.random())
        if self.engine.chance(weather.late):
            self.told("message late")
            delay += random.random() * weather.slow_s
        return delay

    def pipe(self) -> WindyPipe:
        """See Path."""
        made = WindyPipe(self)
        self._pipes.append(made)
        return made

    def toss(self, call: Call, *args: Any) -> None:
        """See Path."""
        if self.cut:
            self.told("message lost in a partition")
            return
        if self.engine.chance(self.weather.lost):
            self.told("message lost")
            return
        self.engine.later(self.delay(), call, *args)
        if self.engine.chance(self.weather.doubled):
            self.told("message doubled")
            self.engine.later(self.delay() + self.weather.slow_s / 2, call, *args)

    def mend(self) -> None:
        """The partition is over."""
        self.cut = False
        for pipe in self._pipes:
            pipe.pump()

    def forget(self, pipe: WindyPipe) -> None:
        """It is closed."""
        if pipe in self._pipes:
            self._pipes.remove(pipe)


class WindyPipe:
    """See Path.pipe."""

    def __init__(self, path: WindyPath) -> None:
        self._path = path
        self._waiting: deque[tuple[float, Call, tuple[Any, ...]]] = deque()
        self._last = 0.0
        self._closed = False

    def push(self, call: Call, *args: Any) -> None:
        """One more."""
        engine = self._path.engine
        self._last = max(self._last, engine.now + self._path.delay())
        self._waiting.append((self._last, call, args))
        engine.at(self._last, self.pump)

    def pump(self) -> None:
        """Hand over what is due."""
        while self._waiting and not self._path.cut and not self._closed:
            at, call, args = self._waiting[0]
            if at > self._path.engine.now:
                return
            self._waiting.popleft()
            call(*args)

    def close(self) -> None:
        """What is under way does not arrive."""
        self._closed = True
        self._waiting.clear()
        self._path.forget(self)
