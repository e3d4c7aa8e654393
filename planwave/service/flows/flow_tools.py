"""The flows that are published as tools: their names and typed arguments, and the inputs these mean."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from planwave.errors import GraphInvalid, InputError, NotFound, PlanwaveError
from planwave.graph.diagnostics import short_repr
from planwave.graph.reading.strict_json import parse_strict_json
from planwave.graph.suggestions import closest_match
from planwave.nodes.json_schema import validate
from planwave.nodes.subgraphs import prepare
from planwave.nodes.tools.flow_inputs import ANY_VALUE, entry_inputs, input_schema
from planwave.service.flows.flow_queries import FlowQueries, FlowRef
from planwave.service.flows.flow_service import FlowResolver

if TYPE_CHECKING:
    from planwave.graph.model import Graph, Json
    from planwave.service.dependencies import ServiceDependencies
    from planwave.storage.records import PlanRecord

_log = logging.getLogger(__name__)

_MAX_NAME_CHARS: Final = 55
"""Of the part of a name that is made of the flow's; clients take 64 characters."""
_ID_CHARS: Final = 8
_OTHER_CHARS: Final = re.compile(r"[^a-z0-9]+")


class FlowTool(NamedTuple):
    """A flow that is published as a tool.

    Attributes:
        name: A name for programs, made of that of the flow, and unique.
        flow: The revision that a call runs.
        parameters: The JSON Schema of the arguments, an object.
    """

    name: str
    title: str
    description: str
    flow: FlowRef
    parameters: Mapping[str, Any]


class FlowTools:
    """The flows that are published as tools.

    Args:
        dependencies: Those of the service.
        flows: The stored flows.
    """

    def __init__(self, dependencies: ServiceDependencies, flows: FlowQueries) -> None:
        self._catalogue = dependencies.catalogue
        self._flows = flows
        self._graphs = FlowResolver(dependencies.store, dependencies.catalogue, dependencies.limits)

    async def list(self, reserved: Iterable[str] = ()) -> dict[str, FlowTool]:
        """Return the tools by name; a flow that cannot run here is logged and left out.

        Args:
            reserved: Names that no tool may have.
        """
        names = set(reserved)
        tools: dict[str, FlowTool] = {}
        # The oldest first: another flow of a similar name changes no name that is in use.
        for record in reversed(await self._flows.published("tool")):
            name = _name_of(record, names)
            names.add(name)
            try:
                graph = await self._graphs.get(record.plan_id, record.live_revision)
            except PlanwaveError as error:
                _log.warning("flow %s is no tool now: %s", record.plan_id, error)
                continue
            tools[name] = FlowTool(
                name,
                record.name or "",
                record.description or record.name or "",
                FlowRef(record.plan_id, record.live_revision),
                input_schema(prepare(graph, self._catalogue), self._catalogue),
            )
        return tools

    async def inputs(
        self, tool: FlowTool, arguments: Mapping[str, Json]
    ) -> dict[str, dict[str, Json]]:
        """Return the inputs of an execution that a call with these arguments starts.

        Raises:
            InputError: ``invalid-arguments``: they do not fit the parameters.
            NotFound, GraphInvalid: The flow is gone, or cannot run here any more.
        """
        arguments = read_texts(tool.parameters, arguments)
        if errors := validate(dict(tool.parameters), dict(arguments)):
            reasons = "; ".join(
                f"{each.pointer.lstrip('/') or 'the arguments'}: {each.message}" for each in errors
            )
            names = ", ".join(tool.parameters["properties"]) or "none"
            raise InputError(reasons, code="invalid-arguments", hint=f"the arguments are {names}")
        graph: Graph = await self._graphs.get(*tool.flow)
        prepared = prepare(graph, self._catalogue)
        try:
            return entry_inputs(prepared, arguments, self._catalogue, as_object=False)
        except PlanwaveError as error:
            raise InputError(error.message, code=error.code, hint=error.hint) from error


def read_texts(schema: Mapping[str, Any], arguments: Mapping[str, Json]) -> dict[str, Json]:
    """Return arguments in which text that is the JSON of another declared type is read as that.

    Clients without a form for a type send ``"3"`` for 3.

    Args:
        schema: The JSON Schema of the arguments, an object.
        arguments: As the client sent them.
    """
    declared = schema["properties"]
    return {
        name: _read_text(declared[name], value)
        if isinstance(value, str) and name in declared
        else value
        for name, value in arguments.items()
    }


def _read_text(schema: Mapping[str, Any], text: str) -> Json:
    is_any = ANY_VALUE.items() <= schema.items()
    if not is_any and not validate(dict(schema), text):
        return text
    try:
        value = parse_strict_json(text)
    except GraphInvalid:
        return text
    is_other = not isinstance(value, str) and (is_any or not validate(dict(schema), value))
    return value if is_other else text


def unknown_tool(name: str, names: Iterable[str]) -> NotFound:
    """Return the error for a tool that does not exist; its hint has the nearest name."""
    near = closest_match(name, list(names))
    hint = "list the tools again" if near is None else f"did you mean {near!r}?"
    return NotFound(f"there is no tool {short_repr(name)}", hint=hint)


def _name_of(record: PlanRecord, names: set[str]) -> str:
    words = (
        _OTHER_CHARS.sub("_", (record.name or "").lower()).strip("_")[:_MAX_NAME_CHARS].strip("_")
    )
    if words and words not in names:
        return words
    return f"{words or 'flow'}_{record.plan_id[-_ID_CHARS:]}"
