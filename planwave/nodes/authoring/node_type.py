"""The class to write a node type with: declare data and ports, write ``run``.

::

    class Shout(NodeType):
        node_type = "shout"
        purpose = "Say the input loudly."

        class Data(NodeData):
            times: int = 1
            suffix: str = template("")

        async def run(self, data: Data, inputs: Inputs, context: FlowContext) -> str:
            return (inputs.text("input").upper() + data.suffix) * data.times

Whatever the type, this class does three things once: a wire into a data field beats the value
written there, data are validated, and what ``run`` gives becomes an ``ExecutionResult``. A type that
never runs but is linked to others is a :class:`LinkType` and has ``make`` instead.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from planwave.errors import NodeError
from planwave.expressions.json_text import to_text
from planwave.graph.diagnostics import Severity
from planwave.graph.inputs import Inputs
from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    DataValue,
    Effect,
    Json,
    Port,
)
from planwave.graph.ports import find_port
from planwave.graph.protocols import ExecutionResult, FlowContext, NodeEvent, Suspension
from planwave.nodes.authoring.data_fields import fields_of, is_open, value_type
from planwave.nodes.authoring.field_wires import FieldWires, WiredValue, wired_event
from planwave.nodes.checking.node_view import NodeView
from planwave.validation import describe_error

INPUT = Port(DEFAULT_TARGET_HANDLE, multiple=True)
OUTPUT = Port(DEFAULT_SOURCE_HANDLE)


class NodeData(BaseModel):
    """The ``data`` of a node: camelCase in JSON, no unknown fields, no silent conversions."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        strict=True,
        frozen=True,
        protected_namespaces=(),
        allow_inf_nan=False,
    )


def template(default: Any = ..., **options: Any) -> Any:
    """Declare a data field in which ``{{ … }}`` is resolved before the node runs."""
    return Field(default, json_schema_extra={"template": True}, **options)


class NodeFinding(NamedTuple):
    """A fault of one node's data; the pointer is relative to the node (``/data/text``)."""

    code: str
    message: str
    pointer: str = "/data"
    hint: str | None = None
    severity: Severity = "error"


class BaseNode:
    """What every kind of node declares, and the data it gets: wires applied, then validated.

    Attributes:
        node_type: The name used in graph documents.
        purpose: One line that tells the planner what it is for.
        Data: Model of ``node.data``; None where the type reads none.
        inputs: Ports besides those of the data fields.
        outputs: Ports; a plain value that ``run`` gives leaves through ``output``, or through the
            only port where there is one.
        entry: Whether an execution may be started by settling this node.
        effect: What running it does to the world.
        version: Raise it where the same data and inputs give something else from now on: results
            of an earlier version are then not taken over into a fork.
        reads_goal: Whether its result depends on the execution's goal, besides what templates in
            its data name.
        calls_model: Whether it asks the language model named by ``data.provider`` and
            ``data.model``, so that these are checked before a run.
        field_sockets: Whether data fields are also sockets.
        chooses: Whether one output alone carries a value, so that inputs for one value may be fed by
            several; known by itself of a numbered family of outputs.
        runs_graphs: Whether it runs graphs inside itself, so that nobody knows beforehand how many
            steps that takes.
        planned: Whether models may write plans with it unasked.
        example: A small graph document that shows the type at work and can be run; {} where there
            is none.
    """

    node_type: str
    purpose: str = ""
    Data: type[BaseModel] | None = None
    inputs: tuple[Port, ...] = (INPUT,)
    outputs: tuple[Port, ...] = (OUTPUT,)
    entry: bool = False
    effect: Effect = "none"
    version: int = 1
    reads_goal: bool = False
    calls_model: bool = False
    field_sockets: bool = True
    chooses: bool = False
    runs_graphs: bool = False
    planned: bool = True
    example: Mapping[str, Json] = {}

    def __init__(self) -> None:
        fields = fields_of(self.Data)
        self._field_wires = FieldWires(fields if self.field_sockets else (), self.inputs)
        self._text_fields = {
            field.json_name: field.nullable
            for field in fields
            if field.template and field.socket == "text"
        }

    def check(self, data: Any, view: NodeView) -> Iterable[NodeFinding]:
        """Find what is wrong with a node beyond its data's shape; no I/O.

        Args:
            data: The validated data, or None where required fields are fed by wires, or hold
                templates that only a run resolves.
            view: The node and its edges.
        """
        return ()

    async def read_wires(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> Mapping[str, WiredValue]:
        """Give what wires bring to data fields, by field."""
        if not self._field_wires.has_wires(inputs, context):
            return {}
        return await self._field_wires.read(data, inputs, context)

    def prepare(
        self,
        data: Mapping[str, Json],
        inputs: Inputs,
        wired: Mapping[str, WiredValue],
        context: FlowContext,
    ) -> tuple[Any, Inputs]:
        """Give validated data with what wires brought, and the rest of what arrived.

        Raises:
            NodeError: Data that do not fit (``invalid-data``), or an input that does not fit its
                port (``type-mismatch``).
        """
        if wired:
            data, inputs = self._field_wires.apply(data, wired), self._field_wires.unwired(inputs)
        if self._field_wires.has_typed_inputs:
            inputs = self._field_wires.coerce(inputs, context)
        if self.Data is None:
            return None, inputs
        return validate_data(self.Data, stringify(data, self._text_fields)), inputs


class NodeType(BaseNode, ABC):
    """A kind of node that runs as a stage. Subclasses are registered as classes or as instances."""

    def __init__(self) -> None:
        super().__init__()
        self._default_output = default_output(self.outputs)
        self._streams = inspect.isasyncgenfunction(self.run)

    @abstractmethod
    def run(self, data: Any, inputs: Inputs, context: FlowContext) -> Any:
        """Do the node's work; ``async def``.

        A coroutine returns a JSON value (it leaves through ``output``), a ``DataValue`` or an
        ``ExecutionResult``. An async generator yields ``NodeEvent`` and, last, one of these.

        Args:
            data: The validated ``Data``, wires already applied; None where there is no model.
            inputs: What arrived, without what went into data fields.
            context: Where the node runs.
        """

    def execute(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> (
        Coroutine[Any, Any, ExecutionResult | Suspension]
        | AsyncIterator[NodeEvent | ExecutionResult | Suspension]
    ):
        """Run as a stage: apply wires, validate data, call :meth:`run`, wrap what it gives."""
        if self._streams or self._field_wires.has_wires(inputs, context):
            return self._stream(data, inputs, context)
        return self._execute_once(data, inputs, context)

    async def _execute_once(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> ExecutionResult | Suspension:
        ready, left = self.prepare(data, inputs, {}, context)
        return as_result(await self.run(ready, left, context), self._default_output)

    async def _stream(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> AsyncGenerator[NodeEvent | ExecutionResult | Suspension]:
        fed = await self.read_wires(data, inputs, context)
        if fed:
            yield wired_event(fed, self.node_type, context)
        ready, left = self.prepare(data, inputs, fed, context)
        if not self._streams:
            yield as_result(await self.run(ready, left, context), self._default_output)
            return
        async with aclosing(self.run(ready, left, context)) as items:
            async for item in items:
                if not isinstance(item, NodeEvent):
                    yield as_result(item, self._default_output)
                    return
                yield item


class LinkType(BaseNode, ABC):
    """A kind of node that is never run, only made on demand for those it is linked to."""

    @abstractmethod
    async def make(self, data: Any, inputs: Inputs, context: FlowContext) -> Any:
        """Make the artefact.

        Args:
            data: The validated ``Data``, wires already applied; None where there is no model.
            inputs: What arrived, without what went into data fields.
            context: Where the node stands.
        """

    async def materialize(
        self, data: Mapping[str, Json], output_handle: str, context: FlowContext
    ) -> Any:
        """Give the artefact: apply wires, validate data, call :meth:`generate`."""
        return await self.make(*await prepare_linked(self, data, context), context)


async def prepare_linked(
    node: BaseNode, data: Mapping[str, Json], context: FlowContext
) -> tuple[Any, Inputs]:
    """Give data and inputs of a node that is made on demand; see :meth:`NodeKind.prepare`."""
    inputs = Inputs(context.runtime.arrivals(context.node_id))
    return node.prepare(data, inputs, await node.read_wires(data, inputs, context), context)


def stringify(data: Mapping[str, Json], fields: Mapping[str, bool]) -> Mapping[str, Json]:
    """Give data in which these fields hold text.

    A template that is one expression keeps its value's type; a field that wants text reads it so.

    Args:
        data: The resolved data.
        fields: Whether a field may also be null, by name.
    """
    for name, nullable in fields.items():
        value = data.get(name, "")
        if not isinstance(value, str) and not (value is None and nullable):
            data = {**data, name: to_text(value)}
    return data


def validate_data(model: type[BaseModel], data: Mapping[str, Json]) -> BaseModel:
    """Read ``data`` into its model.

    Raises:
        NodeError: Data that do not fit; code ``invalid-data``, the field is named.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise NodeError(data_error_text(first), code="invalid-data") from error


def data_error_text(error: Any) -> str:
    """Say what pydantic found wrong with data."""
    return describe_error(".".join(str(part) for part in ("data", *error["loc"])), error)


def default_output(outputs: Sequence[Port]) -> str | None:
    """Give the output that a plain value leaves through: ``output``, else the only one there is."""
    if not outputs or find_port(outputs, DEFAULT_SOURCE_HANDLE) is not None:
        return DEFAULT_SOURCE_HANDLE
    return outputs[0].name if len(outputs) == 1 and not is_open(outputs[0]) else None


def as_result(value: Any, handle: str | None) -> ExecutionResult | Suspension:
    """Wrap what a node gave: a plain value leaves through ``handle``, its type taken from it.

    Raises:
        NodeError: A plain value, and no handle for it.
    """
    if isinstance(value, (ExecutionResult, Suspension)):
        return value
    if handle is None:
        raise NodeError(
            "a node with several outputs, none of them called 'output', gave a plain value",
            code="invalid-result",
            hint="give an ExecutionResult, which names the outputs",
        )
    if not isinstance(value, DataValue):
        value = DataValue(value_type(value), value)
    return ExecutionResult({handle: value})


def pass_through(inputs: Inputs) -> DataValue:
    """Give a node's input unchanged, for types that hand it on.

    One arrival is itself. Several texts are one text that says where each came from; several values
    of which one is not text are a list in edge order. Nothing is the empty text.
    """
    values = inputs.all(DEFAULT_TARGET_HANDLE)
    if not values:
        return DataValue("text", "")
    if len(values) == 1:
        return values[0]
    if all(isinstance(value.value, str) for value in values):
        return DataValue("text", inputs.text(DEFAULT_TARGET_HANDLE))
    return DataValue("json", [value.value for value in values])
