"""The composition root: the only module that knows every package.

Packages are imported inside the functions that need them, so that a command or a program loads only
the packages it uses.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol

from planwave.config.files import load_settings, read_settings
from planwave.config.trust import state_directory
from planwave.errors import InputError
from planwave.expressions.renderer import Renderer

if TYPE_CHECKING:
    from datetime import datetime

    from opentelemetry.trace import TracerProvider

    from planwave.api.server import CommandServer
    from planwave.cli.context import Factories
    from planwave.mcp.servers import McpServers
    from planwave.nodes.registry import Registry
    from planwave.nodes.secrets import Secret
    from planwave.nodes.services import NodeServices
    from planwave.outbound.client import OutboundClient, OutboundLimits
    from planwave.planner.planner import Planner
    from planwave.providers.client import ModelClient
    from planwave.providers.local.models import LocalModelServers
    from planwave.providers.protocols import Models, Recorder
    from planwave.providers.registry import ProviderRegistry
    from planwave.redaction import Redactor
    from planwave.service.carriers.carrier import Carrier, Role
    from planwave.service.dependencies import ServiceDependencies
    from planwave.service.queries.history import History
    from planwave.service.service import Service
    from planwave.service.tracing import ExecutionTracer
    from planwave.settings import Limits, Settings
    from planwave.storage.audit import AuditLog
    from planwave.storage.postgres.owners import ExecutionOwners
    from planwave.storage.postgres.store import PostgresStore
    from planwave.storage.sql.store import Store

_log = logging.getLogger(__name__)

_SERVER_MODULES: Final = (
    "fastapi",
    "uvicorn.protocols.http.h11_impl",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
    "planwave.api.schemas.requests",
    "planwave.api.openapi",
    "planwave.api.server",
)
"""The slow imports of the HTTP server, in steps of about a tenth of a second."""
_LEASES: Final = 3
"""The lease of what a process claims in the database, in leases of its executions: longer than a pause that costs none."""


class _Closable(Protocol):
    async def close(self) -> None: ...


def open_service(settings: Settings, *, drives: bool = False) -> Service:
    """Compose a service over the storage directory, which this process owns from now on, or over a database.

    Enter it with ``async with``.

    Args:
        settings: The settings.
        drives: Whether this process drives executions also where a carrier hands them to any of several.

    Raises:
        InputError: ``tracing-unavailable``, ``broken-node-module``, ``storage-untrusted``,
            ``carrier-needs-database``, ``temporal-unavailable``.
        StoreError: The directory cannot be used, or another process writes into it.
    """
    # Lazy: test_help_loads_no_heavy_library
    from planwave.service.service import Service
    from planwave.storage.ownership import require_trusted

    require_trusted(settings)
    _require_database(settings)
    parts = _service_dependencies(settings, drives)
    carrier = _open_carrier(settings, parts.store, parts.capabilities)
    return Service(replace(parts, carrier=carrier, drives=drives or carrier is None))


def _service_dependencies(settings: Settings, drives: bool) -> ServiceDependencies:
    # Lazy: test_help_loads_no_heavy_library
    from planwave.nodes.services import NodeServices
    from planwave.service.chats.node_memory import ChatMemory
    from planwave.service.dependencies import ServiceDependencies
    from planwave.service.executions.parent_results import ParentCallRecorder
    from planwave.service.executions.store_retry import RetryingRecorder
    from planwave.service.flows.flow_service import FlowResolver

    limits, tracer = settings.limits, open_tracer(settings)
    providers, local = open_providers(settings)
    catalogue, renderer = open_catalogue(settings, providers), open_renderer(limits)
    capabilities, mcp = _capabilities(settings, local, drives), open_mcp_servers(settings)
    store = _open_store(settings, capabilities)
    lending, redactor = ParentCallRecorder(RetryingRecorder(store)), open_redactor(settings)
    models = open_models(settings, providers, lending, tracer, store.owners)
    secrets, outbound = open_secrets(settings), open_outbound(settings)
    planner = open_planner(settings, models, providers, catalogue, store.now)
    services = partial(
        NodeServices, models, providers, flows=FlowResolver(store, catalogue, limits),
        planner=planner, limits=limits, outbound=outbound, mcp=mcp,
        providers_fetch_images=settings.providers_fetch_images, approved_tools=store.approved_tools,
        recorder=lending, secrets=secrets, redactor=redactor, memory=ChatMemory(store), now=store.now,
    )  # fmt: skip
    return ServiceDependencies(
        store=store, catalogue=catalogue, providers=providers, planner=planner, limits=limits,
        node_services=services,
        renderer=renderer,
        directory=None if settings.database_url else settings.storage_dir,
        calls=models,
        parent_calls=lending,
        now=store.now,
        close=partial(_close_parts, (models, local, renderer, tracer)),
        require_approval=settings.require_approval,
        tracer=tracer,
        mcp_servers=mcp.kinds,
        outbound=outbound,
        notifier=open_notifier(settings),
        notification_tables=settings.notifications,
        secrets=secrets,
        redactor=redactor,
        audit=open_audit_log(settings, store.now),
        capabilities=capabilities,
        spend_warn_usd=settings.spend_warn_usd_per_day,
        public_url=settings.public_url,
        examples_from_history=settings.examples_from_history,
    )  # fmt: skip


def _capabilities(settings: Settings, local: LocalModelServers, drives: bool) -> frozenset[str]:
    """Return what this process can do for executions that others may not; found out once, at its start."""
    is_asked = drives and settings.carrier != "local" and settings.embedded_model != "never"
    return frozenset(["local"] if is_asked and local.availability()[0] else [])


def _open_carrier(settings: Settings, store: Store, capabilities: frozenset[str]) -> Carrier | None:
    """Return what hands executions to any of several processes; None where this one drives them alone.

    Raises:
        InputError: ``temporal-unavailable``.
    """
    if settings.carrier == "local":
        return None
    try:
        # Lazy: test_a_directory_needs_nothing_of_temporal
        from planwave.service.carriers.temporal import TemporalCarrier
    except ModuleNotFoundError as error:
        raise InputError(
            f'carrier = "temporal" needs the Python module {error.name}, which is not installed',
            code="temporal-unavailable",
            hint="pip install 'planwave[temporal]'",
        ) from error
    # Lazy: test_a_directory_needs_nothing_of_temporal
    from planwave.service.carriers.watchdog import Watchdog

    watchdog = Watchdog(settings.temporal.lease_s, lambda: store.stats, os._exit)
    limits, now = settings.limits, store.now
    return TemporalCarrier(settings.temporal, watchdog, limits.drain_s, now, capabilities)


def _require_database(settings: Settings) -> None:
    """Refuse a carrier of several processes that have nothing in common.

    Raises:
        InputError: ``carrier-needs-database``.
    """
    if settings.carrier != "local" and settings.database_url is None:
        raise InputError(
            f'carrier = "{settings.carrier}" hands executions to several processes, which share a database',
            code="carrier-needs-database",
            hint="set database_url",
        )


def _open_store(settings: Settings, capabilities: frozenset[str]) -> Store:
    """Open the store; log how it is used again where nothing can be recorded, as without a home."""
    # Lazy: test_help_loads_no_heavy_library
    from planwave.storage.ownership import is_remembered
    from planwave.storage.sqlite.store import SqliteStore

    directory = settings.storage_dir
    most = settings.limits.node_result_bytes
    if settings.database_url is None:
        store: Store = SqliteStore.open(directory, artifact_bytes=most)
    else:
        url = settings.database_url.get_secret_value()
        open_store = partial(_postgres_store().open, url, artifact_bytes=most)
        if settings.carrier != "local":
            lease_s = _LEASES * settings.temporal.lease_s
            return open_store(is_carried=True, lease_s=lease_s, capabilities=capabilities)
        store = open_store(directory=directory)
    if "storage_dir" not in settings.model_fields_set and not is_remembered(directory):
        _log.warning(
            "planwave cannot record that it made ./%s, because %s cannot be written: name it the next "
            "time, with --storage ./%s or PLANWAVE_STORAGE_DIR",
            directory, state_directory() or "the home directory", directory,
        )  # fmt: skip
    return store


def _postgres_store() -> type[PostgresStore]:
    """Import the store on PostgreSQL.

    Raises:
        InputError: ``postgres-unavailable``.
    """
    # Lazy: test_a_directory_needs_nothing_of_postgresql
    from planwave.storage.postgres import require_driver

    require_driver()
    # Lazy: test_a_directory_needs_nothing_of_postgresql
    from planwave.storage.postgres.store import PostgresStore

    return PostgresStore


def open_audit_log(settings: Settings, now: Callable[[], datetime]) -> AuditLog | None:
    """Return the audit log; None where the settings want none, or it is off by itself."""
    # Lazy: test_help_loads_no_heavy_library
    from planwave.storage.audit import AuditLog
    from planwave.storage.postgres import open_audit_files

    is_wanted = settings.audit_log
    if is_wanted is None:
        # Lazy: test_help_loads_no_heavy_library
        from planwave.outbound.addresses import is_loopback

        is_wanted = not is_loopback(settings.host)
    if not is_wanted:
        return None
    url = settings.database_url
    log = settings.storage_dir if url is None else open_audit_files(url.get_secret_value())
    return AuditLog(log, now)


async def _close_parts(parts: Iterable[_Closable | None]) -> None:
    for part in filter(None, parts):
        await part.close()


def open_outbound(settings: Settings) -> OutboundClient:
    """Return the client for the URLs of nodes; it holds no connection between requests."""
    # Lazy: test_help_loads_no_heavy_library
    from planwave.outbound.client import OutboundClient

    return OutboundClient(
        settings.allowed_outbound, outbound_limits(settings.limits), hosts=settings.outbound_hosts
    )


def open_notifier(settings: Settings) -> OutboundClient:
    """Return the client for notifications; a receiver that answers with a redirect refuses them."""
    # Lazy: test_help_loads_no_heavy_library
    from planwave.outbound.client import OutboundClient

    limits = replace(
        outbound_limits(settings.limits), total_s=settings.limits.notification_s, redirects=0
    )
    return OutboundClient(settings.allowed_outbound, limits, hosts=settings.outbound_hosts)


def open_secrets(settings: Settings) -> dict[str, Secret]:
    """Return the secrets of the operator that have a value in the environment."""
    # Lazy: test_help_loads_no_heavy_library
    from planwave.nodes.secrets import read_secrets

    return read_secrets(settings, os.environ)


def open_redactor(settings: Settings) -> Redactor:
    """Return what withholds the secrets of the operator from all that comes from outside."""
    # Lazy: test_help_loads_no_heavy_library
    from planwave.nodes.secrets import open_redactor

    return open_redactor(settings, os.environ)


def outbound_limits(limits: Limits) -> OutboundLimits:
    """Return the limits of a request to a URL."""
    # Lazy: test_help_loads_no_heavy_library
    from planwave.outbound.client import OutboundLimits

    return OutboundLimits(
        total_s=limits.fetch_s,
        connect_s=limits.fetch_connect_s,
        redirects=limits.fetch_redirects,
        body_bytes=limits.fetch_bytes,
        header_bytes=limits.fetch_header_bytes,
    )


def open_mcp_servers(settings: Settings) -> McpServers:
    """Return the operator's MCP servers; none is started before a run uses it."""
    # Lazy: test_help_loads_no_heavy_library
    from planwave.mcp.servers import McpServers
    from planwave.nodes.agents.server_schemas import usable_schema

    return McpServers(settings.mcp, settings.limits, adapt_schema=usable_schema)


def _described_servers(settings: Settings) -> dict[str, str | None]:
    return {name: server.description for name, server in settings.mcp.items()}


def open_models(
    settings: Settings,
    providers: ProviderRegistry,
    recorder: Recorder | None = None,
    tracer: ExecutionTracer | None = None,
    owners: ExecutionOwners | None = None,
) -> ModelClient:
    """Return the client of the providers; it makes no connection yet.

    Args:
        settings: The limits.
        providers: The configured providers.
        recorder: Stores replies.
        tracer: Makes spans of calls.
        owners: Those of a store of several processes, which share the limits of providers.
    """
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    from planwave.providers.client import ModelClient

    open_trace = None if tracer is None else tracer.open_call
    shares = None if owners is None else owners.provider_shares
    return ModelClient(settings, providers, recorder, open_trace=open_trace, shares=shares)


def open_tracer(settings: Settings) -> ExecutionTracer | None:
    """Return what makes spans of executions, None where the operator wants none.

    Raises:
        InputError: ``tracing-unavailable``: the extra is not installed.
    """
    if not settings.tracing:
        return None
    with _extra_for_tracing("set tracing to false (PLANWAVE_TRACING)"):
        # Lazy: test_no_command_loads_the_opentelemetry_sdk_without_tracing
        from planwave.service.tracing import open_otlp_tracer
        from planwave.service.tracing_content import SpanContent

    has_content = settings.tracing_content == "content"
    return open_otlp_tracer(SpanContent(open_redactor(settings)) if has_content else None)


def tracer_of_program(provider: TracerProvider | None, *, content: bool) -> ExecutionTracer:
    """Return what makes spans of the runs of a Python program.

    Args:
        provider: Gives the tracer, and is closed by the program; None for OpenTelemetry's global one.
        content: Whether spans hold what was said.

    Raises:
        InputError: ``tracing-unavailable``: the extra is not installed.
    """
    with _extra_for_tracing("leave out planwave.instrument()"):
        # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
        from opentelemetry import trace

        # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
        from planwave.service.tracing import ExecutionTracer
        from planwave.service.tracing_content import SpanContent

    redactor = open_redactor(load_settings()) if content else None
    return ExecutionTracer(
        provider or trace.get_tracer_provider(), None if redactor is None else SpanContent(redactor)
    )


@contextmanager
def _extra_for_tracing(way_out: str) -> Generator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(
            f"tracing is on, and the Python module {error.name} is not installed",
            code="tracing-unavailable",
            hint=f"pip install 'planwave[otel]', or {way_out}",
        ) from error


def open_renderer(limits: Limits) -> Renderer:
    """Return the renderer of expressions; it starts no process yet."""
    return Renderer(
        wall_s=limits.template_wall_s,
        memory_bytes=limits.template_memory_bytes,
        max_template_bytes=limits.template_bytes,
        max_output_bytes=limits.template_output_bytes,
    )


def open_history(settings: Settings) -> History:
    """Open the stored data for reading only, also while another process writes."""
    # Lazy: test_help_loads_no_heavy_library
    from planwave.service.queries.history import History
    from planwave.storage.ownership import is_trusted
    from planwave.storage.sqlite.store import SqliteStore

    if settings.database_url is not None:
        url = settings.database_url.get_secret_value()
        store: Store = _postgres_store().open(url, read_only=True)
        directory = None
    else:
        directory = settings.storage_dir
        store = SqliteStore.open(directory, read_only=True, migrates=is_trusted(settings))
    store.requires_approval = settings.require_approval
    return History(store, directory)


def open_providers(
    settings: Settings, substitute: Models | None = None
) -> tuple[ProviderRegistry, LocalModelServers]:
    """Return the configured providers and their embedded model; no model is loaded or called.

    Args:
        settings: The configuration.
        substitute: Replies in place of all providers; None for that of the process, if there is one.
    """
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    from planwave.providers.local.models import LocalModelServers
    from planwave.providers.registry import ProviderRegistry, SubstituteProviders
    from planwave.providers.substitutes import process_calls

    local = LocalModelServers(settings)
    substitute = substitute or process_calls.substitute
    if substitute is not None:
        return SubstituteProviders(settings, substitute), local
    return ProviderRegistry(settings, local, embedded_elsewhere=settings.carrier != "local"), local


def open_catalogue(settings: Settings, providers: ProviderRegistry | None = None) -> Registry:
    """Return the node types: the library, installed packages, the modules of the operator.

    Raises:
        InputError: ``broken-node-module``.
    """
    # Lazy: test_help_loads_no_heavy_library
    from planwave.nodes.registry import installed_types

    return (
        installed_types()
        .with_modules(settings.node_modules, installed=settings.installed_modules)
        .with_providers(
            providers or open_providers(settings)[0],
            limits=settings.limits,
            mcp_servers=_described_servers(settings),
            secrets=frozenset(open_secrets(settings)),
            redirect_hosts=settings.redirect_hosts,
        )
    )


def open_planner(
    settings: Settings,
    models: Models,
    providers: ProviderRegistry,
    catalogue: Registry,
    now: Callable[[], datetime],
) -> Planner:
    """Return the planner, with the node types that plans may use here."""
    # Lazy: test_help_loads_no_heavy_library
    from planwave.planner.capabilities import PlanRules
    from planwave.planner.planner import Planner

    allowed = settings.allowed_node_types, settings.allowed_effects, settings.plan_web_search
    return Planner(models, providers, catalogue, settings.limits, PlanRules(*allowed), now=now)


@asynccontextmanager
async def open_node_services(
    goal: str,
    recorder: Recorder | None = None,
    *,
    tracer: ExecutionTracer | None = None,
    substitute: Models | None = None,
) -> AsyncGenerator[NodeServices]:
    """Open the configured services for one run from Python, which imports its own node types.

    Args:
        goal: The goal of the run.
        recorder: Stores the external calls of nodes.
        tracer: Makes spans of calls.
        substitute: See ``open_providers``.
    """
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    from planwave.nodes.registry import installed_types
    from planwave.nodes.services import NodeServices, utc_now
    from planwave.service.service_log import ServiceLog

    settings = load_settings()
    providers, local = open_providers(settings, substitute)
    models = open_models(settings, providers, recorder, tracer)
    models.on_call = ServiceLog(tracer, slow_call_s=settings.log_slow_call_s).model_called
    catalogue = installed_types().with_providers(
        providers, limits=settings.limits, mcp_servers=_described_servers(settings)
    )
    planner = open_planner(settings, models, providers, catalogue, utc_now)
    try:
        yield NodeServices(
            models, providers, goal, planner=planner, outbound=open_outbound(settings),
            mcp=open_mcp_servers(settings), secrets=open_secrets(settings), recorder=recorder,
            redactor=open_redactor(settings),
            providers_fetch_images=settings.providers_fetch_images,
        )  # fmt: skip
    finally:
        await models.close()
        await local.close()


async def serve(
    settings: Settings, on_listening: Callable[[str], object], role: Role = "service"
) -> int:
    """Serve HTTP until a signal stops the server; return the exit code.

    Args:
        settings: The settings.
        on_listening: Called with the URL once requests are answered.
        role: What the process does; a worker answers for its health and its metrics alone.

    Raises:
        InputError: The address is not allowed, or cannot be bound; ``worker-needs-carrier``; see ``open_service``.
        StoreError: The directory cannot be used, or another process writes into it.
    """
    # Lazy: test_help_loads_no_heavy_library
    from planwave.api.app import create_app
    from planwave.api.server import serve

    if role != "service" and settings.carrier == "local":
        raise InputError(
            "a worker drives what a carrier hands to it, and carrier is local",
            code="worker-needs-carrier",
            hint='set carrier = "temporal" and database_url; with carrier = "local" planwave serve, '
            "without --with-worker, drives by itself",
        )
    _require_database(settings)
    create_service = partial(open_service, drives=role != "service")
    app = create_app(settings, create_service, is_worker=role == "worker")
    return await serve(settings, app, on_listening)


def open_command_server(settings: Settings, is_wanted: Callable[[], bool]) -> CommandServer | None:
    """Return the HTTP server of a command; it does not listen yet. Called in a thread.

    Args:
        settings: Those of the command.
        is_wanted: Asked between the imports; False ends them, and the result is None.
    """
    for name in _SERVER_MODULES:
        if not is_wanted():
            return None
        import_module(name)
    # Lazy: test_help_loads_no_heavy_library
    from planwave.api.server import CommandServer

    return CommandServer(settings)


def has_web_ui() -> bool:
    """Return whether the web UI is built."""
    # Lazy: test_help_loads_no_heavy_library
    from planwave.api.routes.web import BUILT_FILES, PAGE_NAME

    return (BUILT_FILES / PAGE_NAME).is_file()


def cli_factories() -> Factories:
    """Return the factories that the command line uses."""
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    from planwave.cli.context import Factories

    return Factories(
        read_settings,
        open_service,
        open_history,
        open_catalogue,
        open_providers,
        serve,
        open_mcp_servers,
        has_web_ui,
        open_command_server,
    )
