"""Make a node type of a function.

::

    @planwave.node("shout")
    async def shout(input: str, times: int = 1) -> str:
        "Say the input loudly."
        return input.upper() * times

* A parameter **without** a default is an input: a required handle of that name.
* A parameter **with** a default is a data field, ``{"data": {"times": 3}}``, and a wire on the
  handle of that name overrides it. (With ``inputs=``, those are the inputs and all other
  parameters are data fields.)
* ``context`` is the ``FlowContext``; a parameter annotated ``Inputs`` gets all inputs, without
  those wired to data fields.
* What a function takes and gives is JSON of its annotation, read and written by pydantic without
  silent conversion; see ``planwave.json_types``. Annotated ``str``, ``int``, ``float`` or ``bool``,
  an input is coerced as sockets do it.
* An input takes one edge. Annotated ``str``, it takes several, whose values become one text of
  ``From {name} ({id}):`` blocks; annotated ``Collected[T]``, the list of their values, in edge order;
  without an annotation (or ``Any``), the value, or the list of values where several arrived.
* The returned value leaves through ``output``, or through the only output. To choose one of several
  outputs, return an ``ExecutionResult``.
* A function without a return annotation must return a value: None fails the node, because the
  ``return`` may be forgotten. A node without a result declares ``-> None``; its result is null.
* An async generator streams: each ``str`` it yields is shown at once. Its result is the first
  other value it yields (``Result("…")`` for a text), and the generator ends there; without one,
  the result is all the text it streamed.
* A function without ``async`` runs in a thread, with up to 64 others. A thread cannot be stopped: if
  the node is cancelled or times out, the function continues, and its result is dropped. It ends with
  the process.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from copy import copy
from functools import update_wrapper
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeVar,
    Union,
    cast,
    overload,
)

from pydantic import BaseModel, Field, create_model
from pydantic.errors import PydanticSchemaGenerationError

from planwave.errors import PermanentError
from planwave.graph.inputs import Inputs, arrivals_text
from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    Arrival,
    DataValue,
    Effect,
    Json,
    Node,
    Port,
    Retry,
)
from planwave.graph.protocols import ExecutionResult, FlowContext, NodeEvent, Suspension
from planwave.graph.reading.policy import policy_limit_findings, read_policy
from planwave.json_types import JsonType, bare, is_plain
from planwave.nodes.authoring.data_fields import port_schema, socket_type
from planwave.nodes.authoring.field_wires import WiredValue, wired_event
from planwave.nodes.authoring.node_type import BaseNode, as_result, default_output
from planwave.nodes.authoring.signatures import (
    fields_config,
    name_or_function,
    require_function,
    require_named_parameter,
    type_hints,
)
from planwave.nodes.authoring.threads import call_in_thread
from planwave.nodes.registry import Registry, default_registry
from planwave.settings import BUILT_IN_LIMITS

P = ParamSpec("P")
R = TypeVar("R")

_NO_DEFAULT: Final[Any] = inspect.Parameter.empty
_NAMED_TYPES: Final = {"Inputs": Inputs, "FlowContext": FlowContext}

T = TypeVar("T")

ParameterForm = Literal["text", "list", "value"]


class Result(NamedTuple):
    """The result of a streaming function node, where it is a text or not what was streamed."""

    value: Json


class _Collects:
    """Marks an input that takes several edges."""


Collected = Annotated[list[T], _Collects()]
"""An input that takes any number of edges: the list of their values, in edge order."""

_WRAPPER_TYPES: Final = (ExecutionResult, Suspension, DataValue, Result)
"""Annotations that say nothing about the value inside."""


class _Parameter(NamedTuple):
    """How one parameter is filled."""

    name: str
    source: Literal["context", "inputs", "handle"]
    form: ParameterForm = "value"
    json_type: JsonType[Any] | None = None
    """The type of an input."""
    field: str | None = None
    """Attribute of the data model, for a data field."""
    default: Any = _NO_DEFAULT


class FunctionNode(BaseNode, Generic[P, R]):
    """A node type made of a function; calling it calls the function.

    Its attributes are those of ``NodeType``, and these:

    Attributes:
        function: The function.
        result_type: Reads a stored result as a value of the annotated type.
    """

    field_port_side = "left"  # parameters are what a function takes in

    def __init__(
        self,
        function: Callable[P, R],
        node_type: str,
        *,
        inputs: Iterable[str | Port] | None = None,
        outputs: Iterable[str | Port] = (DEFAULT_SOURCE_HANDLE,),
        purpose: str | None = None,
        templates: Iterable[str] = (),
        effect: Effect = "none",
        entry: bool = False,
        version: int = 1,
        retry: Retry | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Read the function's signature; see [node][planwave.node]."""
        self._streams = inspect.isasyncgenfunction(function)
        self._is_async = inspect.iscoroutinefunction(function)
        require_function(f"node type {node_type!r}", function)
        if inspect.isgeneratorfunction(function):
            raise TypeError(
                f"node type {node_type!r}: {function!r} is a generator; to stream, declare it with "
                "'async def'"
            )
        update_wrapper(self, function)
        self.function = function
        self._function: Callable[..., Any] = function
        what = f"node type {node_type!r}"
        left_out = ("return",) if self._streams else ()
        hints = type_hints(what, function, _NAMED_TYPES, left_out=left_out)
        reading = _Signature(node_type, function, hints, inputs, frozenset(templates))
        self.node_type = node_type
        self.purpose = purpose or (inspect.getdoc(function) or "").partition("\n")[0]
        self.effect: Effect = effect
        self.entry, self.version = entry, version
        self.policy = _policy(what, retry, timeout_s)
        self.inputs = reading.ports()
        self.result_type = _result_type(what, hints.get("return", Any))
        self.outputs = tuple(
            _output_port(port, hints.get("return", Any), self.result_type) for port in outputs
        )
        self._declares_result = "return" in inspect.get_annotations(function)
        self.Data = reading.data_model()
        self._parameters = tuple(reading.parameters)
        self._default_output = default_output(self.outputs)
        super().__init__(read_as_typed=reading.typed_names)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<node type {self.node_type!r}: {self._function.__qualname__}>"

    def with_function(self, function: Callable[..., Awaitable[Any]]) -> FunctionNode[P, R]:
        """Return the type with another function, which gets and gives the same.

        Args:
            function: Called with the arguments of the function by name; not a generator.
        """
        other = copy(self)
        other._function, other._is_async, other._streams = function, True, False
        return other

    def execute(self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext) -> Any:
        """Run as a stage: fill the parameters, call the function, wrap what it gives."""
        if self._streams or self._field_wires.has_wires(inputs, context):
            return self._stream(data, inputs, context)
        return self._execute_once(data, inputs, context)

    async def _execute_once(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> ExecutionResult | Suspension:
        return self._result(await self._call(self._arguments(data, inputs, {}, context)))

    async def _call(self, arguments: Mapping[str, Any]) -> Any:
        """Call the function; without ``async``, in a thread."""
        if self._is_async:
            return await self._function(**arguments)
        return await call_in_thread(self._function, arguments)

    async def _stream(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> AsyncGenerator[NodeEvent | ExecutionResult | Suspension]:
        fed = await self.read_wires(data, inputs, context)
        if fed:
            yield wired_event(fed, self.node_type, context)
        arguments = self._arguments(data, inputs, fed, context)
        if not self._streams:
            yield self._result(await self._call(arguments))
            return
        texts: list[str] = []
        async with aclosing(self._function(**arguments)) as items:
            async for item in items:
                if isinstance(item, str):
                    texts.append(item)
                    yield NodeEvent(
                        context.node_id, self.node_type, "delta", context.run_id,
                        {"text": item, "kind": "text"},
                    )  # fmt: skip
                elif isinstance(item, NodeEvent):
                    yield item
                else:
                    yield self._result(item)
                    return
        yield self._result("".join(texts))

    def _result(self, result: Any) -> ExecutionResult | Suspension:
        if result is None and not self._declares_result:
            raise PermanentError(
                f"the function {self._function.__name__!r} returned nothing",
                code="invalid-result",
                hint="add the missing 'return'; for a node without a result, declare '-> None'",
            )
        given = result.value if isinstance(result, Result) else result
        if not isinstance(given, _WRAPPER_TYPES):
            given = self.result_type.write(given, "the result")
        return as_result(given, self._default_output, nullable=not self.result_type.is_plain)

    def _arguments(
        self,
        data: Mapping[str, Json],
        inputs: Inputs,
        wired: Mapping[str, WiredValue],
        context: FlowContext,
    ) -> dict[str, Any]:
        fields: BaseModel | None = None
        if data or wired:
            fields, inputs = self.prepare(data, inputs, wired, context)
        elif self._field_wires.has_typed_inputs:
            inputs = self._field_wires.coerce(inputs, context)
        arrivals: dict[str, list[Arrival]] = {}
        for arrival in inputs.arrivals:
            arrivals.setdefault(arrival.target_handle, []).append(arrival)
        arguments: dict[str, Any] = {}
        for parameter in self._parameters:
            name = parameter.name
            if parameter.source == "context":
                arguments[name] = context
            elif parameter.source == "inputs":
                arguments[name] = inputs
            elif parameter.field is None and (got := arrivals.get(name)) is not None:
                arguments[name] = _fill(parameter, got)
            else:
                arguments[name] = self._field_value(parameter, fields)
        return arguments

    def _field_value(self, parameter: _Parameter, fields: BaseModel | None) -> Any:
        """Return the value of a data field, or the default of an input that received nothing."""
        value = parameter.default
        if fields is not None and parameter.field is not None:
            value = getattr(fields, parameter.field)
        if value is _NO_DEFAULT:
            raise PermanentError(
                f"node type {self.node_type!r} got nothing for {parameter.name!r}",
                code="missing-required-input",
                hint=f"connect an edge to the handle {parameter.name!r}",
            )
        return value


class _Signature:
    """A function's parameters, read once."""

    def __init__(
        self,
        node_type: str,
        function: Callable[..., Any],
        hints: Mapping[str, Any],
        inputs: Iterable[str | Port] | None,
        templates: frozenset[str],
    ) -> None:
        self._node_type = node_type
        self._hints = hints
        self.templates = templates
        self._declared_inputs = (
            None if inputs is None else {_port_name(port): port for port in inputs}
        )
        self._input_ports: dict[str, Port] = {}
        self.typed_names: list[str] = []
        """What pydantic reads as it arrives; the others are coerced as sockets do it."""
        self._fields: dict[str, Any] = {}
        self.parameters: list[_Parameter] = []
        for parameter in inspect.signature(function).parameters.values():
            self.parameters.append(self._read_parameter(parameter))
        names = {parameter.name for parameter in self.parameters}
        unknown = ({*(self._declared_inputs or ())} - names) | (templates - self._fields.keys())
        takes_all = any(parameter.source == "inputs" for parameter in self.parameters)
        if unknown and not (takes_all and unknown <= {*(self._declared_inputs or ())}):
            raise TypeError(
                f"node type {node_type!r}: no parameter (or, for templates, no data field) is "
                f"called {', '.join(sorted(map(repr, unknown)))}"
            )

    def _read_parameter(self, parameter: inspect.Parameter) -> _Parameter:
        name = parameter.name
        hint = "use plain parameters (annotate one with Inputs to get all that arrives)"
        require_named_parameter(f"node type {self._node_type!r}", parameter, hint)
        annotation = self._hints.get(name, Any)
        if annotation is FlowContext or (name == "context" and annotation is Any):
            return _Parameter(name, "context")
        if annotation is Inputs:
            return _Parameter(name, "inputs")
        shape = _parameter_form(annotation)
        if not is_plain(bare(_edge_type(annotation, shape))):
            self.typed_names.append(name)
        default = parameter.default
        is_input = (
            default is _NO_DEFAULT
            if self._declared_inputs is None
            else name in self._declared_inputs
        )
        if is_input:
            json_type = JsonType[Any](annotation, f"node type {self._node_type!r}: input {name!r}")
            self._input_ports[name] = self._port(name, annotation, shape, default is _NO_DEFAULT)
            return _Parameter(name, "handle", shape, json_type, None, default)
        self._fields[name] = (annotation, default)
        # The model's attributes are numbered: a parameter may be called ``schema`` or ``copy``.
        return _Parameter(name, "handle", shape, None, f"p{len(self._fields) - 1}", default)

    def ports(self) -> tuple[Port, ...]:
        """Return the input ports; a function that takes ``Inputs`` accepts every handle."""
        ports = [*self._input_ports.values()]
        if self._declared_inputs is not None:
            ports += [
                _as_port(port)
                for name, port in self._declared_inputs.items()
                if name not in self._input_ports
            ]
        elif any(parameter.source == "inputs" for parameter in self.parameters):
            ports.append(Port("{name}", multiple=True))
        return tuple(ports)

    def _port(self, name: str, annotation: Any, form: ParameterForm, required: bool) -> Port:
        declared = (self._declared_inputs or {}).get(name)
        if isinstance(declared, Port):
            return declared
        edge_type = _edge_type(annotation, form)
        many = form != "value" or annotation is Any
        kind, schema = socket_type(edge_type), port_schema(edge_type, "validation")
        return Port(name, kind, multiple=many, required=required, schema=schema)

    def data_model(self) -> type[BaseModel] | None:
        """Return the model of ``data``; function nodes reject unknown fields."""
        fields: dict[str, Any] = {}
        for i, (name, (annotation, default)) in enumerate(self._fields.items()):
            extra: Any = {"template": True} if name in self.templates else None
            value = ... if default is _NO_DEFAULT else default
            fields[f"p{i}"] = (
                annotation,
                Field(value, alias=name, title=name, json_schema_extra=extra),
            )
        try:
            return create_model(f"{self._node_type}.data", __config__=fields_config(), **fields)
        except PydanticSchemaGenerationError as error:
            raise TypeError(
                f"node type {self._node_type!r}: a parameter with a default is a data field and "
                f"must have a JSON type: {error.message.splitlines()[0]}"
            ) from error


@overload
def node(function: Callable[P, R], /) -> FunctionNode[P, R]: ...
@overload
def node(
    node_type: str | None = None,
    *,
    inputs: Iterable[str | Port] | None = None,
    outputs: Iterable[str | Port] = (DEFAULT_SOURCE_HANDLE,),
    purpose: str | None = None,
    templates: Iterable[str] = (),
    effect: Effect = "none",
    entry: bool = False,
    version: int = 1,
    retry: Retry | None = None,
    timeout_s: float | None = None,
    registry: Registry | None = None,
    replace: bool = False,
) -> Callable[[Callable[P, R]], FunctionNode[P, R]]: ...
def node(
    node_type: str | Callable[..., Any] | None = None,
    *,
    inputs: Iterable[str | Port] | None = None,
    outputs: Iterable[str | Port] = (DEFAULT_SOURCE_HANDLE,),
    purpose: str | None = None,
    templates: Iterable[str] = (),
    effect: Effect = "none",
    entry: bool = False,
    version: int = 1,
    retry: Retry | None = None,
    timeout_s: float | None = None,
    registry: Registry | None = None,
    replace: bool = False,
) -> Any:
    """Register a function as a node type; see this module for how parameters are filled.

    It stands above the function alone (``@planwave.node``), or with arguments. A function without
    ``async`` runs in a thread; only between attempts can it be cancelled.

    Args:
        node_type: Its name in graphs; the function's name if None.
        inputs: Names or ports; the parameters without a default if None.
        outputs: Names or ports.
        purpose: One line for the planner; the docstring's first line if None.
        templates: The data fields in which ``{{ … }}`` is resolved.
        effect: The side effect of running the node.
        entry: Whether an execution may be started by settling this node.
        version: Increase it when the same inputs produce another result; see ``NodeType``.
        retry: The retries that nodes of the type get; see ``NodeType.policy``.
        timeout_s: The time limit of an attempt that they get, in seconds.
        registry: Where to register it; the process's default registry if None.
        replace: Replace a type of the same name.

    Raises:
        TypeError, ValueError: It cannot be a node, or the name is taken; the message says why.
    """

    def register(function: Callable[..., Any]) -> FunctionNode[..., Any]:
        function_node = FunctionNode(
            function, name or function.__name__, inputs=inputs, outputs=outputs, purpose=purpose,
            templates=templates, effect=effect, entry=entry, version=version, retry=retry,
            timeout_s=timeout_s,
        )  # fmt: skip
        where = default_registry() if registry is None else registry
        return where.register(function_node, replace=replace)

    name, function = name_or_function("a node type", node_type)
    return register if function is None else register(function)


def _policy(what: str, retry: Retry | None, timeout_s: float | None) -> Mapping[str, Json]:
    """Return the policy of a type as in a document.

    Raises:
        TypeError: ``retry`` is no ``Retry``.
        ValueError: No document may have it.
    """
    if retry is not None and not isinstance(cast("object", retry), Retry):
        raise TypeError(f"{what}: retry is a planwave.Retry(attempts=…), not {retry!r}")
    policy: dict[str, Json] = {} if retry is None else {"retry": retry.to_document()}
    if timeout_s is not None:
        policy["timeoutS"] = timeout_s
    read, errors = read_policy(policy, "")
    errors += policy_limit_findings(Node(what, "", "", policy=read), BUILT_IN_LIMITS)
    if errors:
        raise ValueError(f"{what}: {errors[0].message}")
    return policy


def _parameter_form(annotation: Any) -> ParameterForm:
    if annotation is str:
        return "text"
    extras = getattr(annotation, "__metadata__", ())
    return "list" if any(isinstance(each, _Collects) for each in extras) else "value"


def _edge_type(annotation: Any, form: ParameterForm) -> Any:
    """Return the annotation of what one edge brings."""
    return typing.get_args(bare(annotation))[0] if form == "list" else annotation


def _fill(parameter: _Parameter, arrivals: list[Arrival]) -> Any:
    if parameter.form == "text":
        return arrivals_text(tuple(arrivals))
    is_many = parameter.form == "list" or len(arrivals) > 1
    values = [arrival.value.value for arrival in arrivals]
    value: Json = values if is_many else values[0]
    if parameter.json_type is None or parameter.json_type.is_plain:
        return value
    return parameter.json_type.read(value, parameter.name)


def _port_name(port: str | Port) -> str:
    return port if isinstance(port, str) else port.name


def _as_port(port: str | Port) -> Port:
    return Port(port, multiple=True) if isinstance(port, str) else port


def _returned_types(returned: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(returned) in (Union, UnionType)
    return typing.get_args(returned) if is_union else (returned,)


def _result_type(what: str, returned: Any) -> JsonType[Any]:
    """Return the type of plain results: the annotation without the envelopes that hold any value."""
    what = f"{what}: the result"
    kinds = _returned_types(returned)
    plain = tuple(kind for kind in kinds if kind not in _WRAPPER_TYPES)
    if plain != kinds:
        returned = Union[plain] if plain else Any  # noqa: UP007
    result_type = JsonType[Any](returned, what)
    result_type.require_readable(what)
    return result_type


def _output_port(port: str | Port, returned: Any, result_type: JsonType[Any]) -> Port:
    if isinstance(port, Port):
        return port
    has_wrapper = any(kind in _WRAPPER_TYPES for kind in _returned_types(returned))
    if port != DEFAULT_SOURCE_HANDLE or has_wrapper:
        return Port(port)
    returned = result_type.annotation
    return Port(port, socket_type(returned), schema=port_schema(returned, "serialization"))
