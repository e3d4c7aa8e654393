"""The progress of a plan while a model writes it: each title, node and edge once it is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, cast

from pydantic_core import from_json

ProgressKind = Literal["delta", "title", "node", "edge", "repair", "fix"]

_NODE_FIELDS: Final = ("id", "name", "description", "type", "provider", "model")
_EDGE_FIELDS: Final = ("source", "target", "channel")
_CLOSINGS: Final = ("", "]}", "}")
"""What is missing from a plan after its last brace, after a node or edge, and after a step."""
_EAGER_CHARS: Final = 16_384
"""A longer reply is parsed only after each sixteenth of growth, so that the cost stays linear."""


class PlanProgress(NamedTuple):
    """One event of the making of a plan.

    ``data`` by kind: ``delta`` ``{"text", "reasoning"}``; ``title`` ``{"title"}``; ``node``
    ``{"id", "name", …}``; ``edge`` ``{"source", "target", "channel"}``; ``repair`` ``{"attempt",
    "diagnostics"}``: the model writes the plan again, so earlier titles, nodes and edges are void;
    ``fix`` ``{"fix"}``. ``usage``, with ``repair``, is that of the attempt before it.
    """

    kind: ProgressKind
    data: dict[str, Any]
    usage: dict[str, Any] | None = None


ProgressListener = Callable[[PlanProgress], None]
ReadSteps = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Turns the complete steps of a positional reply into ``{"nodes", "edges"}``."""


class PlanScanner:
    """Reports the complete parts of a reply while it arrives.

    For display only: the plan itself is read strictly from the whole reply. Text that is not JSON
    is not reported.

    Args:
        read_steps: Reads a reply of the positional shape; None for the general shape.
    """

    def __init__(self, read_steps: ReadSteps | None = None) -> None:
        self._read_steps = read_steps
        self._pieces: list[str] = []
        self._length = 0
        self._next_parse_at = 0
        self._has_title = False
        self._reported: dict[str, int] = {"node": 0, "edge": 0}

    def feed(self, text: str) -> Iterator[PlanProgress]:
        """Yield the parts that this piece of the reply completes."""
        self._pieces.append(text)
        self._length += len(text)
        ends_part = "}" in text or (not self._has_title and '"' in text)
        if ends_part and self._length >= self._next_parse_at:
            yield from self._parse()

    def finish(self) -> Iterator[PlanProgress]:
        """Yield the complete parts that were not reported, at the end of the reply."""
        yield from self._parse()

    def _parse(self) -> Iterator[PlanProgress]:
        text = "".join(self._pieces)
        self._pieces = [text]
        if self._length > _EAGER_CHARS:
            self._next_parse_at = self._length + self._length // 16
        plan = _complete_parts(text[max(0, text.find("{")) :])
        title = plan.get("title")
        if isinstance(title, str) and not self._has_title:
            self._has_title = True
            yield PlanProgress("title", {"title": title})
        if self._read_steps is not None and "nodes" not in plan:
            try:
                plan = self._read_steps(plan)
            except (KeyError, TypeError, AttributeError, ValueError):
                return  # the model did not keep to the schema; the strict reader reports that
        yield from self._unreported("node", plan.get("nodes"), _NODE_FIELDS)
        yield from self._unreported("edge", plan.get("edges"), _EDGE_FIELDS)

    def _unreported(
        self, kind: Literal["node", "edge"], items: object, fields: tuple[str, ...]
    ) -> Iterator[PlanProgress]:
        if not isinstance(items, list):
            return
        entries = cast("list[Any]", items)
        for entry in entries[self._reported[kind] :]:
            if isinstance(entry, dict):
                values = cast("dict[str, Any]", entry)
                fields_of_entry = {
                    name: values[name] for name in fields if isinstance(values.get(name), str)
                }
                yield PlanProgress(kind, fields_of_entry)
        self._reported[kind] = max(self._reported[kind], len(entries))


def _complete_parts(text: str) -> dict[str, Any]:
    """Return the plan without the node, edge or step that the model is writing."""
    until_brace = text[: text.rfind("}") + 1]
    for closing in _CLOSINGS:
        try:
            return _object_or_empty(from_json(until_brace + closing))
        except ValueError:
            continue
    try:
        plan = _object_or_empty(from_json(text, allow_partial=True))
    except ValueError:
        return {}
    last = next(reversed(plan), None)
    if last is not None and isinstance(plan[last], list):
        plan[last] = plan[last][:-1]
    elif last is not None and isinstance(plan[last], dict):
        del plan[last]
    return plan


def _object_or_empty(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
