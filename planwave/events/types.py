"""The event vocabulary: immutable, numbered facts about an execution.

State is the fold of these events (``ExecutionState``); documents, answers and screens are
projections of it. ``seq`` runs 1..n without a gap. ``node.delta`` is streamed but never stored and
carries ``seq`` 0.

``data`` by type (``?`` marks optional keys; outputs are ``{handle: {"type", "value"}}``):

=====================  ============================================================================
execution.created      goal, title, plan_id?, plan_hash?, graph?, inputs?, options?, trigger?, parent?
execution.started      linked?: [id], not_reached?: [id], waves: total number of waves
execution.paused       reason: for people, kind: "waiting" (for answers), "requested", or "set-aside"
                       where it cannot be run; see :func:`pause_kind` for events without it
execution.resumed      reason, epoch: the owner's
execution.completed    handled_failures?: [path]
execution.failed       error: {code, message, hint?}, failures: [path]
execution.cancelled    cause
wave.started           wave, nodes: [id]
wave.completed         wave
node.started           wave, via?: edge id (winner of ``join: any``), reentry?: times cut off,
                       name?: that of a node inside another, versions?: {type: version} of the
                       types its result follows from, where not the first
node.completed         outputs, duration_s, given?: true for a node settled from outside, never run;
                       in a fork reused?: {execution_id} of the result, changed?: true where it was set,
                       versions?: of the types that follows from, those inside the node too
node.failed            error: {code, message, hint?}, handled: bool, outputs?, duration_s,
                       retryable?: true where it might not come again
node.retrying          error, delay_s, next_attempt
node.skipped           reason, handle?
node.blocked           cause: {node, error}
node.waiting           request_id, request, state?, timeout_s?, timeout_answer?, interrupted?: true,
                       duration_s?: how long its attempt has run so far
node.answered          request_id, answer, by?: "timeout"
node.parked            duration_s?: its nested runs only wait for answers; so does it
node.unparked          (nothing): there was an answer, or other news, inside it
node.cancelled         cause
node.log               message, level
node.event             event_type, data; the driver tells ``run_graph`` (key, graph, inputs: hashes,
                       document?: the graph where none of that hash was told before,
                       before?: the highest attempt of its nodes so far; key, dropped: true) of a
                       nested run, ``once`` (key, value) of a value the node finds again
usage                  provider, model, input_tokens, output_tokens, cost_usd?, estimated?,
                       recorded?: true where the call was served from what was kept of it
node.delta             kind ("text" | "reasoning"), text, offset (characters)
=====================  ============================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, cast

from planwave.expressions.json_text import to_text

TERMINAL: Final = frozenset({"execution.completed", "execution.failed", "execution.cancelled"})
TRANSIENT: Final = frozenset({"node.delta"})
RUN_GRAPH: Final = "run_graph"
"""The ``event_type`` of ``node.event`` with which a node opens a nested run, or lets go of one."""

PauseKind = Literal["waiting", "requested", "set-aside"]
WAITING: Final[PauseKind] = "waiting"
"""Nothing can go on before a request is answered; then it goes on by itself."""
REQUESTED: Final[PauseKind] = "requested"
"""Somebody asked for it; what is at work goes on to its end."""
SET_ASIDE: Final[PauseKind] = "set-aside"
"""It cannot be run, for the reason that is told."""
PAUSE_REASONS: Final[Mapping[PauseKind, str]] = {
    WAITING: "waiting for an answer",
    REQUESTED: "paused by request",
}
"""The reason of ``execution.paused`` where there is no other."""


def pause_kind(data: Mapping[str, Any]) -> PauseKind:
    """Return the kind of an ``execution.paused``; older events have only its reason."""
    found, reason = data.get("kind"), data.get("reason")
    for kind in (WAITING, REQUESTED):
        if found == kind or (found is None and reason == PAUSE_REASONS[kind]):
            return kind
    return SET_ASIDE


class Event(NamedTuple):
    """One fact. ``at`` is UTC in ISO 8601 with microseconds; ``path`` names a node, nested or not."""

    execution_id: str
    seq: int
    at: str
    type: str
    path: str | None
    attempt: int | None
    data: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Give the event as JSON, without the keys that do not apply."""
        shown: dict[str, Any] = {
            "execution_id": self.execution_id,
            "seq": self.seq,
            "at": self.at,
            "type": self.type,
        }
        if self.path is not None:
            shown["path"] = self.path
        if self.attempt is not None:
            shown["attempt"] = self.attempt
        shown["data"] = self.data
        return shown


MESSAGE: Final = "message"
"""``event_type`` of such a ``node.event``; its data are ``{"text", "extras"}``."""

PLANNING: Final = "planning"
"""``event_type`` of what happens while a node writes a plan: ``{"kind", …}``, as the planner tells it
(``title``, ``node``, ``edge``, ``fix``; ``repair``: it is written anew)."""


def message_text(data: Any) -> str:
    """Give the text of a message, "" where it has none; data of another shape are the text."""
    text: Any = cast("dict[str, Any]", data).get("text", "") if isinstance(data, dict) else data
    return to_text(text)


ONCE: Final = "once"
"""That of a value a node has to find again."""
