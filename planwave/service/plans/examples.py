"""Earlier plans of a person that worked, as examples for the planner.

Only their goals and the names of their steps are shown to a model. A plan is an example where a person
started it (no token, trigger or chat), it completed as it is now, nothing is found wrong with it, and a
model of the same provider wrote it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from planwave.errors import InputError
from planwave.principals import Principal, current_principal
from planwave.prompts.render import PlanExample
from planwave.service.dependencies import ServiceDependencies
from planwave.storage.records import PlanRecord

MAX_EXAMPLES: Final = 2
_NEWEST: Final = 300
"""The completed executions that are looked at, newest first."""
_MAX_LOOKED_AT: Final = 12
"""The plans of near goals that are read; more than this are rarely all unfit."""
_LEAST_OVERLAP: Final = 0.4
_PEOPLE: Final = frozenset({"operator", "session", "local"})
_WORD: Final = re.compile(r"[^\W_]{4,}")
_MAX_STEPS: Final = 20
_MAX_NAME_CHARS: Final = 60
_MAX_GOAL_CHARS: Final = 300


async def find_examples(
    dependencies: ServiceDependencies, goal: str, provider: str | None, model: str | None
) -> Sequence[PlanExample]:
    """Return the plans that a planner is shown for a goal, the nearest first.

    None where the operator wants none, for callers who are no person, and for small models.

    Args:
        dependencies: Those of the service.
        goal: The goal that is to be planned.
        provider: Who plans; None for the default.
        model: See ``provider``.
    """
    caller = current_principal()
    if not dependencies.examples_from_history or not _is_person(caller):
        return ()
    with suppress(InputError):  # the planner says what is wrong with the choice
        provider, model = dependencies.providers.resolve(provider, model)
        if not dependencies.providers.profile(provider, model).small:
            return await _nearest(dependencies, goal, provider, caller)
    return ()


async def _nearest(
    dependencies: ServiceDependencies, goal: str, provider: str, caller: Principal
) -> Sequence[PlanExample]:
    store, near = dependencies.store, dict[tuple[str, int], float]()
    for run in await store.revisions.completed(_NEWEST):
        person = run.created_by
        if person is None or not _is_person(person) or person.account != caller.account:
            continue
        overlap = word_overlap(goal, run.goal)
        if run.revision is not None and overlap >= _LEAST_OVERLAP:
            near.setdefault((run.plan_id, run.revision), overlap)
    examples: list[PlanExample] = []
    for plan_id, revision in sorted(near, key=lambda each: -near[each])[:_MAX_LOOKED_AT]:
        record = await store.plan(plan_id)
        if record is not None and record.revision == revision and _is_good(record, provider):
            examples.append(_example_of(record))
        if len(examples) == MAX_EXAMPLES:
            break
    return examples


def word_overlap(first: str, second: str) -> float:
    """Return how many words of four letters or more two texts share, from 0 to 1; fewer than two count nothing."""
    one, other = (set(_WORD.findall(text.lower())) for text in (first, second))
    shared = len(one & other)
    return shared / math.sqrt(len(one) * len(other)) if shared > 1 else 0.0


def _is_person(principal: Principal) -> bool:
    return principal.kind in _PEOPLE


def _is_good(record: PlanRecord, provider: str) -> bool:
    found = {finding.get("severity") for finding in record.document.get("diagnostics", ())}
    return record.document.get("provider") == provider and not found & {"error", "warning"}


def _example_of(record: PlanRecord) -> PlanExample:
    names = [str(node.get("name") or node["id"]) for node in record.document["nodes"]]
    steps = [_line(name, _MAX_NAME_CHARS) for name in names[:_MAX_STEPS]]
    goal = _line(record.user_prompt, _MAX_GOAL_CHARS)
    return PlanExample(record.plan_id, record.title, goal, tuple(steps))


def _line(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
