"""Faults of one node that only its type can see: data, templates, provider and model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from pydantic import BaseModel, ValidationError

from planwave.errors import InputError, TemplateError
from planwave.expressions import ROOT_VARIABLES, VariableRef, compile_template, has_template
from planwave.graph.diagnostics import limit_exceeded
from planwave.graph.json_values import pointer_part
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, ERROR_HANDLE, FLOW, Node, fixed_handles
from planwave.graph.ports import NUMBER_PLACEHOLDER, fixed_outputs, has_output, outputs_text
from planwave.graph.suggestions import closest_match
from planwave.nodes.authoring.data_fields import as_expression
from planwave.nodes.authoring.node_type import NodeFinding, data_error_text
from planwave.nodes.checking.node_view import GraphIndex, NodeView
from planwave.nodes.spec import RegisteredType
from planwave.providers.protocols import ModelProfile

if TYPE_CHECKING:
    from planwave.settings import Limits

_PRIVATE_VARIABLES: Final = ("secrets", "env")

ModelLookup = Callable[[str | None, str | None], tuple[NodeFinding | None, ModelProfile | None]]

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
            look_up: Returns the error, or else the profile, of a provider and model.
        """
        reading = self._read(spec, node)
        view = NodeView(node, index)
        view.references = reading.references
        yield from reading.findings
        yield from self._check_limits(spec, node)
        lacks = [name for name in reading.missing if not _is_wired(name, spec, view)]
        for name in lacks:
            yield _missing_field(name, spec)
        yield from _check_references(spec, view)
        if reading.findings or lacks:
            return
        if spec.calls_model and not (view.is_wired("provider") or view.is_wired("model")):
            chosen = reading.data
            finding, view.profile = look_up(
                getattr(chosen, "provider", None), getattr(chosen, "model", None)
            )
            if finding is not None:
                yield finding
        if spec.calls_model:
            yield from self._check_tokens(getattr(reading.data, "max_tokens", None))
        check = getattr(spec.implementation, "check", None)
        if check is not None:
            yield from cast("Iterable[NodeFinding]", check(reading.data, view))

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
                data = spec.model.model_validate(
                    {name: value for name, value in node.data.items() if name not in later}
                )
            except ValidationError as error:
                for fault in error.errors(include_url=False):
                    if fault["type"] == "missing" and len(fault["loc"]) == 1:
                        missing += {str(fault["loc"][0])} - later
                    else:
                        findings.append(_invalid_data(fault, spec))
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
            for found in compiled.references if compiled else ():
                if found.root not in own:
                    yield found._replace(pointer=f"/data{found.pointer}")


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


def _missing_field(name: str, spec: RegisteredType) -> NodeFinding:
    if name in spec.sockets:
        hint = f"write data.{name}, or connect an edge to the handle {name!r}"
    else:
        hint = f"write data.{name}"
    return NodeFinding("missing-required-input", f"data.{name} is required", f"/data/{name}", hint)


def _invalid_data(error: Any, spec: RegisteredType) -> NodeFinding:
    loc = tuple(str(part) for part in error["loc"])
    where = ".".join(("data", *loc))
    pointer = "/".join(("/data", *map(pointer_part, loc)))
    if error["type"] != "extra_forbidden":
        return NodeFinding("invalid-data", data_error_text(error), pointer)
    known = [field.json_name for field in spec.fields] if len(loc) == 1 else []
    hint = None
    if near := closest_match(loc[-1], known):
        hint = f"did you mean {near!r}?"
    elif known:
        hint = f"fields of {spec.type_info.node_type!r}: {', '.join(known)}"
    return NodeFinding("invalid-data", f"{where} is not a field of this type", pointer, hint)


def _check_references(spec: RegisteredType, view: NodeView) -> Iterator[NodeFinding]:
    handles: list[str] | None = None
    for found in view.references:
        if found.root == "nodes":
            if found.key is not None:
                yield from _check_node(found, found.key, view)
            continue
        if handles is None:
            handles = _flow_handles(view)
        if found.root in ("input", "inputs"):
            if not found.guarded and not spec.type_info.entry:
                yield from _check_input(found, handles)
            continue
        if (
            found.root in ROOT_VARIABLES
            or found.root in handles
            or found.root in view.index.variable_names
        ):
            continue
        if found.root in _PRIVATE_VARIABLES or not found.guarded:
            yield _undefined_variable(found, [*view.index.variable_names, *handles])


def _flow_handles(view: NodeView) -> list[str]:
    """Return the handles that flow edges lead into, in edge order."""
    flows = (edge.target_handle for edge in view.incoming if edge.channel == FLOW)
    return list(dict.fromkeys(flows))


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
    if reference.root in _PRIVATE_VARIABLES:
        message = f"{reference.root} are not template variables"
    else:
        message = f"{reference.root!r} is not defined in a template of this node"
    return NodeFinding(
        "template-undefined", message, reference.pointer, f"a template may use: {legal}"
    )


def _check_node(reference: VariableRef, node_id: str, view: NodeView) -> Iterator[NodeFinding]:
    known = view.index.by_id
    if node_id in known and view.index.is_ancestor(node_id, view.node.id):
        if reference.handle is not None and not reference.guarded:
            yield from _check_output(reference, reference.handle, known[node_id], view)
        return
    if node_id not in known:
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
    pointer = "/data/model" if error.code == "unknown-model" else "/data/provider"
    return NodeFinding(error.code, error.message, pointer, error.hint)
