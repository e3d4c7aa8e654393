"""Loops: components whose output ``item`` leads to steps that lead back to it, as ``loop`` nodes with a body."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from planwave.interop.importing.drafts import GraphDraft, Target, new_edge
from planwave.interop.importing.langflow.flow import (
    LINKS,
    Carried,
    Component,
    Plug,
    ValueKind,
    Wire,
)
from planwave.interop.importing.langflow.kinds import LOOPS, SEARCHES, is_constant
from planwave.interop.importing.templates import inserted

_ITEM, _DONE = "item", "done"
_ROWS, _OUTER = "rows", "outer"
"""Inputs of an ``inner``: the list, and what else its steps read, with a number."""
_ITEMS: Final[Mapping[ValueKind, str]] = {"data": "[{}]", "text": '[{{"text": {} | string}}]'}
"""The rows that it goes through, by what arrives; all else is a list."""
_SAME: Final = frozenset({"ChatInput", "TextInput", "TextInputComponent"})
"""Components that give the same whenever they run."""
_MOST_NESTED: Final = 4
"""Loops inside each other, within the default limit of nested graphs."""


def bodies_of(components: Sequence[Component], nested: int) -> Mapping[Component, list[Component]]:
    """Return the outermost loops with the components of their bodies; loops that are none get lost.

    Args:
        components: Those of one graph.
        nested: Number of loops around them.
    """
    there = set(components)
    reached = {
        each: _reached(each, [wire for wire in each.leaving if wire.out == _ITEM], there)
        for each in components
        if each.kind in LOOPS and not each.node.is_lost
    }
    outer: dict[Component, list[Component]] = {}
    for loop, body in reached.items():
        if any(loop in others for other, others in reached.items() if other is not loop):
            continue
        if _is_loop(loop, body, there, nested):
            whole = body | _constants(body, there)
            if not any(whole & set(other) for other in outer.values()):
                outer[loop] = [each for each in components if each in whole]
            else:
                loop.lose("its body shares steps with that of another loop", loop.id)
    return outer


def _is_loop(loop: Component, body: set[Component], there: set[Component], nested: int) -> bool:
    """Return whether the steps behind ``item`` can be a body; else the loop gets lost."""
    back = [wire for wire in loop.arriving if wire.back]
    after = _reached(loop, [wire for wire in loop.leaving if wire.out != _ITEM], there)
    around = body | _constants(body, there)
    links = [wire for wire in _from_outside(loop, around) if wire.kind in LINKS or nested]
    fault = ""
    if not body or len(back) != 1 or back[0].source not in body or back[0].back != _ITEM:
        fault = "not exactly one step of its body leads back to its item"
    elif body & after:
        fault = "a step follows its end that is also a step of its body"
    elif links:
        fault = f"a step of its body uses {links[0].source.id!r}, which is outside of it"
    elif nested >= _MOST_NESTED:
        fault = "graphs here are not nested so deep"
    if fault:
        loop.lose(fault, ", ".join(sorted(each.id for each in body)))
    return not fault


def _reached(loop: Component, wires: Iterable[Wire], there: set[Component]) -> set[Component]:
    ahead, found = [wire.target for wire in wires], set[Component]()
    while ahead:
        each = ahead.pop()
        if each is not loop and each not in found and each in there:
            found.add(each)
            ahead.extend(wire.target for wire in each.leaving)
    return found


def _constants(body: set[Component], there: set[Component]) -> set[Component]:
    """Return what only a body reads and gives the same in each round: prompts, tools, models."""
    found: set[Component] = set()
    ahead = list(body)
    while ahead:
        for wire in ahead.pop().arriving:
            source = wire.source
            inside = body | found
            if (
                source in there
                and source not in inside
                and is_constant(source)
                and not source.arriving
                and all(each.target in inside for each in source.leaving)
            ):
                found.add(source)
    return found


def _from_outside(loop: Component, body: Collection[Component]) -> list[Wire]:
    return [
        wire
        for each in body
        for wire in each.arriving
        if wire.source not in body and wire.source is not loop and not _is_search(wire)
    ]


def _is_search(wire: Wire) -> bool:
    return wire.source.kind in SEARCHES


def make_loop(component: Component, members: Sequence[Component]) -> GraphDraft:
    """Become a ``loop``, and return its body with a first and a last node.

    What its body reads outside comes in through an ``inner`` around it.

    Args:
        component: The loop.
        members: The components of its body.
    """
    outside = list(dict.fromkeys((w.source, w.out) for w in _from_outside(component, set(members))))
    names = {each: f"{_OUTER}{number}" for number, each in enumerate(outside, 1)}
    main = component.becomes("inner" if outside else "loop", {} if outside else {"parallel": 1})
    rows = _ROWS if outside else "input"
    wire = component.takes("data", main, rows, "table", "data", "text", "any")
    if wire is None:
        component.lose("no list leads to it", "", "data")
    items = _ITEMS.get("table" if wire is None else wire.kind, "{}").format(rows)
    loop = main
    if outside:
        draft = component.node.body()
        main.node["data"] = {"inputs": dict.fromkeys([_ROWS, *names.values()], "any"), "graph": draft.document()}  # fmt: skip
        loop = component.node.becomes(
            "loop", {"parallel": 1}, node_id=component.id, name=component.title, graph=draft
        )
    if items != "input":
        loop.node["data"]["items"] = inserted(items)
    body = component.node.body()
    _carry(component, members, main, names, body)
    begin = component.node.becomes(
        "transform", {"expression": inserted("item")}, node_id=_ITEM, name="Item", graph=body
    )
    component.inputs[_ITEM] = Plug(_result(component, body), "input")
    component.outputs |= {_ITEM: Plug(begin, "output"), _DONE: Plug(main, "output")}
    loop.node["data"]["body"] = body.document()
    component.node.change(
        "the steps that lead back to it are its body, which runs once for each row",
        code="import-cycle",
    )
    return body


def _result(component: Component, body: GraphDraft) -> Target:
    """Return the node that the step that leads back leads to: a text is a row with a text."""
    result = component.node.becomes("end", node_id="result", name="Result", graph=body)
    (back,) = [wire for wire in component.arriving if wire.back]
    if back.kind != "text":
        return result
    fields = {"text": inserted("input | string")}
    row = component.node.becomes(
        "transform", {"fields": fields}, node_id="row", name="Row", graph=body
    )
    new_edge(body, row.id, result.id)
    return row


def _carry(
    component: Component,
    members: Sequence[Component],
    main: Target,
    names: Mapping[tuple[Component, str], str],
    body: GraphDraft,
) -> None:
    """Give a body a node for each value that comes in from outside."""
    carried: dict[tuple[Component, str], Carried] = {}
    again = [each.title for each, _ in names if each.kind not in _SAME]
    if again:
        component.node.change(
            f"what its steps read outside of it runs once here; there it runs again for each row: {', '.join(again)}"
        )
    for each, name in names.items():
        made = component.node.becomes(
            "transform",
            {"expression": inserted(name)},
            node_id=name,
            name=each[0].title,
            graph=body,
        )
        carried[each] = Carried(Plug(main, name), Plug(made, "output"))
    for member in members:
        member.carried = carried
