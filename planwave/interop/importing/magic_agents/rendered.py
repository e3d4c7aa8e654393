"""What arrives at a step, by the names that its templates have for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from planwave.interop.importing.drafts import Target
from planwave.interop.importing.jinja_filters import Untranslatable
from planwave.interop.importing.jinja_text import Names as JinjaNames
from planwave.interop.importing.jinja_text import Variable, translated
from planwave.interop.importing.magic_agents.fields import text_field
from planwave.interop.importing.magic_agents.flow import Step, Wire
from planwave.interop.importing.magic_agents.graphs import LINKED, Graph, Made, Plug
from planwave.interop.importing.reading import text_of
from planwave.interop.importing.templates import path

_RESERVED: Final = frozenset(
    {
        "input", "inputs", "nodes", "goal", "trigger", "PREVIOUS_OUTPUT", "template", "item", "index",
        "value", "items", "loop", "range", "dict", "namespace", "true", "false", "none", "self", "super",
        "caller", "True", "False", "None", "and", "or", "not", "in", "is", "if", "else", "data", "error",
    }
)  # fmt: skip
"""Names that mean something else in a planwave template, or as a handle."""
_OBJECTS: Final = frozenset({"handle_client_extras", "handle_user_files", "handle_user_images"})


class Names:
    """The handles of a step as variables.

    Attributes:
        handles: Those that wires lead to, in the order of the file.
    """

    def __init__(self, graph: Graph, step: Step) -> None:
        self._graph = graph
        wires = [wire for wire in graph.wires_into(step) if wire.source.kind not in LINKED]
        self._wires: dict[str, list[Wire]] = {}
        for wire in wires:
            self._wires.setdefault(wire.into, []).append(wire)
        self.handles = list(self._wires)
        self._ports = _ports(self.handles)
        self._is_flat = (step.data.get("merge_strategy") or "flat") != "namespaced"

    def port(self, handle: str) -> str:
        """Return the name of a handle here: one that is a variable of templates."""
        return self._ports.get(handle, "input")

    def is_optional(self, handle: str) -> bool:
        """Return whether the step may run without something at a handle."""
        return len(self.handles) > 1 and all(map(self._graph.is_optional, self._wires[handle]))

    def variable(self, name: str) -> Variable | None:
        """Return what a name in a template is: what arrived at the handle of this name."""
        if name not in self._wires:
            return None
        return Variable(
            self._ports[name], self.is_optional(name), self._may_be_json(name), self._is_text(name)
        )

    def field(self, name: str) -> Variable | None:
        """Return what a name in a condition is: a field of the object of all that arrived."""
        if not self._is_flat and name not in self._wires:
            return None
        is_sure = name == "value" and "handle_input" in self._wires and self._is_flat
        is_sure |= not self._is_flat and not self.is_optional(name)
        return Variable(path("input", [name]), not is_sure)

    def read_json(self, handle: str) -> str:
        """Return an expression for what arrived at a handle, read as JSON where it is JSON in a text."""
        port = self.port(handle)
        return f"({port} | fromjson({port}))" if self._may_be_json(handle) else port

    def _is_text(self, handle: str) -> bool:
        return all(_leaves_text(wire) for wire in self._wires[handle])

    def _may_be_json(self, handle: str) -> bool:
        return any(
            not (wire.source.kind == "loop" and wire.out != "handle_item")
            and wire.source.kind != "conditional"
            and wire.out not in _OBJECTS
            for wire in self._wires[handle]
        )


def _leaves_text(wire: Wire) -> bool:
    """Return whether what a wire carries is known to be a text."""
    step = wire.source
    match step.kind:
        case "user_input":
            return wire.out == "handle_user_message"
        case "constant":
            return text_of(step.data, "value_type") in ("", "str")
        case "llm":
            return not (step.data.get("json_output") or step.data.get("json_mode"))
        case _:
            return step.kind in ("text", "parser")


def parser_names(graph: Graph, step: Step) -> Names:
    """Return the handles of a step as variables of its template."""
    return Names(graph, step)


def translated_field(step: Step, names: Sequence[str], variables: JinjaNames) -> str:
    """Return the template in the first of some fields that has a text; what cannot be said is lost."""
    text, pointer = text_field(step, *names)
    return translated_text(step, text, pointer, variables)


def translated_text(step: Step, text: str, pointer: str, variables: JinjaNames) -> str:
    """Return a template in the words of planwave; what cannot be said is lost."""
    try:
        made = translated(text, variables)
    except Untranslatable as error:
        step.node.lose(f"its template has no counterpart here: {error}", text, pointer)
        return ""
    if made.prints_values:
        step.note_printing(pointer)
    return made.text


class SingleInput(NamedTuple):
    """The input of a step that reads one of the handles that wires lead to.

    Attributes:
        is_fed: Whether a wire leads to that handle.
        choice: A node that passes on what arrives there where wires lead to others too, or None.
        names: The names of the handles of the choice.
        graph: The graph of the step.
    """

    is_fed: bool
    choice: Target | None
    names: Names
    graph: Graph

    def made(self, target: Target, fields: Mapping[str, Plug] | None = None) -> Made:
        """Return the ends of the wires of a node.

        Args:
            target: The node.
            fields: Handles that lead elsewhere.
        """
        fields = fields or {}
        if self.choice is not None:
            self.graph.join(self.choice, target)

        def into(handle: str) -> Plug | None:
            if handle in fields:
                return fields[handle]
            if self.choice is None:
                return Plug(target, "input")
            return Plug(self.choice, self.names.port(handle))

        return Made(into, lambda _: Plug(target, "output"))


def single_input(graph: Graph, step: Step, wanted: str, *others: str) -> SingleInput:
    """Return the input of a step that reads one handle; a parser picks it where there are several.

    Args:
        graph: The graph of the step.
        step: The step; its node comes after the parser.
        wanted: The handle that is read.
        others: Handles that lead to fields of the node.
    """
    names = Names(graph, step)
    plain = [handle for handle in names.handles if handle not in others]
    is_fed = wanted in plain
    if not is_fed or len(plain) == 1:
        return SingleInput(is_fed, None, names, graph)
    choice = step.node.becomes(
        "parser",
        {"template": f"{{{{ inputs.{names.port(wanted)} | default('') }}}}"},
        node_id=f"{step.id}-input",
        name=f"{step.id}: input",
        graph=graph.draft,
    )
    return SingleInput(True, choice, names, graph)


def _ports(handles: Sequence[str]) -> dict[str, str]:
    ports: dict[str, str] = {}
    for handle in handles:
        name = re.sub(r"\W", "_", handle, flags=re.ASCII)[:56] or "_"
        if name in _RESERVED or name[0].isdigit() or name.startswith("__"):
            name = f"in_{name}"
        base = name
        while name in ports.values():
            name = f"{base}_{len(ports)}"
        ports[handle] = name
    return ports
