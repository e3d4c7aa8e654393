"""What lists and sums show of an execution beside its record, computed from its events.

It is stored with the projection of the execution, at each pause and at the end: nothing is written for it while
the execution runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from planwave.events import Event, ExecutionState
from planwave.events.outcome import outcome_of
from planwave.events.types import UsageData, typed_event
from planwave.events.usage import NO_USAGE, UsageLedger, UsageTotal
from planwave.storage.event_codec import search_key, storable_text
from planwave.storage.records import ExecutionRecord
from planwave.storage.search_signatures import signature_of

if TYPE_CHECKING:
    from planwave.shapes.common import Outcome

SEARCHED_CHARS: Final = 6_000
"""The most characters of an execution that are searched beside its title and goal."""
_RESULT_CHARS: Final = 4_000
_TASK_CHARS: Final = 400

SpendKind = Literal["run", "planning"]


class Spend(NamedTuple):
    """What calls of one model used on one day, for one execution or for the planning of one plan.

    Attributes:
        subject: The id of the execution or the plan.
        day: ``2026-01-31``, UTC.
        plan_id: The plan that was made, or executed; None for an execution without one.
        usage: The sum. ``cost_usd`` is the known part.
        unpriced: How many of the calls have no known price.
    """

    kind: SpendKind
    subject: str
    day: str
    plan_id: str | None
    provider: str
    model: str
    usage: UsageTotal
    unpriced: int


class ExecutionFacts(NamedTuple):
    """What lists and sums show of an execution.

    Attributes:
        tokens: Those of all calls, input and output.
        cost_usd: The known cost; None where no price was known.
        duration_s: From its start to its end; None before its end.
        text: What is searched beside title and goal: the words of its result, its steps and their tasks, folded.
        signature: That of text, title, goal and id; see ``search_signatures``.
        spend: What it used, by day and model.
        outcome: What its status leaves open; see ``planwave.events.outcome``.
    """

    tokens: int
    cost_usd: float | None
    duration_s: float | None
    text: str
    signature: bytes
    spend: tuple[Spend, ...]
    outcome: Outcome | None = None


def facts_of(
    events: Sequence[Event], state: ExecutionState, record: ExecutionRecord
) -> ExecutionFacts:
    """Return the facts of an execution; ``state`` is that after its events."""
    text = storable_text("\n".join(_searched(state))).casefold()[:SEARCHED_CHARS]
    return ExecutionFacts(
        int(state.usage.input_tokens + state.usage.output_tokens),
        state.usage.cost_usd,
        _seconds(state.started_at, state.completed_at),
        text,
        signature_of(search_key(record.title, record.user_prompt), record.execution_id, text),
        tuple(_spend_of(events, state)) if state.usage.calls else (),
        outcome_of(state)["outcome"],
    )


def planning_spend(
    plan_id: str, at: str, provider: str, model: str, usages: Iterable[UsageData]
) -> Spend | None:
    """Return what the calls used that wrote a plan; None without calls."""
    total, unpriced = NO_USAGE, 0
    for usage in usages:
        total = total.plus(usage)
        unpriced += usage.get("cost_usd") is None
    if not total.calls:
        return None
    return Spend("planning", plan_id, at[:10], plan_id, provider, model, total, unpriced)


def _seconds(started_at: str | None, completed_at: str | None) -> float | None:
    if started_at is None or completed_at is None:
        return None
    span = datetime.fromisoformat(completed_at) - datetime.fromisoformat(started_at)
    return max(0.0, span.total_seconds())


def _searched(state: ExecutionState) -> Iterator[str]:
    """Yield the texts that are searched, the most wanted first."""
    yield state.result().text[:_RESULT_CHARS]
    documents: Sequence[Any] = state.graph["nodes"] if state.graph else ()
    for node in documents:
        yield str(node.get("name") or "")
        yield str(node.get("description") or "")[:_TASK_CHARS]
        for value in (node.get("data") or {}).values():
            if isinstance(value, str):
                yield value[:_TASK_CHARS]
    for given in (state.inputs or {}).values():
        yield from (value[:_TASK_CHARS] for value in given.values() if isinstance(value, str))


def _spend_of(events: Iterable[Event], state: ExecutionState) -> Iterator[Spend]:
    ledger, sums = UsageLedger(), dict[tuple[str, str, str], tuple[UsageTotal, int]]()
    for event in map(typed_event, events):
        ledger.observe(event)
        if event.type != "usage" or not ledger.is_paid(event):
            continue
        data = event.data
        key = (event.at[:10], _word(data.get("provider")), _word(data.get("model")))
        total, unpriced = sums.get(key, (NO_USAGE, 0))
        sums[key] = total.plus(data), unpriced + (data.get("cost_usd") is None)
    for (day, provider, model), (total, unpriced) in sums.items():
        yield Spend("run", state.execution_id, day, state.plan_id, provider, model, total, unpriced)


def _word(value: Any) -> str:
    return storable_text(value)[:200] if isinstance(value, str) else ""
