"""Protocols of node types, the only interface between ``executor`` and ``nodes``.

A type has ``execute`` (it runs as a stage), ``materialize`` (other nodes use it on demand), or both;
a type that waits for an answer also has ``resume``.
"""

from __future__ import annotations

import math
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import TracebackType
from typing import (
    Any,
    Final,
    Literal,
    NamedTuple,
    Protocol,
    TypeVar,
    cast,
    get_args,
    runtime_checkable,
)

from planwave.errors import PermanentError
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.inputs import Inputs
from planwave.graph.model import Arrival, Channel, DataValue, Edge, Effect, Graph, Json, Node, Port


class NodeEvent(NamedTuple):
    """An event that a node emits while it runs.

    ``event_type`` ``delta`` (``data: {"text", "kind"?}``) streams text and is not stored; ``log``
    (``{"message", "level"?}``) and ``usage`` become events of their own; all others are stored as
    ``node.event``.
    """

    node_id: str
    node_type: str
    event_type: str
    run_id: str = ""
    data: Json = None


class ExecutionResult(NamedTuple):
    """The result of a node: values by output handle. Edges from other handles are skipped."""

    outputs: Mapping[str, DataValue]
    events: Sequence[NodeEvent] = ()


class Suspension(NamedTuple):
    """A node waits for an answer: ``request`` is shown to the person, ``resume`` gets ``state``.

    After ``timeout_s`` seconds without an answer the node resumes with ``timeout_answer``.
    """

    request: Json
    state: Json = None
    timeout_s: float | None = None
    timeout_answer: Json = None


class WrittenBy(NamedTuple):
    """Who wrote a graph, if no person did; all graphs that run inside it count as written by the same.

    Attributes:
        author: ``model``: a language model, whose plans may hold less than graphs that people write.
        node_types: The only types that it may have, besides the rules for all plans; None for no others.
    """

    author: Literal["model"] = "model"
    node_types: tuple[str, ...] | None = None


class RuntimeApi(Protocol):
    """The services of the executor for a running node."""

    def get_node(self, node_id: str) -> Node: ...
    def incoming_edges(
        self, node_id: str, *, channel: Channel | None = None, target_handle: str | None = None
    ) -> Sequence[Edge]: ...
    def outgoing_edges(
        self, node_id: str, *, channel: Channel | None = None, source_handle: str | None = None
    ) -> Sequence[Edge]: ...
    def arrivals(self, node_id: str, target_handle: str | None = None) -> tuple[Arrival, ...]: ...
    async def resolve_links(self, node_id: str, target_handle: str) -> list[Any]: ...
    def cache_get(self, namespace: str, key: str) -> Any: ...
    def cache_set(self, namespace: str, key: str, value: Any) -> None: ...
    async def run_graph(
        self,
        key: str,
        graph: Graph,
        inputs: Mapping[str, Mapping[str, Json]],
        *,
        variables: Mapping[str, Json] | None = None,
        written_by: WrittenBy | None = None,
    ) -> Mapping[str, Mapping[str, DataValue]]: ...
    async def run_linked(
        self,
        key: str,
        node_id: str,
        inputs: Mapping[str, Json],
        *,
        variables: Mapping[str, Json] | None = None,
    ) -> Mapping[str, DataValue]: ...
    async def once(self, key: str, fn: Callable[[], Awaitable[Json]]) -> Json: ...
    async def open_once(
        self, key: str, make: Callable[[], AbstractAsyncContextManager[Any]]
    ) -> Any: ...
    async def resolve(self, value: Json, variables: Mapping[str, Json]) -> Json: ...
    @property
    def variables(self) -> Mapping[str, Json]: ...
    @property
    def catalogue(self) -> NodeTypes: ...
    @property
    def written_by(self) -> WrittenBy | None: ...


T = TypeVar("T")


def unlimited() -> float:
    """Return the seconds left to an attempt without a timeout: infinity."""
    return math.inf


def _emit_outside(kind: str, data: Json) -> None:
    """Refuse an event of a context that belongs to no running attempt."""
    raise PermanentError(
        f"event {kind!r} was emitted outside of a running node",
        code="reserved-event",
        hint="emit from execute or resume, not where a linked object is made",
    )


async def _record_outside(kind: str, data: Json) -> None:
    """Refuse an event of a context that belongs to no running attempt."""
    _emit_outside(kind, data)


class NodeTasks(Protocol):
    """An ``asyncio.TaskGroup`` whose tasks the driver sees waiting for nested runs."""

    async def __aenter__(self) -> NodeTasks: ...
    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> bool | None: ...
    def create_task(
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None
    ) -> Awaitable[T]: ...


def _task_group_outside() -> NodeTasks:
    """Refuse a task group of a context that belongs to no running attempt."""
    raise PermanentError(
        "a task group was opened outside of a running node",
        code="not-running",
        hint="open it in execute or resume, not where a linked object is made",
    )


class Reservation(Protocol):
    """Amounts of a budget that a node holds while it uses them."""

    def release(self) -> None:
        """Free them, once ``usage`` events say what was really used; a second call changes nothing."""
        ...


class Budget(Protocol):
    """The budget of an execution, for its nodes; ``amounts`` are the names of what is limited."""

    @property
    def amounts(self) -> Collection[str]: ...
    async def reserve(self, amounts: Mapping[str, float]) -> Reservation:
        """Hold amounts, by name, before they are used; wait, without a slot, until that is possible.

        The node's own time stands still meanwhile. Amounts that are not limited are ignored.
        """
        ...


@dataclass(slots=True)
class FlowContext:
    """The context of one attempt. ``services`` and ``state`` are opaque to the executor.

    ``answers`` counts the answers this attempt has received; ``time_left_s`` returns the seconds
    until its timeout, infinity without one. A node wraps its own work in ``with context.own_work():``
    while graphs run inside it: outside of such blocks it holds no slot and its own time does not pass.
    A wait for something that comes only after a while, such as a pause that a provider asks for, is
    ``async with context.idle():``; the execution gives its running place back while all its nodes wait so.
    What the process loads once, such as an SDK, is loaded in ``with context.loading():``: that time counts
    neither into the node's duration nor against its timeout.
    When these graphs only wait for answers, the node waits too. The task of a ``replayable`` type may
    end then; an answer executes the node again from the top. Tasks that ask for nested runs are started
    in ``async with context.task_group() as group:``, or one cannot see that they all wait.

    ``emit(kind, data)`` emits an event at once, from any callback or thread; what an async generator
    yields waits for the node's next step. A ``delta`` is streamed, everything else is stored.
    ``await record(kind, data)`` returns once the event is durable, and raises if it cannot be stored.
    ``budget`` is that of the execution, None where nothing limits it.

    ``may_replan``: the execution takes the event ``replan`` (``{"request": words}``) of this node, one of an
    attempt. Once the node has completed, a model changes what has not begun of the graph as the words say.

    ``local`` holds what the code of the node shares within this attempt, by name; never stored.
    """

    node_id: str
    run_id: str
    path: str
    attempt: int
    chat_id: str | None
    state: Any
    runtime: RuntimeApi
    services: Any
    answers: int = 0
    time_left_s: Callable[[], float] = unlimited
    own_work: Callable[[], AbstractContextManager[None]] = nullcontext
    emit: Callable[[str, Json], None] = _emit_outside
    record: Callable[[str, Json], Awaitable[None]] = _record_outside
    task_group: Callable[[], NodeTasks] = _task_group_outside
    budget: Budget | None = None
    idle: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    loading: Callable[[], AbstractContextManager[None]] = nullcontext
    may_replan: bool = False
    local: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def busy(self) -> Callable[[], AbstractContextManager[None]]:
        """Deprecated alias of ``own_work``, removed in the next release."""
        return self.own_work

    @property
    def left_s(self) -> Callable[[], float]:
        """Deprecated alias of ``time_left_s``, removed in the next release."""
        return self.time_left_s


@runtime_checkable
class FlowExecutor(Protocol):
    """A type that runs as a stage: a coroutine, or an async generator ending in its result."""

    node_type: str

    def execute(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> (
        Awaitable[ExecutionResult | Suspension]
        | AsyncIterator[NodeEvent | ExecutionResult | Suspension]
    ): ...


@runtime_checkable
class LinkMaterializer(Protocol):
    """A type that provides an artefact (a tool, a model, a connector) to link consumers."""

    node_type: str

    async def materialize(
        self, data: Mapping[str, Json], output_handle: str, context: FlowContext
    ) -> Any: ...


@runtime_checkable
class Resumable(Protocol):
    """A type that resumes after its suspension was answered: in the forms of ``execute``."""

    def resume(
        self,
        data: Mapping[str, Json],
        inputs: Inputs,
        context: FlowContext,
        state: Json,
        answer: Json,
    ) -> (
        Awaitable[ExecutionResult | Suspension]
        | AsyncIterator[NodeEvent | ExecutionResult | Suspension]
    ): ...


@runtime_checkable
class InputAdapter(Protocol):
    """An entry type that checks and adapts the inputs of an execution before they are stored."""

    def adapt_inputs(self, values: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the output values of the node for these inputs, by output handle.

        Must be idempotent: its own result is returned unchanged.

        Raises:
            InputError: The values are invalid.
        """
        ...


@runtime_checkable
class DeclaresInputs(Protocol):
    """An entry type whose nodes may declare fields: inputs of the flow that tasks and templates name."""

    def input_fields(self, data: Mapping[str, Json]) -> Sequence[str]:
        """Return the names of the fields that a node declares; none where it declares none."""
        ...

    def input_value(self, data: Mapping[str, Json], given: Json = None) -> Json:
        """Return the value of the node's first output, with the defaults of what is not given.

        Must be idempotent: its own result is returned unchanged.
        """
        ...

    def input_errors(self, data: Mapping[str, Json], given: Json = None) -> Iterable[Diagnostic]:
        """Yield what is wrong with the value of a run; pointers lead into that value."""
        ...


@runtime_checkable
class ReusableResult(Protocol):
    """A type whose results depend on more than the data and inputs of its nodes."""

    async def result_depends_on(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> Json:
        """Return everything else the result depends on, as JSON; equal if the result is still valid.

        Called when a node begins, and in a fork for a node whose earlier result may be reused. The
        hash of the value is stored with the result. ``context.runtime.once`` returns what the node has
        kept, or what it would keep; ``resolve_links`` what the node gets when it runs. The call must
        not run graphs or store values.

        Raises:
            PlanwaveError: The dependencies are unknown; no result is reused.
        """
        ...


class EffectByField(NamedTuple):
    """The effect of a node by the text in one of its data fields; of a list, the strongest.

    Any other value, a template, and a wire into the field have the effect of the type. ``effects`` may
    change while a process runs. With ``unless``, a node whose data have that field has the effect of the
    type: the text means something else there.
    """

    field: str
    effects: Mapping[str, Effect]
    absent: Effect
    unless: str = ""


class SchemaOutput(NamedTuple):
    """The port that an output is where a data field has a JSON Schema, which its values then fit.

    ``field`` is the data field; ``port`` stands in place of the declared output of its name. Where the field
    holds a name, ``named`` has the port of each that is known; it may change while a process runs. With
    ``unless``, a node whose data have that field has the outputs of its type: the name means something else.
    """

    field: str
    port: Port
    named: Mapping[str, Port] = {}
    unless: str = ""


class SourceKeys(NamedTuple):
    """The ids of the nodes before a node are keys in its value, so that a rename would change them.

    ``field`` of its data, ``{node id: key}``, has the keys that differ from the id; a rename writes it.
    With ``when``, this holds where that field of the data has the value ``equals``, or a wire.
    """

    field: str
    when: str = ""
    equals: str = ""


class NodeTypeInfo(NamedTuple):
    """Facts about a type for the checker, the planner and the driver; no behaviour.

    ``inputs`` and ``outputs`` are matched in order: fixed names before patterns before open ones.
    ``template_fields`` are the top-level ``data`` fields in which ``{{ … }}`` is resolved before
    the node runs; None means every field, () means none. ``chooses``: only one output carries a
    value in any run; implied by a numbered family of outputs. ``version`` and ``reads_goal`` are part
    of the key by which results are reused; see ``executor/reuse/result_key.py``.
    ``graph_fields`` are the top-level ``data`` fields that hold graph documents run inside the node;
    ``expression_fields`` those that are one expression, with or without braces.
    ``fails_permanently``: another attempt of a failed node fails in the same way. ``replayable``: its
    code may be executed again from the top while its nested runs wait for answers. ``purpose`` is for
    planners, ``summary`` for people who choose a type. ``materializes_unresolved``: ``materialize`` gets
    its data as they are written, because their expressions name inputs of a later run of the node.
    ``passes_on``: without an edge into it a node has nothing to do. ``depends_outside``: what ``result_depends_on`` names may change while the graph and its variables are
    the same. ``runs_graphs``: nodes may run graphs that are not in ``graph_fields``. ``effect`` is the strongest that a node of the
    type can have; see ``effect_of``.
    ``data_fields`` are the names of the ``data`` fields, under every spelling; ``declares_data``: the type
    has no others (one without a declaration may read any). Edges may not lead into
    ``policy_fields``, in any graph. A plan that a model wrote may set ``plan_fields`` alone (of an object,
    ``field.key`` is one key); its edges may not lead into ``closed_sockets`` (channel and handle), and
    its values of ``written_fields`` (graphs, names of flows) have no templates that are resolved before they run,
    and its texts in ``plan_literals`` none at all. ``run_by_nodes``: nodes run it by themselves.
    ``policy`` is that of a node for which whoever makes it says nothing else, as in a document.
    ``schema_output``: see ``ports.outputs_of``. ``stands_in``: its nodes keep the place of steps that are
    not known here, so that nothing is inferred from them and edges fit any handle of theirs; the type itself
    reports each as an error, and no plan of a model has one. ``guards_effect``: the code of the type itself sees to it that
    the effect of a node does not happen twice, so that a node that was cut off is executed again.
    ``decided_by_edges`` returns what the flow edges out of a node decide of its result, from its data and the handles that
    they leave through; None where they decide nothing. ``gives_reply``: whoever started the execution reads its reply from
    what a node of the type gives, so that no change of a running graph takes it away.
    """

    node_type: str
    purpose: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    entry: bool = False
    executes: bool = True
    materializes: bool = False
    effect: Effect = "none"
    template_fields: tuple[str, ...] | None = None
    chooses: bool = False
    version: int = 1
    reads_goal: bool = False
    graph_fields: tuple[str, ...] = ()
    expression_fields: tuple[str, ...] = ()
    fails_permanently: bool = False
    replayable: bool = False
    summary: str = ""
    effect_by: EffectByField | None = None
    materializes_unresolved: bool = False
    runs_graphs: bool = False
    data_fields: Mapping[str, str] = {}
    declares_data: bool = False
    policy_fields: tuple[str, ...] = ()
    plan_fields: tuple[str, ...] = ()
    written_fields: tuple[str, ...] = ()
    plan_literals: tuple[str, ...] = ()
    closed_sockets: frozenset[tuple[Channel, str]] = frozenset()
    run_by_nodes: bool = False
    depends_outside: bool = True
    source_keys: SourceKeys | None = None
    passes_on: bool = False
    policy: Mapping[str, Json] = {}
    schema_output: SchemaOutput | None = None
    stands_in: bool = False
    guards_effect: bool = False
    decided_by_edges: Callable[[Mapping[str, Json], Sequence[str]], Json] | None = None
    gives_reply: bool = False

    @property
    def possible_effects(self) -> frozenset[Effect]:
        """The effects that nodes of the type can have."""
        by = self.effect_by
        return frozenset((self.effect, *((*by.effects.values(), by.absent) if by else ())))


_EFFECTS: Final[tuple[Effect, ...]] = get_args(Effect)
"""From the weakest to the strongest."""


def strongest_effect(effects: Iterable[Effect]) -> Effect:
    """Return the strongest of some effects; ``none`` without any."""
    ranks = [_EFFECTS.index(each) for each in effects]
    return _EFFECTS[max(ranks, default=0)]


def effect_of(node: Node, facts: NodeTypeInfo, graph: Graph) -> Effect:
    """Return the side-effect class of a node: of its policy, its data or its type."""
    if node.policy.effect is not None:
        return node.policy.effect
    by = facts.effect_by
    if by is None:
        return facts.effect
    if by.unless and by.unless in node.data:
        return facts.effect
    if any(edge.target_handle == by.field for edge in graph.incoming.get(node.id, ())):
        return facts.effect
    if by.field not in node.data:
        return by.absent
    value = node.data[by.field]
    names = cast("list[Json]", value) if isinstance(value, list) else [value]
    return strongest_effect(
        by.effects.get(name, facts.effect) if isinstance(name, str) else facts.effect
        for name in names
    )


class NodeTypes(Protocol):
    """The closed registry of node types, as ``graph/`` and ``executor/`` see it."""

    def type_info(self, node_type: str) -> NodeTypeInfo | None:
        """Return the facts about a type, or None if there is no such type."""
        ...

    def implementation(self, node_type: str) -> Any:
        """Return the implementation of a type; raise KeyError if there is none."""
        ...

    def names(self) -> Sequence[str]:
        """Return all type names, sorted."""
        ...

    def accepts(self, target_type: str, source_type: str) -> bool:
        """Return whether a socket of one type accepts values of another type."""
        ...

    def for_subgraph(self, names: Iterable[str], inputs: Iterable[str] = ()) -> NodeTypes:
        """Return a catalogue of the same types for checking a graph nested in a node.

        Args:
            names: Variables that expressions of the nested graph may use in addition.
            inputs: Inputs of the flow around it, which its tasks may name too.
        """
        ...

    def check(self, node: Node, graph: Graph) -> Iterable[Diagnostic]:
        """Return the findings that only the node's type can make: data, templates, providers.

        Pointers are relative to the node (``/data/model``); the checker adds ``/nodes/{i}``. The
        pointers of findings with an ``edge`` are relative to that edge of the node, and the checker
        puts the edge in front of their messages.
        """
        ...
