"""Write a graph in Python instead of JSON.

::

    g = planwave.GraphBuilder()
    orders = g.node("start", id="orders")
    quotes = g.map(quote, orders, parallel=3)
    total = g.node(add_up, input=quotes, tax=0.2)
    verdict = g.agent("Is that too much? {{ input }}", output_type=Verdict, input=total)
    result = planwave.run_sync(g, [{"sku": "a", "count": 1}])
    result[verdict]  # a Verdict

A node as a keyword is an edge into the input of that name, any other value a data field. Keywords are
written in snake_case, in JSON they are camelCase. ``g.document()`` is an ordinary graph document.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeVar, get_origin, overload

from planwave.errors import InputError
from planwave.expressions import has_template, to_text
from planwave.graph.builder import (
    DocumentBuilder,
    Endpoint,
    HandleRef,
    NodeFields,
    NodeRef,
    ResultReader,
)
from planwave.graph.keywords import python_name
from planwave.graph.model import DEFAULT_TARGET_HANDLE, Graph, Json, Retry
from planwave.graph.suggestions import closest_match
from planwave.json_types import JsonType
from planwave.nodes.agents.tool import Tool
from planwave.nodes.agents.tool_function import FunctionTool
from planwave.nodes.authoring.data_fields import is_open, write_field
from planwave.nodes.authoring.node_type import BaseNode
from planwave.nodes.model_choice import named_model
from planwave.nodes.registry import Registry, installed_types

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

OnItemError = Literal["fail", "skip"]
ToolOfAgent = FunctionTool[..., Any] | Tool | Endpoint | str
"""A tool, its name, or a node that gives tools."""
_CASE: Final = "case-{}"
_DEFAULT: Final = "default"


class TypedNode(Protocol[R_co]):
    """A node type that is called as a function: what ``@planwave.node`` makes."""

    @property
    def node_type(self) -> str: ...
    def __call__(self, *args: Any, **kwargs: Any) -> R_co: ...


class SwitchRef(NodeRef[Any]):
    """A ``switch``; ``ref["refund"]`` is the branch of that case, ``ref.default`` that of all others."""

    __slots__ = ("_cases",)

    def __init__(self, builder: DocumentBuilder, node_id: str, cases: Sequence[Json]) -> None:
        super().__init__(builder, node_id)
        self._cases = [to_text(each) for each in cases]  # a switch compares texts

    def __getitem__(self, case: Json) -> HandleRef:
        names, text = self._cases, to_text(case)
        if text in names:
            return super().__getitem__(_CASE.format(names.index(text)))
        near = closest_match(text, names)
        raise InputError(
            f"the switch {self.id!r} has no case {case!r}",
            code="unknown-handle",
            hint=f"did you mean {near!r}?" if near else f"its cases are {', '.join(names)}",
        )

    @property
    def default(self) -> HandleRef:
        """The branch for what is none of the cases."""
        return super().__getitem__(_DEFAULT)


class GraphBuilder(DocumentBuilder):
    """Collects nodes and edges in the order they are added.

    The same calls always produce the same document, ids included. A wrong field or input is an error at
    the line that writes it.

    Args:
        registry: The node types; the library, installed packages and ``@planwave.node`` functions by
            default. A run of the graph uses the same.
        title: What runs of the graph are called in lists; by default the names of its first and last step.

    Raises:
        TypeError: The title is no text.
    """

    def __init__(self, registry: Registry | None = None, *, title: str = "") -> None:
        self.registry = installed_types() if registry is None else registry
        super().__init__(self.registry, title=title)

    @overload
    def node(
        self,
        node_type: str | type[BaseNode],
        /,
        *,
        id: str | None = None,
        name: str | None = None,
        description: str | None = None,
        data: Mapping[str, Json] | None = None,
        policy: Mapping[str, Json | Retry] | None = None,
        ui: Mapping[str, Json] | None = None,
        edges: Mapping[str, Endpoint | Sequence[Endpoint]] | None = None,
        **fields: Any,
    ) -> NodeRef[Any]: ...
    @overload
    def node(
        self,
        node_type: TypedNode[AsyncGenerator[Any, Any]],
        /,
        *,
        id: str | None = None,
        name: str | None = None,
        description: str | None = None,
        data: Mapping[str, Json] | None = None,
        policy: Mapping[str, Json | Retry] | None = None,
        ui: Mapping[str, Json] | None = None,
        edges: Mapping[str, Endpoint | Sequence[Endpoint]] | None = None,
        **fields: Any,
    ) -> NodeRef[Any]: ...
    @overload
    def node(
        self,
        node_type: TypedNode[Coroutine[Any, Any, R]],
        /,
        *,
        id: str | None = None,
        name: str | None = None,
        description: str | None = None,
        data: Mapping[str, Json] | None = None,
        policy: Mapping[str, Json | Retry] | None = None,
        ui: Mapping[str, Json] | None = None,
        edges: Mapping[str, Endpoint | Sequence[Endpoint]] | None = None,
        **fields: Any,
    ) -> NodeRef[R]: ...
    @overload
    def node(
        self,
        node_type: TypedNode[R],
        /,
        *,
        id: str | None = None,
        name: str | None = None,
        description: str | None = None,
        data: Mapping[str, Json] | None = None,
        policy: Mapping[str, Json | Retry] | None = None,
        ui: Mapping[str, Json] | None = None,
        edges: Mapping[str, Endpoint | Sequence[Endpoint]] | None = None,
        **fields: Any,
    ) -> NodeRef[R]: ...
    def node(
        self,
        node_type: str | type[BaseNode] | TypedNode[Any],
        /,
        *,
        id: str | None = None,
        name: str | None = None,
        description: str | None = None,
        data: Mapping[str, Json] | None = None,
        policy: Mapping[str, Json | Retry] | None = None,
        ui: Mapping[str, Json] | None = None,
        edges: Mapping[str, Endpoint | Sequence[Endpoint]] | None = None,
        **fields: Any,
    ) -> NodeRef[Any]:
        """Add a node.

        Args:
            node_type: Its type: a function with ``@planwave.node``, a ``NodeType``, or a name.
            id: Its id; generated from the type if None (``agent``, ``agent-2``, …).
            name: Its display name; the id if None.
            description: Its task.
            data: More data, spelled as in a document.
            policy: Its policy, as in a document, ``{"timeoutS": 5, "retry": Retry(attempts=2)}``; that of
                its type if None.
            ui: Stored for editors; planwave ignores it.
            edges: Edges into inputs whose names are no keywords: ``{"condition-0": node}``.
            **fields: Data in snake_case, ``system_prompt="…"``, and edges: ``input=node``, or
                ``input=[left, right]`` for one edge each, in this order, where the input takes several.
                The channel of an edge is that of the two ends. A value is JSON or of the field's type,
                such as a date; a graph is a builder, a JSON Schema may be a class, and
                ``model="openai:gpt-5"`` names a provider, too.

        Raises:
            InputError: The id is in use (``duplicate-id``) or malformed (``invalid-id``), something is
                written twice (``duplicate-key``), or a node is of another builder (``foreign-node``).
            TypeError: The type has no such field or input, it is not registered, a value is not JSON, or
                an input that takes one edge gets several.
            ValueError: No document may have the policy.
        """
        type_name = self._name_of(node_type)
        node_fields = NodeFields(name, description, data, policy, ui)
        keywords = self._with_provider(type_name, fields, data or {})
        node_id = self._add_node(type_name, id, node_fields, keywords, edges or {})
        return NodeRef(self, node_id, getattr(node_type, "result_type", None))

    @overload
    def agent(
        self,
        prompt: str,
        *,
        output_type: type[R],
        tools: Sequence[ToolOfAgent] = (),
        model: str | Endpoint | None = None,
        provider: str | None = None,
        system_prompt: str | Endpoint | None = None,
        input: Endpoint | Sequence[Endpoint] | None = None,
        id: str | None = None,
        name: str | None = None,
        policy: Mapping[str, Json | Retry] | None = None,
        **fields: Any,
    ) -> NodeRef[R]: ...
    @overload
    def agent(
        self,
        prompt: str,
        *,
        output_type: None = None,
        tools: Sequence[ToolOfAgent] = (),
        model: str | Endpoint | None = None,
        provider: str | None = None,
        system_prompt: str | Endpoint | None = None,
        input: Endpoint | Sequence[Endpoint] | None = None,
        id: str | None = None,
        name: str | None = None,
        policy: Mapping[str, Json | Retry] | None = None,
        **fields: Any,
    ) -> NodeRef[str]: ...
    def agent(
        self,
        prompt: str,
        *,
        output_type: type[Any] | None = None,
        tools: Sequence[ToolOfAgent] = (),
        model: str | Endpoint | None = None,
        provider: str | None = None,
        system_prompt: str | Endpoint | None = None,
        input: Endpoint | Sequence[Endpoint] | None = None,
        id: str | None = None,
        name: str | None = None,
        policy: Mapping[str, Json | Retry] | None = None,
        **fields: Any,
    ) -> NodeRef[Any]:
        """Add an ``agent``: one task for a language model.

        Args:
            prompt: The task; ``{{ input }}`` stands for what arrives.
            output_type: The type of its result; None for text.
            tools: What the model may call: functions with ``@planwave.tool``, names of registered tools,
                and nodes that give tools, such as another agent.
            model: ``"openai:gpt-5"``, a model of ``provider``, or a node of the type ``model``; None
                for the default one.
            provider: The provider; None for the default one.
            system_prompt: Who the model is and how it replies.
            input: The nodes whose results it gets.
            id: Its id; generated if None.
            name: Its display name; the id if None.
            policy: Its policy, as in a document.
            **fields: As for [node][planwave.GraphBuilder.node].

        Raises:
            InputError: See [node][planwave.GraphBuilder.node].
            TypeError: See [node][planwave.GraphBuilder.node]; a tool is none, or is not registered.
        """
        optional = {
            "model": model, "provider": provider, "system_prompt": system_prompt, "input": input,
            "output_schema": output_type,
        }  # fmt: skip
        fields |= {field: value for field, value in optional.items() if value is not None}
        names = [self._tool_name(each) for each in tools if not isinstance(each, Endpoint)]
        givers = [each for each in tools if isinstance(each, Endpoint)]
        if names:
            givers.insert(0, self.node("toolset", names=names))
        if givers:
            fields["tools"] = givers
        agent = self.node("agent", id=id, name=name, policy=policy, user_prompt=prompt, **fields)
        reader = None if output_type is None else JsonType[Any](output_type, "output_type")
        return NodeRef(self, agent.id, reader)

    def switch(
        self,
        source: Endpoint,
        cases: Sequence[Json],
        *,
        id: str | None = None,
        name: str | None = None,
        **fields: Any,
    ) -> SwitchRef:
        """Add a ``switch``: what arrives leaves through the branch of the first case that it is.

        ::

            kind = g.switch(label, cases=["refund", "other"])
            g.node(pay_back, input=kind["refund"])
            g.node(ask, input=kind.default)

        Args:
            source: What is compared, and passed on.
            cases: The values, tried in order.
            id: Its id; generated if None.
            name: Its display name; the id if None.
            **fields: As for [node][planwave.GraphBuilder.node]: ``value`` is compared in place of what arrives.

        Raises:
            InputError, TypeError: See [node][planwave.GraphBuilder.node].
        """
        cases = list(cases)
        node = self.node("switch", id=id, name=name, input=source, cases=cases, **fields)
        return SwitchRef(self, node.id, cases)

    @overload
    def map(
        self,
        body: TypedNode[AsyncGenerator[Any, Any]] | GraphBuilder | str | type[BaseNode],
        source: Endpoint | Sequence[Json],
        *,
        parallel: int | None = None,
        on_item_error: OnItemError | Literal["null"] = "fail",
        max_items: int | None = None,
        id: str | None = None,
        name: str | None = None,
        policy: Mapping[str, Json | Retry] | None = None,
        **fields: Any,
    ) -> NodeRef[list[Any]]: ...
    @overload
    def map(
        self,
        body: TypedNode[Coroutine[Any, Any, R]],
        source: Endpoint | Sequence[Json],
        *,
        parallel: int | None = None,
        on_item_error: OnItemError = "fail",
        max_items: int | None = None,
        id: str | None = None,
        name: str | None = None,
        policy: Mapping[str, Json | Retry] | None = None,
        **fields: Any,
    ) -> NodeRef[list[R]]: ...
    @overload
    def map(
        self,
        body: TypedNode[Coroutine[Any, Any, R]],
        source: Endpoint | Sequence[Json],
        *,
        parallel: int | None = None,
        on_item_error: Literal["null"],
        max_items: int | None = None,
        id: str | None = None,
        name: str | None = None,
        policy: Mapping[str, Json | Retry] | None = None,
        **fields: Any,
    ) -> NodeRef[list[R | None]]: ...
    @overload
    def map(
        self,
        body: TypedNode[R],
        source: Endpoint | Sequence[Json],
        *,
        parallel: int | None = None,
        on_item_error: OnItemError = "fail",
        max_items: int | None = None,
        id: str | None = None,
        name: str | None = None,
        policy: Mapping[str, Json | Retry] | None = None,
        **fields: Any,
    ) -> NodeRef[list[R]]: ...
    @overload
    def map(
        self,
        body: TypedNode[R],
        source: Endpoint | Sequence[Json],
        *,
        parallel: int | None = None,
        on_item_error: Literal["null"],
        max_items: int | None = None,
        id: str | None = None,
        name: str | None = None,
        policy: Mapping[str, Json | Retry] | None = None,
        **fields: Any,
    ) -> NodeRef[list[R | None]]: ...
    def map(
        self,
        body: TypedNode[Any] | GraphBuilder | str | type[BaseNode],
        source: Endpoint | Sequence[Json],
        *,
        parallel: int | None = None,
        on_item_error: OnItemError | Literal["null"] = "fail",
        max_items: int | None = None,
        id: str | None = None,
        name: str | None = None,
        policy: Mapping[str, Json | Retry] | None = None,
        **fields: Any,
    ) -> NodeRef[Any]:
        """Add a ``loop``: a node or a graph runs once for each item of a list.

        Args:
            body: The type of node that runs for each item, which it gets as its input; or a builder,
                whose entry node begins with the item.
            source: The node that gives the list, or a list.
            parallel: The items that run at the same time; 5 if None.
            on_item_error: What a failing item does: fail the node, be left out (``skip``), or give
                None (``null``).
            max_items: The most items it takes.
            id: Its id; generated if None.
            name: Its display name; the id if None.
            policy: Its policy, as in a document.
            **fields: Data fields of the node that runs for each item.

        Raises:
            InputError: See [node][planwave.GraphBuilder.node].
            TypeError: See [node][planwave.GraphBuilder.node]; the type has several inputs, and the item could go to each.
        """
        reader: ResultReader[Any] | None = None
        if isinstance(body, GraphBuilder):
            if fields:
                raise TypeError(
                    f"{', '.join(fields)}: write data fields into the graph of the body"
                )
            graph = body
        else:
            graph = GraphBuilder(self.registry)
            item = graph.node("start", id="item")
            reader = graph.node(body, **{self._item_input(body): item}, **fields).result_type
        optional = {"parallel": parallel, "max_items": max_items}
        settings: dict[str, Any] = {k: v for k, v in optional.items() if v is not None}
        if on_item_error != "fail":
            settings["on_item_error"] = on_item_error
        settings["input" if isinstance(source, Endpoint) else "items"] = source
        loop = self.node("loop", id=id, name=name, policy=policy, body=graph, **settings)
        return NodeRef(self, loop.id, None if reader is None else _ListReader(reader))

    def _name_of(self, node_type: Any) -> str:
        """Return the name of a type.

        Raises:
            TypeError: It is no node type, or not one of the registry.
        """
        if isinstance(node_type, str):
            return node_type
        type_name = getattr(node_type, "node_type", None)
        if not isinstance(type_name, str):
            raise TypeError(
                f"{node_type!r} is no node type; a function becomes one by @planwave.node above it"
            )
        registered = (
            None
            if self.registry.type_info(type_name) is None
            else self.registry.implementation(type_name)
        )
        if registered is not node_type and type(registered) is not node_type:
            raise TypeError(
                f"{node_type!r} is not registered here; for types of another registry write "
                "planwave.GraphBuilder(registry)"
            )
        return type_name

    def _tool_name(self, tool: Any) -> str:
        """Return the name of a registered tool.

        Raises:
            TypeError: It is no tool, or not one of the registry.
        """
        own: Any = tool.tool if isinstance(tool, FunctionTool) else tool
        if isinstance(own, str):
            return own
        if not isinstance(own, Tool):
            raise TypeError(
                f"{tool!r} is no tool; a function becomes one by @planwave.tool above it"
            )
        registered = self.registry.tools.get(own.name)
        if registered is None or registered.tool is not own:
            raise TypeError(f"the tool {own.name!r} is not registered here")
        return own.name

    def _item_input(self, body: Any) -> str:
        """Return the keyword of the input that gets the item.

        Raises:
            TypeError: The type has none, or several of which none is called ``input``.
        """
        type_name = self._name_of(body)
        facts = self.registry.type_info(type_name)
        if facts is None:
            return DEFAULT_TARGET_HANDLE
        inputs = [
            p.name for p in facts.inputs if p.name not in facts.data_fields and not is_open(p)
        ]
        if DEFAULT_TARGET_HANDLE in inputs:
            return DEFAULT_TARGET_HANDLE
        if len(inputs) != 1:
            listed = ", ".join(map(repr, inputs)) or "none"
            raise TypeError(
                f"the item goes to the one input of {type_name!r}, which has {listed}; for another "
                "way build the body with a planwave.GraphBuilder"
            )
        return python_name(inputs[0])

    def _with_provider(
        self, type_name: str, keywords: Mapping[str, Any], data: Mapping[str, Json]
    ) -> Mapping[str, Any]:
        """Split ``model="openai:gpt-5"`` where the type has both fields and no provider is given."""
        facts, model = self.registry.type_info(type_name), keywords.get("model")
        fields = () if facts is None else facts.data_fields
        is_given = "provider" in keywords or "provider" in data
        if is_given or not isinstance(model, str) or not {"provider", "model"} <= {*fields}:
            return keywords
        if has_template(model):
            return keywords
        provider, model = named_model(None, model)
        return {**keywords, "model": model} | ({} if provider is None else {"provider": provider})

    def _as_json(self, node_type: str, name: str, value: Any) -> Json:
        """See the base class; the JSON Schema of a type, a value of the field's own type, and the name of a tool."""
        if isinstance(value, Graph):
            return value.to_document()
        if isinstance(value, FunctionTool | Tool):
            return self._tool_name(value)
        if isinstance(value, type) or get_origin(value) is not None:
            return JsonType[Any](value, "the type of a field").schema("validation")
        known = self.registry.type_info(node_type) is not None
        model = self.registry.implementation(node_type).Data if known else None
        return write_field(model, name, super()._as_json(node_type, name, value))


class _ListReader:
    """Reads the results of a loop; an item that failed and gave null is None."""

    def __init__(self, item: ResultReader[Any]) -> None:
        self._item = item

    def read(self, value: Any, what: str, /) -> list[Any]:
        """See ``ResultReader``."""
        return [
            None if each is None else self._item.read(each, f"{what}[{index}]")
            for index, each in enumerate(value)
        ]
