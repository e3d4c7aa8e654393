"""The components and wires of a flow as its file has them, each announced to the report.

The program that each component carries is not read, unless somebody has changed it: then it is what the
component does, and stands in its placeholder as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, cast

from planwave.interop.importing.conversion import Conversion, SourceEdge, SourceNode
from planwave.interop.importing.drafts import GraphDraft, Target
from planwave.interop.importing.reading import (
    json_of,
    list_of,
    number_of,
    object_of,
    objects_in,
    position_of,
    text_of,
)
from planwave.interop.importing.templates import literal

ValueKind = Literal["text", "data", "table", "tool", "model", "any"]
"""What a wire carries: a message, an object, rows, or a link."""
ROUTERS: Final = frozenset({"ConditionalRouter", "SmartRouter"})
"""Types of components that choose which of their outputs brings something."""
LINKS: Final = frozenset[ValueKind]({"tool", "model"})
TOOL_OUTPUT: Final = "component_as_tool"
_KIND_OF_OUTPUT: Final[Mapping[str, ValueKind]] = {
    "message": "text",
    "text": "text",
    "prompt": "text",
    "text_output": "text",
    "response": "text",
    "parsed_text": "text",
    "message_output": "text",
    "structured_output": "data",
    "data_output": "data",
    "item": "data",
    "dataframe_output": "table",
    "structured_output_dataframe": "table",
    "structured_response": "data",
    "true_result": "text",
    "false_result": "text",
    "default_result": "text",
    "done": "table",
    "batch_results": "table",
    "model_output": "model",
    TOOL_OUTPUT: "tool",
}
"""What the outputs of components that have a counterpart carry."""
_KIND_OF_TYPE: Final[Mapping[str, ValueKind]] = {
    "Message": "text",
    "Text": "text",
    "Data": "data",
    "JSON": "data",
    "DataFrame": "table",
    "Table": "table",
    "Tool": "tool",
    "LanguageModel": "model",
}
_NO_VALUES: Final[tuple[object, ...]] = (None, "", 0, False, [], {})
_NOUNS: Final[Mapping[ValueKind, str]] = {
    "text": "a message",
    "data": "data",
    "table": "a table",
    "tool": "a tool",
    "model": "a model",
    "any": "something unknown",
}


class Plug(NamedTuple):
    """An output or an input of a node in the graph."""

    target: Target
    handle: str


class Carried(NamedTuple):
    """A value that comes into the body of a loop.

    Attributes:
        outside: Where it is led to.
        inside: Where it comes from in the body.
    """

    outside: Plug
    inside: Plug


@dataclass(eq=False)
class Component:
    """A component of a flow.

    Attributes:
        id: Its id, which is unique in the flow.
        kind: Its type.
        title: What it is called in the editor.
        fields: Its form: field → description with ``value``.
        node: Its account in the report.
        conversion: What it is part of.
        form: JSON pointer of the form.
        graph: The graph that it is put into.
        arriving: The wires that lead to it.
        leaving: The wires that leave it.
        is_beside_chat: Whether the flow begins with a message of a chat.
        beside: All components of the flow.
        inputs: Where wires into its fields lead.
        outputs: Where its outputs come from.
        carried: What comes into the body that it stands in from outside: a node there for each output.
        later: What is left to do once all components are placed.
    """

    id: str
    kind: str
    title: str
    fields: Mapping[str, Any]
    node: SourceNode
    conversion: Conversion
    form: str
    graph: GraphDraft
    arriving: list[Wire] = field(default_factory=list["Wire"])
    leaving: list[Wire] = field(default_factory=list["Wire"])
    is_beside_chat: bool = False
    beside: Sequence[Component] = ()
    inputs: dict[str, Plug] = field(default_factory=dict[str, Plug])
    outputs: dict[str, Plug] = field(default_factory=dict[str, Plug])
    carried: dict[tuple[Component, str], Carried] = field(
        default_factory=dict["tuple[Component, str]", "Carried"]
    )
    later: Callable[[], None] | None = None

    @cached_property
    def may_rest(self) -> bool:
        """Whether a component before it chooses if it runs."""
        ahead: list[Component] = [self]
        seen: set[Component] = {self}
        while ahead:
            here = ahead.pop()
            if here.kind in ROUTERS:
                return True
            new = {wire.source for wire in here.arriving} - seen
            seen |= new
            ahead.extend(new)
        return False

    @property
    def is_tool(self) -> bool:
        """Whether it is offered to models, rather than run as a step."""
        return any(wire.kind == "tool" for wire in self.leaving)

    def becomes(self, node_type: str, data: Mapping[str, Any] | None = None) -> Target:
        """Add a node with its id and title."""
        made = self.node.becomes(
            node_type, data, node_id=self.id, name=self.title, graph=self.graph
        )
        made.node.setdefault("data", {})
        return made

    def adds(self, node_type: str, data: Mapping[str, Any], part: str) -> Target:
        """Add a further node, whose id is that of the component and a part."""
        return self.node.becomes(
            node_type,
            data,
            node_id=f"{self.id}.{part}",
            name=part.replace("_", " "),
            graph=self.graph,
        )

    def value(self, name: str) -> Any:
        """Return what a field holds; None where it is the name of a variable of the installation."""
        described = object_of(self.fields, name)
        if described.get("load_from_db") is True and described.get("value"):
            message = (
                f"the field {name!r} is a global variable of Langflow, whose value is not here"
            )
            self.lose(message, text_of(described, "value"), name)
            return None
        return described.get("value")

    def text(self, name: str) -> str:
        """Return the text in a field, or ""."""
        return text_of({name: self.value(name)}, name)

    def template(self, name: str) -> str:
        """Return a template that renders to the text in a field."""
        return literal(self.text(name))

    def flag(self, name: str) -> bool:
        """Return whether a field is switched on."""
        return object_of(self.fields, name).get("value") in (True, "true", "True")

    def number(self, name: str) -> float | None:
        """Return the number in a field, or None."""
        return number_of(object_of(self.fields, name), "value")

    def is_filled(self, name: str) -> bool:
        """Return whether a field that is shown in the editor holds something."""
        described = object_of(self.fields, name)
        return described.get("show") is not False and described.get("value") not in _NO_VALUES

    def wire(self, name: str) -> Wire | None:
        """Return the wire into a field: of several the last one, whose value the field has there.

        The component gets lost where the field takes a list, and where it is not certain that each of them
        brings something: there a field whose wire brings nothing has the value of its form.
        """
        wires = [each for each in self.arriving if each.field == name]
        if len(wires) > 1:
            is_list = object_of(self.fields, name).get("list") is True
            if is_list or any(each.source.may_rest for each in wires):
                message = f"{len(wires)} wires lead to {name!r}, which takes one value here"
                self.lose(message, ", ".join(each.source.id for each in wires), name)
            for wire in wires[:-1]:
                if wire.edge.outcome is None:
                    wire.edge.drop("import-ignored", f"the last wire to {name!r} is the one that counts there")  # fmt: skip
                    self.node.change(f"of several wires to {name!r} only the last one counts, as there")  # fmt: skip
        return wires[-1] if wires else None

    def takes(self, name: str, target: Target, handle: str, *kinds: ValueKind) -> Wire | None:
        """Lead the wire into a field to a handle, if there is one.

        Args:
            name: The field.
            target: A node.
            handle: A handle of it.
            *kinds: What may arrive there; of anything else the meaning is lost.
        """
        wire = self.wire(name)
        self.inputs[name] = Plug(target, handle)
        if wire is not None and wire.kind not in kinds:
            expected = " or ".join(_NOUNS[kind] for kind in kinds)
            message = f"{_NOUNS[wire.kind]} arrives in {name!r}, where {expected} is read"
            self.lose(message, wire.source.id, name)
        return wire

    def lose(self, message: str, text: object, name: str = "") -> None:
        """Say what of its meaning could not be carried over, by its field."""
        self.node.lose(message, str(text), f"{self.form}/{name}/value" if name else None)

    def pointer(self, name: str) -> str:
        """Return where a field stands."""
        return f"{self.form}/{name}"


@dataclass(eq=False)
class Wire:
    """An edge of a flow.

    Attributes:
        source: The component that it leaves.
        out: An output of that.
        target: The component that it leads to.
        field: A field of that; "" if it leads back to the output of a loop.
        back: The output of a loop that it leads back to, or "".
        kind: What it carries.
        edge: Its account in the report.
    """

    source: Component
    out: str
    target: Component
    field: str
    back: str
    kind: ValueKind
    edge: SourceEdge


def read_flow(
    conversion: Conversion,
    document: Mapping[str, Any],
    pointer: str,
    is_known: Callable[[str], bool],
) -> list[Component]:
    """Announce the nodes and edges of a flow, and return its components with their wires.

    Args:
        conversion: Where they are announced.
        document: What has ``nodes`` and ``edges``.
        pointer: Where that stands.
        is_known: Whether a type of component has a counterpart.
    """
    by_id: dict[str, Component] = {}
    for number, entry in objects_in(document, "nodes"):
        component = _component(conversion, entry, f"{pointer}/nodes/{number}")
        if component is None:
            continue
        if component.id in by_id:
            message = f"two components have the id {component.id!r}: wires lead to the first"
            component.node.change(message, code="import-renamed")
            component.id = f"{component.id}#{number}"
        by_id[component.id] = component
    everything = list(by_id.values())
    is_chat = any(each.kind == "ChatInput" for each in by_id.values())
    for component in by_id.values():
        component.is_beside_chat, component.beside = is_chat, everything
    seen: set[tuple[str, str, str, str]] = set()
    for number, entry in objects_in(document, "edges"):
        wire = _wire(conversion, entry, f"{pointer}/edges/{number}", by_id, is_known)
        if wire is None:
            continue
        key = (wire.source.id, wire.out, wire.target.id, wire.field or wire.back)
        if key in seen:
            wire.edge.drop("import-ignored", "the same wire is there twice")
            continue
        seen.add(key)
        wire.source.leaving.append(wire)
        wire.target.arriving.append(wire)
    return everything


def _component(conversion: Conversion, entry: Mapping[str, Any], pointer: str) -> Component | None:
    data = object_of(entry, "data")
    about = object_of(data, "node")
    fields = object_of(about, "template")
    node_id = text_of(entry, "id") or text_of(data, "id")
    kind = text_of(data, "type") or text_of(entry, "type")
    is_own = about.get("edited") is True
    node = conversion.source_node(
        pointer,
        kind or "unknown",
        node_id,
        parameters=_values(fields),
        code=text_of(object_of(fields, "code"), "value") if is_own else "",
        position=position_of(object_of(entry, "position")),
    )
    if text_of(entry, "type") == "noteNode" or kind == "note":
        node.drop("import-ignored", "a note: planwave has none in its graphs")
        return None
    if is_own:
        node.becomes_placeholder(
            "its program was changed there: it is kept as text, and never run",
            hint="write it as a node type, or replace it by steps that do the same",
        )
    elif about.get("frozen") is True:
        node.change("it was frozen there, so that it gave its last result again; here it runs")
    title = text_of(about, "display_name") or text_of(data, "display_name") or node_id
    form = f"{pointer}/data/node/template"
    return Component(node_id, kind, title, fields, node, conversion, form, conversion.graph)


def _values(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a form holds, without the program."""
    described = ((name, object_of(fields, name)) for name in fields if name != "code")
    return {name: each["value"] for name, each in described if each.get("value") not in _NO_VALUES}


def _wire(
    conversion: Conversion,
    entry: Mapping[str, Any],
    pointer: str,
    by_id: Mapping[str, Component],
    is_known: Callable[[str], bool],
) -> Wire | None:
    """Announce an edge; return None where an end of it is not there."""
    source, target = (by_id.get(text_of(entry, end)) for end in ("source", "target"))
    edge = conversion.source_edge(pointer, source and source.node, target and target.node)
    if source is None or target is None:
        edge.drop("import-dangling", "it leads to or from a component that is not there")
        if target is not None:
            message = "a wire leads to it from a component that is not there"
            target.node.lose(message, text_of(entry, "source"), pointer, code="import-dangling")
        return None
    leaves, enters = _handle(entry, "sourceHandle"), _handle(entry, "targetHandle")
    out, name = text_of(leaves, "name"), text_of(enters, "fieldName")
    back = "" if name else text_of(enters, "name")
    if not out or not (name or back):
        edge.drop("import-dangling", "it does not say which output and which field it joins")
        message = "a wire leads to it that names no output or no field"
        target.node.lose(message, source.id, pointer, code="import-dangling")
        return None
    kind = _KIND_OF_OUTPUT.get(out) if is_known(source.kind) or out == TOOL_OUTPUT else None
    return Wire(source, out, target, name, back, kind or _carried(leaves), edge)


def _carried(handle: Mapping[str, Any]) -> ValueKind:
    """Return what an output carries by its declared types."""
    kinds = {_KIND_OF_TYPE.get(str(name), "any") for name in list_of(handle, "output_types")}
    return cast("ValueKind", kinds.pop()) if len(kinds) == 1 else "any"


def _handle(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an end of an edge, which also stands there as JSON with ``œ`` in place of quotes."""
    if handle := object_of(object_of(entry, "data"), name):
        return handle
    try:
        value = json_of(text_of(entry, name).replace("œ", '"'))
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
