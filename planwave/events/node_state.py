"""State of one node according to its events, with its streamed text and its open request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from planwave.errors import ErrorDocument
from planwave.events.streamed_text import STREAMED_KINDS, StreamedText
from planwave.events.usage import NO_USAGE, UsageTotal
from planwave.graph.model import DataValue
from planwave.graph.outputs import outputs_from_json
from planwave.graph.result import without_error
from planwave.shapes.common import OutputsDocument

if TYPE_CHECKING:
    from planwave.shapes.common import NodeStatus
    from planwave.shapes.executions import OpenRequestResponse
    from planwave.shapes.nodes import NodeSnapshot, ReusedFrom

ENDED_NODE: Final = frozenset(
    {"completed", "failed", "skipped", "blocked", "cancelled", "linked", "not_reached"}
)
"""Node statuses that never change again within an execution."""


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request that a node waits for, or the execution itself.

    Attributes:
        path: The node; None where the execution itself asks.
        since: When the request was made, UTC.
        timeout_s: Seconds after ``since`` at which the node continues without an answer, or None.
    """

    request_id: str
    path: str | None
    request: Any
    since: str = ""
    timeout_s: float | None = None

    def as_json(self) -> OpenRequestResponse:
        """Return the request as JSON."""
        return {
            "request_id": self.request_id,
            "path": self.path,
            "request": self.request,
            "since": self.since,
            "timeout_s": self.timeout_s,
        }


@dataclass(slots=True)
class NodeState:
    """One node, nested or not, according to its events.

    Attributes:
        path: The node's id; ``loop[2]/summarise`` for a nested one.
        name: The name of a nested node that has one; the graph has the names of the others.
        status: One of ``pending running retrying waiting completed failed skipped blocked
            cancelled linked not_reached``.
        attempt: Number of the newest attempt, 0 before the first.
        started_at: Start of the first attempt, UTC.
        duration_s: The newest duration that an event of the node reported.
        outputs: ``{handle: {"type", "value"}}``, None before there are any.
        error: ``{"code", "message", "hint"?}`` of the failure, also while retrying.
        traceback: That of the failure, for the operator; ``as_json`` leaves it out.
        handled: The failure was caught by the node's policy.
        reason: Why the node was skipped.
        handle: The required handle that got no value, for a skipped node.
        cause: Why the node was blocked or cancelled.
        reused: ``{"execution_id", "path", "failed_inside"}`` of the node whose result this node took
            without running; ``failed_inside``: that node completed although a node inside it failed.
        via: The edge that won ``join: any``.
        answer: The newest answer to a request of the node.
        prompt: The data of the last ``node.event`` of type ``prompt``, whole.
        provider, model: From the newest usage event.
    """

    path: str
    name: str | None = None
    status: NodeStatus = "pending"
    attempt: int = 0
    wave: int | None = None
    started_at: str | None = None
    completed_at: str | None = None
    duration_s: float | None = None
    outputs: OutputsDocument | None = None
    error: ErrorDocument | None = None
    traceback: str | None = None
    handled: bool = False
    reason: str | None = None
    handle: str | None = None
    cause: Any = None
    reused: ReusedFrom | None = None
    via: str | None = None
    answer: Any = None
    prompt: Any = None
    provider: str | None = None
    model: str | None = None
    usage: UsageTotal = NO_USAGE
    _streamed: dict[str, StreamedText] | None = field(default=None, repr=False, compare=False)
    """By kind; None before the first piece, as most nodes never stream."""

    @property
    def attempts(self) -> int:
        """The number of attempts made."""
        return self.attempt

    @property
    def text(self) -> str:
        """The text streamed so far by the newest attempt."""
        return self._streamed_text("text")

    @property
    def reasoning(self) -> str:
        """The reasoning streamed so far by the newest attempt."""
        return self._streamed_text("reasoning")

    @property
    def has_streamed(self) -> bool:
        """Whether the newest attempt may have streamed text or reasoning; O(1)."""
        return self._streamed is not None

    @property
    def is_untouched(self) -> bool:
        """Whether no event has changed the node: every field but ``path`` has its default."""
        return _field_values(self) == _UNTOUCHED

    @property
    def delivered(self) -> Mapping[str, DataValue] | None:
        """What a completed node gave, or the preset value in place of a failure; None if neither is there."""
        if self.status == "completed":
            return None if self.outputs is None else outputs_from_json(self.outputs)
        if not self.handled:
            return None
        return without_error(outputs_from_json(self.outputs)) or None

    def _streamed_text(self, kind: str) -> str:
        return "" if self._streamed is None else str(self._streamed[kind])

    def begin_attempt(self, attempt: int | None) -> None:
        """Begin an attempt; the text of the attempt before is dropped."""
        self.attempt = attempt or max(self.attempt, 1)
        self.discard_text()

    def discard_text(self) -> None:
        """Drop the text and the reasoning streamed so far."""
        self._streamed = None

    def stream(self, kind: str, offset: int, piece: str) -> None:
        """Add a piece of streamed text; kinds other than text and reasoning are dropped."""
        if kind in STREAMED_KINDS:
            if self._streamed is None:
                self._streamed = {each: StreamedText() for each in STREAMED_KINDS}
            self._streamed[kind].put(offset, piece)

    def restore_text(self, streamed: OutputsDocument | None) -> None:
        """Take what an attempt that did not complete had streamed, in place of the pieces of it."""
        if streamed is not None:
            self.discard_text()
            for kind, text in streamed.items():
                self.stream(kind, 0, str(text["value"]))

    def as_json(self) -> NodeSnapshot:
        """Return the node as JSON, every public field, with the text streamed so far."""
        return {
            "path": self.path,
            "name": self.name,
            "status": self.status,
            "attempts": self.attempt,
            "wave": self.wave,
            "started_at": self.started_at,
            "completed_at": self.completed_at,
            "duration_s": self.duration_s,
            "outputs": self.outputs,
            "error": self.error,
            "handled": self.handled,
            "reason": self.reason,
            "handle": self.handle,
            "cause": self.cause,
            "reused": self.reused,
            "via": self.via,
            "answer": self.answer,
            "prompt": self.prompt,
            "provider": self.provider,
            "model": self.model,
            "usage": self.usage.as_json(),
            "text": self.text,
            "reasoning": self.reasoning,
        }


_field_values: Final = attrgetter(*(each.name for each in fields(NodeState) if each.name != "path"))
_UNTOUCHED: Final = _field_values(NodeState(""))
