"""Registered types: their attributes, read once at registration."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Final, NamedTuple, cast, get_args

from pydantic import BaseModel

from planwave.graph.model import FLOW, LINK, Effect, Json, Port
from planwave.graph.protocols import NodeTypeInfo
from planwave.nodes.authoring.data_fields import (
    FIELD_PORT_SIDE,
    DataField,
    fields_of,
    sockets_of,
    with_field_ports,
)
from planwave.nodes.authoring.node_type import INPUT, OUTPUT, NodeType
from planwave.nodes.authoring.signatures import require_choice
from planwave.nodes.sockets import SocketStyle, port_documents

_TEMPLATE_SCHEMA: Final = {"type": "string", "pattern": r"\{[{%]"}
_FIELD_KEYWORDS: Final = (
    "title", "description", "default", "template", "planned", "policy", "written"
)  # fmt: skip
"""Schema keywords about the field, not about its value."""
LIBRARY_PREFIX: Final = "planwave.nodes.library."
_INTERNAL_FACTS: Final = (
    "fails_permanently",
    "guards_effect",
    "replayable",
    "effect_by",
    "decided_by_edges",
    "schema_output",
    "materializes_unresolved",
    "runs_graphs",
    "depends_outside",
    "source_keys",
    "passes_on",
    "data_fields",
    "declares_data",
    "policy_fields",
    "plan_fields",
    "written_fields",
    "plan_literals",
    "closed_sockets",
    "run_by_nodes",
    "stands_in",
    "gives_reply",
)
"""Facts for checks, planners and the driver."""
_FORMER_NAMES: Final = {"find_faults": "check", "follows_from": "result_depends_on"}
_NAME_PATTERN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


class RegisteredType(NamedTuple):
    """One registered type.

    ``sockets`` are the data fields that accept wires. ``needs_check`` is False where no node of the
    type can have an error, ``needs_check_empty`` where no node without data can, so that checking
    those costs nothing.
    """

    type_info: NodeTypeInfo
    implementation: Any
    model: type[BaseModel] | None
    fields: tuple[DataField, ...]
    sockets: frozenset[str]
    calls_model: bool
    needs_check: bool
    needs_check_empty: bool

    @property
    def example(self) -> Mapping[str, Json]:
        """A small graph document that can be run; {} where the type has none."""
        own: Mapping[str, Json] = getattr(self.implementation, "example", {})
        is_builtin = type(self.implementation).__module__.startswith(LIBRARY_PREFIX)
        return own or (_library_example(self.type_info.node_type) if is_builtin else {})


def spec_of(implementation: Any) -> RegisteredType:
    """Read a type's declaration.

    Args:
        implementation: A ``NodeType`` or any object with ``node_type`` and a capability; the other
            attributes that ``BaseNode`` declares are optional.

    Raises:
        TypeError: No usable name, or neither ``execute`` nor ``materialize``.
        ValueError: Its effect is none of those that planwave knows.
    """
    name = _validate_name(implementation)
    _adopt_former_names(implementation)
    model = getattr(implementation, "Data", None)
    fields = fields_of(model)
    declared: tuple[Port, ...] = tuple(getattr(implementation, "inputs", (INPUT,)))
    wired = fields if getattr(implementation, "field_sockets", False) else ()
    inputs = with_field_ports(declared, wired, _field_side(implementation))
    facts = _facts_of(implementation, name, fields, inputs)
    facts = facts._replace(**_plan_facts(implementation, name, fields, wired, declared))
    require_choice(f"node type {name!r}", "effect", facts.effect, get_args(Effect))
    calls_model = bool(getattr(implementation, "calls_model", False))
    is_checked_empty = calls_model or _has_check(implementation) or any(f.required for f in fields)
    return RegisteredType(
        type_info=facts,
        implementation=implementation,
        model=model,
        fields=fields,
        sockets=frozenset(field.json_name for field in sockets_of(wired, declared, LINK)),
        calls_model=calls_model,
        needs_check=is_checked_empty or model is not None or facts.template_fields != (),
        needs_check_empty=is_checked_empty,
    )


def _facts_of(
    implementation: Any, name: str, fields: tuple[DataField, ...], inputs: tuple[Port, ...]
) -> NodeTypeInfo:
    return NodeTypeInfo(
        node_type=name,
        purpose=_text(implementation, "purpose"),
        inputs=inputs,
        outputs=tuple(getattr(implementation, "outputs", (OUTPUT,))),
        entry=bool(getattr(implementation, "entry", False)),
        executes=_has_method(implementation, "execute"),
        materializes=_has_method(implementation, "materialize"),
        effect=getattr(implementation, "effect", "none"),
        template_fields=_template_fields(implementation, fields),
        chooses=bool(getattr(implementation, "chooses", False)),
        version=int(getattr(implementation, "version", 1)),
        reads_goal=bool(getattr(implementation, "reads_goal", False)),
        graph_fields=_fields_marked("graph", fields),
        expression_fields=_fields_marked("expression", fields),
        fails_permanently=bool(getattr(implementation, "fails_permanently", False)),
        replayable=bool(getattr(implementation, "replayable", False)),
        summary=_text(implementation, "summary") or _text(implementation, "purpose"),
        effect_by=getattr(implementation, "effect_by", None),
        materializes_unresolved=bool(getattr(implementation, "materializes_unresolved", False)),
        passes_on=bool(getattr(implementation, "passes_on", False)),
        source_keys=getattr(implementation, "source_keys", None),
        depends_outside=bool(getattr(implementation, "depends_outside", True)),
        runs_graphs=bool(getattr(implementation, "runs_graphs", False)),
        policy=getattr(implementation, "policy", {}),
        schema_output=getattr(implementation, "schema_output", None),
        stands_in=bool(getattr(implementation, "stands_in", False)),
        guards_effect=bool(getattr(implementation, "guards_effect", False)),
        decided_by_edges=getattr(implementation, "decided_by_edges", None),
        gives_reply=bool(getattr(implementation, "gives_reply", False)),
    )


def _plan_facts(
    implementation: Any,
    name: str,
    fields: Sequence[DataField],
    wired: Iterable[DataField],
    declared: Iterable[Port],
) -> dict[str, Any]:
    """Return what plans written by models may set and feed, and what no edge may feed at all."""
    offered = _plan_fields(implementation, name, fields)
    fed = {
        field.json_name
        for field in fields
        if field.json_name in offered and not (field.is_policy or field.is_written)
    }
    return {
        "declares_data": getattr(implementation, "Data", None) is not None,
        "data_fields": {each: field.json_name for field in fields for each in field.spellings},
        "policy_fields": tuple(
            each for field in fields if field.is_policy for each in field.spellings
        ),
        "plan_fields": offered,
        "written_fields": tuple(
            field.json_name for field in fields if field.names_flow or field.extra.get("graph")
        ),
        "plan_literals": tuple(getattr(implementation, "plan_literals", ())),
        "closed_sockets": frozenset(
            (channel, field.json_name)
            for channel in (FLOW, LINK)
            for field in sockets_of(wired, declared, channel)
            if field.json_name not in fed
        ),
        "run_by_nodes": bool(getattr(implementation, "run_by_nodes", False)),
    }


def _plan_fields(implementation: Any, name: str, fields: Sequence[DataField]) -> tuple[str, ...]:
    """Return the fields that a plan of a model may set; see ``BaseNode.plan_fields``.

    A type that comes with planwave names them. One of the operator that is derived from it has those,
    and the fields that it adds.

    Raises:
        ValueError: It names a field that it does not have.
    """
    kinds = cast("tuple[Any, ...]", type(implementation).__mro__)
    owner = next((kind for kind in kinds if kind.__dict__.get("plan_fields") is not None), None)
    is_library = kinds[0].__module__.startswith(LIBRARY_PREFIX)
    listed: tuple[str, ...] = () if owner is None else tuple(owner.plan_fields)
    if strangers := {each.partition(".")[0] for each in listed} - {f.json_name for f in fields}:
        raise ValueError(f"node type {name!r}: plan_fields names no data field: {strangers}")
    if is_library or owner is kinds[0]:
        return listed
    inherited = {f.json_name for f in fields_of(owner.Data)} if owner is not None else set[str]()
    added = [f for f in fields if not f.is_hidden and f.json_name not in inherited]
    return (*listed, *(field.json_name for field in added))


def _has_method(implementation: Any, name: str) -> bool:
    """Return whether there is a method; a class sets one to None to have it no more."""
    return getattr(implementation, name, None) is not None


def _text(implementation: Any, name: str) -> str:
    return str(getattr(implementation, name, ""))


def _field_side(implementation: Any) -> str:
    side: str = getattr(implementation, "field_port_side", FIELD_PORT_SIDE)
    return side


def _fields_marked(mark: str, fields: Iterable[DataField]) -> tuple[str, ...]:
    return tuple(field.json_name for field in fields if field.extra.get(mark))


@cache
def _library_example(node_type: str) -> Mapping[str, Json]:
    """Read the example of a type that comes with planwave: ``examples/<node type>.json``."""
    file = resources.files("planwave.nodes").joinpath("examples", f"{node_type}.json")
    document: Mapping[str, Json] = json.loads(file.read_text("utf-8"))
    return document


def _adopt_former_names(implementation: Any) -> None:
    """Make methods written under a former name known by their present name, with a warning."""
    kind = cast("Any", type(implementation))
    for former, present in _FORMER_NAMES.items():
        inherited = getattr(kind, present, None)
        if not hasattr(kind, former) or inherited not in (None, NodeType.check):
            continue
        setattr(kind, present, getattr(kind, former))
        warnings.warn(
            f"node type {implementation.node_type!r}: {former!r} is now called {present!r}; the "
            "former name goes with the next release",
            DeprecationWarning,
            stacklevel=2,
        )


def _validate_name(implementation: Any) -> str:
    name = getattr(implementation, "node_type", None)
    if not isinstance(name, str) or not _NAME_PATTERN.fullmatch(name):
        raise TypeError(
            f"{implementation!r} cannot be a node type: its node_type is {name!r}; a name starts "
            "with a letter and has letters, digits, '_', '.' and '-', 64 at most"
        )
    if not any(_has_method(implementation, each) for each in ("execute", "materialize")):
        raise TypeError(f"node type {name!r} has neither execute nor materialize")
    return name


def _template_fields(implementation: Any, fields: tuple[DataField, ...]) -> tuple[str, ...] | None:
    """Return the fields in which templates are resolved: never those that decide what is allowed."""
    missing: Any = object()
    declared = getattr(implementation, "template_fields", missing)
    if declared is missing:
        return tuple(field.json_name for field in fields if field.template)
    policy = {each for field in fields if field.is_policy for each in field.spellings}
    if declared is None:
        names = (each for field in fields for each in field.spellings)
        return tuple(each for each in names if each not in policy) if policy else None
    return tuple(each for each in declared if each not in policy)


def _has_check(implementation: Any) -> bool:
    kind = cast("Any", type(implementation))
    method = getattr(kind, "check", None)
    return method is not None and method is not NodeType.check


def as_document(spec: RegisteredType, styles: Mapping[str, SocketStyle]) -> dict[str, Any]:
    """Return a type as JSON, for editors: its attributes, the schema of its data, its example."""
    facts = spec.type_info._asdict()
    del facts["graph_fields"], facts["expression_fields"]  # the schema marks them
    for name in (*_INTERNAL_FACTS, *(() if spec.type_info.policy else ("policy",))):
        del facts[name]
    return {
        **facts,
        "inputs": port_documents(facts["inputs"], "input", styles),
        "outputs": port_documents(facts["outputs"], "output", styles),
        "template_fields": None
        if spec.type_info.template_fields is None
        else list(spec.type_info.template_fields),
        "schema": data_schema(spec.model),
        "example": spec.example,
    }


@lru_cache(maxsize=256)
def data_schema(model: type[BaseModel] | None) -> Mapping[str, Any]:
    """Return the JSON Schema of a type's ``data``; without a model, any object.

    A template is allowed in every template field, also where the field's type is not text. A property
    with ``sameAs`` is an alias of the named property. Callers share the result and do not change it.
    """
    if model is None:
        return {"type": "object"}
    schema = model.model_json_schema()
    fields: dict[str, Any] = schema.get("properties", {})
    for field in fields_of(model):
        if field.template and field.socket not in ("text", "any"):
            typed = fields[field.json_name]
            keywords = {name: typed.pop(name) for name in _FIELD_KEYWORDS if name in typed}
            fields[field.json_name] = {
                "anyOf": [*typed.get("anyOf", [typed]), _TEMPLATE_SCHEMA],
                **keywords,
            }
        for name in field.aliases:
            fields[name] = {**fields[field.json_name], "sameAs": field.json_name}
    return schema
