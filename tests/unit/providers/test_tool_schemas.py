"""Tools in the form of each provider: any schema in each dialect is taken, or its tool alone is left out."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.providers.protocols import ModelRequest, PromptMessage, ToolCall, ToolSpec
from planwave.providers.tool_schemas import adapted_tools, dialect_of
from planwave.setting_tables import ToolSchemaDialect as Dialect
from tests.support.llm.tool_refusals import tool_refusal
from tests.unit.nodes.agents.test_server_schemas import PARTS, Tree

TEXT: dict[str, Any] = {"type": "string"}
DIALECTS: tuple[Dialect, ...] = tuple(each for each in get_args(Dialect) if each != "json-schema")
LOOK_AROUND = r"^(?!\.)[a-z]+$"


def with_a(part: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": part}, **more}


def refusal(spec: ToolSpec, dialect: Dialect) -> str | None:
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": dict(spec.parameters),
    }
    model = "gemini-2.5-pro" if dialect == "gemini" else "m"
    shape = "anthropic" if dialect == "anthropic" else "chat"
    return tool_refusal(shape, {"model": model, "tools": [{"function": function}]})


SCHEMAS: dict[str, dict[str, Any]] = {
    "no properties": {"type": "object"},
    "no type": {"properties": {"a": TEXT}},
    "an array without items": with_a({"type": "array"}),
    "an array or null": with_a({"type": ["array", "null"]}),
    "a tuple": with_a({"type": "array", "items": [TEXT, {"type": "integer"}], "additionalItems": False}),
    "a tuple of 2020-12": with_a({"type": "array", "prefixItems": [TEXT], "items": False}),
    "a look-ahead": with_a({**TEXT, "pattern": LOOK_AROUND}),
    "a class of characters that Python lacks": with_a({**TEXT, "pattern": r"^\p{Emoji}+$"}),
    "a pattern of properties": with_a(TEXT, patternProperties={LOOK_AROUND: TEXT}, additionalProperties=False),
    "anyOf at the top": {"anyOf": [with_a(TEXT, required=["a"]), {"type": "object", "properties": {"b": TEXT}}]},
    "oneOf at the top": {"type": "object", "oneOf": [with_a(TEXT), with_a({"type": "integer"})]},
    "allOf at the top": {"allOf": [with_a(TEXT, required=["a"]), {"$ref": "#/$defs/B"}],
                         "$defs": {"B": {"type": "object", "properties": {"b": TEXT}, "required": ["b"]}}},
    "not and if at the top": with_a(TEXT, **{"not": {"required": ["a"]}, "if": {}, "then": {"required": ["a"]}}),
    "enum at the top": with_a(TEXT, enum=[{"a": "b"}]),
    "a reference at the top": {"$ref": "#/$defs/B", "$defs": {"B": with_a(TEXT, required=["a"])}},
    "names with blanks": {"type": "object", "properties": {"my key": TEXT, "my_key": TEXT, "$top": TEXT, "x" * 80: TEXT,
                                                           "ä": with_a(TEXT)}, "required": ["my key", "$top"]},
    "names below": with_a({"type": "array", "items": {"type": "object", "properties": {"filter[name]": TEXT}}}),
    "recursion": Tree.model_json_schema(),
    "recursion of the whole": with_a({"type": "array", "items": {"$ref": "#"}}),
    "exclusiveMinimum of draft 4": with_a({"type": "integer", "minimum": 0, "exclusiveMinimum": True}),
    "null texts": with_a({**TEXT, "description": None}),
    "booleans": with_a(True, additionalProperties=False),
    "const": with_a({"const": 7}),
    "several types": with_a({"type": ["string", "number", "null"]}),
    "nullable by anyOf": with_a({"anyOf": [TEXT, {"type": "null"}], "default": None}),
    "a format": with_a({**TEXT, "format": "email"}),
    "a reference to nothing": with_a({"$ref": "#/$defs/none"}),
    "a reference to a property": with_a(TEXT, **{"required": ["a"]}) | {"properties": {"my key": TEXT, "b": {"$ref": "#/properties/my key"}}},
}  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", SCHEMAS)
def test_each_provider_takes_each_schema(name: str, dialect: Dialect) -> None:
    found = adapted_tools([ToolSpec("act", "Acts.", SCHEMAS[name])], dialect)
    (spec,) = found.specs
    assert refusal(spec, dialect) is None


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_the_tables_hold_is_refused_by_some_provider_as_it_is(name: str) -> None:
    spec = ToolSpec("act", "Acts.", SCHEMAS[name])
    assert any(refusal(spec, dialect) for dialect in DIALECTS)


def adapted(schema: dict[str, Any], dialect: Dialect = "openai") -> Any:
    (spec,) = adapted_tools([ToolSpec("act", "Acts.", schema)], dialect).specs
    return spec.parameters


def test_what_is_adapted_keeps_its_meaning() -> None:
    assert adapted({"type": "object"}) == {"type": "object", "properties": {}}
    assert adapted(with_a({"type": "array"})) == with_a({"type": "array", "items": {}})
    whole = adapted(SCHEMAS["allOf at the top"])
    assert (whole["properties"], whole["required"]) == ({"a": TEXT, "b": TEXT}, ["a", "b"])
    either = adapted(SCHEMAS["anyOf at the top"])
    assert (either["properties"], either.get("required", [])) == ({"a": TEXT, "b": TEXT}, [])
    assert adapted(SCHEMAS["oneOf at the top"])["properties"] == {
        "a": {"anyOf": [TEXT, {"type": "integer"}]}
    }
    plain = with_a({"$ref": "#/$defs/B"}, **{"$defs": {"B": TEXT}}, required=["a"])
    assert adapted(plain) == adapted(plain, "anthropic") == plain


@pytest.mark.parametrize("dialect", DIALECTS)
def test_one_tool_that_cannot_be_saved_is_left_out_and_the_others_stay(dialect: Dialect) -> None:
    tools = [
        ToolSpec("good", "", with_a(TEXT)),
        ToolSpec("bad", "", {"type": "array"}),
        ToolSpec("worse", "", {"anyOf": [TEXT, {"type": "integer"}]}),
    ]
    found = adapted_tools(tools, dialect)
    assert [spec.name for spec in found.specs] == ["good"]
    assert found.warnings == (
        "the tool 'bad' is left out: its arguments are no object",
        "the tool 'worse' is left out: its arguments are no object",
    )
    request = ModelRequest("p", "m", "Go.", tools=tuple(tools[1:]), must_call=True)
    left = adapted_tools(request.tools, dialect).applied_to(request)
    assert (left.tools, left.must_call) == ((), False)


def test_what_is_lost_is_said() -> None:
    odd = ToolSpec("odd", "d" * 2_000, with_a({**TEXT, "pattern": LOOK_AROUND}))
    found = adapted_tools([odd], "openai")
    assert found.specs[0].parameters == with_a(TEXT)
    assert len(found.specs[0].description) == 1_024
    (warning,) = found.warnings
    assert warning.startswith("the tool 'odd' is offered without the pattern '^(?!")
    assert "the end of its description" in warning


def test_names_of_arguments_are_mapped_there_and_back() -> None:
    found = adapted_tools([ToolSpec("act", "", SCHEMAS["names with blanks"])], "anthropic")
    names = found.specs[0].parameters["properties"]
    assert names.keys() == {"my_key_2", "my_key", "_top", "x" * 64, "_"}
    assert found.specs[0].parameters["required"] == ["my_key_2", "_top"]
    said = ToolCall("c", "act", json.dumps({"my_key_2": 1, "_top": {"_": [{"_top": 2}]}}))
    (own,) = found.restored([said])
    assert json.loads(own.arguments) == {"my key": 1, "$top": {"ä": [{"$top": 2}]}}
    turn = PromptMessage("assistant", "", tool_calls=(own, ToolCall("d", "act", "no JSON")))
    request = ModelRequest("p", "m", "", messages=(turn,))
    sent = found.applied_to(request).messages[0].tool_calls
    assert json.loads(sent[0].arguments) == json.loads(said.arguments)
    assert sent[1].arguments == "no JSON"


def test_the_dialect_is_that_of_the_protocol_or_of_a_known_model() -> None:
    assert dialect_of("anthropic", "gemini-like") == "anthropic"
    assert dialect_of("openai", "google/gemini-2.5-pro") == "gemini"
    assert dialect_of("openai", "gpt-5") == "openai"
    tool = ToolSpec("act", "", {"type": "object"})
    assert adapted_tools([tool], "json-schema").specs == (tool,)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(
    properties=st.dictionaries(st.sampled_from(["a", "$top", "my key"]), PARTS, max_size=3),
    beside=PARTS,
)
def test_no_schema_breaks_the_adapter(dialect: Dialect, properties: Any, beside: Any) -> None:
    """Schemas that break the rules of JSON Schema are mended before; here they may only not fail."""
    more = beside if isinstance(beside, dict) else {}
    schema = {**more, "type": "object", "properties": properties}
    before = json.dumps(schema)
    found = adapted_tools([ToolSpec("act", "", schema)], dialect)
    assert json.dumps(schema) == before
    for spec in found.specs:
        assert isinstance(spec.parameters["properties"], dict)
