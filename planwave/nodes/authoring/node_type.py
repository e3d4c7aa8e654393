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

For every type this class does three things: a wire into a data field replaces the value written
there, data are validated, and the result of ``run`` becomes an ``ExecutionResult``. A type that is
not executed but linked to other nodes is a [LinkType][planwave.LinkType] and has ``make`` instead.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from typing import Any, Final, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from planwave.errors import PermanentError
from planwave.expressions.json_text import to_text
from planwave.graph.diagnostics import Severity, short_repr
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
from planwave.graph.protocols import (
    EffectByField,
    ExecutionResult,
    FlowContext,
    NodeEvent,
    SchemaOutput,
    SourceKeys,
    Suspension,
)
from planwave.graph.suggestions import Correction
from planwave.nodes.authoring.data_fields import (
    FIELD_PORT_SIDE,
    WRITTEN,
    fields_of,
    is_of_other_type,
    is_open,
    read_data,
    to_data_value,
)
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


def template(default: Any = ..., *, written: bool = False, **options: Any) -> Any:
    """Declare a data field in which ``{{ … }}`` is resolved before the node runs.

    Args:
        default: The default value; without one, the field is required.
        written: Whether it decides what runs next; see ``data_fields.WRITTEN``.
        options: Those of ``pydantic.Field``.
    """
    marks = {"template": True, **(WRITTEN if written else {})}
    return Field(default, json_schema_extra=marks, **options)


class NodeFinding(NamedTuple):
    """An error or warning about one node; the pointer is relative to the node (``/data/text``).

    With the id of an ``edge`` it is about that edge of the node, and the pointer relative to the edge.
    ``correction`` changes the node or that edge; give it only where there is one way to correct it.
    """

    code: str
    message: str
    pointer: str = "/data"
    hint: str | None = None
    severity: Severity = "error"
    edge: str | None = None
    correction: Correction | None = None


class NodePorts(NamedTuple):
    """Ports of a configured node; None where its data do not decide about them."""

    inputs: Sequence[Port] | None = None
    outputs: Sequence[Port] | None = None


class BaseNode:
    """The declaration of a node type, and the preparation of its data: wires applied, then validated.

    Attributes:
        node_type: The name used in graph documents.
        purpose: One line for the planner that says when to use the type.
        summary: A few words for people who choose a type; the purpose where there are none.
        Data: Model of ``node.data``; None where the type reads none.
        inputs: Ports besides those of the data fields.
        outputs: Ports; a plain value that ``run`` returns leaves through ``output``, or through the
            only port if there is one port.
        entry: Whether an execution may be started by settling this node.
        expects_input: Whether an entry node without data has nothing to give unless the execution
            brings an input for it; a run without one then warns.
        effect: The side effect of running the node.
        effect_by: The data field that decides about a weaker effect; None where all nodes have the same.
        guards_effect: Whether the code of the type sees to it that its effect does not happen twice: a
            node that was cut off in the middle is executed again, and no person is asked before. Calls
            that are made through ``ToolCalls`` are such.
        version: Increase it when the same data and inputs produce another result: forks do not
            reuse results of an earlier version.
        reads_goal: Whether its result depends on the execution's goal, besides what templates in
            its data name.
        calls_model: Whether it calls the language model named by ``data.provider`` and
            ``data.model``; both are then checked before a run.
        uses_services: Whether it needs ``context.services`` although it calls no model.
        field_sockets: Whether data fields are also sockets.
        field_port_side: The side of the node at which an editor draws these sockets.
        chooses: Whether only one output carries a value in a run, so that several of them may lead
            into an input for one value; implied by a numbered family of outputs.
        fails_permanently: Whether another attempt of a failed node would fail in the same way; the
            check then warns of a retry policy.
        runs_graphs: Whether the type runs nested graphs, so that the number of steps is not known
            before the run.
        depends_outside: Whether what ``result_depends_on`` names may change while the graph, its
            variables and the results of earlier nodes are the same.
        source_keys: For types in whose results the ids of the nodes before them are keys: the data field
            by which a renamed node keeps its key, so that what reads the result goes on.
        passes_on: Whether the type only passes on what it gets; the check warns of a node without an
            edge into it.
        policy: The policy that a node of the type gets where it is made in Python or planned by a model
            and says nothing else; as in a document. A document holds what applies.
        replayable: Whether its code may be executed again from the top while its nested runs wait for
            answers: all that it does beside them is pure, recorded, or kept by ``runtime.once``. Its
            task does not stay in memory meanwhile.
        planned: Whether planners may use the type without being allowed to by name.
        plan_fields: The data fields that a plan written by a model may set; of an object, ``field.key``
            for one key of it. None for all that are not marked ``planned: false``; a type that comes
            with planwave names them, so that a new field is closed until it is named.
        plan_literals: Data fields of which a plan written by a model has the text only: no template in it is
            resolved there.
        run_by_nodes: Whether nodes run it by themselves, so that no graph needs it.
        stands_in: Whether its nodes keep the place of steps that are not known here: the check infers
            nothing from them, and no plan of a model has one.
        gives_reply: Whether whoever started the execution reads its reply from what a node gives: a change
            of the graph that is run neither drops nor changes such a node.
        example: A small graph document that uses the type and can be run; {} for none. The types
            that come with planwave have ``nodes/examples/<node type>.json`` instead.
        schema_output: The data field with a JSON Schema that an output then has, and its port; None
            where no field declares one.
    """

    node_type: str
    purpose: str = ""
    summary: str = ""
    Data: type[BaseModel] | None = None
    inputs: tuple[Port, ...] = (INPUT,)
    outputs: tuple[Port, ...] = (OUTPUT,)
    entry: bool = False
    expects_input: bool = False
    effect: Effect = "none"
    effect_by: EffectByField | None = None
    guards_effect: bool = False
    version: int = 1
    reads_goal: bool = False
    calls_model: bool = False
    uses_services: bool = False
    field_sockets: bool = True
    field_port_side: str = FIELD_PORT_SIDE
    chooses: bool = False
    fails_permanently: bool = False
    runs_graphs: bool = False
    depends_outside: bool = True
    source_keys: SourceKeys | None = None
    passes_on: bool = False
    policy: Mapping[str, Json] = {}
    schema_output: SchemaOutput | None = None
    replayable: bool = False
    planned: bool = True
    plan_fields: tuple[str, ...] | None = None
    plan_literals: tuple[str, ...] = ()
    run_by_nodes: bool = False
    stands_in: bool = False
    gives_reply: bool = False
    example: Mapping[str, Json] = {}

    def __init__(self, *, read_as_typed: Collection[str] = ()) -> None:
        """Read the declarations.

        Args:
            read_as_typed: Inputs and fields whose values are read by pydantic as they arrive; those of
                others are coerced as their sockets do it.
        """
        fields = fields_of(self.Data)
        self._field_wires = FieldWires(
            fields if self.field_sockets else (), self.inputs, read_as_typed
        )
        self._text_fields = {
            field.json_name: field.nullable
            for field in fields
            if field.template and field.socket == "text"
        }

    def check(self, data: Any, view: NodeView) -> Iterable[NodeFinding]:
        """Yield errors and warnings about a node that its data model cannot express; no I/O.

        Args:
            data: The validated data; None if required fields are wired, or hold templates that are
                resolved only in a run.
            view: The node and its edges.
        """
        return ()

    def configured_ports(self, data: Mapping[str, Json], leaving: Sequence[str]) -> NodePorts:
        """Return the ports that a node has by its data, in place of those its type declares.

        For editors, so that it never fails.

        Args:
            data: The data as written: perhaps incomplete, invalid, or templates.
            leaving: The handles through which edges leave the node.
        """
        return NodePorts()

    async def read_wires(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> Mapping[str, WiredValue]:
        """Return the values that wires bring to data fields, by field."""
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
        """Return validated data with the wired values, and the inputs that are not wired to fields.

        Raises:
            NodeError: The data are invalid (``invalid-data``), or an input does not have its port's
                type (``type-mismatch``).
        """
        if wired:
            data, inputs = self._field_wires.apply(data, wired), self._field_wires.unwired(inputs)
        if self._field_wires.has_typed_inputs:
            inputs = self._field_wires.coerce(inputs, context)
        if self.Data is None:
            return None, inputs
        return validate_data(self.Data, stringify(data, self._text_fields)), inputs


class NodeType(BaseNode, ABC):
    """Base class of nodes that are executed. Register subclasses or instances of them."""

    def __init__(self) -> None:
        super().__init__()
        self._default_output = default_output(self.outputs)
        self._streams = inspect.isasyncgenfunction(self.run)

    @abstractmethod
    def run(self, data: Any, inputs: Inputs, context: FlowContext) -> Any:
        """Do the node's work; ``async def``.

        A coroutine returns a JSON value (it leaves through ``output``), a ``DataValue`` or an
        ``ExecutionResult``; in a [ResumableType][planwave.ResumableType] also a ``Suspension``. An async
        generator yields ``NodeEvent`` and, last, one of these.

        Args:
            data: The validated ``Data``, wires already applied; None where there is no model.
            inputs: The inputs, without those wired to data fields.
            context: The node's position in the graph, and its services.
        """

    def execute(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> (
        Coroutine[Any, Any, ExecutionResult | Suspension]
        | AsyncIterator[NodeEvent | ExecutionResult | Suspension]
    ):
        """Apply wires, validate data, call [run][planwave.NodeType.run] and wrap its result."""
        if self._streams or self._field_wires.has_wires(inputs, context):
            return self._stream(data, inputs, context)
        return self._execute_once(data, inputs, context)

    async def _execute_once(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> ExecutionResult | Suspension:
        ready, rest = self.prepare(data, inputs, {}, context)
        return as_result(await self.run(ready, rest, context), self._default_output)

    async def _stream(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> AsyncGenerator[NodeEvent | ExecutionResult | Suspension]:
        fed = await self.read_wires(data, inputs, context)
        if fed:
            yield wired_event(fed, self.node_type, context)
        ready, rest = self.prepare(data, inputs, fed, context)
        async with aclosing(self._items(self.run(ready, rest, context))) as items:
            async for item in items:
                yield item

    async def _items(
        self, returned: Any
    ) -> AsyncGenerator[NodeEvent | ExecutionResult | Suspension]:
        """Yield the events of a generator and, last, the result; of a coroutine the result."""
        if not isinstance(returned, AsyncGenerator):
            yield as_result(await returned, self._default_output)
            return
        async with aclosing(cast("AsyncGenerator[Any]", returned)) as items:
            async for item in items:
                if not isinstance(item, NodeEvent):
                    yield as_result(item, self._default_output)
                    return
                yield item


class ResumableType(NodeType, ABC):
    """Base class of nodes that wait for an answer: ``run`` returns a ``Suspension``.

    The task of the node ends then. After the answer, perhaps in another process,
    [on_answer][planwave.ResumableType.on_answer] goes on.
    """

    @abstractmethod
    def on_answer(
        self, data: Any, inputs: Inputs, context: FlowContext, state: Any, answer: Any
    ) -> Any:
        """Go on after the answer; ``async def``, in the forms of ``run``.

        It may return a ``Suspension`` again.

        Args:
            data: The validated ``Data``, wires already applied; None where there is no model.
            inputs: The inputs, without those wired to data fields.
            context: The node's position in the graph, and its services.
            state: The ``state`` of the suspension, as it was stored.
            answer: The answer; for a request with ``actions``, ``{"decision", "note", "value"?,
                "form"?}``.
        """

    async def resume(
        self,
        data: Mapping[str, Json],
        inputs: Inputs,
        context: FlowContext,
        state: Json,
        answer: Json,
    ) -> AsyncGenerator[NodeEvent | ExecutionResult | Suspension]:
        """Apply wires, validate data, call [on_answer][planwave.ResumableType.on_answer] and wrap its result."""
        wired = await self.read_wires(data, inputs, context)
        ready, rest = self.prepare(data, inputs, wired, context)
        returned = self.on_answer(ready, rest, context, state, answer)
        async with aclosing(self._items(returned)) as items:
            async for item in items:
                yield item


class LinkType(BaseNode, ABC):
    """Base class of nodes that are not executed, but make an object for the nodes linked to them."""

    @abstractmethod
    async def make(self, data: Any, inputs: Inputs, context: FlowContext) -> Any:
        """Make the object for the linked nodes.

        Args:
            data: The validated ``Data``, wires already applied; None where there is no model.
            inputs: The inputs, without those wired to data fields.
            context: The node's position in the graph, and its services.
        """

    async def materialize(
        self, data: Mapping[str, Json], output_handle: str, context: FlowContext
    ) -> Any:
        """Apply wires, validate data, and return the object that [make][planwave.LinkType.make] creates."""
        return await self.make(*await prepare_linked(self, data, context), context)


async def prepare_linked(
    node: BaseNode, data: Mapping[str, Json], context: FlowContext
) -> tuple[Any, Inputs]:
    """Return data and inputs of a linked node; see ``BaseNode.prepare``."""
    inputs = Inputs(context.runtime.arrivals(context.node_id))
    return node.prepare(data, inputs, await node.read_wires(data, inputs, context), context)


def stringify(data: Mapping[str, Json], fields: Mapping[str, bool]) -> Mapping[str, Json]:
    """Return data in which these fields hold text.

    A template that is a single expression keeps the type of its value; text fields need text.

    Args:
        data: The resolved data.
        fields: Whether a field may also be null, by name.
    """
    for name, nullable in fields.items():
        value = data.get(name, "")
        if not isinstance(value, str) and not (value is None and nullable):
            data = {**data, name: to_text(value)}
    return data


_NUMBERS: Final = {
    "float_type": "a number",
    "float_parsing": "a number",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
}
"""What pydantic's errors of a number expected."""


def validate_data(model: type[BaseModel], data: Mapping[str, Json]) -> BaseModel:
    """Read ``data`` into its model.

    Raises:
        NodeError: The data are invalid; code ``invalid-data``, the message names the field.
    """
    try:
        return read_data(model, data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise PermanentError(data_error_text(first), code="invalid-data") from error


def data_error_text(error: Any) -> str:
    """Describe a pydantic error in a node's data; text in place of a number is quoted."""
    where = ".".join(str(part) for part in ("data", *error["loc"]))
    expected = _NUMBERS.get(error["type"])
    if expected and isinstance(error["input"], str):
        return f"{where}: {short_repr(error['input'])} is not {expected}"
    return describe_error(where, error)


def default_output(outputs: Sequence[Port]) -> Port | None:
    """Return the output of a plain value: ``output``, or the only output."""
    if (port := find_port(outputs, DEFAULT_SOURCE_HANDLE)) is not None or not outputs:
        return (port or OUTPUT)._replace(name=DEFAULT_SOURCE_HANDLE)
    return outputs[0] if len(outputs) == 1 and not is_open(outputs[0]) else None


def as_result(
    value: Any, port: Port | None, *, nullable: bool = True
) -> ExecutionResult | Suspension:
    """Wrap a node's result: a plain value leaves through an output, with the value's own type.

    Args:
        value: What the node returned.
        port: The output of plain values, None if there are several.
        nullable: Whether null fits every type.

    Raises:
        NodeError: ``invalid-result``: a plain value has no output, or not its declared type.
    """
    if isinstance(value, (ExecutionResult, Suspension)):
        return value
    if port is None:
        raise PermanentError(
            "a node with several outputs, none of them called 'output', returned a plain value",
            code="invalid-result",
            hint="return an ExecutionResult, which names the outputs",
        )
    if not isinstance(value, DataValue):
        if (value is not None or not nullable) and is_of_other_type(value, port.type):
            raise PermanentError(
                f"the output {port.name!r} is declared as {port.type}, but the node returned "
                f"{short_repr(value)}",
                code="invalid-result",
                hint=f"return {port.type}, or correct the declared type",
            )
        value = to_data_value(value)
    return ExecutionResult({port.name: value})


def pass_through(inputs: Inputs) -> DataValue:
    """Return a node's input unchanged, for types that pass it on.

    One value is returned as it is. Several texts become one text that names their sources; several
    values of which one is not text become a list in edge order. No input is the empty text.
    """
    values = inputs.all(DEFAULT_TARGET_HANDLE)
    if not values:
        return DataValue("text", "")
    if len(values) == 1:
        return values[0]
    if all(isinstance(value.value, str) for value in values):
        return DataValue("text", inputs.text(DEFAULT_TARGET_HANDLE))
    return DataValue("json", [value.value for value in values])
