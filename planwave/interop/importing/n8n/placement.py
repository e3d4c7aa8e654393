"""Steps of a workflow put into graphs: what runs once for each item as ``loop``, what leads back as ``while``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, cast

from planwave.interop.importing import loops
from planwave.interop.importing.drafts import GraphDraft, Target
from planwave.interop.importing.n8n.answers import ITEMS, gives_items
from planwave.interop.importing.n8n.fields import Fields, Names, Placement, field_of
from planwave.interop.importing.n8n.kinds import path_of_field
from planwave.interop.importing.n8n.workflow import SAME, Envelope, Step, Way, Workflow
from planwave.interop.importing.reading import number_of, object_of, text_of
from planwave.interop.importing.templates import inserted, path, quoted

_BATCHES, _SPLIT, _AGGREGATE = "splitInBatches", "splitOut", "aggregate"
NO_FIELDS: Final = Envelope({})
"""The form of a list: no field of it can be read as one of an item."""
_NO_NAME: Final = re.compile(r"\W+")


class Region(NamedTuple):
    """Steps that run once for each item.

    Attributes:
        owner: The step that becomes the loop.
        members: The steps in it.
        entering: The ways from the owner to them.
        leaving: The ways from them with the result of an item.
    """

    owner: str
    members: frozenset[str]
    entering: Sequence[Way]
    leaving: Sequence[Way]


Maker = Callable[[Placement, Step, GraphDraft], None]


class Placer:
    """Puts the steps of a workflow into graphs.

    Args:
        workflow: The workflow.
        make: Makes the nodes of a step that is no loop.
    """

    def __init__(self, workflow: Workflow, make: Maker) -> None:
        self.workflow, self._make = workflow, make
        self.placement = Placement(workflow, are_exclusive=self.are_exclusive)
        self._owners: dict[str, Region] = {}
        self._choices: dict[str, Mapping[str, int | str]] = {}

    def place(self, names: Sequence[str], graph: GraphDraft, nested: int = 0) -> loops.Placed:
        """Put steps into a graph, in this order."""
        chosen, owner_of = set(names), dict[str, str]()
        has_room = loops.has_room(graph, 2)
        for name in names:
            if (
                name not in owner_of
                and (region := self._region(name, chosen, has_room)) is not None
            ):
                self._owners[name] = region
                owner_of |= dict.fromkeys(region.members, name)
        steps = dict[str, loops.Step]()
        for name in names:
            if name in owner_of:
                continue
            step = self.workflow.steps[name]
            place: Callable[[GraphDraft], Target | Mapping[str, Target] | None]
            place = partial(self._place_step, name)
            if name in self._owners:
                place = partial(self._place_region, self._owners[name], nested)
            handles = ["output"] if name in self._owners else step.handles
            steps[name] = loops.Step(step.node, handles, place)
        ways = [made for way in self.workflow.ways if (made := self._way(way, chosen, owner_of))]
        return loops.place_steps(steps, ways, graph, nested=nested, carry=self._carry)

    def _way(self, way: Way, chosen: set[str], owner_of: Mapping[str, str]) -> loops.Way | None:
        if way.source not in chosen or way.target not in chosen or way.target in owner_of:
            return None
        if way.source in owner_of:
            owner = owner_of[way.source]
            if way.target == owner or way not in self._owners[owner].leaving:
                return None
            return loops.Way(owner, "output", way.target, way.edge)
        source = self.workflow.steps[way.source]
        if way.source in self._owners:
            return loops.Way(way.source, "output", way.target, way.edge)
        handle = source.handles[way.output]
        return loops.Way(way.source, handle, way.target, way.edge)

    def _place_step(self, name: str, graph: GraphDraft) -> Mapping[str, Target] | None:
        step = self.workflow.steps[name]
        self.placement.graphs[name] = graph
        self._make(self.placement, step, graph)
        return None if step.worker is None else {"error": step.worker}

    # Items

    def _region(self, name: str, chosen: set[str], has_room: bool) -> Region | None:
        """Return the steps that run once for each item of a step, or None; what is none is lost."""
        step = self.workflow.steps[name]
        is_split = step.kind == _SPLIT and self._makes_items(step)
        if not is_split and step.kind != _BATCHES:
            return None
        if not has_room:
            return self._refuse(step, "it is inside of too many others", [])
        return self._items(step, chosen) if is_split else self._batches(step, chosen)

    def _makes_items(self, step: Step) -> bool:
        """Return whether steps follow that run once for each item, and are no loop of their own."""
        kinds = [self.workflow.steps[way.target].kind for way in self.workflow.out_of(step.name)]
        return any(kind not in (_BATCHES, _AGGREGATE) for kind in kinds)

    def _batches(self, step: Step, chosen: set[str]) -> Region | None:
        done = 0 if step.version >= 3 else 1
        ways = self.workflow.out_of(step.name)
        entering = [way for way in ways if way.output != done]
        if (number_of(step.parameters, "batchSize") or 1) != 1 or object_of(
            step.parameters, "options"
        ).get("reset"):
            return self._refuse(step, "it hands on several items at once, or begins anew", [])
        members = self.workflow.after([way.target for way in entering], frozenset((step.name,))) - {
            step.name
        }
        leaving = [way for way in self.workflow.into(step.name) if way.source in members]
        region = Region(step.name, frozenset(members), entering, leaving)
        after = [way.target for way in ways if way.output == done]
        return self._checked(step, region, chosen, {step.name}, after)

    def _items(self, step: Step, chosen: set[str]) -> Region | None:
        if problem := split_problem(step):
            return self._refuse(step, problem, [])
        ends = frozenset(
            name for name, each in self.workflow.steps.items() if each.kind == _AGGREGATE
        )
        entering = [w for w in self.workflow.out_of(step.name) if w.target not in ends]
        members = self.workflow.after([way.target for way in entering], ends) - {step.name}
        leaving = [
            way for way in self.workflow.ways if way.source in members and way.target in ends
        ]
        region = Region(step.name, frozenset(members), entering, leaving)
        direct = [w.target for w in self.workflow.out_of(step.name) if w.target in ends]
        after = {way.target for way in leaving} | set(direct)
        if len(after) > 1 or direct:
            return self._refuse(step, "its items go several ways", sorted(members))
        return self._checked(step, region, chosen, after, sorted(after))

    def _checked(
        self, step: Step, region: Region, chosen: set[str], ends: set[str], after: Sequence[str]
    ) -> Region | None:
        members = region.members
        if not any(way.source not in members for way in self.workflow.into(step.name)):
            return self._refuse(step, "nothing arrives there", [])
        way_in = [
            w for w in self.workflow.ways
            if w.target in members and w.source not in members and w.source != step.name
        ]  # fmt: skip
        way_out = [
            w for w in self.workflow.ways
            if w.source in members and w.target not in members and w.target not in ends
        ]  # fmt: skip
        around = [step.name, *sorted(members), step.name]
        if not members <= chosen or way_in or way_out:
            odd = [f"{way.source} → {way.target}" for way in (*way_in, *way_out)]
            return self._refuse(
                step, f"ways lead into or out of its steps ({', '.join(odd)})", around
            )
        if after and not self._gives_one_result(region):
            return self._refuse(step, "not each of its items has one result", around)
        for name in after:
            follower = self.workflow.steps[name]
            if follower.kind != _AGGREGATE:
                follower.node.lose(
                    "it runs once for each item there: only a step that aggregates may follow",
                    name,
                    code="import-many-items",
                )
        if not members:
            return self._refuse(step, "no steps run for its items", around) if after else region
        return region

    def _gives_one_result(self, region: Region) -> bool:
        """Return whether each way through the steps of an item ends in one of those that leave."""
        leaving = {(way.source, way.output) for way in region.leaving}
        for name in region.members:
            step = self.workflow.steps[name]
            for output, _ in enumerate(step.handles):
                going = [w for w in self.workflow.out_of(name) if w.output == output]
                if not going and (name, output) not in leaving:
                    return False
        return self.are_exclusive(region.leaving)

    def _refuse(self, step: Step, why: str, around: Sequence[str]) -> None:
        shown = " → ".join(around)
        step.node.lose(
            f"its items cannot be a loop here: {why}",
            shown or step.name,
            code="import-cycle" if step.kind == _BATCHES else "import-many-items",
        )

    def _place_region(self, region: Region, nested: int, graph: GraphDraft) -> Target:
        step = self.workflow.steps[region.owner]
        self.placement.graphs[step.name] = graph
        carried = self._carry(region.members, graph)
        outer: Target | None = None
        begin: Target | None = None
        if carried is not None:
            data: dict[str, Any] = {"inputs": dict.fromkeys(carried.inputs, "any")}
            outer = step.node.becomes("inner", data, node_id=step.name, graph=graph)
            inner = step.node.body()
            carried.enter(inner)
            outer.node["data"]["graph"] = inner.document()
            for name, output in carried.inputs.items():
                loops.new_edge(graph, output.target.id, outer.id, output.handle, name)
            graph = inner
            begin = step.node.becomes("start", node_id="start", name="Start", graph=inner)
        items = self._items_of(step)
        loop = step.node.becomes("loop", {}, node_id=step.name, graph=graph)
        body = step.node.body()
        if begin is not None:
            loops.new_edge(graph, begin.id, loop.id)
        item = self._item_of(step)
        start = step.node.becomes(
            "transform", {"expression": inserted(item)}, node_id="item", name="Item", graph=body
        )
        names = {step.name: (item, SAME)}
        for way in self.workflow.into(step.name):
            if self.workflow.steps[way.source].kind == _SPLIT:
                names[way.source] = (item, SAME)
        self.placement.names.append(Names(body.path, names))
        ordered = [name for name in self.workflow.steps if name in region.members]
        placed = self.place(ordered, body, nested + 1)
        for way in region.entering:
            if way.target in placed.entries:
                way.edge.becomes(start, placed.entries[way.target][0])
        self._place_result(region, step, placed, body)
        loop.node["data"] = {**items, "parallel": 1, "body": body.document()}
        step.envelope = NO_FIELDS
        step.node.change(
            "the steps for each item are the body of a loop here, one item after another"
        )
        return outer or loop

    def _place_result(
        self, region: Region, step: Step, placed: loops.Placed, body: GraphDraft
    ) -> None:
        """End the body in the result of an item, in the form that n8n has."""
        if not region.leaving:
            return
        forms, whole = list[Envelope](), "input"
        for way in region.leaving:
            source = self.workflow.steps[way.source]
            origins = self.workflow.origins(way.source) if source.passes else {way.source}
            forms += [self.workflow.steps[name].envelope for name in sorted(origins)]
        if any(form != forms[0] for form in forms) or (
            forms[0].fields and {o for o, _ in forms[0].fields.values()} > {"output"}
        ):
            step.node.lose(
                "the results of its items have several forms", step.name, code="import-many-items"
            )
            forms = [SAME]
        if forms[0] == NO_FIELDS:
            step.node.lose("its items are lists", step.name, code="import-many-items")
        elif len(region.leaving) == 1:
            value, _ = field_of(whole, forms[0], (), 0)
            whole = value.text
        elif forms[0] != SAME:
            step.node.lose(
                "several steps give the results of its items", step.name, code="import-many-items"
            )
        result = step.node.becomes(
            "transform",
            {"expression": inserted(whole)},
            node_id="result",
            name="Result",
            graph=body,
        )
        for way in region.leaving:
            source = self.workflow.steps[way.source]
            output = placed.outputs.get((way.source, source.handles[way.output]))
            if output is None:
                message = "the result of an item comes out of a loop in it"
                step.node.lose(message, way.source, code="import-many-items")
                continue
            if way.target == step.name:
                way.edge.becomes(output.target, result, output.handle)
                way.edge.note("import-changed", "it leads to the result of an item of a loop")
            else:
                loops.new_edge(body, output.target.id, result.id, output.handle)

    def _items_of(self, step: Step) -> dict[str, Any]:
        """Return the field of the loop with its items: those of a field, of a list, or the one that arrives."""
        if step.kind == _SPLIT:
            field = path_of_field(text_of(step.parameters, "fieldToSplitOut"))
            return {"items": inserted(path("input", field))}
        sources = [self.workflow.steps[way.source] for way in self.workflow.into(step.name)]
        outside = [each for each in sources if each.name not in self._owners[step.name].members]
        if any(each.kind == _SPLIT or each.name in self._owners for each in outside):
            return {}
        if any(gives_items(self.workflow, each) for each in outside):
            return {"items": inserted(ITEMS)}
        return {"items": inserted("[input]")}

    def _item_of(self, step: Step) -> str:
        """Return the item as n8n has it: an element that is no object is the field it comes from."""
        split = step
        for way in self.workflow.into(step.name):
            if self.workflow.steps[way.source].kind == _SPLIT:
                split = self.workflow.steps[way.source]
        if split.kind != _SPLIT:
            return "item"
        if renamed := split_name(split):
            return f"{{{quoted(renamed)}: item}}"
        *_, name = path_of_field(text_of(split.parameters, "fieldToSplitOut")) or ("",)
        return f"(item if item is mapping else {{{quoted(name)}: item}})"

    # What a loop reads of the steps around it

    def _carry(self, members: frozenset[str], graph: GraphDraft) -> loops.Carried | None:
        inputs, names = dict[str, loops.Output](), dict[str, tuple[str, Envelope]]()
        for name in sorted(self._mentioned(members)):
            origins = self.workflow.origins(name) if self.workflow.steps[name].passes else {name}
            if len(origins) != 1:
                continue
            (origin,) = origins
            if self.placement.graphs.get(origin) is not graph or origin in self._owners:
                continue
            if not self.workflow.steps[origin].node.targets:
                continue
            variable = f"from_{_NO_NAME.sub('_', origin)}"[:60]
            inputs[variable] = loops.Output(self.workflow.steps[origin].node.target, "output")
            names[name] = names[origin] = (variable, self.workflow.steps[origin].envelope)
        if not inputs:
            return None

        def enter(inside: GraphDraft) -> None:
            self.placement.names.append(Names(inside.path, names))

        return loops.Carried(inputs, enter)

    def _mentioned(self, members: frozenset[str]) -> set[str]:
        texts = [
            text
            for name in members
            for text in _texts(self.workflow.steps[name].parameters)
            if text.startswith("=")
        ]
        helpers = {link.source for link in self.workflow.links if link.target in members}
        for name in helpers:
            texts += _texts(self.workflow.steps[name].parameters)
        return {
            name
            for name in self.workflow.steps
            if name not in members and any(_mentions(text, name) for text in texts)
        }

    def are_exclusive(self, ways: Sequence[Way]) -> bool:
        """Return whether only one of some ways is ever taken: they are on different outputs of one step."""
        choices = [self._choices_of(way) for way in ways]
        return all(
            any(name in other and other[name] != output for name, output in one.items())
            for number, one in enumerate(choices)
            for other in choices[number + 1 :]
        )

    def arriving(self, name: str) -> list[Way]:
        """Return the ways that lead to a step from the same graph, without those that lead back to it."""
        ways = [way for way in self.workflow.into(name) if way.source not in self._owners]
        is_before = self.workflow.is_before
        if len(ways) < 2 or not any(is_before(name, way.source) for way in ways):
            return ways
        if not self._owners:
            return [way for way in ways if way.source != name and not is_before(name, way.source)]
        after = self.workflow.after([name], frozenset(self._owners))
        return [way for way in ways if way.source not in after]

    def _choices_of(self, way: Way) -> Mapping[str, int | str]:
        """Return the outputs that are taken on every path that ends in a way."""
        if not self._choices:
            for name in self.workflow.steps:
                self._choices[name] = self._common(name)
        step = self.workflow.steps[way.source]
        choices = self._choices[way.source]
        return {**choices, step.name: way.output} if len(step.handles) > 1 else choices

    def _common(self, name: str) -> dict[str, int | str]:
        """Return the outputs that are taken on every path to a step; a way back changes none."""
        step = self.workflow.steps[name]
        if step.is_trigger:
            return {"": name}
        each = [
            self._choices_of(way) for way in self.workflow.into(name) if way.source in self._choices
        ]
        return {
            choice: output
            for choice, output in (each[0].items() if each else ())
            if all(other.get(choice) == output for other in each)
        }


def split_problem(step: Step) -> str:
    """Return why a splitOut is no list of a field, or ""."""
    name = text_of(step.parameters, "fieldToSplitOut").strip()
    if not path_of_field(name) or "," in name:
        return "the field that it splits is calculated, or there are several"
    options = object_of(step.parameters, "options")
    is_named = not any(each in split_name(step) for each in "=,.[")
    others = {
        key
        for key, value in options.items()
        if key not in _SPLIT_OPTIONS and value not in ("", False)
    }
    if text_of(step.parameters, "include") not in ("", "noOtherFields") or others or not is_named:
        return "its items keep other fields, or have calculated names"
    return ""


_SPLIT_OPTIONS: Final = frozenset(("destinationFieldName", "includeBinary"))


def split_name(step: Step) -> str:
    """Return the field that each item of a splitOut has, or "" for the fields of the item itself."""
    return text_of(object_of(step.parameters, "options"), "destinationFieldName").strip()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in cast("dict[str, Any]", value).values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _texts(inner)


def _mentions(text: str, name: str) -> bool:
    return any(
        f"{before}{quote}{name}{quote}" in text
        for before in ("$(", "$node[", "$node.")
        for quote in ("'", '"', "`")
    )


__all__ = ["NO_FIELDS", "Fields", "Placer", "Region"]
