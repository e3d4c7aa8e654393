"""Status messages for subscribers: a summary or a whole snapshot of an execution, as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import orjson

from planwave.events import ENDED_NODE, Event, ExecutionState, NodeState
from planwave.events.plan_payloads import WRITTEN
from planwave.jsonio import dumps_trusted

if TYPE_CHECKING:
    from planwave.shapes.nodes import NodeSnapshot


def status_summary_of(state: ExecutionState, logs: Iterable[str]) -> dict[str, Any]:
    """Return the summary that a poll shows of an execution."""
    return {
        "status": state.status,
        "node_states": {path: node.status for path, node in state.nodes.items()},
        "logs": list(logs),
        "wave": state.wave_json(),
    }


def snapshot_of(state: ExecutionState, logs: Iterable[str], *, for_operator: bool = False) -> bytes:
    """Return the whole state as JSON, with the text streamed so far and the last log sentences.

    Early snapshots hold many nodes that have not run. The JSON of those nodes differs only in the
    path, so it is built from a template. The operator also gets the tracebacks of failed nodes.
    """
    around = {"type": "snapshot", **state.as_json(nodes=False), "logs": list(logs)}
    try:
        return orjson.dumps(
            {**around, "nodes": [_node_json(node, for_operator) for node in state.nodes.values()]}
        )
    except orjson.JSONEncodeError:  # encode_known() knows how to write what orjson does not
        nodes = [_whole_node(node, for_operator) for node in state.nodes.values()]
        return dumps_trusted({**around, "nodes": nodes})


def streamed_text(state: ExecutionState, node: NodeState) -> list[Event]:
    """Return the text streamed by a node's newest attempt, as deltas from offset 0."""
    at = node.started_at or ""
    return [
        Event(
            state.execution_id, 0, at, "node.delta", node.path, node.attempt,
            {"kind": kind, "text": text, "offset": 0},
        )
        for kind, text in (("reasoning", node.reasoning), ("text", node.text))
        if text
    ]  # fmt: skip


def open_texts(state: ExecutionState) -> list[Event]:
    """Return what the nodes that have not ended have streamed, and the change that is being written, as deltas."""
    nodes, changes = state.nodes.values(), state.changes
    texts = [
        delta
        for node in nodes
        if node.has_streamed and node.status not in ENDED_NODE
        for delta in streamed_text(state, node)
    ]
    if changes.open is not None and (written := str(changes.written)):
        data = {"kind": WRITTEN, "text": written, "offset": 0}
        at, number = changes.open["at"], changes.requested
        texts.append(Event(state.execution_id, 0, at, "node.delta", None, number, data))
    return texts


def _node_json(node: NodeState, for_operator: bool) -> Any:
    if node.is_untouched and node.path.isascii():
        return orjson.Fragment(_JSON_BEFORE_PATH + orjson.dumps(node.path) + _JSON_AFTER_PATH)
    return _whole_node(node, for_operator)


def _whole_node(node: NodeState, for_operator: bool) -> NodeSnapshot:
    document = node.as_json()
    if for_operator and node.traceback is not None:
        document["traceback"] = node.traceback
    return document


_MARK: Final = "/"
"""No node's path, so it stands in the text once."""
_JSON_BEFORE_PATH, _, _JSON_AFTER_PATH = orjson.dumps(NodeState(_MARK).as_json()).partition(
    orjson.dumps(_MARK)
)
