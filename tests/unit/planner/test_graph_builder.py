"""A plan becomes a graph document: what is filled in, and what is a contradiction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from pydantic import SecretStr

from planwave.expressions import compile_task, compile_template
from planwave.graph.protocols import NodeTypeInfo
from planwave.graph.reading.unreadable import ALREADY_REPORTED
from planwave.nodes.authoring.node_type import NodeData
from planwave.nodes.registry import Registry
from planwave.planner.graph_builder import Draft, ModelDefaults, build_graph
from planwave.planner.reply_schema import parse_reply
from planwave.providers.registry import ProviderRegistry
from planwave.settings import ProviderSettings, Settings
from tests.support.llm.fake_providers import FakeProviders, library_registry
from tests.support.llm.planner_replies import reply_edge, reply_node


class Echo:
    """Every field of its data is a template."""

    node_type = "echo"
    template_fields = None

    class Data(NodeData):
        """Its data."""

        t: Any
        n: int = 0

    async def execute(self, data: Any, inputs: Any, context: Any) -> Any: ...


def draft_of(
    *nodes: Any,
    edges: Any = (),
    registry: Registry | None = None,
    providers: Any = None,
    defaults: tuple[str, str] = ("openai", "gpt"),
    types: Sequence[str] | None = None,
) -> Draft:
    reply: dict[str, Any] = {"nodes": list(nodes)}
    if edges is not None:
        reply["edges"] = list(edges)
    plan, findings = parse_reply(reply)
    assert plan is not None, findings
    return build_graph(
        plan,
        registry or library_registry(),
        providers or FakeProviders(),
        ModelDefaults(*defaults),
        types,
    )


def data_of(*nodes: Any, registry: Registry | None = None) -> Any:
    draft = draft_of(*nodes, registry=registry)
    assert draft.diagnostics == []
    return draft.document["nodes"][0]["data"]


def test_a_node_without_a_type_is_an_agent_with_the_default_model() -> None:
    draft = draft_of(reply_node("a"))
    assert draft.document["nodes"] == [
        {
            "id": "a",
            "type": "agent",
            "name": "A",
            "description": "Do a.",
            "data": {"provider": "openai", "model": "gpt"},
        }
    ]
    assert draft.fixes == []


def test_a_node_may_name_provider_or_model_or_both() -> None:
    assert data_of(reply_node("a", provider="own")) == {"provider": "own", "model": "one"}
    assert data_of(reply_node("a", model="two")) == {"provider": "own", "model": "two"}
    assert data_of(reply_node("a", model="new")) == {"provider": "openai", "model": "new"}
    assert data_of(reply_node("a", provider="openai")) == {"provider": "openai", "model": "gpt"}
    both = {"provider": "own", "model": "two"}
    assert data_of(reply_node("a", data=both)) == both
    assert data_of(reply_node("a", **both, data=both)) == both


def test_an_unavailable_provider_is_left_for_the_checker() -> None:
    assert data_of(reply_node("a", provider="off")) == {"provider": "off"}


def test_a_model_of_an_unavailable_provider_is_an_error() -> None:
    keyed = ProviderRegistry(Settings(openai_api_key=SecretStr("k")), environ={})
    draft = draft_of(
        reply_node("a", model="claude-x"), providers=keyed, defaults=("openai", "gpt-4o-mini")
    )
    (finding,) = draft.diagnostics
    assert draft.document["nodes"][0]["model"] is ALREADY_REPORTED
    assert (finding.code, finding.pointer) == ("unavailable-provider", "/nodes/0/data/model")
    assert finding.node == "a"
    assert "anthropic" in finding.message


@pytest.mark.parametrize(
    ("model", "provider"), [("llama-9", "box"), ("claude-x", "box"), ("gpt-4o-mini", "openai")]
)
def test_an_unlisted_model_belongs_to_the_default_endpoint(model: str, provider: str) -> None:
    box = ProviderSettings(base_url="http://x.test/v1")
    settings = Settings(openai_api_key=SecretStr("k"), providers={"box": box})
    keyed = ProviderRegistry(settings, environ={})
    draft = draft_of(reply_node("a", model=model), providers=keyed, defaults=("box", "llama-8"))
    assert draft.document["nodes"][0]["data"] == {"provider": provider, "model": model}


def test_two_different_values_for_one_field_are_an_error() -> None:
    draft = draft_of(
        reply_node("a", provider="own", data={"provider": "openai"}),
        reply_node("b"),
        edges=[
            reply_edge("a", "b", data={"channel": "link"}),
            reply_edge("a", "b", source_handle="x", sourceHandle="y"),
        ],
    )
    assert [(f.code, f.pointer) for f in draft.diagnostics] == [
        ("conflicting-field", "/nodes/0/data/provider"),
        ("conflicting-field", "/edges/0/channel"),
        ("conflicting-field", "/edges/1/sourceHandle"),
    ]


def test_contradictory_fields_are_marked_as_reported() -> None:
    document = draft_of(
        reply_node("a", provider="own", data={"provider": "openai", "temperature": 1}),
        edges=[
            reply_edge("a", "b", data={"channel": "link"}),
            reply_edge("a", "b", source_handle="x", sourceHandle="y"),
        ],
    ).document
    assert document["nodes"][0]["provider"] is ALREADY_REPORTED
    assert document["nodes"][0]["data"] == {"temperature": 1}
    assert document["edges"][0]["data"] is ALREADY_REPORTED
    assert document["edges"][1]["sourceHandle"] is ALREADY_REPORTED


def test_rejected_parts_of_a_reply_are_marked_as_reported_in_the_document() -> None:
    edges = [{"source": "a", "channel": 1, "source_handle": 1, "target_handle": 1, "to": "b"}, 7]
    document = draft_of(reply_node("a", kind="x"), 5, edges=edges).document
    assert document["nodes"][0] == {
        "id": "a", "type": ALREADY_REPORTED, "name": "A", "description": "Do a.", "kind": ALREADY_REPORTED,
        "data": {"provider": "openai", "model": "gpt"},
    }  # fmt: skip
    assert document["nodes"][1] is document["edges"][1] is ALREADY_REPORTED
    marked = ("target", "data", "sourceHandle", "targetHandle", "to")
    assert document["edges"][0] == {"source": "a", **dict.fromkeys(marked, ALREADY_REPORTED)}
    draft = draft_of(reply_node("a"), edges=None)
    assert draft.document["edges"] is ALREADY_REPORTED


def test_a_model_for_a_type_without_model_calls_is_dropped_as_a_fix() -> None:
    draft = draft_of(
        reply_node("t", type="text", provider="openai", model="gpt", data={"text": "x"})
    )
    assert draft.document["nodes"][0]["data"] == {"text": "x"}
    assert len(draft.fixes) == 1
    assert "'t'" in draft.fixes[0]


def test_nothing_is_filled_in_for_an_unknown_type() -> None:
    assert data_of(reply_node("a", type="agnet", data={"x": 1})) == {"x": 1}
    assert data_of(reply_node("a", type="agnet", model="m")) == {"model": "m"}


def test_channels_are_never_inferred_and_edge_data_survive() -> None:
    draft = draft_of(
        reply_node("a"),
        reply_node("b"),
        edges=[
            {"source": "a", "target": "b"},
            {"id": "x", "source": "a", "target": "b", "data": {"channel": "flow", "k": [1]}},
        ],
    )
    assert draft.document["edges"] == [
        {"source": "a", "target": "b", "data": {}},
        {"id": "x", "source": "a", "target": "b", "data": {"channel": "flow", "k": [1]}},
    ]


def test_a_node_without_a_policy_has_that_of_its_type() -> None:
    class Careful(Echo):
        node_type = "careful"
        policy: ClassVar[dict[str, Any]] = {"timeoutS": 30}

    registry = Registry([Careful(), Echo()])
    for policy, expected in [(None, {"timeoutS": 30}), ({"join": "any"}, {"join": "any"})]:
        reply = reply_node("a", type="careful", policy=policy)
        (document,) = draft_of(reply, registry=registry).document["nodes"]
        assert document["policy"] == expected
    plain = draft_of(reply_node("a", type="echo"), registry=registry)
    assert "policy" not in plain.document["nodes"][0]


def test_policy_and_ui_survive() -> None:
    policy, ui = {"join": "any"}, {"position": {"x": 1, "y": 2}}
    (document,) = draft_of(reply_node("a", policy=policy, ui=ui)).document["nodes"]
    assert (document["policy"], document["ui"]) == (policy, ui)


def test_template_fields_a_type_declares_keep_their_expressions() -> None:
    template = {"template": "{{ input }}"}
    assert data_of(reply_node("p", type="parser", data=template)) == template


def test_braces_are_escaped_if_all_fields_of_a_type_are_templates() -> None:
    registry = Registry([Echo])
    facts = registry.type_info("echo")
    assert isinstance(facts, NodeTypeInfo)
    assert facts.template_fields is None
    text = "say {{ goal }} {% raw %}x{% endraw %} {# no #}"
    draft = draft_of(
        reply_node("a", type="echo", data={"t": [text, "plain", {"k": text}], "n": 1}),
        registry=registry,
    )
    data = draft.document["nodes"][0]["data"]
    assert data["t"][1:] == ["plain", {"k": data["t"][0]}]
    assert data["n"] == 1
    assert len(draft.fixes) == 1
    compiled = compile_template({"t": data["t"][0]})
    assert compiled is None or not compiled.references


def test_a_plan_without_braces_is_not_reported_as_changed() -> None:
    draft = draft_of(reply_node("a", type="echo", data={"t": "plain"}), registry=Registry([Echo]))
    assert draft.fixes == []


def loop(*nodes: Any, edges: Any = (), **data: Any) -> dict[str, Any]:
    body = {"nodes": list(nodes), "edges": list(edges)}
    return reply_node("each", type="loop", data={"items": ["x"], "body": body, **data})


def test_a_nested_graph_is_completed_like_the_plan() -> None:
    body = data_of(loop(reply_node("a"), reply_node("b"), edges=[reply_edge("a", "b")]))["body"]
    assert [each["data"] for each in body["nodes"]] == [{"provider": "openai", "model": "gpt"}] * 2
    assert body["edges"] == [{"source": "a", "target": "b", "data": {"channel": "flow"}}]


def test_graphs_nested_twice_are_completed_and_their_nodes_counted() -> None:
    draft = draft_of(loop(loop(reply_node("a"), reply_node("b"))), reply_node("c"))
    body = draft.document["nodes"][0]["data"]["body"]
    assert body["nodes"][0]["data"]["body"]["nodes"][1]["type"] == "agent"
    assert draft.nodes == 5


def test_errors_in_a_nested_graph_have_pointers_below_the_node() -> None:
    fine, faulty = (
        loop(reply_node("a")),
        loop({"name": "no id"}, edges=[{**reply_edge("a", "b"), "to": 1}]),
    )
    draft = draft_of(fine, {**faulty, "id": "other"})
    assert [(finding.code, finding.pointer, finding.node) for finding in draft.diagnostics] == [
        ("missing-field", "/nodes/1/data/body/nodes/0/id", "other"),
        ("unknown-field", "/nodes/1/data/body/edges/0/to", "other"),
    ]
    assert draft.diagnostics[0].message.startswith("node 'other', data.body: missing field 'id'")
    assert draft.document["nodes"][1]["data"] is ALREADY_REPORTED
    assert draft.document["nodes"][0]["data"]["body"]["nodes"][0]["id"] == "a"


def test_fixes_in_a_nested_graph_name_the_node() -> None:
    inside = reply_node("t", type="text", data={"text": "x"}, model="gpt")
    draft = draft_of(loop(inside))
    (fix,) = draft.fixes
    assert fix.startswith("in data.body of node 'each': dropped provider and model of node 't'")


def test_a_nested_graph_that_is_no_object_is_left_to_the_checker() -> None:
    draft = draft_of(reply_node("each", type="loop", data={"items": [], "body": "nodes"}))
    assert draft.diagnostics == []
    assert draft.document["nodes"][0]["data"]["body"] == "nodes"


def test_the_first_allowed_type_is_the_default_and_other_types_are_errors() -> None:
    draft = draft_of(
        reply_node("a"),
        loop(reply_node("b", type="text")),
        reply_node("c", type="odd"),
        types=["llm", "loop"],
    )
    assert draft.document["nodes"][0]["type"] == "llm"
    (finding,) = draft.diagnostics
    assert (finding.code, finding.pointer) == (
        "type-not-allowed", "/nodes/1/data/body/nodes/0/type",
    )  # fmt: skip
    assert finding.hint == "it may use llm, loop"


@pytest.mark.parametrize(
    "task", ["Say {{ city }}", "{% if x %}", "{# no #}", "{{ open", "{{ '%}' }}"]
)
def test_braces_in_a_task_of_a_model_stay_literal(task: str) -> None:
    body = {"nodes": [reply_node("b", description=task)], "edges": []}
    draft = draft_of(
        reply_node("a", description=task),
        reply_node("l", type="loop", data={"items": ["x"], "body": body}),
    )
    agent, loop = draft.document["nodes"]
    for node in (agent, loop["data"]["body"]["nodes"][0]):
        template = compile_task(node["description"])
        assert template is not None
        assert template.names == ()
        assert template.render({"city": "Rome", "x": True}) == task
    assert "braces in the task of node 'a' are taken literally" in draft.fixes


def test_a_task_without_double_braces_is_not_changed() -> None:
    draft = draft_of(reply_node("a", description='Reply with {"city": {"days": 3}}'))
    assert draft.document["nodes"][0]["description"] == 'Reply with {"city": {"days": 3}}'
    assert draft.fixes == []
