"""What a run shares with its retries and forks: node types, store, services."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from planwave.events import Event, ExecutionState
from planwave.executor.driver.execution import utc_now
from planwave.expressions.renderer import Renderer
from planwave.graph.protocols import NodeTypes
from planwave.nodes.services import with_recorder
from planwave.providers.protocols import Models, Recorder
from planwave.service.dependencies import Tracer
from planwave.service.executions.parent_results import ParentCallRecorder
from planwave.service.library.stores import RunStore, StoreSource

OnEvents = Callable[[list[Event]], None] | None
"""Called with each batch of durable events; None where nothing is."""


class ServicesFactory(Protocol):
    """Opens what nodes find as ``context.services``, for a goal."""

    def __call__(
        self, goal: str, recorder: Recorder, *, substitute: Models | None = None
    ) -> AbstractAsyncContextManager[Any]:
        """Return a context manager, which is left when the run has ended or is paused.

        ``substitute`` replies to model calls in place of the providers.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnvironment:
    """What a run shares with its retries and forks.

    Attributes:
        catalogue: The node types.
        store: Where events are stored.
        services: What nodes find as ``context.services``; None to open them with the factory.
        services_factory: Opens the configured services for nodes that need them.
        renderer: Resolves expressions; its process ends with each run.
        check: Whether awaiting a failed run raises.
        tracer: Makes spans of the run; None makes none.
    """

    catalogue: NodeTypes
    store: StoreSource
    services: Any
    services_factory: ServicesFactory
    renderer: Renderer
    check: bool = True
    tracer: Tracer | None = None


class RunDependencies:
    """What the session of a run is made with; see ``SessionDependencies``."""

    limits = None
    require_approval = False
    timestamp = staticmethod(utc_now)

    def __init__(self, environment: RunEnvironment, store: RunStore) -> None:
        self._environment = environment
        self.store, self.catalogue = store, environment.catalogue
        self.renderer, self.parent_calls = environment.renderer, ParentCallRecorder(store)
        self.services = with_recorder(environment.services, self.parent_calls)

    @property
    def planner(self) -> Any:
        """The planner, whose rules hold for plans of models; None for the rules of all plans."""
        return getattr(self.services, "planner", None)

    @property
    def providers(self) -> Any:
        """The providers of models; None where a run has no services."""
        return getattr(self.services, "providers", None)

    @asynccontextmanager
    async def open_services(self, goal: str) -> AsyncGenerator[Any]:
        """Yield the services, which are opened for a goal where there are none yet."""
        if self.services is not None:
            yield self.services
            return
        opening = self._environment.services_factory(goal, self.parent_calls)
        async with opening as self.services:
            yield self.services

    def node_services(self, goal: str) -> Any:
        """Return what nodes find as ``context.services``; they were opened for this goal."""
        return self.services


def observe_run(
    environment: RunEnvironment, state: ExecutionState, resources: AsyncExitStack
) -> OnEvents:
    """Return what logs and traces the events of a run, as in a service; ``resources`` ends it."""
    listeners: list[Callable[[list[Event]], None]] = []
    tracer = environment.tracer
    if tracer is not None:
        tracer.started(state, tracer.current_context())
        resources.callback(tracer.execution_left, state.execution_id)
    if logging.getLogger("planwave.execution").hasHandlers():
        # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
        from planwave.service.service_log import ServiceLog

        log = ServiceLog(tracer)
        log.started(state, 0.0)
        listeners.append(log.published)
    if tracer is not None:  # after the log, whose lines name the spans that end
        listeners.append(tracer.published)

    def published(events: list[Event]) -> None:
        for listener in listeners:
            listener(events)

    return published if listeners else None
