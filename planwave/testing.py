"""Tests of graphs: models that reply what a test says, steps that a test replaces, no real call.

Nothing here is needed to run a graph, and ``import planwave`` does not load it.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Collection,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, aclosing, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from typing_extensions import Unpack

from planwave import library
from planwave.errors import InputError, PermanentError, ProviderError
from planwave.executor.program import Program
from planwave.graph.builder import NodeRef
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Graph, Json, fixed_handles
from planwave.graph.ports import outputs_of
from planwave.graph.protocols import (
    ExecutionResult,
    FlowContext,
    NodeTypeInfo,
    NodeTypes,
    Suspension,
)
from planwave.graph.subgraphs import all_nodes
from planwave.graph.suggestions import closest_match
from planwave.json_types import written_plainly
from planwave.nodes.authoring.function import FunctionNode
from planwave.nodes.authoring.node_type import as_result, default_output
from planwave.providers.protocols import (
    CallScope,
    Delta,
    ModelReply,
    ModelRequest,
    Models,
    ToolCall,
    Usage,
    text_tokens,
)
from planwave.providers.substitutes import ForbiddenModels, forbidden_call, process_calls
from planwave.service.library.arguments import RunArguments, arguments_of
from planwave.service.library.event_loops import require_no_loop
from planwave.service.library.graphs import BuiltGraph, GraphSource
from planwave.service.library.runs import Run
from planwave.source_locations import hides_inner_frames

if TYPE_CHECKING:
    from planwave.service.library.results import RunResult

__all__ = [
    "FakeModel",
    "ModelRequest",
    "ToolCall",
    "forbid_model_calls",
    "run",
    "run_sync",
    "tool_call",
    "use_model",
]

Reply = Any
"""What a model replies; see ``FakeModel``."""
ReplyFunction = Callable[[ModelRequest], Reply]

_ANY_MODEL: Final = "*"
_SHOWN_CHARS: Final = 200
_WORDS: Final = re.compile(r"\S+\s*|\s+")
_KEYS: Final = re.compile(r"\[[^\]]*\]")
"""The keys of graph runs in a path: which item of a loop, which call of an agent."""


# -- models ----------------------------------------------------------------------------------------


def tool_call(name: str, /, **arguments: Json) -> ToolCall:
    """Return a call of a tool, as a reply of a [FakeModel][planwave.testing.FakeModel].

    Args:
        name: The name by which the model knows the tool.
        **arguments: The arguments.
    """
    return ToolCall("", name, json.dumps(arguments))


class FakeModel:
    """A language model that replies what a test says.

    All the rest is real: the budget, what is recorded and streamed, tokens (estimated) and prices. Calls
    are not tried again; the retry policy of a step is.

    A reply is a text, a [tool_call][planwave.testing.tool_call], or a list of texts and calls, which
    are one turn; a model of pydantic or any other JSON, which is written as text; or an exception, which
    the call raises: ``planwave.errors.ProviderError("…", provider="openai", code="rate-limited")``.
    Text is streamed word by word, and that of an iterator (a generator) piece by piece.

    Args:
        reply: A function of the request, also an async one; or a list of replies, one for each request
            in the order in which they come; or one reply to all requests.

    Attributes:
        requests: The requests so far: each has ``system``, ``messages`` (the conversation so far) and
            ``prompt``, which follows them; ``tool_names``, ``tool_results``, ``images``, ``schema`` of
            the output, ``provider`` and ``model``.
    """

    def __init__(self, reply: ReplyFunction | Sequence[Reply] | Reply) -> None:
        self.requests: list[ModelRequest] = []
        self._reply = reply

    async def stream(
        self, request: ModelRequest, scope: CallScope | None = None
    ) -> AsyncGenerator[Delta | ModelReply]:
        """Reply to a request, as ``planwave.providers.protocols.Models`` does."""
        self.requests.append(request)
        number = len(self.requests)
        reply = self._reply_to(request, number)
        if inspect.isawaitable(reply):
            reply = await reply
        if isinstance(reply, BaseException):
            raise reply
        texts: list[str] = []
        calls: list[ToolCall] = []
        async with aclosing(_pieces(reply)) as pieces:
            async for piece in pieces:
                if isinstance(piece, ModelReply):
                    yield dataclasses.replace(piece, provider=request.provider, model=request.model)
                    return
                if isinstance(piece, ToolCall):
                    _require_offered(piece, request)
                    calls.append(piece._replace(id=f"call-{number}-{len(calls) + 1}"))
                    continue
                if piece.kind == "text":
                    texts.append(piece.text)
                elif piece.kind == "discarded":
                    texts.clear()
                yield piece
        yield _finished("".join(texts), calls, request)

    def _reply_to(self, request: ModelRequest, number: int) -> Reply:
        if callable(self._reply):
            return self._reply(request)
        if not _is_sequence(self._reply):
            return self._reply
        if number > len(self._reply):
            raise ProviderError(
                f"the fake model has no reply left of {len(self._reply)}, and request {number}, to "
                f"{request.provider}:{request.model}, asks: {_last_words(request)!r}",
                provider=request.provider,
                model=request.model,
                code="no-reply-left",
                hint="give FakeModel another reply, or a function of the request",
            )
        return self._reply[number - 1]


def _is_sequence(reply: Reply) -> bool:
    """Return whether a value is a list of replies or of the parts of one; named tuples are not."""
    return isinstance(reply, list) or type(reply) is tuple


async def _pieces(reply: Reply) -> AsyncGenerator[Delta | ToolCall | ModelReply]:
    """Yield the parts of a reply, text as it is streamed."""
    if isinstance(reply, Iterator | AsyncIterator):
        async with aclosing(_each(cast("Iterator[Any] | AsyncIterator[Any]", reply))) as parts:
            async for part in parts:
                is_whole = isinstance(part, Delta | ToolCall | ModelReply)
                yield part if is_whole else Delta(_text_of(part))
        return
    is_turn = _is_sequence(reply) and any(isinstance(part, ToolCall) for part in reply)
    for part in reply if is_turn else (reply,):
        if isinstance(part, ToolCall):
            yield part
            continue
        for word in _WORDS.findall(part.text if isinstance(part, ModelReply) else _text_of(part)):
            yield Delta(word)
        if isinstance(part, ModelReply):
            yield part


async def _each(parts: Iterator[Any] | AsyncIterator[Any]) -> AsyncGenerator[Any]:
    """Yield the parts of an iterator; a generator is closed where it is left early."""
    try:
        if isinstance(parts, AsyncIterator):
            async for part in parts:
                yield part
            return
        for part in parts:
            yield part
    finally:
        if isinstance(parts, AsyncGenerator):
            await cast("AsyncGenerator[Any]", parts).aclose()
        elif isinstance(parts, Generator):
            cast("Generator[Any]", parts).close()


def _text_of(part: Reply) -> str:
    if isinstance(part, str):
        return part
    if part is None:
        raise TypeError("the fake model replies None: return a text, tool_call(…) or other JSON")
    if isinstance(part, BaseModel):
        return part.model_dump_json(by_alias=True)
    return json.dumps(to_jsonable_python(part, by_alias=True), ensure_ascii=False)


def _require_offered(call: ToolCall, request: ModelRequest) -> None:
    names = request.tool_names
    if call.name not in names:
        near = closest_match(call.name, names)
        known = f"did you mean {near!r}?" if near else f"its tools are {', '.join(names) or 'none'}"
        raise ValueError(f"the fake model calls {call.name!r}, which it is not offered; {known}")


def _finished(text: str, calls: Sequence[ToolCall], request: ModelRequest) -> ModelReply:
    written = (part for call in calls for part in (call.name, call.arguments))
    tokens = Usage(text_tokens(*request.texts), text_tokens(text, *written), estimated=True)
    return ModelReply(
        text, request.provider, request.model, "stop", tokens, tool_calls=tuple(calls)
    )


def _last_words(request: ModelRequest) -> str:
    """Return what a request asks last, shortened."""
    last = request.messages[-1].text if request.messages else ""
    text = request.prompt or last
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


class _ModelsByName:
    """A fake model for each name, ``provider:model`` or ``*``; satisfies ``protocols.Models``."""

    def __init__(self, models: Mapping[str, FakeModel]) -> None:
        self._models = models

    def stream(
        self, request: ModelRequest, scope: CallScope | None = None
    ) -> AsyncGenerator[Delta | ModelReply]:
        name = f"{request.provider}:{request.model}"
        model = self._models.get(name) or self._models.get(_ANY_MODEL)
        if model is None:
            raise forbidden_call(request.provider, request.model)
        return model.stream(request, scope)


ModelOrModels = FakeModel | Mapping[str, FakeModel]
Replacements = Mapping[str, Any] | Mapping[NodeRef[Any], Any]
ModelT = TypeVar("ModelT", bound=ModelOrModels)


def _substitute(model: Any) -> Models:
    """Return what replies to the calls of a test.

    Raises:
        TypeError: It is no fake model, nor some by name.
    """
    if isinstance(model, FakeModel):
        return model
    models = cast("Mapping[str, FakeModel]", model if isinstance(model, Mapping) else {"": model})
    if all(isinstance(cast("object", each), FakeModel) for each in models.values()):
        return _ModelsByName(models)
    raise TypeError(
        'model must be a FakeModel(…), or some by name, {"openai:gpt-5": FakeModel(…), "*": …}, '
        f"not {model!r}"
    )


@contextmanager
def use_model(model: ModelT) -> Generator[ModelT]:
    """Let a fake model reply to all calls that this process makes in a block, whoever makes them.

    So planning is tested too: ``with use_model(FakeModel(plan_as_json)): planwave.plan_sync("…")``; and
    a service that is opened in the block.

    Args:
        model: As in [run][planwave.testing.run].
    """
    before, process_calls.substitute = process_calls.substitute, _substitute(model)
    try:
        yield model
    finally:
        process_calls.substitute = before


class _Guard(AbstractContextManager[None]):
    """Real model calls are forbidden; until the end of the block, if it is entered."""

    def __init__(self, allow: Collection[str]) -> None:
        self._before = process_calls.allowed, process_calls.substitute
        process_calls.allowed = frozenset(allow)
        process_calls.substitute = None if allow else ForbiddenModels()

    def __exit__(self, *raised: object) -> None:
        process_calls.allowed, process_calls.substitute = self._before


def forbid_model_calls(*, allow: Collection[str] = ()) -> AbstractContextManager[None]:
    """Make every real model call of this process an error from now on, which says what to do.

    For a ``conftest.py``. Calls of the embedded model and its download count too; servers of tools
    (MCP) do not. The call alone is enough; as a context manager it holds until the end of the block.

    Args:
        allow: Providers by name (``local`` for the embedded model), and hosts of providers, that may be
            called all the same: ``["127.0.0.1"]`` for a model server that the tests start.
    """
    if isinstance(allow, str):
        raise TypeError(f"allow must be a list of names: write allow=[{allow!r}]")
    return _Guard(allow)


# -- runs ------------------------------------------------------------------------------------------


@hides_inner_frames
@arguments_of(library.run)
def run(
    graph: BuiltGraph | GraphSource,
    message: Any = None,
    *,
    model: ModelOrModels | None = None,
    replace: Replacements | None = None,
    **arguments: Unpack[RunArguments],
) -> Run:
    """Run a graph as [planwave.run][planwave.run] does, with fake models, and with steps replaced.

    No real model is called: a call that ``model`` does not reply to is an error.

    A replaced step does not run: it gives the value, or what the function returns, which may be async
    or raise. Its type checks what it gives, as it checks a result. The function is called with
    those arguments that it takes, by name: of a ``@planwave.node`` step all that the node's own
    function gets; of another step the values that arrived, by the name of the input, and ``data``
    (expressions resolved), ``inputs`` and ``context``. ``unittest.mock.Mock`` counts its calls.

    Args:
        graph: As in [planwave.run][planwave.run].
        message: As in [planwave.run][planwave.run].
        model: Replies to all model calls, whatever provider and model a step names; or models by
            name: ``{"openai:gpt-5": FakeModel(…), "*": FakeModel(…)}``.
        replace: ``{path: value or function}``, or by the step of a builder. The path of a step inside a loop or a nested graph is
            ``loop/step``, for every item; ``loop[0]/step`` is the step of the first item. Graphs that are
            made in the run, such as the plan of a ``planner`` step, have no such paths.
        **arguments: As in [planwave.run][planwave.run].

    Raises:
        InputError: ``unknown-node``: there is no such step to replace. See also [planwave.run][planwave.run].
        TypeError: An argument is of another type; there is a ``model`` beside ``services``.
    """
    substitute = process_calls.substitute if model is None else _substitute(model)
    if model is not None and arguments.get("services") is not None:
        raise TypeError("services= have their own models: leave out model=, or services=")
    built = graph
    if not isinstance(graph, BuiltGraph):
        built = library.build(graph, registry=arguments.get("registry"))
    if replace:
        built = _with_replacements(cast("BuiltGraph", built), replace)
    started = library.run(built, message, **arguments)
    open_services = partial(
        started.environment.services_factory, substitute=substitute or ForbiddenModels()
    )
    started.environment = dataclasses.replace(started.environment, services_factory=open_services)
    return started


@hides_inner_frames
@arguments_of(run)
def run_sync(
    graph: BuiltGraph | GraphSource,
    message: Any = None,
    *,
    model: ModelOrModels | None = None,
    replace: Replacements | None = None,
    **arguments: Unpack[RunArguments],
) -> RunResult:
    """Run a graph from code without an event loop; arguments as in [run][planwave.testing.run].

    Returns:
        The result, as of [planwave.run_sync][planwave.run_sync].

    Raises:
        ExecutionFailed: The run failed, unless ``check=False``.
        RuntimeError: Called inside a running event loop; ``await`` [run][planwave.testing.run] there.
    """
    require_no_loop("planwave.testing.run_sync", "planwave.testing.run(…)")
    return run(graph, message, model=model, replace=replace, **arguments).wait()


# -- replaced steps --------------------------------------------------------------------------------


class _Replacement(NamedTuple):
    """What a step gives in place of running: a value, or what a function returns."""

    path: str
    given: Any

    async def result(self, **arguments: Any) -> Any:
        """Return the value, or call the function with those arguments that it takes."""
        if not callable(self.given):
            return self.given
        value = self.given(**self._taken(arguments))
        return await value if inspect.isawaitable(value) else value

    def _taken(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        parameters = inspect.signature(self.given).parameters.values()
        if any(each.kind is each.VAR_KEYWORD for each in parameters):
            return arguments
        for each in parameters:
            is_named = each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
            if each.default is each.empty and not (is_named and each.name in arguments):
                raise TypeError(
                    f"the function in place of {self.path!r} takes {each.name!r}, which the step does "
                    f"not get by name; it gets {', '.join(sorted(arguments))}"
                )
        return {each.name: arguments[each.name] for each in parameters if each.name in arguments}


class _Replacements:
    """The replaced steps of a graph, and of the graphs inside it, by path.

    Raises:
        InputError: ``unknown-node``: there is no such step.
    """

    def __init__(self, given: Mapping[str, Any], graph: Graph, catalogue: NodeTypes) -> None:
        types = {each.path: each.node.type for each in all_nodes(graph, catalogue)}
        self._types = types
        self._steps = [path for path, name in types.items() if _facts(name, catalogue).executes]
        self._by_path = {path: _Replacement(path, value) for path, value in given.items()}
        for path in given:
            self._require_step(path)

    def at(self, path: str) -> _Replacement | None:
        """Return what replaces the step at a path of a run; None where it runs."""
        return self._by_path.get(path) or self._by_path.get(self._path_in_document(path))

    def _require_step(self, path: str) -> None:
        known = self._path_in_document(path)
        if known in self._steps:
            return
        if known in self._types:
            reason = (
                f"a node of the type {self._types[known]!r} does not run by itself; replace a step "
                "that it is linked to"
            )
        elif near := closest_match(path, self._steps):
            reason = f"did you mean {near!r}?"
        else:
            reason = f"the steps are {', '.join(self._steps)}"
        raise InputError(
            f"there is no step {path!r} to replace: {reason}",
            code="unknown-node",
            hint="a step inside another one is 'loop/step', or 'loop[0]/step' for one item",
        )

    def _path_in_document(self, path: str) -> str:
        """Return the path without the keys of runs; a node that another one runs stands beside it."""
        parts: list[str] = []
        for part in _KEYS.sub("", path).split("/"):
            is_inside = "/".join([*parts, part]) in self._types
            if not is_inside and "/".join([*parts[:-1], part]) in self._types:
                parts = parts[:-1]
            parts.append(part)
        return "/".join(parts)


class _ReplacingTypes:
    """Node types some of whose nodes are replaced; satisfies ``graph.protocols.NodeTypes``.

    They declare nothing that results depend on: to find that out may call what is outside.
    """

    def __init__(self, catalogue: NodeTypes, replacements: _Replacements) -> None:
        self._catalogue, self._replacements = catalogue, replacements

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalogue, name)

    def implementation(self, node_type: str) -> Any:
        """Return a type with all that it has, but what it does where a node is replaced."""
        original = self._catalogue.implementation(node_type)
        names = [name for name in dir(original) if not name.startswith("__")]
        attributes = {name: getattr(original, name) for name in names}
        attributes.pop("result_depends_on", None)
        if "execute" in attributes:
            facts = _facts(node_type, self._catalogue)
            attributes["execute"] = partial(_execute, original, facts, self._replacements)
        return SimpleNamespace(**attributes)


def _execute(
    original: Any,
    facts: NodeTypeInfo,
    replacements: _Replacements,
    data: Mapping[str, Json],
    inputs: Inputs,
    context: FlowContext,
) -> Any:
    """Execute a node, or what replaces it."""
    replacement = replacements.at(context.path)
    if replacement is None:
        return original.execute(data, inputs, context)
    if isinstance(original, FunctionNode):
        typed = cast("FunctionNode[..., Any]", original)
        return typed.with_function(replacement.result).execute(data, inputs, context)
    return _replaced(replacement, facts, data, inputs, context)


async def _replaced(
    replacement: _Replacement,
    facts: NodeTypeInfo,
    data: Mapping[str, Json],
    inputs: Inputs,
    context: FlowContext,
) -> ExecutionResult | Suspension:
    """Return the result of a replaced node that is no function."""
    arrived = {handle: value.value for handle, value in inputs.items()}
    by_handle = dict.fromkeys(fixed_handles(facts.inputs)) | arrived
    own = {"data": data, "inputs": inputs, "context": context}
    value = await replacement.result(**(own | by_handle))
    node = context.runtime.get_node(context.node_id)
    port = default_output(outputs_of(node, facts))
    if isinstance(value, ExecutionResult | Suspension | DataValue):
        return as_result(value, port)
    value = written_plainly(value)
    result = as_result(value, port)
    if port is not None and port.schema is not None:
        _check_schema(value, port.schema)
    return result


def _check_schema(value: Json, schema: Mapping[str, Json]) -> None:
    """Check the value of a step against the schema of its output.

    Raises:
        NodeError: ``invalid-result``.
    """
    # Lazy: test_importing_the_node_library_loads_no_sdk
    from planwave.nodes.json_schema import validate

    if errors := validate(dict(schema), value):
        place = f"{errors[0].pointer}: " if errors[0].pointer else ""
        raise PermanentError(
            f"the value in place of the step does not fit the schema of its output: {place}"
            f"{errors[0].message}",
            code="invalid-result",
            hint="give what the step would give, or correct the schema",
        )


def _facts(node_type: str, catalogue: NodeTypes) -> NodeTypeInfo:
    return cast("NodeTypeInfo", catalogue.type_info(node_type))


def _path_of(step: object) -> str:
    path = step.id if isinstance(step, NodeRef) else step
    if not isinstance(path, str):
        raise TypeError(f"replace is {{path: value}}, the path as text, not {step!r}")
    return path


def _with_replacements(built: BuiltGraph, given: Replacements) -> BuiltGraph:
    catalogue, graph = built.program.catalogue, built.program.graph
    by_path = {_path_of(step): value for step, value in given.items()}
    types = _ReplacingTypes(catalogue, _Replacements(by_path, graph, catalogue))
    return dataclasses.replace(built, program=Program(graph, cast("NodeTypes", types)))
