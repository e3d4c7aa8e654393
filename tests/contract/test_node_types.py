"""What every registered node type keeps, whoever wrote it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planwave.graph.capabilities import FlowExecutor, Resumable, Suspension
from planwave.graph.model import Graph, Node, Port, make_edge
from planwave.graph.ports import has_output
from planwave.graph.values import DataValue, Inputs
from planwave.nodes.function import node
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.nodes.sockets import FIELD_SIDE, is_open
from tests.fakes.node_context import (
    ListedProviders,
    arrivals,
    context_for,
    outcome_of,
    services_with,
)

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


BODY = {"nodes": [{"id": "b", "type": "text", "data": {"text": "t"}}], "edges": []}
DATA: dict[str, dict[str, Any]] = {
    "agent": {"userPrompt": "Say hi", "maxTokens": 5},
    "llm": {"prompt": "Say hi", "jsonOutput": True},
    "text": {"text": "hello"},
    "parser": {"template": {"a": ["b"]}},
    "approval": {"prompt": "Go on with {{ input }}?", "actions": ["yes", "no"]},
    "if": {"conditions": [{"operator": "contains", "value": "h"}]},
    "start": {"initialInput": "hello"},
    "loop": {"items": ["a", "b"], "body": BODY},
    "while": {"condition": "'false'", "body": BODY},
    "inner": {"graph": BODY},
    "contract_function": {"suffix": "!"},
}
"""Good data of the types that need or take some."""

names = pytest.mark.parametrize("name", REGISTRY.names())


@names
def test_a_type_says_what_it_is_for_in_one_line(name: str) -> None:
    facts = REGISTRY.facts(name)
    assert facts is not None
    assert facts.node_type == name
    assert facts.purpose
    assert "\n" not in facts.purpose
    assert len(facts.purpose) <= 200


@names
def test_ports_are_distinct_and_in_the_order_of_precision(name: str) -> None:
    facts = REGISTRY.facts(name)
    assert facts is not None
    for ports in (facts.inputs, facts.outputs):
        keys = [(port.name, port.channel) for port in ports]
        assert len(set(keys)) == len(keys)
    openness = [is_open(port) for port in facts.inputs]
    assert openness == sorted(openness)
    assert facts.outputs
    if not facts.entry:
        assert any(port.side != FIELD_SIDE for port in facts.inputs)
    for port in facts.inputs:
        assert port.multiple or port.name != "input"


@names
def test_the_schema_describes_the_data_and_is_json(name: str) -> None:
    schema = json.loads(json.dumps(REGISTRY.schema(name)))
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert set(DATA.get(name, {})) <= set(schema.get("properties", {}))
    facts = REGISTRY.facts(name)
    assert facts is not None
    marked = tuple(k for k, v in schema.get("properties", {}).items() if v.get("template"))
    assert facts.template_fields == marked


@names
def test_facts_survive_the_way_through_json(name: str) -> None:
    described = json.loads(json.dumps(REGISTRY.describe(name)))
    facts = REGISTRY.facts(name)
    assert facts is not None
    assert [Port(**port) for port in described.pop("inputs")] == list(facts.inputs)
    assert [Port(**port) for port in described.pop("outputs")] == list(facts.outputs)
    assert tuple(described.pop("template_fields")) == facts.template_fields
    assert described.pop("schema") == REGISTRY.schema(name)
    assert isinstance(described.pop("example"), dict)
    assert described == {field: getattr(facts, field) for field in described}
    assert {"node_type", "purpose", "entry", "effect"} <= described.keys()


@names
def test_good_data_have_no_faults_and_unknown_fields_do(name: str) -> None:
    good = Node("n", name, "N", data=DATA.get(name, {}))
    edges = (make_edge("before", "n"), make_edge("n", "after", source_handle="yes"))
    assert list(REGISTRY.check(good, Graph((good,), edges))) == []
    faulty = good._replace(data={**good.data, "no_such_field": 1})
    (diagnostic,) = REGISTRY.check(faulty, Graph((faulty,), edges))
    assert (diagnostic.code, diagnostic.pointer) == ("invalid-data", "/data/no_such_field")
    assert diagnostic.node == "n"


async def answered(implementation: Resumable, asking: Any, inputs: Inputs, context: Any) -> Any:
    """Let a node wait, and go on with what a store would give back and with its first action."""
    waiting = await asking
    assert isinstance(waiting, Suspension)
    request, state = json.loads(json.dumps([waiting.request, waiting.state], allow_nan=False))
    answer = {"decision": request["actions"][0], "note": ""}
    return await implementation.resume({}, inputs, context, state, answer)


@names
@pytest.mark.parametrize("inputs", [arrivals("hello"), arrivals("h", {"k": [1, None]})])
async def test_a_type_runs_and_gives_json_on_its_own_handles(name: str, inputs: Inputs) -> None:
    implementation = REGISTRY.implementation(name)
    assert isinstance(implementation, FlowExecutor)
    services, _ = services_with(lambda _: ['{"said": ', '"hi"}'])
    context = context_for(Node("n", name, "N"), services=services)
    given = implementation.execute(DATA.get(name, {}), inputs, context)
    if isinstance(implementation, Resumable):
        given = answered(implementation, given, inputs, context)
    result, events = await outcome_of(given)
    assert result.outputs
    facts = REGISTRY.facts(name)
    assert facts is not None
    for handle, value in result.outputs.items():
        assert has_output(facts, handle)
        assert isinstance(value, DataValue)
        assert json.loads(json.dumps(value.value, allow_nan=False)) == value.value
    for event in events:
        json.dumps(event.data, allow_nan=False)
        assert (event.node_id, event.node_type, event.run_id) == ("n", name, "run-1")


BAD_INPUTS = Path(__file__).resolve().parents[2] / ".." / "shared" / "bad_inputs.jsonl"
CODES = {
    "GRF-078": ("unknown-provider", "/data/provider"),
    "GRF-079": ("invalid-data", "/data/model"),
    "GRF-083": ("invalid-data", "/data/retries"),
    "GRF-084": ("invalid-data", "/data/stream"),
}


@pytest.mark.skipif(not BAD_INPUTS.is_file(), reason="the shared collection is not here")
def test_bad_llm_data_of_the_shared_collection_are_caught() -> None:
    lines = map(json.loads, BAD_INPUTS.read_text("utf-8").splitlines())
    cases = {line["id"]: line["input"] for line in lines if line["id"] in CODES}
    assert cases.keys() == CODES.keys()
    for name, document in cases.items():
        (written,) = document["nodes"]
        read = Node(written["id"], written["type"], "N", data=written["data"])
        found = [(d.code, d.pointer) for d in REGISTRY.check(read, Graph((read,), ()))]
        assert CODES[name] in found, name
