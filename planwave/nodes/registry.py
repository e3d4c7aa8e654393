"""The registry of node types; a graph may use only registered types."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Literal, NamedTuple, TypeVar, cast

from planwave.errors import InputError, PermanentError
from planwave.expressions import check_task, has_template
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.flow_inputs import flow_inputs_of
from planwave.graph.model import DEFAULT_POLICY, Graph, Json, Node
from planwave.graph.protocols import EffectByField, NodeTypeInfo, SchemaOutput
from planwave.graph.reading.policy import policy_limit_findings
from planwave.graph.suggestions import edge_suggestion, node_suggestion
from planwave.nodes.agents.tool_registry import ToolRegistry, default_tools
from planwave.nodes.authoring.data_fields import accepts
from planwave.nodes.authoring.entry_points import broken_package, load_entry_point
from planwave.nodes.authoring.node_type import OUTPUT, NodeFinding, validate_data
from planwave.nodes.checking.data_checks import DataChecks, FoundModel, model_finding
from planwave.nodes.checking.node_view import GraphIndex
from planwave.nodes.checking.subgraphs import check_subgraph, inline_graphs
from planwave.nodes.library import LIBRARY
from planwave.nodes.model_choice import with_default_model
from planwave.nodes.modules import load_node_module
from planwave.nodes.sockets import (
    SocketStyle,
    port_documents,
    ports_of_node,
    socket_documents,
    socket_styles,
)
from planwave.nodes.spec import LIBRARY_PREFIX, RegisteredType, as_document, data_schema, spec_of
from planwave.prompts.render import ToolCard
from planwave.providers.protocols import Providers
from planwave.settings import BUILT_IN_LIMITS, Limits

ENTRY_POINTS: Final = "planwave.nodes"

T = TypeVar("T")


class Origin(NamedTuple):
    """Where a node type comes from.

    Attributes:
        kind: ``library`` for the types of planwave, ``package`` for those of an entry point,
            ``module`` for all others.
        name: The name of the installed package or of the module; for the library ``planwave``.
        file: The file of the module that defines the type, if there is one.
    """

    kind: Literal["library", "package", "module"]
    name: str
    file: str | None


class Registry:
    """Node types by name; satisfies ``graph.protocols.NodeTypes``.

    Attributes:
        tools: The tools that nodes may name.
        warnings: Errors of entry points, whose types are not registered.
        depth: Nesting depth of the graphs it checks; 0 for graphs that are not inside a node.
    """

    def __init__(
        self,
        types: Iterable[Any] = (),
        *,
        providers: Providers | None = None,
        default_provider: str | None = None,
        default_model: str | None = None,
        limits: Limits | None = None,
        mcp_servers: Mapping[str, str | None] | None = None,
        secrets: Collection[str] | None = None,
        redirect_hosts: Collection[str] | None = None,
        tools: ToolRegistry | None = None,
    ) -> None:
        """Initialize a registry.

        Args:
            types: Types to register; see [register][planwave.Registry.register].
            providers: Used by ``check`` to look up providers and models; None checks neither.
            default_provider: Provider of nodes that do not name one.
            default_model: Model of nodes that use the default provider and do not name a model.
            limits: Limits that ``check`` enforces; None for no limits but those of policies, which
                have their defaults then.
            mcp_servers: The MCP servers that nodes may name, and what each is for; None checks none.
            secrets: The names of secrets that ``check`` knows; None does not check them.
            redirect_hosts: The hosts that answers to webhooks may redirect to; None for all.
            tools: The tools that nodes may name; None for none yet.
        """
        self.tools = ToolRegistry() if tools is None else tools
        self._specs: dict[str, RegisteredType] = {}
        self._entry_points: set[EntryPoint] = set()
        self._package_names: dict[str, str] = {}
        self._modules: set[str] = set()
        self._providers = providers
        self._defaults = (default_provider, default_model)
        self._limits = limits
        self._mcp_servers = mcp_servers
        self._secrets, self._redirect_hosts = secrets, redirect_hosts
        self._checks = DataChecks(limits)
        self._cached_index: tuple[weakref.ref[Graph], GraphIndex] | None = None
        self._variable_names: tuple[str, ...] = ()
        self._input_names: tuple[str, ...] = ()
        self.depth = 0
        self.warnings: list[Diagnostic] = []
        for implementation in types:
            self.register(implementation)

    def register(self, implementation: T, *, replace: bool = False) -> T:
        """Register a type and return it, so that this also works as a decorator.

        Args:
            implementation: A ``NodeType`` class or instance, or any object that has ``node_type``
                and a capability (``execute``, ``materialize``).
            replace: Replace a type of the same name.

        Raises:
            TypeError: The object cannot be a node type.
            ValueError: Another type has this name.
        """
        instance = cast("type[Any]", implementation)() if isinstance(implementation, type) else None
        spec = _with_effects(spec_of(implementation if instance is None else instance), self.tools)
        name = spec.type_info.node_type
        present = self._specs[name].implementation if name in self._specs else None
        if implementation is present or implementation is type(present):
            return implementation
        if present is not None and not replace:
            raise ValueError(
                f"node type {name!r} is registered already, by "
                f"{_display_name(present)}; choose another name or pass "
                "replace=True"
            )
        self._specs[name] = spec
        return implementation

    def with_entry_points(self, points: Iterable[EntryPoint] | None = None) -> Registry:
        """Add the types of installed packages (entry point group ``planwave.nodes``), and their tools.

        An entry point names an argument of [register][planwave.Registry.register], or a list of them. If it cannot be
        loaded, or one of its names is taken, none of its types is added and a warning is recorded.
        Each entry point is read once, however often this method is called.
        """
        for point in entry_points(group=ENTRY_POINTS) if points is None else points:
            if point in self._entry_points:
                continue
            self._entry_points.add(point)
            before = set(self._specs)
            try:
                implementations = load_entry_point(point)
                for implementation in implementations:
                    self.register(implementation)
            # Foreign code may fail in any way on import; some of it calls sys.exit.
            except (Exception, SystemExit) as error:  # noqa: BLE001
                for name in self._specs.keys() - before:
                    del self._specs[name]
                self.warnings.append(broken_package(point, error))
                continue
            names = {each.node_type for each in implementations} | (self._specs.keys() - before)
            package = point.name if point.dist is None else point.dist.name
            self._package_names |= dict.fromkeys(names, package)
        if points is None:
            self.warnings += self.tools.with_entry_points()
        return self

    def with_modules(self, names: Iterable[str], *, installed: Collection[str] = ()) -> Registry:
        """Add the types and tools of Python modules; see ``load_node_module``.

        Each module is read once, however often this method is called. Those that are ``installed`` are
        not looked for in the working directory.

        Raises:
            InputError: ``broken-node-module``.
        """
        for name in names:
            if name not in self._modules:
                load_node_module(name, self, is_installed=name in installed)
                self._modules.add(name)
        return self

    def with_providers(
        self,
        providers: Providers | None,
        *,
        default_provider: str | None = None,
        default_model: str | None = None,
        limits: Limits | None = None,
        mcp_servers: Mapping[str, str | None] | None = None,
        secrets: Collection[str] | None = None,
        redirect_hosts: Collection[str] | None = None,
    ) -> Registry:
        """Return a registry of the same types and tools that looks up models at these providers.

        A type or tool added to one of the two registries later is in both.
        """
        other = Registry(
            providers=providers,
            default_provider=default_provider,
            default_model=default_model,
            limits=limits,
            mcp_servers=mcp_servers,
            secrets=secrets,
            redirect_hosts=redirect_hosts,
            tools=self.tools,
        )
        other._specs = self._specs
        other._entry_points = self._entry_points
        other._package_names = self._package_names
        other._modules = self._modules
        other.warnings = self.warnings
        return other

    def type_info(self, node_type: str) -> NodeTypeInfo | None:
        spec = self._specs.get(node_type)
        return None if spec is None else spec.type_info

    def implementation(self, node_type: str) -> Any:
        return self._specs[node_type].implementation

    def spec(self, node_type: str) -> RegisteredType:
        """Return a registered type.

        Raises:
            KeyError: There is no such type.
        """
        return self._specs[node_type]

    def names(self) -> Sequence[str]:
        return sorted(self._specs)

    def accepts(self, target_type: str, source_type: str) -> bool:
        return accepts(target_type, source_type)

    def schema(self, node_type: str) -> Mapping[str, Any]:
        """Return the JSON Schema of a type's ``data``; template fields carry ``"template": true``.

        Raises:
            KeyError: There is no such type.
        """
        return data_schema(self._specs[node_type].model)

    def describe(self, node_type: str) -> dict[str, Any]:
        """Return a type as JSON: its attributes, ``schema`` and ``example``.

        Raises:
            KeyError: There is no such type.
        """
        return as_document(self._specs[node_type], self._socket_styles())

    def describe_tools(self) -> list[dict[str, Any]]:
        """Return the tools that nodes may name as JSON, sorted by name."""
        entries = (self.tools.get(name) for name in self.tools.names())
        return [each.as_document() for each in entries if each is not None]

    def offered_tools(self) -> list[ToolCard]:
        """Return the tools and servers of tools that plans may name, for the planner's prompt."""
        entries = (self.tools.get(name) for name in self.tools.names())
        tools = [
            ToolCard(each.tool.name, " ".join(each.tool.description.split()), each.tool.effect)
            for each in entries
            if each is not None
        ]
        servers = [
            ToolCard(name, " ".join(description.split()), "once", "mcp_server")
            for name, description in sorted((self._mcp_servers or {}).items())
            if description
        ]
        return [*tools, *servers]

    def read_data(self, node_type: str, data: Mapping[str, Json]) -> tuple[Any, str | None]:
        """Return validated data of a node, or what is wrong with them; templates stay as they are."""
        spec = self._specs.get(node_type)
        if spec is None:
            return None, f"there is no node type {node_type!r} any more"
        if spec.model is None:
            return None, None
        try:
            return validate_data(spec.model, data), None
        except PermanentError as error:
            return None, error.message

    def socket_types(self) -> list[dict[str, Any]]:
        """Return how sockets of each type are drawn, and what they accept, as JSON."""
        return socket_documents(self._socket_styles())

    def node_ports(self, graph: Graph) -> dict[str, dict[str, Any]]:
        """Return the ports of the nodes that have other ports than their type, as JSON by node id.

        See ``planwave.nodes.sockets.ports_of_node``.
        """
        styles, documents = self._socket_styles(), dict[str, dict[str, Any]]()
        for node in graph.nodes:
            spec = self._specs.get(node.type)
            if spec is None:
                continue
            ports = ports_of_node(node, graph, spec.type_info, spec.implementation)
            if ports is not None:
                documents[node.id] = {
                    "inputs": port_documents(ports.inputs or (), "input", styles),
                    "outputs": port_documents(ports.outputs or (), "output", styles),
                }
        return documents

    def _socket_styles(self) -> dict[str, SocketStyle]:
        infos = [spec.type_info for spec in self._specs.values()]
        return socket_styles(port for info in infos for port in (*info.inputs, *info.outputs))

    def origin(self, node_type: str) -> Origin:
        """Return where a type comes from.

        Raises:
            KeyError: There is no such type.
        """
        implementation = self._specs[node_type].implementation
        module: str = implementation.__module__
        file = getattr(sys.modules.get(module), "__file__", None)
        if module.startswith(LIBRARY_PREFIX):
            return Origin("library", "planwave", file)
        package = self._package_names.get(node_type)
        return (
            Origin("module", module, file) if package is None else Origin("package", package, file)
        )

    def for_subgraph(self, names: Iterable[str], inputs: Iterable[str] = ()) -> Registry:
        within = copy(self)
        within._input_names = tuple(dict.fromkeys((*self._input_names, *inputs)))
        within._variable_names = tuple(dict.fromkeys((*self._variable_names, *names)))
        within.depth = self.depth + 1
        within._cached_index = None
        return within

    def check(self, node: Node, graph: Graph) -> Iterable[Diagnostic]:
        passed: Sequence[Diagnostic] = ()
        if node.policy is not DEFAULT_POLICY:
            passed = policy_limit_findings(node, self._limits or BUILT_IN_LIMITS)
        if has_template(node.description):
            passed = [*passed, *self._check_task(node, graph)]
        spec = self._specs.get(node.type)
        if spec is None or not (spec.needs_check if node.data else spec.needs_check_empty):
            return passed
        node_findings = self._checks.findings(spec, node, self._index_of(graph), self._look_up)
        findings = [*passed, *(_to_diagnostic(finding, node, graph) for finding in node_findings)]
        for held in inline_graphs(spec, node) if spec.type_info.graph_fields else ():
            fields = flow_inputs_of(graph, self).fields.values()
            inside = self.for_subgraph(held.names, (name for own in fields for name in own))
            findings += check_subgraph(held, node, inside, self._limits)
        return findings

    def _check_task(self, node: Node, graph: Graph) -> Iterator[Diagnostic]:
        most = None if self._limits is None else self._limits.template_bytes
        for error in check_task(node.description, self._index_of(graph).inputs, max_bytes=most):
            message = f"the task of node {node.id!r}: {error.message}"
            yield Diagnostic(error.code, "error", message, "/description", node.id, hint=error.hint)

    def _index_of(self, graph: Graph) -> GraphIndex:
        """Return the index of a graph, cached while the same graph is checked node by node."""
        entry = self._cached_index
        if entry is None or entry[0]() is not graph:
            entry = self._cached_index = (
                weakref.ref(graph),
                GraphIndex(
                    graph,
                    self._specs,
                    self._variable_names,
                    (*self._input_names, *flow_inputs_of(graph, self).names),
                    tools=self.tools,
                    secrets=self._secrets,
                    redirect_hosts=self._redirect_hosts,
                    mcp_servers=None if self._mcp_servers is None else [*self._mcp_servers],
                ),
            )
        return entry[1]

    def _look_up(self, provider: str | None, model: str | None) -> FoundModel:
        # Not cached: a provider can become available between two checks of one graph.
        if self._providers is None:
            return FoundModel()
        try:
            chosen = self._providers.resolve(*with_default_model(provider, model, *self._defaults))
        except InputError as error:
            return FoundModel(model_finding(error))
        return FoundModel(None, chosen, self._providers.profile(*chosen))


def _with_effects(spec: RegisteredType, tools: ToolRegistry) -> RegisteredType:
    """Return a type whose nodes name registered tools with the effects of these, and their outputs."""
    field: str | None = getattr(spec.implementation, "effect_of_tools", None)
    if field is None:
        return spec
    unless: str = getattr(spec.implementation, "effect_unless", "")
    effect_by = EffectByField(field, tools.effects, spec.type_info.effect, unless)
    facts = spec.type_info._replace(effect_by=effect_by)
    if getattr(spec.implementation, "gives_result_of_tool", False):
        output = SchemaOutput(field, OUTPUT, tools.outputs, unless)
        facts = facts._replace(schema_output=output)
    return spec._replace(type_info=facts)


def _display_name(implementation: Any) -> str:
    """Return a readable name of a type, without its memory address."""
    kind = cast("Any", type(implementation))
    if kind.__repr__ is object.__repr__:
        return f"{kind.__module__}.{kind.__qualname__}"
    return repr(implementation)


def _to_diagnostic(finding: NodeFinding, node: Node, graph: Graph) -> Diagnostic:
    suggestion = node_suggestion(node.id, finding.correction)
    if finding.edge is not None:
        edges = (*graph.incoming.get(node.id, ()), *graph.outgoing.get(node.id, ()))
        edge = next((each for each in edges if each.id == finding.edge), None)
        suggestion = edge and edge_suggestion(edge, finding.correction)
    return Diagnostic(
        finding.code,
        finding.severity,
        finding.message if finding.edge else f"node {node.id!r}: {finding.message}",
        finding.pointer,
        node=node.id,
        edge=finding.edge,
        hint=finding.hint,
        suggestion=suggestion,
    )


@cache
def default_registry() -> Registry:
    """Return the registry of this process: the library, and what ``@planwave.node`` and ``tool`` add."""
    return Registry(LIBRARY, tools=default_tools())


@cache
def installed_types() -> Registry:
    """Load the node types of installed packages, once per process; log broken packages once."""
    return default_registry().with_entry_points()
