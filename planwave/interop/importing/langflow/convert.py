"""Flows of Langflow as graphs: components first, then the wires between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from planwave.graph.model import is_id
from planwave.interop.importing.conversion import Conversion
from planwave.interop.importing.drafts import GraphDraft, new_edge
from planwave.interop.importing.importer import Source
from planwave.interop.importing.langflow.flow import (
    LINKS,
    Carried,
    Component,
    Plug,
    Wire,
    read_flow,
)
from planwave.interop.importing.langflow.kinds import KINDS, SEARCHES, is_known
from planwave.interop.importing.langflow.loops import bodies_of, make_loop
from planwave.interop.importing.langflow.models import link_search
from planwave.interop.importing.reading import object_of, text_of


def convert(source: Source) -> Conversion:
    """Make nodes of each component, and an edge of each wire."""
    document, at = cast("Mapping[str, Any]", source.value), source.pointer
    version = text_of(document, "last_tested_version") or None
    conversion = Conversion("langflow", version, text_of(document, "name"))
    flow = object_of(document, "data")
    components = read_flow(conversion, flow, f"{at}/data", is_known)
    _place(components, conversion.graph)
    for component in components:
        if component.kind in SEARCHES and not component.node.is_lost:
            link_search(component)
        if component.later is not None:
            component.later()
    for component in components:
        for wire in component.leaving:
            _connect(wire)
    return conversion


def _place(components: Sequence[Component], graph: GraphDraft, nested: int = 0) -> None:
    """Put components into a graph, those of a loop into its body."""
    bodies = bodies_of(components, nested)
    inside = {each for body in bodies.values() for each in body}
    for component in components:
        if component in inside:
            continue
        component.graph = graph
        if component in bodies:
            _place(bodies[component], make_loop(component, bodies[component]), nested + 1)
        elif component.node.is_lost or component.kind not in KINDS:
            _keep(component)
        else:
            KINDS[component.kind](component)


def _keep(component: Component) -> None:
    component.becomes("placeholder", {"kind": component.node.kind})
    if not component.node.is_lost:
        component.node.becomes_placeholder(f"{component.kind} has no counterpart")


def _connect(wire: Wire) -> None:
    """Draw a wire; what its ends do not have makes placeholders of them."""
    if wire.edge.outcome is not None:
        return
    source, target = wire.source, wire.target
    name = wire.field or wire.back
    plug, entry = source.outputs.get(wire.out), target.inputs.get(name)
    if plug is None:
        if not source.node.is_lost:
            source.lose(f"its output {wire.out!r} has no counterpart", wire.out)
        plug = Plug(source.node.target, wire.out if is_id(wire.out) else "output")
    elif entry is not None and (plug.handle, entry.handle) == ("message", "messages"):
        plug = Plug(plug.target, "messages")
    if entry is None:
        if not target.node.is_lost:
            target.lose(f"a wire leads to {name!r}, which has no counterpart", source.id, name)
        entry = Plug(target.node.entry, name if is_id(name) else "input")
    if (carried := target.carried.get((source, wire.out))) is not None:
        _carry(wire, plug, carried, entry)
        return
    if plug.target.graph is not entry.target.graph:
        target.lose("a wire leads to it out of a loop, or into one", source.id, name)
        wire.edge.drop("import-placeholder", "it leads out of a loop, or into one")
        return
    channel = "link" if wire.kind in LINKS else "flow"
    wire.edge.becomes(plug.target, entry.target, plug.handle, entry.handle, channel=channel)


def _carry(wire: Wire, plug: Plug, carried: Carried, entry: Plug) -> None:
    """Lead a value into the body of a loop, and to the component that reads it there."""
    if plug.target.graph is not carried.outside.target.graph or carried.inside.target.graph is not entry.target.graph:  # fmt: skip
        wire.target.lose("a wire leads to it into a loop in a loop", wire.source.id, wire.field)
        wire.edge.drop("import-placeholder", "it leads into a loop in a loop")
        return
    wire.edge.becomes(plug.target, carried.outside.target, plug.handle, carried.outside.handle)
    wire.edge.note("import-changed", "it leads into the loop through an input of its own")
    inside = carried.inside
    new_edge(inside.target.graph, inside.target.id, entry.target.id, inside.handle, entry.handle)
