"""Steps of n8n for which nodes are made, and what a kind of step is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, cast

from planwave.interop.importing.drafts import GraphDraft, Target
from planwave.interop.importing.n8n.fields import Fields, Placement
from planwave.interop.importing.n8n.workflow import SAME, Envelope, Step, Workflow
from planwave.interop.importing.reading import object_of, text_of
from planwave.interop.importing.templates import literal


class Making:
    """A step for which nodes are made.

    Attributes:
        workflow: The workflow.
        placement: Where its steps are.
        step: The step.
        graph: The graph that it is put into.
        at: Where its parameters stand.
        fields: Its parameters as templates.
    """

    def __init__(self, placement: Placement, step: Step, graph: GraphDraft) -> None:
        self.workflow: Workflow = placement.workflow
        self.placement, self.step, self.graph = placement, step, graph
        self.at = f"{step.pointer}/parameters"
        self.fields = Fields(placement, step, graph)
        self.parameters = step.parameters
        self.options = object_of(step.parameters, "options")

    def becomes(
        self,
        node_type: str,
        data: Mapping[str, Any] | None = None,
        *,
        suffix: str = "",
        **more: Any,
    ) -> Target:
        """Add a node; the ones before and after the main one have a suffix."""
        node_id = f"{self.step.name}.{suffix}" if suffix else self.step.name
        name = f"{self.step.name} ({suffix})" if suffix else ""
        target = self.step.node.becomes(
            node_type, data, node_id=node_id, name=name, graph=self.graph, **more
        )
        if not suffix:
            self.step.node.main = target
        return target

    def text(self, name: str, default: Any = "") -> str:
        """Return a parameter as a template."""
        return self.fields.template(self.parameters.get(name, default), f"{self.at}/{name}")

    def lose(self, message: str, text: str, name: str = "") -> None:
        """Say what of the step has no counterpart."""
        self.step.node.lose(message, text, f"{self.at}/{name}" if name else None)

    def ignore(self, known: frozenset[str], name: str = "options") -> None:
        """Say which options are not carried over."""
        given = object_of(self.parameters, name)
        for option in sorted(given.keys() - known):
            if given[option] not in (None, "", [], {}, False):
                self.step.node.change(
                    f"the option {option!r} has no counterpart", f"{self.at}/{name}/{option}"
                )


Make = Callable[[Making], None]


class Kind(NamedTuple):
    """A kind of step.

    Attributes:
        make: Makes its nodes.
        handles: Its outputs.
        envelope: The form of what it hands on.
        passes: Whether it hands on what arrives.
    """

    make: Make
    handles: Callable[[Step], list[str]] = lambda step: ["output"]
    envelope: Callable[[Workflow, Step], Envelope] = lambda workflow, step: SAME
    passes: bool = False


def literal_data(value: Any) -> Any:
    """Return JSON as the data of a template field: texts in it are literal."""
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, dict):
        return {k: literal_data(v) for k, v in cast("dict[str, Any]", value).items()}
    return [literal_data(v) for v in cast("list[Any]", value)] if isinstance(value, list) else value


_PART: Final = re.compile(
    r"""(?P<dot>\.|^)(?P<name>[^.\[\]]+)|\[(?P<quote>["'])(?P<quoted>[^"']+)(?P=quote)\]"""
)


def path_of_field(name: str) -> tuple[str, ...]:
    """Return where a field is whose name is ``a.b`` or ``a['b c']``; () for one that is calculated or in a list."""
    parts, position, text = list[str](), 0, name.strip()
    while position < len(text):
        match = _PART.match(text, position)
        if match is None or (match["dot"] == "" and position):
            return ()
        parts.append(match["name"] or match["quoted"])
        position = match.end()
    is_in_list = len(parts) > 1 and any(part.isdecimal() for part in parts)
    return () if text.startswith(("=", "$")) or is_in_list else tuple(parts)


def flow_name(reference: Any) -> str:
    """Return the name of a workflow that a parameter refers to, or its id."""
    if isinstance(reference, dict):
        fields = cast("dict[str, Any]", reference)
        return text_of(fields, "cachedResultName") or text_of(fields, "value")
    return str(reference) if isinstance(reference, str | int) else ""
