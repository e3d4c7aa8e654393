"""What a request or a workflow answers: one item, or the items of a list, which is not known before it runs."""

from __future__ import annotations

from typing import Final

from planwave.interop.importing.drafts import Target, new_edge
from planwave.interop.importing.n8n.kinds import Making
from planwave.interop.importing.n8n.workflow import SAME, Step, Way, Workflow
from planwave.interop.importing.reading import text_of

_ONE_ITEM: Final = (
    '{{ input if input is mapping else {"data": input} if input is string else {} if input is none '
    "else input[0] if input | length == 1 and input[0] is mapping else input.one_item }}"
)
"""The item that an answer is: it fails for a list, except of one object."""
ITEMS: Final = '(input if input is sequence else [{"data": input} if input is string else input])'
"""The items that an answer is, where the next steps take all of them."""
_ANSWERED: Final = frozenset(("httpRequest", "executeWorkflow"))
"""Kinds whose answer may be a list."""
_TAKE_ITEMS: Final = frozenset(("splitInBatches", "aggregate"))


def gives_items(workflow: Workflow, step: Step) -> bool:
    """Return whether a step hands on a list, of which the next steps take the items."""
    following = [workflow.steps[way.target] for way in ways_of_items(workflow, step)]
    is_list = _is_answer(step) or (step.kind == "merge" and is_appending(step))
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


def _is_answer(step: Step) -> bool:
    return step.kind in _ANSWERED and step.envelope == SAME


def is_one_item(making: Making) -> bool:
    """Return whether the next steps run for one item, which an answer has to be."""
    step, workflow = making.step, making.workflow
    is_read = bool(ways_of_items(workflow, step))
    return _is_answer(step) and is_read and not gives_items(workflow, step)


def hand_on_one_item(making: Making, answered: Target) -> None:
    """Let the next steps have one item, or fail: for a list they run once for each of its items there.

    Args:
        making: The step.
        answered: The node that gives the answer.
    """
    item = making.becomes("transform", {"expression": _ONE_ITEM})
    new_edge(making.graph, answered.id, item.id)
    making.step.worker = answered
    making.step.node.change(
        "an answer that is a list of several items fails here; there the next steps run once for each",
        making.at,
        code="import-many-items",
    )
