"""OpenTelemetry traces that follow a job or a fault from message to message.

Every message carries its span in the W3C `traceparent` header. A commit of many entries has many
causes: its span links to each of them, and is the child of the cause when there is but one. Where
that cause belongs to no trace, as what a node says of its workers, a commit about one job goes on
with the trace of that job. Nothing is measured or sent unless an exporter is configured.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from rackwright.bus.ports import NO_HEADERS, Headers
from rackwright.host.commits import Sealed
from rackwright.host.flight import Settled, Won
from rackwright.host.reading import Arrival
from rackwright.host.steps import Step
from rackwright.wire.ids import MessageId
from rackwright.wire.message import Entry

REMEMBERED = 65_536
PROPAGATOR = TraceContextTextMapPropagator()


class Provider(Protocol):
    """What is needed of OpenTelemetry's TracerProvider; importing its SDK takes a while."""

    def get_tracer(self, instrumenting_module_name: str) -> Tracer:
        """A maker of spans."""
        ...

    def shutdown(self) -> None:
        """Send what is left."""
        ...


class Known(NamedTuple):
    """The span of a message; `root`: its trace begins here, as its sender traced nothing."""

    span: SpanContext
    root: bool = False


class Tracing:
    """Spans of one process; without a provider it does nothing."""

    def __init__(self, provider: Provider | None = None) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("rackwright.host") if provider is not None else None
        self._causes: OrderedDict[MessageId, Known] = OrderedDict()
        self._jobs: OrderedDict[str, SpanContext] = OrderedDict()  # newest span of each one's trace
        self._sending: Span | None = None

    @contextmanager
    def handling(self, arrival: Arrival, destination: str) -> Iterator[None]:
        """The machine handles one message."""
        if self._tracer is None or arrival.cause is None:
            yield
            return
        parent = _parent(arrival.headers)
        with self._tracer.start_as_current_span(
            f"process {destination}",
            context=parent,
            kind=SpanKind.CONSUMER,
            attributes={
                **_messaging("process", destination),
                "messaging.message.id": arrival.cause,
                "rackwright.type": arrival.name,
            },
        ) as span:
            root = not trace.get_current_span(parent).get_span_context().is_valid
            self._remember(arrival.cause, Known(span.get_span_context(), root))
            yield

    def folded(self, step: Step) -> None:
        """A commit was folded: what is decided because of it, or of its causes, follows it."""
        if self._tracer is None or not step.stored.headers:
            return
        made = trace.get_current_span(_parent(step.stored.headers)).get_span_context()
        if made.is_valid:
            self._remember(step.commit.id, Known(made))
            for entry in step.commit.entries:
                if entry.cause is not None:
                    self._remember(entry.cause, Known(made))
            for job in _jobs_of(step.commit.entries):
                self._follow(job, made)

    def sending(self, sealed: Sealed) -> Headers:
        """A commit is about to be sent; the headers that carry its span."""
        if self._tracer is None:
            return NO_HEADERS
        commit = sealed.commit
        causes = dict.fromkeys(entry.cause for entry in commit.entries if entry.cause is not None)
        known = [self._causes[cause] for cause in causes if cause in self._causes]
        parent = self._parent_of(known, _jobs_of(commit.entries))
        around = trace.NonRecordingSpan(parent) if parent is not None else trace.INVALID_SPAN
        self._sending = span = self._tracer.start_span(
            f"send {sealed.subject}",
            context=trace.set_span_in_context(around, Context()),
            kind=SpanKind.PRODUCER,
            links=[Link(cause.span) for cause in known],
            attributes={
                **_messaging("send", sealed.subject),
                "messaging.message.id": commit.id,
                "messaging.batch.message_count": len(commit.entries),
                "rackwright.compared": sealed.expected is not None,
            },
        )
        self._remember(commit.id, Known(span.get_span_context()))
        headers: dict[str, str] = {}
        PROPAGATOR.inject(headers, trace.set_span_in_context(span, Context()))
        return headers

    def settled(self, settled: Settled) -> None:
        """What became of the commit that was sent."""
        span, self._sending = self._sending, None
        if span is None:
            return
        if isinstance(settled, Won):
            span.set_attribute("rackwright.seq", settled.seq)
        else:
            span.set_status(Status(StatusCode.ERROR, "refused"))
        span.end()

    def _parent_of(self, known: list[Known], jobs: set[str]) -> SpanContext | None:
        only = known[0] if len(known) == 1 else None
        job = self._jobs.get(next(iter(jobs))) if len(jobs) == 1 else None
        if job is not None and (only is None or only.root):
            return job
        return only.span if only is not None else None

    def _follow(self, job: str, made: SpanContext) -> None:
        """A recovery is of the fault's trace and not of the job's, which goes on after it."""
        before = self._jobs.setdefault(job, made)
        if before.trace_id == made.trace_id:
            self._jobs[job] = made
        self._jobs.move_to_end(job)
        if len(self._jobs) > REMEMBERED:
            self._jobs.popitem(last=False)

    def _remember(self, message: MessageId, known: Known) -> None:
        self._causes[message] = known
        self._causes.move_to_end(message)
        if len(self._causes) > REMEMBERED:
            self._causes.popitem(last=False)

    def close(self) -> None:
        """Send what is still to be sent."""
        if self._provider is not None:
            self._provider.shutdown()


def _jobs_of(entries: Iterable[Entry]) -> set[str]:
    """The jobs that entries are about."""
    return {job for entry in entries if (job := getattr(entry, "job", None)) is not None}


def _parent(headers: Mapping[str, str]) -> Context:
    return PROPAGATOR.extract(headers, context=Context())


def _messaging(operation: str, destination: str) -> dict[str, str]:
    """The attributes of OpenTelemetry's messaging conventions (1.45, in development)."""
    return {
        "messaging.system": "nats",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": destination,
    }
