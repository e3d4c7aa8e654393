"""Spans of a test: a tracer that keeps them, and views of what it kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from planwave.service.tracing import open_tracer
from planwave.service.tracing_content import SpanContent


class KeptSpans:
    """A tracer, and the spans that it ended; ``provider`` is one of a program, with the same spans."""

    def __init__(self, content: SpanContent | None = None) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracer = open_tracer(SimpleSpanProcessor(self._exporter), content)
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def ended(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.ended if span.name == name]

    def tree(self, *attributes: str) -> list[tuple[Any, ...]]:
        """Return ``("name / name", value, …)`` of each span, sorted; the values of these attributes."""
        spans = self.ended
        by_id = {context_of(span).span_id: span for span in spans}
        found = [(_names(span, by_id), *_values(span, attributes)) for span in spans]
        return in_order(found)


def in_order(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows in the order of ``KeptSpans.tree``."""
    return sorted(rows, key=lambda row: (row[0], repr(row)))


def context_of(span: ReadableSpan) -> Any:
    context = span.get_span_context()
    assert context is not None
    return context


def traceparent_of(span: ReadableSpan) -> str:
    """Return the ``traceparent`` of a request below a span."""
    context = context_of(span)
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-01"


def _names(span: ReadableSpan, by_id: dict[int, ReadableSpan]) -> str:
    parent = None if span.parent is None else by_id.get(span.parent.span_id)
    return span.name if parent is None else f"{_names(parent, by_id)} / {span.name}"


def _values(span: ReadableSpan, attributes: Iterable[str]) -> tuple[Any, ...]:
    held = span.attributes or {}
    return tuple(held.get(name) for name in attributes)
