"""Flows of magic_agents become graphs in which nothing that lost its meaning runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planwave
from planwave.errors import InputError
from planwave.interop.importing.importer import Imported, import_text
from planwave.providers.protocols import ModelRequest
from planwave.testing import FakeModel, use_model
from tests.support.interop.damage import ODD_TEXTS, Damaged, damaged
from tests.support.interop.imports import OWN, assert_accounted_for, findings_of, outcomes

_NAMES_OF_FLOW = ("magic_flow", "flow", "graph", "subgraph")
_EDGE_FIELDS = ("source", "sourceHandle", "target", "targetHandle")


def _node(node_id: str, kind: str, **data: Any) -> dict[str, Any]:
    return {"id": node_id, "type": kind, "data": data}


def _imported(*nodes: dict[str, Any], edges: str = "", kind: str | None = None) -> Imported:
    """Import a flow; edges are written ``a.out b.in, …``."""
    written = [
        dict(
            zip(_EDGE_FIELDS, (*left.partition(".")[::2], *right.partition(".")[::2]), strict=True)
        )
        for left, right in (each.split() for each in edges.split(",") if each.strip())
    ]
    flow = {"nodes": list(nodes), "edges": written}
    imported = import_text(json.dumps(flow), kind or "magic-agents")
    assert_accounted_for(imported, **_pointers(flow))
    return imported


def _pointers(flow: Any, prefix: str = "") -> dict[str, list[str]]:
    nodes, edges = list[str](), list[str]()
    for flow_, pointer in _flows(flow, prefix):
        nodes += [f"{pointer}/nodes/{i}" for i, _ in _objects(flow_, "nodes")]
        edges += [f"{pointer}/edges/{i}" for i, _ in _objects(flow_, "edges")]
    return {"nodes": nodes, "edges": edges}


def _flows(flow: Any, pointer: str) -> Iterator[tuple[Any, str]]:
    """Yield a flow and those inside of its steps, each with its pointer."""
    yield flow, pointer
    for number, node in _objects(flow, "nodes"):
        data = node.get("data")
        if node.get("type") == "inner" and isinstance(data, dict):
            name = next((n for n in _NAMES_OF_FLOW if isinstance(data.get(n), dict)), None)
            if name is not None and "edges" in data[name] and _objects(data[name], "nodes"):
                yield from _flows(data[name], f"{pointer}/nodes/{number}/data/{name}")


def _objects(flow: Any, name: str) -> list[tuple[int, Any]]:
    items = flow.get(name) if isinstance(flow, dict) else None
    return (
        [(i, x) for i, x in enumerate(items) if isinstance(x, dict)]
        if isinstance(items, list)
        else []
    )


def _target(imported: Imported, node_id: str) -> Mapping[str, Any]:
    return next(node for node in imported.document["nodes"] if node["id"] == node_id)


def _notes(imported: Imported, name: str) -> str:
    entries = [each for each in imported.report["nodes"] if each["source_name"] == name]
    return "; ".join(note["message"] for each in entries for note in each["notes"])


def _edges(imported: Imported) -> set[str]:
    return {
        f"{e['source']}.{e['sourceHandle']} {e['target']}.{e['targetHandle']}"
        for e in imported.document["edges"]
    }


def _prompt(request: ModelRequest) -> str:
    return request.prompt


async def _run(imported: Imported, reply: Any = "reply", **given: Any) -> dict[str, Any]:
    """Run a graph with a model, and return what each of its nodes came to."""
    graph = {name: imported.document[name] for name in ("nodes", "edges")}
    with use_model(FakeModel(reply)):
        run = await planwave.run(graph, **given)
    assert run.status == "completed", run.text
    return {
        name: next(iter(outputs.values())).value for name, outputs in run.outputs.items() if outputs
    }


# -- the files written for planwave ----------------------------------------------------------------


def test_a_flow_of_the_current_version_with_a_loop_and_a_choice() -> None:
    text = (OWN / "magic_agents" / "current_loop_and_route.json").read_text("utf-8")
    imported, flow = import_text(text), json.loads(text)
    report = imported.report
    assert (report["kind"], report["kind_version"]) == ("magic-agents", "current")
    assert (len(report["nodes"]), len(report["edges"])) == (10, 10)
    assert_accounted_for(imported, **_pointers(flow))
    assert "placeholder" not in outcomes(imported).values()
    assert _target(imported, "cl") == {
        "id": "cl", "type": "model", "name": "cl", "data": {"provider": "openai", "model": "gpt-4o-mini"},
    }  # fmt: skip
    assert "api_info" not in json.dumps(imported.document)
    assert "KEY" not in json.dumps(imported.document)
    links = [e for e in imported.document["edges"] if e["data"]["channel"] == "link"]
    assert [(e["source"], e["target"], e["targetHandle"]) for e in links] == [
        ("cl", "list", "model")
    ]
    body = _target(imported, "loop")["data"]["body"]
    assert [node["id"] for node in body["nodes"]] == ["item", "p", "result"]
    assert "loop.output cond-inputs.handle_input" in _edges(imported)
    condition = _target(imported, "cond")["data"]
    assert condition["outputHandles"] == ["long", "short"]
    assert condition["defaultHandle"] == "short"
    assert "input.value | length" in condition["condition"]
    assert _target(imported, "s1")["data"]["message"] == '{"n": 3}'
    assert "its message is shown nowhere" in _notes(imported, "s1")
    assert _notes(imported, "v") == "nothing leads to it"
    assert "s1.output e.input" in _edges(imported)


async def test_that_flow_runs() -> None:
    text = (OWN / "magic_agents" / "current_loop_and_route.json").read_text("utf-8")
    imported = import_text(text)
    run = await _run(imported, '["red", "green", "blue"]', inputs={"u": {"message": "colours"}})
    assert run["loop"] == ["Colour: red", "Colour: green", "Colour: blue"]
    assert run["cond"] == {
        "handle_input": ["Colour: red", "Colour: green", "Colour: blue"],
        "value": ["Colour: red", "Colour: green", "Colour: blue"],
    }


def test_a_flow_nested_200_deep_is_refused_by_the_limit() -> None:
    with pytest.raises(InputError) as caught:
        import_text((OWN / "hostile" / "nested_200_deep.json").read_text("utf-8"), "magic-agents")
    assert caught.value.code == "limit-exceeded"


# -- kinds -----------------------------------------------------------------------------------------

_USER = _node("u", "user_input")
_CLIENT = _node("c", "client", engine="openai", model="gpt-4o")


def test_a_flow_that_is_wrapped_as_content_is_found() -> None:
    wrapped = {"content": {"nodes": [_USER], "edges": []}, "id": 3}
    imported = import_text(json.dumps(wrapped), "magic-agents")
    assert [each["source"] for each in imported.report["nodes"]] == ["/content/nodes/0"]


@pytest.mark.parametrize(
    ("kind", "value", "node_type", "data"),
    [
        ("int", "4", "number", {"value": 4}),
        ("float", 1.5, "number", {"value": 1.5}),
        ("bool", "true", "boolean", {"value": True}),
        ("str", "a {{ b }}", "text", {"text": "a {{ '{' }}{ b }}"}),
    ],
)
def test_a_constant_becomes_a_node_of_its_type(
    kind: str, value: Any, node_type: str, data: dict[str, Any]
) -> None:
    imported = _imported(_node("k", "constant", value_type=kind, value=value))
    assert (_target(imported, "k")["type"], _target(imported, "k")["data"]) == (node_type, data)


def test_a_constant_that_is_no_number_is_a_placeholder() -> None:
    assert outcomes(_imported(_node("k", "constant", value_type="int", value="x"))) == {
        "k": "placeholder"
    }


@pytest.mark.parametrize("kind", ["hook", "python_exec"])
def test_programs_are_placeholders_with_their_code(kind: str) -> None:
    imported = _imported(_node("h", kind, code="print(1)"))
    placeholder = _target(imported, "h")
    assert (placeholder["type"], placeholder["data"]["code"]) == ("placeholder", "print(1)")


def test_texts_of_a_text_step_are_literal() -> None:
    imported = _imported(
        _USER,
        _node("t", "text", text="hello {{ handle_input }}"),
        edges="u.handle_user_message t.h",
    )
    assert _target(imported, "t")["data"]["text"] == "hello {{ '{' }}{ handle_input }}"


@pytest.mark.parametrize(
    ("kind", "field"), [("text", "text"), ("parser", "text"), ("conditional", "condition")]
)
def test_a_variable_of_the_environment_is_never_resolved(kind: str, field: str) -> None:
    imported = _imported(_node("t", kind, **{field: "a {{env.HOME}}"}))
    assert outcomes(imported) == {"t": "placeholder"}
    assert imported.report["lost"][0]["text"] == "a {{env.HOME}}"


def test_filters_without_counterpart_make_a_placeholder() -> None:
    imported = _imported(
        _USER,
        _node("p", "parser", text="{{ h | regex_replace('a', 'b') }}"),
        edges="u.handle_user_message p.h",
    )
    assert outcomes(imported)["p"] == "placeholder"
    assert "regex_replace" in imported.report["lost"][0]["message"]


async def test_a_parser_reads_its_handles_by_name_whatever_they_are_called() -> None:
    imported = _imported(
        _node("a", "text", text='{"x": 5}'),
        _node("b", "text", text="B"),
        _node("p", "parser", text="{{ item.x }}{{ nodes }}{{ nothing }}"),
        edges="a.handle_text_output p.item, b.handle_text_output p.nodes",
    )
    assert (await _run(imported))["p"] == "5B"


async def test_tools_make_an_agent_of_a_model_step() -> None:
    servers = [
        {"name": "files", "command": "x", "tool_allowlist": ["read"]},
        {"prefix": "web", "url": "http://x"},
    ]
    imported = _imported(
        _USER, _CLIENT, _node("m", "mcp", servers=servers), _node("l", "llm", temperature=0.5),
        edges="u.handle_user_message l.handle_user_message, c.handle-client-provider l.handle-client-provider,"
        "m.handle-tool-definition l.handle-tool-definition-1",
    )  # fmt: skip
    assert _target(imported, "l")["type"] == "agent"
    assert {each["name"] for each in imported.report["setup"] if each["what"] == "mcp"} == {
        "files",
        "web",
    }
    links = {
        (e["source"], e["targetHandle"])
        for e in imported.document["edges"]
        if e["data"]["channel"] == "link"
    }
    assert links == {("c", "model"), ("m", "tools"), ("m-2", "tools")}


def test_a_conversation_is_wired_into_the_messages_of_a_model_step() -> None:
    history = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    imported = _imported(
        _USER, _CLIENT, _node("t", "chat", history_messages=history, memory={"max_input_tokens": 50}), _node("l", "llm"),
        edges="u.handle_user_message t.handle_user_message, t.handle_chat_output l.handle-chat,"
        "c.handle-client-provider l.handle-client-provider",
    )  # fmt: skip
    assert "t.messages l.messages" in _edges(imported)
    assert _target(imported, "t")["data"] == {"historyMessages": history, "maxInputTokens": 50}
    assert outcomes(_imported(_node("t", "chat", memory={"stm": 3})))["t"] == "placeholder"


async def test_a_model_step_reads_the_value_of_an_object() -> None:
    imported = _imported(
        _USER, _CLIENT, _node("if", "conditional", condition="go"), _node("l", "llm"),
        edges="u.handle_user_message if.handle_input, if.go l.handle_user_message,"
        "c.handle-client-provider l.handle-client-provider",
    )  # fmt: skip
    run = await _run(imported, _prompt, inputs={"u": {"message": "hello"}})
    assert run["l"] == "hello"


def test_a_secret_in_a_header_becomes_one_of_the_operator() -> None:
    secret = "Bearer abcdefgh12345678"
    imported = _imported(
        _node("t", "text", text="[1]"), _node("loop", "loop"),
        _node("f", "fetch", url="https://x.example/", headers={"Authorization": secret, "x-a": "b"}),
        edges="t.handle_text_output loop.handle_list, loop.handle_item f.handle_fetch_input,"
        "f.handle_fetch_output loop.handle_loop",
    )  # fmt: skip
    assert outcomes(imported) == {"t": "mapped", "loop": "mapped", "f": "changed"}
    data = _target(imported, "loop")["data"]["body"]["nodes"][1]["data"]
    assert (data["headers"], data["secretHeaders"]) == (
        {"x-a": "b"}, {"Authorization": "Bearer {f_authorization}"},
    )  # fmt: skip
    assert ("secret", "f_authorization") in {
        (e["what"], e["name"]) for e in imported.report["setup"]
    }
    assert secret[7:] not in json.dumps([imported.document, imported.report])


def test_the_secret_of_a_step_with_a_number_for_an_id_has_a_name_that_can_be_one() -> None:
    headers = {"X-Api-Key": "abcdefgh12345678"}
    imported = _imported(_node("1", "fetch", url="https://x.example/", headers=headers))
    assert _target(imported, "1")["data"]["secretHeaders"] == {"X-Api-Key": "{secret_1_x_api_key}"}
    assert {each.code for each in findings_of(imported)} <= {"unknown-secret"}


def test_a_limit_of_tokens_that_no_model_has_is_left_to_the_provider() -> None:
    imported = _imported(
        _USER, _node("l", "llm", max_tokens=10**9), edges="u.x l.handle_user_message"
    )
    assert "maxTokens" not in _target(imported, "l").get("data", {})
    assert outcomes(imported)["l"] == "changed"
    assert not findings_of(imported)


def test_requests_keep_their_fields() -> None:
    imported = _imported(
        _USER,
        _node("f", "fetch", endpoint="https://x.example/{{ h }}", method="post", json_body='{"q": ["{{ h }}", 1]}'),
        edges="u.handle_user_message f.h",
    )  # fmt: skip
    assert _target(imported, "f")["data"] == {
        "url": "https://x.example/{{ input }}", "method": "POST", "json": {"q": ["{{ input }}", 1]},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("headers", "expected", "names"),
    [
        ({"Authorization": "Bearer {{env.KEY}}"}, {"Authorization": "Bearer {KEY}"}, ["KEY"]),
        ({"X-A": "{{ env.A_1 }}:{{env.B}}"}, {"X-A": "{A_1}:{B}"}, ["A_1", "B"]),
        ('{"X-A": "{{env.KEY}}", "Accept": "a/b"}', {"X-A": "{KEY}"}, ["KEY"]),
    ],
)
def test_variables_of_the_environment_in_headers_are_secrets_of_the_operator(
    headers: Any, expected: dict[str, str], names: list[str]
) -> None:
    imported = _imported(_USER, _node("r", "fetch", url="https://a.example/", headers=headers))
    data = _target(imported, "r")["data"]
    assert data["secretHeaders"] == expected
    assert data.get("headers") in (None, {"Accept": "a/b"})
    assert [each["name"] for each in imported.report["setup"]] == names
    assert "is a secret of the operator here" in _notes(imported, "r")


@pytest.mark.parametrize(
    "headers", [{"X": "{{env.KEY}}{{ h }}"}, {"X": "{a} {{env.KEY}}"}, {"X": "{{env._KEY}}"}]
)
def test_other_variables_of_the_environment_lose_the_request(headers: Any) -> None:
    imported = _imported(_USER, _node("r", "fetch", url="https://a.example/", headers=headers))
    assert outcomes(imported)["r"] == "placeholder"


def test_values_that_are_no_text_are_written_in_another_way_which_is_said_once() -> None:
    imported = _imported(
        _USER, _node("c", "constant", value_type="float", value="2.0"),
        _node("p", "parser", text="{{ m }}: {{ c }} {{ c }}"), _node("q", "parser", text="{{ m }} {{ m.a }}"),
        _node("t", "parser", text="{{ m }} {{ m | upper }}"),
        edges="u.handle_user_message p.m, c.handle_constant_output p.c, u.handle_user_message q.m, "
        "u.handle_user_message t.m",
    )  # fmt: skip
    said = {
        entry["source_name"]: sum("written as JSON" in note["message"] for note in entry["notes"])
        for entry in imported.report["nodes"]
    }
    assert said == {"u": 0, "c": 0, "p": 1, "q": 1, "t": 0}


@pytest.mark.parametrize(("said", "taken"), [("yes", "True"), ("no", "False")])
async def test_a_condition_that_is_true_or_false_names_the_branches_of_python(
    said: str, taken: str
) -> None:
    imported = _imported(
        _USER, _node("c", "conditional", condition="{{ handle_input == 'yes' }}"),
        _node("T", "text", text="T"), _node("F", "text", text="F"),
        edges="u.handle_user_message c.handle_input, c.True T.x, c.False F.x",
    )  # fmt: skip
    outputs = await _run(imported, message=said)
    assert (taken[0] in outputs, len({"T", "F"} & outputs.keys())) == (True, 1)


# -- wires -----------------------------------------------------------------------------------------


async def test_of_several_values_at_one_handle_the_last_counts() -> None:
    imported = _imported(
        _node("a", "text", text="A"), _node("b", "text", text="B"), _node("p", "parser", text="{{ h }}"),
        edges="a.handle_text_output p.h, b.handle_text_output p.h",
    )  # fmt: skip
    assert (await _run(imported))["p"] == "B"
    assert "the last value to arrive counted" in _notes(imported, "p")


async def test_branches_that_exclude_each_other_may_share_a_handle() -> None:
    imported = _imported(
        _USER, _node("if", "conditional", condition="{{ value }}", output_handles=["x", "y"]),
        _node("a", "text", text="A"), _node("b", "text", text="B"), _node("p", "parser", text="got {{ h }}"),
        edges="u.handle_user_message if.handle_input, if.x a.i, if.y b.i,"
        "a.handle_text_output p.h, b.handle_text_output p.h",
    )  # fmt: skip
    assert outcomes(imported)["p"] == "mapped"
    assert (await _run(imported, inputs={"u": {"message": "y"}}))["p"] == "got B"


async def test_a_handle_on_a_branch_that_is_not_taken_is_empty() -> None:
    imported = _imported(
        _USER, _node("if", "conditional", condition="x", output_handles=["x", "y"]), _node("b", "text", text="B"),
        _node("p", "parser", text="[{{ h }}|{{ g.deep }}|{{ u }}]"),
        edges="u.handle_user_message if.handle_input, if.y b.i, b.handle_text_output p.h,"
        "b.handle_text_output p.g, u.handle_user_message p.u",
    )  # fmt: skip
    assert (await _run(imported, inputs={"u": {"message": "m"}}))["p"] == "[||m]"


def test_wires_that_carry_nothing_are_left_out_and_named() -> None:
    imported = _imported(
        _node("a", "text", text="A"), _node("p", "parser", text="x"),
        edges="a.o p, a.o p.handle-void, p.o p.h, a.o nowhere.h, a.o p.h, a.o p.h",
    )  # fmt: skip
    assert [each["outcome"] for each in imported.report["edges"]] == [
        *["dropped"] * 4,
        "mapped",
        "dropped",
    ]
    assert [node["type"] for node in imported.document["nodes"]] == ["text", "parser"]


@pytest.mark.parametrize(
    ("handle", "version"), [("handle_generated_end", "legacy"), ("handle-3", "current")]
)
def test_any_handle_is_the_output_and_the_current_version_is_told_so(
    handle: str, version: str
) -> None:
    imported = _imported(_node("a", "text", text="A"), _node("e", "end"), edges=f"a.{handle} e.x")
    assert imported.report["kind_version"] == version
    assert "a.output e.input" in _edges(imported)
    assert bool(imported.report["edges"][0]["notes"]) == (version == "current")


# -- loops and flows inside ------------------------------------------------------------------------

_LIST = _node("t", "text", text='["a", "b"]')
_LOOP = "t.handle_text_output loop.handle_list, loop.handle_item p.h, p.handle_parser_output loop.handle_loop"


async def test_a_body_gets_what_it_reads_of_steps_outside() -> None:
    imported = _imported(
        _USER, _LIST, _node("loop", "loop"), _node("p", "parser", text="{{ u }}{{ h }}"), _node("e", "end"),
        edges=f"{_LOOP}, u.handle_user_message p.u, loop.handle_end e.x",
    )  # fmt: skip
    assert _target(imported, "loop")["type"] == "inner"
    run = await _run(imported, inputs={"u": {"message": "m"}})
    assert run["loop"] == ["ma", "mb"]


async def test_a_loop_in_a_loop_is_a_body_in_a_body() -> None:
    imported = _imported(
        _node("t", "text", text='[["a", "b"], ["c"]]'), _node("loop", "loop"), _node("in", "loop"),
        _node("p", "parser", text="<{{ h }}>"),
        edges="t.handle_text_output loop.handle_list, loop.handle_item in.handle_list, in.handle_item p.h,"
        "p.handle_parser_output in.handle_loop, in.handle_end loop.handle_loop",
    )  # fmt: skip
    assert (await _run(imported))["loop"] == [["<a>", "<b>"], ["<c>"]]


async def test_an_item_without_feedback_gives_null() -> None:
    imported = _imported(
        _LIST, _node("loop", "loop"), _node("if", "conditional", condition="{{ h }}", output_handles=["a", "b"]),
        _node("p", "parser", text="A"),
        edges="t.handle_text_output loop.handle_list, loop.handle_item if.h, if.a p.h,"
        "p.handle_parser_output loop.handle_loop",
    )  # fmt: skip
    assert (await _run(imported))["loop"] == ["A", None]


def test_a_step_that_reads_inside_a_loop_is_a_placeholder() -> None:
    imported = _imported(
        _LIST, _node("loop", "loop"), _node("p", "parser", text="x"), _node("q", "parser", text="{{ h }}"),
        edges=f"{_LOOP}, loop.handle_end q.l, p.handle_parser_output q.h",
    )  # fmt: skip
    assert outcomes(imported)["q"] == "placeholder"


def test_loops_that_overlap_are_refused_with_their_steps() -> None:
    imported = _imported(
        _LIST, _node("loop", "loop"), _node("two", "loop"), _node("p", "parser", text="x"),
        edges="t.handle_text_output loop.handle_list, loop.handle_item p.h,"
        "t.handle_text_output two.handle_list, two.handle_item p.g",
    )  # fmt: skip
    assert outcomes(imported)["two"] == "placeholder"
    assert imported.report["lost"][0]["code"] == "import-cycle"


async def test_a_flow_inside_gives_the_text_that_it_shows() -> None:
    child = {
        "nodes": [_USER, _CLIENT, _node("l", "llm", stream=True), _node("s", "send_message", json_extras="told")],
        "edges": [
            dict(zip(_EDGE_FIELDS, each, strict=True))
            for each in (
                ("u", "handle_user_message", "l", "handle_user_message"),
                ("c", "handle-client-provider", "l", "handle-client-provider"),
                ("l", "handle_generated_content", "s", "handle_send_extra"),
            )
        ],
    }  # fmt: skip
    imported = _imported(
        _USER, _node("in", "inner", magic_flow=child), _node("p", "parser", text="[{{ h }}]"),
        edges="u.handle_user_message in.handle_user_message, in.handle_execution_content p.h",
    )  # fmt: skip
    run = await _run(
        imported, lambda request: f"<{_prompt(request)}>", inputs={"u": {"message": "m"}}
    )
    assert run["p"] == "[<m>told]"


def test_a_flow_inside_of_another_shows_its_text_though_no_wire_reads_it() -> None:
    wires = [
        dict(
            zip(
                _EDGE_FIELDS, ("u", "handle_user_message", "in", "handle_user_message"), strict=True
            )
        )
    ]
    child = {"nodes": [_USER, _node("s", "send_message", json_extras="told")], "edges": []}
    middle = {"nodes": [_USER, _node("in", "inner", magic_flow=child)], "edges": wires}
    imported = _imported(
        _USER, _node("out", "inner", magic_flow=middle), _node("p", "parser", text="[{{ h }}]"),
        edges="u.handle_user_message out.handle_user_message, out.handle_execution_content p.h",
    )  # fmt: skip
    assert not findings_of(imported)


@pytest.mark.parametrize(
    "more",
    [{"parent_state_mapping": {"a": "b.c"}}, {"magic_flow": {"nodes": []}}, {"magic_flow": 3}],
)
def test_flows_inside_without_counterpart_are_placeholders(more: dict[str, Any]) -> None:
    data = {"magic_flow": {"nodes": [_USER], "edges": []}, **more}
    assert outcomes(_imported(_node("in", "inner", **data)))["in"] == "placeholder"


def test_five_hundred_steps_are_converted() -> None:
    nodes = [_USER, *(_node(f"p{i}", "parser", text="{{ h.a }}{{ g }}") for i in range(499))]
    edges = ", ".join(
        f"u.handle_user_message p{i}.h" if i < 10 else f"p{i - 10}.handle_parser_output p{i}.h"
        for i in range(499)
    )
    assert len(_imported(*nodes, edges=edges).document["nodes"]) == 500


# -- any flow --------------------------------------------------------------------------------------

_IDS = st.sampled_from([f"n{i}" for i in range(7)]) | st.sampled_from(ODD_TEXTS)
_KINDS = st.sampled_from(
    [
        "user_input", "text", "constant", "parser", "parser", "fetch", "client", "llm", "chat", "send_message",
        "loop", "loop", "conditional", "inner", "mcp", "end", "void", "hook", "mail",
    ]
)  # fmt: skip
_HANDLES = st.sampled_from(
    [
        None, "", "handle_generated_end", "handle_text_output", "handle_item", "handle_loop", "handle_list",
        "handle_end", "handle_user_message", "handle-system-context", "handle-client-provider", "handle_input",
        "handle-tool-definition-1", "handle_execution_content", "handle-void", "yes", "no", "input", "nodes", "a b",
        "handle-url",
    ]
)  # fmt: skip
_TEXTS = st.sampled_from(
    [
        *ODD_TEXTS,
        "{{ yes }}",
        "{{ handle_input.a }}",
        "{% for x in yes %}{{ x }}{% endfor %}",
        "{{ env.X }}",
    ]
)


@st.composite
def flows(draw: st.DrawFn, depth: int = 1) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = []
    for node_id in draw(st.lists(_IDS, min_size=1, max_size=8)):
        data: dict[str, Any] = {
            "text": draw(_TEXTS), "condition": draw(_TEXTS), "json_extras": draw(_TEXTS), "url": draw(_TEXTS),
            "engine": "openai", "model": draw(_TEXTS), "headers": {"x": draw(_TEXTS)},
            "output_handles": draw(st.lists(_TEXTS, max_size=2)), "default_handle": draw(_TEXTS),
            "servers": [{"name": draw(_TEXTS)}], "merge_strategy": draw(st.sampled_from(["flat", "namespaced"])),
        }  # fmt: skip
        kind = draw(_KINDS)
        if kind == "inner" and depth:
            data["magic_flow"] = draw(flows(depth - 1))
        nodes.append({"id": node_id, "type": kind, "data": data, "position": {"x": 1, "y": 2}})
    ids = st.sampled_from([node["id"] for node in nodes]) | _IDS
    edges = [
        {
            "source": draw(ids),
            "target": draw(ids),
            "sourceHandle": draw(_HANDLES),
            "targetHandle": draw(_HANDLES),
        }
        for _ in range(draw(st.integers(0, 12)))
    ]
    return {"nodes": nodes, "edges": edges}


@given(damaged(flows()))
def test_any_flow_is_accounted_for(case: Damaged) -> None:
    imported = import_text(json.dumps(case.document), "magic-agents")
    flow, prefix = case.document, ""
    assert_accounted_for(imported, **_pointers(flow, prefix), secrets=case.secrets)


def test_findings_of_a_whole_flow_are_none() -> None:
    imported = _imported(
        _USER, _node("p", "parser", text="{{ h }}"), edges="u.handle_user_message p.h"
    )
    assert findings_of(imported) == []
