"""What the answer of a request hands on: one item, or the items of a list, which is not known before it runs."""

from __future__ import annotations

from typing import Final

from planwave.interop.importing.n8n.workflow import SAME, Step, Way, Workflow
from planwave.interop.importing.reading import text_of

ONE_ITEM: Final = (
    '{{ input if input is mapping else {"data": input} if input is string else {} if input is none '
    "else input[0] if input | length == 1 and input[0] is mapping else input.one_item }}"
)
"""The item that an answer is: it fails for a list, except of one object."""
ITEMS: Final = '(input if input is sequence else [{"data": input} if input is string else input])'
"""The items that an answer is, where the next steps take all of them."""
_TAKE_ITEMS: Final = frozenset(("splitInBatches", "aggregate"))


def gives_items(workflow: Workflow, step: Step) -> bool:
    """Return whether a step hands on a list, of which the next steps take the items."""
    following = [workflow.steps[way.target] for way in ways_of_items(workflow, step)]
    is_answer = step.kind == "httpRequest" and step.envelope == SAME
    is_list = is_answer or (step.kind == "merge" and is_appending(step))
    return is_list and bool(following) and all(map(takes_items, following))


def takes_items(step: Step) -> bool:
    """Return whether a step runs once for all items: it collects them, or keeps one of them."""
    is_one = step.kind == "limit" and step.parameters.get("maxItems", 1) == 1
    return is_one or step.kind in _TAKE_ITEMS


def is_appending(step: Step) -> bool:
    """Return whether a merge hands on the items of all its inputs, one after another."""
    return text_of(step.parameters, "mode") in ("", "append")


def ways_of_items(workflow: Workflow, step: Step) -> list[Way]:
    """Return the ways on which a step hands on what it has, without those of its errors."""
    return [way for way in workflow.out_of(step.name) if step.handles[way.output] != "error"]
