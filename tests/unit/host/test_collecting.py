"""Garbage is collected while nothing else is to be done, and not only then."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import pytest

from rackwright.host.collecting import ALL_S, AT_LEAST_S, EVERY_S, Collector


@dataclass(slots=True)
class Desk:
    """A clock, and what is done to the collector of this process."""

    now: float = 100.0
    done: list[str] = field(default_factory=list)

    def mono(self) -> float:
        return self.now


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    made, before = Desk(), gc.get_threshold()
    for name in ("collect", "freeze", "unfreeze"):
        monkeypatch.setattr(gc, name, partial(made.done.append, name))
    yield made
    gc.set_threshold(*before)


def looked(desk: Desk, collector: Collector, after: float, *, quiet: bool) -> list[str]:
    desk.now += after
    desk.done.clear()
    collector.look(quiet=quiet)
    return list(desk.done)


def test_nothing_happens_before_the_process_is_ready(desk: Desk) -> None:
    before = gc.get_threshold()
    assert looked(desk, Collector(desk.mono), 2 * ALL_S, quiet=True) == []
    assert gc.get_threshold() == before


def test_when_it_is_quiet_every_few_seconds_otherwise_seldom(desk: Desk) -> None:
    collector = Collector(desk.mono)
    collector.begin()
    assert desk.done == ["collect", "freeze"]
    assert looked(desk, collector, EVERY_S - 0.1, quiet=True) == []
    assert looked(desk, collector, 0.1, quiet=True) == ["collect", "freeze"]
    assert looked(desk, collector, AT_LEAST_S - 0.1, quiet=False) == []
    assert looked(desk, collector, 0.1, quiet=False) == ["collect", "freeze"]
    assert looked(desk, collector, EVERY_S, quiet=True) == ["collect", "freeze"]


def test_once_an_hour_it_looks_at_everything(desk: Desk) -> None:
    collector = Collector(desk.mono)
    collector.begin()
    assert looked(desk, collector, ALL_S, quiet=True) == ["unfreeze", "collect", "freeze"]
    assert looked(desk, collector, EVERY_S, quiet=True) == ["collect", "freeze"]


def test_no_full_collection_comes_by_itself(desk: Desk) -> None:
    Collector(desk.mono).begin()
    assert gc.get_threshold()[2] > 100_000
