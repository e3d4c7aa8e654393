"""Steps of an app, the graphs that they stand in, and what each step may read of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from planwave.interop.importing.conversion import Code, Conversion, SourceEdge, SourceNode
from planwave.interop.importing.dify.conversation import UNUSED, ConversationUse
from planwave.interop.importing.dify.values import (
    PRINTED_ALIKE,
    Missing,
    Read,
    TemplatePart,
    ValueKind,
    parts_of,
    selector_of,
    template_of,
)
from planwave.interop.importing.drafts import GraphDraft, Target
from planwave.interop.importing.reading import json_of, object_of, text_of
from planwave.interop.importing.secrets import MARK, Withheld
from planwave.interop.importing.templates import inserted, output_of, quoted

if TYPE_CHECKING:
    from planwave.interop.importing.dify.assignments import LoopVariables

NORMAL_HANDLES: Final = frozenset({"", "source", "success", "success-branch"})
"""How edges leave a step that has one way out."""
FAIL_BRANCH: Final = "fail-branch"
CONSTANTS: Final = frozenset({"env", "conversation"})
"""Namespaces of selectors whose values stand in the file."""
OUTER: Final = "outer"
"""The variable in a body that holds what it reads of steps outside."""
_MAX_SHOWN: Final = 80
_KINDS_OF_LOST: Final[Mapping[str, ValueKind]] = {
    "text": "text", "body": "text", "class_name": "text", "error_message": "text", "status_code": "whole",
    "files": "list", "json": "list", "result": "list",
}  # fmt: skip
"""What outputs have these names in steps of every type that are placeholders."""

Exits = list[tuple[Target, str]]


@dataclass(eq=False)
class Step:
    """A step of the app and what became of it.

    Attributes:
        id: Its id in the file.
        kind: Its type there.
        data: Its settings.
        node: The account of it in the report.
        scope: The graph that it stands in.
        outputs: How its outputs are read, by their names there.
        entries: Where edges into it lead.
        exits: Where edges out of it begin, by handle; those of ``NORMAL_HANDLES`` under "".
    """

    app: App
    id: str
    kind: str
    data: Mapping[str, Any]
    node: SourceNode
    scope: Scope
    outputs: dict[str, Read] = field(default_factory=dict[str, Read])
    entries: list[Target] = field(default_factory=list[Target])
    exits: dict[str, Exits] = field(default_factory=dict[str, Exits])
    is_lost: bool = False
    _is_printing_noted: bool = False

    @property
    def pointer(self) -> str:
        """Where its settings stand in the file."""
        return f"{self.node.pointer}/data"

    @property
    def main(self) -> Target:
        """The node that its output is read from: the first that it became."""
        return self.node.targets[0]

    def add(self, node_type: str, data: Mapping[str, Any], role: str = "", **more: Any) -> Target:
        """Add a node; the first one has the id of the step, others that and their role."""
        node_id = f"{self.id}-{role}" if role else self.id
        graph = more.pop("graph", self.scope.draft)
        return self.node.becomes(node_type, data, node_id=node_id, graph=graph, **more)

    def becomes(
        self, node_type: str, data: Mapping[str, Any], policy: Mapping[str, Any] | None = None
    ) -> Target:
        """Become one node, which edges lead into and out of."""
        description = text_of(self.data, "desc")
        target = self.add(node_type, data, policy=policy, description=description)
        self.entries, self.exits = [target], {"": [(target, "output")]}
        return target

    def placeholder(self, message: str, hint: str | None = None) -> Target:
        """Become a placeholder: it has no counterpart."""
        self.node.becomes_placeholder(message, hint=hint)
        self.is_lost = True
        return self.becomes("placeholder", {"kind": self.kind or "unknown"})

    def lose(
        self, message: str, text: object, pointer: str = "", code: Code = "import-expression"
    ) -> None:
        """Say what of its meaning is lost: it becomes a placeholder."""
        shown = text if isinstance(text, str) else repr(text)
        self.node.lose(message, shown, f"{self.pointer}{pointer}", code=code)
        self.is_lost = True

    def read(self, value: object, pointer: str = "") -> Read | None:
        """Return what reads a selector; None, and the step is lost, where nothing does."""
        selector = selector_of(value)
        read = self.scope.resolve(selector, self)
        if isinstance(read, Read):
            return read
        self.lose(read.message, ".".join(selector) or repr(value)[:_MAX_SHOWN], pointer, read.code)
        return None

    def text(
        self,
        text: str,
        pointer: str = "",
        *,
        missing: str | None = None,
        local: Mapping[str, Read] | None = None,
    ) -> str:
        """Return the template of a text with references.

        Args:
            text: The text.
            pointer: Where it stands, within the settings.
            missing: An expression in place of what steps that did not run would give.
            local: References that count in this text alone, such as ``context``.
        """
        parts = self.parts(text, pointer, local=local)
        self.note_printed(parts, pointer)
        return template_of(parts, missing)

    def note_printed(self, parts: Sequence[str | Read], pointer: str = "") -> None:
        """Say once that values are written into a text in another way than there, if one of them may be."""
        if self._is_printing_noted or all(
            isinstance(part, str) or part.kind in PRINTED_ALIKE for part in parts
        ):
            return
        self._is_printing_noted = True
        self.node.change(
            "values that are no text are written as JSON here; there true is written as True, 2.0 in full and an "
            "empty list as nothing",
            f"{self.pointer}{pointer}",
        )

    def printed(self, read: Read, pointer: str = "") -> str:
        """Return a template of a value as text."""
        self.note_printed([read], pointer)
        return inserted(f"{read.operand} | string")

    def parts(
        self, text: str, pointer: str = "", *, local: Mapping[str, Read] | None = None
    ) -> list[str | Read]:
        """Return the literal parts of a text and what reads its references."""
        if MARK in text and not isinstance(text, Withheld):
            self.lose("a secret stands in it, which was not copied", text, pointer)
        made: list[str | Read] = []
        for part in parts_of(text):
            made.append(self._part(part, pointer, local or {}))
        return made

    def _part(self, part: TemplatePart, pointer: str, local: Mapping[str, Read]) -> str | Read:
        if not part.selector:
            return part.text
        known = local.get(".".join(part.selector))
        if known is not None:
            return known
        read = self.scope.resolve(part.selector, self)
        if isinstance(read, Missing):
            self.lose(read.message, part.text, pointer, read.code)
            return part.text
        is_text = part.selector[0] in CONSTANTS and read.expression.startswith('"')
        return str(json_of(read.expression)) if is_text else read

    def output(self, fields: Sequence[str]) -> Read | Missing:
        """Return what reads an output of the step, without saying whether it ran."""
        if self.is_lost or self.node.outcome == "placeholder":
            name = ".".join(fields)
            kind: ValueKind = _KINDS_OF_LOST.get(name, "any")
            kind = self.outputs[name].kind if name in self.outputs else kind
            return Read(output_of(self.main.id, "output", fields), kind=kind)
        for length in range(len(fields), 0, -1):
            known = self.outputs.get(".".join(fields[:length]))
            if known is not None:
                return known.field(fields[length:])
        named = ".".join(fields)
        return Missing(f"{named!r} of step {self.node.name or self.id!r} has no counterpart here")


class Scope:
    """A graph of the app: the whole, or the body of an iteration or a loop.

    Attributes:
        draft: The graph being made.
        region: The step whose body this is; None for the whole.
        steps: Its steps that can run, in an order in which each comes after those it follows.
    """

    def __init__(self, app: App, draft: GraphDraft, region: Step | None = None) -> None:
        self.app, self.draft, self.region = app, draft, region
        self.parent = None if region is None else region.scope
        self.steps: list[Step] = []
        self.captured: dict[tuple[str, ...], tuple[str, Read]] = {}
        self.locals: Callable[[Sequence[str], Step], Read | Missing] | None = None
        self._bit: dict[Step, int] = {}
        self._before: dict[Step, int] = {}
        self._dominators: dict[Step, int] = {}
        self._always: set[Step] = set()

    def order(
        self,
        steps: Sequence[Step],
        edges: Sequence[tuple[Step, Step, bool]],
        roots: Sequence[Step],
    ) -> None:
        """Keep the steps in order and work out which run before which, and which always.

        Args:
            steps: Those that can run, in topological order.
            edges: ``(source, target, whether it is always taken)``.
            roots: Where a run begins.
        """
        self.steps = list(steps)
        self._bit = {step: 1 << number for number, step in enumerate(steps)}
        incoming: dict[Step, list[tuple[Step, bool]]] = {step: [] for step in steps}
        for source, target, is_certain in edges:
            incoming[target].append((source, is_certain))
        for step in steps:
            sources = [source for source, _ in incoming[step]]
            before, shared = 0, -1
            for source in sources:
                before |= self._before[source] | self._bit[source]
                shared &= self._dominators[source] | self._bit[source]
            self._before[step] = before
            self._dominators[step] = 0 if step in roots or not sources else shared
            if step in roots or any(s in self._always and sure for s, sure in incoming[step]):
                self._always.add(step)

    def is_before(self, first: Step, second: Step) -> bool:
        """Return whether edges lead from one step to another one."""
        return bool(self._before.get(second, 0) & self._bit.get(first, 0))

    def has_run(self, first: Step, second: Step) -> bool:
        """Return whether one step ran in each run in which another one does."""
        return first in self._always or bool(
            self._dominators.get(second, 0) & self._bit.get(first, 0)
        )

    def is_always_run(self, step: Step) -> bool:
        """Return whether a step runs whatever branches are taken."""
        return step in self._always

    def resolve(self, selector: Sequence[str], reader: Step | None) -> Read | Missing:
        """Return what reads a selector.

        Args:
            selector: ``(step or namespace, name, …)``.
            reader: The step that reads it; None for what stands after all steps of the graph.
        """
        if len(selector) < 2:
            named = ".".join(selector)
            return Missing(f"{named!r} names no value" if named else "it names no value")
        head, *names = selector
        special = self.app.special(selector, reader)
        if special is not None:
            return special
        if head == "sys":
            if self.app.start is None:
                return Missing("the app has no start step")
            head, names = self.app.start.id, [".".join(selector)]
        owner = self.app.by_id.get(head)
        if owner is None:
            return Missing(f"it refers to step {head!r}, which is not there", "import-dangling")
        return self._of_step(owner, (head, *names), reader)

    def _of_step(
        self, owner: Step, selector: tuple[str, ...], reader: Step | None
    ) -> Read | Missing:
        names = selector[1:]
        if owner is self.region and self.locals is not None and reader is not None:
            local = self.locals(names, reader)
            if isinstance(local, Read):
                return local
        if owner.scope is self:
            return self._here(owner, names, reader)
        if self.parent is not None and self.region is not None:
            return self._capture(selector, self.parent, self.region)
        name = owner.node.name or owner.id
        return Missing(f"step {name!r} stands inside another one, which does not show its output")

    def _here(self, owner: Step, names: Sequence[str], reader: Step | None) -> Read | Missing:
        name = owner.node.name or owner.id
        if owner not in self._bit:
            return Missing(f"step {name!r} is never run", "import-dangling")
        if reader is not None and not self.is_before(owner, reader):
            return Missing(f"step {name!r} does not run before it")
        read = owner.output(names)
        is_sure = owner in self._always if reader is None else self.has_run(owner, reader)
        if isinstance(read, Missing) or is_sure:
            return read
        ran = f"{quoted(owner.main.id)} in nodes"
        guard = ran if read.guard is None else f"({ran} and {read.guard})"
        return read._replace(guard=guard)

    def _capture(self, selector: tuple[str, ...], parent: Scope, region: Step) -> Read | Missing:
        """Have a value passed into the body, once for all that read it there."""
        known = self.captured.get(selector)
        if known is None:
            read = parent.resolve(selector, region)
            if isinstance(read, Missing):
                return read
            known = self.captured[selector] = f"v{len(self.captured) + 1}", read
        name, read = known
        inside = f"{OUTER}.{name}"
        guard = None if read.guard is None else f"{inside} is not none"
        return Read(inside, guard, read.kind)


@dataclass(eq=False)
class AppEdge:
    """An edge between two steps of one graph."""

    entry: SourceEdge
    source: Step
    target: Step
    handle: str


@dataclass(eq=False)
class App:
    """An app being converted.

    Attributes:
        mode: ``workflow``, ``advanced-chat`` and others.
        write_code: Whether steps of code become node types of a module.
        special: What reads a selector that names no step: variables of the environment and of the
            conversation; None for all others.
        conversation: What steps do with variables of the conversation.
    """

    conversion: Conversion
    mode: str
    write_code: bool
    special: Callable[[Sequence[str], Step | None], Read | Missing | None]
    secrets: frozenset[str] = frozenset()
    conversation: ConversationUse = UNUSED
    by_id: dict[str, Step] = field(default_factory=dict[str, Step])
    start: Step | None = None
    children: dict[Step | None, list[Step]] = field(default_factory=dict[Step | None, list[Step]])
    edges: dict[Step | None, list[AppEdge]] = field(
        default_factory=dict[Step | None, list[AppEdge]]
    )
    handlers: Mapping[str, Callable[[Step], None]] = field(
        default_factory=dict[str, Callable[[Step], None]]
    )
    loop_variables: dict[Step, LoopVariables] = field(default_factory=dict[Step, "LoopVariables"])
    code_parts: list[str] = field(default_factory=list[str])
    code_names: set[str] = field(default_factory=set[str])
    drafts: list[GraphDraft] = field(default_factory=list[GraphDraft])
    holders: dict[int, Target] = field(default_factory=dict[int, Target])

    fields: dict[Step, Mapping[str, Any]] = field(default_factory=dict[Step, Mapping[str, Any]])

    def fields_of(self, step: Step) -> Mapping[str, Any]:
        """Return a node of the file, with what the canvas says of it."""
        return self.fields[step]

    @property
    def is_chat(self) -> bool:
        return self.mode != "workflow"


def settings_of(step: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of a node of the file."""
    return object_of(step, "data")
