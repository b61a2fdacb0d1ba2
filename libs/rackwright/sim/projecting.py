"""The hands of a key book on virtual time: every read and write may be lost, late or cut off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rackwright.bus.memory_store import MemoryStore
from rackwright.bus.messages import OPERATION
from rackwright.bus.ports import Appended, Refused
from rackwright.bus.streams import Kind
from rackwright.core.machine import Project
from rackwright.host.commits import Author
from rackwright.host.keybook import KINDS, RETRY_S, Key, KeyBook, There, Wanted
from rackwright.sim.asking import ask
from rackwright.sim.engine import Engine
from rackwright.sim.paths import Path
from rackwright.wire.codec import decode
from rackwright.wire.ids import LedgerId

BUCKETS = {"assign": Kind.ASSIGN, "jobs": Kind.JOBS}
DELETED = {OPERATION: "DEL"}


class SimProjector:
    """The hands of one process for its buckets; `close` when it dies."""

    def __init__(
        self,
        engine: Engine,
        store: MemoryStore,
        path: Path,
        author: Author,
        point: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._engine = engine
        self._store = store
        self._path = path
        self._author = author
        self._point = point
        self._book = KeyBook(author.ordinal)
        self._closed = False

    @property
    def idle(self) -> bool:
        """Is everything written?"""
        return self._book.idle

    def close(self) -> None:
        """The process is gone."""
        self._closed = True

    def project(self, effect: Project, ledger: LedgerId, seq: int) -> None:
        """Write this soon; of several wishes for a key only the newest."""
        for key in self._book.want(effect, ledger, seq):
            self._begin(key)

    def look_again(self) -> None:
        """The bus was away and may have lost what it keeps in memory: write what is missing."""
        for key in self._book.look_again():
            self._begin(key)

    def _begin(self, key: Key) -> None:
        self._engine.later(self._book.patience_s, self._write, key, None)

    def _write(self, key: Key, before: Wanted | None) -> None:
        """Write the newest wish, else the one `before` that is not in yet."""
        if self._closed:
            return
        wanted = self._book.newest(key, before)
        if wanted is None:
            return
        there = self._book.known(key, wanted)
        if there is not None:
            self._compare(key, wanted, there)
            return

        def read(found: There | None) -> None:
            if found is None:
                self._retry(key, wanted)
                return
            self._book.found(wanted, found)
            self._compare(key, wanted, found)

        ask(self._engine, self._path, lambda: self._read(key), read)

    def _retry(self, key: Key, wanted: Wanted) -> None:
        self._book.doubt(key)
        self._engine.later(RETRY_S, self._write, key, wanted)

    def _compare(self, key: Key, wanted: Wanted, there: There) -> None:
        if self._closed:
            return
        if there.settles(wanted):
            self._book.settled(key)
            self._write(key, None)
            return
        data = b"" if wanted.value is None else self._author.value(wanted.value, self._engine.now)

        def put() -> Appended | Refused:
            kind = BUCKETS[key[0]]
            subject = self._store.specs[kind].root + key[1]
            revision = there.revision
            if revision == 0 and (last := self._store.last_on(kind, subject)) is not None:
                revision = last.seq if OPERATION in last.headers else 0
            return self._store.append(
                kind,
                subject,
                data,
                DELETED if wanted.value is None else {},
                expected_on_subject=revision,
            )

        def written(outcome: Appended | Refused | None) -> None:
            match outcome:
                case Appended(seq=revision):
                    self._book.wrote(key, wanted, revision)
                    self._write(key, None)
                case Refused():
                    self._book.doubt(key)
                    self._write(key, wanted)
                case None:
                    self._retry(key, wanted)

        self._point("before value")
        if self._closed:
            return
        ask(self._engine, self._path, put, written)

    def _read(self, key: Key) -> There:
        kind = BUCKETS[key[0]]
        stored = self._store.last_on(kind, self._store.specs[kind].root + key[1])
        if stored is None or OPERATION in stored.headers:
            return There()
        body: Any = decode(KINDS[key[0]], stored.data).body
        return There(revision=stored.seq, ledger=body.ledger, seq=body.seq, value=body)
