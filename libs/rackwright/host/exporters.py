"""Where traces go: to an OTLP endpoint over HTTP, or into a file. Imported only when one is set."""

from __future__ import annotations

from pathlib import Path

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

from rackwright.host.errors import BadSetting
from rackwright.host.telemetry import Tracing


def make_tracing(
    *, service: str, copy: int, cell: str, endpoint: str | None, file: Path | None
) -> Tracing:
    """Tracing to an OTLP endpoint, or as a JSON line for each span into a file.

    Raises BadSetting when the exporter for OTLP is not installed, OSError for the file.
    """
    exporter = _exporter(endpoint, file)
    if exporter is None:
        return Tracing()
    resource = Resource.create(
        {
            "service.namespace": "rackwright",
            "service.name": f"rackwright-{service}",
            "service.instance.id": f"{cell}/{service}/{copy}",
            "rackwright.cell": cell,
        }
    )
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Tracing(provider)


def _exporter(endpoint: str | None, file: Path | None) -> SpanExporter | None:
    if endpoint is not None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        except ModuleNotFoundError as error:
            raise BadSetting("otlp-endpoint", "needs rackwright[otlp] to be installed") from error
        return OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
    if file is not None:
        out = file.open("a", encoding="utf-8")
        return ConsoleSpanExporter(out=out, formatter=lambda span: span.to_json(indent=None) + "\n")
    return None
