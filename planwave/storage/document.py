"""The JSON document of an execution: what a person opens, made from its events alone."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import aiofiles
import aiofiles.os

from planwave.errors import InputError
from planwave.events import Event, ExecutionState, NodeState, execution_logs, fold
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DEFAULT_TARGET_HANDLE, FLOW
from planwave.graph.values import Arrival, DataValue, Inputs, result_text
from planwave.storage.files import sync_directory
from planwave.storage.ids import UUID_PATTERN, new_id
from planwave.storage.records import ExecutionRecord

DOCUMENT_VERSION: Final = 1

_Document = dict[str, Any]


def project(events: Sequence[Event], record: ExecutionRecord) -> _Document:
    """Give the document of an execution.

    ``nodes`` are in graph order, nested ones after them in the order they started. A node's
    ``result`` is its result as text, null where it has none; ``node_results`` holds those that are
    there. ``inputs`` are ``{handle: {"type", "value"}}`` as they reached the node along flow edges;
    ``dependencies`` are the ids of the nodes those edges come from.

    Args:
        events: All events from 1 on, in order.
        record: The execution as the store lists it.
    """
    state = fold(events)
    nodes = _nodes(state)
    return {
        "schema_version": DOCUMENT_VERSION,
        "execution_id": record.execution_id,
        "plan_id": record.plan_id,
        "plan_hash": state.plan_hash,
        "user_prompt": state.goal or record.user_prompt,
        "title": state.title or record.title,
        "timestamp": record.created_at,
        "status": state.status,
        "started_at": state.started_at,
        "completed_at": state.completed_at,
        "last_seq": state.last_seq,
        "error": state.error,
        "failures": state.failures,
        "handled_failures": state.handled_failures,
        "reason": state.reason,
        "cause": state.cause,
        "waitingForInput": state.waiting_for_input,
        "currentNodeId": state.current_node_id,
        "waves": state.waves,
        "usage": state.usage.as_json(),
        "inputs": state.inputs,
        "nodes": nodes,
        "node_results": {n["path"]: n["result"] for n in nodes if n["result"] is not None},
        "execution_logs": execution_logs(events),
        "graph": state.graph,
    }


async def write_document(directory: Path, execution_id: str, document: _Document) -> Path:
    """Write ``{execution_id}.json``, whole or not at all; durable on return.

    Raises:
        InputError: The id is not a UUID, so it may not become a file name.
        OSError: The disk refused; an older document stays as it was.
    """
    if not UUID_PATTERN.fullmatch(execution_id):
        raise InputError(f"{execution_id!r} is not an execution id", code="invalid-execution-id")
    content = await asyncio.to_thread(_as_text, document)
    path = directory / f"{execution_id}.json"
    temporary = directory / f".{path.name}.{new_id()}.tmp"
    try:
        async with aiofiles.open(temporary, "wb") as file:
            await file.write(content)
            await file.flush()
            await asyncio.to_thread(os.fsync, file.fileno())
        await aiofiles.os.replace(temporary, path)
    except BaseException:
        # Not awaited: a second cancellation must not leave the file behind.
        temporary.unlink(missing_ok=True)
        raise
    await asyncio.to_thread(sync_directory, directory)
    return path


def _as_text(document: _Document) -> bytes:
    """Give readable JSON; a lone surrogate, which UTF-8 cannot hold, stays a JSON escape."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode("utf-8", "backslashreplace")


def _nodes(state: ExecutionState) -> list[_Document]:
    graph: Mapping[str, Any] = state.graph or {}
    written: dict[str, _Document] = {node["id"]: node for node in graph.get("nodes", ())}
    incoming: dict[str, list[_Document]] = {}
    for edge in graph.get("edges", ()):
        if edge["data"]["channel"] == FLOW:
            incoming.setdefault(edge["target"], []).append(edge)
    return [
        _node(state, node, written.get(path, {}), incoming.get(path, []))
        for path, node in state.nodes.items()
    ]


def _node(
    state: ExecutionState, node: NodeState, written: _Document, incoming: Sequence[_Document]
) -> _Document:
    data: Mapping[str, Any] = written.get("data") or {}
    has_result = node.outputs is not None and node.status == "completed"
    own_id = node.path.rpartition("/")[2]
    return {
        "id": own_id,
        "path": node.path,
        "name": written.get("name") or own_id,
        "description": written.get("description", ""),
        "type": written.get("type"),
        "provider": node.provider or data.get("provider"),
        "model": node.model or data.get("model"),
        "status": node.status,
        "result": result_text(_values(node.outputs)) if has_result else None,
        "outputs": node.outputs,
        "error": node.error,
        "handled": node.handled,
        "reason": node.reason,
        "cause": node.cause,
        "execution_time": node.duration_s,
        "dependencies": list(dict.fromkeys(edge["source"] for edge in incoming)),
        "inputs": _inputs(state, node, incoming),
        "prompt": node.prompt,
        "wave": node.wave,
        "attempts": node.attempts,
        "started_at": node.started_at,
        "completed_at": node.completed_at,
        "usage": node.usage.as_json(),
    }


def _inputs(
    state: ExecutionState, node: NodeState, incoming: Sequence[_Document]
) -> dict[str, _Document]:
    """Give what reached a node that started; with a winner of ``join: any``, that alone."""
    if node.started_at is None:
        return {}
    arrivals: list[Arrival] = []
    for edge in incoming:
        if node.via is not None and edge.get("id") != node.via:
            continue
        source = state.nodes.get(edge["source"])
        handle = edge.get("sourceHandle", DEFAULT_SOURCE_HANDLE)
        value = _values(source.outputs if source else None).get(handle)
        if value is not None:
            target = edge.get("targetHandle", DEFAULT_TARGET_HANDLE)
            arrivals.append(Arrival(edge.get("id", ""), edge["source"], "", handle, target, value))
    inputs = Inputs(tuple(arrivals))
    return {handle: inputs[handle]._asdict() for handle in inputs}


def _values(outputs: Mapping[str, Any] | None) -> dict[str, DataValue]:
    return {
        handle: DataValue(output["type"], output["value"])
        for handle, output in (outputs or {}).items()
    }
