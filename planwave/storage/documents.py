"""The JSON document of an execution, computed from its events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

import orjson

from planwave.errors import InputError
from planwave.events import Event, ExecutionState, NodeState, execution_logs, fold
from planwave.events.node_inputs import NodeInputs
from planwave.events.outcome import outcome_of
from planwave.events.timeline import TimelineEntry, answers, reentries, timelines
from planwave.events.types import error_message
from planwave.graph.result import result_text
from planwave.ids import UUID_PATTERN
from planwave.jsonio import dumps_trusted
from planwave.storage.call_documents import calls_by_node
from planwave.storage.files import (
    remove_files,
    replace_durably,
    sync_directory,
    write_temporary,
)
from planwave.storage.records import ExecutionRecord, StoredCall

if TYPE_CHECKING:
    from planwave.shapes.executions import (
        DocumentNode,
        DocumentResponse,
        RecordedCallResponse,
        RunResultResponse,
    )

DOCUMENT_VERSION: Final = 3

_CUT_OFF: Final = ("cancelled", "failed", "retrying")
"""Statuses of nodes whose last attempt did not complete, so that what it streamed is in no result."""

_Document = dict[str, Any]
_ORIGIN: Final = (
    "plan_hash", "revision", "flow", "parent", "trigger", "created_by", "approval",
)  # fmt: skip


def build_document(
    events: Sequence[Event],
    record: ExecutionRecord,
    calls: Iterable[StoredCall] = (),
    state: ExecutionState | None = None,
) -> DocumentResponse:
    """Return the document of an execution; ``state`` is that after its events, where it is known.

    ``result`` has the value of the execution and the ids of the nodes that it comes from; see
    ``planwave.graph.result``. ``outcome`` and ``missing`` say what an execution that failed delivered all the same. ``nodes`` are in graph order, then nested nodes in the order they started. The ``result`` of a node
    is text or null; ``node_results`` has those that are not null. ``inputs`` are ``{handle: {"type",
    "value"}}`` from flow edges; ``dependencies`` are the paths of their sources.
    ``reused`` is ``{"execution_id", "path", "failed_inside"}`` of the node whose result was taken in
    place of a run. The ``error`` of a node is the message, ``error_detail`` is ``{"code", "message",
    "hint"?}``; ``traceback`` is there where an exception of its own code failed it. A failure is ``handled`` if the node's policy, or a completed node around, handled it.
    ``streamed`` is the text that a node had streamed when it was cancelled or failed, by kind.
    ``requests`` are open; ``answers`` a node received; ``reentries`` are its repetitions after crashes.
    ``calls`` are its recorded calls; see ``call_documents.py``. ``events`` are all from 1 on, in order.
    """
    members = _members(events, record, calls, state or fold(events))
    nodes: list[DocumentNode] = list(members["nodes"])
    results = {each["path"]: each["result"] for each in nodes if each["result"] is not None}
    return cast("DocumentResponse", {**members, "nodes": nodes, "node_results": results})


def document_pieces(
    events: Sequence[Event],
    record: ExecutionRecord,
    calls: Iterable[StoredCall] = (),
    names: Collection[str] | None = None,
    *,
    is_interrupted: bool = False,
) -> Iterator[bytes]:
    """Yield the compact JSON of a document in pieces, none larger than one node or one other member.

    ``names`` are the members of the document that are wanted; None for all. One that is interrupted
    says so.
    """
    members: _Document = _members(events, record, calls, fold(events))
    if is_interrupted:
        members["interrupted"] = True
    before = b"{"
    for name, value in members.items():
        if names is not None and name not in names:
            continue
        yield before + dumps_trusted(name) + b":"
        before = b","
        if name == "nodes":
            yield from _separated(b"[", map(dumps_trusted, value), b"]")
        elif name == "node_results":
            each = (dumps_trusted(path) + b":" + dumps_trusted(text) for path, text in value)
            yield from _separated(b"{", each, b"}")
        else:
            yield dumps_trusted(value)
    yield b"}"


def _separated(opening: bytes, pieces: Iterable[bytes], closing: bytes) -> Iterator[bytes]:
    yield opening
    for number, piece in enumerate(pieces):
        yield b"," + piece if number else piece
    yield closing


def _members(
    events: Sequence[Event],
    record: ExecutionRecord,
    calls: Iterable[StoredCall],
    state: ExecutionState,
) -> _Document:
    """Return the members of a document in order; ``nodes`` and ``node_results`` are iterators."""
    return {
        "schema_version": DOCUMENT_VERSION,
        "execution_id": record.execution_id,
        "plan_id": record.plan_id,
        **{name: getattr(state, name) for name in _ORIGIN},
        "user_prompt": state.goal or record.user_prompt,
        "title": state.title or record.title,
        "timestamp": record.created_at,
        "status": state.status,
        **outcome_of(state),
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
        "requests": [request.as_json() for request in state.requests.values()],
        "waves": state.wave_json(),
        "usage": state.usage.as_json(),
        "budget": state.budget_json(),
        "inputs": state.inputs,
        "result": _result_document(state),
        "nodes": _nodes(state, timelines(events), calls_by_node(calls)),
        "node_results": _results(state),
        "execution_logs": execution_logs(events),
        "graph": state.graph,
        **state.changes.as_json(),
    }


def build_node_document(
    events: Sequence[Event],
    path: str,
    calls: Iterable[StoredCall] = (),
    whole_call: int | None = None,
) -> DocumentNode | None:
    """Return what the document of an execution has of one node; None if there is no such node.

    ``whole_call`` is the number of calls that are whole, however large.
    """
    state = fold(events)
    if path not in state.nodes:
        return None
    course = timelines(event for event in events if event.path == path).get(path, ())
    recorded = calls_by_node((call for call in calls if call.key.path == path), whole_call)
    return _node(state.nodes[path], NodeInputs(state), course, state, recorded)


async def write_documents(directory: Path, texts: Mapping[str, bytes]) -> dict[str, Exception]:
    """Write ``{execution_id}.json`` for each id, atomically; durable on return.

    Returns:
        The errors of the documents that were not written, by id; their older documents are unchanged.
        An ``InputError`` for an id that is not a UUID.

    Raises:
        OSError: The directory cannot be synced; new documents may be lost after a power failure.
    """
    unfinished: dict[str, Path] = {}
    failed: dict[str, Exception] = {}
    try:
        for execution_id, text in texts.items():
            try:
                path = _path_of(directory, execution_id)
                unfinished[execution_id] = await write_temporary(path, text)
            except (InputError, OSError) as error:
                failed[execution_id] = error
    except asyncio.CancelledError:
        remove_files(unfinished.values())
        raise
    return failed | await asyncio.to_thread(_replace_each, directory, unfinished)


def _replace_each(directory: Path, written: Mapping[str, Path]) -> dict[str, Exception]:
    """Make documents durable in one thread call, because each call has a cost."""
    failed: dict[str, Exception] = {}
    for execution_id, temporary in written.items():
        try:
            replace_durably(temporary, _path_of(directory, execution_id))
        except OSError as error:
            failed[execution_id] = error
    if len(failed) < len(written):
        sync_directory(directory)
    return failed


def open_document(directory: Path, execution_id: str) -> BinaryIO | None:
    """Open a written document; None if there is none, or an earlier version of planwave wrote it."""
    try:
        file = _path_of(directory, execution_id).open("rb")
    except OSError:
        return None
    opening = b'{\n  "schema_version": %d,' % DOCUMENT_VERSION
    if file.read(len(opening)) == opening:
        file.seek(0)
        return file
    file.close()
    return None


def document_seq(path: Path) -> int:
    """Return the sequence number of the last event that a written document shows; 0 without one."""
    try:
        return int(orjson.loads(path.read_bytes())["last_seq"])
    except FileNotFoundError:
        return 0


def _path_of(directory: Path, execution_id: str) -> Path:
    if not UUID_PATTERN.fullmatch(execution_id):
        raise InputError(f"{execution_id!r} is not an execution id", code="invalid-execution-id")
    return directory / f"{execution_id}.json"


def document_text(document: Mapping[str, Any]) -> bytes:
    """Return indented JSON; a lone surrogate, which UTF-8 cannot encode, stays a JSON escape.

    The standard library indents slowly and holds the GIL, so it encodes only values that orjson
    rejects.

    Raises:
        TypeError, ValueError: The document is not JSON.
    """
    try:
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
        return (text + "\n").encode("utf-8", "backslashreplace")


_Calls = Mapping[str, "Sequence[RecordedCallResponse]"]


def _nodes(
    state: ExecutionState, of: Mapping[str, Sequence[TimelineEntry]], calls: _Calls
) -> Iterator[DocumentNode]:
    feeds = NodeInputs(state)
    for path, node in state.nodes.items():
        yield _node(node, feeds, of.get(path, ()), state, calls)


def _result_document(state: ExecutionState) -> RunResultResponse:
    result = state.result()
    return {"nodes": list(result.outputs), "value": result.value.value}


def _results(state: ExecutionState) -> Iterator[tuple[str, str]]:
    for path, node in state.nodes.items():
        text = _result(node)
        if text is not None:
            yield path, text


def _result(node: NodeState) -> str | None:
    delivered = node.delivered
    return None if delivered is None else result_text(delivered)


def _node(
    node: NodeState,
    feeds: NodeInputs,
    course: Sequence[TimelineEntry],
    state: ExecutionState,
    calls: _Calls,
) -> DocumentNode:
    location = feeds.graphs.locate(node.path)
    document, own_id = location.document, location.id
    data: Mapping[str, Any] = document.get("data") or {}
    described: DocumentNode = {
        "id": own_id,
        "path": node.path,
        "name": document.get("name") or node.name or own_id,
        "description": document.get("description", ""),
        "type": document.get("type"),
        "provider": node.provider or data.get("provider"),
        "model": node.model or data.get("model"),
        "status": node.status,
        "result": _result(node),
        "outputs": node.outputs,
        "error": None if node.error is None else error_message(node.error),
        "error_detail": node.error,
        "handled": state.is_handled(node),
        "reason": node.reason,
        "cause": node.cause,
        "reused": node.reused,
        "execution_time": node.duration_s,
        "dependencies": feeds.upstream(node.path),
        "inputs": _inputs(node, feeds),
        "prompt": node.prompt,
        "wave": node.wave,
        "attempts": node.attempts,
        "reentries": reentries(course),
        "answers": answers(course),
        "calls": _calls(calls.get(node.path, ()), course),
        "started_at": node.started_at,
        "completed_at": node.completed_at,
        "usage": node.usage.as_json(),
    }
    if node.traceback is not None:
        described["traceback"] = node.traceback
    if node.status in _CUT_OFF and node.has_streamed:
        texts = {"text": node.text, "reasoning": node.reasoning}
        described["streamed"] = {kind: text for kind, text in texts.items() if text}
    return described


def _calls(
    calls: Iterable[RecordedCallResponse], course: Iterable[TimelineEntry]
) -> list[RecordedCallResponse]:
    """Return recorded calls, each with the traceback of its failure where the events have it."""
    tracebacks: dict[tuple[int | None, Any], str] = {
        (step.attempt, step.details.get("ordinal")): step.details["traceback"]
        for step in course
        if step.what == "called" and "traceback" in step.details
    }
    shown: list[RecordedCallResponse] = []
    for call in calls:
        traceback = tracebacks.get((call["attempt"], call["ordinal"]))
        shown.append(call if traceback is None else {**call, "traceback": traceback})
    return shown


def _inputs(node: NodeState, feeds: NodeInputs) -> dict[str, _Document]:
    if node.started_at is None:
        return {}
    inputs = feeds.inputs(node.path)
    return {handle: inputs[handle]._asdict() for handle in inputs}
