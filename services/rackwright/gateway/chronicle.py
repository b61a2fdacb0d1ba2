"""What happened: the story of each job and node, the newest entries, and what can be counted.

Fed with commits in order, each with the fleet before and after it. Bounded: of a long story the
middle is dropped, of many stories those that nobody added to for longest.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from rackwright.core.fleet import Fleet
from rackwright.core.telling import bounded, subjects, tell
from rackwright.gateway.counts import Counts
from rackwright.gateway.views import Line
from rackwright.wire.message import Commit, Entry

FIRST_LINES = 32
LAST_LINES = 224
MAX_STORIES = 20_000
MAX_EVENTS = 20_000
FEW = 64  # jobs and nodes that a line names at most
QUIET = frozenset({"ledger.ticked"})  # proof of life, told by nobody


@dataclass(slots=True)
class Story:
    """The first and the newest lines about one job or node; `dropped` between them are gone."""

    first: list[Line] = field(default_factory=list)
    last: deque[Line] = field(default_factory=deque)
    dropped: int = 0

    def add(self, line: Line) -> None:
        """One more line, newer than all others."""
        if len(self.first) < FIRST_LINES:
            self.first.append(line)
            return
        self.last.append(line)
        if len(self.last) > LAST_LINES:
            self.last.popleft()
            self.dropped += 1

    def join(self, newer: "Story") -> None:
        """Add a story of which every line is newer."""
        for line in (*newer.first, *newer.last):
            self.add(line)
        self.dropped += newer.dropped

    @property
    def lines(self) -> tuple[Line, ...]:
        """What is kept, oldest first."""
        return (*self.first, *self.last)


@dataclass(slots=True)
class Chronicle:
    """`since` is the first sequence it was fed with, `upto` the last; 0: nothing yet.

    Implements `context.Past` for one who fed it from the beginning.
    """

    complete: ClassVar[bool] = True
    since: int = 0
    upto: int = 0
    stories: OrderedDict[str, Story] = field(default_factory=OrderedDict)
    events: deque[Line] = field(default_factory=lambda: deque(maxlen=MAX_EVENTS))
    counts: Counts = field(default_factory=Counts)

    def take(
        self, seq: int, commit: Commit[Entry], before: Fleet, after: Fleet, why_void: str | None
    ) -> list[Line]:
        """One commit; its lines. `why_void`: it had no effect, for this reason."""
        self.since = self.since or seq
        self.upto = seq
        self.counts.run(before, after)
        if commit.type in QUIET and why_void is None:
            return []
        lines = list(lines_of(seq, after.time, commit, before, why_void))
        for line in lines:
            self._add(line)
        if why_void is None:
            self.counts.take(commit.entries, before, after)
        return lines

    def believe(self, seq: int, at: float, commit: Commit[Entry], names: Fleet) -> None:
        """One commit of which it is not known whether it had effect: told, and not counted."""
        self.since, self.upto = self.since or seq, seq
        if commit.type not in QUIET:
            for line in lines_of(seq, at, commit, names, None):
                self._add(line)

    def _add(self, line: Line) -> None:
        self.events.append(line)
        for key in (*map(job_key, line.jobs), *map(node_key, line.nodes)):
            story = self.stories.get(key)
            if story is None:
                story = self.stories[key] = Story()
            story.add(line)
            self.stories.move_to_end(key)
        self._forget()

    def _forget(self) -> None:
        while len(self.stories) > MAX_STORIES:
            self.stories.popitem(last=False)

    def join(self, newer: "Chronicle") -> None:
        """Add everything of a chronicle that begins where this one ends."""
        self.since, self.upto = self.since or newer.since, newer.upto or self.upto
        for key, story in newer.stories.items():
            self.stories.setdefault(key, Story()).join(story)
            self.stories.move_to_end(key)
        self._forget()
        self.events.extend(newer.events)
        self.counts.join(newer.counts)

    def story(self, key: str) -> Story:
        """What is kept of one story."""
        return self.stories.get(key, Story())


def job_key(job: str) -> str:
    """Name of a job's story."""
    return f"job/{job}"


def node_key(node: str) -> str:
    """Name of a node's story."""
    return f"node/{node}"


def lines_of(
    seq: int, at: float, commit: Commit[Entry], before: Fleet, why_void: str | None
) -> Iterable[Line]:
    """The lines of one commit at ledger time `at`."""
    for entry in commit.entries:
        jobs, nodes = subjects(entry, before)
        text = tell(entry, before) if why_void is None else f"no effect: {why_void}"
        yield Line(
            seq=seq,
            at=at,
            type=commit.type,
            by=commit.source,
            text=bounded(text),
            jobs=jobs[:FEW],
            nodes=nodes[:FEW],
            commit=commit.id,
            cause=entry.cause,
            void=why_void is not None,
        )
