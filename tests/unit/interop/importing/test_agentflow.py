"""Workflows of AgentFlow: older files too, sub-agents as links, cycles as loops, and all else named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planwave
from planwave.interop.importing.importer import Imported, import_text
from planwave.testing import FakeModel, use_model
from tests.support.interop.damage import ODD_TEXTS, Damaged, damaged
from tests.support.interop.imports import OWN, assert_accounted_for, findings_of, outcomes

_FILES = OWN / "agentflow"
_LEGACY = (_FILES / "legacy_and_subagent.json").read_text("utf-8")
_POSTED = (_FILES / "posted_body.json").read_text("utf-8")


def _pointers(document: Mapping[str, Any], at: str = "") -> dict[str, list[str]]:
    return {
        field: [f"{at}/{name}/{i}" for i, each in enumerate(_list(document, name)) if isinstance(each, dict)]
        for field, name in (("nodes", "nodes"), ("edges", "connections"))
    }  # fmt: skip


def _list(document: Mapping[str, Any], name: str) -> list[Any]:
    value = document.get(name)
    return value if isinstance(value, list) else []


def _imported(*nodes: Mapping[str, Any], edges: str) -> Imported:
    """Import a workflow whose connections are written as ``a b, if.false c, a.subagent d``."""
    connections = []
    for written in filter(None, edges.split(", ")):
        source, target = written.split(" ")
        node_id, _, handle = source.partition(".")
        connections.append(
            {"source": node_id, "target": target, "sourceHandle": handle or "output"}
        )
    workflow = {"nodes": list(nodes), "connections": connections}
    imported = import_text(json.dumps(workflow))
    assert_accounted_for(imported, **_pointers(workflow))
    return imported


def _node(node_id: str, kind: str = "agent", **data: Any) -> dict[str, Any]:
    given = {"agentName": node_id, "userPrompt": "{{PREVIOUS_OUTPUT}}"} if kind == "agent" else {}
    return {"id": node_id, "type": kind, "x": 1, "y": 2, "data": given | data}


_START = _node("s", "start", initialInput="go")


def _by_id(imported: Imported) -> dict[str, Any]:
    return {node["id"]: node for node in imported.document["nodes"]}


def _edges(imported: Imported) -> set[tuple[str, str, str, str, str]]:
    return {
        (e["source"], e["sourceHandle"], e["target"], e["targetHandle"], e["data"]["channel"])
        for e in imported.document["edges"]
    }


def _notes(imported: Imported, name: str) -> str:
    (entry,) = [each for each in imported.report["nodes"] if each["source_name"] == name]
    return " / ".join(note["message"] for note in entry["notes"])


# -- the files of this project ---------------------------------------------------------------------


def test_an_older_workflow_becomes_the_steps_that_it_means() -> None:
    imported = import_text(_LEGACY)
    pointers = _pointers(json.loads(_LEGACY))
    assert (len(pointers["nodes"]), len(pointers["edges"])) == (7, 7)
    assert_accounted_for(imported, **pointers)
    nodes = _by_id(imported)
    assert {node_id: node["type"] for node_id, node in nodes.items()} == {
        "node_1": "start", "node_2": "agent", "node_3": "agent", "node_4": "if",
        "node_5": "approval", "node_6": "agent", "node_7": "end",
    }  # fmt: skip
    assert nodes["node_4"]["data"] == {"conditions": [{"operator": "contains", "value": "price"}]}
    assert nodes["node_2"]["ui"] == {"x": 300, "y": 100}
    assert _edges(imported) == {
        ("node_1", "output", "node_2", "input", "flow"),
        ("node_3", "tools-out", "node_2", "tools", "link"),
        ("node_2", "output", "node_4", "input", "flow"),
        ("node_4", "condition-0", "node_5", "input", "flow"),
        ("node_4", "false", "node_6", "input", "flow"),
        ("node_5", "approve", "node_6", "input", "flow"),
        ("node_6", "output", "node_7", "input", "flow"),
    }
    assert nodes["node_3"]["data"]["delegate"] == "exclusive"
    assert "runs once here" in _notes(imported, "Sender")
    assert "placeholder" not in outcomes(imported).values()


def test_a_posted_body_is_the_same_workflow() -> None:
    plain, posted = import_text(_LEGACY), import_text(_POSTED)
    assert posted.document == plain.document
    assert_accounted_for(posted, **_pointers(json.loads(_POSTED)["graph"], "/graph"))


def test_a_run_record_is_the_workflow_in_it() -> None:
    record = {"runId": "1", "workflow": json.loads(_LEGACY), "logs": [], "status": "completed"}
    assert import_text(json.dumps(record)).document == import_text(_LEGACY).document


def test_other_answers_than_approve_and_reject_are_named_once() -> None:
    (note,) = import_text(_LEGACY).report["notes"]
    assert "neither approve nor reject" in note["message"]


# -- steps -----------------------------------------------------------------------------------------


async def test_only_the_previous_output_is_replaced_in_a_prompt() -> None:
    prompt = "{{PREVIOUS_OUTPUT}} {{ other }} {% x {# y {"
    imported = _imported(_START, _node("a", userPrompt=prompt, systemPrompt="{{ s }}"), edges="s a")
    output = await _output(imported, lambda request: f"{request.system}|{request.prompt}")
    assert output == "{{ s }}|go {{ other }} {% x {# y {"


def test_defaults_that_its_engine_fills_in_are_written_out() -> None:
    agent = _node("a")
    del agent["data"]["agentName"]
    data = _by_id(_imported(_START, agent, edges="s a"))["a"]
    assert data["name"] == "Agent"
    assert data["data"] == {
        "provider": "openai",
        "model": "gpt-5",
        "systemPrompt": "You are a helpful assistant.",
        "reasoningEffort": "low",
        "userPrompt": "{{ PREVIOUS_OUTPUT }}",
    }


def test_an_empty_prompt_and_an_unknown_effort_are_changes() -> None:
    imported = _imported(_START, _node("a", userPrompt=" ", reasoningEffort="huge"), edges="s a")
    assert outcomes(imported)["a"] == "changed"
    assert "prompt is empty" in _notes(imported, "a")
    assert "'huge'" in _notes(imported, "a")


def test_a_first_step_with_nothing_to_ask_cannot_run() -> None:
    assert outcomes(_imported(_node("a", userPrompt=""), edges=""))["a"] == "placeholder"


def test_a_condition_of_an_unknown_operator_compares_as_equal() -> None:
    conditions = [{"operator": "is", "value": 5}, {"operator": "contains", "value": "{{x}}"}, None]
    branch = _node("i", "if", conditions=conditions)
    imported = _imported(_START, branch, _node("a"), edges="s i, i.condition-2 a")
    assert _by_id(imported)["i"]["data"]["conditions"] == [
        {"operator": "equal", "value": "5"},
        {"operator": "contains", "value": "{{ '{' }}{x}}"},
        {"operator": "equal", "value": ""},
    ]


def test_a_step_of_an_unknown_type_is_a_placeholder_with_what_it_held() -> None:
    imported = _imported(_START, _node("m", "mail", to="x"), _node("a"), edges="s m, m a")
    assert outcomes(imported)["m"] == "placeholder"
    assert _by_id(imported)["m"]["data"]["parameters"] == {"to": "x"}


def test_steps_after_an_end_cannot_run() -> None:
    imported = _imported(_START, _node("e", "end"), _node("a"), edges="s e, e a")
    assert outcomes(imported)["e"] == "placeholder"


def test_what_the_start_does_not_reach_is_left_out() -> None:
    imported = _imported(
        _START, _node("t", "start"), _node("a"), _node("b"), _node("c"), edges="s a, t b, b c"
    )
    assert outcomes(imported) == {
        "s": "mapped", "t": "dropped", "a": "mapped", "b": "dropped", "c": "dropped"
    }  # fmt: skip
    assert "only the first start" in _notes(imported, "t")
    assert [edge["outcome"] for edge in imported.report["edges"]] == [
        "mapped",
        "dropped",
        "dropped",
    ]


def test_without_a_start_the_first_steps_begin_and_the_report_says_so() -> None:
    imported = _imported(_node("a"), _node("b"), edges="a b")
    assert len(imported.document["nodes"]) == 2
    assert "no start" in imported.report["notes"][0]["message"]


def test_a_connection_by_an_output_that_a_step_does_not_have_makes_its_target_a_placeholder() -> (
    None
):
    imported = _imported(_START, _node("a"), _node("b"), edges="s a, a b, a.other b")
    assert outcomes(imported)["b"] == "placeholder"
    assert imported.report["edges"][2]["outcome"] == "dropped"


@pytest.mark.parametrize(
    ("edges", "lost", "sentence"),
    [
        ("s a, a.subagent b, b.subagent a", "ab", "sub-agents of each other: a → b → a"),
        ("s a, a.subagent a", "a", "its own sub-agent"),
        ("s a, a c, a.subagent b, c.subagent b", "b", "several agents: a and c"),
        ("s a, a.subagent b, a b", "b", "a step of the workflow too"),
        ("s a, a.subagent i, a i", "i", "no agent"),
        ("s a, s i, i.subagent b", "i", "no agent"),
        ("s a, a.subagent off, off.subagent b", "off", "Subagents is off"),
    ],
)
def test_subagents_that_its_engine_refuses_cannot_run(edges: str, lost: str, sentence: str) -> None:
    on = {"tools": {"subagents": True}}
    steps = [_node("a", **on), _node("b", **on), _node("c", **on), _node("off"), _node("i", "if")]
    imported = _imported(_START, *steps, edges=edges)
    names = {name for name, outcome in outcomes(imported).items() if outcome == "placeholder"}
    assert set(lost if len(lost) < 3 else [lost]) <= names
    assert sentence in " ".join(_notes(imported, name) for name in names)


def test_a_link_to_a_subagent_by_another_handle_cannot_run() -> None:
    agent = _node("a", tools={"subagents": True})
    workflow = {
        "nodes": [_START, agent, _node("b")],
        "connections": [
            {"source": "s", "target": "a"},
            {"source": "a", "target": "b", "sourceHandle": "subagent", "targetHandle": "other"},
        ],
    }
    assert outcomes(import_text(json.dumps(workflow)))["b"] == "placeholder"


# -- cycles ----------------------------------------------------------------------------------------


async def _output(imported: Imported, reply: Any) -> Any:
    """Run a workflow with a model, and return what it came to."""
    with use_model(FakeModel(reply)):
        run = planwave.run({name: imported.document[name] for name in ("nodes", "edges")})
        return (await run).output


async def test_an_if_that_leads_back_to_its_agent_is_a_while() -> None:
    done = _node("i", "if", conditions=[{"operator": "contains", "value": "+++"}])
    steps = _START, _node("a", userPrompt="{{PREVIOUS_OUTPUT}}+"), done, _node("b")
    imported = _imported(*steps, edges="s a, a i, i.false a, i.condition-0 b")
    assert set(outcomes(imported).values()) == {"mapped", "changed"}
    assert "(a → i → a)" in _notes(imported, "a")
    assert await _output(imported, lambda request: request.prompt) == "go+++"


async def test_a_cycle_of_two_agents_with_two_ways_out_keeps_both() -> None:
    first = _node("i", "if", conditions=[{"operator": "equal", "value": "left"}])
    last = _node("j", "if", conditions=[{"operator": "contains", "value": "aaa"}])
    steps = [
        _START, _node("a", userPrompt="{{PREVIOUS_OUTPUT}}a"), first, _node("b", userPrompt="{{PREVIOUS_OUTPUT}}b"),
        last, _node("left", userPrompt="L"), _node("right", userPrompt="R {{PREVIOUS_OUTPUT}}"),
    ]  # fmt: skip
    imported = _imported(
        *steps,
        edges="s a, a i, i.condition-0 left, i.false b, b j, j.condition-0 right, j.false a",
    )
    assert "placeholder" not in outcomes(imported).values()
    assert await _output(imported, lambda request: request.prompt.replace("b", "")) == "R goaaa"


async def test_a_loop_inside_a_loop_becomes_a_while_inside_a_while() -> None:
    inner = _node("i", "if", conditions=[{"operator": "contains", "value": "ab"}])
    outer = _node("o", "if", conditions=[{"operator": "contains", "value": "!"}])
    steps = [
        _START, _node("a", userPrompt="{{PREVIOUS_OUTPUT}}a"), inner,
        _node("c", userPrompt="{{PREVIOUS_OUTPUT}}c"), outer,
    ]  # fmt: skip
    imported = _imported(*steps, edges="s c, c a, a i, i.false a, i.condition-0 o, o.false c")
    (outer_loop,) = [n for n in imported.document["nodes"] if n["type"] == "while"]
    assert [n["type"] for n in outer_loop["data"]["body"]["nodes"]].count("while") == 1
    replies = iter(["c", "x", "ab", "c", "y", "ab", "c", "ab!"])
    assert await _output(imported, lambda request: next(replies)) == "ab!"


def test_an_approval_that_sends_back_is_a_while_with_the_approval_in_it() -> None:
    steps = _START, _node("a"), _node("p", "approval"), _node("b")
    imported = _imported(*steps, edges="s a, a p, p.reject a, p.approve b")
    (loop,) = [n for n in imported.document["nodes"] if n["type"] == "while"]
    assert {n["type"] for n in loop["data"]["body"]["nodes"]} == {"agent", "approval", "transform"}


@pytest.mark.parametrize(
    ("edges", "circle"),
    [
        ("s a, s b, a b, b a", "a → b → a"),  # two ways in
        ("s a, a b, a c, b a", "a → b → a"),  # on and back at once
        ("s a, a b, b s", "b"),
    ],
)
def test_other_cycles_are_refused_with_their_path(edges: str, circle: str) -> None:
    imported = _imported(_START, _node("a"), _node("b"), _node("c"), edges=edges)
    lost = [each for each in imported.report["lost"] if each["code"] == "import-cycle"]
    assert circle in {each["text"] for each in lost}
    assert "placeholder" in outcomes(imported).values()


def test_five_hundred_steps_are_converted() -> None:
    nodes = [_START, *(_node(f"a{i}") for i in range(499))]
    edges = ", ".join(f"s a{i}" if i < 10 else f"a{i - 10} a{i}" for i in range(499))
    assert len(_imported(*nodes, edges=edges).document["nodes"]) == 500


# -- any workflow ----------------------------------------------------------------------------------

_IDS = st.sampled_from([f"n{i}" for i in range(7)]) | st.sampled_from(ODD_TEXTS)
_KINDS = st.sampled_from(
    ["start", "agent", "agent", "if", "approval", "input", "end", "mail", "if"]
)
_HANDLES = st.sampled_from(
    [None, "output", "condition-0", "condition-1", "false", "true", "approve", "reject", "subagent", "x"]
)  # fmt: skip
_TEXTS = st.sampled_from([*ODD_TEXTS, "{{PREVIOUS_OUTPUT}}", "{{{PREVIOUS_OUTPUT}}}", "Do it."])


@st.composite
def workflows(draw: st.DrawFn) -> dict[str, Any]:
    nodes = [_START]
    for node_id in draw(st.lists(_IDS, min_size=1, max_size=7)):
        data = {
            "agentName": draw(_TEXTS), "userPrompt": draw(_TEXTS), "systemPrompt": draw(_TEXTS),
            "prompt": draw(_TEXTS), "condition": draw(_TEXTS), "tools": {"subagents": draw(st.booleans())},
            "conditions": [{"operator": "equal", "value": draw(_TEXTS)}] * draw(st.integers(0, 2)),
        }  # fmt: skip
        nodes.append({"id": node_id, "type": draw(_KINDS), "x": 1, "y": 2, "data": data})
    ids = st.sampled_from([node["id"] for node in nodes]) | _IDS
    connections = [
        {"source": draw(ids), "target": draw(ids), "sourceHandle": draw(_HANDLES)}
        for _ in range(draw(st.integers(0, 12)))
    ]
    return {"nodes": nodes, "connections": connections}


@given(damaged(workflows()))
def test_any_workflow_is_accounted_for(case: Damaged) -> None:
    imported = import_text(json.dumps(case.document), "agentflow")
    assert_accounted_for(imported, **_pointers(case.document), secrets=case.secrets)


@given(st.data())
def test_ways_that_never_divide_become_loops_or_are_refused(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 7))
    ways = ["s n0"]
    for number in range(count):
        for handle in ("condition-0", "false"):
            if data.draw(st.integers(0, 3)):
                ways.append(f"n{number}.{handle} n{data.draw(st.integers(0, count - 1))}")
    branches = [_node(f"n{i}", "if", condition="x") for i in range(count)]
    imported = _imported(_START, *branches, edges=", ".join(ways))
    if not imported.report["lost"]:
        assert not findings_of(imported)


def test_a_field_of_an_agent_that_is_not_known_is_said() -> None:
    imported = _imported(_START, _node("a", userPrompt="Hi", temperature=0.2), edges="s a")
    assert imported.report["nodes"][1]["outcome"] == "changed"
    assert "its field 'temperature' is not known here" in str(imported.report["nodes"][1]["notes"])


def test_a_tool_that_is_not_known_is_said() -> None:
    tools = {"code_interpreter": True, "web_search": True, "shell": False}
    imported = _imported(_START, _node("a", tools=tools), edges="s a")
    assert outcomes(imported)["a"] == "changed"
    assert "'code_interpreter'" in _notes(imported, "a")
    assert "shell" not in _notes(imported, "a")
    assert _by_id(imported)["a"]["data"]["tools"] == {"web_search": True}
