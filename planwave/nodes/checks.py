"""Faults of one node that only its type can see: data, templates, provider and model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from pydantic import BaseModel, ValidationError

from planwave.errors import InputError, TemplateError
from planwave.expressions import Reference, compile_template
from planwave.expressions.lexer import has_template
from planwave.graph.diagnostics import limit_exceeded
from planwave.graph.json_values import pointer_part
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, ERROR_HANDLE, FLOW, Node, handles_of
from planwave.graph.names import nearest
from planwave.graph.ports import NUMBER, fixed_outputs, has_output, outputs_shown
from planwave.nodes.fields import as_expression
from planwave.nodes.node_type import Finding, data_fault
from planwave.nodes.spec import TypeSpec
from planwave.nodes.wiring import GraphView, Wiring
from planwave.providers.api import ModelProfile

if TYPE_CHECKING:
    from planwave.settings import Limits

ROOTS: Final = ("input", "inputs", "nodes", "trigger", "goal", "PREVIOUS_OUTPUT")
"""What every template may start from; a node's own input handles come on top."""

_PRIVATE: Final = ("secrets", "env")

ModelLookup = Callable[[str | None, str | None], tuple[Finding | None, ModelProfile | None]]

_KEY_LIMIT = 4_096
"""Longest data (as text) whose reading is kept; longer ones are read again each time."""
_KEPT = 4_096


class Reading(NamedTuple):
    """What can be said of some data without their graph. ``missing`` are required fields."""

    data: BaseModel | None
    findings: tuple[Finding, ...]
    missing: tuple[str, ...]
    uses: tuple[Reference, ...]


class DataChecks:
    """Reads node data and remembers what it found, so that equal nodes are read once."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits
        self._template_bytes = None if limits is None else limits.template_bytes
        self._kept: dict[tuple[str, str], tuple[TypeSpec, Reading]] = {}

    def findings(
        self, spec: TypeSpec, node: Node, view: GraphView, look_up: ModelLookup
    ) -> Iterator[Finding]:
        """Find a node's faults.

        Args:
            spec: Its type.
            node: The node.
            view: The graph it stands in.
            look_up: Gives the fault and the profile of a provider and model.
        """
        reading = self._read(spec, node)
        wiring = Wiring(node, view)
        wiring.uses = reading.uses
        yield from reading.findings
        yield from self._passed_limits(spec, node)
        lacks = [name for name in reading.missing if not _is_fed(name, spec, wiring)]
        for name in lacks:
            yield _missing(name, spec)
        yield from _use_faults(spec, wiring)
        if reading.findings or lacks:
            return
        if spec.calls_model and not (wiring.is_wired("provider") or wiring.is_wired("model")):
            asked = reading.data
            fault, wiring.profile = look_up(
                getattr(asked, "provider", None), getattr(asked, "model", None)
            )
            if fault is not None:
                yield fault
        if spec.calls_model:
            yield from self._too_many_tokens(getattr(reading.data, "max_tokens", None))
        find_faults = getattr(spec.implementation, "find_faults", None)
        if find_faults is not None:
            yield from cast("Iterable[Finding]", find_faults(reading.data, wiring))

    def _passed_limits(self, spec: TypeSpec, node: Node) -> Iterator[Finding]:
        """Find numbers above the limits of the settings they stand for."""
        for field in () if self._limits is None else spec.fields:
            limit, asked = field.marks.get("limit"), node.data.get(field.wire)
            if limit is None or not isinstance(asked, int):
                continue
            if asked > (most := getattr(self._limits, limit)):
                pointer = f"/data/{field.wire}"
                passed = limit_exceeded(limit, most, asked, field.wire, pointer)
                yield Finding(passed.code, passed.message, passed.pointer, passed.hint)

    def _too_many_tokens(self, asked: object) -> Iterator[Finding]:
        most = None if self._limits is None else self._limits.call_tokens
        if most is not None and isinstance(asked, int) and asked > most:
            passed = limit_exceeded("call_tokens", most, asked, "maxTokens", "/data/maxTokens")
            yield Finding(passed.code, passed.message, passed.pointer, passed.hint)

    def _read(self, spec: TypeSpec, node: Node) -> Reading:
        key = (node.type, repr(node.data))
        kept = self._kept.get(key)
        if kept is not None and kept[0] is spec:
            return kept[1]
        reading = self._read_anew(spec, node)
        if len(key[1]) <= _KEY_LIMIT:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[key] = (spec, reading)
        return reading

    def _read_anew(self, spec: TypeSpec, node: Node) -> Reading:
        data: BaseModel | None = None
        findings: list[Finding] = []
        missing: list[str] = []
        if spec.model is not None:
            later = _known_later(spec, node)
            try:
                data = spec.model.model_validate(
                    {name: value for name, value in node.data.items() if name not in later}
                )
            except ValidationError as error:
                for fault in error.errors(include_url=False):
                    if fault["type"] == "missing" and len(fault["loc"]) == 1:
                        missing += {str(fault["loc"][0])} - later
                    else:
                        findings.append(_data_fault(fault, spec))
        uses = tuple(self._uses(spec, node, findings))
        return Reading(data, tuple(findings), tuple(missing), uses)

    def _uses(self, spec: TypeSpec, node: Node, findings: list[Finding]) -> Iterator[Reference]:
        names: Iterable[str] | None = spec.facts.template_fields
        late = {field.wire: field.marks for field in spec.fields if field.marks.get("expression")}
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
                findings.append(Finding(error.code, f"data{error.message}", here, error.hint))
                continue
            for found in compiled.references if compiled else ():
                if found.root not in own:
                    yield found._replace(pointer=f"/data{found.pointer}")


def _known_later(spec: TypeSpec, node: Node) -> set[str]:
    """Give the fields that hold a template where no text is wanted: a run gives it its type."""
    typed = {f.wire for f in spec.fields if f.template and f.socket not in ("text", "any")}
    held = {name: node.data[name] for name in typed & node.data.keys()}
    return {name for name, value in held.items() if isinstance(value, str) and has_template(value)}


def _is_fed(name: str, spec: TypeSpec, wiring: Wiring) -> bool:
    return name in spec.sockets and wiring.is_wired(name)


def _missing(name: str, spec: TypeSpec) -> Finding:
    if name in spec.sockets:
        hint = f"write data.{name}, or connect an edge to the handle {name!r}"
    else:
        hint = f"write data.{name}"
    return Finding("missing-required-input", f"data.{name} is required", f"/data/{name}", hint)


def _data_fault(fault: Any, spec: TypeSpec) -> Finding:
    loc = tuple(str(part) for part in fault["loc"])
    where = ".".join(("data", *loc))
    pointer = "/".join(("/data", *map(pointer_part, loc)))
    if fault["type"] != "extra_forbidden":
        return Finding("invalid-data", data_fault(fault), pointer)
    known = [field.wire for field in spec.fields] if len(loc) == 1 else []
    hint = None
    if near := nearest(loc[-1], known):
        hint = f"did you mean {near!r}?"
    elif known:
        hint = f"fields of {spec.facts.node_type!r}: {', '.join(known)}"
    return Finding("invalid-data", f"{where} is not a field of this type", pointer, hint)


def _use_faults(spec: TypeSpec, wiring: Wiring) -> Iterator[Finding]:
    handles: list[str] | None = None
    for found in wiring.uses:
        if found.root == "nodes":
            if found.key is not None:
                yield from _node_fault(found, found.key, wiring)
            continue
        if handles is None:
            handles = _handles(wiring)
        if found.root in ("input", "inputs"):
            if not found.guarded and not spec.facts.entry:
                yield from _input_fault(found, handles)
            continue
        if found.root in ROOTS or found.root in handles or found.root in wiring.view.names:
            continue
        if found.root in _PRIVATE or not found.guarded:
            yield _undefined(found, [*wiring.view.names, *handles])


def _handles(wiring: Wiring) -> list[str]:
    """Give the handles that data flow into, in edge order."""
    flows = (edge.target_handle for edge in wiring.incoming if edge.channel == FLOW)
    return list(dict.fromkeys(flows))


def _input_fault(found: Reference, handles: list[str]) -> Iterator[Finding]:
    """Find an input that never comes: ``input`` is what arrives, if only at one other handle."""
    if found.root == "input" and not handles:
        message = "the template reads 'input', but no flow edge leads into this node"
        hint = "connect an edge to 'input', or take it out of the template"
    elif found.root == "inputs" and found.key is not None and found.key not in handles:
        message = f"the template reads the input {found.key!r}, but no flow edge leads there"
        hint = f"connect an edge to {found.key!r}, or add | default(…)"
    else:
        return
    yield Finding("template-undefined", message, found.pointer, hint)


def _undefined(found: Reference, names: list[str]) -> Finding:
    legal = ", ".join(dict.fromkeys((*ROOTS, *names)))
    if found.root in _PRIVATE:
        message = f"{found.root} are not template variables"
    else:
        message = f"{found.root!r} is not defined in a template of this node"
    return Finding("template-undefined", message, found.pointer, f"a template may use: {legal}")


def _node_fault(found: Reference, node_id: str, wiring: Wiring) -> Iterator[Finding]:
    known = wiring.view.by_id
    if node_id in known and wiring.view.is_ancestor(node_id, wiring.node.id):
        if found.handle is not None and not found.guarded:
            yield from _output_fault(found, found.handle, known[node_id], wiring)
        return
    if node_id not in known:
        near = wiring.view.nearest_id(node_id)
        message = f"the template reads node {node_id!r}, which does not exist"
        hint = f"did you mean {near!r}?" if near else "name a node that leads here"
    else:
        message = f"the template reads node {node_id!r}, which no flow edge leads here from"
        hint = f"connect {node_id!r} (directly or through others) to {wiring.node.id!r}"
    yield Finding("not-an-ancestor", message, found.pointer, hint)


def _output_fault(found: Reference, handle: str, source: Node, wiring: Wiring) -> Iterator[Finding]:
    """Find an output that a node can never have; patterns and open names may all be there."""
    facts = wiring.view.facts_of(source.id)
    if facts is None or has_output(facts, handle):
        return
    if handle == ERROR_HANDLE:
        if source.policy.on_error == "continue":
            return
        hint = f'give {source.id!r} the policy "onError": "continue"'
    elif near := nearest(handle, sorted(fixed_outputs(facts))):
        hint = f"did you mean {near!r}?"
    else:
        first, *_ = handles_of(facts.outputs) or (DEFAULT_SOURCE_HANDLE,)
        one = first.replace(f"{{{NUMBER}}}", "0")
        hint = f'name one of them, as in nodes["{source.id}"]["{one}"]'
    message = (
        f"the template reads output {handle!r} of node {source.id!r}, which type "
        f"{source.type!r} does not have; its outputs are: {outputs_shown(facts)}"
    )
    yield Finding("unknown-handle", message, found.pointer, hint)


def model_fault(error: InputError) -> Finding:
    """Give the finding for a provider or model that is not there."""
    pointer = "/data/model" if error.code == "unknown-model" else "/data/provider"
    return Finding(error.code, error.message, pointer, error.hint)
