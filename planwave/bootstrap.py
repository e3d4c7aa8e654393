"""The composition root: the only module that knows every package.

Packages are imported inside the functions that need them, so that a command or a program loads only
the packages it uses.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import TYPE_CHECKING

from planwave.expressions.renderer import Renderer
from planwave.settings import load_settings

if TYPE_CHECKING:
    from planwave.cli.options import Factories
    from planwave.nodes.registry import Registry
    from planwave.nodes.services import NodeServices
    from planwave.planner.planner import Planner
    from planwave.providers.catalog import ProviderCatalog
    from planwave.providers.local.models import LocalModelServers
    from planwave.providers.protocols import Models, Recorder
    from planwave.service.queries.history import QueryService
    from planwave.service.service import Service
    from planwave.settings import Limits, Settings


def open_service(settings: Settings) -> Service:
    """Compose a service over the storage directory, which this process owns from now on.

    Enter it with ``async with``.

    Raises:
        StoreError: The directory cannot be used, or another process writes into it.
    """
    # Lazy: test_help_loads_no_heavy_library
    from planwave.nodes.services import NodeServices
    from planwave.providers.client import ModelClient
    from planwave.service.dependencies import ServiceDependencies
    from planwave.service.executions.parent_results import ParentCallRecorder
    from planwave.service.executions.store_retry import RetryingRecorder
    from planwave.service.flows.flow_service import FlowResolver
    from planwave.service.service import Service
    from planwave.storage.sqlite.store import SqliteStore

    limits = settings.limits
    providers, local = open_providers(settings)
    catalogue = open_catalogue(settings, providers)
    renderer = open_renderer(limits)
    store = SqliteStore.open(settings.storage_dir, artifact_bytes=limits.node_result_bytes)
    lending = ParentCallRecorder(RetryingRecorder(store))
    models = ModelClient(settings, providers, lending)
    planner = open_planner(settings, models, providers, catalogue)
    flows = FlowResolver(store, catalogue, limits)

    async def close() -> None:
        await models.close()
        await local.close()
        await renderer.close()

    return Service(
        ServiceDependencies(
            store=store,
            catalogue=catalogue,
            providers=providers,
            planner=planner,
            limits=limits,
            node_services=partial(
                NodeServices, models, providers, flows=flows, planner=planner, limits=limits
            ),
            renderer=renderer,
            directory=settings.storage_dir,
            calls=models,
            parent_calls=lending,
            close=close,
        )
    )


def open_renderer(limits: Limits) -> Renderer:
    """Return the renderer of expressions; it starts no process yet."""
    return Renderer(
        wall_s=limits.template_wall_s,
        memory_bytes=limits.template_memory_bytes,
        max_template_bytes=limits.template_bytes,
        max_output_bytes=limits.template_output_bytes,
    )


def open_history(settings: Settings) -> QueryService:
    """Open the stored data for reading only, also while another process writes."""
    # Lazy: test_help_loads_no_heavy_library
    from planwave.service.queries.history import QueryService
    from planwave.storage.sqlite.store import SqliteStore

    store = SqliteStore.open(settings.storage_dir, read_only=True)
    return QueryService(store, settings.storage_dir)


def open_providers(settings: Settings) -> tuple[ProviderCatalog, LocalModelServers]:
    """Return the provider catalogue and its embedded model; no model is loaded or called."""
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    from planwave.providers.catalog import ProviderCatalog
    from planwave.providers.local.models import LocalModelServers

    local = LocalModelServers(settings)
    return ProviderCatalog(settings, local), local


def open_catalogue(settings: Settings, providers: ProviderCatalog | None = None) -> Registry:
    """Return the node types: the library, installed packages, the modules of the operator.

    Raises:
        InputError: ``broken-node-module``.
    """
    return (
        installed_types()
        .with_modules(settings.node_modules)
        .with_providers(providers or open_providers(settings)[0], limits=settings.limits)
    )


def open_planner(
    settings: Settings, models: Models, providers: ProviderCatalog, catalogue: Registry
) -> Planner:
    """Return the planner, with the node types that plans may use here."""
    # Lazy: test_help_loads_no_heavy_library
    from planwave.planner.capabilities import PlanRules
    from planwave.planner.planner import Planner

    rules = PlanRules(settings.allowed_node_types, settings.allowed_effects)
    return Planner(models, providers, catalogue, settings.limits, rules)


@cache
def installed_types() -> Registry:
    """Load the node types of installed packages, once per process; log broken packages once."""
    # Lazy: test_help_loads_no_heavy_library
    from planwave.nodes.registry import default_registry

    return default_registry().with_entry_points()


@asynccontextmanager
async def open_model_services(
    goal: str, recorder: Recorder | None = None
) -> AsyncGenerator[NodeServices]:
    """Open the configured providers for one run from Python, which imports its own node types."""
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    from planwave.nodes.services import NodeServices
    from planwave.providers.client import ModelClient

    settings = load_settings()
    providers, local = open_providers(settings)
    models = ModelClient(settings, providers, recorder)
    catalogue = installed_types().with_providers(providers, limits=settings.limits)
    planner = open_planner(settings, models, providers, catalogue)
    try:
        yield NodeServices(models, providers, goal, planner=planner)
    finally:
        await models.close()
        await local.close()


async def serve(settings: Settings, on_listening: Callable[[str], object]) -> int:
    """Serve HTTP until a signal stops the server; return the exit code.

    Raises:
        InputError: The address is not allowed, or cannot be bound.
        StoreError: The directory cannot be used, or another process writes into it.
    """
    # Lazy: test_help_loads_no_heavy_library
    from planwave.api.server import serve

    return await serve(settings, open_service, on_listening)


def cli_factories() -> Factories:
    """Return the factories that the command line uses."""
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    from planwave.cli.options import Factories

    return Factories(
        load_settings, open_service, open_history, open_catalogue, open_providers, serve
    )
