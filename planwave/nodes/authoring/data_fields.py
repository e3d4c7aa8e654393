"""Data fields of node types: their socket types and ports, and how values are coerced to them.

Also the declarations of fields with a special meaning (graphs, expressions, limits).

Every data field is also a socket: a wire on the handle named like the field (as written in JSON)
overrides the value written in ``data``. The wire is a flow edge or a link edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from types import NoneType
from typing import Annotated, Any, Final, NamedTuple, cast, get_args

from pydantic import AliasChoices, BaseModel, Field, JsonValue
from pydantic.fields import FieldInfo

from planwave.expressions.json_text import to_text
from planwave.expressions.templates import has_template
from planwave.graph.json_values import NotJson, to_json
from planwave.graph.model import FLOW, LINK, Channel, DataValue, Json, Port
from planwave.json_types import JsonType, SchemaMode, is_plain, written_plainly

FIELD_PORT_SIDE: Final = "bottom"
"""``Port.side`` of sockets that come from data fields, and of what is linked into them, so that editors
and prompts can tell them."""

_SCALARS: Final[Mapping[Any, str]] = {
    str: "text",
    bool: "boolean",
    int: "integer",
    float: "number",
    Any: "any",
}
_COERCIONS: Final[Mapping[str, frozenset[str]]] = {
    "number": frozenset({"integer"}),
    "text": frozenset({"integer", "number", "boolean", "json"}),
}
"""The one coercion table: what a socket takes besides its own type and ``any``."""
_SCHEMA_SOCKETS: Final = {
    "string": "text", "boolean": "boolean", "integer": "integer", "number": "number",
    "object": "json", "array": "json",
}  # fmt: skip
_JSON_TYPES: Final = frozenset({"text", "boolean", "integer", "number", "json"})
_JSON_CLASSES: Final = (str, bool, int, float, NoneType, dict, list, tuple)


class DataField(NamedTuple):
    """One field of a ``Data`` model: its name in JSON, socket type, and how it is treated.

    ``aliases`` are other accepted names of the field; its socket has only ``json_name``. ``extra`` is
    the field's ``json_schema_extra``, with markers such as ``template``. ``names_flow`` is true of a
    field whose value names a stored flow.
    """

    json_name: str
    socket: str
    required: bool
    template: bool
    nullable: bool = False
    extra: Mapping[str, Json] = {}
    aliases: tuple[str, ...] = ()
    names_flow: bool = False

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every name under which ``data`` may hold the field."""
        return (self.json_name, *self.aliases)

    @property
    def is_policy(self) -> bool:
        """Whether the field is marked ``POLICY``."""
        return bool(self.extra.get(_POLICY))

    @property
    def is_hidden(self) -> bool:
        """Whether the field is marked ``HIDDEN_FROM_PLANNER``."""
        return self.extra.get(_PLANNED) is False

    @property
    def is_written(self) -> bool:
        """Whether a plan of a model holds the value itself: a graph, a flow's name, an expression."""
        return self.names_flow or any(self.extra.get(mark) for mark in _WRITTEN_MARKS)


def accepts(target_type: str, source_type: str) -> bool:
    """Return whether a socket of one type accepts values of another type."""
    return (
        target_type == source_type
        or "any" in (target_type, source_type)
        or source_type in _COERCIONS.get(target_type, ())
    )


def coerce(socket: str, value: DataValue, *, nullable: bool = False) -> tuple[Json, str | None]:
    """Convert a value for a socket; return the value and None, or the value's type if it does not fit.

    The value's actual type decides; its declared type only if the socket's type is not a JSON type.
    """
    content = value.value
    if socket == "any" or (content is None and nullable):
        return content, None
    kind = value_type(content) if socket in _JSON_TYPES else value.type
    if not accepts(socket, kind):
        return content, "null" if content is None else kind
    return (to_text(content) if socket == "text" else content), None


def socket_type(annotation: Any) -> str:
    """Return the socket type of the JSON of a Python type: ``text``, ``integer``, …, ``any``."""
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    try:
        schema = JsonType[Any](annotation).schema("serialization")
    except TypeError:  # an object that only links bring
        return "any"
    return "any" if schema is None else _schema_socket(schema, schema.get("$defs", {}))


def port_schema(annotation: Any, mode: SchemaMode) -> dict[str, Json] | None:
    """Return the JSON Schema of a port's values; None where its socket type says the same."""
    if is_plain(annotation):
        return None
    schema = JsonType[Any](annotation).schema(mode)
    return None if schema is None or schema.keys() <= {"type"} else schema


def port_of_schema(name: str, schema: Mapping[str, Any]) -> Port:
    """Return the port of values that fit a JSON Schema."""
    return Port(name, _schema_socket(schema, schema.get("$defs", {})), schema=schema)


def _schema_socket(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Return the socket type of the values of a JSON Schema; one that also takes null is as without."""
    if "$ref" in schema:
        return _schema_socket(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices is None:
        return _SCHEMA_SOCKETS.get(str(schema.get("type")), "any")
    sockets = {_schema_socket(each, definitions) for each in choices if each.get("type") != "null"}
    sockets -= {"integer"} if "number" in sockets else set()
    return sockets.pop() if len(sockets) == 1 else "any"


def value_type(value: Json) -> str:
    """Return the socket type of a JSON value; null, lists and objects are ``json``."""
    return _SCALARS.get(value.__class__, "json")


def is_of_other_type(value: object, socket: str) -> bool:
    """Return whether a Python value has another JSON type than a socket; nothing is converted.

    A whole number is a number too. The result is False for a value that is not JSON.
    """
    if socket not in _JSON_TYPES or not isinstance(value, _JSON_CLASSES):
        return False
    names = (name for kind, name in _SCALARS.items() if kind is not Any and isinstance(value, kind))
    own_type = next(names, "json")
    return socket not in (own_type, "number" if own_type == "integer" else own_type)


def to_data_value(value: Json) -> DataValue:
    """Return a JSON value with its own type."""
    return DataValue(value_type(value), value)


@lru_cache(maxsize=256)
def fields_of(model: type[BaseModel] | None) -> tuple[DataField, ...]:
    """Return the fields of a ``Data`` model in declaration order."""
    if model is None:
        return ()
    return tuple(
        DataField(
            _json_name(name, info),
            socket_type(info.annotation),
            info.is_required(),
            _extra(info).get("template") is True and not _extra(info).get(_POLICY),
            NoneType in get_args(info.annotation),
            _extra(info),
            _aliases(info),
            _names_flow(info.annotation),
        )
        for name, info in model.model_fields.items()
    )


def _extra(info: FieldInfo) -> Mapping[str, Json]:
    extra: Any = info.json_schema_extra
    return cast("dict[str, Any]", extra) if isinstance(extra, dict) else {}


def _json_name(name: str, info: FieldInfo) -> str:
    alias = info.validation_alias
    if isinstance(alias, AliasChoices):
        alias = next((choice for choice in alias.choices if isinstance(choice, str)), None)
    return alias if isinstance(alias, str) else info.alias or name


def _aliases(info: FieldInfo) -> tuple[str, ...]:
    alias = info.validation_alias
    if not isinstance(alias, AliasChoices):
        return ()
    return tuple(choice for choice in alias.choices if isinstance(choice, str))[1:]


def _names_flow(annotation: Any) -> bool:
    """Return whether a field takes a ``FlowName``, which declares ``names_flow``."""
    kinds: tuple[Any, ...] = (annotation, *get_args(annotation))
    return any(getattr(kind, "names_flow", False) for kind in kinds)


def read_data(model: type[BaseModel], data: Mapping[str, Json]) -> BaseModel:
    """Read ``data`` into its model as JSON, so that a field may be a date or a model.

    Raises:
        ValidationError: The data are invalid.
    """
    try:
        checked = to_json(data)
    except NotJson:  # a link may bring any object
        return model.model_validate(data)
    return _type_of(model).validate(checked)


@lru_cache(maxsize=1024)
def _type_of(model: type[BaseModel]) -> JsonType[BaseModel]:
    return JsonType(model)


def write_field(model: type[BaseModel] | None, name: str, value: Any) -> Json:
    """Return a Python value of a data field as the JSON that ``read_data`` reads: a date, a model, a set.

    JSON stays as it is, and so does what has no JSON form.
    """
    try:
        return to_json(value)
    except NotJson:
        pass
    for attribute, info in ({} if model is None else model.model_fields).items():
        if _json_name(attribute, info) == name:
            metadata = tuple(info.metadata)
            annotation = Annotated[(info.annotation, *metadata)] if metadata else info.annotation
            with suppress(TypeError, ValueError):  # of another type; reading it says so
                return JsonType[Any](annotation).dump(value, warnings="error")
    return written_plainly(value)


def is_open(port: Port) -> bool:
    """Return whether a port's name is a pattern or open, so that several handles match it."""
    return "{" in port.name


def sockets_of(
    fields: Iterable[DataField], declared: Iterable[Port], channel: Channel
) -> list[DataField]:
    """Return the fields that are sockets on a channel.

    A declared port replaces the socket of its name: a flow port on both channels, a link port on
    the link channel only. Fields marked ``NO_SOCKET`` or ``POLICY`` are none.
    """
    port_names = {port.name for port in declared if port.channel in (FLOW, channel)}
    return [
        field
        for field in fields
        if field.json_name not in port_names
        and field.extra.get(_SOCKET, True)
        and not field.is_policy
    ]


def with_field_ports(
    declared: Iterable[Port], fields: Iterable[DataField], side: str = FIELD_PORT_SIDE
) -> tuple[Port, ...]:
    """Add the sockets of data fields to declared input ports.

    Order: fixed names, field sockets (one for each channel), then patterns and open names, so that
    the first port that fits a handle is the most precise one.
    """
    declared = tuple(declared)
    sockets = [
        Port(field.json_name, field.socket, channel=channel, side=side)
        for channel in (FLOW, LINK)
        for field in sockets_of(fields, declared, channel)
    ]
    return (
        *(port for port in declared if not is_open(port)),
        *sockets,
        *(port for port in declared if is_open(port)),
    )


_SOCKET: Final = "socket"
NO_SOCKET: Final[dict[str, JsonValue]] = {_SOCKET: False}
"""Marks data fields that no wire can feed."""
_PLANNED: Final = "planned"
HIDDEN_FROM_PLANNER: Final[dict[str, JsonValue]] = {_PLANNED: False}
"""Marks data fields that are not for plans written by models: neither value nor wire."""
_POLICY: Final = "policy"
POLICY: Final[dict[str, JsonValue]] = {_POLICY: True, _PLANNED: False}
"""Marks data fields that decide what is allowed, such as the rule of an approval. Only whoever writes
the graph sets them: no wire leads into them, no template in them is resolved, and models set none."""
POLICY_FOR_PLANS: Final[dict[str, JsonValue]] = {_POLICY: True}
"""The same, but a plan of a model may write the value, where the type offers the field."""
_WRITTEN: Final = "written"
WRITTEN: Final[dict[str, JsonValue]] = {_WRITTEN: True}
"""Marks data fields whose value decides what runs next. In a plan of a model it stands in the plan: no
wire leads into it. Fields of graphs, expressions and flow names are such fields without the mark."""
_WRITTEN_MARKS: Final = (_WRITTEN, "graph", "expression")


def graph_field(*names: str, names_of: str | None = None, description: str | None = None) -> Any:
    """Declare a data field that holds a graph document, run inside the node.

    Templates in it are resolved when it runs; it is checked together with the outer graph.

    Args:
        names: Variables of its expressions, besides those of the outer graph.
        names_of: A field that is an object; its keys are variables too.
        description: What the graph is for.
    """
    marks: dict[str, Any] = {"graph": True, "names": [*names]}
    if names_of is not None:
        marks["namesOf"] = names_of
    return Field(None, description=description, json_schema_extra=marks)


def expression_field(*names: str, description: str | None = None) -> Any:
    """Declare a required data field that is one expression, resolved by the node as it runs.

    Args:
        names: Variables that the expression may use besides those of every template.
        description: What the expression is for.
    """
    marks: dict[str, Any] = {"expression": True, "names": [*names]}
    return Field(..., min_length=1, description=description, json_schema_extra=marks)


def limited_field(limit: str, *, description: str | None = None) -> Any:
    """Declare a data field for a whole number that a limit of the settings bounds; None is that."""
    return Field(None, ge=1, description=description, json_schema_extra={"limit": limit})


def as_expression(text: str) -> str:
    """Return an expression as a template; the braces may be present already."""
    return text if has_template(text) else f"{{{{ {text} }}}}"
