"""Flows inside of steps: what leaves them is the text that they show, not the result of a step."""

from __future__ import annotations

from typing import Any, Final

from planwave.interop.importing.drafts import GraphDraft, Target, new_edge
from planwave.interop.importing.magic_agents.fields import note_unread
from planwave.interop.importing.magic_agents.flow import (
    NAMES_OF_FLOW,
    Flow,
    Step,
    flow_inside,
    read_flow,
)
from planwave.interop.importing.magic_agents.graphs import Graph, Made, Plug
from planwave.interop.importing.magic_agents.loops import Loops
from planwave.interop.importing.reading import objects_in, text_of
from planwave.interop.importing.templates import literal

_CONTENT: Final = ("", "handle_execution_content", "handle_content_stream")
_SHOWN: Final = frozenset({"llm", "send_message", "inner"})
"""Kinds whose text people see; in the older version the text of a flow in a flow stays inside."""


def inner(graph: Graph, step: Step) -> Made:
    """Make a step that runs another flow, with the text that it shows as its output ``content``."""
    found = flow_inside(step.data)
    if found is None or not (
        {"nodes", "edges"} <= found[1].keys() and objects_in(found[1], "nodes")
    ):
        target = step.node.becomes("placeholder", node_id=step.id, graph=graph.draft)
        step.node.becomes_placeholder("it has no flow inside")
        return Made(
            lambda handle: Plug(target, handle or "input", is_open=True),
            lambda handle: Plug(target, handle or "output", is_open=True),
        )
    name, document = found
    target = step.node.becomes("inner", {}, node_id=step.id, graph=graph.draft)
    draft = GraphDraft(f"{target.path}/", step.node)
    data: dict[str, Any] = {"graph": draft.document()}
    target.node["data"] = data
    flow = read_flow(graph.conversion, document, f"{step.node.pointer}/data/{name}")
    flow.is_legacy = flow.is_legacy or graph.flow.is_legacy
    child = Graph(graph.conversion, flow, flow.steps, draft)
    kinds = graph.kinds
    if kinds is not None:
        child.build(kinds, lambda each: Loops(each, kinds))
    is_read = any(wire.out in _CONTENT for wire in graph.wires_out(step))
    if is_read or graph.draft.owner is not None:  # a flow around it shows its text, too
        data["outputs"] = {"content": _content(step, child, flow).id}
    if flow.is_legacy and any(_shows(each, True) for each in flow.steps):
        step.node.change(
            "people see the texts of the flow inside, there only what was made of them"
        )
    if mapping := step.data.get("parent_state_mapping"):
        step.node.lose("the state that it gets of the flow around it", str(mapping))
    for wire in graph.wires_into(step):
        if wire.into == "handle_client_extras":
            step.node.lose("extras of the flow around it", wire.source.id, wire.edge.pointer)
    for wire in graph.wires_out(step):
        if wire.out not in _CONTENT:
            wire.target.node.lose(
                f"{wire.out} of the flow inside {step.id!r}", wire.out, wire.edge.pointer
            )
    note_unread(step, {*NAMES_OF_FLOW, "parent_state_mapping"})
    return Made(
        lambda _: Plug(target, "input"),
        lambda handle: Plug(target, "content" if handle in _CONTENT else "output"),
    )


def _content(step: Step, child: Graph, flow: Flow) -> Target:
    """Add what joins the texts that the flow shows, in the order of its steps."""
    shown = [each for each in flow.steps if _shows(each, flow.is_legacy) and child.is_drawn(each)]
    draft = child.draft
    content = step.node.becomes(
        "parser",
        {"template": "{{ inputs.texts | default([]) | join }}"},
        node_id="content",
        name="content",
        graph=draft,
    )
    for start in (
        each for each in flow.steps if each.kind == "user_input" and child.is_drawn(each)
    ):
        plug = child.plug_from(start, "handle_user_message")
        new_edge(draft, plug.target.id, content.id, plug.handle, "start")
    if shown:
        texts = step.node.becomes("merge", node_id="texts", name="texts", graph=draft)
        new_edge(draft, texts.id, content.id, "output", "texts")
        for each in shown:
            plug = _text_of(step, child, each)
            new_edge(draft, plug.target.id, texts.id, plug.handle)
    else:
        step.node.note(
            "import-changed", "nothing in it shows a text, so that its content is empty, as there"
        )
    return content


def _shows(step: Step, is_legacy: bool) -> bool:
    if step.kind == "inner":
        return not is_legacy
    return step.kind in _SHOWN and (step.kind != "llm" or step.data.get("stream") is True)


def _text_of(step: Step, child: Graph, shown: Step) -> Plug:
    """Return what has the text that a step shows; a message passes on something else."""
    plug = child.plug_from(shown, "")
    if shown.kind != "send_message":
        return plug
    text = literal(text_of(shown.data, "json_extras") or text_of(shown.data, "extras"))
    told = step.node.becomes(
        "text",
        {"text": text},
        node_id=f"{shown.id}-text",
        name=f"{shown.id}: text",
        graph=child.draft,
    )
    new_edge(child.draft, plug.target.id, told.id, plug.handle)
    return Plug(told, "output")
