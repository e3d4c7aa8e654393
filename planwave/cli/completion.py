"""What the shell offers for an argument that names something: ids, names of flows, steps, types, tools.

Each press of Tab starts a process, which reads the stored data only: it makes and locks no directory,
asks no service, and offers nothing where anything fails.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from planwave.cli.lookup import LAST, find_execution, find_flow
from planwave.events.request_text import request_text
from planwave.settings import URL_VARIABLE
from planwave.storage.notifications import DEAD

if TYPE_CHECKING:
    from planwave.config.files import LoadedSettings
    from planwave.service.queries.history import History
    from planwave.settings import Settings

Offered = list[tuple[str, str]]
"""Values with a word about each, which some shells show."""
_OFFERED: Final = 50
"""Records that are offered, the newest first: more would not be read."""


def executions(ctx: typer.Context) -> Offered:
    """Offer executions, the newest first."""
    return _read(ctx, _executions)


def executions_and_plans(ctx: typer.Context) -> Offered:
    """Offer executions, then plans, the newest first."""

    async def read(history: History) -> Offered:
        return [*await _executions(history), *await _plans(history)]

    return _read(ctx, read)


def plans(ctx: typer.Context) -> Offered:
    """Offer plans, the newest first, and flows by their names."""

    async def read(history: History) -> Offered:
        return [*await _flows(history), *await _plans(history)]

    return _read(ctx, read)


def flows(ctx: typer.Context) -> Offered:
    """Offer flows by their names, the newest first."""
    return _read(ctx, _flows)


def requests(ctx: typer.Context) -> Offered:
    """Offer the open requests of the execution before it on the command line."""

    async def read(history: History) -> Offered:
        execution_id = await find_execution(history, _before(ctx))
        opened = await history.executions.requests(execution_id)
        return [(each.request_id, request_text(each.request)) for each in opened]

    return _read(ctx, read)


def steps(ctx: typer.Context) -> Offered:
    """Offer the steps of the execution before it on the command line, by their paths."""

    async def read(history: History) -> Offered:
        execution_id = await find_execution(history, _before(ctx))
        nodes = (await history.executions.document(execution_id))["nodes"]
        return [(each["path"], f"{each['status']}: {each['name']}") for each in nodes]

    return _read(ctx, read)


def flow_steps(ctx: typer.Context) -> Offered:
    """Offer the steps of the flow before it on the command line, by their ids."""

    async def read(history: History) -> Offered:
        flow = await find_flow(history, _before(ctx))
        return [(each["id"], each.get("name") or "") for each in flow.graph["nodes"]]

    return _read(ctx, read)


def input_sets(ctx: typer.Context) -> Offered:
    """Offer the names of saved inputs of the flow before it on the command line."""

    async def read(history: History) -> Offered:
        flow = await find_flow(history, _before(ctx))
        saved = await history.flows.input_sets(flow.plan_id)
        return [(each.name, ", ".join(each.inputs)) for each in saved]

    return _read(ctx, read)


def triggers(ctx: typer.Context) -> Offered:
    """Offer triggers, the newest first."""

    async def read(history: History) -> Offered:
        records = await history.triggers.page(limit=_OFFERED)
        return [(each.trigger_id, f"{each.kind}: {each.node_id}") for each in records]

    return _read(ctx, read)


def tokens(ctx: typer.Context) -> Offered:
    """Offer access tokens and links by their ids, never by what they are."""

    async def read(history: History) -> Offered:
        offered = [(each.token_id, each.name) for each in await history.access_tokens.all()]
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        links = await history.links.page(now, limit=_OFFERED)
        return [*offered, *((each.link_id, f"link: {each.kind}") for each in links)]

    return _read(ctx, read)


def targets(ctx: typer.Context) -> Offered:
    """Offer the targets of notifications that commands may remove."""

    async def read(history: History) -> Offered:
        stored = await history.notifications.targets()
        return [(each.target_id, " ".join(each.events)) for each in stored]

    return _read(ctx, read)


def dead_letters(ctx: typer.Context) -> Offered:
    """Offer the messages that nobody accepted, the newest first."""

    async def read(history: History) -> Offered:
        records = await history.notifications.page(status=DEAD, limit=_OFFERED)
        return [(each.notification_id, f"{each.event}: {each.error}") for each in records]

    return _read(ctx, read)


def tools(ctx: typer.Context) -> Offered:
    """Offer the tools that commands know here."""

    def read(settings: Settings) -> Offered:
        known = ctx.find_root().obj.catalogue(settings).tools
        return [(name, "") for name in known.names()]

    return _quietly(lambda: read(_settings(ctx)))


def secrets(ctx: typer.Context) -> Offered:
    """Offer the names of the operator's secrets, never their values."""
    return _quietly(lambda: [(name, "") for name in _settings(ctx).secrets])


def node_types(ctx: typer.Context) -> Offered:
    """Offer the node types that commands know here."""

    def read(settings: Settings) -> Offered:
        catalogue = ctx.find_root().obj.catalogue(settings)
        return [(name, catalogue.describe(name)["summary"]) for name in catalogue.names()]

    return _quietly(lambda: read(_settings(ctx)))


def providers(ctx: typer.Context) -> Offered:
    """Offer the configured providers."""

    def read(settings: Settings) -> Offered:
        configured, _ = ctx.find_root().obj.providers(settings)
        return [(each.name, each.reason) for each in configured.list()]

    return _quietly(lambda: read(_settings(ctx)))


async def _executions(history: History) -> Offered:
    records = await history.executions.list(limit=_OFFERED)
    latest = [(LAST, "the newest one")] if records else []
    return latest + [(each.execution_id, f"{each.status}: {each.title}") for each in records]


async def _plans(history: History) -> Offered:
    return [(each.plan_id, each.title) for each in await history.plans.list(limit=_OFFERED)]


async def _flows(history: History) -> Offered:
    records = await history.flows.list(limit=_OFFERED)
    return [(each.name or "", each.title) for each in records]


def _read(ctx: typer.Context, read: Callable[[History], Awaitable[Offered]]) -> Offered:
    """Return what is read of the storage directory; nothing where there is none."""

    async def in_loop() -> Offered:
        typed, settings = _typed(ctx), _settings(ctx)
        is_elsewhere = typed.get("url") or os.environ.get(URL_VARIABLE)
        if is_elsewhere or not settings.storage_dir.is_dir():
            return []
        async with ctx.find_root().obj.history(settings) as history:
            return await read(history)

    return _quietly(lambda: asyncio.run(in_loop()))


def _settings(ctx: typer.Context) -> Settings:
    """Return the settings that the command line typed so far chooses."""
    typed = _typed(ctx)
    config, storage = typed.get("config"), typed.get("storage")
    loaded: LoadedSettings = ctx.find_root().obj.settings(_path(config))
    settings = loaded.settings
    update: dict[str, Any] = {} if storage is None else {"storage_dir": _path(storage)}
    if modules := typed.get("node_modules"):
        update["node_modules"] = [*settings.node_modules, *modules]
    return settings.model_copy(update=update)


def _typed(ctx: typer.Context) -> dict[str, Any]:
    """Return the options of every command that are typed so far; one after the command goes first."""
    typed: dict[str, Any] = {}
    step: Any = ctx
    while step is not None:
        chosen = {name: value for name, value in step.params.items() if value}
        typed, step = {**chosen, **typed}, step.parent
    return typed


def _before(ctx: typer.Context) -> str:
    """Return the first argument of a command, which says what the completed one is a part of."""
    # Behind an option that still lacks its value, arguments are not read as parameters.
    named = ctx.params.get("name") or ctx.params.get("flow")
    return named or (ctx.args[0] if ctx.args else LAST)


def _path(typed: str | None) -> Path | None:
    return None if typed is None else Path(os.path.expanduser(typed))


def _quietly(read: Callable[[], Offered]) -> Offered:
    """Return what is read; nothing where that fails, as a shell would show the error in the prompt."""
    logging.disable()
    try:
        return [(value, " ".join(about.split())) for value, about in read()]
    except Exception:  # noqa: BLE001 - the boundary to the shell
        return []
    finally:
        logging.disable(logging.NOTSET)
