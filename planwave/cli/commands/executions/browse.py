"""``planwave ls`` and ``show``: stored plans and executions. Read only."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.text import Text

from planwave.cli.context import CommandContext
from planwave.cli.errors import show_diagnostics
from planwave.cli.formatting import (
    DURATION_WIDTH,
    EXECUTION_STATUS_WIDTH,
    INTERRUPTED,
    counted,
    duration,
    facts_lines,
    json_object,
    local_time,
    local_times,
    one_line,
    parse_time,
    status_style,
    status_text,
    truncate,
    waits_for_text,
)
from planwave.cli.lookup import find
from planwave.cli.options import (
    MAX_LISTED,
    IdArgument,
    LimitOption,
    NodeOption,
    SearchOption,
    SinceOption,
    StarredOption,
    StatusOption,
    TagOption,
    UntilOption,
    shared_options,
)
from planwave.cli.views.plan import inputs_text, show_plan
from planwave.cli.views.result import (
    node_lines,
    nodes_of,
    show_failure,
    show_next,
    show_result,
    streamed_text,
)
from planwave.errors import InputError, NotFound
from planwave.graph.diagnostics import Diagnostic, errors_in
from planwave.principals import Principal
from planwave.service.executions.labels import execution_summary
from planwave.service.plans.documents import (
    is_provider_error,
    plan_json,
    plan_of,
)

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Queries
    from planwave.cli.console import CommandConsole, Line
    from planwave.shapes.common import PlanStatus
    from planwave.shapes.executions import DocumentResponse, WaitsForResponse
    from planwave.storage.records import ExecutionRecord, PlanRecord

_TITLE_CHARS = 200
_STEPS_NAMED = 20


@shared_options(over_http=True)
def ls(
    ctx: CommandContext,
    limit: LimitOption = 20,
    status: StatusOption = None,
    search: SearchOption = None,
    tag: TagOption = None,
    starred: StarredOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
) -> None:
    """List executions, and plans that did not run, newest first.

    With a filter, only executions are listed. For example:

    * `planwave ls`
    * `planwave ls --status failed --json`
    * `planwave ls --search "lisbon tram" --since 2026-01-31`
    """
    console = ctx.console()
    is_filtered = any(each is not None for each in (status, search, tag, starred, since, until))

    async def read(queries: Queries) -> _Listing:
        executions = await queries.executions.list(
            status=status, text=search, tag=tag, starred=starred, since=since, until=until,
            limit=limit + 1,
        )  # fmt: skip
        plans: Sequence[PlanRecord] = () if is_filtered else await queries.plans.list(limit=limit)
        started = {record.plan_id for record in executions}
        cut_off = await queries.executions.interrupted(executions)
        waiting = await queries.executions.waits_for(executions)
        unstarted = [plan for plan in plans if plan.plan_id not in started]
        return _Listing(executions, unstarted, cut_off, waiting)

    listing = ctx.read(read)
    if console.json:
        shown = [_execution_json(record, listing) for record in listing.executions[:limit]]
        plans_shown = [_plan_json(plan) for plan in listing.plans]
        console.result({"executions": shown, "plans": plans_shown})
    elif listing.executions or listing.plans:
        _show_list(ctx, console, listing, limit)
    else:
        where = ctx.place(ctx.settings())
        start = f'yet. Start with: {ctx.command_hint("run")} "GOAL"; or name another directory'
        start += ": --storage DIR"
        what = (
            f"No {status or 'such'} execution" if is_filtered else "Nothing has been planned or run"
        )
        console.text(f"{what} in {where}" + ("." if is_filtered else f" {start}"))


def _show_list(ctx: CommandContext, console: CommandConsole, listing: _Listing, limit: int) -> None:
    executions, plans = listing.executions[:limit], listing.plans
    ids = console.short_ids([each.execution_id for each in executions] + [p.plan_id for p in plans])
    _show_executions(ctx, console, executions, ids, listing)
    if len(listing.executions) > limit:
        pagination_hint(console, ctx, "ls", limit)
    if plans:
        if executions:
            console.line()
        console.line("Plans without an execution above:")
        times = local_times(plan.created_at for plan in plans)
        console.lines(
            _plan_line(plan, ids[plan.plan_id], at) for plan, at in zip(plans, times, strict=True)
        )


def _show_executions(
    ctx: CommandContext,
    console: CommandConsole,
    executions: Sequence[ExecutionRecord],
    ids: Mapping[str, str],
    listing: _Listing,
) -> None:
    times = local_times(each.created_at for each in executions)
    console.lines(
        _execution_line(console, each, ids[each.execution_id], at, listing)
        for each, at in zip(executions, times, strict=True)
    )
    for record in [each for each in executions if each.execution_id in listing.cut_off][:1]:
        again = ctx.command_hint(f"resume {record.execution_id}")
        console.verbatim(f"Nobody runs what was interrupted; continue with: {again}")


@shared_options(over_http=True)
def show(ctx: CommandContext, name: IdArgument, node: NodeOption = None) -> None:
    """Show an execution (steps, results, usage) or a plan.

    For example:

    * `planwave show last`
    * `planwave show 09a2fd --node compare`
    """
    console = ctx.console()

    async def read(queries: Queries) -> _StoredPlan | _StoredExecution:
        match = await find(queries, name)
        if match.kind == "plan":
            status = await queries.plans.status(match.id)
            return _StoredPlan(await queries.plans.get(match.id), status)
        executions = queries.executions
        waiting = await executions.waits_for([await executions.get(match.id)])
        document = await executions.document(match.id)
        return _StoredExecution(document, executions.document_path(match.id), waiting.get(match.id))

    stored = ctx.read(read)
    if isinstance(stored, _StoredExecution):
        if node is None:
            _show_execution(ctx, console, stored)
        else:
            _show_node(console, stored.document, node)
    elif node is None:
        _show_plan(ctx, console, stored)
    else:
        raise InputError(
            f"{stored.record.plan_id} is a plan: its steps have no results yet",
            hint="name an execution: `planwave ls` lists them",
        )


def pagination_hint(console: CommandConsole, ctx: CommandContext, command: str, limit: int) -> None:
    """Say to a person that a list was cut, and how to see more of it."""
    if not console.pretty:
        return
    if limit < MAX_LISTED:
        more = ctx.command_hint(f"{command} --limit {min(10 * limit, MAX_LISTED)}")
        console.verbatim(f"More: {more}")
    else:
        console.text("There are older entries.")


class _Listing(NamedTuple):
    """What is listed, and which of the executions no process runs: why, by id."""

    executions: Sequence[ExecutionRecord]
    plans: list[PlanRecord]
    cut_off: Collection[str]
    waiting: Mapping[str, WaitsForResponse]


class _StoredPlan(NamedTuple):
    record: PlanRecord
    status: PlanStatus


class _StoredExecution(NamedTuple):
    """The document of an execution, where its file is once there is one, and why no process runs it."""

    document: DocumentResponse
    path: Path | None
    waits_for: WaitsForResponse | None


def _show_plan(ctx: CommandContext, console: CommandConsole, stored: _StoredPlan) -> None:
    record = stored.record
    inputs = record.document.get("inputs")
    if inputs is None:
        inputs = ctx.declared_inputs(record.document)
    if console.json:
        console.result({**plan_json(record, stored.status), "inputs": inputs})
        return
    facts = {
        "Goal": record.user_prompt,
        "Plan": record.plan_id,
        "Flow": record.name,
        "Made": f"{local_time(record.created_at)}, {status_text(stored.status)}",
        "Revision": record.revision if record.revision > 1 else None,
        "Inputs": inputs_text(inputs),
    }
    findings = [Diagnostic(**each) for each in record.document.get("diagnostics") or ()]
    errors = [each for each in errors_in(findings) if not is_provider_error(each)]
    if not errors:
        show_plan(console, plan_of(record), facts_lines(facts))
        return
    console.line(Text(one_line(record.title), style="bold"))
    console.texts(facts_lines(facts))
    console.line()
    console.text(f"A draft with {counted(len(errors), 'error')}, which cannot be executed:")
    show_diagnostics(console, errors)


def _show_execution(ctx: CommandContext, console: CommandConsole, stored: _StoredExecution) -> None:
    document, path, waits_for = stored
    if console.json:
        waits = {} if waits_for is None else {"waits_for": waits_for}
        show_result(console, {**document, **waits}, path)
        return
    execution_id = str(document["execution_id"])
    facts = {
        "Goal": document.get("user_prompt"),
        "Execution": execution_id,
        "Plan": document.get("plan_id"),
        "Flow": document.get("flow"),
        "Started": local_time(document.get("started_at")),
        "By": Principal.from_json(document.get("created_by")),
        **_parent_fact(json_object(document.get("parent"))),
        "Now": None if waits_for is None else waits_for_text(waits_for),
    }
    console.line(
        Text(
            one_line(str(document.get("title") or document.get("user_prompt") or "")), style="bold"
        )
    )
    console.texts(facts_lines(facts))
    console.line()
    console.lines(node_lines(console, document))
    show_result(console, document, path)
    show_next(ctx, console, document)
    for node in nodes_of(document):
        if node.get("result") is not None or streamed_text(node):
            words = f"show {execution_id} --node {shlex.quote(str(node.get('path')))}"
            console.verbatim(f"The whole text of a step: {ctx.command_hint(words)}")
            break


def _parent_fact(parent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line that names the execution this one was made from, if any."""
    return {"Retry of" if parent.get("retry") else "Fork of": parent.get("execution_id")}


def _show_node(console: CommandConsole, document: Mapping[str, Any], name: str) -> None:
    node = find_node(document, name)
    if console.json:
        console.result(node)
    elif node.get("result") is not None:
        console.markdown(str(node["result"]))
    else:
        show_failure(console, node)
        if text := streamed_text(node):
            console.line()
            console.text("It had written this, which no other step gets:")
            console.markdown(text)


def find_node(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the node of an execution's document by its path, id or name.

    Raises:
        NotFound: No node has the name.
        InputError: ``ambiguous-step``: several nodes have it.
    """
    nodes = nodes_of(document)
    for field in ("path", "id", "name"):
        matches = [node for node in nodes if node.get(field) == name]
        if len(matches) == 1:
            return dict(matches[0])
        if matches:
            raise InputError(
                f"{len(matches)} steps of this execution are called {name!r}",
                code="ambiguous-step",
                hint=f"write which: {_sample(node.get('path') for node in matches)}",
            )
    raise NotFound(
        f"this execution has no step {name!r}",
        hint=f"its steps are {_sample(node.get('path') for node in nodes)}",
    )


def _sample(names: Iterable[Any]) -> str:
    texts = [str(name) for name in names]
    more = ", …" if len(texts) > _STEPS_NAMED else ""
    return ", ".join(texts[:_STEPS_NAMED]) + more


def _execution_line(
    console: CommandConsole,
    record: ExecutionRecord,
    shown_id: str,
    at: str,
    listing: _Listing,
) -> Line:
    is_cut_off = record.execution_id in listing.cut_off
    status = INTERRUPTED if is_cut_off else record.outcome or record.status
    waits_for = listing.waiting.get(record.execution_id)
    words = f"{status_text(status):<{EXECUTION_STATUS_WIDTH}}"
    return Text.assemble(
        (shown_id, "cyan"),
        f"  {at}  ",
        (f"{console.glyph(status)} {words}", status_style(status).style),
        (f" {_elapsed(record):>{DURATION_WIDTH}}  ", "dim"),
        truncate(record.labels.name or record.title or record.user_prompt, _TITLE_CHARS),
        ("" if waits_for is None else f"  {waits_for_text(waits_for)}", "yellow"),
    )


def _plan_line(plan: PlanRecord, shown_id: str, at: str) -> Line:
    steps = counted(len(plan.document.get("nodes") or ()), "step")
    return Text.assemble(
        (shown_id, "cyan"),
        f"  {at}  ",
        (f"{steps:>{2 + EXECUTION_STATUS_WIDTH + 1 + DURATION_WIDTH}}  ", "dim"),
        truncate(plan.title or plan.user_prompt, _TITLE_CHARS),
    )


def _execution_json(record: ExecutionRecord, listing: _Listing) -> dict[str, Any]:
    """Return an execution as the API lists it, but for the planning of its plan, which is not read here."""
    summary = execution_summary(
        record,
        is_interrupted=record.execution_id in listing.cut_off,
        waits_for=listing.waiting.get(record.execution_id),
    )
    return {name: value for name, value in summary.items() if name != "planning"}


def _plan_json(plan: PlanRecord) -> dict[str, Any]:
    return {
        "plan_id": plan.plan_id,
        "title": plan.title,
        "user_prompt": plan.user_prompt,
        "name": plan.name,
        "hash": plan.hash,
        "created_at": plan.created_at,
        "nodes": len(plan.document.get("nodes") or ()),
    }


def _elapsed(record: ExecutionRecord) -> str:
    if not (record.started_at and record.completed_at):
        return ""
    spent = parse_time(record.completed_at) - parse_time(record.started_at)
    return duration(max(spent.total_seconds(), 0.0))
