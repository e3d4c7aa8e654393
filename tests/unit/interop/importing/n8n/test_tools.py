"""What a model fills in of n8n's tools are arguments; what is fixed there, it cannot change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planwave.interop.importing.importer import Imported
from tests.support.interop.imports import findings_of, outcomes
from tests.support.interop.n8n import CHAIN, by_name, imported, node, workflow

_URL = "https://a.example.com/x"
_TEXT = {"type": "string"}


def _tool(kind: str, parameters: dict[str, Any], version: float = 1) -> Imported:
    agent = node("Agent", f"{CHAIN}agent", {"promptType": "define", "text": "x"})
    model = node("Model", f"{CHAIN}lmChatOpenAi", {"model": "gpt-4o-mini"})
    tool = node("Tool", CHAIN + kind, parameters, version=version)
    ways = "Start > Agent, Model >ai_languageModel> Agent, Tool >ai_tool> Agent"
    return imported(workflow(node("Start", "manualTrigger"), agent, model, tool, ways=ways))


def _made(made: Imported) -> dict[str, Any]:
    assert "placeholder" not in outcomes(made).values()
    assert {each.code for each in findings_of(made)} <= {"unknown-flow"}
    return by_name(made)["Tool"]["data"]


def _request(**parameters: Any) -> Imported:
    return _tool("toolHttpRequest", {"url": _URL, **parameters})


def _pairs(*values: tuple[str, Any]) -> dict[str, Any]:
    given = [
        {"name": name} if value is None else {"name": name, "value": value, "valueProvider": "fieldValue"}
        for name, value in values
    ]  # fmt: skip
    return {"values": given}


def test_fixed_values_of_the_query_stand_in_the_address() -> None:
    data = _made(
        _request(
            sendQuery=True,
            parametersQuery=_pairs(("q", None), ("n", "={{ 5 }}"), ("t", "a b&c"), ("from", "{day}")),
            placeholderDefinitions={"values": [{"name": "day", "type": "string", "description": "A day"}]},
        )
    )  # fmt: skip
    assert data["url"] == f"{_URL}?n=5&t=a%20b%26c&from={{day}}"
    assert data["parameters"] == {
        "type": "object", "properties": {"q": _TEXT, "day": {**_TEXT, "description": "A day"}},
        "required": ["q", "day"],
    }  # fmt: skip


def test_what_a_model_fills_in_of_a_query_stays_there_beside_a_body() -> None:
    data = _made(
        _request(
            method="POST", sendQuery=True, parametersQuery=_pairs(("page", None)), sendBody=True,
            parametersBody=_pairs(("text", None), ("limit", "={{ {most: 5, list: [-1]} }}")),
        )
    )  # fmt: skip
    assert data["url"] == f"{_URL}?page={{page}}"
    assert data["parameters"]["properties"] == {
        "page": _TEXT, "text": _TEXT, "limit": {"const": {"most": 5, "list": [-1]}},
    }  # fmt: skip
    assert data["parameters"]["required"] == ["page", "text", "limit"]


def test_a_body_in_json_is_a_schema_of_what_is_open_in_it() -> None:
    body = {"id": 7, "who": {"name": "{name}", "zone": "UTC"}, "tags": ["a"]}
    data = _made(
        _request(method="PUT", sendBody=True, specifyBody="json", jsonBody=json.dumps(body))
    )
    who = {
        "type": "object",
        "properties": {"name": _TEXT, "zone": {"const": "UTC"}},
        "required": ["name", "zone"],
    }
    assert data["parameters"] == {
        "type": "object", "properties": {"id": {"const": 7}, "who": who, "tags": {"const": ["a"]}},
        "required": ["id", "who", "tags"],
    }  # fmt: skip


@pytest.mark.parametrize(
    "parameters",
    [
        {"sendBody": True, "parametersBody": _pairs(("a", "b"))},  # a body of a GET request
        {"method": "POST", "sendBody": True, "specifyBody": "json", "jsonBody": '{"a": "Hello {name}"}'},
        {"method": "POST", "sendBody": True, "specifyBody": "json", "jsonBody": '{"a": ["{name}"]}'},
        {"method": "POST", "sendBody": True, "specifyBody": "json", "jsonBody": "[1]"},
        {"method": "POST", "sendBody": True, "parametersBody": _pairs(("a", "={{ $json.x }}"))},
        {"sendQuery": True, "parametersQuery": _pairs(("a", "Hello {name}"))},
        {"sendQuery": True, "parametersQuery": _pairs(("a", "={{ [1] }}"))},
        {"sendQuery": True, "parametersQuery": _pairs(("a", "={{ $now }}"))},
        {"sendQuery": True, "parametersQuery": _pairs(("={{ $json.x }}", None))},
        {"sendHeaders": True, "parametersHeaders": _pairs(("X-Id", None))},
        {"sendHeaders": True, "parametersHeaders": _pairs(("X-Id", "{id}"))},
        {"url": "=https://a.example.com/{{ $json.x }}"}, {"url": ""},
    ],
)  # fmt: skip
def test_a_request_that_no_schema_can_tell_is_lost(parameters: dict[str, Any]) -> None:
    made = _request(**parameters)
    assert outcomes(made)["Tool"] == "placeholder"
    assert {each.code for each in findings_of(made)} == {"placeholder"}


def _workflow(version: float = 1.2, **parameters: Any) -> Imported:
    given = {"name": "find", "description": "d", "workflowId": "Finder", **parameters}
    return _tool("toolWorkflow", given, version)


def test_a_workflow_gets_a_query_unless_it_names_its_inputs() -> None:
    for version in (1, 1.3, 2.1):
        data = _made(_workflow(version))
        assert data["flow"] == {"name": "Finder"}
        assert data["parameters"] == {
            "type": "object",
            "properties": {"query": _TEXT},
            "required": ["query"],
        }


def test_fixed_fields_of_a_workflow_are_arguments_without_a_choice() -> None:
    fields = {
        "values": [
            {"name": "command", "stringValue": "=find"},
            {"name": "n", "type": "numberValue", "numberValue": 3},
        ]
    }
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    data = _made(
        _workflow(
            fields=fields,
            specifyInputSchema=True,
            schemaType="manual",
            inputSchema=json.dumps(schema),
        )
    )
    assert data["parameters"] == {
        "type": "object", "properties": {"id": {"type": "integer"}, "command": {"const": "find"}, "n": {"const": 3}},
        "required": ["command", "n"],
    }  # fmt: skip


def test_mapped_inputs_of_a_workflow_are_filled_in_by_a_model() -> None:
    value = {
        "a": "={{ /*n8n-auto-generated-fromAI-override*/ $fromAI('a', `What`, 'number') }}",
        "b": "={{ $fromAI('b') }}", "c": "fixed", "d": "={{ $fromAI('d', '', 'json') }}", "e": 5, "f": None,
    }  # fmt: skip
    data = _made(_workflow(2.2, workflowInputs={"mappingMode": "defineBelow", "value": value}))
    assert data["parameters"]["properties"] == {
        "a": {"type": "number", "description": "What"}, "b": _TEXT, "c": {"const": "fixed"}, "d": {},
        "e": {"const": 5},
    }  # fmt: skip


@pytest.mark.parametrize(
    "parameters",
    [
        {"version": 2.2, "workflowInputs": {"value": {"a": "={{ $json.x }}"}}},
        {"version": 1.2, "fields": {"values": [{"name": "a", "stringValue": "={{ $json.x }}"}]}},
        {"version": 1.2, "specifyInputSchema": True, "jsonSchemaExample": "[1]"},
        {"version": 1.2, "specifyInputSchema": True, "jsonSchemaExample": "none"},
        {"version": 1.2, "workflowId": "={{ $workflow.id }}"},
    ],
)  # fmt: skip
def test_a_workflow_whose_inputs_are_calculated_is_lost(parameters: dict[str, Any]) -> None:
    assert outcomes(_workflow(**parameters))["Tool"] == "placeholder"


def test_wikipedia_is_a_request() -> None:
    data = _made(_tool("toolWikipedia", {}))
    assert data["parameters"]["required"] == ["query"]
    assert data["url"].startswith("https://en.wikipedia.org/")
