"""``planwave retry`` and ``fork``: a new execution out of one, with every result that still holds."""

from __future__ import annotations

import asyncio
import json as json_module
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from planwave.cli.controlling import finish
from planwave.cli.interrupt import Interrupt
from planwave.cli.options import Invocation, JsonFlag, StorageOption, invocation
from planwave.cli.watching import ExecutionArgument, find_execution
from planwave.cli.wording import cut, table
from planwave.errors import InputError

if TYPE_CHECKING:
    from planwave.cli.workplace import Workplace
    from planwave.graph.model import Json

_SHOWN = 60
_DATA = "data"


def retry(
    ctx: typer.Context,
    name: ExecutionArgument,
    json: JsonFlag = False,
    storage: StorageOption = None,
) -> None:
    """Run what failed, was blocked or was cancelled once more, as a new execution.

    What completed, inside steps too, is taken over and not paid for again.

    For example:

    * `planwave retry last`
    """
    asked = invocation(ctx, json, storage)

    async def make(place: Workplace, execution_id: str) -> str:
        return await place.retry(execution_id)

    finish(asyncio.run(_run_new(asked, name, make)))


def fork(
    ctx: typer.Context,
    name: ExecutionArgument,
    rerun: Annotated[
        list[str] | None,
        typer.Option(
            "--rerun",
            metavar="NODE",
            help="Run this step in any case, with all inside it. May be given several times.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NODE.FIELD=VALUE",
            help="Another value in a step's data: JSON, or text. May be given several times.",
        ),
    ] = None,
    changes: Annotated[
        str | None,
        typer.Option(
            "--changes",
            metavar="FILE",
            help="JSON {node: {data: {…}} | {outputs: {handle: value}}}; - is stdin.",
        ),
    ] = None,
    json: JsonFlag = False,
    storage: StorageOption = None,
) -> None:
    """Run an execution again with some of it changed, as a new execution.

    Every result that still follows from the same is taken over; only the rest runs. The execution
    itself stays as it is; `planwave diff` shows what came out differently.

    For example:

    * `planwave fork last --rerun compare`
    * `planwave fork 0199c3a1 --set compare.model=gpt-4o --set research.temperature=0.2`
    * `planwave fork last --changes changes.json`
    """
    asked = invocation(ctx, json, storage)
    from_file = {} if changes is None else _changes_in(changes)

    async def make(place: Workplace, execution_id: str) -> str:
        ids = _nodes_of(await place.document(execution_id)) if settings else ()
        wanted = changed(from_file, settings or (), ids)
        return await place.fork(execution_id, rerun or (), wanted)

    finish(asyncio.run(_run_new(asked, name, make)))


async def _run_new(
    asked: Invocation, name: str, make: Callable[[Workplace, str], Awaitable[str]]
) -> int:
    """Have an execution made out of one, and attend to it."""
    from planwave.cli.attending import attend

    screen, settings = asked.screen(), asked.settings()
    async with asked.history(settings) as history:
        execution_id = await find_execution(history, name)
    with Interrupt(screen) as interrupt:
        async with asked.workplace(settings) as place:
            made = await make(place, execution_id)
            screen.whole(f"execution {made}, out of {execution_id}")
            return await attend(asked, place, interrupt, made)


def changed(
    changes: Mapping[str, Mapping[str, Json]], written: Sequence[str], ids: Sequence[str]
) -> dict[str, dict[str, Json]]:
    """Give changes with what ``--set`` says laid over their data.

    Args:
        changes: ``{node_id: {"data": {…}} | {"outputs": {…}}}``.
        written: ``NODE.FIELD=VALUE``, where a field may lie deeper: ``NODE.a.b=VALUE``.
        ids: Of the nodes there are; they may hold dots.

    Raises:
        InputError: ``usage``: it does not say which field of which node.
    """
    made = {node_id: {**change} for node_id, change in changes.items()}
    for each in written:
        place, equals, value = each.partition("=")
        node_id = max((i for i in ids if place.startswith(f"{i}.")), key=len, default="")
        path = place.removeprefix(f"{node_id}.").split(".")
        if not (equals and node_id and all(path)):
            raise InputError(
                f"--set {cut(repr(each), _SHOWN)} names no field of a step",
                code="usage",
                hint=f"write NODE.FIELD=VALUE; the steps are {', '.join(ids[:8])}",
            )
        change = made.setdefault(node_id, {})
        here: dict[str, Json] = {**table(change.get(_DATA))}
        change[_DATA] = here
        for name in path[:-1]:
            deeper: dict[str, Json] = {**table(here.get(name))}
            here[name] = deeper
            here = deeper
        here[path[-1]] = _value_of(value)
    return made


def _value_of(written: str) -> Json:
    try:
        return json_module.loads(written)
    except ValueError:
        return written


def _changes_in(file: str) -> dict[str, dict[str, Json]]:
    from planwave.cli.asking import json_in
    from planwave.cli.reading import read_json

    changes = json_in(read_json(file), f"--changes {cut(repr(file), _SHOWN)}")
    if isinstance(changes, dict):
        fields = cast("dict[str, Any]", changes)
        if all(isinstance(change, dict) for change in fields.values()):
            return fields
    raise InputError(
        "--changes: it is not {node: {…}}",
        code="usage",
        hint='write {"NODE": {"data": {"FIELD": VALUE}}} or {"NODE": {"outputs": {…}}}',
    )


def _nodes_of(document: Mapping[str, Any]) -> Sequence[str]:
    return [str(node["id"]) for node in table(document.get("graph")).get("nodes") or ()]
