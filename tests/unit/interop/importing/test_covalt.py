"""Graphs of Covalt become graphs in which nothing that lost its meaning runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planwave
from planwave.interop.importing.importer import Imported, import_text
from planwave.providers.protocols import ModelRequest
from planwave.testing import FakeModel, use_model
from tests.support.interop.damage import ODD_TEXTS, Damaged, damaged
from tests.support.interop.imports import OWN, assert_accounted_for, findings_of, outcomes

_EDGE_FIELDS = ("source", "sourceHandle", "target", "targetHandle")


def _node(node_id: str, kind: str, **data: Any) -> dict[str, Any]:
    return {"id": node_id, "type": kind, "position": {"x": 1, "y": 2}, "data": data}


def _imported(*nodes: dict[str, Any], edges: str = "") -> Imported:
    """Import a graph; edges are written ``a.out b.in, …``, links with ``*`` before them."""
    written: list[dict[str, Any]] = []
    for each in filter(None, map(str.strip, edges.split(","))):
        left, right = each.lstrip("*").split()
        ends = (*left.partition(".")[::2], *right.partition(".")[::2])
        edge: dict[str, Any] = dict(zip(_EDGE_FIELDS, ends, strict=True))
        written.append({**edge, "data": {"channel": "link" if each.startswith("*") else "flow"}})
    graph = {"nodes": list(nodes), "edges": written}
    imported = import_text(json.dumps(graph), "covalt")
    assert_accounted_for(imported, **_pointers(graph))
    return imported


def _pointers(graph: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in ("nodes", "edges"):
        items = graph.get(name) if isinstance(graph, dict) else None
        listed = items if isinstance(items, list) else []
        found[name] = [f"/{name}/{i}" for i, each in enumerate(listed) if isinstance(each, dict)]
    return found


def _target(imported: Imported, node_id: str) -> Mapping[str, Any]:
    return next(node for node in imported.document["nodes"] if node["id"] == node_id)


def _edges(imported: Imported) -> list[str]:
    return [
        f"{e['source']}.{e['sourceHandle']} {e['target']}.{e['targetHandle']}"
        for e in imported.document["edges"]
    ]


def _prompt(request: ModelRequest) -> str:
    return request.prompt


async def _run(imported: Imported, **given: Any) -> dict[str, Any]:
    """Run a graph with a model that echoes, and return what each of its nodes came to."""
    graph = {name: imported.document[name] for name in ("nodes", "edges")}
    with use_model(FakeModel(_prompt)):
        run = await planwave.run(graph, **given)
    assert run.status == "completed", run.text
    return {n: next(iter(each.values())).value for n, each in run.outputs.items() if each}


_CHAT = _node("s", "chat-start")
_SAID = {"inputs": {"s": {"message": "hello there"}}}


# -- the file written for planwave -----------------------------------------------------------------


def _desk() -> tuple[Imported, dict[str, Any]]:
    text = (OWN / "covalt" / "desk.json").read_text("utf-8")
    return import_text(text), json.loads(text)


def test_a_desk_with_a_choice_tools_and_a_program() -> None:
    imported, graph = _desk()
    report = imported.report
    assert report["kind"] == "covalt"
    assert (len(report["nodes"]), len(report["edges"])) == (10, 9)
    assert_accounted_for(imported, **_pointers(graph))
    assert {name for name, each in outcomes(imported).items() if each == "placeholder"} == {"t"}
    assert _target(imported, "entry-1")["data"] == {"variables": {"tone": "dry"}}
    template = _target(imported, "p")["data"]["template"]
    assert template["text"].startswith("Reply to: {{ (input.message | default('')) }} ({{ ")
    assert "trigger.message | length" in template["text"]
    assert _target(imported, "a")["policy"] == {"onError": "continue"}
    edges = _edges(imported)
    assert "a.output mg.input" in edges
    assert "a.error mg.input" in edges
    assert report["options"] == {"on_failure": "stop"}
    assert any("a failure ends the run there" in note["message"] for note in report["notes"])
    assert "[0]" in _target(imported, "code-1")["data"]["expression"]


def test_a_merge_keeps_the_order_of_its_inputs() -> None:
    imported = _imported(
        _CHAT, *(_node(n, "agent") for n in "abc"), _node("m", "merge"),
        edges="s.output a.input, s.output b.input, s.output c.input,"
        "a.output m.input_10, b.output m.input_2, c.output m.input",
    )  # fmt: skip
    assert [e for e in _edges(imported) if e.endswith("m.input")] == [
        "c.output m.input", "b.output m.input", "a.output m.input",
    ]  # fmt: skip


# -- types -----------------------------------------------------------------------------------------


async def test_results_stand_in_an_object_there_and_are_plain_here() -> None:
    imported = _imported(
        _CHAT, _node("a", "agent", _label="First"), _node("l", "llm-completion", model="openai:gpt-4o"),
        _node("k", "code", code="return { r: $('First').item.json.response.toUpperCase(), t: $input.text.length,"
              " all: $input, none: $input.response };"),
        edges="s.output a.input, a.output l.input, l.output k.input",
    )  # fmt: skip
    assert (await _run(imported, **_SAID))["k"] == {
        "r": "HELLO THERE", "t": 11, "all": {"text": "hello there"}, "none": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    "code",
    ["const a = 1; return a;", "return await x();", "for (;;) {}", "return $input.map(x => x);"],
)
def test_other_programs_are_placeholders(code: str) -> None:
    imported = _imported(_CHAT, _node("k", "code", code=code), edges="s.output k.input")
    assert (outcomes(imported)["k"], _target(imported, "k")["data"]["code"]) == (
        "placeholder",
        code,
    )


def test_a_name_alone_in_braces_is_no_expression() -> None:
    imported = _imported(
        _CHAT,
        _node("a", "agent", instructions="Use {{message}} as it is."),
        edges="s.output a.input",
    )
    assert _target(imported, "a")["data"]["systemPrompt"] == "Use {{ '{' }}{message}} as it is."


def test_an_expression_without_counterpart_makes_a_placeholder() -> None:
    imported = _imported(
        _CHAT, _node("a", "agent", instructions="{{ $now.toISO() }}"), edges="s.output a.input"
    )
    assert outcomes(imported)["a"] == "placeholder"
    assert imported.report["lost"][0]["text"] == "{{ $now.toISO() }}"


def test_a_node_that_does_not_lead_here_cannot_be_named() -> None:
    imported = _imported(
        _CHAT,
        _node("b", "agent"),
        _node("k", "code", code="return $('b').item.json;"),
        edges="s.output k.input",
    )
    assert outcomes(imported)["k"] == "placeholder"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, {"auth": "none"}),
        ({"allowSse": False}, {"auth": "none"}),
        (
            {"allowSse": True, "schema": {"type": "object"}},
            {"auth": "none", "allowSse": True, "bodySchema": {"type": "object"}},
        ),
        (
            {"secret": "s3cr3t-Value-99", "secretHeader": "x-key"},
            {"auth": "secret", "secrets": ["w-secret"], "secretHeader": "x-key"},
        ),
    ],
)
def test_a_webhook_streams_only_where_the_file_says_so(
    data: dict[str, Any], expected: dict[str, Any]
) -> None:
    imported = _imported(_node("w", "webhook-trigger", **data))
    assert _target(imported, "w")["data"] == expected
    assert "s3cr3t" not in json.dumps([imported.document, imported.report])


async def test_a_webhook_is_answered_with_the_object_of_the_node_before() -> None:
    imported = _imported(
        _CHAT, _node("a", "agent"), _node("e", "webhook-end", status=201, headers={"x-a": "b"}),
        edges="s.output a.input, a.output e.body",
    )  # fmt: skip
    assert (await _run(imported, **_SAID))["e"] == {
        "body": {"response": "hello there"}, "status": 201, "headers": {"x-a": "b"},
    }  # fmt: skip


async def test_a_prompt_may_come_by_a_wire_of_its_own() -> None:
    imported = _imported(
        _CHAT, _node("p", "prompt-template", template="Say {{message}}"), _node("l", "llm-completion", prompt="unused"),
        _node("m", "llm-completion"),
        edges="s.output p.input, p.output l.prompt, p.output m.prompt, s.output m.input",
    )  # fmt: skip
    outputs = await _run(imported, **_SAID)
    assert (outputs["l"], outputs["m"]) == ("Say hello there", "Say hello there")


@pytest.mark.parametrize(
    ("socket", "value", "node_type", "outcome"),
    [
        ("string", "x", "text", "mapped"),
        ("int", 3, "number", "mapped"),
        ("float", "x", "placeholder", "placeholder"),
        ("boolean", True, "boolean", "mapped"),
        ("json", {"a": [1]}, "json", "mapped"),
    ],
)
def test_a_reroute_has_the_type_of_its_socket(
    socket: str, value: Any, node_type: str, outcome: str
) -> None:
    imported = _imported(_node("r", "reroute", value=value, _socketType=socket))
    assert (_target(imported, "r")["type"], outcomes(imported)["r"]) == (node_type, outcome)


def test_models_servers_and_agents_are_linked() -> None:
    imported = _imported(
        _CHAT, _node("a", "agent"), _node("b", "agent"), _node("m", "model_selector", model="x:y:z"),
        _node("f", "mcp-server", server="files"),
        edges="s.output a.input, *b.input a.tools, m.model a.model, *f.tools b.tools",
    )  # fmt: skip
    links = [e for e in imported.document["edges"] if e["data"]["channel"] == "link"]
    assert [(e["source"], e["sourceHandle"], e["targetHandle"]) for e in links] == [
        ("b", "tools-out", "tools"), ("m", "output", "model"), ("f", "tools", "tools"),
    ]  # fmt: skip
    assert _target(imported, "m")["data"] == {"provider": "x:y", "model": "z"}
    assert {each["what"] for each in imported.report["setup"]} == {"provider", "mcp"}


def test_a_channel_that_is_missing_is_inferred_and_named() -> None:
    graph = {
        "nodes": [
            _node("s", "np:chat_start"),
            _node("a", "agent"),
            _node("t", "mcp_server", server="x"),
        ],
        "edges": [
            {"source": "s", "target": "a"},
            {"source": "t", "target": "a", "sourceHandle": "tools", "targetHandle": "tools"},
        ],
    }
    imported = import_text(json.dumps(graph), "covalt")
    assert_accounted_for(imported, **_pointers(graph))
    codes = [note["code"] for each in imported.report["edges"] for note in each["notes"]]
    assert codes == ["import-inferred-channel"] * 2
    assert [e["data"]["channel"] for e in imported.document["edges"][1:]] == ["flow", "link"]


async def test_of_several_wires_into_one_handle_the_last_counts() -> None:
    imported = _imported(
        _CHAT, _node("p", "code", code="return 'P';"), _node("q", "code", code="return 'Q';"), _node("k", "code"),
        edges="s.output p.input, s.output q.input, p.output k.input, q.output k.input",
    )  # fmt: skip
    assert outcomes(imported)["k"] == "changed"
    assert (await _run(imported, **_SAID))["k"] == "Q"


def test_labels_that_several_nodes_have_are_named() -> None:
    imported = _imported(_CHAT, _node("a", "merge", label="X"), _node("b", "merge", _label="X"))
    assert any("the label 'X'" in note["message"] for note in imported.report["notes"])


async def test_the_conversation_before_goes_to_an_agent_that_follows_the_start() -> None:
    imported = _imported(_CHAT, _node("a", "agent"), edges="s.output a.input")
    assert "s.history a.messages" in _edges(imported)
    assert (await _run(imported, **_SAID))["a"] == "hello there"


_SOURCES = [
    *(("reroute", {"_socketType": socket, "value": value}) for socket, value in (
        ("string", "abc"), ("int", 1), ("float", 1.5), ("boolean", True), ("json", {"a": 1}), ("x", "a"),
    )),
    ("agent", {}), ("llm-completion", {}), ("prompt-template", {"template": "x"}), ("merge", {}),
    ("conditional", {"field": "message", "operator": "exists"}), ("code", {"code": "return $input;"}),
    ("chat-start", {}),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["agent", "llm-completion"])
@pytest.mark.parametrize("handle", ["temperature", "max_tokens", "tools", "prompt", "model"])
@pytest.mark.parametrize("source", _SOURCES, ids=str)
def test_what_does_not_fit_a_handle_loses_the_node_that_it_leads_to(
    source: tuple[str, dict[str, Any]], handle: str, kind: str
) -> None:
    out = "true" if source[0] == "conditional" else "output"
    imported = _imported(
        _CHAT, _node("a", source[0], **source[1]), _node("t", kind),
        edges=f"s.output t.input, a.{out} t.{handle}"
        + ("" if source[0] in ("reroute", "chat-start") else ", s.output a.input"),
    )  # fmt: skip
    if source[0] == "reroute" and handle == "temperature":
        fits = source[1]["_socketType"] in ("int", "float")
        assert (outcomes(imported)["t"] == "placeholder") != fits
    if handle == "tools":
        assert outcomes(imported)["t"] == "placeholder"


def test_a_node_that_names_one_from_which_nothing_leads_to_it_is_lost() -> None:
    """A wire that nothing reads is left out, and with it the way between the two."""
    imported = _imported(
        _CHAT, _node("a", "agent"), _node("c", "code", code="return 1 +;"),
        _node("t", "agent", instructions="{{ $('a').item.json.response }}"),
        edges="s.output a.input, a.output c.body, c.output t.input",
    )  # fmt: skip
    assert "from which nothing leads to it here" in str(imported.report["nodes"][3]["notes"])
    assert outcomes(imported)["t"] == "placeholder"


def test_five_hundred_nodes_are_converted() -> None:
    nodes = [
        _CHAT,
        *(_node(f"a{i}", "agent", instructions="Be {{ $input.response }}!") for i in range(499)),
    ]
    edges = ",".join(
        f"s.output a{i}.input" if i < 10 else f"a{i - 10}.output a{i}.input" for i in range(499)
    )
    assert len(_imported(*nodes, edges=edges).report["nodes"]) == 500


# -- any graph -------------------------------------------------------------------------------------

_IDS = st.sampled_from([f"n{i}" for i in range(7)]) | st.sampled_from(ODD_TEXTS)
_KINDS = st.sampled_from(
    [
        "chat-start", "webhook-trigger", "webhook-end", "agent", "agent", "llm-completion", "prompt_template",
        "conditional", "merge", "reroute", "code", "model-selector", "mcp-server", "toolset", "droid-agent", "boom",
    ]
)  # fmt: skip
_HANDLES = st.sampled_from(
    [
        None,
        "output",
        "input",
        "input_2",
        "tools",
        "model",
        "prompt",
        "true",
        "false",
        "body",
        "temperature",
        "x",
    ]
)
_TEXTS = st.sampled_from(
    [
        *ODD_TEXTS,
        "{{ $input.message }}",
        "a {{ $('n1').item.json.response }}",
        "{{ n }}",
        "{{ input }}",
        "openai:gpt-4o",
    ]
)


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = []
    for node_id in draw(st.lists(_IDS, min_size=1, max_size=8)):
        data: dict[str, Any] = {
            "model": draw(_TEXTS), "instructions": draw(_TEXTS), "prompt": draw(_TEXTS), "template": draw(_TEXTS),
            "field": draw(_TEXTS), "operator": draw(st.sampled_from(["equals", "exists", "odd"])), "value": draw(_TEXTS),
            "_socketType": draw(st.sampled_from(["string", "int", "json", "x"])), "server": draw(_TEXTS),
            "code": draw(st.sampled_from(["return $input;", "return {a: $input.response};", "x"])),
            "on_error": draw(st.sampled_from(["stop", "continue"])), "headers": {"x-a": draw(_TEXTS)},
            "variables": [{"id": draw(_TEXTS), "default": 1}], "_label": draw(_TEXTS), "toolset": draw(_TEXTS),
        }  # fmt: skip
        nodes.append({**_node(node_id, draw(_KINDS)), "data": data})
    ids = st.sampled_from([node["id"] for node in nodes]) | _IDS
    edges = [
        {
            "source": draw(ids), "target": draw(ids), "sourceHandle": draw(_HANDLES), "targetHandle": draw(_HANDLES),
            "data": {"channel": draw(st.sampled_from(["flow", "flow", "link", None]))},
        }
        for _ in range(draw(st.integers(0, 12)))
    ]  # fmt: skip
    return {"nodes": nodes, "edges": edges}


@given(damaged(graphs()))
def test_any_graph_is_accounted_for(case: Damaged) -> None:
    imported = import_text(json.dumps(case.document), "covalt")
    assert_accounted_for(imported, **_pointers(case.document), secrets=case.secrets)


def test_a_whole_graph_has_no_findings() -> None:
    assert findings_of(_imported(_CHAT, _node("a", "agent"), edges="s.output a.input")) == []
