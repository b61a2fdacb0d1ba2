"""What the nodes of one process hear: assignments and echoes of their racks, values of their jobs.

One watch per rack and one for jobs, however many nodes this process hosts.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

import structlog

from rackwright.bus.errors import BusAway
from rackwright.bus.opening import patiently
from rackwright.bus.ports import Bus, Change, Feed, Ready, Subscription
from rackwright.wire.codec import Unreadable, decode
from rackwright.wire.ids import CellName, JobId, RackId
from rackwright.wire.message import Body, Envelope
from rackwright.wire.signals import Echo
from rackwright.wire.subjects import Subjects
from rackwright.wire.values import JobValue, RackAssignments

REREAD_S = 30.0  # a watch may have gone deaf (P4.3)

log = structlog.get_logger()

B = TypeVar("B", bound=Body)


class Jobs:
    """The newest value of each job that some node here has heard of."""

    def __init__(self, bus: Bus, on_job: Callable[[JobValue], None], *, every: bool) -> None:
        self._bus = bus
        self._on_job = on_job
        self.every = every
        self._values: dict[JobId, JobValue] = {}
        self._tasks: dict[JobId, asyncio.Task[None]] = {}

    def value(self, job: str) -> JobValue | None:
        """What is known; the first question about a job starts the listening."""
        name = JobId(job)
        if not self.every and name not in self._tasks:
            loop = asyncio.get_running_loop()
            self._tasks[name] = loop.create_task(self._follow(name))
        return self._values.get(name)

    def keep(self, wanted: Iterable[str]) -> None:
        """Stop listening to the jobs that no node here speaks of any more."""
        names = {JobId(job) for job in wanted}
        for name in set(self._tasks) - names:
            self._tasks.pop(name).cancel()
            self._values.pop(name, None)

    async def run(self) -> None:
        """Listen to all jobs, where this process hosts many nodes."""
        if self.every:
            await self._follow(JobId(">"))

    async def close(self) -> None:
        """Stop listening."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _follow(self, key: JobId) -> None:
        async with self._bus.jobs.watch(key) as feed:
            async for change in feed:
                if isinstance(change, Ready):
                    continue
                self._take(change)

    def _take(self, change: Change) -> None:
        name = JobId(change.key)
        if change.data is None:
            self._values.pop(name, None)
            return
        value = _read(JobValue, change.data, change.key)
        if value is None:
            return
        known = self._values.get(name)
        if known is None or (value.seq, value.membership) > (known.seq, known.membership):
            self._values[name] = value
            self._on_job(value)


class Racks:
    """Assignments and echoes of the racks that this process has nodes in."""

    def __init__(
        self,
        bus: Bus,
        racks: Iterable[RackId],
        on_value: Callable[[RackAssignments], None],
        on_echo: Callable[[Echo], None],
    ) -> None:
        self._bus = bus
        self._racks = tuple(racks)
        self._on_value = on_value
        self._on_echo = on_echo
        self._subjects = Subjects(CellName(bus.cell))

    async def run(self) -> None:
        """Listen until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for rack in self._racks:
                tasks.create_task(self._values(rack))
                tasks.create_task(self._echoes(rack))
            tasks.create_task(self._reread())

    async def _values(self, rack: RackId) -> None:
        async with self._bus.assign.watch(self._subjects.assignment_key(rack)) as feed:
            await self._take_all(feed)

    async def _take_all(self, feed: Feed[Change | Ready]) -> None:
        async for change in feed:
            if isinstance(change, Change) and change.data is not None:
                self._take(change.key, change.data)

    def _take(self, key: str, data: bytes) -> None:
        value = _read(RackAssignments, data, key)
        if value is not None:
            self._on_value(value)

    async def _reread(self) -> None:
        """Ask for the values themselves now and then: a deaf watch must not cost more than this."""
        while True:
            await asyncio.sleep(REREAD_S)
            for rack in self._racks:
                try:
                    found = await self._bus.assign.get(self._subjects.assignment_key(rack))
                except BusAway:
                    break
                if found is not None:
                    self._take(found.key, found.data)

    async def _echoes(self, rack: RackId) -> None:
        async with await self._echo_feed(rack) as feed:
            async for message in feed:
                echo = _read(Echo, message.data, message.subject)
                if echo is not None:
                    self._on_echo(echo)

    async def _echo_feed(self, rack: RackId) -> Subscription:
        """Listen to the echoes of a rack, as soon as the bus lets us."""
        subject = self._subjects.echo(rack)
        return await patiently(partial(self._bus.core.subscribe, subject, limit=256))


def _read(kind: type[B], data: bytes, where: str) -> B | None:
    try:
        message: Envelope[B] = decode(kind, data)
    except Unreadable as problem:
        log.error("value.unreadable", where=where, problem=str(problem))
        return None
    return message.body
