"""Steps of a flow, the graphs that they stand in, and which of them run before which."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from planwave.interop.importing.branches import Guard, are_exclusive, guards_of
from planwave.interop.importing.branches import Wire as BranchWire
from planwave.interop.importing.conversion import Code, Conversion, SourceEdge, SourceNode
from planwave.interop.importing.drafts import GraphDraft, Target
from planwave.interop.importing.templates import inserted, literal, output_of, quoted

if TYPE_CHECKING:
    from planwave.interop.importing.flowise.loops import Loop

OUTER: Final = "outer"
"""The variable in the body of an iteration that holds what it reads of steps outside."""

_CONSTANTS: Final = frozenset({"none", "[]", "0", "true", "false", '""'})
"""Expressions that mean the same in any graph."""

Exits = list[tuple[Target, str]]


class Expression(NamedTuple):
    """A value, as an expression of planwave that always has one.

    Attributes:
        text: The expression.
        is_text: Whether the value is a text for certain.
    """

    text: str
    is_text: bool = False

    @property
    def as_text(self) -> str:
        """An expression of it as a text: of anything else than a text its JSON."""
        if self.is_text:
            return f"({self.text})"
        return f"(({self.text}) if ({self.text}) is string else ({self.text}) | tojson)"


class Missing(NamedTuple):
    """Why a value cannot be read."""

    message: str
    code: Code = "import-expression"


class Said(NamedTuple):
    """A message of the conversation that the model steps of a run share; the content is an expression."""

    role: str
    content: str

    @property
    def expression(self) -> str:
        return f'{{"role": {quoted(self.role)}, "content": {self.content}}}'


Part = str | Expression


def template_of(parts: Sequence[Part]) -> str:
    """Return a template of literal texts and values."""
    made: list[str] = []
    for number, part in enumerate(parts):
        if isinstance(part, Expression):
            made.append(inserted(part.text))
            continue
        text = literal(part)
        if text.endswith("{") and number + 1 < len(parts):
            text = f"{text[:-1]}{{{{ '{{' }}}}"  # what follows begins with a brace, too
        made.append(text)
    return "".join(made)


def expression_of(parts: Sequence[Part]) -> str:
    """Return an expression of the text that parts make together."""
    each = [part.as_text if isinstance(part, Expression) else quoted(part) for part in parts]
    return f"({' ~ '.join(each)})" if each else '""'


@dataclass(eq=False)
class Step:
    """A node of the file and what became of it.

    Attributes:
        id: Its id in the file.
        kind: Its type there.
        data: Its ``data``.
        inputs: Its settings.
        node: The account of it in the report.
        scope: The graph that it stands in.
        content: The expression of its text, where it has one.
        fields: What reads others of its outputs, by their path.
        entries: Where edges into it lead.
        exits: Where edges out of it begin, by the number of the output; "" for a step with one.
        said: What it adds to the shared conversation.
        opening: What it adds before that where it is the first model step of a run.
        is_first: An expression of whether no model step ran before it; None until somebody asks.
        keys: The fields of the flow's state that it writes.
        writes: Their values, once it has become something; None where a value is not known.
        chat: Whether it stands for steps of a loop that add to the conversation.
        loop: The loop that it stands for; None for a step of the file.
        made: The nodes that it became.
        helper: A node that works out a value for it before it runs.
    """

    flow: Flow
    id: str
    kind: str
    data: Mapping[str, Any]
    inputs: Mapping[str, Any]
    node: SourceNode
    scope: Scope
    content: str | None = None
    fields: dict[str, str] = field(default_factory=dict[str, str])
    entries: list[Target] = field(default_factory=list[Target])
    exits: dict[str, Exits] = field(default_factory=dict[str, Exits])
    said: list[Said] = field(default_factory=list[Said])
    opening: list[Said] = field(default_factory=list[Said])
    is_first: str | None = None
    keys: frozenset[str] = frozenset()
    writes: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    chat: bool = False
    loop: Loop | None = None
    made: list[Target] = field(default_factory=list[Target])
    helper: Target | None = None

    @property
    def pointer(self) -> str:
        """Where its settings stand in the file."""
        return f"{self.node.pointer}/data/inputs"

    @property
    def main(self) -> Target:
        """The node that its output is read from: the first that it became."""
        return self.made[0]

    @cached_property
    def said_expressions(self) -> list[str]:
        """What it adds to the shared conversation, as expressions; once that is certain."""
        return [each.expression for each in self.said]

    @property
    def ran(self) -> str:
        """An expression of whether it ran."""
        return f"{quoted(self.main.id)} in nodes"

    def add(self, node_type: str, data: Mapping[str, Any], role: str = "", **more: Any) -> Target:
        """Add a node; the first one has the id of the step, others that and their role."""
        node_id = f"{self.id}-{role}" if role else self.id
        target = self.node.becomes(node_type, data, node_id=node_id, graph=self.scope.draft, **more)
        self.made.append(target)
        self.node.main = self.node.main or target
        return target

    def help_by(self, node_type: str, data: Mapping[str, Any], role: str, name: str) -> Target:
        """Add a node that runs before all others that it becomes; there is one at most."""
        self.helper = self.node.becomes(
            node_type, data, node_id=f"{self.id}-{role}", name=name, graph=self.scope.draft
        )
        return self.helper

    def becomes(self, node_type: str, data: Mapping[str, Any]) -> Target:
        """Become one node, which edges lead into and out of."""
        target = self.add(node_type, data)
        self.entries, self.exits = [target], {"": [(target, "output")]}
        return target

    def placeholder(self, message: str, hint: str | None = None) -> Target:
        """Become a placeholder: it has no counterpart."""
        self.node.becomes_placeholder(message, hint=hint)
        return self.becomes("placeholder", {"kind": self.kind or "unknown"})

    def lose(
        self, message: str, text: object, pointer: str = "", code: Code = "import-expression"
    ) -> None:
        """Say what of its meaning is lost: it becomes a placeholder."""
        shown = text if isinstance(text, str) else repr(text)
        self.node.lose(message, shown, f"{self.pointer}{pointer}", code=code)

    def change(self, message: str, pointer: str = "", hint: str | None = None) -> None:
        """Say how it differs from the file."""
        self.node.change(message, f"{self.pointer}{pointer}", hint=hint)


class Wire(NamedTuple):
    """An edge between two steps of one graph."""

    entry: SourceEdge
    source: Step
    target: Step
    handle: str


class Scope:
    """A graph of the flow: the whole, or the body of an iteration or a loop.

    Attributes:
        draft: The graph being made.
        region: The step whose body this is; None for the whole.
        loop: The loop whose rounds these are, if it is one.
        no_loops: Why loop steps lead back to steps that are no loop.
        steps: Its steps, each after those it follows once ``order`` was called.
        wires: The edges between them.
        captured: What it reads outside: the names, by the expression there.
    """

    def __init__(self, draft: GraphDraft, region: Step | None = None) -> None:
        self.draft, self.region = draft, region
        self.loop: Loop | None = None
        self.no_loops: dict[Step, str] = {}
        self.steps: list[Step] = []
        self.wires: list[Wire] = []
        self.captured: dict[str, str] = {}
        self._bit: dict[Step, int] = {}
        self._before: dict[Step, int] = {}
        self._dominators: dict[Step, int] = {}
        self._always: set[Step] = set()
        self._guards: dict[Step, frozenset[Guard]] = {}

    def order(self, steps: Sequence[Step], wires: Sequence[Wire]) -> None:
        """Keep the steps in order and work out which run before which, and which always.

        Args:
            steps: In topological order.
            wires: Those that close no cycle.
        """
        self.steps = list(steps)
        self._bit = {step: 1 << number for number, step in enumerate(steps)}
        incoming: dict[Step, list[Wire]] = {step: [] for step in steps}
        for wire in wires:
            incoming[wire.target].append(wire)
        for step in steps:
            into = incoming[step]
            before, shared = 0, -1
            for wire in into:
                before |= self._before[wire.source] | self._bit[wire.source]
                shared &= self._dominators[wire.source] | self._bit[wire.source]
            self._before[step] = before
            self._dominators[step] = shared if into else 0
            if not into or any(w.source in self._always and not w.handle for w in into):
                self._always.add(step)
        name = {step: str(number) for number, step in enumerate(steps)}
        guards = guards_of(
            name.values(),
            [BranchWire(name[w.source], w.handle, name[w.target]) for w in wires],
            frozenset(name[w.source] for w in wires if w.handle),
        )
        self._guards = {step: guards[name[step]] for step in steps}

    def is_before(self, first: Step, second: Step) -> bool:
        """Return whether edges lead from one step to another one."""
        return bool(self._before.get(second, 0) & self._bit.get(first, 0))

    def has_run(self, first: Step, second: Step | None) -> bool:
        """Return whether one step ran in each run in which another one does; None for the end of all."""
        if first in self._always:
            return True
        return second is not None and bool(
            self._dominators.get(second, 0) & self._bit.get(first, 0)
        )

    def earlier(self, step: Step) -> list[Step]:
        """Return the steps from which edges lead to one, in order."""
        marks = reversed(f"{self._before.get(step, 0):b}")
        return [each for each, mark in zip(self.steps, marks, strict=False) if mark == "1"]

    def speakers(self, step: Step) -> list[Step]:
        """Return the steps before one that add to the shared conversation."""
        return [each for each in self.earlier(step) if each.said or each.opening or each.chat]

    def beside(self, step: Step) -> list[Step]:
        """Return the steps that may run at the same time: neither before nor after, nor on another branch."""
        before, bit = self._before[step] | self._bit[step], self._bit[step]
        return [
            each
            for each in self.steps
            if not before & self._bit[each]
            and not self._before[each] & bit
            and not are_exclusive([self._guards[each], self._guards[step]])
        ]

    def is_beside(self, first: Step, second: Step) -> bool:
        """Return whether two steps may run at the same time."""
        return (
            first is not second
            and not self.is_before(first, second)
            and not self.is_before(second, first)
            and not are_exclusive([self._guards[first], self._guards[second]])
        )

    def branch(self, choosing: Step, step: Step) -> str:
        """Return the output of a choosing step without which another one does not run, or ""."""
        name = str(self.steps.index(choosing))
        return next((handle for key, handle in self._guards[step] if key == name), "")

    def captures(self, expression: str) -> str:
        """Have a value of the graph around passed into this one, and return what reads it here."""
        name = self.captured.setdefault(expression, f"v{len(self.captured) + 1}")
        return f"{OUTER}.{name}"


@dataclass(eq=False)
class Flow:
    """A flow being converted.

    Attributes:
        question: What the run is asked, as an expression; "" where nothing asks.
        history: What was said before the run, as an expression of a list; "" where there is nothing.
        form: The root of the values of the form; "" without a form.
        sent: What a first model step gets as the message of the user; of a form, its lines.
        handlers: What becomes of each kind of step.
    """

    conversion: Conversion
    top: Scope
    by_id: dict[str, Step] = field(default_factory=dict[str, Step])
    start: Step | None = None
    question: str = ""
    history: str = ""
    form: str = ""
    sent: str = ""
    handlers: Mapping[str, Callable[[Step], None]] = field(
        default_factory=dict[str, Callable[[Step], None]]
    )
    bodies: dict[Step, Scope] = field(default_factory=dict[Step, Scope])
    holders: dict[GraphDraft, Target] = field(default_factory=dict[GraphDraft, Target])


def of_top(step: Step, expression: str) -> str:
    """Return what reads a value of the start in the graph of a step; "" where the start does not lead to it."""
    start, reader = step.flow.start, step
    if start is None or not expression:
        return ""
    while reader.scope is not start.scope:
        if reader.scope.region is None:
            return ""
        reader = reader.scope.region
    if start is not reader and not start.scope.is_before(start, reader):
        return ""
    return passed_in(step, start.scope, expression)


def passed_in(step: Step, scope: Scope, expression: str) -> str:
    """Return what reads a value of a graph in the graph of a step, which is that one or stands inside of it."""
    region = step.scope.region
    if step.scope is scope or region is None or expression in _CONSTANTS:
        return expression
    return step.scope.captures(passed_in(region, scope, expression))


def content_of(owner: Step) -> str | None:
    """Return the text of a step; of one that is lost, its output."""
    if owner.content is None and owner.node.outcome == "placeholder":
        return output_of(owner.main.id)
    return owner.content
