"""OpenTelemetry traces that follow a job or a fault from message to message.

Every message carries its span in the W3C `traceparent` header. A commit of many entries has many
causes: its span links to each of them, and is the child of the cause when there is but one. Nothing
is measured or sent unless an exporter is configured.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from rackwright.bus.ports import NO_HEADERS, Headers
from rackwright.host.commits import Sealed
from rackwright.host.follower import Step
from rackwright.host.offers import Settled, Won
from rackwright.host.reading import Arrival
from rackwright.wire.ids import MessageId

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


class Tracing:
    """Spans of one process; without a provider it does nothing."""

    def __init__(self, provider: Provider | None = None) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("rackwright.host") if provider is not None else None
        self._causes: OrderedDict[MessageId, SpanContext] = OrderedDict()
        self._sending: Span | None = None

    @contextmanager
    def handling(self, arrival: Arrival, destination: str) -> Iterator[None]:
        """The machine handles one message."""
        if self._tracer is None or arrival.cause is None:
            yield
            return
        with self._tracer.start_as_current_span(
            f"process {destination}",
            context=_parent(arrival.headers),
            kind=SpanKind.CONSUMER,
            attributes={
                **_messaging("process", destination),
                "messaging.message.id": arrival.cause,
                "rackwright.type": arrival.name,
            },
        ) as span:
            self._remember(arrival.cause, span.get_span_context())
            yield

    def folded(self, step: Step) -> None:
        """A commit was folded: what is decided because of it, or of its causes, follows it."""
        if self._tracer is None or not step.stored.headers:
            return
        made = trace.get_current_span(_parent(step.stored.headers)).get_span_context()
        if made.is_valid:
            self._remember(step.commit.id, made)
            for entry in step.commit.entries:
                if entry.cause is not None:
                    self._remember(entry.cause, made)

    def sending(self, sealed: Sealed) -> Headers:
        """A commit is about to be sent; the headers that carry its span."""
        if self._tracer is None:
            return NO_HEADERS
        commit = sealed.commit
        causes = dict.fromkeys(entry.cause for entry in commit.entries if entry.cause is not None)
        known = [self._causes[cause] for cause in causes if cause in self._causes]
        only = trace.NonRecordingSpan(known[0]) if len(known) == 1 else None
        self._sending = span = self._tracer.start_span(
            f"send {sealed.subject}",
            context=trace.set_span_in_context(only, Context()) if only is not None else Context(),
            kind=SpanKind.PRODUCER,
            links=[Link(cause) for cause in known],
            attributes={
                **_messaging("send", sealed.subject),
                "messaging.message.id": commit.id,
                "messaging.batch.message_count": len(commit.entries),
                "rackwright.compared": sealed.expected is not None,
            },
        )
        self._remember(commit.id, span.get_span_context())
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

    def _remember(self, message: MessageId, context: SpanContext) -> None:
        self._causes[message] = context
        self._causes.move_to_end(message)
        if len(self._causes) > REMEMBERED:
            self._causes.popitem(last=False)

    def close(self) -> None:
        """Send what is still to be sent."""
        if self._provider is not None:
            self._provider.shutdown()


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
