"""The state of a flow: what reads a field of it reads the step that wrote it last."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any, Final, NamedTuple

from planwave.interop.importing.flowise.loops import NOTHING, AtEnd, Loop
from planwave.interop.importing.flowise.steps import (
    Expression,
    Missing,
    Scope,
    Step,
    passed_in,
)
from planwave.interop.importing.reading import json_of, objects_in, text_of
from planwave.interop.importing.templates import path, quoted

UPDATE: Final = "UpdateState"
_START: Final = "startState"
_MOST_WRITERS: Final = 100


class Latest(NamedTuple):
    """What something was last.

    Attributes:
        value: An expression of it.
        condition: An expression of whether there is any; "" where there always is.
    """

    value: str
    condition: str

    def or_else(self, other: str) -> str:
        """Return an expression of it, or of something else where there is none."""
        if self.condition == "false":
            return other
        if not self.condition or (other, self.condition) == (NOTHING, f"{self.value} is not none"):
            return self.value
        return f"({self.value} if {self.condition} else {other})"


def keys_of(inputs: Mapping[str, Any]) -> frozenset[str]:
    """Return the fields of the state that a step writes."""
    entries = [each for name in inputs if name.endswith(UPDATE) for _, each in objects_in(inputs, name)]  # fmt: skip
    entries += [each for _, each in _initial(inputs)]
    return frozenset(text_of(each, "key") for each in entries)


def _initial(inputs: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    value = inputs.get(_START)
    if isinstance(value, str):
        try:
            value = json_of(value or "[]")
        except ValueError:
            value = None
    return objects_in({"v": value}, "v")


def begin_state(step: Step) -> None:
    """Write the state with which a run begins."""
    if not step.inputs.get(_START):
        return
    for number, each in _initial(step.inputs):
        key, value = text_of(each, "key"), each.get("value")
        if not isinstance(value, str | int | float) or "{{" in str(value):
            message = "this value of the state is worked out in a run"
            step.lose(message, value, f"/{_START}/{number}/value")
        step.writes[key] = quoted(value) if isinstance(value, str) else json.dumps(value)
    step.change(
        "the state of the flow is written out: what reads it reads the step that wrote it last"
    )
    if step.inputs.get("startPersistState") is True:
        step.change("no state outlives a run here", "/startPersistState")


def keep_state(loop: Loop) -> None:
    """Let the rounds of a loop hand on what their steps write."""
    for key in sorted(loop.region.keys):
        loop.region.writes[key] = loop.after(("state", key), _at_end(loop, key))


def _at_end(loop: Loop, key: str) -> AtEnd:
    def at_end(step: Step, _: str) -> str:
        found = latest_state(step, key, is_after=True)
        if isinstance(found, Missing):
            loop.jumps[0].lose(found.message, key)
            return NOTHING
        return found.or_else(NOTHING)

    return at_end


def read_state(step: Step, fields: Sequence[str | int], written: str) -> Expression | Missing:
    """Return what reads a field of the state before a step."""
    key = str(fields[0]) if fields else ""
    found = latest_state(step, key)
    if isinstance(found, Missing):
        return found
    whole = Latest(path(found.value, fields[1:]), found.condition)
    return Expression(whole.or_else(quoted(written)))


def latest_state(step: Step, key: str, *, is_after: bool = False) -> Latest | Missing:
    """Return the field of the state that was written last before a step, or by it."""
    scope = step.scope
    writers = [each for each in scope.earlier(step) if key in each.keys]
    others = [each for each in scope.steps if key in each.keys and scope.is_beside(each, step)]
    if others or len(writers) > _MOST_WRITERS or _are_racing(scope, writers):
        return Missing(f"steps that may run at the same time write the state: {key}")
    if is_after and key in step.keys:
        writers.append(step)
    chain, conditions = "", list[str]()
    for each in reversed(writers):
        value = each.writes.get(key)
        if value is None:
            return Missing(
                f"what {each.node.name or each.id!r} writes into the state is not known: {key}"
            )
        if each is step or scope.has_run(each, step):
            return Latest(f"({chain}{value})" if chain else value, "")
        chain += f"{value} if {each.ran} else "
        conditions.append(each.ran)
    base = _base(step, key)
    if isinstance(base, Missing) or not chain:
        return base
    condition = f"({' or '.join([*conditions, base.condition])})" if base.condition else ""
    return Latest(f"({chain}{base.value})", condition)


def _are_racing(scope: Scope, writers: Sequence[Step]) -> bool:
    """Return whether two of several steps may run at the same time."""
    if all(scope.is_before(first, second) for first, second in pairwise(writers)):
        return False
    return any(scope.is_beside(first, second) for first, second in combinations(writers, 2))


def _base(step: Step, key: str) -> Latest | Missing:
    """Return what the state is where the steps of a graph begin."""
    scope = step.scope
    if scope.region is None:
        return Latest(NOTHING, "false")
    if scope.loop is None and key in scope.region.keys:
        return Missing(f"what earlier items wrote into the state is not known: {key}")
    around = latest_state(scope.region, key)
    if isinstance(around, Missing):
        return around
    first = passed_in(step, scope.region.scope, around.or_else(NOTHING))
    if scope.loop is not None and any(key in each.keys for each in scope.steps):
        first = scope.loop.before(("state", key), first, _at_end(scope.loop, key))
    return Latest(first, f"{first} is not none" if around.condition else "")
