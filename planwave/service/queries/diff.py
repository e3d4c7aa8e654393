"""What differs between two executions: status, time, tokens, cost, and what each node gave.

Pure, and of bounded size: long values are cut, and compared by their hash.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from difflib import unified_diff
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from planwave.errors import ErrorDocument
from planwave.events import ExecutionState, NodeState
from planwave.events.unreadable import guard_stored
from planwave.executor.recovery.history import event_time
from planwave.graph.editing.difference import field_differences
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, Json
from planwave.graph.plan import canonical_json

if TYPE_CHECKING:
    from planwave.shapes.executions import DifferenceResponse, NodeDifference

Change = Literal["same", "changed", "only_a", "only_b"]

MAX_NODES: Final = 200
"""Nodes described in detail; the others that differ are counted."""
MAX_HANDLES: Final = 10
VALUE_CHARS: Final = 300
"""A value whose JSON is longer is shown by its beginning."""
TEXT_CHARS: Final = 20_000
TEXT_LINES: Final = 500
"""So much of a text is compared line by line."""
LINE_CHARS: Final = 200
"""Longer lines, as models write them, are compared sentence by sentence."""
DIFF_CHARS: Final = 4_000
"""The length limit of the difference between two texts, in characters."""

_GRAPH_FIELDS: Final = ("type", "name", "description", "data", "policy")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?;:]) +")
_ELLIPSIS: Final = "…"

_Document = Mapping[str, Any]


def diff(a: ExecutionState, b: ExecutionState) -> DifferenceResponse:
    """Return the differences between two executions.

    A node is changed if its status, its error, its outputs or its part of the graph document
    differ. Time and usage are reported, but do not count as a change: a reused result has none.

    Returns:
        ``{"a", "b", "status", "duration_s", "usage", "counts", "nodes", "left_off"}``: the ids; a
        pair ``[of a, of b]`` each of status, seconds from start to end (None before the end) and
        usage; how many nodes are ``same``, ``changed``, ``only_a`` and ``only_b``; and, nodes of
        ``a`` first, those that are not the same, and how many of them are left off.

        A node is ``{"path", "change", "status", "duration_s", "usage", "error"?, "written"?,
        "outputs"?, "result"?}``, pairs again, None where it is not there. ``written`` names the
        fields of it in the graph that differ, such as ``data.text``, ``outputs`` has the handles that do, each side as
        ``{"type", "value"}``, a long one as ``{"type", "preview", "sha256", "chars"}``; ``result``
        is the unified diff of the node's main text, where both sides are text.
    """
    written_a, written_b = _graph_nodes(a), _graph_nodes(b)
    counts: Counter[Change] = Counter({"same": 0, "changed": 0, "only_a": 0, "only_b": 0})
    nodes: list[NodeDifference] = []
    for path in dict.fromkeys([*a.nodes, *b.nodes]):
        pair = a.nodes.get(path), b.nodes.get(path)
        written = _fields_changed(written_a.get(path, {}), written_b.get(path, {}))
        change = _change_of(*pair, written)
        counts[change] += 1
        if change != "same" and len(nodes) < MAX_NODES:
            nodes.append(_node(path, change, *pair, written))
    return {
        "a": a.execution_id,
        "b": b.execution_id,
        "status": [a.status, b.status],
        "duration_s": [_duration(a), _duration(b)],
        "usage": [a.usage.as_json(), b.usage.as_json()],
        "counts": {
            "same": counts["same"],
            "changed": counts["changed"],
            "only_a": counts["only_a"],
            "only_b": counts["only_b"],
        },
        "nodes": nodes,
        "left_off": counts.total() - counts["same"] - len(nodes),
    }


def _graph_nodes(state: ExecutionState) -> dict[str, _Document]:
    return {node["id"]: node for node in (state.graph or {}).get("nodes", ())}


def _fields_changed(a: _Document, b: _Document) -> list[str]:
    """Return the fields that differ; those inside ``data`` and ``policy`` each, as ``data.text``."""
    before, after = (
        {name: each[name] for name in _GRAPH_FIELDS if name in each} for each in (a, b)
    )
    pointers = (str(each["pointer"]) for each in field_differences(before, after))
    return list(dict.fromkeys(".".join(each.split("/")[1:3]) for each in pointers))


def _change_of(a: NodeState | None, b: NodeState | None, written: list[str]) -> Change:
    if a is None:
        return "only_b"
    if b is None:
        return "only_a"
    is_same = a.status == b.status and _is_same(a.error, b.error)
    return "same" if is_same and not written and _is_same(a.outputs, b.outputs) else "changed"


def _node(
    path: str, change: Change, a: NodeState | None, b: NodeState | None, written: list[str]
) -> NodeDifference:
    document: NodeDifference = {
        "path": path,
        "change": change,
        "status": [each and each.status for each in (a, b)],
        "duration_s": [each and each.duration_s for each in (a, b)],
        "usage": [each and each.usage.as_json() for each in (a, b)],
    }
    errors = [each and _error(each.error) for each in (a, b)]
    if errors[0] != errors[1]:
        document["error"] = errors
    if written and change == "changed":
        document["written"] = written
    of_a, of_b = (dict[str, Any]((each and each.outputs) or {}) for each in (a, b))
    changed = (h for h in dict.fromkeys([*of_a, *of_b]) if not _is_same(of_a.get(h), of_b.get(h)))
    outputs = {
        h: [_preview(of_a.get(h)), _preview(of_b.get(h))] for h in islice(changed, MAX_HANDLES)
    }
    if outputs:
        document["outputs"] = outputs
    texts = _main_output_text(of_a), _main_output_text(of_b)
    if texts[0] is not None and texts[1] is not None and texts[0] != texts[1]:
        document["result"] = text_diff(texts[0], texts[1])
    return document


def text_diff(a: str, b: str) -> str:
    """Return the unified diff of two texts, without its header lines; a long diff is cut."""
    lines: list[str] = []
    room = DIFF_CHARS
    for line in islice(unified_diff(_lines(a), _lines(b), lineterm=""), 2, None):
        lines.append(_cut(line, 2 * LINE_CHARS))
        room -= len(lines[-1]) + 1
        if room < 0:
            lines.append(_ELLIPSIS)
            break
    if not lines:
        return f"they differ after {TEXT_LINES} lines or {TEXT_CHARS} characters"
    return "\n".join(lines)


def _lines(text: str) -> list[str]:
    lines: list[str] = []
    for line in text[:TEXT_CHARS].split("\n"):
        lines += [line] if len(line) <= LINE_CHARS else _SENTENCE_END.split(line)
    return lines[:TEXT_LINES]


def _cut(text: str, most: int = VALUE_CHARS) -> str:
    return text if len(text) <= most else text[:most] + _ELLIPSIS


def _main_output_text(outputs: _Document) -> str | None:
    """Return a node's main result if it is text."""
    main: Any = outputs.get(DEFAULT_SOURCE_HANDLE) or next(iter(outputs.values()), None)
    value = main["value"] if main else None
    return value if isinstance(value, str) else None


def _preview(output: Any) -> dict[str, Json] | None:
    """Return an output, cut if its JSON is long; None without an output."""
    if output is None:
        return None
    kind, value = output["type"], output["value"]
    text = canonical_json(value)
    if len(text) <= VALUE_CHARS + 2:  # the quotes of a text
        return {"type": kind, "value": value}
    return {
        "type": kind,
        "preview": _cut(value if isinstance(value, str) else text),
        "sha256": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        "chars": len(value) if isinstance(value, str) else len(text),
    }


def _error(error: Any) -> ErrorDocument | None:
    if not isinstance(error, dict):
        return None
    fields = cast("_Document", error)
    code, message = (str(fields.get(name) or "") for name in ("code", "message"))
    return {"code": _cut(code), "message": _cut(message)}


def _is_same(a: Json, b: Json) -> bool:
    """Compare as JSON: true is not 1, and 1 is not 1.0."""
    return a is b or (a == b and canonical_json(a) == canonical_json(b))


def _duration(state: ExecutionState) -> float | None:
    if state.started_at is None or state.completed_at is None:
        return None
    with guard_stored(state.execution_id):
        spent = event_time(state.completed_at) - event_time(state.started_at)
    return round(spent.total_seconds(), 6)
