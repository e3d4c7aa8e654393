"""All there is to say of one node: why it is what it is, what it read, and what happened to it.

Everything is told from the events alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from planwave.errors import NotFound
from planwave.events import Event, NodeState
from planwave.events.course import TIMEOUT, TimelineEntry, reentries, answer_text
from planwave.graph.values import Inputs, to_text
from planwave.service.needs import DependencyView
from planwave.service.parameters import wired_parameters, describe_sources
from planwave.service.reasons import join_words, quoted_list, explain_status, error_text

_MAX_NODES_NAMED: Final = 20
_MAX_NOTE_CHARS: Final = 200


def explain(events: Sequence[Event], path: str) -> dict[str, Any]:
    """Say why a node is what it is, from all events of its execution so far.

    Returns:
        ``{"path", "status", "code", "reason", "because", "inputs", "course", "parameters"?,
        "prompt"?, "error"?, "requests"?}``. ``code`` is stable, one of ``root inputs-arrived
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
        ``service.parameters``. ``prompt`` is what was sent to a model last. ``course`` is what
        happened to it, in order: ``[{"seq", "at", "what", "attempt"?, …}]`` with the facts of
        :class:`Step`.

    Raises:
        NotFound: The execution has no node of that path; the hint names those it has.
    """
    picture = DependencyView(events)
    state = picture.state
    node = state.nodes.get(path)
    if node is None:
        raise NotFound(
            f"execution {state.execution_id} has no node {path!r}",
            hint=f"its nodes are {quoted_list(state.nodes, _MAX_NODES_NAMED)}",
        )
    found, course = explain_status(picture, node), picture.node_histories.get(path, [])
    fed = wired_parameters(events, path)
    shown: dict[str, Any] = {
        "path": path,
        "status": node.status,
        "code": found.code,
        "reason": " ".join([found.reason, *_history_sentences(course), *describe_sources(fed)]),
        "because": list(found.because),
        "inputs": _inputs_json(picture.feeds.inputs(path)) if _has_inputs(node, found.code) else {},
        "course": [step.as_json() for step in course],
    }
    requests = [each.as_json() for each in state.requests.values() if each.path == path]
    besides = {"parameters": fed or None, "prompt": node.prompt, "error": node.error}
    besides["requests"] = requests or None
    return shown | {name: value for name, value in besides.items() if value is not None}


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
    """Tell what a node went through on its way: failed attempts, answers, ends of its process."""
    failed = [
        f"attempt {step.attempt} ({error_text(step.details['error'])})"
        for step in course
        if step.what == "tried-again"
    ]
    if failed and course[-1].what != "tried-again":
        yield f"Tried again after {join_words(failed)} failed."
    again = reentries(course)
    if again:
        times = "once" if again == 1 else f"{again} times"
        yield f"It was cut off {times} by the end of its process, and entered again."
    for step in course:
        if step.what == "answered":
            yield _answer_sentence(step)


def _answer_sentence(step: TimelineEntry) -> str:
    answer = answer_text(step.details["answer"])
    if len(answer) > _MAX_NOTE_CHARS:
        answer = answer[:_MAX_NOTE_CHARS] + "…"
    if step.details["by"] == TIMEOUT:
        return f"Nobody answered it in time, so it went on with: {answer}."
    return f"It was answered: {answer}."
