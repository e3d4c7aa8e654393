"""The composition root: the only module that knows every room, and the ``planwave`` command.

Rooms are imported where they are put together, so that commands load only what they use.
"""

from __future__ import annotations

import sys
from functools import cache
from io import TextIOWrapper
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planwave.providers.local import LocalModels

    from planwave.nodes.registry import Registry
    from planwave.providers.catalogue import ProviderCatalogue
    from planwave.service.history import History
    from planwave.service.service import Service
    from planwave.settings import Settings


def open_service(settings: Settings) -> Service:
    """Put all rooms together over the storage directory, which belongs to this process from now on.

    Returns:
        A service to be entered: ``async with open_service(settings) as service``.

    Raises:
        StoreError: The directory cannot be used, or another process writes into it.
    """
    from planwave.expressions.renderer import Renderer
    from planwave.nodes.services import NodeServices
    from planwave.planner.planner import Planner
    from planwave.providers.client import ModelClient
    from planwave.service.service import Rooms, Service
    from planwave.storage.sqlite import SqliteStore

    limits = settings.limits
    providers, local = open_providers(settings)
    catalogue = open_catalogue(settings, providers)
    renderer = Renderer(
        wall_s=limits.template_wall_s,
        memory_bytes=limits.template_memory_bytes,
        max_template_bytes=limits.template_bytes,
        max_output_bytes=limits.template_output_bytes,
    )
    store = SqliteStore.open(settings.storage_dir)
    models = ModelClient(settings, providers, store)

    async def close() -> None:
        await models.close()
        await local.close()
        await renderer.close()

    return Service(
        Rooms(
            store=store,
            catalogue=catalogue,
            providers=providers,
            planner=Planner(models, providers, catalogue, limits),
            limits=limits,
            node_services=lambda goal: NodeServices(models, providers, goal),
            renderer=renderer,
            directory=settings.storage_dir,
            close=close,
        )
    )


def open_history(settings: Settings) -> History:
    """Open what is kept for reading only; works while another process writes."""
    from planwave.service.history import History
    from planwave.storage.sqlite import SqliteStore

    store = SqliteStore.open(settings.storage_dir, read_only=True)
    return History(store, settings.storage_dir)


def open_providers(settings: Settings) -> tuple[ProviderCatalogue, LocalModels]:
    """Give the provider catalogue and the embedded model behind it; nothing is loaded or called."""
    from planwave.providers.local import LocalModels

    from planwave.providers.catalogue import ProviderCatalogue

    local = LocalModels(settings)
    return ProviderCatalogue(settings, local), local


def open_catalogue(settings: Settings, providers: ProviderCatalogue | None = None) -> Registry:
    """Give the node types: the library, installed packages, ``@planwave.node`` functions."""
    return _installed_types().with_providers(
        providers or open_providers(settings)[0], template_bytes=settings.limits.template_bytes
    )


@cache
def _installed_types() -> Registry:
    """Look up installed packages once a process; broken ones are warned about once."""
    from planwave.nodes.registry import default_registry

    return default_registry().with_entry_points()


def main() -> None:
    """Run the ``planwave`` command."""
    from planwave.cli.app import app
    from planwave.cli.options import Composition
    from planwave.settings import load_settings

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(
        obj=Composition(load_settings, open_service, open_history, open_catalogue, open_providers),
        prog_name="planwave",
    )
