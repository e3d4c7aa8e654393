"""The contract that every registered node type fulfils."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jsonschema_rs
import pytest
from pydantic import BaseModel, ValidationError

import planwave
from planwave.errors import NodeError
from planwave.events import Event
from planwave.graph.checking.checker import read_and_check
from planwave.graph.inputs import Inputs
from planwave.graph.model import FLOW, LINK, Channel, DataValue, Graph, Json, Node, Port
from planwave.graph.ports import find_output, find_port, has_output
from planwave.graph.protocols import NodeTypeInfo
from planwave.nodes.agents.tool_function import tool
from planwave.nodes.authoring.data_fields import DataField, coerce, fields_of, is_open
from planwave.nodes.authoring.field_wires import FieldBundle
from planwave.nodes.authoring.function import node
from planwave.nodes.authoring.node_type import BaseNode, stringify
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.nodes.services import NodeServices
from planwave.providers.protocols import ModelReply, ModelRequest, ToolCall
from tests.support.graph.bad_inputs import bad_inputs
from tests.support.graph.builders import make_edge
from tests.support.llm.fake_providers import ListedProviders
from tests.support.mcp.servers import servers_of, ticket_server
from tests.support.nodes.nested_graphs import (
    FakeFlowStore,
    graph_document,
    node_document,
    with_long_render_time,
)
from tests.support.nodes.node_context import context_for, make_inputs, services_with
from tests.support.outbound.fake_network import PUBLIC, FakeNetwork, response

REGISTRY = Registry(LIBRARY, providers=ListedProviders({"openai": ["m", "n"]}))


@node("contract_function", registry=REGISTRY)
async def _function(input: str, suffix: str = "") -> str:
    """Add a suffix."""
    return input + suffix


@node("contract_stream", registry=REGISTRY)
async def _stream(input: str) -> Any:
    """Say the input in two pieces."""
    yield input[:1]
    yield input[1:]


@tool(effect="read", registry=REGISTRY)
def look_up_order(number: str) -> str:
    """Return the state of an order."""
    return f"The order {number} is on its way."


@tool(effect="write", registry=REGISTRY)
def cancel_order(number: str) -> str:
    """Cancel an order."""
    return f"The order {number} is cancelled."


FLOWS = FakeFlowStore(
    **{
        "refund-order": [
            graph_document(
                node_document("start", "start"),
                node_document("refund", "text", text="{{ input.number }} is refunded."),
                edges=[("start", "refund")],
            )
        ]
    }
)


def _after_hello(node_type: str, data: dict[str, Any]) -> dict[str, Any]:
    nodes = [
        {"id": "hello", "type": "text", "data": {"text": "hello"}},
        {"id": "n", "type": node_type, "data": data},
    ]
    edge = {"id": "e", "source": "hello", "target": "n", "data": {"channel": FLOW}}
    return {"nodes": nodes, "edges": [edge]}


OWN_EXAMPLES: Mapping[str, Mapping[str, Json]] = {
    "contract_function": _after_hello("contract_function", {"suffix": "!"}),
    "contract_stream": _after_hello("contract_stream", {}),
}
"""Graphs for the types that are made of functions, which bring none."""


def socket_fields_of(data: Any) -> list[DataField]:
    """Return the data fields that wires can feed."""
    return [
        field
        for field in fields_of(data)
        if field.extra.get("socket", True) and not field.is_policy
    ]


EXPECTED_OUTPUTS: Mapping[str, Mapping[str, Json]] = {
    "agent": {"facts.output": "[m t=None] Tell me three facts about otters."},
    "approval": {
        "ask.approve": "We are late, sorry.",
        "sent.output": "We are late, sorry.",
    },
    "boolean": {"passed.output": True},
    "call_tool": {
        "look_up.output": "The order 1042 is on its way.",
        "say.output": "The order 1042 is on its way.",
    },
    "chat": {"reply.output": "[m t=None] And in winter?"},
    "client": {"ask.output": "[m t=0.0] Name a river."},
    "chat_start": {
        "asked.message": "What do robins eat?",
        "reply.output": "[m t=None] What do robins eat?",
    },
    "conditional": {"route.de": {"lang": "de"}, "german.output": "Guten Tag!"},
    "contract_function": {"n.output": "hello!"},
    "contract_stream": {"n.output": "hello"},
    "end": {"result.output": "It is 42.", "check.output": "9 characters"},
    "fetch": {"city.status": 200, "say.output": "Oslo is at 59.9°."},
    "flow_tool": {"clerk.output": "[m t=None] 1042 is refunded."},
    "http_tool": {"clerk.output": '[m t=None] {"state":"sent"}'},
    "if": {"large.condition-0": {"total": 120}, "review.output": "Somebody looks at it."},
    "inner": {"greet.output": "Hello Ada, welcome!", "greet.short": "Hello Ada"},
    "json": {"person.output": {"name": "Ada", "tags": ["new"]}},
    "llm": {"person.output": {"name": "Ada", "city": "London"}},
    "loop": {"shout.output": ["0: ONE!", "1: TWO!", "2: THREE!"]},
    "mcp_server": {"triage.output": '[m t=None] {"result":[]}'},
    "merge": {"both.output": {"pro": "It is fast.", "con": "It is dear."}},
    "model": {"haiku.output": "[m t=0.0] Write a haiku on rivers."},
    "number": {"price.output": 12.5, "total.output": 37.5},
    "parser": {"card.output": {"line": "Ada lives in London."}},
    "planner": {"solve.output": "done: Explain in two steps why the sky is blue"},
    "send_message": {"tell.output": "Dear all", "done.output": "Dear all"},
    "start": {"start.output": "Ada", "hello.output": "Hello, Ada!"},
    "switch": {"kind.case-1": {"kind": "refund"}, "repay.output": "To accounting."},
    "text": {"greeting.output": "Hello, Ada!"},
    "tool": {"clerk.output": "[m t=None] The order 1042 is on its way."},
    "toolset": {"clerk.output": "[m t=None] The order 1042 is on its way."},
    "tool_approval": {"create_ticket.output": {"decision": "approve", "note": ""}},
    "transform": {"order.output": {"who": "ADA", "total": 12}},
    "sse": {
        "prices.output": {"event": None, "id": None, "data": None},
        "note.output": "New: ",
    },
    "schedule": {
        "morning.output": {
            "slot": None,
            "scheduled_at": None,
            "timezone": "Europe/Berlin",
            "missed": 0,
        },
        "report.output": "The report in the time of Europe/Berlin.",
    },
    "webhook": {
        "hook.output": {"body": {"order": "A-17"}},
        "note.output": "Order A-17 has arrived.",
    },
    "webhook_reply": {
        "hook.output": {"body": "A-17"},
        "thanks.output": "Order A-17 is accepted.",
        "reply.output": {"body": "Order A-17 is accepted.", "status": 201, "headers": {}},
        "shipping.output": "Ship A-17.",
    },
    "user_input": {"ask.message": "What is a monad?", "said.output": "What is a monad?"},
    "void": {"said.output": "Nobody has to read this."},
    "wait": {"cool_down.output": "Dear all", "sent.output": "Dear all"},
    "while": {"grow.output": "abababababababab", "grow.iterations": 3},
}
"""The outputs of the example of each type, by node and handle, with a model that calls its first tool
and repeats its prompt: ``[model t=temperature] prompt``, or one JSON object if JSON is requested."""

names = pytest.mark.parametrize("name", REGISTRY.names())
RUNNABLE = [n for n in REGISTRY.names() if not REGISTRY.type_info(n).stands_in]  # type: ignore[union-attr]
runnable = pytest.mark.parametrize("name", RUNNABLE)


def facts_of(name: str) -> NodeTypeInfo:
    facts = REGISTRY.type_info(name)
    assert facts is not None
    return facts


def example_of(name: str) -> Mapping[str, Json]:
    return OWN_EXAMPLES.get(name) or REGISTRY.describe(name)["example"]


def sample_of(name: str) -> tuple[Graph, Node]:
    """Return the example of a type as a graph, and the node of that type in it."""
    graph, findings = read_and_check(json.dumps(example_of(name)), REGISTRY)
    assert graph is not None
    expected = ["placeholder"] if facts_of(name).stands_in else []
    assert [found.code for found in findings] == expected
    return graph, next(each for each in graph.nodes if each.type == name)


@names
def test_a_type_has_a_purpose_of_one_line(name: str) -> None:
    facts = facts_of(name)
    assert facts.node_type == name
    assert facts.purpose
    assert "\n" not in facts.purpose
    assert len(facts.purpose) <= 200


@names
def test_a_type_has_a_short_summary_in_the_words_of_people(name: str) -> None:
    facts = facts_of(name)
    if REGISTRY.origin(name).kind != "library":
        assert facts.summary == facts.purpose
        return
    assert 0 < len(facts.summary) <= 50
    assert facts.summary.endswith(".")
    assert not set("{}`_") & set(facts.summary), "it speaks of no template and no field"


@names
def test_ports_are_distinct_and_fixed_names_precede_open_ones(name: str) -> None:
    facts = facts_of(name)
    for ports in (facts.inputs, facts.outputs):
        keys = [(port.name, port.channel) for port in ports]
        assert len(set(keys)) == len(keys)
    openness = [is_open(port) for port in facts.inputs]
    assert openness == sorted(openness)
    assert facts.executes or facts.materializes
    assert facts.materializes == any(port.channel == LINK for port in facts.outputs)
    for port in facts.inputs:
        assert port.multiple or port.name != "input"


@names
def test_the_schema_is_json_schema_and_describes_the_data(name: str) -> None:
    schema = json.loads(json.dumps(REGISTRY.schema(name)))
    jsonschema_rs.meta.validate(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    facts = facts_of(name)
    marked = tuple(k for k, v in schema.get("properties", {}).items() if v.get("template"))
    assert facts.template_fields == marked
    fields = fields_of(REGISTRY.implementation(name).Data)
    properties = schema.get("properties", {})
    assert [field.json_name for field in fields] == [
        known for known, schema in properties.items() if "sameAs" not in schema
    ]
    assert {other: field.json_name for field in fields for other in field.aliases} == {
        known: schema["sameAs"] for known, schema in properties.items() if "sameAs" in schema
    }


@names
def test_every_data_field_is_a_socket_on_both_channels(name: str) -> None:
    for field in socket_fields_of(REGISTRY.implementation(name).Data):
        for channel in (FLOW, LINK):
            port = find_port(facts_of(name).inputs, field.json_name, channel)
            assert port is not None
            assert (port.name, port.channel) == (field.json_name, channel)
            assert not port.multiple


@names
def test_the_description_of_a_type_survives_json(name: str) -> None:
    described = json.loads(json.dumps(REGISTRY.describe(name)))
    facts = facts_of(name)
    shown = {"label": "", "side": "", "color": "", "shape": ""}
    for direction, ports in (("inputs", facts.inputs), ("outputs", facts.outputs)):
        described_ports = [Port(**(port | shown)) for port in described.pop(direction)]
        assert described_ports == [port._replace(**shown) for port in ports]
    assert tuple(described.pop("template_fields")) == facts.template_fields
    assert described.pop("schema") == REGISTRY.schema(name)
    assert described.pop("example") == REGISTRY.describe(name)["example"]
    assert described == {field: getattr(facts, field) for field in described}
    assert {"node_type", "purpose", "entry", "effect"} <= described.keys()


@names
def test_the_data_of_the_example_are_valid_and_unknown_fields_are_not(name: str) -> None:
    graph, sample = sample_of(name)
    jsonschema_rs.validate(REGISTRY.schema(name), dict(sample.data))
    faulty = sample._replace(data={**sample.data, "no_such_field": 1})
    within = Graph(tuple(faulty if n is sample else n for n in graph.nodes), graph.edges)
    (diagnostic,) = REGISTRY.check(faulty, within)
    assert (diagnostic.code, diagnostic.pointer) == ("invalid-data", "/data/no_such_field")
    assert diagnostic.node == sample.id
    assert not jsonschema_rs.is_valid(REGISTRY.schema(name), dict(faulty.data))


def answer(request: ModelRequest) -> list[str] | list[ModelReply]:
    if request.tools and not any(each.role == "tool" for each in request.messages):
        call = ToolCall("call_1", request.tools[0].name, '{"number": "1042"}')
        return [ModelReply("", request.provider, request.model, "tool_calls", tool_calls=(call,))]
    asked = request.prompt or request.messages[-1].text
    if "JSON" in asked:
        return ['{"name": "Ada", ', '"city": "London"}']
    return [f"[{request.model} t={request.temperature}] ", asked]


async def run_of(document: Mapping[str, Json]) -> tuple[planwave.RunResult, list[Event]]:
    """Run a graph; answer each approval with its first action."""
    found = response(b'{"name": "Oslo", "latitude": 59.9}', kind="application/json")
    if "http_tool" in str(document):
        found = response(b'{"state": "sent"}', kind="application/json")
    names = {"geo.example.com": [PUBLIC], "shop.example.com": [PUBLIC]}
    network = FakeNetwork(names, found)
    with TemporaryDirectory() as directory:
        servers = servers_of(tickets=ticket_server(Path(directory)))
        services, _ = services_with(answer, outbound=network.client(), flows=FLOWS, mcp=servers)
        return await _run_with(services, document)


async def _run_with(
    services: NodeServices, document: Mapping[str, Json]
) -> tuple[planwave.RunResult, list[Event]]:
    built = planwave.build(dict(document), registry=REGISTRY)
    run = with_long_render_time(planwave.run(built, services=services))
    events: list[Event] = []
    async for event in run:
        events.append(event)
        if event.type == "node.waiting" and event.data["request"]["kind"] == "approval":
            decision = {"decision": event.data["request"]["actions"][0], "note": ""}
            run.answer(event.data["request_id"], decision)
    return run.result(), events


@runnable
async def test_the_example_completes_with_the_expected_outputs(name: str) -> None:
    result, events = await run_of(example_of(name))
    assert result.error is None
    assert result.status == "completed"
    types = {each.id: each.type for each in sample_of(name)[0].nodes}
    outputs = {f"{n}.{h}": v.value for n, given in result.outputs.items() for h, v in given.items()}
    assert {place: outputs.get(place) for place in EXPECTED_OUTPUTS[name]} == EXPECTED_OUTPUTS[name]
    for node_id, outputs in result.outputs.items():
        facts = facts_of(types[node_id])
        for handle, value in outputs.items():
            assert has_output(facts, handle)
            port = find_output(facts.outputs, handle, FLOW)
            assert port is None or REGISTRY.accepts(port.type, value.type)
            assert json.loads(json.dumps(value.value, allow_nan=False)) == value.value
    for event in events:
        json.dumps(event.data, allow_nan=False)


@pytest.mark.parametrize(
    "name",
    [
        # Its example runs above; each run starts a server of the SDK.
        pytest.param(name, marks=pytest.mark.slow) if name == "mcp_server" else name
        for name in RUNNABLE
    ],
)
async def test_the_same_data_and_inputs_give_the_same_outputs(name: str) -> None:
    first, second = [(await run_of(example_of(name)))[0].outputs for _ in range(2)]
    assert first == second


def test_every_type_has_an_example_with_expected_outputs() -> None:
    assert set(EXPECTED_OUTPUTS) == set(RUNNABLE)
    assert set(REGISTRY.names()) - set(RUNNABLE) == {"placeholder"}
    assert all(example_of(name) for name in REGISTRY.names())


WIRED_VALUES: Sequence[Json] = (
    "wired", "", 1, 404, 0.5, True, None, [], ["wired"], {}, {"wired": "text"},
    [{"role": "user", "content": "wired"}], [{"operator": "exists"}],
    [{"name": "f", "mime": "text/plain", "url": "https://example.org/f"}],
    {"id": "wired"}, {"nodes": [], "edges": []}, {"web_search": True},
)  # fmt: skip
"""Values that wires may bring; for every field of the library one of them is good."""


def choices_in(schema: Any) -> list[Json]:
    """Return the values that a schema lists, at any depth."""
    parts = schema.values() if isinstance(schema, dict) else schema
    if not isinstance(schema, dict | list):
        return []
    own = schema.get("enum", []) if isinstance(schema, dict) else []
    return [*own, *(value for part in parts for value in choices_in(part))]


def read(kind: BaseNode, data: Mapping[str, Json]) -> BaseModel | None:
    """Return data validated by their model, or None if they are invalid."""
    texts = {
        f.json_name: f.nullable for f in fields_of(kind.Data) if f.template and f.socket == "text"
    }
    try:
        return kind.Data.model_validate(stringify(data, texts)) if kind.Data else None
    except ValidationError:
        return None


async def fill(
    kind: BaseNode, field: DataField, channel: Channel, data: Mapping[str, Json], value: Json
) -> Any:
    """Return the data of a node after a wire has set one field."""
    port = find_port(facts_of(kind.node_type).inputs, field.json_name, channel)
    assert port is not None
    links: dict[tuple[str, str], list[Any]] = {}
    edges = [make_edge("s0", "n", channel=channel, target_handle=field.json_name)]
    inputs = make_inputs((field.json_name, value)) if channel == FLOW else Inputs()
    if channel == LINK:
        bundled = port.type != field.socket
        artefact = (
            FieldBundle(port.type, {field.json_name: value}) if bundled else DataValue("any", value)
        )
        links[("n", field.json_name)] = [artefact]
    context = context_for(Node("n", kind.node_type, "N"), edges=edges, links=links)
    fed = await kind.read_wires(data, inputs, context)
    written = any(name in data for name in (field.json_name, *field.aliases))
    assert fed[field.json_name].overridden == (("inline",) if written else ())
    ready, left = kind.prepare(data, inputs, fed, context)
    assert not left.arrivals
    return ready


@names
@pytest.mark.parametrize("channel", [FLOW, LINK])
async def test_a_wire_into_any_field_has_the_effect_of_the_same_value_in_the_data(
    name: str, channel: Channel
) -> None:
    kind: BaseNode = REGISTRY.implementation(name)
    written = dict(sample_of(name)[1].data)
    properties = REGISTRY.schema(name).get("properties", {})
    for field in socket_fields_of(kind.Data):
        plain = {k: v for k, v in written.items() if k not in (field.json_name, *field.aliases)}
        accepted = 0
        for value in (*WIRED_VALUES, *choices_in(properties[field.json_name])):
            content, refused = coerce(
                field.socket, DataValue("any", value), nullable=field.nullable
            )
            expected = None if refused else read(kind, {**plain, field.json_name: content})
            if expected is not None:
                assert await fill(kind, field, channel, written, value) == expected
                assert await fill(kind, field, channel, plain, value) == expected
                accepted += 1
                continue
            with pytest.raises(NodeError) as caught:
                await fill(kind, field, channel, written, value)
            assert caught.value.code == ("type-mismatch" if refused else "invalid-data")
            assert f"data.{field.json_name}" in str(caught.value)
            if refused:
                assert str(caught.value).startswith("node 'n': ")
                assert f"takes {field.socket}, " in str(caught.value)
                assert str(caught.value).endswith(f" brings {refused}")
        assert accepted, f"no value of WIRED_VALUES is good for {field.json_name}: add one"


CODES = {
    "GRF-078": ("unknown-provider", "/data/provider"),
    "GRF-079": ("invalid-data", "/data/model"),
    "GRF-083": ("invalid-data", "/data/retries"),
    "GRF-084": ("invalid-data", "/data/stream"),
}


@pytest.mark.skipif(not bad_inputs(), reason="no ../shared/bad_inputs.jsonl")
def test_invalid_llm_data_of_the_shared_collection_are_found() -> None:
    cases = {line["id"]: line["input"] for line in bad_inputs() if line["id"] in CODES}
    assert cases.keys() == CODES.keys()
    for name, document in cases.items():
        (written,) = document["nodes"]
        read = Node(written["id"], written["type"], "N", data=written["data"])
        found = [(d.code, d.pointer) for d in REGISTRY.check(read, Graph((read,), ()))]
        assert CODES[name] in found, name
