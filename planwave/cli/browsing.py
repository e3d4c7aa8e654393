"""``planwave ls`` and ``show``: what was planned and what ran. Reading only."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from planwave.cli.options import Invocation, JsonFlag, StorageOption, invocation
from planwave.cli.wording import (
    STATUS_WIDTH,
    counted,
    cut,
    duration,
    error_text,
    one_line,
    status_words,
    table,
)
from planwave.errors import NotFound

if TYPE_CHECKING:
    from planwave.cli.screen import Line, Screen
    from planwave.service.history import History
    from planwave.storage.records import ExecutionRecord, PlanRecord

SHORT_ID = 13
"""Characters of an id that a list shows: its time in milliseconds, as good as unique."""
_Given = TypeVar("_Given")


def ls(
    ctx: typer.Context,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=1000, metavar="N", help="At most so many.")
    ] = 20,
    status: Annotated[
        str | None,
        typer.Option("--status", metavar="STATUS", help="completed, failed, cancelled, executing."),
    ] = None,
    json: JsonFlag = False,
    storage: StorageOption = None,
) -> None:
    """List executions and plans, newest first.

    For example:

    * `planwave ls`
    * `planwave ls --status failed --json`
    """
    asked = invocation(ctx, json=json, storage=storage)
    screen = asked.screen()

    async def read(history: History) -> tuple[list[ExecutionRecord], list[PlanRecord]]:
        executions = await history.executions(limit=limit, status=status)
        plans = [] if status else await history.plans(limit=limit)
        started = {record.plan_id for record in executions}
        return executions, [plan for plan in plans if plan.plan_id not in started]

    executions, plans = _reading(asked, read)
    if screen.json:
        screen.result(
            {
                "executions": [_execution_json(record) for record in executions],
                "plans": [_plan_json(plan) for plan in plans],
            }
        )
        return
    if not executions and not plans:
        where = asked.settings().storage_dir
        what = f"No {status} execution" if status else "Nothing has been planned or run"
        screen.line(f'{what} in {where} yet. Start with: planwave run "GOAL"')
        return
    screen.lines(_execution_line(screen, record) for record in executions)
    if plans:
        if executions:
            screen.line()
        screen.line("Plans without an execution above:")
        screen.lines(_plan_line(screen, plan) for plan in plans)


def show(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="An execution or plan, by its id, the unique start of its id, or: last.",
            show_default=False,
        ),
    ],
    node: Annotated[
        str | None, typer.Option("--node", metavar="NODE", help="Show the whole text of one step.")
    ] = None,
    json: JsonFlag = False,
    storage: StorageOption = None,
) -> None:
    """Show an execution (steps, results, usage) or a plan.

    For example:

    * `planwave show last`
    * `planwave show 0199c3a1 --node compare`
    """
    asked = invocation(ctx, json=json, storage=storage)
    screen = asked.screen()

    async def read(history: History) -> _Kept:
        found = await history.find(name)
        if found.kind == "plan":
            status = await history.plan_status(found.id)
            return _Kept(None, None, await history.plan(found.id), status)
        path = history.document_path(found.id)
        return _Kept(await history.document(found.id), path, None, "")

    kept = _reading(asked, read)
    if kept.plan is not None:
        _show_plan(screen, kept.plan, kept.plan_status)
    elif node is not None:
        _show_node(screen, kept.document or {}, node)
    else:
        _show_execution(screen, kept.document or {}, kept.path)


class _Kept(NamedTuple):
    """What an id stands for: the document of an execution and its file, or a plan."""

    document: dict[str, Any] | None
    path: Path | None
    plan: PlanRecord | None
    plan_status: str


def _reading(asked: Invocation, read: Callable[[History], Awaitable[_Given]]) -> _Given:
    async def in_loop() -> _Given:
        async with asked.composition.history(asked.settings()) as history:
            return await read(history)

    return asyncio.run(in_loop())


def _show_plan(screen: Screen, record: PlanRecord, status: str) -> None:
    from planwave.cli.plan_view import show_plan
    from planwave.service.documents import plan_of

    plan = plan_of(record)
    if screen.json:
        screen.result(plan.as_json(status))
        return
    if plan.user_prompt:
        screen.text(f"Goal      {one_line(plan.user_prompt)}")
    screen.text(f"Plan      {plan.plan_id}")
    show_plan(screen, plan)


def _show_node(screen: Screen, document: dict[str, Any], node: str) -> None:
    from planwave.cli.result_view import nodes_of

    for each in nodes_of(document):
        if node in (each["id"], each.get("name"), each.get("path")):
            if screen.json:
                screen.result(each)
                return
            text = table(document.get("node_results")).get(each["id"])
            if text:
                screen.markdown(str(text))
            else:
                reason = f": {one_line(error_text(each['error']))}" if each.get("error") else ""
                screen.line(f"{each['id']} is {status_words(str(each.get('status')))}{reason}")
            return
    names = ", ".join(str(each["id"]) for each in nodes_of(document))
    raise NotFound(f"this execution has no step {node!r}", hint=f"its steps are {names}")


def _show_execution(screen: Screen, document: dict[str, Any], path: Path | None) -> None:
    from rich.text import Text

    from planwave.cli.result_view import node_lines, show_result

    if not screen.json:
        screen.line(Text(one_line(str(document.get("title") or "")), style="bold"))
        if document.get("user_prompt"):
            screen.text(f"Goal      {one_line(str(document['user_prompt']))}")
        screen.text(f"Execution {document['execution_id']}")
        screen.line(f"Started   {_local_time(document.get('started_at'))}")
        screen.line()
        screen.lines(node_lines(screen, document))
    show_result(screen, document, path)
    if not screen.json and document.get("nodes"):
        first = document["nodes"][0]["id"]
        short = _id(screen, str(document["execution_id"]))
        screen.text(f"One step in full: planwave show {short} --node {first}")


def _execution_line(screen: Screen, record: ExecutionRecord) -> Line:
    from rich.text import Text

    from planwave.cli.wording import state

    sign = f"{screen.glyph(record.status)} {status_words(record.status):<{STATUS_WIDTH}}"
    took = _took(record)
    return Text.assemble(
        (_id(screen, record.execution_id), "cyan"),
        f"  {_local_time(record.created_at)}  ",
        (sign, state(record.status).style),
        (f"{took:>12}  ", "dim"),
        one_line(record.title or record.user_prompt),
    )


def _plan_line(screen: Screen, plan: PlanRecord) -> Line:
    from rich.text import Text

    steps = counted(len(plan.document.get("nodes") or ()), "step")
    return Text.assemble(
        (_id(screen, plan.plan_id), "cyan"),
        f"  {_local_time(plan.created_at)}  ",
        (f"{steps:>10}  ", "dim"),
        cut(plan.title or plan.user_prompt, 200),
    )


def _id(screen: Screen, full: str) -> str:
    return full[:SHORT_ID] if screen.pretty else full


def _execution_json(record: ExecutionRecord) -> dict[str, Any]:
    return {
        "execution_id": record.execution_id,
        "plan_id": record.plan_id,
        "title": record.title,
        "user_prompt": record.user_prompt,
        "status": record.status,
        "created_at": record.created_at,
        "started_at": record.started_at,
        "completed_at": record.completed_at,
    }


def _plan_json(plan: PlanRecord) -> dict[str, Any]:
    return {
        "plan_id": plan.plan_id,
        "title": plan.title,
        "user_prompt": plan.user_prompt,
        "hash": plan.hash,
        "created_at": plan.created_at,
        "nodes": len(plan.document.get("nodes") or ()),
    }


def _took(record: ExecutionRecord) -> str:
    if not (record.started_at and record.completed_at):
        return ""
    spent = _moment(record.completed_at) - _moment(record.started_at)
    return duration(max(spent.total_seconds(), 0.0))


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _local_time(text: str | None) -> str:
    if not text:
        return "not yet"
    return _moment(text).astimezone().strftime("%Y-%m-%d %H:%M")
