"""Findings about a graph document: one record for each error, warning or fix, and constructors."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from planwave.shapes.graphs import DiagnosticResponse, SuggestionResponse

Severity = Literal["error", "warning", "info"]

_SECTION_ORDER: Final = {"nodes": 1, "edges": 2}


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about a graph.

    Attributes:
        code: Stable kebab-case code, e.g. ``flow-cycle``.
        severity: ``error`` stops a graph from running; ``warning`` and ``info`` do not.
        message: The error and its location, one sentence.
        pointer: JSON pointer (RFC 6901) into the graph document, e.g. ``/edges/3/target``.
        node: Id of the node the finding is about, or None.
        edge: Id of the edge the finding is about, or None.
        path: For cycles, the node ids around it; the first is repeated at the end.
        hint: How to correct it.
        fix: The change that planwave made itself because the meaning was clear.
        suggestion: The one way to correct it, for a person to accept: ``{"label", "operations"}`` with
            the operations of ``PATCH /api/plans/{plan_id}``; None where there are several ways.
    """

    code: str
    severity: Severity
    message: str
    pointer: str = ""
    node: str | None = None
    edge: str | None = None
    path: tuple[str, ...] | None = None
    hint: str | None = None
    fix: str | None = None
    suggestion: SuggestionResponse | None = None

    def as_json(self) -> DiagnosticResponse:
        """Return the finding as JSON, without fields that are None."""
        document: DiagnosticResponse = {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "pointer": self.pointer,
        }
        if self.node is not None:
            document["node"] = self.node
        if self.edge is not None:
            document["edge"] = self.edge
        if self.hint is not None:
            document["hint"] = self.hint
        if self.fix is not None:
            document["fix"] = self.fix
        if self.suggestion is not None:
            document["suggestion"] = self.suggestion
        if self.path is not None:
            document["path"] = list(self.path)
        return document


def errors_in(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the findings of severity ``error``; each prevents the graph from running."""
    return [d for d in diagnostics if d.severity == "error"]


def sorted_by_location(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return findings sorted: about the whole document, then by node, then by edge.

    The sort is stable: findings about the same node or edge keep their order.
    """
    return sorted(diagnostics, key=_location_key)


def _location_key(finding: Diagnostic) -> tuple[int, int]:
    parts = finding.pointer.split("/", 3)
    section = _SECTION_ORDER.get(parts[1], 0) if len(parts) > 1 else 0
    return section, int(parts[2]) if len(parts) > 2 and section else -1


def limit_exceeded(
    limit: str,
    value: float,
    actual: float | str,
    what: str,
    pointer: str = "",
    *,
    hint: str | None = None,
) -> Diagnostic:
    """Return the diagnostic for an exceeded limit, with its name, its value and the actual value."""
    actual_text = actual if isinstance(actual, str) else f"{actual:.12g}"
    return Diagnostic(
        "limit-exceeded",
        "error",
        f"{what}: limit {limit} is {value:.12g}, met {actual_text}",
        pointer,
        hint=hint or f"make it smaller or raise the limit {limit}",
    )


_CONTAINER_NAMES: Final[dict[type, str]] = {dict: "an object", list: "an array"}
_MAX_REPR_CHARS: Final = 60


def short_repr(value: object) -> str:
    """Return a value for a message, short and printable; of a container only its type."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    is_plain = isinstance(value, (str, int, float))
    text = repr(value) if is_plain else _CONTAINER_NAMES.get(type(value), type(value).__name__)
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= _MAX_REPR_CHARS else f"{text[:_MAX_REPR_CHARS]}…"
