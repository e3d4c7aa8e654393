"""What is found in the arguments of a call before a run, and how it is worded."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.nodes.authoring.node_type import NodeFinding
from planwave.nodes.checking.tool_arguments import check_arguments

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "number": {"type": "integer"},
        "to": {"type": "object", "properties": {"name": {"type": "string"}},
               "additionalProperties": False},
    },
    "required": ["number"],
    "additionalProperties": False,
}  # fmt: skip


def findings(arguments: dict[str, Any], schema: dict[str, Any] = SCHEMA) -> list[NodeFinding]:
    return list(check_arguments(arguments, schema, "the tool 'pay'"))


@pytest.mark.parametrize(
    ("arguments", "pointer", "message", "hint"),
    [
        ({"number": "7"}, "/number", 'the value is not of type "integer"', None),
        ({}, "", '"number" is a required property', None),
        ({"number": 7, "tto": {}}, "/tto", "there is no field 'tto'", "did you mean 'to'?"),
        ({"number": 7, "zzz": 1}, "/zzz", "there is no field 'zzz'", "it takes number, to"),
        ({"number": 7, "to": {"nam": "x"}}, "/to/nam", "there is no field 'nam'", None),
    ],
)
def test_a_finding_names_the_argument_and_what_is_wrong(
    arguments: dict[str, Any], pointer: str, message: str, hint: str | None
) -> None:
    (finding,) = findings(arguments)
    assert finding.code == "invalid-arguments"
    assert finding.pointer == f"/data/arguments{pointer}"
    assert finding.message == f"the arguments do not fit the tool 'pay': {message}"
    assert finding.hint == hint


def test_a_misspelt_argument_can_be_renamed_unless_its_nulls_would_be_lost() -> None:
    schema = {"type": "object", "properties": {"to": {}}, "additionalProperties": False}
    (finding,) = findings({"tto": "{{ input }}"}, schema)
    assert finding.correction is not None
    assert finding.correction.patch == {"data": {"arguments": {"tto": None, "to": "{{ input }}"}}}
    (finding,) = findings({"tto": {"name": None}}, schema)
    assert (finding.hint, finding.correction) == ("did you mean 'to'?", None)


def test_templates_and_unusable_schemas_give_no_finding() -> None:
    assert findings({"number": "{{ input }}", "to": "{{ input }}"}) == []
    assert findings({"number": 7}, {"$ref": "https://example.com/schema"}) == []
