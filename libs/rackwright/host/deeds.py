"""Does what a machine wants done, apart from its offers and wakes, which are the life's business.

Before the service is ready nothing is projected or echoed: projections wait, echoes are dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from rackwright.bus.ports import Bus
from rackwright.core.machine import (
    Attend,
    CheckSnapshot,
    Deed,
    Doubt,
    Note,
    Project,
    SendEcho,
    Tally,
    TrimLedger,
    TrimWishes,
    WriteSnapshot,
)
from rackwright.host.archivist import Archivist
from rackwright.host.commits import Author
from rackwright.host.crew import Crew
from rackwright.host.echoes import Echoes
from rackwright.host.keeping import trim_wishes
from rackwright.host.metrics import Metrics
from rackwright.host.projector import Projector
from rackwright.host.sources import Arrivals
from rackwright.host.standing import Standing
from rackwright.wire.ids import NodeId, RackId

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}


class Deeds:
    """The hands of one life. What takes long is told to the machine through `done`."""

    def __init__(
        self,
        bus: Bus,
        author: Author,
        standing: Standing,
        *,
        crew: Crew,
        metrics: Metrics,
        now: Callable[[], float],
        wake: Callable[[], None],
        archive: Path | None,
        attend: Callable[[tuple[tuple[RackId, NodeId], ...]], None],
    ) -> None:
        self.done = Arrivals(name="done", wake=wake)
        self._bus = bus
        self._attend = attend
        self._crew = crew
        self._standing = standing
        self._log: Any = structlog.get_logger()
        self._metrics = metrics
        self._held: list[Project] = []
        self._echoes = Echoes(bus, author, now)
        self._projector = Projector(bus, author, crew, metrics, now=now, wake=wake)
        self._archivist = Archivist(bus, author, crew, self.done, now, archive)
        crew.start(self._echoes.run(), "echoes")

    @property
    def idle(self) -> bool:
        """Is every value written?"""
        return self._projector.idle

    def look_again(self) -> None:
        """The bus is back."""
        self._projector.look_again()

    def open(self, *, snapshots: bool) -> None:
        """The service is ready: do what had to wait."""
        for project in self._held:
            self._project(project)
        self._held.clear()
        if snapshots:
            self._archivist.tell_newest(self._standing.fleet)

    def do(self, deed: Deed) -> None:
        """Begin with it."""
        match deed:
            case SendEcho(echo=echo):
                if self._standing.ready:
                    self._echoes.send(echo)
            case Project():
                if self._standing.ready:
                    self._project(deed)
                else:
                    self._held.append(deed)
            case WriteSnapshot() | CheckSnapshot() | TrimLedger():
                self._archivist.do(deed, self._standing.fleet)
            case TrimWishes(to=to):
                self._crew.start(trim_wishes(self._bus, to), "trimming wishes")
            case Attend(nodes=nodes):
                self._attend(nodes)
            case Doubt() | Note() | Tally():
                self._tell(deed)

    def _tell(self, deed: Doubt | Note | Tally) -> None:
        """What is for people."""
        match deed:
            case Doubt(why=why):
                self._standing.doubt = why
                self._log.warning("service.doubt", why=why or "over")
            case Note(level=level, event=event, fields=fields):
                self._log.log(LEVELS[level], event, **fields)
            case Tally(kind=kind, by=by):
                self._metrics.signals.labels(kind).inc(by)

    def _project(self, project: Project) -> None:
        fleet = self._standing.fleet
        self._projector.project(project, fleet.ledger, fleet.seq)
