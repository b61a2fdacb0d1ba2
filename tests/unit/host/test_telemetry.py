"""Traces lead from message to message; a commit of many causes links to each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rackwright.bus.ports import NO_HEADERS, Headers, Stored
from rackwright.core.fleet import Fleet
from rackwright.core.fold import Folding
from rackwright.core.machine import Event, Offer
from rackwright.host.commits import Author, Sealed
from rackwright.host.flight import Lost, Won
from rackwright.host.reading import Arrival
from rackwright.host.steps import Step
from rackwright.host.telemetry import Tracing
from rackwright.wire.entries.cell import LedgerTicked
from rackwright.wire.entries.job import JobFinished, JobFinishing
from rackwright.wire.ids import CellName, JobId, LedgerId, MessageId
from rackwright.wire.message import Entry

FLEET = Fleet(ledger=LedgerId("one"), seq=7)


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """Where finished spans go."""
    exporter = InMemorySpanExporter()
    yield exporter
    exporter.shutdown()


@pytest.fixture
def tracing(spans: InMemorySpanExporter) -> Tracing:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    return Tracing(provider)


def event(**_: float) -> Event:
    raise AssertionError("not wanted here")


def arrival(cause: str, headers: Headers = NO_HEADERS) -> Arrival:
    return Arrival(event=event, name="wish.submit", cause=MessageId(cause), headers=headers)


def sealed(*causes: str) -> Sealed:
    entries = tuple(LedgerTicked(cause=MessageId(cause)) for cause in causes)
    author = Author(CellName("lab"), "placer", 0)
    return author.seal(FLEET, Offer(entries=entries, compare=False), 0.0)


def handle(tracing: Tracing, *causes: str) -> None:
    for cause in causes:
        with tracing.handling(arrival(cause), "wishes"):
            pass


def tell(tracing: Tracing, kind: type[Entry], cause: str, seq: int) -> str:
    """Send a commit of one entry of the job `j` and fold it; its id."""
    more: dict[str, Any] = {} if kind is LedgerTicked else {"job": JobId("j")}
    offer = Offer(entries=(kind(cause=MessageId(cause), **more),), compare=False)
    made = Author(CellName("lab"), "placer", 0).seal(FLEET, offer, float(seq))
    made = replace(made, commit=replace(made.commit, id=MessageId(f"c{seq}")))
    headers = tracing.sending(made)
    tracing.settled(Won(sealed=made, seq=seq, sent_mono=0.0))
    stored = Stored(seq=seq, subject=made.subject, at=0.0, headers=headers, data=made.data)
    tracing.folded(Step(stored=stored, commit=made.commit, folding=Folding(fleet=FLEET)))
    return made.commit.id


def trace_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.trace_id)


def test_a_commit_of_one_cause_is_its_child(tracing: Tracing, spans: InMemorySpanExporter) -> None:
    handle(tracing, "a")
    one = sealed("a")
    headers = tracing.sending(one)
    tracing.settled(Won(sealed=one, seq=8, sent_mono=0.0))
    wished, sent = spans.get_finished_spans()
    assert trace_of(sent) == trace_of(wished)
    assert f"{trace_of(sent):032x}" in headers["traceparent"]
    assert sent.attributes is not None
    assert sent.attributes["rackwright.seq"] == 8


def test_a_commit_of_several_links_to_each(tracing: Tracing, spans: InMemorySpanExporter) -> None:
    handle(tracing, "a", "b")
    one = sealed("a", "b", "a", "unheard")
    tracing.sending(one)
    tracing.settled(Lost(offer=one.offer))
    first, second, sent = spans.get_finished_spans()
    assert [link.context.trace_id for link in sent.links] == [trace_of(first), trace_of(second)]
    assert trace_of(sent) not in (trace_of(first), trace_of(second))
    assert not sent.status.is_ok


def test_a_message_continues_the_trace_of_its_sender(
    tracing: Tracing, spans: InMemorySpanExporter
) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    with tracing.handling(arrival("a", {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}), "w"):
        pass
    (span,) = spans.get_finished_spans()
    assert f"{trace_of(span):032x}" == trace


def test_a_fault_is_followed_through_the_commits_of_others(
    tracing: Tracing, spans: InMemorySpanExporter
) -> None:
    handle(tracing, "fault")
    unfit = sealed("fault")
    headers = tracing.sending(unfit)
    tracing.settled(Won(sealed=unfit, seq=8, sent_mono=0.0))
    other_spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(other_spans))
    other = Tracing(provider)
    stored = Stored(seq=8, subject=unfit.subject, at=0.0, headers=headers, data=unfit.data)
    other.folded(Step(stored=stored, commit=unfit.commit, folding=Folding(fleet=FLEET)))
    swapped = sealed("fault")
    other.sending(swapped)
    other.settled(Won(sealed=swapped, seq=9, sent_mono=0.0))
    fault, sent = spans.get_finished_spans()
    (swap,) = other_spans.get_finished_spans()
    assert trace_of(swap) == trace_of(sent) == trace_of(fault)
    assert swap.parent is not None
    assert sent.context is not None
    assert swap.parent.span_id == sent.context.span_id


def test_a_job_keeps_its_trace_when_a_node_that_traces_nothing_is_the_cause(
    tracing: Tracing, spans: InMemorySpanExporter
) -> None:
    handle(tracing, "wish", "status", "fault")
    ends = [tell(tracing, JobFinishing, "wish", 8), tell(tracing, JobFinished, "status", 9)]
    wished, told, fault, first, last = spans.get_finished_spans()
    assert [trace_of(span) for span in (first, last)] == [trace_of(wished)] * 2
    assert [link.context.trace_id for link in last.links] == [trace_of(told)]
    assert len({trace_of(wished), trace_of(told), trace_of(fault)}) == 3
    assert len(ends) == 2


def test_a_recovery_is_of_the_faults_trace_and_the_job_goes_on_in_its_own(
    tracing: Tracing, spans: InMemorySpanExporter
) -> None:
    handle(tracing, "wish", "fault", "status")
    tell(tracing, JobFinishing, "wish", 8)
    unfit = tell(tracing, LedgerTicked, "fault", 9)
    tell(tracing, JobFinishing, unfit, 10)
    tell(tracing, JobFinished, "status", 11)
    wished, fault, _, queued, _, swapped, finished = spans.get_finished_spans()
    assert trace_of(swapped) == trace_of(fault)
    assert trace_of(queued) == trace_of(finished) == trace_of(wished)


def test_without_an_exporter_nothing_is_added() -> None:
    off = Tracing()
    handle(off, "a")
    one = sealed("a")
    assert off.sending(one) == {}
    off.settled(Lost(offer=one.offer))
    off.close()
