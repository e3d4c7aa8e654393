"""A person's decision: the request, the handle of the input, and invalid requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

import planwave
from planwave.errors import GraphInvalid, NodeError
from planwave.graph.checking.checker import read_and_check
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.inputs import Inputs
from planwave.graph.model import LINK, DataValue, Edge, Graph, Node
from planwave.graph.protocols import ExecutionResult, Suspension
from planwave.nodes.library import LIBRARY
from planwave.nodes.library.approval import Approval
from planwave.nodes.registry import Registry
from planwave.service.executions.answers import validate_answer
from planwave.settings import Limits
from tests.support.graph.builders import make_edge
from tests.support.nodes.nested_graphs import graph_document, node_document
from tests.support.nodes.node_context import (
    context_for,
    last_item,
    make_inputs,
    result_and_events,
    services_with,
)
from tests.support.paths import ROOT
from tests.support.virtual_loop import virtual_time

NODE = Node("ask", "approval", "Ask")
FORM = {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}


async def suspend(
    data: Mapping[str, Any], inputs: Inputs, *edges: Edge, **links: Any
) -> Suspension:
    context = context_for(NODE, edges=edges, links={("ask", k): v for k, v in links.items()})
    result = await last_item(Approval().execute(data, inputs, context))
    assert isinstance(result, Suspension)
    return result


async def resume(suspension: Suspension, inputs: Inputs, answer: Any) -> ExecutionResult:
    """Resume as another process does, which has only the JSON of the suspension."""
    state, answer = json.loads(json.dumps([suspension.state, answer]))
    resumed = Approval().resume({"prompt": "?"}, inputs, context_for(NODE), state, answer)
    result, _ = await result_and_events(resumed)
    return result


# -- the request


async def test_the_request_has_prompt_actions_form_and_value() -> None:
    suspension = await suspend({"prompt": "Send it?"}, make_inputs({"to": "Ann"}))
    assert suspension.request == {
        "kind": "approval",
        "prompt": "Send it?",
        "actions": ["approve", "reject"],
        "form": None,
        "value": {"to": "Ann"},
        "editable": True,
    }
    assert (suspension.timeout_s, suspension.timeout_answer) == (None, None)


async def test_a_time_limit_has_its_default_decision() -> None:
    data = {"prompt": "?", "timeoutS": 90, "timeoutAction": "reject"}
    suspension = await suspend(data, make_inputs("x"))
    assert (suspension.request["timeoutS"], suspension.request["timeoutAction"]) == (90, "reject")
    assert suspension.timeout_s == 90
    assert suspension.timeout_answer == {"decision": "reject", "note": ""}
    assert (
        validate_answer(suspension.request, suspension.timeout_answer) == suspension.timeout_answer
    )
    result = await resume(suspension, make_inputs("x"), suspension.timeout_answer)
    assert result.outputs == {"reject": DataValue("any", "x")}


async def test_several_inputs_are_shown_and_passed_on_as_one_text() -> None:
    both = make_inputs("a", "b")
    block = "From Source 0 (s0):\na\n\nFrom Source 1 (s1):\nb"
    suspension = await suspend({"prompt": "?"}, both)
    assert suspension.request["value"] == block
    result = await resume(suspension, both, {"decision": "approve", "note": ""})
    assert result.outputs == {"approve": DataValue("text", block)}


async def test_without_input_the_value_is_an_empty_text() -> None:
    suspension = await suspend({"prompt": "?"}, Inputs())
    result = await resume(suspension, Inputs(), {"decision": "approve", "note": ""})
    assert result.outputs == {"approve": DataValue("text", "")}


async def test_wired_prompt_and_actions_are_not_the_value() -> None:
    inputs = make_inputs("x", ("prompt", "Really?"), ("actions", ["go", "stay"]))
    suspension = await suspend({"prompt": "not this"}, inputs)
    shown = suspension.request
    assert (shown["prompt"], shown["actions"], shown["value"]) == ("Really?", ["go", "stay"], "x")
    result = await resume(suspension, inputs, {"decision": "stay", "note": ""})
    assert result.outputs == {"stay": DataValue("any", "x")}


async def test_a_link_may_set_the_form() -> None:
    edge = make_edge("f", "ask", channel=LINK, target_handle="form")
    suspension = await suspend(
        {"prompt": "?"}, make_inputs("x"), edge, form=[DataValue("json", FORM)]
    )
    assert suspension.request["form"] == FORM


@pytest.mark.parametrize(
    ("handle", "value", "words"),
    [
        ("actions", ["error"], "'error' is reserved"),
        ("actions", [], "data.actions"),
        ("form", {"type": "objct"}, "no usable JSON Schema"),
    ],
)
async def test_wired_values_are_checked_before_the_request(
    handle: str, value: Any, words: str
) -> None:
    with pytest.raises(NodeError) as caught:
        await suspend({"prompt": "?"}, make_inputs((handle, value)))
    assert caught.value.code == "invalid-data"
    assert words in caught.value.message


@pytest.mark.parametrize(("handle", "value"), [("timeoutS", 0.1), ("timeoutAction", "approve")])
async def test_no_wire_decides_when_and_how_a_request_ends(handle: str, value: Any) -> None:
    suspension = await suspend({"prompt": "?"}, make_inputs((handle, value)))
    assert suspension.timeout_s is None
    assert suspension.timeout_answer is None


# -- what an answer does


@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_the_decision_is_the_handle_the_input_leaves_through(decision: str) -> None:
    suspension = await suspend({"prompt": "?"}, make_inputs([1, None]))
    answer = {"decision": decision, "note": "fine"}
    result = await resume(suspension, make_inputs([1, None]), answer)
    assert result.outputs == {decision: DataValue("any", [1, None])}


@pytest.mark.parametrize(
    ("value", "kind"), [("new", "text"), (None, "json"), ({"a": 1}, "json"), (4, "integer")]
)
async def test_an_edited_value_replaces_the_input(value: Any, kind: str) -> None:
    suspension = await suspend({"prompt": "?"}, make_inputs("old"))
    answer = {"decision": "approve", "note": "", "value": value}
    result = await resume(suspension, make_inputs("old"), answer)
    assert result.outputs == {"approve": DataValue(kind, value)}


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"decision": "later"}, "unknown-decision"),
        ({"decision": ["approve"]}, "unknown-decision"),
        ({}, "unknown-decision"),
        ("approve", "unknown-decision"),
        ({"decision": "approve", "value": 1}, "value-not-editable"),
    ],
)
async def test_an_invalid_answer_fails_the_node(answer: Any, code: str) -> None:
    suspension = await suspend({"prompt": "?", "editable": False}, make_inputs("x"))
    with pytest.raises(NodeError) as caught:
        await resume(suspension, make_inputs("x"), answer)
    assert caught.value.code == code


# -- in a run


def asking(**data: Any) -> dict[str, Any]:
    """Return a graph with two branches after a question about a draft."""
    return graph_document(
        node_document("draft", "text", text="Dear Ann"),
        node_document("ask", "approval", **{"prompt": "Send '{{ input }}'?", **data}),
        node_document("sent", "text", text="sent: {{ input }}"),
        node_document("kept", "text", text="kept: {{ input }}"),
        edges=[("draft", "ask"), ("ask", "sent", "approve"), ("ask", "kept", "reject")],
    )


async def run_with(answer: dict[str, Any], **data: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the graph and answer its request; return the request and the result."""
    run = planwave.run(asking(**data), registry=Registry(LIBRARY))
    request: dict[str, Any] = {}
    skipped: list[Any] = []
    async for event in run:
        if event.type == "node.waiting":
            request = event.data["request"]
            run.answer(event.data["request_id"], validate_answer(request, answer))
        elif event.type == "node.skipped":
            skipped.append(event.path)
    result = await run
    return request, {"status": result.status, "text": result.text, "skipped": skipped}


@pytest.mark.parametrize(
    ("answer", "text", "skipped"),
    [
        ({"decision": "approve"}, "sent: Dear Ann", ["kept"]),
        ({"decision": "reject", "note": "too short"}, "kept: Dear Ann", ["sent"]),
        ({"decision": "approve", "value": "Dear Bob"}, "sent: Dear Bob", ["kept"]),
        ({"decision": "approve", "form": {"days": 2}}, "sent: Dear Ann", ["kept"]),
    ],
)
async def test_a_run_follows_the_chosen_branch(
    answer: dict[str, Any], text: str, skipped: list[str]
) -> None:
    form = {"form": FORM} if "form" in answer else {}
    request, ended = await run_with(answer, **form)
    assert (request["prompt"], request["value"]) == ("Send 'Dear Ann'?", "Dear Ann")
    assert ended == {"status": "completed", "text": text, "skipped": skipped}


@virtual_time
async def test_a_run_without_an_answer_in_time_follows_the_default_branch() -> None:
    graph = asking(timeoutS=3_600, timeoutAction="reject")
    run = planwave.run(graph, registry=Registry(LIBRARY))
    assert (await run).status == "paused"
    result = await run.resume()
    assert (result.status, result.text) == ("completed", "kept: Dear Ann")


@virtual_time
async def test_an_approval_that_nobody_answers_is_rejected_in_the_end() -> None:
    services, _ = services_with(lambda _: [], limits=Limits(approval_timeout_s=3_600))
    built = planwave.build(asking(), registry=Registry(LIBRARY))
    run = planwave.run(built, services=services)
    assert (await run).status == "paused"
    assert (await run.resume()).text == "kept: Dear Ann"


@virtual_time
async def test_an_approval_that_cannot_be_rejected_fails_where_nobody_answers() -> None:
    services, _ = services_with(lambda _: [], limits=Limits(approval_timeout_s=3_600))
    graph = graph_document(
        node_document("ask", "approval", prompt="Which?", actions=["left", "right"]),
        node_document("end", "end"),
        edges=[("ask", "end", "left")],
    )
    built = planwave.build(graph, registry=Registry(LIBRARY))
    run = planwave.run(built, services=services, check=False)
    assert (await run).status == "paused"
    result = await run.resume()
    assert result.error is not None
    assert result.error["code"] == "approval-timeout"


# -- what cannot be asked


def findings(graph: Mapping[str, Any]) -> list[Diagnostic]:
    return read_and_check(json.dumps(graph), Registry(LIBRARY))[1]


def test_the_example_in_the_docs_is_valid() -> None:
    page = (ROOT / "docs/semantics.md").read_text("utf-8")
    _, _, example = page.partition("## Approvals")[2].partition("```json\n")
    assert findings(json.loads(example.partition("```")[0])) == []


def test_a_valid_approval_has_no_findings() -> None:
    assert findings(asking(form=FORM, timeoutS=0.5, timeoutAction="reject")) == []
    assert findings(asking(actions=["approve", "reject", "send back"])) == [], "unused is fine"


@pytest.mark.parametrize(
    ("data", "pointer"),
    [
        ({"prompt": " "}, "/prompt"),
        ({"actions": []}, "/actions"),
        ({"actions": ["approve", "reject", ""]}, "/actions/2"),
        ({"actions": ["approve", "reject", "a" * 65]}, "/actions/2"),
        ({"actions": ["approve", "reject", " go"]}, "/actions/2"),
        ({"actions": ["approve", "reject", "go\n"]}, "/actions/2"),
        ({"actions": ["approve", "reject", "{i}"]}, "/actions/2"),
        ({"actions": ["approve", "reject", "error"]}, "/actions/2"),
        ({"actions": ["approve", "reject", "approve"]}, "/actions/2"),
        ({"form": {"properties": {"a/b": {"type": "nope"}}}}, "/form/properties/a~1b/type"),
        ({"form": {"$ref": "http://127.0.0.1:9/"}}, "/form/$ref"),
        ({"form": "text"}, "/form"),
        ({"timeoutS": 5}, "/timeoutAction"),
        ({"timeoutS": 5, "timeoutAction": "later"}, "/timeoutAction"),
        ({"timeoutAction": "later"}, "/timeoutAction"),
        ({"timeoutS": 0, "timeoutAction": "reject"}, "/timeoutS"),
        ({"timeoutS": 1e12, "timeoutAction": "reject"}, "/timeoutS"),
        ({"editable": "yes"}, "/editable"),
    ],
)
def test_invalid_data_are_found_with_their_pointer(data: dict[str, Any], pointer: str) -> None:
    (found,) = findings(asking(**data))
    assert (found.code, found.severity) == ("invalid-data", "error")
    assert found.pointer == f"/nodes/1/data{pointer}"


def test_all_errors_of_an_approval_are_reported_together() -> None:
    data = {"prompt": "", "actions": ["error", "go", "go"], "timeoutS": 1, "form": {"type": 3}}
    found = {f.pointer.removeprefix("/nodes/1/data") for f in findings(asking(**data))}
    assert found == {
        "/prompt", "/actions/0", "/actions/2", "/timeoutAction", "/form/type",
        "/edges/1/sourceHandle", "/edges/2/sourceHandle",
    }  # fmt: skip


def test_an_edge_through_no_action_is_an_error_with_the_actions() -> None:
    graph = asking()
    graph["edges"][1]["sourceHandle"] = "aprove"
    misspelt_edge = {"id": "e2", "targetHandle": "input", **graph["edges"][1]}
    del graph["edges"][2]["sourceHandle"]
    misspelt, left_out = findings(graph)
    assert misspelt == Diagnostic(
        "unknown-handle",
        "error",
        "edge 'e2' (ask to sent): 'ask' has no output 'aprove'; its outputs are approve, reject",
        "/edges/1/sourceHandle",
        node="ask",
        edge="e2",
        hint="did you mean 'approve'?",
        suggestion={
            "label": "Use output approve",
            "operations": [
                {"op": "remove_edge", "id": "e2"},
                {"op": "add_edge", "edge": {**misspelt_edge, "sourceHandle": "approve"}},
            ],
        },
    )
    assert (left_out.code, left_out.pointer) == ("unknown-handle", "/edges/2/sourceHandle")
    assert left_out.hint == 'write "sourceHandle": "approve"; in Python, connect node["approve"]'
    with pytest.raises(GraphInvalid):
        planwave.build(graph, registry=Registry(LIBRARY))


def test_an_edge_through_no_action_is_reported_at_its_place_in_the_document() -> None:
    graph = asking()
    graph["edges"][2]["sourceHandle"] = "aprove"
    graph["edges"].insert(0, graph["edges"][0])  # a duplicate, which is left out
    *_, found = findings(graph)
    assert (found.code, found.pointer) == ("unknown-handle", "/edges/3/sourceHandle")


def test_the_error_handle_works_as_for_any_node() -> None:
    graph = asking()
    graph["edges"][2]["sourceHandle"] = "error"
    found = [(f.code, f.pointer) for f in findings(graph)]
    assert found == [("unreachable-node", "/nodes/3"), ("unknown-handle", "/edges/2/sourceHandle")]
    graph["nodes"][1]["policy"] = {"onError": "continue"}
    assert findings(graph) == []


def test_an_action_without_an_edge_is_a_warning() -> None:
    graph = asking()
    del graph["edges"][1:], graph["nodes"][2:]
    (found,) = findings(graph)
    assert (found.code, found.severity) == ("unused-decision", "warning")
    assert found.hint == "connect its output 'approve' to the step that follows"


def test_both_branches_may_meet_at_a_port_for_one_value() -> None:
    graph = asking()
    graph["nodes"][2:] = [{"id": "end", "type": "text", "data": {}}]
    for edge in graph["edges"][1:]:
        edge.update(target="end", targetHandle="text")
    assert findings(graph) == []


def test_wired_actions_are_not_checked_before_the_run() -> None:
    node = Node("ask", "approval", "Ask", data={"prompt": "?", "timeoutAction": "go"})
    edges = (make_edge("a", "ask", target_handle="actions"), make_edge("ask", "b"))
    registry = Registry(LIBRARY)
    assert list(registry.check(node, Graph((node,), edges))) == []
    unwritten = node._replace(data={})
    wired = (*edges, make_edge("a", "ask", target_handle="prompt"))
    assert list(registry.check(unwritten, Graph((unwritten,), wired))) == []
