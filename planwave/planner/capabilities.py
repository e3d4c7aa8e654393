"""What a plan may use, told to the model: node types, providers, and the JSON Schema of a reply."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from planwave.errors import InputError
from planwave.graph.model import FLOW, LINK, Json, Node, Port
from planwave.graph.protocols import NodeTypeInfo, NodeTypes
from planwave.json_types import schema_text
from planwave.planner.questions import question_schema
from planwave.planner.revised_plan import RevisedPlan
from planwave.prompts.render import ProviderCard, ToolCard, TypeCard
from planwave.providers.local.model_files import MODEL_FILES
from planwave.providers.protocols import Providers

DEFAULT_TYPE = "agent"
SERVER_TYPE: Final = "mcp_server"
"""The type whose nodes name a server of tools."""
TOOL_TYPE = "tool"
"""The socket type of tools."""
_WEB_SEARCH: Final = "web_search"
_MODEL_FIELDS = frozenset({"provider", "model"})
_SOCKET_SIDE = "bottom"
"""Sockets of data fields: the fields themselves are listed, so these would say it twice."""
_MAX_MODELS = 12
_MAX_ALTERNATIVES = 3
_SCHEMA_KEYWORDS = frozenset({"type", "enum", "const", "anyOf", "items", "properties", "required"})
"""Schema keywords that all providers take; the reader knows the rest."""
_TEXT: Final[Json] = {"type": "string"}
_ID_PLACES: Final = 9
"""The places of a change that may have an enum of the ids of a plan."""
_CHANNEL: Final[Json] = {"type": "string", "enum": [FLOW, LINK]}
_NULL: Final[Json] = {"type": "null"}
_MAX_ENUM_VALUES: Final = 500
"""The values of all enums of a schema. Source: what OpenAI's strict mode took at first; it takes 1,000 now."""


class PlanRules(NamedTuple):
    """What plans written by models may use.

    Attributes:
        node_types: These types alone; None for all but those that leave themselves out of plans
            (``planned = False``).
        effects: Steps with these side-effect classes alone; None for all.
        web_search: Whether agents in plans may let their provider search the web.
    """

    node_types: Collection[str] | None = None
    effects: Collection[str] | None = None
    web_search: bool = False

    def restricted_to(self, node_types: Collection[str] | None) -> PlanRules:
        """Return the rules for a plan that may use fewer node types."""
        if node_types is None:
            return self
        if self.node_types is not None:
            node_types = [name for name in node_types if name in self.node_types]
        return self._replace(node_types=node_types)


NO_RULES: Final = PlanRules()


@runtime_checkable
class OffersTools(Protocol):
    """A catalogue that knows tools which plans may link to agents."""

    def offered_tools(self) -> Sequence[ToolCard]: ...


def tool_cards(catalogue: NodeTypes, rules: PlanRules = NO_RULES) -> list[ToolCard]:
    """Return the tools that a plan may use: all that the operator made available and the rules allow."""
    if not isinstance(catalogue, OffersTools):
        return []
    return [
        tool
        for tool in catalogue.offered_tools()
        if catalogue.type_info(tool.node_type) is not None
        and (rules.node_types is None or tool.node_type in rules.node_types)
        and (rules.effects is None or tool.effect in rules.effects)
    ]


def plannable_types(catalogue: NodeTypes, rules: PlanRules = NO_RULES) -> list[str]:
    """Return the node types that a plan may use, the default type first.

    Raises:
        InputError: A type is allowed that there is not (``unknown-node-type``), or none is left
            (``no-node-types``).
    """
    for name in rules.node_types or ():
        if catalogue.type_info(name) is None:
            raise InputError(
                f"there is no node type {name!r} for plans to use",
                code="unknown-node-type",
                hint=f"known types: {', '.join(catalogue.names())}",
            )
    names = sorted(catalogue.names(), key=lambda name: (name != DEFAULT_TYPE, name))
    types = [name for name in names if _may_be_planned(catalogue, name, rules)]
    if types:
        types += dict.fromkeys(tool.node_type for tool in tool_cards(catalogue, rules))
    if not types:
        raise InputError(
            "no node type is left that a plan may use",
            code="no-node-types",
            hint="allow more with the settings allowed_node_types and allowed_effects",
        )
    return types


def _may_be_planned(catalogue: NodeTypes, name: str, rules: PlanRules) -> bool:
    facts = catalogue.type_info(name)
    if facts is None or not facts.executes or facts.stands_in:
        return False
    if rules.effects is not None and facts.possible_effects.isdisjoint(rules.effects):
        return False
    if rules.node_types is not None:
        return name in rules.node_types
    return bool(getattr(_implementation(catalogue, name), "planned", True))


def calls_model(catalogue: NodeTypes, node_type: str) -> bool:
    """Return whether nodes of a type call a model: their ``data`` has ``provider`` and ``model``."""
    return bool(getattr(_implementation(catalogue, node_type), "calls_model", False))


def tool_texts(catalogue: NodeTypes, node: Node) -> Sequence[str]:
    """Return what a model reads of the tools that a node gives, as far as it is known before a run."""
    read = getattr(_implementation(catalogue, node.type), "tool_texts", None)
    return () if read is None else read(node, catalogue)


def knows_tools(catalogue: NodeTypes, node_type: str) -> bool:
    """Return whether the tools that nodes of a type give are known before a run; see ``tool_texts``."""
    return bool(getattr(_implementation(catalogue, node_type), "knows_tools", False))


def runs_graphs(catalogue: NodeTypes, node_type: str) -> bool:
    """Return whether nodes of a type run nested graphs."""
    return bool(getattr(_implementation(catalogue, node_type), "runs_graphs", False))


def type_cards(
    catalogue: NodeTypes, names: Iterable[str], rules: PlanRules = NO_RULES
) -> list[TypeCard]:
    """Describe node types for the planner's prompt; sockets of tools only where plans have tools."""
    infos = [facts for name in names if (facts := catalogue.type_info(name))]
    hidden = () if any(map(_gives_tools, infos)) else (TOOL_TYPE,)
    return [_type_card(catalogue, facts, hidden, rules) for facts in infos]


def _gives_tools(facts: NodeTypeInfo) -> bool:
    """Return whether nodes of a type are no steps and give tools to agents."""
    return not facts.executes and any(port.type == TOOL_TYPE for port in facts.outputs)


def provider_cards(providers: Providers) -> list[ProviderCard]:
    """Return every available provider with some of its models, the default model first.

    A model too weak to plan is not one to choose for a step unasked, so it is left out.
    """
    cards: list[ProviderCard] = []
    for info in providers.list():
        if not info.available:
            continue
        first = (info.default_model,) if info.default_model else ()
        models = dict.fromkeys((*first, *info.models))
        able = [model for model in models if providers.profile(info.name, model).plans]
        if able or not models:
            cards.append(ProviderCard(info.name, tuple(able[:_MAX_MODELS])))
    return cards


def check_can_plan(providers: Providers, provider: str, model: str) -> None:
    """Refuse a model that cannot write plans before it is fetched, loaded or asked.

    Raises:
        InputError: It cannot (``model-cannot-plan``); the hint names models that can.
    """
    if providers.profile(provider, model).plans:
        return
    able = [(card.name, card.models[0]) for card in provider_cards(providers) if card.models]
    able = able or [("local", file.name) for file in MODEL_FILES.values() if file.plans]
    ways = ["/".join(each) for each in able[:_MAX_ALTERNATIVES]]
    raise InputError(
        f"{provider}/{model} is too small to write plans",
        code="model-cannot-plan",
        hint=f"plan with another: {', or '.join(ways)}; "
        f"{model} still runs the steps of a graph that name it",
    )


def offered_fields(facts: NodeTypeInfo, rules: PlanRules = NO_RULES) -> dict[str, frozenset[str]]:
    """Return the data fields that a plan may set, by name, each with its keys where not all are offered.

    The prompt and the schema of a reply are made from it, and a plan is checked by it.
    """
    offered: dict[str, frozenset[str]] = {}
    for name in facts.plan_fields:
        field, _, key = name.partition(".")
        if key != _WEB_SEARCH or rules.web_search:
            offered[field] = offered.get(field, frozenset()) | ({key} if key else frozenset())
    return offered


def plan_schema(
    catalogue: NodeTypes, names: Sequence[str], rules: PlanRules = NO_RULES
) -> dict[str, Json]:
    """Return the JSON Schema of a plan; ``data`` may hold the fields of any of these node types.

    Steps come in an order in which each depends on earlier ones; no edges are written. A graph in a step
    has the shape of the plan itself, and no graphs in it.
    """
    fields = _step_fields(catalogue, names, rules)
    plan = {"title": _TEXT, **question_schema(), **_graph_schema(names, fields)}
    return _object(plan, required=tuple(name for name in plan if name not in question_schema()))


def change_schema(
    plan: RevisedPlan, catalogue: NodeTypes, names: Sequence[str], rules: PlanRules = NO_RULES
) -> dict[str, Json]:
    """Return the JSON Schema of the change of a plan: what is there is named by an enum of its ids.

    So no step can be named that the plan does not have, and none of a running plan can be changed that
    has begun. The ids of new steps are the model's own: where such a one may stand, any text may.
    """
    fields = _step_fields(catalogue, names, rules)
    operations = [
        _object({"op": {"type": "string", "enum": [name]}, **parts}, required=("op", *required))
        for name, parts, required in _operation_schemas(plan, names, fields)
    ]
    operation: Json = {"anyOf": operations}
    change = {"answer": _TEXT, "operations": {"type": "array", "items": operation}}
    return _object(change, required=change)


def _operation_schemas(
    plan: RevisedPlan, names: Sequence[str], fields: Mapping[str, Json]
) -> Iterator[tuple[str, dict[str, Json], Sequence[str]]]:
    """Yield the name of each operation that is possible, its fields, and those that it must have."""
    ids = [each.id for each in plan.graph.nodes]
    progress = None if plan.has_ended else plan.progress
    begun = () if progress is None else progress.begun
    spent = () if progress is None else progress.spent
    unbegun = [each for each in ids if each not in begun]
    droppable = [each for each in ids if each not in begun or each in spent]
    is_short = len(ids) * _ID_PLACES <= _MAX_ENUM_VALUES

    def one_of(some: Sequence[str]) -> Json:
        return {"type": "string", "enum": [*some]} if is_short else _TEXT

    present: Json = {"anyOf": [one_of(ids), _TEXT]} if ids and is_short else _TEXT
    step = _step_schema(names, fields, present)
    yield "add_node", {"node": step}, ("node",)
    handles = {"source_handle": _TEXT, "target_handle": _TEXT}
    if unbegun:
        or_null = {
            name: {"anyOf": [*each.get("anyOf", [each]), _NULL]} for name, each in fields.items()
        }
        changes = {**step["properties"], "data": _object(or_null, required=())}
        for name in ("id", "depends_on", "from"):
            del changes[name]
        yield "update_node", {"id": one_of(unbegun), "set": _object(changes, ())}, ("id", "set")
        edge = {"source": present, "target": one_of(unbegun), "channel": _CHANNEL, **handles}
        required = ("source", "target", "channel")
        yield "add_edge", {"edge": _object(edge, required)}, ("edge",)
        ends = {"source": one_of(ids), "target": one_of(unbegun)}
        yield "remove_edge", {**ends, **handles}, ("source", "target")
        yield "rename", {"id": one_of(unbegun), "to": _TEXT}, ("id", "to")
    if droppable:
        yield "remove_node", {"id": one_of(droppable)}, ("id",)
    if plan.progress is None:
        yield "set_title", {"title": _TEXT}, ("title",)


def _step_fields(catalogue: NodeTypes, names: Sequence[str], rules: PlanRules) -> dict[str, Json]:
    """Return the fields that the ``data`` of steps may have, of all these node types together."""
    plain: dict[str, Json] = {}
    graphs: list[str] = []
    for name in names:
        for field, schema, marks in _fields(catalogue, name, rules):
            if field in _MODEL_FIELDS:
                continue
            if marks.get("graph"):
                graphs.append(field)
                continue
            present = plain.setdefault(field, schema)
            if present != schema:
                plain[field] = {"anyOf": [*present.get("anyOf", [present]), schema]}
    inner = _object(_graph_schema(names, plain), required=("steps",))
    return {**plain, **dict.fromkeys(graphs, inner)}


def _graph_schema(names: Sequence[str], fields: Mapping[str, Json]) -> dict[str, Json]:
    # No enum of earlier steps: their ids stand nowhere before the model writes them.
    return {"steps": {"type": "array", "items": _step_schema(names, fields, _TEXT)}}


def _step_schema(
    names: Sequence[str], fields: Mapping[str, Json], earlier: Json
) -> dict[str, Json]:
    """Return the schema of a step; ``earlier`` is that of the id of a step before it."""
    source = _object(
        {"step": earlier, "handle": _TEXT, "input": _TEXT}, required=("step", "handle")
    )
    step: dict[str, Json] = {
        "id": _TEXT,
        "name": _TEXT,
        "depends_on": {"type": "array", "items": earlier},
        "from": {"type": "array", "items": source},
        "description": _TEXT,
        "type": {"type": "string", "enum": [*names]},
        "provider": _TEXT,
        "model": _TEXT,
    }
    if fields:
        step["data"] = _object(fields, required=())
    return _object(step, required=("id", "name", "depends_on", "description", "type"))


def _type_card(
    catalogue: NodeTypes, facts: NodeTypeInfo, hidden_sockets: Collection[str], rules: PlanRules
) -> TypeCard:
    offered = offered_fields(facts, rules)
    fields = [
        f"{field} ({_special_field_text(marks) or _schema_type_text(schema)})"
        for field, schema, marks in _fields(catalogue, facts.node_type, rules)
        if field not in _MODEL_FIELDS
    ]
    return TypeCard(
        facts.node_type,
        facts.purpose,
        _handle_texts(port for port in facts.inputs if port.type not in hidden_sockets),
        # An agent that is itself a tool of another one is not for plans.
        _handle_texts(
            port for port in facts.outputs if port.type != TOOL_TYPE or not facts.executes
        ),
        fields,
        tuple(
            name
            for name in facts.template_fields or ()
            if name in offered and name not in facts.plan_literals
        ),
        "none" if _gives_tools(facts) else facts.effect,  # each tool has its own
    )


def _handle_texts(ports: Iterable[Port]) -> list[str]:
    return [
        f"{port.name} ({_port_text(port)}{', link' if port.channel == LINK else ''})"
        for port in ports
        if port.side != _SOCKET_SIDE or port.type == TOOL_TYPE
    ]


def _port_text(port: Port) -> str:
    return port.type if port.schema is None else schema_text(port.schema)


def _special_field_text(marks: Mapping[str, Json]) -> str | None:
    """Return the description of a field beyond its schema; see ``nodes/authoring/data_fields.py``."""
    names: list[str] = marks.get("names", [])
    if marks.get("graph"):
        seen = ", ".join(f"{{{{ {name} }}}}" for name in names)
        return "a graph: steps as in the plan" + (f"; in it: {seen}" if seen else "")
    return f"expression over {', '.join(names)}" if marks.get("expression") else None


def _schema_type_text(schema: Mapping[str, Json]) -> str:
    if "enum" in schema:
        return " | ".join(str(choice) for choice in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_schema_type_text(choice) for choice in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_schema_type_text(schema.get('items') or {})}"
    if properties := schema.get("properties"):
        return (
            "{"
            + ", ".join(f"{name}: {_schema_type_text(s)}" for name, s in properties.items())
            + "}"
        )
    return str(schema.get("const") or schema.get("type") or "value")


def _implementation(catalogue: NodeTypes, node_type: str) -> Any:
    try:
        return catalogue.implementation(node_type)
    except KeyError:
        return None


def _fields(
    catalogue: NodeTypes, node_type: str, rules: PlanRules
) -> Iterator[tuple[str, dict[str, Json], Mapping[str, Json]]]:
    """Return the offered fields of a type, each as a plain JSON Schema and as the type declares it."""
    facts, model = (
        catalogue.type_info(node_type),
        getattr(_implementation(catalogue, node_type), "Data", None),
    )
    if facts is None or model is None:
        return
    schema, offered = _schema_of(model), offered_fields(facts, rules)
    definitions = schema.get("$defs", {})
    for field, declaration in schema.get("properties", {}).items():
        if field in offered:
            plain = _simplified(_inline_references(declaration, definitions, ()))
            yield field, _only_keys(plain, offered[field]), declaration


@lru_cache(256)
def _schema_of(model: Any) -> dict[str, Json]:
    """Return the JSON Schema of a data model; made once, as it takes milliseconds for each type."""
    return model.model_json_schema(by_alias=True)


def _only_keys(schema: dict[str, Json], keys: Collection[str]) -> dict[str, Json]:
    """Return the schema of an object with some of its keys; no names stand for all."""
    if not keys:
        return schema
    properties = {name: part for name, part in schema["properties"].items() if name in keys}
    return _object(properties, required=())


def _inline_references(
    schema: Json, definitions: Mapping[str, Json], seen: tuple[str, ...]
) -> Json:
    """Put definitions in place of references; one that holds itself becomes "anything"."""
    if isinstance(schema, list):
        return [_inline_references(s, definitions, seen) for s in schema]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(schema, dict):
        return schema
    table: dict[str, Json] = schema  # pyright: ignore[reportUnknownVariableType]
    reference = table.get("$ref")
    if isinstance(reference, str):
        name = reference.rsplit("/", 1)[-1]
        return (
            {}
            if name in seen
            else _inline_references(definitions.get(name), definitions, (*seen, name))
        )
    return {key: _inline_references(value, definitions, seen) for key, value in table.items()}


def _simplified(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Return a schema in few keywords; "anything" becomes text, as models write text there."""
    short = {key: value for key, value in schema.items() if key in _SCHEMA_KEYWORDS} or {
        "type": "string"
    }
    if choices := short.pop("anyOf", None):
        plain = [_simplified(choice) for choice in choices if choice.get("type") != "null"]
        return plain[0] if len(plain) == 1 else {"anyOf": plain}
    if "items" in short:
        short["items"] = _simplified(short["items"])
    if "properties" in short:
        properties = {name: _simplified(part) for name, part in short["properties"].items()}
        return _object(properties, required=short.get("required", ()))
    return short


def _object(properties: Mapping[str, Json], required: Iterable[str]) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }
