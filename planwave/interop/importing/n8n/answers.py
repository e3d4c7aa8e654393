"""What the answer of a request hands on: one item, or the items of a list, which is not known before it runs."""

from __future__ import annotations

from typing import Final

from planwave.interop.importing.n8n.workflow import SAME, Step, Way, Workflow

ONE_ITEM: Final = (
    '{{ input if input is mapping else {"data": input} if input is string else {} if input is none '
    "else input[0] if input | length == 1 and input[0] is mapping else input.one_item }}"
)
"""The item that an answer is: it fails for a list, except of one object."""
ITEMS: Final = '(input if input is sequence else [{"data": input} if input is string else input])'
"""The items that an answer is, where the next steps take all of them."""
_TAKE_ITEMS: Final = frozenset(("splitInBatches", "aggregate"))


def gives_items(workflow: Workflow, step: Step) -> bool:
    """Return whether a step hands on an answer of which the next steps take the items."""
    kinds = {workflow.steps[way.target].kind for way in ways_of_items(workflow, step)}
    is_answer = step.kind == "httpRequest" and step.envelope == SAME
    return is_answer and bool(kinds) and kinds <= _TAKE_ITEMS


def ways_of_items(workflow: Workflow, step: Step) -> list[Way]:
    """Return the ways on which a step hands on what it has, without those of its errors."""
    return [way for way in workflow.out_of(step.name) if step.handles[way.output] != "error"]
