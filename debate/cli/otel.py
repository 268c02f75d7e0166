"""`--otel`: where the traces of a command go, by OpenTelemetry's own variables."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from debate.errors import ConfigError

OTEL = (
    "Send OpenTelemetry traces and scores, by its own variables: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME, "
    "OTEL_TRACES_EXPORTER=console."
)
_HINT = "pip install 'debate-eval[otel]'"


@contextmanager
def exporting(is_on: bool) -> Generator[None]:
    """Send out the spans and events that are made inside, unless the program has set an SDK up by itself.

    Raises:
        ConfigError: where OpenTelemetry's SDK or its exporter is not installed, and for an exporter that is unknown.
    """
    if not is_on:
        yield
        return
    try:
        from opentelemetry import _logs, trace
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, ConsoleLogRecordExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
    except ImportError as error:
        raise ConfigError(f"needs OpenTelemetry's SDK: {error}", field="--otel", hint=_HINT) from None
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES go before what is given here.
        named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "debate"}
        spans, events = TracerProvider(resource=Resource.create(named)), LoggerProvider(resource=Resource.create(named))
        to_spans = (BatchSpanProcessor, ConsoleSpanExporter, "trace_exporter:OTLPSpanExporter")
        for processor in _processors("OTEL_TRACES_EXPORTER", *to_spans):
            spans.add_span_processor(processor)
        to_events = (BatchLogRecordProcessor, ConsoleLogRecordExporter, "_log_exporter:OTLPLogExporter")
        for processor in _processors("OTEL_LOGS_EXPORTER", *to_events):
            events.add_log_record_processor(processor)
        trace.set_tracer_provider(spans)
        _logs.set_logger_provider(events)
    try:
        yield
    finally:
        for provider in (trace.get_tracer_provider(), _logs.get_logger_provider()):
            if hasattr(provider, "force_flush"):
                provider.force_flush()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def _exporter(variable: str) -> str:
    """The exporter that a variable names."""
    name = os.environ.get(variable, "").strip().lower() or "otlp"
    if name not in ("otlp", "console", "none"):
        raise ConfigError(f"{variable} must be otlp, console or none, got {name!r:.80}", field="--otel")
    return name


def _processors(variable: str, batch: Any, console: Any, otlp: str) -> list[Any]:
    """What sends spans, or events, to where a variable says.

    batch, console: the SDK's processor, and its exporter to the console.
    otlp: the exporter for OTLP over HTTP, as MODULE:CLASS; it is imported when it is asked for.
    """
    name = _exporter(variable)
    if name == "none":
        return []
    if name == "console":
        return [batch(console())]
    module, kind = otlp.split(":")
    try:
        exporter = getattr(import_module(f"opentelemetry.exporter.otlp.proto.http.{module}"), kind)
    except ImportError:
        raise ConfigError("needs OpenTelemetry's exporter for OTLP over HTTP", field="--otel", hint=_HINT) from None
    return [batch(exporter())]
