"""Findings of one node that only its type can see: data, templates, provider and model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from pydantic import BaseModel, ValidationError

from planwave.errors import InputError, TemplateError, UnknownModel, UnknownProvider
from planwave.expressions import (
    FUNCTIONS,
    ROOT_VARIABLES,
    VariableRef,
    compile_template,
    has_template,
)
from planwave.graph.diagnostics import limit_exceeded
from planwave.graph.json_values import pointer_part
from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    ERROR_HANDLE,
    FLOW,
    LINK,
    Json,
    Node,
    fixed_handles,
)
from planwave.graph.ports import NUMBER_PLACEHOLDER, fixed_outputs, has_output, outputs_text
from planwave.graph.suggestions import Correction, closest_match
from planwave.nodes.authoring.data_fields import as_expression, read_data
from planwave.nodes.authoring.node_type import NodeFinding, data_error_text
from planwave.nodes.checking.node_view import CheckedModel, GraphIndex, NodeView
from planwave.nodes.model_choice import ModelChoice
from planwave.nodes.spec import RegisteredType
from planwave.providers.protocols import ModelProfile

if TYPE_CHECKING:
    from planwave.settings import Limits

_PRIVATE_VARIABLES: Final = ("secrets", "env")


class FoundModel(NamedTuple):
    """A provider and model as looked up: the error, or else the names and the profile."""

    finding: NodeFinding | None = None
    names: tuple[str, str] | None = None
    profile: ModelProfile | None = None


ModelLookup = Callable[[str | None, str | None], FoundModel]

_OF_THE_NODE: Final = ("name", "description")
"""Fields of a node that its data may have too, with another meaning."""
_MAX_KEY_CHARS = 4_096
"""Longest data (as text) whose reading is kept; longer ones are read again each time."""
_MAX_CACHED = 4_096


class DataReport(NamedTuple):
    """The check of a node's data without its graph. ``missing`` are required fields."""

    data: BaseModel | None
    findings: tuple[NodeFinding, ...]
    missing: tuple[str, ...]
    references: tuple[VariableRef, ...]


class DataChecks:
    """Reads node data and remembers what it found, so that equal nodes are read once."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits
        self._template_bytes = None if limits is None else limits.template_bytes
        self._cache: dict[tuple[str, str], tuple[RegisteredType, DataReport]] = {}

    def findings(
        self, spec: RegisteredType, node: Node, index: GraphIndex, look_up: ModelLookup
    ) -> Iterator[NodeFinding]:
        """Yield the errors and warnings of a node.

        Args:
            spec: Its type.
            node: The node.
            index: The index of its graph.
            look_up: Looks up a provider and model; finds nothing where there are no providers.
        """
        reading = self._read(spec, node)
        view = NodeView(node, index)
        view.references = reading.references
        yield from reading.findings
        yield from self._check_limits(spec, node)
        lacks = [name for name in reading.missing if not _is_wired(name, spec, view)]
        for name in lacks:
            yield _missing_field(name, spec, node)
        yield from _check_references(spec, view)
        if reading.findings or lacks:
            return
        if spec.calls_model:
            yield from _check_models(reading.data, view, look_up)
            view.models += self._linked_models(view, look_up)
            yield from self._check_tokens(getattr(reading.data, "max_tokens", None))
        check = getattr(spec.implementation, "check", None)
        if check is not None:
            yield from cast("Iterable[NodeFinding]", check(reading.data, view))

    def _linked_models(self, view: NodeView, look_up: ModelLookup) -> Iterator[CheckedModel]:
        """Yield the models that a linked node brings; what is wrong with them is found there."""
        if view.is_wired("provider"):
            return
        for edge in view.incoming:
            source = view.index.by_id.get(edge.source)
            if source is None or edge.channel != LINK or edge.target_handle != "model":
                continue
            spec = view.index.spec_of(edge.source)
            if spec is None or not spec.calls_model:
                continue
            of_source = NodeView(source, view.index)
            for _ in _check_models(self._read(spec, source).data, of_source, look_up):
                pass
            for each in of_source.models:
                yield CheckedModel("", f"{each.what} of {source.id!r}", each.profile)

    def _check_limits(self, spec: RegisteredType, node: Node) -> Iterator[NodeFinding]:
        """Find numbers above the limits of the settings they stand for."""
        for field in () if self._limits is None else spec.fields:
            limit, chosen = field.extra.get("limit"), node.data.get(field.json_name)
            if limit is None or not isinstance(chosen, int):
                continue
            if chosen > (most := getattr(self._limits, limit)):
                yield _limit_finding(limit, most, chosen, field.json_name)

    def _check_tokens(self, requested: object) -> Iterator[NodeFinding]:
        most = None if self._limits is None else self._limits.call_tokens
        if most is not None and isinstance(requested, int) and requested > most:
            yield _limit_finding("call_tokens", most, requested, "maxTokens")

    def _read(self, spec: RegisteredType, node: Node) -> DataReport:
        key = (node.type, repr(node.data))
        cached = self._cache.get(key)
        if cached is not None and cached[0] is spec:
            return cached[1]
        reading = self._read_uncached(spec, node)
        if len(key[1]) <= _MAX_KEY_CHARS:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[key] = (spec, reading)
        return reading

    def _read_uncached(self, spec: RegisteredType, node: Node) -> DataReport:
        data: BaseModel | None = None
        findings: list[NodeFinding] = []
        missing: list[str] = []
        if spec.model is not None:
            later = _unresolved_fields(spec, node)
            try:
                data = read_data(
                    spec.model,
                    {name: value for name, value in node.data.items() if name not in later},
                )
            except ValidationError as error:
                for detail in error.errors(include_url=False):
                    if detail["type"] == "missing" and len(detail["loc"]) == 1:
                        missing += {str(detail["loc"][0])} - later
                    else:
                        findings.append(_invalid_data(detail, spec, node.data))
        findings += _templates_in_policy(spec, node)
        uses = tuple(self._references(spec, node, findings))
        return DataReport(data, tuple(findings), tuple(missing), uses)

    def _references(
        self, spec: RegisteredType, node: Node, findings: list[NodeFinding]
    ) -> Iterator[VariableRef]:
        names: Iterable[str] | None = spec.type_info.template_fields
        late = {
            field.json_name: field.extra for field in spec.fields if field.extra.get("expression")
        }
        for name in (*(node.data if names is None else names), *late):
            if name not in node.data:
                continue
            value, own = node.data[name], ()
            if name in late and isinstance(value, str) and value:
                value, own = as_expression(value), late[name]["names"]
            try:
                compiled = compile_template({name: value}, max_bytes=self._template_bytes)
            except TemplateError as error:
                here = f"/data/{pointer_part(name)}"
                findings.append(NodeFinding(error.code, error.message, here, error.hint))
                continue
            for reference in compiled.references if compiled else ():
                if reference.root not in own:
                    yield reference._replace(pointer=f"/data{reference.pointer}")


def _check_models(
    data: BaseModel | None, view: NodeView, look_up: ModelLookup
) -> Iterator[NodeFinding]:
    """Check the model that a node calls, and those it calls where that one fails."""
    main = FoundModel()
    if not (view.is_wired("provider") or view.is_wired("model")):
        main = look_up(getattr(data, "provider", None), getattr(data, "model", None))
        view.add_model("/data/model", "the chosen model", main.profile)
        if main.finding is not None:
            yield main.finding
    fallback: object = None if view.is_wired("fallback") else getattr(data, "fallback", None)
    earlier = {main.names}
    listed = cast("list[object]", fallback) if isinstance(fallback, list) else []
    for number, each in enumerate(listed):
        if not isinstance(each, ModelChoice):
            return  # a field of another meaning
        choice = look_up(each.provider, each.model)
        pointer = f"/data/fallback/{number}"
        view.add_model(pointer, f"the fallback {number + 1}", choice.profile)
        if choice.finding is not None:
            *_, field = choice.finding.pointer.split("/")
            yield choice.finding._replace(pointer=f"{pointer}/{field}", correction=None)
        elif choice.names is not None and choice.names in earlier:
            message = "{} ({}) has failed already where this fallback is called".format(
                *choice.names
            )
            hint = "remove it, or name another model"
            yield NodeFinding("duplicate-fallback", message, pointer, hint, "warning")
        earlier.add(choice.names)


def _templates_in_policy(spec: RegisteredType, node: Node) -> Iterator[NodeFinding]:
    """Find templates in fields that decide what is allowed: data never change these."""
    for name in spec.type_info.policy_fields:
        if name in node.data and has_template(json.dumps(node.data[name])):
            yield NodeFinding(
                "policy-field",
                f"data.{name} decides what is allowed, so that no template in it is resolved",
                f"/data/{pointer_part(name)}",
                "write the value itself",
            )


def _unresolved_fields(spec: RegisteredType, node: Node) -> set[str]:
    """Return the fields that hold a template but are not text: their type is known only in a run."""
    typed = {f.json_name for f in spec.fields if f.template and f.socket not in ("text", "any")}
    typed_data = {name: node.data[name] for name in typed & node.data.keys()}
    return {
        name for name, value in typed_data.items() if isinstance(value, str) and has_template(value)
    }


def _limit_finding(limit: str, most: float, actual: int, field: str) -> NodeFinding:
    passed = limit_exceeded(limit, most, actual, field, f"/data/{field}")
    return NodeFinding(passed.code, passed.message, passed.pointer, passed.hint)


def _is_wired(name: str, spec: RegisteredType, view: NodeView) -> bool:
    return name in spec.sockets and view.is_wired(name)


def _missing_field(name: str, spec: RegisteredType, node: Node) -> NodeFinding:
    if name in _OF_THE_NODE and getattr(node, name) not in ("", node.id):
        hint = f"write it in data; the {name} beside data is that of the node"
    elif name in spec.sockets:
        hint = f"write data.{name}, or connect an edge to the handle {name!r}"
    else:
        hint = f"write data.{name}"
    return NodeFinding("missing-required-input", f"data.{name} is required", f"/data/{name}", hint)


def _invalid_data(error: Any, spec: RegisteredType, data: Mapping[str, Json]) -> NodeFinding:
    loc = tuple(str(part) for part in error["loc"])
    where = ".".join(("data", *loc))
    pointer = "/".join(("/data", *map(pointer_part, loc)))
    if error["type"] != "extra_forbidden":
        return NodeFinding("invalid-data", data_error_text(error), pointer)
    names = [field.json_name for field in spec.fields] if len(loc) == 1 else []
    hint = correction = None
    if near := closest_match(loc[-1], names):
        hint = f"did you mean {near!r}?"
        if near not in data and not isinstance(error["input"], dict):  # its nulls would be lost
            correction = Correction(
                f"Rename it to {near}", {"data": {loc[-1]: None, near: error["input"]}}
            )
    elif names:
        hint = f"fields of {spec.type_info.node_type!r}: {', '.join(names)}"
    elif len(loc) == 1:
        hint = f"type {spec.type_info.node_type!r} has no data fields: take it out"
    message = f"{where} is not a field of this type"
    return NodeFinding("invalid-data", message, pointer, hint, correction=correction)


def _check_references(spec: RegisteredType, view: NodeView) -> Iterator[NodeFinding]:
    handles: list[str] | None = None
    for reference in view.references:
        if reference.root == "nodes":
            if reference.key is not None:
                yield from _check_node(reference, reference.key, view)
            continue
        if handles is None:
            handles = _handles_with_input(spec, view)
        if reference.root in ("input", "inputs"):
            if not reference.guarded and not spec.type_info.entry:
                yield from _check_input(reference, handles)
            continue
        if (
            reference.root in ROOT_VARIABLES
            or reference.root in handles
            or reference.root in view.index.variable_names
        ):
            continue
        if reference.root in _PRIVATE_VARIABLES or not reference.guarded:
            yield _undefined_variable(reference, [*view.index.variable_names, *handles])


def _handles_with_input(spec: RegisteredType, view: NodeView) -> list[str]:
    """Return the handles that flow edges lead into, in edge order.

    A node that is run by those that it is linked to gets its input from them.
    """
    handles = [edge.target_handle for edge in view.incoming if edge.channel == FLOW]
    is_linked = any(edge.channel == LINK for edge in view.outgoing)
    if spec.type_info.materializes_unresolved and is_linked:
        handles.append(DEFAULT_TARGET_HANDLE)
    return list(dict.fromkeys(handles))


def _check_input(reference: VariableRef, handles: list[str]) -> Iterator[NodeFinding]:
    """Find an input that never comes: ``input`` is what arrives, if only at one other handle."""
    if reference.root == "input" and not handles:
        message = "the template reads 'input', but no flow edge leads into this node"
        hint = "connect an edge to 'input', or take it out of the template"
    elif reference.root == "inputs" and reference.key is not None and reference.key not in handles:
        message = f"the template reads the input {reference.key!r}, but no flow edge leads there"
        hint = f"connect an edge to {reference.key!r}, or add | default(…)"
    else:
        return
    yield NodeFinding("template-undefined", message, reference.pointer, hint)


def _undefined_variable(reference: VariableRef, names: list[str]) -> NodeFinding:
    legal = ", ".join(dict.fromkeys((*ROOT_VARIABLES, *names)))
    if reference.root in FUNCTIONS:
        message = f"{reference.root!r} is a function, not a value"
        hint = f"call it: {reference.root}(…)"
        return NodeFinding("template-undefined", message, reference.pointer, hint)
    if reference.root in _PRIVATE_VARIABLES:
        message = f"{reference.root} are not template variables"
    else:
        message = f"{reference.root!r} is not defined in a template of this node"
    near = closest_match(reference.root, [*ROOT_VARIABLES, *names])
    hint = f"did you mean {near!r}? " if near else ""
    return NodeFinding(
        "template-undefined", message, reference.pointer, f"{hint}a template may use: {legal}"
    )


def _check_node(reference: VariableRef, node_id: str, view: NodeView) -> Iterator[NodeFinding]:
    nodes = view.index.by_id
    if node_id in nodes and view.index.is_ancestor(node_id, view.node.id):
        if reference.handle is not None and not reference.guarded:
            yield from _check_output(reference, reference.handle, nodes[node_id], view)
        return
    if node_id not in nodes:
        near = view.index.closest_id(node_id)
        message = f"the template reads node {node_id!r}, which does not exist"
        hint = f"did you mean {near!r}?" if near else "name a node that leads here"
    else:
        message = f"the template reads node {node_id!r}, which no flow edge leads here from"
        hint = f"connect {node_id!r} (directly or through others) to {view.node.id!r}"
    yield NodeFinding("not-an-ancestor", message, reference.pointer, hint)


def _check_output(
    reference: VariableRef, handle: str, source: Node, view: NodeView
) -> Iterator[NodeFinding]:
    """Find an output that a node can never have; patterns and open names may all be there."""
    facts = view.index.type_info_of(source.id)
    if facts is None or has_output(facts, handle):
        return
    if handle == ERROR_HANDLE:
        if source.policy.on_error == "continue":
            return
        hint = f'give {source.id!r} the policy "onError": "continue"'
    elif near := closest_match(handle, sorted(fixed_outputs(facts))):
        hint = f"did you mean {near!r}?"
    else:
        first, *_ = fixed_handles(facts.outputs) or (DEFAULT_SOURCE_HANDLE,)
        one = first.replace(f"{{{NUMBER_PLACEHOLDER}}}", "0")
        hint = f'name one of them, as in nodes["{source.id}"]["{one}"]'
    message = (
        f"the template reads output {handle!r} of node {source.id!r}, which type "
        f"{source.type!r} does not have; its outputs are: {outputs_text(facts)}"
    )
    yield NodeFinding("unknown-handle", message, reference.pointer, hint)


def model_finding(error: InputError) -> NodeFinding:
    """Return the finding for an unknown or unavailable provider or model."""
    field = "model" if error.code == UnknownModel.code else "provider"
    near = error.closest if isinstance(error, UnknownProvider | UnknownModel) else None
    correction = Correction(f"Use {field} {near}", {"data": {field: near}}) if near else None
    return NodeFinding(
        error.code, error.message, f"/data/{field}", error.hint, correction=correction
    )
