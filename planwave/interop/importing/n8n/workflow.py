"""What an n8n workflow is: its steps by name, the ways between them, and what they hand on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

from planwave.graph.json_values import pointer_part
from planwave.interop.importing.conversion import Conversion, SourceEdge, SourceNode
from planwave.interop.importing.drafts import Target
from planwave.interop.importing.reading import number_of, object_of, position_of, text_of
from planwave.interop.importing.secrets import Withheld

MAIN: Final = "main"
TRIGGER_NAMES: Final = frozenset(("start", "webhook", "cron", "interval", "emailReadImap"))
"""Kinds that begin a workflow and are not called triggers."""


class Envelope(NamedTuple):
    """The form of what a step hands on, in the words of n8n.

    Attributes:
        fields: Where planwave has each field: an output, and a path in it. None where both have the
            same object.
    """

    fields: Mapping[tuple[str, ...], tuple[str, tuple[str, ...]]] | None = None


SAME: Final = Envelope()


@dataclass(eq=False)
class Step:
    """A step of the workflow.

    Attributes:
        name: Its name, by which the others name it.
        kind: Its type without the package, such as ``httpRequest``.
        version: Its version.
        parameters: Its parameters.
        fields: All of it.
        node: Its entry in the report.
        pointer: Where it stands.
        envelope: The form of what it hands on.
        passes: Whether it hands on what arrives.
        handles: Its outputs here, in the order of those there.
        worker: The node that does its work, and may fail, where another one hands on the result.
    """

    name: str
    kind: str
    version: float
    parameters: Mapping[str, Any]
    fields: Mapping[str, Any]
    node: SourceNode
    pointer: str
    envelope: Envelope = SAME
    passes: bool = False
    handles: list[str] = field(default_factory=lambda: ["output"])
    worker: Target | None = None

    @property
    def is_trigger(self) -> bool:
        return self.kind in TRIGGER_NAMES or self.kind.lower().endswith("trigger")


class Way(NamedTuple):
    """A connection of the kind main."""

    source: str
    output: int
    target: str
    input: int
    edge: SourceEdge


class Link(NamedTuple):
    """A connection of a helper, such as a model, to the step that uses it."""

    source: str
    kind: str
    target: str
    input: int
    edge: SourceEdge


_AnyWay = TypeVar("_AnyWay", Way, Link)


class Connections(Generic[_AnyWay]):
    """Connections of one sort, in order, which are found by the steps at their ends."""

    def __init__(self) -> None:
        self._all: list[_AnyWay] = []
        self._by_end: tuple[_ByStep[_AnyWay], _ByStep[_AnyWay]] | None = None

    def __iter__(self) -> Iterator[_AnyWay]:
        return iter(self._all)

    def add(self, connection: _AnyWay) -> None:
        """Add one at the end."""
        self._all.append(connection)
        self._by_end = None

    def keep(self, is_kept: Callable[[_AnyWay], bool]) -> None:
        """Leave out all others."""
        self._all = [each for each in self._all if is_kept(each)]
        self._by_end = None

    def remove_step(self, name: str) -> None:
        """Leave out those that lead to or from a step."""
        self.keep(lambda each: name not in (each.source, each.target))

    def sort_by_input(self) -> None:
        """Order them by the input that they lead to."""
        self._all.sort(key=_input_of)
        self._by_end = None

    def into(self, name: str) -> Sequence[_AnyWay]:
        """Return those that lead to a step, by its inputs."""
        return self._ends()[0].get(name, ())

    def out_of(self, name: str) -> Sequence[_AnyWay]:
        """Return those that lead on from a step."""
        return self._ends()[1].get(name, ())

    def _ends(self) -> tuple[_ByStep[_AnyWay], _ByStep[_AnyWay]]:
        if self._by_end is None:
            into, out_of = dict[str, list[_AnyWay]](), dict[str, list[_AnyWay]]()
            for each in self._all:
                out_of.setdefault(each.source, []).append(each)
            for each in sorted(self._all, key=_input_of):
                into.setdefault(each.target, []).append(each)
            self._by_end = into, out_of
        return self._by_end


_ByStep = Mapping[str, Sequence[_AnyWay]]


def _input_of(connection: Way | Link) -> int:
    return connection.input


@dataclass
class Workflow:
    """The steps and connections of one file, while they are converted."""

    conversion: Conversion
    pointer: str
    steps: dict[str, Step] = field(default_factory=dict[str, Step])
    ways: Connections[Way] = field(default_factory=Connections[Way])
    links: Connections[Link] = field(default_factory=Connections[Link])
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    _before: _Before | None = None
    _arrival: _Arriving | None = None

    def into(self, name: str) -> Sequence[Way]:
        """Return the ways that lead to a step, by its inputs."""
        return self.ways.into(name)

    def out_of(self, name: str) -> Sequence[Way]:
        """Return the ways that lead on from a step."""
        return self.ways.out_of(name)

    def helpers(self, name: str, kind: str) -> list[Link]:
        """Return the helpers of one kind of a step, by their inputs."""
        return [link for link in self.links.into(name) if link.kind == kind]

    def is_before(self, first: str, name: str) -> bool:
        """Return whether ways lead from a step to another one, or around to itself.

        It is asked once the ways are known.
        """
        if self._before is None:
            self._before = _Before(self)
        return self._before.has(first, name)

    def after(self, names: Sequence[str], without: frozenset[str] = frozenset()) -> set[str]:
        """Return the steps to which ways lead from some steps, which are among them."""

        def following(name: str) -> Iterable[str]:
            if name in without:
                return ()
            return (way.target for way in self.out_of(name) if way.target not in without)

        return _reached(names, following) - without

    def has_errors(self, name: str) -> bool:
        """Return whether what arrives at a step may be the error of another one."""
        return self._arriving(name).has_errors

    def origins(self, name: str) -> frozenset[str]:
        """Return the steps whose results arrive at a step, before which others only pass them on."""
        return self._arriving(name).origins

    def _arriving(self, name: str) -> _Arriving:
        """Return what arrives at a step; each parameter of it asks again, once the ways are known."""
        if self._arrival is None or self._arrival.name != name:
            found, waiting, seen, has_errors = set[str](), [name], {name}, False
            while waiting:
                for way in self.into(waiting.pop()):
                    source = self.steps[way.source]
                    has_errors = has_errors or source.handles[way.output] == "error"
                    if not source.passes:
                        found.add(way.source)
                    elif way.source not in seen:
                        seen.add(way.source)
                        waiting.append(way.source)
            self._arrival = _Arriving(name, frozenset(found), has_errors)
        return self._arrival


class _Arriving(NamedTuple):
    """The steps whose results arrive at a step, and whether errors may."""

    name: str
    origins: frozenset[str]
    has_errors: bool


class _Before:
    """The steps before each step, as bits of a number: a set for each would be too many in a large file."""

    def __init__(self, workflow: Workflow) -> None:
        names = in_order(workflow)
        self._bits = {name: 1 << number for number, name in enumerate(names)}
        self._found = dict.fromkeys(names, 0)
        is_changed = True
        while is_changed:  # once for a workflow without cycles, and once more to see that
            is_changed = False
            for name in names:
                found = self._found[name]
                for way in workflow.into(name):
                    found |= self._found[way.source] | self._bits[way.source]
                if found != self._found[name]:
                    self._found[name], is_changed = found, True

    def has(self, first: str, name: str) -> bool:
        return bool(self._found[name] & self._bits[first])


def _reached(names: Iterable[str], following: Callable[[str], Iterable[str]]) -> set[str]:
    found = set(names)
    waiting = list(found)
    while waiting:
        new = [each for each in following(waiting.pop()) if each not in found]
        found.update(new)
        waiting += new
    return found


def read_steps(workflow: Workflow, nodes: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
    """Announce each node; those that are switched off and notes are left out."""
    for number, fields in nodes:
        pointer = f"{workflow.pointer}/nodes/{number}"
        parameters = object_of(fields, "parameters")
        written, name = text_of(fields, "type"), text_of(fields, "name")
        kind = _kind(written.rpartition(".")[2], parameters)
        node = workflow.conversion.source_node(
            pointer,
            written,
            name,
            parameters={k: v for k, v in parameters.items() if k not in _CODE},
            code=next((text_of(parameters, key) for key in _CODE if key in parameters), ""),
            position=_position(fields.get("position")),
        )
        if kind == "stickyNote":
            node.drop("import-ignored", "notes are not imported")
        elif name in workflow.steps:
            node.drop(
                "import-renamed", f"another step has the name {name!r}: connections mean that"
            )
        else:
            version = number_of(fields, "typeVersion") or 1
            fixed = cast("Mapping[str, Any]", _without_marks(parameters))
            workflow.steps[name] = Step(name, kind, version, fixed, fields, node, pointer)


def _kind(kind: str, parameters: Mapping[str, Any]) -> str:
    """Return a kind, of an older step for lists that of the one for its operation."""
    if kind == "itemLists" and text_of(parameters, "operation") in ("", "splitOutItems"):
        return "splitOut"
    return kind


def _without_marks(value: Any) -> Any:
    """Return parameters in which what is marked as calculated, and has no expression, is a plain text."""
    if isinstance(value, dict):
        return {k: _without_marks(v) for k, v in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_without_marks(item) for item in cast("list[Any]", value)]
    is_marked = isinstance(value, str) and value[:1] == "=" and "{{" not in value
    # What begins with a second mark would be read as calculated without the first one.
    return (
        value[1:] if is_marked and value[1:2] != "=" and not isinstance(value, Withheld) else value
    )


_CODE: Final = ("jsCode", "pythonCode", "functionCode")


def _position(value: Any) -> tuple[float, float] | None:
    pair = _list(value)
    if len(pair) != 2:
        return None
    return position_of({"x": pair[0], "y": pair[1]})


class _Connection(NamedTuple):
    pointer: str
    source: str
    kind: str
    output: int
    target: str
    input: int


def connections(value: Any, pointer: str) -> Iterator[_Connection]:
    """Yield each connection of ``{name: {kind: [[{node, type, index}]]}}``."""
    for source, kinds in _items(value):
        for kind, outputs in _items(kinds):
            place = f"{pointer}/{pointer_part(source)}/{pointer_part(kind)}"
            for output, targets in enumerate(_list(outputs)):
                for number, end in enumerate(_list(targets)):
                    if isinstance(end, dict):
                        fields = cast("dict[str, Any]", end)
                        at, name = f"{place}/{output}/{number}", text_of(fields, "node")
                        into = min(max(int(number_of(fields, "index") or 0), 0), 1_000)
                        yield _Connection(at, source, kind, output, name, into)


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(cast("dict[str, Any]", value).items()) if isinstance(value, dict) else []


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def read_connections(workflow: Workflow, value: Any) -> None:
    """Announce each connection."""
    seen = set[tuple[str, int, str, int]]()
    for each in connections(value, f"{workflow.pointer}/connections"):
        source, target = (workflow.steps.get(name) for name in (each.source, each.target))
        ends = [step and step.node for step in (source, target)]
        edge = workflow.conversion.source_edge(each.pointer, *ends)
        if source is None or target is None:
            continue
        if each.kind != MAIN:
            workflow.links.add(Link(source.name, each.kind, target.name, each.input, edge))
        elif target.is_trigger:
            edge.drop("import-dangling", "a trigger has no input")
        elif (ends := (each.source, each.output, each.target, each.input)) in seen:
            target.node.lose("the same connection is there twice", each.target, each.pointer)
            edge.drop("import-changed", "the same connection is there twice")
        else:
            seen.add(ends)
            workflow.ways.add(Way(*ends, edge))


def drop_disabled(workflow: Workflow) -> None:
    """Leave out steps that are switched off; what arrives there goes on to the next ones, as in n8n."""
    for name, step in list(workflow.steps.items()):
        if step.fields.get("disabled") is not True:
            continue
        arriving = [way for way in workflow.into(name) if way.source != name]
        leaving = workflow.out_of(name)
        step.node.drop("import-ignored", "it is switched off")
        del workflow.steps[name]
        workflow.ways.remove_step(name)
        _drop_links(workflow, name, "it leads to or from a step that is switched off")
        following = [way for way in leaving if way.output == 0 and way.target != name]
        for way in arriving:
            if not following:
                way.edge.drop("import-ignored", "it leads to a step that is switched off")
        for number, way in enumerate(leaving):
            if way not in following or not arriving:
                way.edge.drop("import-ignored", "it comes from a step that is switched off")
            elif number:
                way.edge.absorbed("what arrives at a step that is switched off goes on to this one")
        if following and arriving:
            _join(workflow, arriving, following)


def _join(workflow: Workflow, arriving: Sequence[Way], following: Sequence[Way]) -> None:
    message = "it leads over a step that is switched off, which hands on what arrives"
    first = following[0]
    for way in arriving:
        for after in following:
            workflow.ways.add(Way(way.source, way.output, after.target, after.input, way.edge))
        way.edge.note("import-changed", message)
    if first.edge.outcome is None:
        first.edge.absorbed("what arrives at a step that is switched off goes on to this one")


def _drop_links(workflow: Workflow, name: str, message: str) -> None:
    gone = [*workflow.links.into(name), *workflow.links.out_of(name)]
    for link in gone:
        link.edge.drop("import-ignored", message)
    if gone:
        workflow.links.remove_step(name)


_NEVER: Final = "it leads from or to a step that never runs"


def drop_what_never_runs(workflow: Workflow) -> None:
    """Leave out steps that no way from a trigger leads to, and helpers of none."""
    triggers = [step.name for step in workflow.steps.values() if step.is_trigger]
    if not triggers:
        message = "it has no trigger: here its first steps begin"
        workflow.conversion.note("import-changed", message, workflow.pointer)
        return
    reached, gone = workflow.after(triggers), set[str]()
    helpers = {link.source: link.target for link in workflow.links}
    for name in list(workflow.steps):
        user, seen = name, {name}
        while user not in reached and user in helpers and helpers[user] not in seen:
            user = helpers[user]
            seen.add(user)
        uses = [link.target for link in workflow.links.out_of(name)]
        is_used = user in reached or any(each in reached for each in uses)
        if name in reached or is_used:
            continue
        workflow.steps[name].node.drop(
            "import-ignored", "it never runs: no way from a trigger leads to it"
        )
        del workflow.steps[name]
        gone.add(name)
        _drop_links(workflow, name, _NEVER)
    for way in workflow.ways:
        if not gone.isdisjoint((way.source, way.target)):
            way.edge.drop("import-ignored", _NEVER)
    workflow.ways.keep(lambda way: gone.isdisjoint((way.source, way.target)))


def in_order(workflow: Workflow) -> list[str]:
    """Return the names of the steps, each after those that lead to it where there is no cycle."""
    arriving = {way.target for way in workflow.ways}
    roots = [name for name in workflow.steps if name not in arriving]
    order, seen = list[str](), set[str]()
    for root in (*roots, *workflow.steps):
        if root in seen:
            continue
        seen.add(root)
        path = [(root, _targets(workflow, root))]
        while path:
            name, targets = path[-1]
            target = next((each for each in targets if each not in seen), None)
            if target is None:
                order.append(name)
                path.pop()
            else:
                seen.add(target)
                path.append((target, _targets(workflow, target)))
    return order[::-1]


def _targets(workflow: Workflow, name: str) -> Iterator[str]:
    return (way.target for way in workflow.out_of(name))
