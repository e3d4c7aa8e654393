"""Recorded calls as the document of an execution shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from planwave.graph.json_values import size_of
from planwave.providers.protocols import CallKey, Source, ToolCall
from planwave.providers.recordings import FAILURE, KIND
from planwave.storage.records import StoredCall

if TYPE_CHECKING:
    from planwave.shapes.executions import RecordedCallResponse

MAX_SHOWN_BYTES: Final = 4_096
"""A larger request or result is shown as its size alone."""
_BESIDE: Final = "/"
"""In the hash of what is recorded beside a call, which is no call itself."""

_Document = dict[str, Any]


def calls_by_node(
    calls: Iterable[StoredCall], whole: int | None = None
) -> dict[str, list[RecordedCallResponse]]:
    """Return the recorded calls of an execution by the paths of their nodes, in order.

    A call is ``{"ordinal", "attempt", "kind", "name", "request"?, "result"? | "error"?, "usage"?,
    "started_at"?, "duration_s"?}``; ``request_bytes`` or ``result_bytes`` stand for what is too large.
    The result of a model call is ``{"text", "finish_reason", "reasoning"?, "tool_calls"?, "sources"?}``.

    Args:
        calls: The calls, in any order.
        whole: The number of calls that are whole, however large; None for none.
    """
    by_path: dict[str, list[RecordedCallResponse]] = {}
    for call in sorted(calls, key=lambda each: each.key):
        if _BESIDE not in call.key.request_hash:
            longest = None if call.key.ordinal == whole else MAX_SHOWN_BYTES
            by_path.setdefault(call.key.path, []).append(
                cast("RecordedCallResponse", _call(call, longest))
            )
    return by_path


def model_replies(calls: Iterable[StoredCall]) -> Iterator[tuple[CallKey, str, str]]:
    """Yield what models replied, in order: the key of the call, the text and the reasoning as streamed."""
    for key, reply in sorted(calls, key=lambda each: each.key):
        if _BESIDE not in key.request_hash and KIND not in reply and FAILURE not in reply:
            yield key, str(reply.get("text") or ""), "".join(_thoughts(reply.get("native")))


def _call(call: StoredCall, longest: int | None) -> _Document:
    key, reply = call
    document: _Document = {"ordinal": key.ordinal, "attempt": key.attempt}
    if FAILURE in reply:
        failure = cast("Mapping[str, Any]", reply[FAILURE])
        document |= {"kind": "model", "name": _model_name(failure), "error": _error(failure)}
        return document
    if KIND not in reply:
        return document | _model_call(reply, longest)
    document |= {"kind": reply[KIND], "name": reply.get("name", "")}
    for name in ("request", "result"):
        if name in reply:
            document |= _shown(name, reply[name], longest)
    if "error" in reply:
        document["error"] = _error(reply["error"] or {})
    return document | _present(reply, "started_at", "duration_s")


def _model_call(reply: Mapping[str, Any], longest: int | None) -> _Document:
    result = {"text": reply.get("text"), "finish_reason": reply.get("finish_reason")}
    reasoning = _reasoning(reply.get("native"))
    details = {
        "reasoning": reasoning,
        "tool_calls": _named(ToolCall._fields, reply.get("tool_calls")),
        "sources": _named(Source._fields, reply.get("sources")),
    }
    result |= {name: value for name, value in details.items() if value}
    return {
        "kind": "model",
        "name": _model_name(reply),
        **_shown("result", result, longest),
        **_present(reply, "usage", "duration_s"),
    }


def _present(reply: Mapping[str, Any], *names: str) -> _Document:
    return {name: value for name in names if (value := reply.get(name)) is not None}


def _named(fields: Sequence[str], stored: object) -> list[Any]:
    """Return stored tuples, which are lists in JSON, as objects."""
    if not isinstance(stored, list):
        return []
    objects: list[Any] = []
    for row in cast("list[Any]", stored):
        is_tuple = isinstance(row, list)
        objects.append(dict(zip(fields, cast("list[Any]", row), strict=False)) if is_tuple else row)
    return objects


def _model_name(reply: Mapping[str, Any]) -> str:
    return f"{reply.get('provider')}/{reply.get('model')}"


def _reasoning(native: object) -> str:
    """Return the reasoning in a reply of all its parts; see ``ModelReply.native``."""
    return "\n\n".join(_thoughts(native))


def _thoughts(native: object) -> list[str]:
    parts = cast("Mapping[str, Any]", native).get("parts") if isinstance(native, Mapping) else None
    if not isinstance(parts, list):
        return []
    thoughts = (
        cast("Mapping[str, Any]", part).get("content")
        for part in cast("list[object]", parts)
        if isinstance(part, Mapping)
        and cast("Mapping[str, Any]", part).get("part_kind") == "thinking"
    )
    return [each for each in thoughts if isinstance(each, str) and each]


def _shown(name: str, value: Any, longest: int | None) -> _Document:
    """Return a value under its name, or its size where it has more bytes than the longest shown."""
    if longest is None or (size := size_of(value)) <= longest:
        return {name: value}
    return {f"{name}_bytes": size}


def _error(stored: Mapping[str, Any]) -> _Document:
    fields = {name: stored.get(name) for name in ("code", "message", "hint")}
    return {name: value for name, value in fields.items() if value is not None}
