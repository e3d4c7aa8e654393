"""Short names for stored records: ``last``, the start or end of an id, the name of a flow."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

from planwave.errors import Conflict, InputError, NotFound
from planwave.graph.diagnostics import short_repr
from planwave.graph.suggestions import closest_match
from planwave.ids import LEAST_CHARS, UUID_PATTERN, bare_id, begins_or_ends, id_part
from planwave.ids import find_id as find_by_part

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Queries
    from planwave.service.flows.flow_queries import Flow
    from planwave.storage.records import PlanRecord

LAST: Final = "last"
"""Names the newest execution wherever an id is expected."""
_LEAST_CHARS_TO_DESTROY: Final = 6
"""What destroys something needs more of its id, so that a slip of the finger names nothing."""
_FLOW_LIST_HINT: Final = "`planwave flow ls` lists flows"
_PAGE_SIZE: Final = 200

_Record = TypeVar("_Record")


class Match(NamedTuple):
    """The execution or plan that a short name stands for."""

    kind: Literal["execution", "plan"]
    id: str


async def find(queries: Queries, name: str, *, destroys: bool = False) -> Match:
    """Return the execution or plan of an id, of the start or end of an id, or ``last``.

    A plan is left out if an execution of it matches. Errors as in ``find_id``.

    Args:
        queries: Where executions and plans are read.
        name: The id, its start or end, or ``last``.
        destroys: Whether the record is to be destroyed, for which more of the id has to be written.
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
    part = id_part(name, _least_chars(destroys=destroys))
    matches = {match.id: match async for match in _ending_or_beginning(queries, part)}
    return matches[find_id(matches, name, "execution or plan", "ls", destroys=destroys)]


def find_id(ids: Iterable[str], name: str, what: str, lists: str, *, destroys: bool = False) -> str:
    """Return the id that a name is, or begins or ends.

    Args:
        ids: The ids to choose from.
        name: The id, or its start or end; lists write ``…09a2fd``.
        what: What has such an id, such as ``token``.
        lists: The command that lists them, without ``planwave``.
        destroys: See ``find``.

    Raises:
        NotFound: No id matches.
        InputError: ``usage``: the name is empty or too short. ``ambiguous-id``: several ids match; the
            hint lists some of them.
    """
    least = _least_chars(destroys=destroys)
    return find_by_part(ids, name, what, f"`planwave {lists}`", least=least)


async def find_execution(queries: Queries, name: str, *, destroys: bool = False) -> str:
    """Return the id of the execution that a short name stands for; see ``find``.

    Raises:
        NotFound: No id matches.
        InputError: The name is too short, several ids match, or the id is that of a plan.
    """
    match = await find(queries, name, destroys=destroys)
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
    except (NotFound, InputError) as error:
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


async def find_flow(
    queries: Queries, name: str, revision: int | None = None, *, destroys: bool = False
) -> Flow:
    """Return a flow by its id, its name, or the start or end of its id.

    Args:
        queries: Where flows are read.
        name: The id, the name, or the start or end of the id.
        revision: One of its revisions; None for the live one.
        destroys: See ``find``.

    Raises:
        NotFound: No flow matches, or it has no such revision.
        InputError: Several flows match; the hint lists some of them.
    """
    plan_id = await find_flow_id(queries, name, destroys=destroys)
    return await queries.flows.get(plan_id, revision)


async def find_input_set(queries: Queries, flow: Flow, name: str) -> Mapping[str, Any]:
    """Return the inputs of a flow that are saved under a name.

    Raises:
        NotFound: There are none; the hint has the names.
    """
    saved = {each.name: each.inputs for each in await queries.flows.input_sets(flow.plan_id)}
    if name not in saved:
        near = closest_match(name, saved)
        names = f"the names are {', '.join(saved)}" if saved else "none are saved yet"
        hint = names if near is None else f"did you mean {near!r}? {names}"
        raise NotFound(f"no inputs of {flow.name!r} are saved as {short_repr(name)}", hint=hint)
    return saved[name]


async def find_flow_id(
    queries: Queries, name: str, *, by_part: bool = True, destroys: bool = False
) -> str:
    """Return the id of a flow; arguments and errors as in ``find_flow``.

    Args:
        queries: Where flows are read.
        name: The id, the name, or the start or end of the id.
        by_part: Whether the start or end of an id is enough.
        destroys: See ``find``.
    """
    if not name:
        raise _flow_not_found(name)
    if UUID_PATTERN.fullmatch(name) and await _flow_exists(queries, name):
        return name
    if (named := await _flow_named(queries, name)) is not None:
        return named
    if by_part and len(bare_id(name)) >= _least_chars(destroys=destroys):
        ids = [flow.plan_id async for flow in _read_all(queries.flows.list, _flow_id)]
        with suppress(NotFound):
            return find_id(ids, name, "flow", "flow ls", destroys=destroys)
    raise _flow_not_found(name, await _closest_name(queries, name))


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


def _least_chars(*, destroys: bool) -> int:
    return _LEAST_CHARS_TO_DESTROY if destroys else LEAST_CHARS


async def _ending_or_beginning(queries: Queries, part: str) -> AsyncGenerator[Match]:
    """Yield the executions with an id that begins or ends so, then the plans without one of these."""
    own_plans = set[str | None]()
    async for record in _read_all(queries.executions.list, lambda record: record.execution_id):
        if begins_or_ends(part, record.execution_id):
            own_plans.add(record.plan_id)
            yield Match("execution", record.execution_id)
    async for plan in _read_all(queries.plans.list, lambda record: record.plan_id):
        if begins_or_ends(part, plan.plan_id) and plan.plan_id not in own_plans:
            yield Match("plan", plan.plan_id)


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
