"""Short names for stored records: ``last``, a unique part of an id, the name of a flow."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar

from planwave.errors import Conflict, InputError, NotFound
from planwave.graph.diagnostics import short_repr
from planwave.graph.suggestions import closest_match
from planwave.ids import UUID_PATTERN

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Queries
    from planwave.service.flows.flow_queries import Flow
    from planwave.storage.records import PlanRecord

LAST: Final = "last"
"""Names the newest execution wherever an id is expected."""
_LIST_HINT: Final = "`planwave ls` lists executions and plans"
_FLOW_LIST_HINT: Final = "`planwave flow ls` lists flows"
_PAGE_SIZE: Final = 200
_MAX_EXAMPLES: Final = 4

_Record = TypeVar("_Record")


class Match(NamedTuple):
    """The execution or plan that a short name stands for."""

    kind: Literal["execution", "plan"]
    id: str


async def find(queries: Queries, name: str) -> Match:
    """Return the execution or plan of an id, of a unique part of an id, or ``last``.

    A plan is left out if an execution of it matches.

    Raises:
        NotFound: No id matches.
        InputError: Several ids match; the hint lists some of them.
    """
    if name == LAST:
        newest = await queries.executions.list(limit=1)
        if not newest:
            raise NotFound(
                "nothing has run here yet",
                hint='start with: planwave run "GOAL"; or name another directory: --storage DIR',
            )
        return Match("execution", newest[0].execution_id)
    if name and (exact := await _find_exact(queries, name)) is not None:
        return exact
    part = _id_part(name)
    matches = await _find_by_part(queries, part) if part else []
    if not matches:
        raise NotFound(f"no execution or plan has an id that contains {name!r}", hint=_LIST_HINT)
    if len(matches) > 1:
        raise InputError(
            f"{len(matches)} executions and plans have an id that contains {name!r}",
            code="ambiguous-id",
            hint=f"write more of the id: {_examples([each.id for each in matches])}",
        )
    return matches[0]


async def find_execution(queries: Queries, name: str) -> str:
    """Return the id of the execution that a short name stands for.

    Raises:
        NotFound: No id matches.
        InputError: Several ids match, or the id is that of a plan.
    """
    match = await find(queries, name)
    if match.kind == "plan":
        raise InputError(
            f"{match.id} is a plan, not an execution", hint="`planwave ls` lists executions"
        )
    return match.id


async def find_plan(queries: Queries, name: str) -> str:
    """Return the id of the plan that a short name stands for, as a plan, a flow or an execution of it.

    ``last`` is the plan of the newest execution, or a newer plan that did not run. The name of a flow goes
    before a part of an id.

    Raises:
        NotFound: No id and no name matches.
        InputError: Several ids match, or the execution has no plan.
    """
    if name == LAST:
        if (plan_id := await _plan_after_executions(queries)) is not None:
            return plan_id
    elif not UUID_PATTERN.fullmatch(name) and (named := await _flow_named(queries, name)):
        return named
    try:
        match = await find(queries, name)
    except NotFound as error:
        near = None if name == LAST else await _closest_name(queries, name)
        if near is not None:
            error.hint = f"did you mean the flow {near!r}? {error.hint}"
        raise
    if match.kind == "plan":
        return match.id
    execution = await queries.executions.get(match.id)
    if execution.plan_id is None:
        raise InputError(f"execution {match.id} has no plan", hint="name a plan, or a file")
    return execution.plan_id


async def _plan_after_executions(queries: Queries) -> str | None:
    """Return the newest plan if it is newer than all executions; ids begin with the time."""
    plans, executions = await queries.plans.list(limit=1), await queries.executions.list(limit=1)
    if not plans or (executions and executions[0].execution_id > plans[0].plan_id):
        return None
    return plans[0].plan_id


async def find_flow(queries: Queries, name: str, revision: int | None = None) -> Flow:
    """Return a flow by its id, its name, or a unique part of its id.

    Args:
        queries: Where flows are read.
        name: The id, the name, or a part of the id.
        revision: One of its revisions; None for the live one.

    Raises:
        NotFound: No flow matches, or it has no such revision.
        InputError: Several flows match; the hint lists some of them.
    """
    return await queries.flows.get(await find_flow_id(queries, name), revision)


async def find_flow_id(queries: Queries, name: str, *, by_part: bool = True) -> str:
    """Return the id of a flow; arguments and errors as in :func:`find_flow`.

    Args:
        queries: Where flows are read.
        name: The id, the name, or a part of the id.
        by_part: Whether a part of an id is enough.
    """
    if not name:
        raise _flow_not_found(name)
    if UUID_PATTERN.fullmatch(name) and await _flow_exists(queries, name):
        return name
    if (named := await _flow_named(queries, name)) is not None:
        return named
    matches: list[str] = []
    if by_part and (part := _id_part(name)):
        ids = [flow.plan_id async for flow in _read_all(queries.flows.list, _flow_id)]
        matches = [plan_id for plan_id in ids if part in plan_id]
    if not matches:
        raise _flow_not_found(name, await _closest_name(queries, name))
    if len(matches) > 1:
        raise InputError(
            f"{len(matches)} flows have an id that contains {short_repr(name)}",
            code="ambiguous-id",
            hint=f"write more of the id: {_examples(matches)}",
        )
    return matches[0]


async def _flow_named(queries: Queries, name: str) -> str | None:
    """Return the id of the flow of a name, whatever its case; None where there is none."""
    flows = await queries.flows.list(name=name, limit=1) if name else ()
    return flows[0].plan_id if flows else None


async def _closest_name(queries: Queries, name: str) -> str | None:
    names = [flow.name or "" async for flow in _read_all(queries.flows.list, _flow_id)]
    return closest_match(name, names)


async def _flow_exists(queries: Queries, plan_id: str) -> bool:
    try:
        await queries.flows.get(plan_id)
    except NotFound:
        return False
    return True


def _flow_id(flow: PlanRecord) -> str:
    return flow.plan_id


async def _find_exact(queries: Queries, name: str) -> Match | None:
    try:
        await queries.executions.get(name)
    except NotFound:
        pass
    except Conflict:  # the execution exists, and what is stored of it is unreadable
        return Match("execution", name)
    else:
        return Match("execution", name)
    try:
        await queries.plans.get(name)
    except NotFound:
        return None
    return Match("plan", name)


def _id_part(name: str) -> str:
    """Return the part of an id that a short name stands for; lists write ``…09a2fd``."""
    return name.lower().lstrip(".…")


async def _find_by_part(queries: Queries, part: str) -> list[Match]:
    executions = [
        record
        async for record in _read_all(queries.executions.list, lambda record: record.execution_id)
        if part in record.execution_id
    ]
    own_plans = {record.plan_id for record in executions}
    return [Match("execution", record.execution_id) for record in executions] + [
        Match("plan", record.plan_id)
        async for record in _read_all(queries.plans.list, lambda record: record.plan_id)
        if part in record.plan_id and record.plan_id not in own_plans
    ]


async def _read_all(
    read_page: Callable[..., Awaitable[Sequence[_Record]]], id_of: Callable[[_Record], str]
) -> AsyncGenerator[_Record]:
    """Yield every record of a list, page by page."""
    before: str | None = None
    while page := await read_page(before=before, limit=_PAGE_SIZE):
        for record in page:
            yield record
        before = id_of(page[-1])


def _flow_not_found(name: str, near: str | None = None) -> NotFound:
    hint = f"did you mean {near!r}? {_FLOW_LIST_HINT}" if near else _FLOW_LIST_HINT
    return NotFound(f"there is no flow called {short_repr(name)}", hint=hint)


def _examples(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_MAX_EXAMPLES]) + (", …" if len(ids) > _MAX_EXAMPLES else "")
