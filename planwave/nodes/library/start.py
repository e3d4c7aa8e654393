"""``start``: where a graph begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from pydantic import Field

from planwave.errors import InvalidInputs
from planwave.expressions import copy_json
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.inputs import Inputs
from planwave.graph.json_values import pointer_part
from planwave.graph.model import Json, Port
from planwave.graph.protocols import FlowContext
from planwave.nodes.authoring.data_fields import HIDDEN_FROM_PLANNER, NO_SOCKET
from planwave.nodes.authoring.node_type import NodeData, NodeFinding, NodeType
from planwave.nodes.checking.node_view import NodeView

_OTHER_FIELDS: Final = frozenset({"additionalProperties", "patternProperties"}) | {
    "allOf", "anyOf", "oneOf", "$ref", "if", "unevaluatedProperties",
}  # fmt: skip
"""Keywords with which a schema says which fields there may be beside its ``properties``."""


class StartData(NodeData):
    """What the node gives when the execution brings no input for it."""

    initial_input: Json = Field("", description="The input of runs that bring none.")
    declared: dict[str, Json] | None = Field(
        None,
        alias="schema",
        title="Schema",
        description="The JSON Schema of the input, which callers of the flow are told, such as "
        '{"type": "number"}.',
        json_schema_extra={**HIDDEN_FROM_PLANNER, **NO_SOCKET},
    )


class Start(NodeType):
    """Outputs ``data.initialInput``; an execution with inputs sets its result without running it.

    Programs that call the flow as a tool are told its ``schema``, and calls that do not fit it are refused.
    """

    node_type = "start"
    purpose = "Begin the flow with the input of the execution."
    summary = "Begin with what the run is given."
    Data = StartData
    plan_fields = ("initialInput",)
    fails_permanently = True
    inputs: tuple[Port, ...] = ()
    entry = expects_input = True

    async def run(self, data: StartData, inputs: Inputs, context: FlowContext) -> Json:
        return self.input_value({"schema": data.declared, "initialInput": data.initial_input})

    def input_fields(self, data: Mapping[str, Json]) -> Sequence[str]:
        """Return the names of the fields of the input, where the schema declares any."""
        return tuple(_properties(data))

    def input_value(self, data: Mapping[str, Json], given: Json = None) -> Json:
        """Return what a run is given, over ``initialInput``, over the defaults of the schema."""
        initial = data.get("initialInput")
        properties = _properties(data)
        if given is not None and not (properties and isinstance(given, dict)):
            return given
        value: dict[str, Json] = {}
        for name, field in properties.items():
            if isinstance(field, dict) and "default" in field:
                value[name] = copy_json(field["default"])
        if not (value or given is not None or isinstance(initial, dict)):
            return "" if initial is None else copy_json(initial)
        for part in (_object(initial), _object(given)):
            value |= cast("dict[str, Json]", copy_json(part))
        return value

    def input_errors(self, data: Mapping[str, Json], given: Json = None) -> Iterable[Diagnostic]:
        """Yield what does not fit the schema: fields that are missing or unknown, and wrong types.

        Fields that the schema does not declare are unknown, unless it says which others there may be.
        """
        schema = self.input_schema(data)
        if schema is None:
            return
        value, fields = self.input_value(data, given), _properties(data)
        if fields and given is None and not isinstance(value, dict):
            value = {}
        if fields and isinstance(value, dict):
            own = cast("dict[str, Json]", value)
            unknown: list[str] = (
                [] if _OTHER_FIELDS & schema.keys() else [n for n in own if n not in fields]
            )
            required = cast("list[str]", schema.get("required") or [])
            missing = [name for name in fields if name in required and name not in own]
            hint = f"its inputs are {', '.join(fields)}"
            yield from (
                _finding(f"{n!r} is no input", f"/{pointer_part(n)}", hint) for n in unknown
            )
            yield from (
                _finding(f"the input {n!r} is missing", f"/{pointer_part(n)}") for n in missing
            )
            schema = {**schema, "required": [each for each in required if each not in missing]}
            value = {name: part for name, part in own.items() if name not in unknown}
        # Lazy: test_the_schema_library_is_loaded_only_for_forms
        from planwave.nodes.json_schema import validate

        errors = validate(cast("Json", schema), value)
        if errors and given is None and not fields and data.get("initialInput") in (None, ""):
            yield _finding("the input is missing", "")
            return
        for error in errors:
            name = f"the input {error.pointer[1:]!r}" if error.pointer else "the input"
            yield _finding(f"{name}: {error.message}", error.pointer, error.hint)

    def input_schema(self, data: Mapping[str, Json]) -> Mapping[str, Any] | None:
        """Return the JSON Schema of the input, as far as the data of a node declare one."""
        declared = data.get("schema")
        return cast("dict[str, Any]", declared) if isinstance(declared, dict) else None

    def check(self, data: StartData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is None or data.declared is None:
            return
        # Lazy: test_the_schema_library_is_loaded_only_for_forms
        from planwave.nodes.json_schema import check_schema

        for error in check_schema(cast("Json", data.declared)):
            pointer = f"/data/schema{error.pointer}"
            yield NodeFinding("invalid-data", f"data.schema: {error.message}", pointer, error.hint)


def _finding(message: str, pointer: str, hint: str | None = None) -> Diagnostic:
    return Diagnostic(InvalidInputs.code, "error", message, pointer, hint=hint)


def _properties(data: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the fields that the schema of a node declares, by name."""
    return _object(_object(data.get("schema")).get("properties"))


def _object(value: Json) -> dict[str, Json]:
    """Return a value that is an object; an empty one in place of any other."""
    return cast("dict[str, Json]", value) if isinstance(value, dict) else {}
