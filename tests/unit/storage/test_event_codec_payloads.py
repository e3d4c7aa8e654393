"""Stored payloads that planwave did not store, and those of other versions."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import Conflict
from planwave.events import Event
from planwave.storage.event_codec import validate_payloads

ERROR = {"code": "busy", "message": "not now"}


def event(kind: str, data: Any) -> Event:
    return Event("x1", 7, "2026-01-01T00:00:00.000000+00:00", kind, "a", 1, data)


def emitted(event_type: Any, data: Any) -> tuple[str, dict[str, Any]]:
    return "node.event", {"event_type": event_type, "data": data}


@pytest.mark.parametrize(
    ("kind", "data", "field"),
    [
        ("node.waiting", {}, "data.request_id"),
        ("node.waiting", {"request_id": "r1", "timeout_s": "soon"}, "data.timeout_s"),
        ("node.completed", {"outputs": [1]}, "data.outputs"),
        ("node.completed", {"outputs": {"output": {"type": "any"}}}, "data.outputs.output.value"),
        ("node.failed", {"error": "odd"}, "data.error"),
        ("node.retrying", {"error": ERROR, "delay_s": 1}, "data.next_attempt"),
        ("node.started", {"reentry": True}, "data.reentry"),
        ("wave.started", {"wave": 1, "nodes": 3}, "data.nodes"),
        ("execution.created", {"graph": {"nodes": [{"id": 1}], "edges": []}}, "data.graph.nodes.0"),
        (
            "execution.created",
            {"graph": {"nodes": [], "edges": [{"source": "a", "target": "b", "data": {}}]}},
            "data.graph.edges.0.data",
        ),
        ("execution.created", {"parent": 3}, "data.parent"),
        ("execution.created", {"options": {"run_to": 3}}, "data.options.run_to"),
        (*emitted("once", {"key": "k"}), "data.value"),
        (*emitted("run_graph", {"key": "k", "graph": "g"}), "data.inputs"),
        (*emitted("run_graph", 5), "data"),
    ],
)
def test_a_payload_of_another_form_is_named(kind: str, data: Any, field: str) -> None:
    with pytest.raises(Conflict) as caught:
        validate_payloads([event(kind, data)])
    assert caught.value.code == "unreadable"
    assert f"{field}" in caught.value.message
    assert f"event 7 ({kind})" in caught.value.message


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("node.started", {"wave": 1, "of_a_newer_version": [1]}),
        ("novel.event", {"revision": "x"}),
        (
            "node.completed",
            {"outputs": {"output": {"type": "any", "value": None}}, "duration_s": 1},
        ),
        ("node.failed", {"error": {"code": "404", "message": "", "retry": 1}}),
        ("node.log", {"message": "m", "level": 3}),
        ("usage", {"input_tokens": "many", "provider": None}),
        ("execution.paused", {"kind": "of-a-newer-version"}),
        ("execution.cancelled", {"cause": {"any": "thing"}}),
        emitted({"not": "a name"}, [1]),
        emitted("run_graph", None),
    ],
)
def test_what_nodes_and_other_versions_store_is_accepted(kind: str, data: Any) -> None:
    validate_payloads([event(kind, data)])
    with pytest.raises(Conflict, match=r"\(node.waiting\)"):
        validate_payloads([event(kind, data), event("node.waiting", {})])
