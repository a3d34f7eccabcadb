"""Tracing, when an OTLP endpoint is set: FastAPI's own spans, sent by the OpenTelemetry SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi.telemetry import TelemetryConfig

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider


def tracer_provider(service: str, endpoint: str | None) -> TracerProvider | None:
    """A provider that exports to the collector, or ``None`` without an endpoint.

    Args:
        service: becomes ``service.name``.
        endpoint: base URL of an OTLP HTTP collector, e.g. ``http://collector:4318``.
    """
    if not endpoint:
        return None
    # Slow to load: only who exports pays for it.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")))
    return provider


def fastapi_telemetry(provider: TracerProvider | None) -> TelemetryConfig:
    """What FastAPI is told: spans only; exceptions and metrics go to our own logs and registry."""
    config: TelemetryConfig = {
        "tracing": provider is not None,
        "metrics": False,
        "logs": False,
        "auto_configure": False,
    }
    if provider is not None:
        config["tracer_provider"] = provider
        config["operation_spans"] = False
    return config
