"""The blocks of a reply, in an order that the stored events decide, and texts that grow in them.

Nodes that work at the same time stream at the same time, and streamed text is not stored. So a block is
not placed where its first piece happened to come: it belongs to the stored event that began it, and a
reply that is computed again from the stored events has its blocks in the same order.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any, Final, cast

from planwave.events.paths import is_inside
from planwave.events.request_text import TIMEOUT, field_of, request_text
from planwave.events.streamed_text import Change, StreamedText
from planwave.events.types import error_message
from planwave.expressions.json_text import to_text

Block = dict[str, Any]
Place = tuple[int, int, int]
"""``seq`` of the event that began a block, then what orders the blocks that it began."""
_PLACE: Final = itemgetter(0)
_SAID: Final = frozenset({"text", "reasoning", "error"})
"""The types of the blocks that are gone with their node; its calls and questions stay: they were made."""


class BlockText:
    """The streamed text of a block.

    Line breaks at its beginning are left out: they separate it from the text before.
    """

    __slots__ = ("_skipped", "_streamed")

    def __init__(self) -> None:
        self._streamed = StreamedText()
        self._skipped = 0

    @property
    def raw(self) -> str:
        """The text with the line breaks at its beginning."""
        return str(self._streamed)

    def merge(self, offset: int, piece: str) -> Change | None:
        """Put a piece at its offset in the raw text; return what that changes, None for nothing."""
        change = self._streamed.merge(offset, piece)
        if change is None:
            return None
        at, content = change
        if at <= self._skipped:
            content = content.lstrip("\n")
            self._skipped = len(self._streamed) - len(content)
            at = self._skipped
        return Change(at - self._skipped, content) if content else None

    def replace(self, text: str) -> Change | None:
        """Put another text in place of all that is there; return what that changes."""
        old, new = self.raw[self._skipped :], text.lstrip("\n")
        self._streamed.put(0, text)
        self._skipped = len(text) - len(new)
        if old == new:
            return None
        differing = (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
        same = next(differing, min(len(old), len(new)))
        return Change(same, new[same:])


class BlockList:
    """Blocks in their order, and by id."""

    def __init__(self) -> None:
        self._placed: list[tuple[Place, Block]] = []
        self._by_id: dict[str, Block] = {}

    def __iter__(self) -> Iterator[Block]:
        return (block for _, block in self._placed)

    def get(self, block_id: str) -> Block | None:
        """Return a block, or None."""
        return self._by_id.get(block_id)

    def add(self, place: Place, block: Block) -> bool:
        """Add a block; return whether it is the last one."""
        insort(self._placed, (place, block), key=_PLACE)
        self._by_id[block["id"]] = block
        return self._placed[-1][1] is block

    def move(self, place: Place, block_id: str) -> bool:
        """Move a block to another place; return whether the order has changed."""
        before = [each["id"] for each in self]
        self._placed = [
            (place if each["id"] == block_id else at, each) for at, each in self._placed
        ]
        self._placed.sort(key=_PLACE)
        return before != [each["id"] for each in self]

    def remove(self, block_id: str) -> bool:
        """Remove a block; return whether there was one of this id."""
        block = self._by_id.pop(block_id, None)
        if block is None:
            return False
        self._placed = [each for each in self._placed if each[1] is not block]
        return True

    def drop_node(self, node_id: str) -> bool:
        """Remove what a node said, apart from its messages, and how it failed; return whether there was any of it."""
        said = [
            block["id"]
            for block in self
            if block["type"] in _SAID
            and not block["id"].startswith("message-")
            and (block["nodeId"] == node_id or is_inside(block["nodeId"] or "", node_id))
        ]
        return any([self.remove(block_id) for block_id in said])


def call_block(block_id: str, path: str, data: Mapping[str, Any]) -> Block:
    """Return the block of a call of a tool that has started."""
    return {
        "type": "tool_call",
        "id": block_id,
        "nodeId": path,
        "toolCallId": data.get("call_id"),
        "toolName": data.get("name"),
        "toolArgs": data.get("arguments"),
        "status": "running",
        "result": None,
        "error": None,
    }


def member_block(block_id: str, path: str, data: Mapping[str, Any]) -> Block:
    """Return the block of a task that was given to another agent."""
    agent: Mapping[str, Any] = data.get("agent") or {}
    arguments: Mapping[str, Any] = data.get("arguments") or {}
    return {
        "type": "member_run",
        "id": block_id,
        "nodeId": path,
        "memberRunId": block_id,
        "memberName": agent.get("name") or data.get("name"),
        "task": to_text(arguments.get("task")),
        "status": "running",
        "blocks": [],
        "result": None,
        "error": None,
    }


def shown_error(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error as a chat shows it."""
    document: dict[str, Any] = {"code": error.get("code"), "message": error_message(dict(error))}  # pyright: ignore[reportArgumentType]
    return document | ({"hint": error["hint"]} if error.get("hint") else {})


_STATES: Final = {"approve": "approved", "reject": "rejected"}


def request_tool(execution_id: str, request_id: str, request: Any) -> dict[str, Any]:
    """Return the ``tool`` of an ``ApprovalRequired``."""
    tool: Any = field_of(request, "tool")
    call_id, editable = field_of(tool, "call_id"), bool(field_of(request, "editable"))
    timeout_s, value = field_of(request, "timeoutS"), field_of(request, "value")
    schema = field_of(request, "valueSchema")
    call: dict[str, Any] = {
        "id": call_id,
        "toolName": field_of(tool, "name"),
        "toolArgs": value,
        "editableArgs": (schema or {}) if editable else None,
    }
    return {
        "runId": execution_id,
        "requestId": request_id,
        "kind": field_of(request, "kind"),
        "toolUseIds": [] if call_id is None else [call_id],
        "toolName": field_of(tool, "name"),
        "riskLevel": field_of(tool, "effect"),
        "summary": request_text(request),
        "options": field_of(request, "actions") or [],
        "questions": _questions(field_of(request, "form")),
        "editable": editable,
        "config": {} if tool is not None or value is None else {"value": value},
        "timeoutMs": None if timeout_s is None else round(timeout_s * 1_000),
        "tools": [] if tool is None else [call],
    }


def answer_state(answer: Any, by: str | None) -> str:
    """Return the status of a request that was answered."""
    if by == TIMEOUT:
        return "timeout"
    decision = field_of(answer, "decision")
    return _STATES.get(decision, "answered") if isinstance(decision, str) else "answered"


def _questions(form: Any) -> list[dict[str, Any]]:
    """Return the fields of a form, each with its JSON Schema."""
    fields: Any = field_of(form, "properties")
    required: Any = field_of(form, "required") or []
    if not isinstance(fields, dict):
        return []
    return [
        {"name": name, "schema": schema, "required": name in required}
        for name, schema in cast("Mapping[str, Any]", fields).items()
    ]
