"""Parameters of n8n's steps as templates: those that begin with ``=`` hold expressions, all others are literal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from planwave.graph.json_values import pointer_part
from planwave.interop.importing.drafts import GraphDraft
from planwave.interop.importing.javascript.translation import (
    Resolver,
    Roots,
    Translated,
    Untranslatable,
    Value,
    path,
    split,
    template_of,
    translate,
)
from planwave.interop.importing.javascript.translation import (
    Step as Access,
)
from planwave.interop.importing.javascript.values import (
    ANY,
    MISSING,
    OBJECT,
    constant,
    structure,
    text_of,
)
from planwave.interop.importing.n8n.workflow import SAME, Envelope, Step, Way, Workflow
from planwave.interop.importing.secrets import Withheld
from planwave.interop.importing.templates import literal, quoted

_ITEM: Final = (
    ("item", "json"),
    ("first", "()", "json"),
    ("last", "()", "json"),
    ("json",),
)
"""How the item of a step is named."""
_REFUSED: Final[Mapping[str, str]] = {
    "$now": "the time", "$today": "the time", "DateTime": "the time", "Date": "the time",
    "$env": "the environment of n8n", "$vars": "variables of n8n", "$workflow": "the workflow itself",
    "$execution": "the execution itself", "$binary": "files", "$items": "all items of a step",
    "$itemIndex": "the number of the item", "$runIndex": "the number of the run",
    "$prevNode": "the step before", "$parameter": "parameters of the step", "$fromAI": "what a model fills in",
    "$secrets": "secrets of n8n", "$jmespath": "JMESPath", "$max": "the function $max()",
    "$min": "the function $min()", "$if": "the function $if()",
    "Math.random": "chance", "$nodeVersion": "the version of the step", "$response": "pages of an answer",
    "$request": "pages of an answer", "$pageCount": "pages of an answer",
}  # fmt: skip


_ERROR: Final = Envelope({("error",): ("error", ("message",))})
_ARRIVING_ERROR: Final = Envelope({("error",): ("output", ("message",))})
"""The form of an error, of the node that fails and as it arrives."""


@dataclass
class Names:
    """What steps are called in a graph and in those inside it: the item of a loop, what is brought in.

    Attributes:
        prefix: The path of the graph.
        names: The expression for each step, and its form.
    """

    prefix: str
    names: dict[str, tuple[str, Envelope]] = field(default_factory=dict[str, tuple[str, Envelope]])


@dataclass
class Placement:
    """Where the steps are put.

    Attributes:
        workflow: The workflow.
        graphs: The graph of each step that has its node.
        names: What steps are called inside of loops.
        is_told: Whether the report says how lists look inside of texts.
        are_exclusive: Says whether only one of some ways is ever taken.
    """

    workflow: Workflow
    graphs: dict[str, GraphDraft] = field(default_factory=dict[str, GraphDraft])
    names: list[Names] = field(default_factory=list[Names])
    is_told: bool = False
    are_exclusive: Callable[[Sequence[Way]], bool] = lambda ways: len(ways) < 2

    def result_of(self, name: str, graph: GraphDraft) -> tuple[str, Envelope] | None:
        """Return the node whose output a step hands on, or an expression, as seen in a graph; else None."""
        if self.graphs.get(name) is graph:
            step = self.workflow.steps[name]
            made = [target for target in step.node.targets if target.graph is graph]
            return (f"nodes[{quoted(made[-1].id)}]", step.envelope) if made else None
        for scope in sorted(self.names, key=lambda each: -len(each.prefix)):
            if graph.path.startswith(scope.prefix) and name in scope.names:
                return scope.names[name]
        return None


class Fields:
    """The parameters of one step, for one graph.

    Args:
        placement: Where the steps are.
        step: The step.
        graph: The graph that it is put into.
        arrives: The expression for what arrives; ``input`` in its own templates.
    """

    def __init__(
        self, placement: Placement, step: Step, graph: GraphDraft, arrives: str = "input"
    ) -> None:
        self._placement, self._step, self._graph = placement, step, graph
        self._arrives = arrives
        refused: dict[str, Resolver] = {
            name: _refusing(reason) for name, reason in _REFUSED.items()
        }
        own: dict[str, Resolver] = {
            "$json": lambda steps: self._arriving(steps, 0),
            "$input": self._input,
            "$": self._named,
            "$node": self._node,
        }
        self._roots: Roots = {**refused, **own}

    @property
    def roots(self) -> Roots:
        """The variables of its expressions."""
        return self._roots

    def template(self, value: Any, pointer: str) -> str:
        """Return a text parameter as a template; what has no counterpart is lost."""
        if isinstance(value, Withheld):
            return value
        if not isinstance(value, str):
            value = self.data(value, pointer)
            return value if isinstance(value, str) else str(value)
        if not value.startswith("="):
            return literal(value)
        return (self._translated(value, pointer) or Translated("", ANY)).template

    def translated(self, value: Any, pointer: str) -> Value:
        """Return a parameter as an expression, for a condition; null if it has no counterpart."""
        if not isinstance(value, str):
            return constant(None if isinstance(value, list | dict) else value)
        if not value.startswith("="):
            return constant(str(value))
        made = self._translated(value, pointer)
        if made is None:
            return constant(None)
        if made.value is not None:
            return made.value
        parts = split(value[1:])
        if all(isinstance(part, str) for part in parts):
            return constant("".join(map(str, parts)))
        self.lose("text around an expression in a condition", value, pointer)
        return constant(None)

    def data(self, value: Any, pointer: str) -> Any:
        """Return a parameter of any type with templates in place of expressions."""
        if isinstance(value, str):
            return self.template(value, pointer)
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            return {k: self.data(v, f"{pointer}/{pointer_part(k)}") for k, v in fields.items()}
        if isinstance(value, list):
            items = cast("list[Any]", value)
            return [self.data(item, f"{pointer}/{i}") for i, item in enumerate(items)]
        return value

    def whole(self, value: Any, pointer: str) -> Translated | None:
        """Return the translation of a parameter with expressions; None for a literal or a lost one."""
        if not isinstance(value, str) or not value.startswith("="):
            return None
        return self._translated(value, pointer)

    def expression(self, value: Any, pointer: str) -> str:
        """Return a parameter as an operand of an expression."""
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            pairs = (f"{quoted(k)}: {self.expression(v, pointer)}" for k, v in fields.items())
            return f"{{{', '.join(pairs)}}}"
        if isinstance(value, list):
            items = cast("list[Any]", value)
            return f"[{', '.join(self.expression(item, pointer) for item in items)}]"
        if not isinstance(value, str) or not value.startswith("="):
            return constant(value).atom
        if self._translated(value, pointer) is None:
            return "none"
        parts = [
            part if isinstance(part, str) else translate(part.text, self._roots)
            for part in split(value[1:])
        ]
        if len(parts) == 1 and isinstance(parts[0], Value):
            return parts[0].atom
        texts = [quoted(part) if isinstance(part, str) else _shown(part) for part in parts]
        return f"({' ~ '.join(texts) or quoted('')})"

    def item_text(self) -> str:
        """Return an expression for what arrives, as n8n has it."""
        try:
            return self._arriving((), 0)[0].text
        except Untranslatable as error:
            self.lose(error.reason, "$json", self._step.pointer)
            return "input"

    def item_on(self, way: Way, base: str) -> str:
        """Return an expression for what arrives on one way, as n8n has it.

        Args:
            way: The way.
            base: The expression for it, as planwave has it.
        """
        workflow = self._placement.workflow
        source = workflow.steps[way.source]
        origins = workflow.origins(way.source) if source.passes else {way.source}
        forms = [self._form_of(origin) for origin in sorted(origins)] or [SAME]
        outputs = {output for output, _ in (forms[0].fields or {}).values()}
        is_error = source.handles[way.output] == "error"
        may_fail = source.passes and workflow.has_errors(way.source)
        try:
            if (
                is_error
                or may_fail
                or any(form != forms[0] for form in forms)
                or outputs > {"output"}
            ):
                raise Untranslatable(f"what arrives from {way.source!r}, which has several forms,")
            return field_of(base, forms[0], (), 0)[0].text
        except Untranslatable as error:
            self.lose(error.reason, way.source, self._step.pointer)
            return base

    def lose(self, reason: str, text: str, pointer: str) -> None:
        """Say that a part has no counterpart; the step becomes a placeholder."""
        message = f"{reason} has no counterpart in planwave's templates"
        self._step.node.lose(message, text, pointer)

    def _translated(self, value: str, pointer: str) -> Translated | None:
        try:
            made = template_of(split(value[1:]), self._roots)
        except Untranslatable as error:
            self.lose(error.reason, error.text or value, pointer)
            return None
        if made.has_structures and not self._placement.is_told:
            self._placement.is_told = True
            self._placement.workflow.conversion.note(
                "import-changed",
                "a list or an object inside a text is JSON here, and a,b or [object Object] there",
                pointer,
            )
        return made

    def _input(self, steps: Sequence[Access]) -> tuple[Value, int]:
        return self._arriving(steps, _item_steps(steps))

    def _named(self, steps: Sequence[Access]) -> tuple[Value, int]:
        name = steps[0].arguments[0] if steps and steps[0].arguments else None
        return self._result(name, steps, 1)

    def _node(self, steps: Sequence[Access]) -> tuple[Value, int]:
        return self._result(steps[0].name if steps else None, steps, 1)

    def _result(self, name: object, steps: Sequence[Access], used: int) -> tuple[Value, int]:
        workflow = self._placement.workflow
        if not isinstance(name, str):
            raise Untranslatable("a step whose name is calculated")
        if name not in workflow.steps:
            raise Untranslatable(f"the step {name!r}, which is not there,")
        used += _item_steps(steps[used:])
        found = self._placement.result_of(name, self._graph)
        if found is None and not workflow.steps[name].passes:
            raise Untranslatable(f"the step {name!r}, which does not lead here,")
        step = workflow.steps[name]
        if step.passes and name not in self._scoped():
            if workflow.has_errors(name):
                raise Untranslatable(f"what arrives at {name!r}, which may be an error,")
            origins = workflow.origins(name)
            if len(origins) != 1:
                raise Untranslatable(f"what arrives at {name!r}, from several steps,")
            (name,) = origins
            found = self._placement.result_of(name, self._graph)
            if found is None:
                raise Untranslatable(f"the step {name!r}, which does not lead here,")
        if found is None:
            raise Untranslatable(f"the step {name!r}, which does not lead here,")
        is_node, own = found[0].startswith("nodes["), self._step.name
        if is_node and (name == own or not self._leads_here(name)):
            raise Untranslatable(f"the step {name!r}, which does not lead here,")
        return field_of(*found, steps, used)

    def _leads_here(self, name: str) -> bool:
        """Return whether ways lead here from the node with the result of a step."""
        workflow, own = self._placement.workflow, self._step.name
        step = workflow.steps[name]
        return any(
            way.target == own or workflow.is_before(way.target, own)
            for way in workflow.out_of(name)
            if step.worker is None or step.handles[way.output] != "error"
        )

    def _scoped(self) -> set[str]:
        return {
            name
            for scope in self._placement.names
            if self._graph.path.startswith(scope.prefix)
            for name in scope.names
        }

    def _arriving(self, steps: Sequence[Access], used: int) -> tuple[Value, int]:
        """Return what arrives, by the forms of the steps that it comes from."""
        workflow, name = self._placement.workflow, self._step.name
        origins = sorted(workflow.origins(name))
        if not origins:
            return field_of(self._arrives, SAME, steps, used)
        if workflow.has_errors(name):
            return self._error(steps, used)
        forms = [self._form_of(origin) for origin in origins]
        if any(form != forms[0] for form in forms):
            raise Untranslatable("what arrives, which has several forms,")
        envelope = forms[0]
        outputs = {output for output, _ in (envelope.fields or {}).values()}
        if outputs <= {"output"}:
            return field_of(self._arrives, envelope, steps, used)
        found = self._placement.result_of(origins[0], self._graph)
        if found is None or len(origins) > 1:
            raise Untranslatable("what arrives, which comes out of a loop,")
        return field_of(*found, steps, used)

    def _error(self, steps: Sequence[Access], used: int) -> tuple[Value, int]:
        """Return the error of the step before, which n8n has as a field of the item."""
        ways = self._placement.workflow.into(self._step.name)
        source = self._placement.workflow.steps[ways[0].source]
        found = self._placement.result_of(source.name, self._graph)
        if len(ways) > 1 or source.handles[ways[0].output] != "error" or found is None:
            raise Untranslatable("what arrives, which may be an error,")
        if source.worker is not None:
            return field_of(self._arrives, _ARRIVING_ERROR, steps, used)
        return field_of(found[0], _ERROR, steps, used)

    def _form_of(self, origin: str) -> Envelope:
        for scope in self._placement.names:
            if self._graph.path.startswith(scope.prefix) and origin in scope.names:
                return scope.names[origin][1]
        return self._placement.workflow.steps[origin].envelope


def _shown(value: Value) -> str:
    """Return a value as a part of a text, where nothing is an empty text."""
    if not value.may_be(MISSING):
        return text_of(value)
    return f'("" if {value.guarded()} is none else {text_of(value)})'


def _refusing(reason: str) -> Resolver:
    def refuse(steps: Sequence[Access]) -> tuple[Value, int]:
        raise Untranslatable(reason)

    return refuse


def _item_steps(steps: Sequence[Access]) -> int:
    """Return how many steps name the item: ``.item.json``, ``.first().json``."""
    names = tuple("()" if step.name is None else step.name for step in steps[:3])
    for item in _ITEM:
        if names[: len(item)] == item and (item[1:2] != ("()",) or steps[1].arguments == ()):
            return len(item)
    raise Untranslatable("all items of a step")


def field_of(
    base: str, envelope: Envelope, steps: Sequence[Access], used: int
) -> tuple[Value, int]:
    """Return what a step hands on, or a field of it where the two have other forms."""
    is_node = base.startswith("nodes[")
    if envelope.fields is None:
        if base.startswith("("):
            return Value(base, OBJECT), used
        return path(f"{base}.output" if is_node else base, OBJECT), used
    if not envelope.fields:
        raise Untranslatable("a list of items")

    def value(place: tuple[str, tuple[str, ...]]) -> Value:
        output, inside = place
        made = path(f"{base}.{output}" if is_node else base, OBJECT if inside else ANY)
        for name in inside:
            made = made.field(name)
        return made

    names = list[str]()
    for step in steps[used:]:
        if not isinstance(step.name, str):
            break
        names.append(step.name)
        if tuple(names) in envelope.fields:
            return value(envelope.fields[tuple(names)]), used + len(names)
    prefix = tuple(names[:1])
    inside = {
        key[len(prefix) :]: value(place)
        for key, place in envelope.fields.items()
        if key[: len(prefix)] == prefix
    }
    if len(names) > 1 or not inside:
        raise Untranslatable(f"the field {'.'.join(names)!r} of this step's result")
    return structure(_object(inside), "object"), used + len(prefix)


def _object(fields: Mapping[tuple[str, ...], Value]) -> str:
    """Return an object of fields, those inside others too, as an expression."""
    texts = list[str]()
    for first in dict.fromkeys(key[0] for key in fields):
        inner = {key[1:]: value for key, value in fields.items() if key[0] == first}
        text = inner[()].guarded() if () in inner else _object(inner)
        texts.append(f"{quoted(first)}: {text}")
    return f"{{{', '.join(texts)}}}"


Place = Callable[[Step, GraphDraft], None]

__all__ = ["Fields", "Names", "Place", "Placement", "field_of"]
