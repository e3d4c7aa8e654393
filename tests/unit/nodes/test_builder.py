"""Graphs that are written in Python, and every graph of the repository written so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from pydantic import BaseModel

import planwave
from planwave.graph.checking.checker import check
from planwave.graph.model import Graph
from planwave.graph.plan import graph_hash
from planwave.graph.reading.documents import read_graph
from planwave.nodes.agents.tool_registry import ToolRegistry
from planwave.nodes.library import LIBRARY
from planwave.shapes.common import EdgeDocument, GraphDocument, NodeDocument
from tests.support.conformance.converted_runs import imported_graph
from tests.support.graph.replays import replay, replay_by_keywords
from tests.support.paths import ROOT, SHARED

REGISTRY = planwave.Registry(LIBRARY, tools=ToolRegistry())


class Quote(BaseModel):
    cents: int


@planwave.node("price", registry=REGISTRY)
async def price(input: str, tax: float = 0.0, longer_than: int = 0) -> int:
    """Price a thing."""
    if input == "fails":
        raise ValueError("no price")
    return len(input)


@planwave.node("both", registry=REGISTRY)
def both(left: str, right: str) -> str:
    """Join two texts."""
    return left + right


@planwave.tool(effect="read", registry=REGISTRY)
def look_up(order: str) -> str:
    """Look up an order."""
    return order


class Shout(planwave.NodeType):
    """Says it loudly."""

    node_type = "shout"

    class Data(planwave.NodeData):
        """How often."""

        times_said: int = 1

    async def run(self, data: Any, inputs: planwave.Inputs, context: Any) -> str:
        """Repeat the input."""
        return inputs.text("input").upper() * data.times_said


REGISTRY.register(Shout)


def builder() -> planwave.GraphBuilder:
    return planwave.GraphBuilder(REGISTRY)


def edges_of(document: Any) -> list[str]:
    return sorted(
        f"{e['source']}.{e['sourceHandle']}{'~' if e['data']['channel'] == 'link' else '>'}"
        f"{e['target']}.{e['targetHandle']}"
        for e in document["edges"]
    )


# -- every graph of the repository


def documents() -> Iterator[tuple[str, Any]]:
    """Yield every graph of the examples, of the pages, and of the recordings of another engine."""
    for file in sorted((ROOT / "examples").rglob("*.json")):
        yield from _graphs_in(
            file.relative_to(ROOT).as_posix(), json.loads(file.read_text("utf-8"))
        )
    for file in sorted((ROOT / "planwave/nodes/examples").glob("*.json")):
        yield from _graphs_in(file.name, json.loads(file.read_text("utf-8")))
    for page in (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"):
        blocks = re.findall(
            r"^```json\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
        )
        for number, block in enumerate(blocks):
            try:
                document = json.loads(block)
            except ValueError:  # a part of a document
                continue
            yield from _graphs_in(f"{page.name} block {number}", document)
    for file in sorted((SHARED / "conformance/covalt").glob("*.graph.json")):
        converted = imported_graph(json.loads(file.read_text("utf-8")), "covalt")
        # A keyword cannot say whether an edge into a placeholder is a link: it takes both.
        if all(node["type"] != "placeholder" for node in converted.document["nodes"]):
            yield f"covalt {file.name}", converted.document


def _graphs_in(name: str, document: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a document, and the graphs inside it, that are graphs."""
    if isinstance(document, list):
        for number, item in enumerate(document):
            yield from _graphs_in(name, item, f"{pointer}/{number}")
    elif isinstance(document, dict):
        if {*document} >= {"nodes", "edges"} and isinstance(document["nodes"], list):
            yield name + pointer, {part: document[part] for part in ("nodes", "edges")}
        for key, item in document.items():
            yield from _graphs_in(name, item, f"{pointer}/{key}")


def readable() -> list[Any]:
    graphs: list[Any] = []
    for name, document in documents():
        try:
            graph, _ = read_graph(document)
        except planwave.GraphInvalid:  # shown with its error
            continue
        graphs.append(pytest.param(graph, id=name))
    return graphs


READABLE = readable()


def test_the_graphs_are_found() -> None:
    names = " ".join(str(each.id) for each in READABLE)
    assert len(READABLE) > 60
    for source in ("examples/flows/map_reduce.json", "nodes.md", "agent.json", "/data/body"):
        assert source in names
    assert not SHARED.exists() or "covalt" in names


@pytest.mark.parametrize("graph", READABLE)
def test_every_graph_is_built_by_the_builder_with_the_same_hash(graph: Graph) -> None:
    built, findings = read_graph(replay(graph.to_document(), REGISTRY).document())
    assert findings == []
    assert graph_hash(built) == graph_hash(graph)


VALID = [
    each
    for each in READABLE
    if all(REGISTRY.type_info(node.type) for node in each.values[0].nodes)
    and not any(found.code.endswith("-cycle") for found in check(each.values[0], REGISTRY))
]
"""The channel of an edge is that of types that are known, and a node is written after its sources."""


@pytest.mark.parametrize("graph", VALID)
def test_every_edge_is_written_at_the_node_that_it_enters(graph: Graph) -> None:
    document = graph.to_document()
    assert edges_of(replay_by_keywords(document, REGISTRY).document()) == edges_of(document)


# -- nodes


def test_every_field_of_a_document_can_be_set() -> None:
    g = planwave.GraphBuilder(REGISTRY)
    first = g.node("text", text="x")
    policy, ui = {"join": "all"}, {"position": {"x": 1, "y": 2}}
    g.node("merge", id="m", name="All", description="d", data={}, policy=policy, ui=ui)
    g.edge(first["output"], g.node("merge")["input"], id="e", data={"a": 1}, type="t")
    document = g.document()
    assert document.keys() == get_type_hints(GraphDocument).keys()
    assert document["nodes"][1].keys() == get_type_hints(NodeDocument).keys()
    assert document["edges"][0].keys() == get_type_hints(EdgeDocument).keys()


def test_runs_of_a_graph_are_called_by_its_title(tmp_path: Path) -> None:
    for title, expected in {"": "text", "Weekly report": "Weekly report"}.items():
        g = planwave.GraphBuilder(REGISTRY, title=title)
        g.node("text", text="x")
        planwave.run_sync(g, store=tmp_path / expected)
        listed = [each.title for each in planwave.executions(tmp_path / expected)]
        assert listed == [expected]
        assert "title" not in g.document()
    with pytest.raises(TypeError, match="the title of a graph is a text, not 5"):
        planwave.GraphBuilder(REGISTRY, title=5)  # type: ignore[arg-type]


def test_a_node_is_named_by_a_function_a_class_or_a_text() -> None:
    g = builder()
    start = g.node("start", id="s", initial_input="tea")
    priced, loud = (
        g.node(price, input=start, longer_than=1),
        g.node(Shout, input=start, times_said=2),
    )
    assert [node["data"] for node in g.document()["nodes"]] == [
        {"initialInput": "tea"}, {"longer_than": 1}, {"timesSaid": 2},
    ]  # fmt: skip
    result = planwave.run_sync(g)
    assert (result[priced], result[loud], result["price"]) == (3, "TEATEA", 3)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (
            lambda g, a: g.node(price, input=a, taxx=1),
            "'price' has no field 'taxx'; did you mean 'tax'",
        ),
        (
            lambda g, a: g.node(price, inputt=a),
            "'price' has no input 'inputt'; did you mean 'input'",
        ),
        (lambda g, a: g.node("agent", userPrompt="x"), "did you mean 'user_prompt'"),
        (lambda g, a: g.node(price, input="tea"), "'input' is an input of 'price', not a field"),
        (
            lambda g, a: g.node(price, tax=[a, a["x"]]),
            "'tax' of node 'price' takes one edge, not 2",
        ),
        (lambda g, a: g.node(lambda input: input), "is no node type; a function becomes one by"),
        (lambda g, a: planwave.GraphBuilder().node(Shout), "is not registered here"),
        (lambda g, a: g.map(both, a), "has 'left', 'right'; for another way build the body"),
        (lambda g, a: g.map("start", a), "the one input of 'start', which has none"),
        (
            lambda g, a: g.map(builder(), a, tax=1),
            "tax: write data fields into the graph of the body",
        ),
        (lambda g, a: g.agent("x", tools=[price]), "is no tool; a function becomes one by"),
        (
            lambda g, a: planwave.GraphBuilder().agent("x", tools=[look_up]),
            "'look_up' is not registered",
        ),
        (lambda g, a: g.node("agent", fallback=[Quote]), "Python class Quote"),
        (
            lambda g, a: g.node(price, input=a, timeout_s=3),
            "'price' has no field 'timeout_s'; it is a part of the policy: policy={'timeoutS': …}",
        ),
    ],
)
def test_a_mistake_is_a_type_error_at_the_line_that_makes_it(mistake: Any, message: str) -> None:
    g = builder()
    a = g.node("start")
    with pytest.raises(TypeError, match=message):
        mistake(g, a)
    assert len(g.document()["nodes"]) == 1


@pytest.mark.parametrize("node_type", REGISTRY.names())
def test_every_field_and_input_of_every_type_has_a_keyword(node_type: str) -> None:
    facts = REGISTRY.type_info(node_type)
    assert facts is not None
    g = builder()
    source = g.node("start")
    for name in facts.data_fields.values():
        keyword = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
        if keyword in ("name", "description", "data"):
            node = g.node(node_type, data={name: 1})  # the node itself has these
        else:
            node = g.node(node_type, **{keyword: 1})
        assert g.document()["nodes"][-1]["data"] == {name: 1}, node
    for port in facts.inputs:
        if "{" not in port.name and port.name not in ("name", "description", "data"):
            keyword = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", port.name).lower()
            g.node(node_type, **{keyword: source})
            assert g.document()["edges"][-1]["targetHandle"] == port.name


# -- models


@pytest.mark.parametrize(
    ("fields", "data"),
    [
        ({"model": "openai:gpt-5"}, {"provider": "openai", "model": "gpt-5"}),
        ({"model": "local:a:b"}, {"provider": "local", "model": "a:b"}),
        ({"model": "gpt-5"}, {"model": "gpt-5"}),
        ({"model": "a:b", "provider": "local"}, {"provider": "local", "model": "a:b"}),
        ({"model": "a:b", "data": {"provider": "p"}}, {"provider": "p", "model": "a:b"}),
        ({"data": {"model": "a:b"}}, {"model": "a:b"}),
        ({"model": "{{ input:x }}"}, {"model": "{{ input:x }}"}),
    ],
)
@pytest.mark.parametrize("node_type", ["agent", "llm", "model", "planner"])
def test_a_model_may_be_named_with_its_provider(node_type: str, fields: Any, data: Any) -> None:
    g = builder()
    g.node(node_type, **fields)
    assert g.document()["nodes"][0]["data"] == data


def test_a_field_for_a_schema_takes_a_class_and_one_for_a_graph_a_builder_or_a_graph() -> None:
    g, body = builder(), builder()
    body.node("start")
    g.node("agent", output_schema=Quote)
    g.node("agent", output_schema=list[Quote])
    for graph in (body, planwave.build(body).graph):
        g.node("loop", body=graph)
    schema, listed, *bodies = (node["data"] for node in g.document()["nodes"])
    assert schema["outputSchema"]["properties"]["cents"]["type"] == "integer"
    assert listed["outputSchema"]["type"] == "array"
    assert [each["body"]["nodes"][0]["type"] for each in bodies] == ["start", "start"]


# -- agents, switches, loops


def test_an_agent_is_linked_to_its_tools_and_its_model() -> None:
    g = builder()
    model, other = g.node("model", model="openai:gpt-5"), g.agent("Help", id="other")
    agent = g.agent(
        "Judge {{ input }}", output_type=Quote, tools=[look_up, "more", other], model=model,
        system_prompt="Be brief.", input=g.node("start"), id="a", max_steps=3,
    )  # fmt: skip
    document = g.document()
    assert edges_of(document) == [
        "model.output~a.model", "other.tools-out~a.tools", "start.output>a.input",
        "toolset.tools~a.tools",
    ]  # fmt: skip
    node = next(each for each in document["nodes"] if each["id"] == "a")
    assert node["data"] | {"outputSchema": 0} == {
        "userPrompt": "Judge {{ input }}", "systemPrompt": "Be brief.", "maxSteps": 3, "outputSchema": 0,
    }  # fmt: skip
    tools = next(each for each in document["nodes"] if each["type"] == "toolset")
    assert tools["data"] == {"names": ["look_up", "more"]}
    assert agent.result_type is not None
    assert agent.result_type.read({"cents": 3}, "it") == Quote(cents=3)
    with pytest.raises(planwave.NodeError, match="it") as caught:
        agent.result_type.read({"cents": "3"}, "it")
    assert caught.value.code == "type-mismatch"


def test_a_step_that_calls_a_tool_names_it_by_its_function() -> None:
    g = builder()
    start = g.node("start", id="start")
    found = g.node("call_tool", tool=look_up, arguments={"order": "{{ input }}"}, input=start)
    assert g.document()["nodes"][1]["data"] == {
        "tool": "look_up",
        "arguments": {"order": "{{ input }}"},
    }
    assert planwave.run_sync(g, "1042", registry=REGISTRY)[found] == "1042"
    other = planwave.GraphBuilder(planwave.Registry(LIBRARY, tools=ToolRegistry()))
    with pytest.raises(TypeError, match="is not registered here"):
        other.node("call_tool", tool=look_up)


def test_a_branch_of_a_switch_is_named_by_its_case() -> None:
    g = builder()
    kind = g.switch(g.node("start"), cases=["refund", 2, "default"], case_sensitive=False)
    for case, node_id in (("refund", "r"), (2, "two"), ("default", "d")):
        g.node("text", id=node_id, text=f"{case}", input=kind[case])
    g.node("text", id="rest", text="other", input=kind.default)
    branches = {e["sourceHandle"]: e["target"] for e in g.document()["edges"][1:]}
    assert branches == {"case-0": "r", "case-1": "two", "case-2": "d", "default": "rest"}
    assert planwave.run_sync(g, "Refund").text == "refund"
    for case, hint in (
        ("refnd", "did you mean 'refund'?"),
        ("x", "its cases are refund, 2, default"),
    ):
        with pytest.raises(planwave.InputError) as caught:
            kind[case]
        assert (caught.value.code, caught.value.hint) == ("unknown-handle", hint)


def test_a_case_is_what_a_switch_compares_its_text() -> None:
    g = builder()
    kind = g.switch(g.node("start"), cases=[1, True, None])
    found = [kind[case].handle for case in (1, "1", True, "true", None)]
    assert found == ["case-0", "case-0", "case-1", "case-1", "case-2"]
    with pytest.raises(planwave.InputError, match="has no case False"):
        kind[False]


def test_a_policy_is_written_as_in_a_document_or_with_a_retry_of_python() -> None:
    g = builder()
    retry = planwave.Retry(attempts=3, on=[ConnectionError])
    ref = g.node(price, input=g.node("start"), policy={"retry": retry, "onError": "continue"})
    document = g.document()["nodes"][1]
    assert document["id"] == ref.id
    assert document["policy"] == {
        "retry": {"attempts": 3, "on": ["ConnectionError"]}, "onError": "continue",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"on_error": "continue"}, "node 'price': .*on_error.*onError"),
        ({"onError": "go"}, "node 'price': policy.onError is 'go'"),
        ({"retry": 3}, "node 'price': policy.retry"),
        ({"timeoutS": "5"}, "node 'price': policy.timeoutS is '5'"),
    ],
)
def test_a_policy_is_checked_at_the_line_that_writes_it(policy: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        builder().node(price, policy=policy)


def test_a_node_runs_for_each_item_of_a_list() -> None:
    g = builder()
    lengths = g.map(price, g.node("start"), parallel=2, longer_than=1)
    inside = builder()
    inside.node("text", text="<{{ item }}>")
    bodies = g.map(inside, lengths, max_items=3, id="bodies", policy={"timeoutS": 5})
    result = planwave.run_sync(g, ["tea", "milk"])
    assert (result[lengths], result[bodies]) == ([3, 4], ["<3>", "<4>"])


def test_the_items_of_a_loop_may_be_written() -> None:
    g = builder()
    lengths = g.map(price, ["a", "bb"])
    assert planwave.run_sync(g)[lengths] == [1, 2]


@pytest.mark.parametrize(("on_item_error", "lengths"), [("skip", [3]), ("null", [None, 3])])
def test_an_item_that_fails_is_left_out_or_none(
    on_item_error: Any, lengths: list[int | None]
) -> None:
    g = builder()
    priced = g.map(price, g.node("start"), on_item_error=on_item_error)
    assert planwave.run_sync(g, ["fails", "tea"])[priced] == lengths


class Verdict(BaseModel):
    fine: bool


@planwave.node("judged", registry=REGISTRY)
def judged(input: Verdict) -> bool:
    return input.fine


def test_what_cannot_fit_a_typed_input_is_refused_before_anything_runs() -> None:
    def error_of(source: Any, *, fits: bool = False) -> str:
        g = builder()
        g.node(judged, input=source(g))
        if fits:
            planwave.build(g, registry=REGISTRY)
            return ""
        with pytest.raises(planwave.GraphInvalid) as caught:
            planwave.build(g, registry=REGISTRY)
        return f"{caught.value} | {caught.value.hint}"

    assert error_of(lambda g: g.agent("Judge", output_type=Verdict), fits=True) == ""
    assert "it has no field 'fine'" in error_of(lambda g: g.agent("Judge", output_type=Quote))
    assert "data.outputSchema" in error_of(lambda g: g.agent("Judge"))
    assert "it is a list, not an object" in error_of(lambda g: g.map(judged, g.node("start")))


def test_an_editor_sees_the_schema_of_an_agent() -> None:
    g = builder()
    agent = g.agent("Judge", output_type=Verdict)
    graph, _ = read_graph(g.document())
    assert graph is not None
    (output, *_) = REGISTRY.node_ports(graph)[agent.id]["outputs"]
    assert (output["name"], output["type"]) == ("output", "json")
    assert output["schema"]["required"] == ["fine"]
