"""Explanations of a node's status, inputs and history, computed from the events alone.

The kernel's decisions are not stored, but the events hold their inputs: the outcomes of a node's
sources and the handles on which they emitted a value. Each reason is computed from these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from planwave.errors import NotFound
from planwave.events import Event, ExecutionState, NodeState
from planwave.events.paths import is_inside, outermost_path
from planwave.events.request_text import (
    TIMEOUT,
    answer_text,
    end_of_timer,
    is_change_request,
    is_decision,
    is_plan_approval,
    is_timer,
)
from planwave.events.timeline import TimelineEntry, reentries
from planwave.expressions.json_text import to_text
from planwave.graph.inputs import Inputs
from planwave.graph.model import FLOW, LINK
from planwave.nodes.authoring.field_wires import INLINE, WIRED
from planwave.service.queries.dependency_view import Dependency, DependencyView
from planwave.service.queries.digest import deadline_of

if TYPE_CHECKING:
    from planwave.shapes.executions import ExplainResponse

_OVERRIDDEN_TEXT: Final = {
    LINK: "the link edge",
    FLOW: "the flow edge",
    INLINE: "the value in its data",
}


def wired_parameters(events: Sequence[Event], path: str) -> dict[str, dict[str, Any]]:
    """Return the wired parameters of a node, as its last attempt read them.

    Returns:
        ``{name: {"channel", "edge", "source", "handle"?, "over"}}``. ``handle`` is where the wire
        leads, where that is not the parameter's own. ``over`` is what it replaces: ``link``,
        ``flow``, ``inline``.
    """
    for event in reversed(events):
        if event.path == path and event.type in ("node.event", "node.started"):
            if event.type == "node.started":
                return {}
            if event.data.get("event_type") == WIRED:
                return dict(event.data["data"]["fields"])
    return {}


def describe_sources(wired: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each wired parameter."""
    for name, each in wired.items():
        into = f" into {each['handle']!r}" if "handle" in each else ""
        replaced = [_OVERRIDDEN_TEXT[source] for source in each["over"]]
        over = f", instead of {join_words(replaced)}" if replaced else ""
        edge = f"the {each['channel']} edge from {each['source']!r}"
        yield f"Its field {name!r} was set by {edge}{into}{over}."


class Reason(NamedTuple):
    """One reason.

    Attributes:
        code: Stable; ``explain`` lists the codes.
        reason: A sentence or two.
        because: The nodes it follows from, as ``Dependency.as_json`` gives them, or less.
    """

    code: str
    reason: str
    because: Sequence[Mapping[str, Any]] = ()


def explain_status(picture: DependencyView, node: NodeState) -> Reason:
    """Say why a node is what it is."""
    origin = picture.reused(node.path)
    if origin is not None:
        return _reused(picture, node, origin)
    if picture.was_changed(node.path):
        return Reason("changed", "The fork set its result, so it did not run.")
    explanation = _NOT_RUN.get(node.status)
    if explanation is not None and (node.started_at is None or node.status == "cancelled"):
        return explanation(picture, node)
    if node.started_at is None:
        return _preset(picture, node)
    ran = _started(picture, node)
    if node.status == "waiting":
        return _waiting(picture, node, ran)
    if node.status == "retrying":
        return ran._replace(
            code="waits-to-retry",
            reason=f"Attempt {node.attempt} failed: {error_text(node.error)}. Another attempt follows. "
            + ran.reason,
        )
    if node.status == "failed":
        handled = ", and its policy handled the failure" if node.handled else ""
        return ran._replace(reason=f"{ran.reason} It failed{handled}: {error_text(node.error)}.")
    return ran


def _preset(picture: DependencyView, node: NodeState) -> Reason:
    asker = picture.location_of(node.path).parent
    if asker is None:
        reason = "The inputs of the execution set its result, so it did not run."
        return Reason("given", reason)
    because = [{"node": asker, "status": picture.node(asker).status}]
    return Reason("given", f"{asker!r} set its result, so it did not run.", because)


def _reused(picture: DependencyView, node: NodeState, origin: Mapping[str, Any]) -> Reason:
    because = [need.as_json() for need in picture.dependencies(node.path)]
    return Reason(
        "reused",
        f"It did not run: its result was reused from execution {origin.get('execution_id')}, "
        "because nothing it depends on has changed.",
        because,
    )


def _waiting(picture: DependencyView, node: NodeState, ran: Reason) -> Reason:
    requests = [each for each in picture.state.requests.values() if each.path == node.path]
    if not requests:
        return _waiting_inside(picture, node, ran)
    if any(is_decision(each.request) for each in requests):
        sentence = (
            "It was interrupted while it ran and may act only once, so a person must decide how to "
            "proceed."
        )
        return ran._replace(code="waits-for-decision", reason=f"{sentence} {ran.reason}".strip())
    if all(is_timer(each.request) for each in requests):
        until = end_of_timer(requests[0].request)
        reason = f"It waits until {until}. {ran.reason}".strip()
        return ran._replace(code="waits-for-time", reason=reason)
    ends = [end for each in requests if (end := deadline_of(each)) is not None]
    until = f" until {min(ends).isoformat(timespec='seconds')}" if ends else ""
    sentence = f"It waits for the answer to its request{until}."
    return ran._replace(code="waits-for-answer", reason=f"{sentence} {ran.reason}".strip())


def _waiting_inside(picture: DependencyView, node: NodeState, ran: Reason) -> Reason:
    inside = {
        r.path: r.request
        for r in picture.state.requests.values()
        if r.path is not None and is_inside(r.path, node.path)
    }
    paths = list(inside)
    code = "waits-for-time" if all(map(is_timer, inside.values())) else "waits-for-answer"
    reason = f"It waits for nodes inside it: {quoted_list(paths)}. {ran.reason}".strip()
    statuses = picture.state.nodes
    because = [{"node": path, "status": statuses[path].status} for path in paths]
    return Reason(code, reason, because)


def _started(picture: DependencyView, node: NodeState) -> Reason:
    needs = picture.dependencies(node.path)
    because = [need.as_json() for need in needs]
    if not needs and node.path not in picture.own_nodes:
        return _nested(picture, node, "started it in a nested run.")
    if not needs:
        return Reason("root", "It depends on no other node, so it could start at once.")
    if node.via is not None:
        winner = [need for need in needs if need.edge == node.via]
        first = f", which came from {_node_names(winner)}" if winner else ""
        reason = f"Its join is 'any', so it started with the first input{first}."
        return Reason("first-input", reason, because)
    reason = f"All nodes it depends on had ended: {_edges_text(needs)}."
    return Reason("inputs-arrived", reason, because)


def _nested(picture: DependencyView, node: NodeState, what: str) -> Reason:
    """Explain a node of a nested run by the node that contains the run."""
    asker = picture.location_of(node.path).parent or ""
    owner = picture.state.nodes.get(asker)
    because = [{"node": asker, "status": owner.status}] if owner is not None else []
    return Reason("nested", f"{asker!r} {what}", because)


def _skipped(picture: DependencyView, node: NodeState) -> Reason:
    needs = [need for need in picture.dependencies(node.path) if need.through is None]
    if node.handle is not None:
        starved = [need for need in needs if need.handle == node.handle]
        edges = f": {_edges_text(starved)}" if starved else ""
        return Reason(
            "required-input-skipped",
            f"No value arrived at its required input {node.handle!r}{edges}.",
            [need.as_json() for need in starved],
        )
    is_known = picture.location_of(node.path).is_known
    if not is_known or (needs and all(need.settled == "skipped" for need in needs)):
        edges = f": {_edges_text(needs)}" if needs else ""
        because = [need.as_json() for need in needs]
        return Reason("no-input", f"No value arrived at any of its inputs{edges}.", because)
    asker = picture.location_of(node.path).parent
    if asker is not None:
        because = [{"node": asker, "status": picture.node(asker).status}]
        return Reason("other-entry", f"{asker!r} started its graph at other nodes.", because)
    chosen = list(picture.state.inputs or {})
    return Reason(
        "other-entry",
        f"The execution started at other nodes: its inputs are for {quoted_list(chosen)}.",
        [{"node": each, "status": picture.node(each).status} for each in chosen],
    )


def _blocked(picture: DependencyView, node: NodeState) -> Reason:
    cause: Mapping[str, Any] = node.cause or {}
    first = cause.get("node")
    broken = [need for need in picture.dependencies(node.path) if need.settled == "failed"]
    because: list[Mapping[str, Any]] = [need.as_json() for need in broken]
    if first is None:
        reason = f"A node it depends on failed: {error_text(cause.get('error'))}."
        return Reason("blocked", reason, because)
    status = picture.node(first).status
    how = "was cancelled" if status == "cancelled" else "failed"
    ended = f"{how}: {error_text(cause.get('error'))}."
    direct = any(need.node.path == first for need in broken)
    if not direct:
        because.append({"node": first, "status": status, "error": cause.get("error")})
    if broken and not direct:
        reason = f"It depends on {_node_names(broken)}, which did not run because {first!r} {ended}"
    else:
        reason = f"It depends on {first!r}, which {ended}"
    return Reason("blocked", reason, because)


def _cancelled(picture: DependencyView, node: NodeState) -> Reason:
    state = picture.state
    ran = " while it ran" if node.started_at is not None else " before it started"
    ended_by = state.cause if state.status == "cancelled" else (state.error or {}).get("message")
    if node.cause != ended_by and node.path in picture.own_nodes:
        if picture.was_cancelled_at_work(node.path):
            reason = f"Only this node was cancelled{ran}: {error_text(node.cause)}."
            return Reason("node-cancelled", reason)
        failed = picture.failures()
        if failed and (state.options or {}).get("on_failure") == "stop":
            return Reason(
                "stopped",
                f"The execution stops at the first failure, and {failed[0].path!r} failed: "
                f"{error_text(failed[0].error)}.",
                [{"node": n.path, "status": n.status, "error": n.error} for n in failed],
            )
    return Reason("cancelled", f"It was cancelled{ran}: {error_text(node.cause)}.")


def _pending(picture: DependencyView, node: NodeState) -> Reason:
    state = picture.state
    if state.is_over:
        why = f": {error_text(state.error)}" if state.error else ""
        ended = "was cancelled" if state.status == "cancelled" else state.status
        return Reason("execution-ended", f"The execution {ended} before this node started{why}.")
    if state.started_at is None:
        return Reason("not-started", "The execution has not started yet.")
    for request in state.requests.values():
        is_change = is_change_request(request.request)
        if is_change or is_plan_approval(request.request):
            what = "A change of its plan" if is_change else "Its plan"
            reason = f"{what} waits for approval: no node starts before request {request.request_id} is answered."
            return Reason("waits-for-approval", reason)
    if node.path not in picture.own_nodes:
        return _nested(picture, node, "has not started it yet.")
    opened = [need for need in picture.dependencies(node.path) if need.settled == "open"]
    if not opened:
        if state.status == "paused":
            held = f"The execution is paused: {error_text(state.reason)}."
            return Reason("paused", f"{held} This node is ready and starts when it is resumed.")
        if (state.options or {}).get("scheduling") == "waves":
            return Reason("wave-closed", "It is ready and starts with its wave.")
        return Reason("ready", "It is ready and starts as soon as a slot is free.")
    direct = {need.node.path for need in opened}
    behind = [each for each in picture.blockers(node.path) if each.path not in direct]
    reason = f"It waits for {_statuses_text(need.node for need in opened)}"
    if behind:
        verb = "waits" if len(direct) == 1 else "wait"
        reason += f", which {verb} for {_statuses_text(behind)}"
    because: list[Mapping[str, Any]] = [need.as_json() for need in opened]
    because += [{"node": each.path, "status": each.status} for each in behind]
    return Reason("sources-open", f"{reason}.", because)


def _linked(picture: DependencyView, node: NodeState) -> Reason:
    users = picture.consumers(node.path)
    names = quoted_list(user["node"] for user in users)
    use = f"{names} can use it" if users else "no node uses it"
    return Reason("linked", f"It does not run by itself: {use}.", users)


def _not_reached(picture: DependencyView, node: NodeState) -> Reason:
    options = picture.state.options or {}
    if narrowed := [
        f"{name} {quoted_list(ids)}"
        for name in ("run_from", "run_to")
        if (ids := options.get(name))
    ]:
        return Reason("not-reached", f"{' and '.join(narrowed)} excluded it.")
    chosen = list(picture.state.inputs or {})
    return Reason(
        "not-reached",
        f"The execution started at {quoted_list(chosen)}, and no edge leads from there to it.",
        [{"node": each, "status": picture.node(each).status} for each in chosen],
    )


_NOT_RUN: Final[Mapping[str, Callable[[DependencyView, NodeState], Reason]]] = {
    "skipped": _skipped,
    "blocked": _blocked,
    "cancelled": _cancelled,
    "pending": _pending,
    "linked": _linked,
    "not_reached": _not_reached,
}


def _edges_text(needs: Sequence[Dependency]) -> str:
    """Describe the outcomes of edges: ``'a' and 'b' delivered a value; 'c' was skipped``."""
    alike: dict[str, list[Dependency]] = {outcome: [] for outcome in _OUTCOMES}
    for need in needs:
        alike.setdefault(_outcome(need), []).append(need)
    return "; ".join(
        f"{_node_names(same)} {_plural(how) if len({need.node.path for need in same}) > 1 else how}"
        for how, same in alike.items()
        if same
    )


def _plural(outcome: str) -> str:
    verb, _, rest = outcome.partition(" ")
    return f"{_PLURAL_VERBS.get(verb, verb)} {rest}".strip()


_OUTCOMES: Final = ("delivered a value", "failed")
"""The outcomes of edges that are named first."""
_PLURAL_VERBS: Final = {"was": "were", "has": "have"}


def _outcome(need: Dependency) -> str:
    match need.settled:
        case "delivered":
            return _OUTCOMES[0]
        case "failed":
            return "failed" if need.node.status == "failed" else f"was {need.node.status}"
        case "open":
            return "has not ended"
        case "skipped" if need.node.outputs is None:
            return "was skipped" if need.node.status == "skipped" else "was not reached"
        case "skipped":
            chosen = f", but on {quoted_list(need.node.outputs)}" if need.node.outputs else ""
            return f"delivered no value on {need.source_handle!r}{chosen}"


def _statuses_text(nodes: Iterable[NodeState]) -> str:
    return join_words([f"{node.path!r} ({node.status})" for node in nodes])


def _node_names(needs: Iterable[Dependency]) -> str:
    return join_words([repr(path) for path in dict.fromkeys(need.node.path for need in needs)])


def quoted_list(names: Iterable[str], most: int = 5) -> str:
    """Return quoted names as a list for a sentence."""
    return join_words([repr(name) for name in names], most)


def join_words(words: Sequence[str], most: int = 5) -> str:
    """Return words as a list for a sentence."""
    if len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def error_text(error: Any) -> str:
    """Return an error or cause in the form of a clause."""
    if isinstance(error, Mapping):
        error = error.get("message") or error.get("code")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return str(error or "no cause was given").rstrip(".")  # pyright: ignore[reportUnknownArgumentType]


def _course(history: Sequence[TimelineEntry]) -> Sequence[TimelineEntry]:
    """Return what happened to a node: one that got its result otherwise did not start."""
    if any(step.what in ("reused", "given", "changed") for step in history):
        return [step for step in history if step.what != "started"]
    return history


_MAX_NODES_NAMED: Final = 20
_MAX_NOTE_CHARS: Final = 200


def explain(events: Sequence[Event], path: str) -> ExplainResponse:
    """Say why a node is what it is, from all events of its execution so far.

    Returns:
        ``{"path", "status", "code", "reason", "because", "inputs", "course", "parameters"?,
        "prompt"?, "error"?, "traceback"?, "requests"?}``. ``code`` is stable, one of ``root inputs-arrived
        first-input given reused changed nested`` (it ran, runs, or did not have to),
        ``waits-for-answer waits-for-decision waits-for-time waits-to-retry``, ``not-started
        sources-open wave-closed ready paused`` (pending), ``no-input required-input-skipped
        other-entry`` (skipped), ``blocked stopped cancelled node-cancelled execution-ended linked
        not-reached``. ``reason`` is some sentences. ``because`` names the nodes it depends on:
        ``[{"node", "status", "settled"?, "edge"?, "sourceHandle"?, "targetHandle"?, "through"?,
        "error"?, "gave"?}]``.

        ``inputs`` is what it read: ``{handle: {"text", "arrivals": [{"edge", "source",
        "sourceName", "sourceHandle", "type", "value", "text"}]}}``, whole and in edge order; empty
        for nodes that did not start.
        ``parameters`` says which wires fed its data fields, and over what; see
        ``wired_parameters``. ``prompt`` is what was sent to a model last. ``course`` is what
        happened to it, in order: ``[{"seq", "at", "what", "attempt"?, …}]`` with the facts of
        ``TimelineEntry``.

    Raises:
        NotFound: The execution has no node of that path; the hint names those it has.
    """
    picture = DependencyView(events)
    state = picture.state
    node = _node_of(state, path)
    cause, course = explain_status(picture, node), _course(picture.node_histories.get(path, []))
    fed = wired_parameters(events, path)
    document: ExplainResponse = {
        "path": path,
        "status": node.status,
        "code": cause.code,
        "reason": " ".join([cause.reason, *_history_sentences(course), *describe_sources(fed)]),
        "because": [dict(each) for each in cause.because],
        "inputs": _inputs_json(picture.feeds.inputs(path)) if _has_inputs(node, cause.code) else {},
        "course": [step.as_json() for step in course],
    }
    if fed:
        document["parameters"] = fed
    if node.prompt is not None:
        document["prompt"] = node.prompt
    if node.error is not None:
        document["error"] = node.error
    if node.traceback is not None:
        document["traceback"] = node.traceback
    if requests := [each.as_json() for each in state.requests.values() if each.path == path]:
        document["requests"] = requests
    return document


def _node_of(state: ExecutionState, path: str) -> NodeState:
    node = state.nodes.get(path)
    if node is None:
        raise missing_node(state, path)
    return node


def missing_node(state: ExecutionState, path: str) -> NotFound:
    """Return the error for a node that an execution does not have, which says so where a change dropped it."""
    outermost = outermost_path(path)
    for change in state.changes.records:
        if outermost in change["graph_change"]["dropped_nodes"]:
            note = f" ({change['note']})" if change["note"] else ""
            has_begun = any(each["path"] == path for each in change["dropped"])
            return NotFound(
                f"node {path!r} is no longer in execution {state.execution_id}: change "
                f"{change['change']}{note} dropped it at {change['at']}",
                hint="what it had done is with that change, in `changes` of the document"
                if has_begun
                else "it had not begun",
            )
    return NotFound(
        f"execution {state.execution_id} has no node {path!r}",
        hint=f"its nodes are {quoted_list(state.nodes, _MAX_NODES_NAMED)}",
    )


def _has_inputs(node: NodeState, code: str) -> bool:
    if code == "changed":
        return False
    return node.started_at is not None or code in ("reused", "linked")


def _inputs_json(inputs: Inputs) -> dict[str, Any]:
    return {
        handle: {
            "text": inputs.text(handle),
            "arrivals": [
                {
                    "edge": each.edge_id,
                    "source": each.source_id,
                    "sourceName": each.source_name,
                    "sourceHandle": each.source_handle,
                    "type": each.value.type,
                    "value": each.value.value,
                    "text": to_text(each.value.value),
                }
                for each in inputs.arrivals
                if each.target_handle == handle
            ],
        }
        for handle in inputs
    }


def _history_sentences(course: Sequence[TimelineEntry]) -> Iterator[str]:
    """Describe a node's history: failed attempts, answers, ends of its process."""
    failed = [error_text(step.details["error"]) for step in course if step.what == "tried-again"]
    if failed and course[-1].what != "tried-again":
        yield f"It ran again after failed attempts: {'; '.join(failed)}."
    again = reentries(course)
    if again:
        times = "once" if again == 1 else f"{again} times"
        yield f"It was interrupted {times} by the end of its process, and ran again."
    requests = {s.details["request_id"]: s.details["request"] for s in course if s.what == "asked"}
    for step in course:
        if step.what == "answered":
            yield _answer_sentence(step, requests.get(step.details["request_id"]))


def _answer_sentence(step: TimelineEntry, request: Any) -> str:
    answer = answer_text(step.details["answer"])
    if len(answer) > _MAX_NOTE_CHARS:
        answer = answer[:_MAX_NOTE_CHARS] + "…"
    if step.details["by"] != TIMEOUT:
        return f"The answer was: {answer}."
    if is_timer(request):
        return "The time that it waited for was reached."
    return f"Nobody answered in time, so it continued with: {answer}."
