"""Queues: bounded, in turns, and patient with what is ahead of the fold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rackwright.core.machine import Event
from rackwright.host.reading import Arrival
from rackwright.host.sources import Arrivals, LastValues, Source


def event(**_: float) -> Event:
    raise AssertionError("not wanted here")


def arrival(name: str, obeyed: int = 0, until: float = 0.0, key: str = "") -> Arrival:
    return Arrival(event=event, name=name, obeyed=obeyed, until=until, key=key)


def silent() -> None:
    """Nobody is woken."""


async def filled(source: Arrivals, *items: Arrival) -> Arrivals:
    for item in items:
        await source.put(item)
    return source


def names(items: list[Arrival]) -> list[str]:
    return [item.name for item in items]


async def test_a_full_source_holds_its_filler_back() -> None:
    woken: list[int] = []
    wake: Callable[[], None] = lambda: woken.append(1)  # noqa: E731
    source: Source[int] = Source(name="s", wake=wake, limit=2)
    await source.put(1)
    await source.put(2)
    third = asyncio.create_task(source.put(3))
    await asyncio.sleep(0)
    assert not third.done()
    assert source.take(1) == [1]
    await third
    assert source.take(9) == [2, 3]
    assert len(woken) == 3


async def test_a_quantum_at_a_time() -> None:
    source = Arrivals(name="s", wake=silent, quantum=2)
    await filled(source, *(arrival(str(n)) for n in range(3)))
    assert names(source.due(0, 0.0)) == ["0", "1"]
    assert source.due_now(0, 0.0)
    assert names(source.due(0, 0.0)) == ["2"]
    assert not source.due_now(0, 0.0)


async def test_one_ahead_of_the_fold_holds_back_those_behind_it() -> None:
    source = Arrivals(name="wishes", wake=silent)
    await filled(source, arrival("a"), arrival("b", obeyed=5, until=9.0), arrival("c"))
    assert names(source.due(4, 1.0)) == ["a"]
    assert source.next_due() == 9.0
    assert names(source.due(5, 1.0)) == ["b", "c"]


async def test_one_whose_entry_never_comes_waits_no_longer_than_it_may() -> None:
    source = Arrivals(name="wishes", wake=silent)
    await filled(source, arrival("b", obeyed=10**18, until=9.0))
    assert source.due(4, 8.9) == []
    assert names(source.due(4, 9.0)) == ["b"]


async def test_last_values_ahead_of_the_fold_hold_back_nobody_else() -> None:
    source = LastValues(name="status", wake=silent)
    await filled(source, arrival("x1", obeyed=5, until=9.0, key="x"), arrival("y1", key="y"))
    assert names(source.due(4, 1.0)) == ["y1"]
    assert source.next_due() == 9.0
    assert names(source.due(5, 1.0)) == ["x1"]
    assert source.next_due() is None


async def test_a_newer_value_replaces_the_one_that_waits() -> None:
    source = LastValues(name="status", wake=silent)
    await filled(source, arrival("x1", obeyed=9, until=9.0, key="x"))
    assert source.due(4, 1.0) == []
    await filled(source, arrival("x2", obeyed=5, until=9.5, key="x"))
    assert names(source.due(5, 1.0)) == ["x2"]
    assert source.due(9, 9.9) == []


async def test_history_is_loaded_when_it_has_been_handled() -> None:
    source = Arrivals(name="signals", wake=silent)
    await filled(source, arrival("old"))
    assert not source.loaded
    source.end_history()
    await filled(source, arrival("new"))
    assert not source.loaded
    source.take(1)
    assert source.loaded


async def test_an_empty_history_is_loaded_at_once() -> None:
    source = Arrivals(name="signals", wake=silent)
    source.end_history()
    assert source.loaded
