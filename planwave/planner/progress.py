"""The progress of a plan, or of a change of one, while a model writes it: each part once it is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, cast

from pydantic_core import from_json

from planwave.graph.model import FLOW, LINK
from planwave.planner.forbidden_fields import redact_forbidden

ProgressKind = Literal["delta", "title", "node", "edge", "operation", "repair", "fix"]

_NODE_FIELDS: Final = ("id", "name", "description", "type", "provider", "model")
_EDGE_FIELDS: Final = ("source", "target", "channel")
_OPERATION_FIELDS: Final = ("op", "id", "to", "source", "target", "source_handle", "target_handle")
_CLOSINGS: Final = ("", "]}", "}")
"""What is missing from a plan after its last brace, after an item of a list, and after a positional step."""
_EAGER_CHARS: Final = 16_384
"""A longer reply is parsed only after each sixteenth of growth, so that the cost stays linear."""


class PlanProgress(NamedTuple):
    """One event of the making of a plan, or of a change of one.

    ``data`` by kind: ``delta`` ``{"text", "reasoning"}``; ``title`` ``{"title"}``; ``node``
    ``{"id", "name", …}``; ``edge`` ``{"source", "target", "channel"}``; ``operation`` ``{"op", …}``:
    what a change does besides adding nodes and edges, ``update_node`` with what it sets as ``set``, but for the
    values that no plan holds; ``repair`` ``{"attempt", "diagnostics"}``: the model writes it again, so all parts
    before are void; ``fix`` ``{"fix"}``. ``usage``, with ``repair``, is that of the attempt before it.
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
        is_linked: Returns whether nodes of a type are no steps, so that a link leads from them.
    """

    def __init__(
        self,
        read_steps: ReadSteps | None = None,
        is_linked: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._read_steps = read_steps
        self._is_linked = is_linked
        self._linked: set[str] = set()
        self._pieces: list[str] = []
        self._length = 0
        self._next_parse_at = 0
        self._has_title = False
        self._reported: dict[str, int] = {"node": 0, "edge": 0, "operation": 0}

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
        if self._read_steps is not None and not plan.keys() & {"nodes", "steps"}:
            try:
                plan = self._read_steps(plan)
            except (KeyError, TypeError, AttributeError, ValueError):
                return  # the model did not keep to the schema; the strict reader reports that
        for step in self._unreported("node", plan.get("steps") or plan.get("nodes")):
            yield PlanProgress("node", _texts(step, _NODE_FIELDS))
            yield from self._edges_into(step)
        for edge in self._unreported("edge", plan.get("edges")):
            yield PlanProgress("edge", _texts(edge, _EDGE_FIELDS))
        for operation in self._unreported("operation", plan.get("operations")):
            yield from self._operation(operation)

    def _operation(self, operation: Mapping[str, Any]) -> Iterator[PlanProgress]:
        """Yield what an operation of a change does."""
        op = operation.get("op")
        step, edge = (_object_or_empty(operation.get(name)) for name in ("node", "edge"))
        if op == "add_node" and step:
            yield PlanProgress("node", _texts(step, _NODE_FIELDS))
            yield from self._edges_into(step)
        elif op == "add_edge" and edge:
            yield PlanProgress("edge", _texts(edge, _EDGE_FIELDS))
        else:
            data = _texts(operation, _OPERATION_FIELDS)
            if fields := _object_or_empty(operation.get("set")):
                _, data["set"], _ = redact_forbidden(fields)
            yield PlanProgress("operation", data)

    def _unreported(
        self, kind: Literal["node", "edge", "operation"], items: object
    ) -> Iterator[dict[str, Any]]:
        entries = _list(items)
        for entry in entries[self._reported[kind] :]:
            if isinstance(entry, dict):
                yield cast("dict[str, Any]", entry)
        self._reported[kind] = max(self._reported[kind], len(entries))

    def _edges_into(self, step: Mapping[str, Any]) -> Iterator[PlanProgress]:
        """Yield an edge from each step that a step depends on."""
        target, node_type = step.get("id"), step.get("type")
        if not isinstance(target, str):
            return
        if isinstance(node_type, str) and self._is_linked(node_type):
            self._linked.add(target)
        named = map(_object_or_empty, _list(step.get("from")))
        sources = [*_list(step.get("depends_on")), *(each.get("step") for each in named)]
        for source in dict.fromkeys(each for each in sources if isinstance(each, str)):
            channel = LINK if source in self._linked else FLOW
            yield PlanProgress("edge", {"source": source, "target": target, "channel": channel})


def _texts(entry: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    return {name: entry[name] for name in fields if isinstance(entry.get(name), str)}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


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
