"""No plan of a model holds a field that is not offered: generated from the node types themselves.

Each field of each type is tried under each of its names as a literal, a template, a flow edge and a link
edge, in the plan, in the graphs inside its nodes, and in the plan that a ``planner`` node has written while
the execution runs. A new type or field is closed until it is offered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import pytest
from pydantic import AliasChoices, Field

from planwave.errors import PermanentError, PlanInvalid
from planwave.events import Event
from planwave.executor.driver.execution import Execution
from planwave.executor.program import Program
from planwave.graph.checking.checker import read_and_check
from planwave.graph.model import FLOW, LINK, Graph, Node, Port
from planwave.graph.plan import Plan
from planwave.graph.protocols import WrittenBy
from planwave.graph.reading.documents import read_graph
from planwave.nodes.authoring.data_fields import HIDDEN_FROM_PLANNER, POLICY, graph_field
from planwave.nodes.authoring.node_type import INPUT, LinkType, NodeData, NodeType, template
from planwave.nodes.library import LIBRARY
from planwave.nodes.library.agent import Agent, AgentData
from planwave.nodes.registry import Registry
from planwave.nodes.subgraphs import FlowName
from planwave.planner.capabilities import (
    PlanRules,
    offered_fields,
    plan_schema,
    plannable_types,
    type_cards,
)
from planwave.planner.graph_builder import ModelDefaults
from planwave.planner.plan_check import PlanCheck, admission
from planwave.planner.planner import Planner
from planwave.planner.reply_parser import ParseContext, ParseResult, read_reply
from planwave.providers.protocols import ModelRequest
from planwave.settings import Limits
from tests.support.llm.fake_providers import FakeProviders
from tests.support.llm.planner_replies import planner_reply, reply_edge, reply_node
from tests.support.llm.watched_model import WatchedModel
from tests.support.nodes.node_context import OneStepPlanner, services_with

CLOSED = {"field-not-for-plans", "policy-field"}


class Source(LinkType):
    """Something to link from."""

    node_type = "source"
    outputs = (Port("output", channel=LINK),)

    async def make(self, data: Any, inputs: Any, context: Any) -> str:
        return "x"


class OfTheOperator(NodeType):
    """A type with a field of each kind."""

    node_type = "operators"
    inputs = (INPUT, Port("{name}"))

    class Data(NodeData):
        """Its data."""

        open: str = template("")
        aliased: str = Field("", validation_alias=AliasChoices("aliased", "other_name"))
        hidden: str = Field("", json_schema_extra=HIDDEN_FROM_PLANNER)
        hidden_too: str = Field(
            "",
            validation_alias=AliasChoices("hiddenToo", "hidden_alias"),
            json_schema_extra=HIDDEN_FROM_PLANNER,
        )
        rule: str = Field(
            "", validation_alias=AliasChoices("rule", "rule_alias"), json_schema_extra=POLICY
        )
        graph: dict[str, Any] | None = graph_field()
        flow: FlowName | None = None

    async def run(self, data: Any, inputs: Any, context: Any) -> None:
        return None


class OperatorsAgent(Agent):
    """A library type with a field more."""

    node_type = "operators_agent"

    class Data(AgentData):
        """Its data."""

        tone: str = ""


TYPES: tuple[Any, ...] = (*LIBRARY, Source, OfTheOperator, OperatorsAgent)
REGISTRY = Registry(TYPES)
CONTEXT = ParseContext(REGISTRY, FakeProviders(), ModelDefaults("openai", "gpt"), Limits())


def read(*nodes: Any, edges: Any = ()) -> ParseResult:
    return read_reply(planner_reply(*nodes, edges=list(edges)), CONTEXT)


def literal(node_type: str, field: str) -> tuple[list[Any], list[Any]]:
    return [reply_node("n", type=node_type, data={field: 1})], []


def as_template(node_type: str, field: str) -> tuple[list[Any], list[Any]]:
    return [reply_node("n", type=node_type, data={field: "{{ goal }}"})], []


def flow_wire(node_type: str, field: str) -> tuple[list[Any], list[Any]]:
    nodes = [reply_node("t", type="text", data={"text": "x"}), reply_node("n", type=node_type)]
    return nodes, [reply_edge("t", "n", targetHandle=field)]


def link_wire(node_type: str, field: str, source: str = "source") -> tuple[list[Any], list[Any]]:
    nodes = [reply_node("s", type=source), reply_node("n", type=node_type)]
    return nodes, [{**reply_edge("s", "n", targetHandle=field), "channel": "link"}]


def as_document(nodes: list[Any], edges: list[Any]) -> dict[str, Any]:
    """Return the graph document of a reply."""
    names = ("source", "target", "targetHandle")
    return {
        "nodes": [{key: each[key] for key in ("id", "type", "data") if key in each} for each in nodes],
        "edges": [
            {**{name: each[name] for name in names}, "data": {"channel": each["channel"]}}
            for each in edges
        ],
    }  # fmt: skip


WAYS = {"literal": literal, "template": as_template, "flow": flow_wire, "link": link_wire}
Wrap = Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]]


def within(node_type: str, field: str, **data: Any) -> Wrap:
    def wrap(nodes: list[Any], edges: list[Any]) -> tuple[list[Any], list[Any]]:
        graph = {"nodes": nodes, "edges": edges}
        return [reply_node("outer", type=node_type, data={field: graph, **data})], []

    return wrap


LOOP, WHILE = within("loop", "body", items=[1]), within("while", "body", condition="index < 1")
DEPTHS: Mapping[str, Wrap] = {
    "top": lambda nodes, edges: (nodes, edges),
    "loop": LOOP,
    "while": WHILE,
    "inner": within("inner", "graph"),
    "a type of the operator": within("operators", "graph"),
    "a loop in a loop": lambda nodes, edges: LOOP(*LOOP(nodes, edges)),
}


def fields() -> Iterator[tuple[str, str]]:
    """Yield each type with each spelling of each of its fields."""
    for name in REGISTRY.names():
        for spelling in REGISTRY.type_info(name).data_fields:  # type: ignore[union-attr]
            yield name, spelling


def may(node_type: str, spelling: str, way: str) -> bool:
    """Return whether a plan may have a field in a way, from the declarations alone."""
    spec = REGISTRY.spec(node_type)
    (field,) = [each for each in spec.fields if spelling in each.spellings]
    offered = offered_fields(spec.type_info)
    if field.json_name == "tools" and way == "link":
        return True  # the port for tools
    is_open = any("{" in port.name for port in spec.type_info.inputs)
    has_socket = field.extra.get("socket", True) and spelling == field.json_name
    if not has_socket and way in ("flow", "link"):
        return is_open and not field.is_policy  # no socket; an input of its own
    if way in ("flow", "link"):
        return field.json_name in offered and not (field.is_policy or field.is_written)
    if field.is_policy and way == "template":
        return False
    return field.json_name in offered


def is_literal_field(node_type: str, spelling: str) -> bool:
    """Return whether the text of a field is literal in plans: a reply's braces are escaped."""
    facts = REGISTRY.type_info(node_type)
    assert facts is not None
    return facts.data_fields[spelling] in facts.plan_literals


LITERALS = [("agent", "systemPrompt"), ("llm", "system"), ("operators_agent", "systemPrompt")]


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_system_prompt_in_a_plan_is_literal_at_any_depth(depth: str) -> None:
    assert [each for each in fields() if is_literal_field(*each)] == LITERALS
    for node_type, field in LITERALS:
        prompt = {"llm": {"prompt": "Hi"}}.get(node_type, {})
        node = reply_node("n", type=node_type, data={field: "{{ goal }}", **prompt})
        drafted = DEPTHS[depth]([node], [])
        result = read(*drafted[0], edges=drafted[1])
        assert any("taken literally" in fix for fix in result.fixes)
        assert result.graph is not None, result.diagnostics
        written = json.dumps(result.graph.to_document())
        assert "{% raw %}{{ goal }}{% endraw %}" in written
        assert PlanCheck(REGISTRY, PlanRules()).findings(result.graph) == []
        graph, _ = read_graph(as_document(*drafted))
        codes = [each.code for each in PlanCheck(REGISTRY, PlanRules()).findings(graph)]
        assert codes == ["field-not-for-plans"]


def test_the_cards_of_plans_offer_no_templates_in_system_prompts() -> None:
    cards = {each.name: each for each in type_cards(REGISTRY, ["agent", "llm"])}
    assert "systemPrompt" not in cards["agent"].templates
    assert "system" not in cards["llm"].templates
    assert "userPrompt" in cards["agent"].templates


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("way", WAYS)
def test_every_field_is_refused_unless_it_is_offered(way: str, depth: str) -> None:
    wrong: list[str] = []
    for node_type, field in fields():
        result = read(
            *(drafted := DEPTHS[depth](*WAYS[way](node_type, field)))[0], edges=drafted[1]
        )
        codes = {each.code for each in result.diagnostics}
        refused = result.graph is None and bool(
            codes & {*CLOSED, "unknown-handle", "channel-mismatch"}
        )
        if not may(node_type, field, way) and not refused:
            wrong.append(f"{node_type}.{field} is taken: {sorted(codes)}")
        if may(node_type, field, way) and codes & CLOSED:
            wrong.append(f"{node_type}.{field} is refused: {sorted(codes)}")
    assert wrong == []


RUNTIME_WAYS = {**WAYS, "link": partial(link_wire, source="text")}
"""The ways in a plan that is made while the execution runs, which may have steps only."""
NAMES = PlanRules(node_types=tuple(REGISTRY.names()))
PLANNABLE = plannable_types(REGISTRY, NAMES)


class NotingPlanner(Planner):
    """A planner whose model replies by the goal; ``found`` has the errors of its last reply to each goal."""

    def __init__(self, way: str) -> None:
        self.found: dict[str, set[str]] = {}
        self.way = RUNTIME_WAYS[way]
        models = WatchedModel(self.reply_to)
        super().__init__(models, FakeProviders(), REGISTRY, Limits(), NAMES)

    def reply_to(self, request: ModelRequest) -> list[str]:
        _, goal, _ = re.split(r"GOAL (\S+) GOAL", request.prompt, maxsplit=1)
        nodes, edges = self.way(*goal.split("."))
        return [planner_reply(*nodes, edges=edges)]

    async def create_plan(self, prompt: str, *more: Any, **options: Any) -> Plan:
        try:
            return await super().create_plan(prompt, *more, **options)
        except PlanInvalid as error:
            self.found[prompt.split()[1]] = {each.code for each in error.diagnostics}
            raise


class BelievingPlanner(OneStepPlanner):
    """A planner that takes what the model writes as it is."""

    rules = NAMES

    def __init__(self, way: str) -> None:
        super().__init__()
        self.found: dict[str, set[str]] = {}
        self.way = RUNTIME_WAYS[way]

    async def create_plan(self, prompt: str, *more: Any, **options: Any) -> Plan:
        plan = await super().create_plan(prompt, *more, **options)
        document = as_document(*self.way(*prompt.split()[1].split(".")))
        return replace(plan, graph=read_graph(document)[0])


async def codes_while_it_runs(planner: Any) -> dict[str, set[str]]:
    """Have each field planned by a node of a running graph; return what each node met, by field.

    ``started`` is met where the plan may start; it is stopped there.
    """

    def admit(graph: Graph, written_by: WrittenBy) -> None:
        admission(REGISTRY, planner)(graph, written_by)
        raise PermanentError("it would run", code="started")

    ids = {f"n{number}": ".".join(each) for number, each in enumerate(fields())}
    nodes = [
        Node(
            each,
            "planner",
            each,
            data={"goal": f"GOAL {name} GOAL", "allowedNodeTypes": [name.split(".")[0], "text"]},
        )
        for each, name in ids.items()
    ]
    services, _ = services_with(lambda _: [], FakeProviders(), planner=planner)
    events: list[Event] = []
    execution = Execution(
        Program(Graph(tuple(nodes), ()), REGISTRY),
        execution_id="x",
        services=services,
        admit=admit,
        on_events=events.extend,
    )
    await execution.run()
    failed = {
        ids[str(event.path)]: event.data["error"]["code"]
        for event in events
        if event.type == "node.failed"
    }
    return {name: {code} | planner.found.get(name, set()) for name, code in failed.items()}


def is_inert(node_type: str, field: str, way: str) -> bool:
    """Return whether nothing reads a field: an edge to no socket, or a type that nodes run by themselves."""
    facts = REGISTRY.type_info(node_type)
    assert facts is not None
    sockets = {port.name for port in facts.inputs if port.channel == way}
    return facts.run_by_nodes or (way in ("flow", "link") and field not in sockets)


@pytest.mark.parametrize("planner", [NotingPlanner, BelievingPlanner])
@pytest.mark.parametrize("way", WAYS)
async def test_every_field_is_refused_in_a_plan_that_is_made_while_it_runs(
    way: str, planner: Any
) -> None:
    met = await codes_while_it_runs(planner(way))
    wrong: list[str] = []
    for node_type, field in fields():
        codes = met[f"{node_type}.{field}"]
        if planner is BelievingPlanner and is_inert(node_type, field, way):
            continue  # the check of the reply, which this planner leaves out, refuses it too
        is_closed = not may(node_type, field, way) or node_type not in PLANNABLE
        if planner is BelievingPlanner and way == "template":
            is_closed |= is_literal_field(node_type, field)
        if is_closed and "started" in codes:
            wrong.append(f"{node_type}.{field} is run: {sorted(codes)}")
        if not is_closed and codes & CLOSED:
            wrong.append(f"{node_type}.{field} is refused: {sorted(codes)}")
    assert wrong == []


@pytest.mark.parametrize("way", WAYS)
def test_the_sweep_has_fields_of_both_kinds(way: str) -> None:
    answers = [may(*each, way) for each in fields()]
    assert answers.count(True) >= 40
    assert answers.count(False) >= 40


def test_fields_of_the_library_are_closed_until_they_are_named() -> None:
    class NewAgent(Agent):
        """Its data."""

        class Data(AgentData):
            """Its data."""

            brand_new: str = ""

    NewAgent.__module__ = Agent.__module__
    facts = Registry([NewAgent]).type_info("agent")
    assert facts is not None
    assert "brandNew" in facts.data_fields
    assert "brandNew" not in offered_fields(facts)
    assert (FLOW, "brandNew") in facts.closed_sockets


def test_a_type_of_the_operator_offers_what_is_not_hidden() -> None:
    facts, derived = REGISTRY.type_info("operators"), REGISTRY.type_info("operators_agent")
    assert facts is not None
    assert derived is not None
    assert [*offered_fields(facts)] == ["open", "aliased", "graph", "flow"]
    assert {*offered_fields(derived)} >= {"tone", "userPrompt"}
    assert {"images", "approval", "tools"}.isdisjoint(offered_fields(derived))


def test_the_prompt_and_the_schema_offer_what_a_plan_may_set() -> None:
    rules = PlanRules()
    for name in REGISTRY.names():
        facts = REGISTRY.type_info(name)
        assert facts is not None
        offered = {*offered_fields(facts)}
        (card,) = type_cards(REGISTRY, [name], rules)
        nodes = plan_schema(REGISTRY, [name], rules)["properties"]["steps"]["items"]["properties"]
        in_schema = {*nodes.get("data", {"properties": {}})["properties"]}
        outside = {"provider", "model"}  # beside data in a reply
        assert {text.partition(" ")[0] for text in card.fields} == offered - outside, name
        assert in_schema == offered - outside, name


def test_what_a_plan_is_shown_of_a_policy_field_has_no_socket_for_anybody() -> None:
    for name in REGISTRY.names():
        facts = REGISTRY.type_info(name)
        assert facts is not None
        fed = {port.name for port in facts.inputs if port.side == "bottom" and port.type != "tool"}
        assert fed.isdisjoint(facts.policy_fields), name


POLICY_FIELDS = [
    ("agent", "approval"), ("agent", "delegate"), ("agent", "tools"), ("approval", "timeoutAction"),
    ("approval", "timeoutS"), ("call_tool", "approval"), ("call_tool", "flow"),
    ("call_tool", "server"), ("call_tool", "tool"), ("fetch", "secretHeaders"), ("flow_tool", "approval"), ("http_tool", "approval"),
    ("http_tool", "secretHeaders"), ("mcp_server", "approval"), ("mcp_server", "server"), ("planner", "allowedNodeTypes"),
    ("sse", "secretHeaders"), ("tool", "approval"), ("toolset", "approval"),
    ("webhook_reply", "headers"),
]  # fmt: skip


def test_the_fields_that_decide_what_is_allowed() -> None:
    """A field that no person may wire is a change of what graphs can do: it is listed here."""
    library = [t.node_type for t in LIBRARY if t.node_type != "tool_approval"]
    found = [(name, each) for name in library for each in REGISTRY.type_info(name).policy_fields]  # type: ignore[union-attr]
    assert sorted(found) == sorted(POLICY_FIELDS)


def test_web_search_is_for_plans_where_the_operator_allows_it() -> None:
    searches = reply_node("n", data={"tools": {"web_search": True}})
    allowed = CONTEXT._replace(rules=PlanRules(web_search=True))
    assert {d.code for d in read(searches).diagnostics} == {"field-not-for-plans"}
    assert read_reply(planner_reply(searches), allowed).graph is not None
    more = reply_node("n", data={"tools": {"web_search": True, "subagents": True}})
    refused = read_reply(planner_reply(more), allowed)
    assert [d.code for d in refused.diagnostics] == ["field-not-for-plans"]
    assert "data.tools.subagents" in refused.diagnostics[0].message
    (card,) = type_cards(REGISTRY, ["agent"], allowed.rules)
    assert "tools ({web_search: boolean})" in card.fields


def test_what_a_type_does_not_know_is_dropped_and_said() -> None:
    result = read(reply_node("n", data={"colour": "red"}))
    assert result.graph is not None
    assert "colour" not in result.graph.nodes[0].data
    assert "dropped data.colour of node 'n': type 'agent' has no such field" in result.fixes


def test_a_misspelt_field_goes_back_to_the_model() -> None:
    result = read(reply_node("n", data={"user_prompt": "Say hello"}))
    assert [(d.code, d.hint) for d in result.diagnostics] == [
        ("invalid-data", "did you mean 'userPrompt'?")
    ]


class Unplanned(OfTheOperator):
    """A type of the operator that leaves itself out of plans."""

    node_type = "unplanned"
    planned = False


@pytest.mark.parametrize("depth", [each for each in DEPTHS if each != "a type of the operator"])
def test_a_type_that_is_not_for_plans_is_in_none_at_any_depth(depth: str) -> None:
    registry = Registry([*LIBRARY, Unplanned])
    nodes, edges = DEPTHS[depth]([reply_node("n", type="unplanned")], [])
    context = CONTEXT._replace(catalogue=registry, node_types=plannable_types(registry))
    found = read_reply(planner_reply(*nodes, edges=edges), context)
    assert "type-not-allowed" in {each.code for each in found.diagnostics}
    graph, _ = read_graph(as_document(nodes, edges))
    with pytest.raises(PermanentError, match="which plans of models may not use"):
        admission(registry, None)(graph, WrittenBy())


@pytest.mark.parametrize("node_type", ["unplanned", "not_known_to_the_planner"])
def test_a_type_that_the_planner_does_not_know_is_not_admitted(node_type: str) -> None:
    planner = Planner(WatchedModel(""), FakeProviders(), REGISTRY)
    graph, _ = read_graph({"nodes": [{"id": "n", "type": node_type}], "edges": []})
    with pytest.raises(PermanentError, match="which plans of models may not use"):
        admission(Registry([*LIBRARY, Unplanned]), planner)(graph, WrittenBy())


class Rendered(NodeType):
    """A type of the operator that resolves templates in its graph before it runs."""

    node_type = "rendered"
    template_fields: ClassVar[tuple[str, ...]] = ("graph", "flow")

    class Data(NodeData):
        """Its data."""

        graph: dict[str, Any] | None = graph_field()
        flow: FlowName | None = None

    async def run(self, data: Any, inputs: Any, context: Any) -> None:
        return None


@pytest.mark.parametrize(
    "data", [{"graph": {"nodes": "{{ input }}"}}, {"flow": {"name": "{{ input }}"}}]
)
def test_no_template_makes_a_graph_or_the_name_of_a_flow(data: dict[str, Any]) -> None:
    registry = Registry([Rendered, *LIBRARY])
    graph, _ = read_graph({"nodes": [{"id": "n", "type": "rendered", "data": data}], "edges": []})
    found = PlanCheck(registry, PlanRules()).findings(graph)
    assert [each.code for each in found] == ["field-not-for-plans"]


@pytest.mark.parametrize(("node_type", "field"), POLICY_FIELDS)
def test_people_may_not_wire_what_decides_either(node_type: str, field: str) -> None:
    for way in (flow_wire, as_template):
        nodes, edges = way(node_type, field)
        codes = {each.code for each in read_and_check(as_document(nodes, edges), REGISTRY)[1]}
        assert codes & {"policy-field", "channel-mismatch"}, (way.__name__, codes)
