"""Rebuilt graphs run by a service over memory, with models that echo by the rule of their case."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pydantic import SecretStr

from planwave.errors import GraphInvalid, InputError, ProviderError
from planwave.events import Event, ExecutionState
from planwave.events.logs.text_log import execution_logs
from planwave.executor.options import RunOptions
from planwave.expressions.renderer import Renderer
from planwave.graph.inputs import Inputs
from planwave.graph.model import LINK, Port
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.interop.importing.importer import import_text
from planwave.jsonio import dumps_exact
from planwave.nodes.agents.tool import TOOL, Tool, ToolCallContext
from planwave.nodes.secrets import Secret
from planwave.nodes.services import NodeServices
from planwave.outbound.client import OutboundClient
from planwave.providers.protocols import CallScope, Delta, ModelProfile, ModelReply, ModelRequest
from planwave.service.service import Service
from planwave.storage.sql.store import Store
from tests.support.llm.fake_providers import ListedProviders, library_registry
from tests.support.service.dependencies import dependencies

PROVIDERS = {
    "openai": (
        "gpt-4o-mini", "gpt-4o", "gpt-5", "gpt-4.1-2025-04-14", "gpt-4.1-mini-2025-04-14", "BOOM"
    ),
    "anthropic": ("claude", "gpt-4o-mini"),
    "x": ("y",),
}  # fmt: skip
_PROFILES = {"gpt-5": ModelProfile(web_search=True)}
SEARCH_HOST = "google.serper.dev"
"""The service that the recorded flows ask; secrets may be sent to it alone."""
SECRET = "the operator's own key"
Rule = Callable[[ModelRequest, int], str]
"""The reply to a request, given how many there were by then."""


class ConvertedGraph(NamedTuple):
    """A graph document, and what its execution is given.

    Attributes:
        document: ``{"nodes", "edges"}``.
        options: How it runs.
        inputs: Nodes that are settled from outside.
        trigger: What expressions see as ``trigger``.
        answers: To the requests, in the order in which they are made.
        secrets: The names of those that the operator provides.
    """

    document: Mapping[str, Any]
    options: RunOptions = RunOptions()
    inputs: Mapping[str, Mapping[str, Any]] = {}
    trigger: Any = None
    answers: Sequence[dict[str, Any]] = ()
    secrets: Sequence[str] = ()


def imported_graph(
    source: Mapping[str, Any], kind: str, answers: Sequence[dict[str, Any]] = ()
) -> ConvertedGraph:
    """Import a graph of another engine; it runs with the options that its report names."""
    document, report, _ = import_text(dumps_exact(source), kind)
    options: dict[str, Any] = {**report["options"]}
    secrets = tuple(each["name"] for each in report["setup"] if each["what"] == "secret")
    return ConvertedGraph({**document}, RunOptions(**options), answers=answers, secrets=secrets)


class RaisingNode:
    """A node type that fails."""

    node_type = "boom"

    async def execute(self, data: Any, inputs: Inputs, context: FlowContext) -> ExecutionResult:
        raise ValueError("boom")


class NamedTool:
    """A node type that gives one tool, which a model may see, but never calls."""

    node_type = "named_tool"
    outputs = (Port("tools", TOOL, channel=LINK),)

    async def materialize(
        self, data: Mapping[str, Any], output_handle: str, context: FlowContext
    ) -> Tool:
        async def call(arguments: Mapping[str, Any], call_context: ToolCallContext) -> Any:
            raise AssertionError(f"{data['tool']} was called")

        return Tool(data["tool"], "A tool.", {"type": "object"}, call, "none")


@dataclass
class RuleModels:
    """Satisfies ``Models``: replies follow a rule; one that raises fails the call.

    ``delay_s`` lets all that is ready ask before the first is answered; for virtual time.
    """

    rule: Rule
    delay_s: float = 0
    calls: list[tuple[str, ModelRequest]] = field(default_factory=list)

    async def stream(
        self, request: ModelRequest, scope: CallScope | None = None
    ) -> AsyncIterator[Delta | ModelReply]:
        assert scope is not None
        self.calls.append((scope.path, request))
        await asyncio.sleep(self.delay_s)
        try:
            text = self.rule(request, len(self.calls))
        except ValueError as error:
            source = {"provider": request.provider, "model": request.model}
            raise ProviderError(str(error), **source) from error
        yield Delta(text)
        yield ModelReply(text, request.provider, request.model, "stop")


@dataclass
class ConvertedRun:
    """What became of a rebuilt graph; refused ones have the codes of what is wrong and no state."""

    calls: list[tuple[str, ModelRequest]]
    refusal_codes: list[str] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)
    state: ExecutionState = field(default_factory=ExecutionState)
    events: list[Event] = field(default_factory=list)

    @property
    def outputs(self) -> dict[str, dict[str, Any]]:
        """Values by node and handle, nested nodes left out."""
        return {
            path: {handle: each["value"] for handle, each in node.outputs.items()}
            for path, node in self.state.nodes.items()
            if node.outputs and "/" not in path
        }

    @property
    def log_lines(self) -> list[str]:
        """The log in the words of the first service."""
        return execution_logs(self.events)


async def run_converted(
    rebuilt: ConvertedGraph,
    models: RuleModels,
    *,
    off: Sequence[str] = (),
    renders: bool = True,
    outbound: OutboundClient | None = None,
    store: Store | None = None,
) -> ConvertedRun:
    """Run a rebuilt graph to its end, giving its answers one after the other.

    Args:
        rebuilt: The graph.
        models: Who answers its calls.
        off: Providers that are not configured.
        renders: Whether templates may need the worker process; not in virtual time.
        outbound: Who sends its requests; None if it has none.
        store: What keeps its events; None for memory.
    """
    seen = ConvertedRun(models.calls)
    async with AsyncExitStack() as stack:
        renderer = Renderer(wall_s=60.0) if renders else None
        if renderer is not None:
            stack.push_async_callback(renderer.close)
        secrets = {
            each: Secret(each, SecretStr(SECRET), (SEARCH_HOST,)) for each in rebuilt.secrets
        }
        parts = _dependencies(models, off, renderer, outbound, secrets)
        service = await stack.enter_async_context(
            Service(parts if store is None else replace(parts, store=store))
        )
        try:
            plan = await service.plans.read(rebuilt.document)
            record = await service.executions.execute(
                plan, inputs=rebuilt.inputs, options=rebuilt.options, trigger=rebuilt.trigger
            )
        except InputError as error:
            found = error.diagnostics if isinstance(error, GraphInvalid) else ()
            seen.refusal_codes = sorted({d.code for d in found if d.severity == "error"}) or [
                error.code
            ]
            return seen
        await _answer_until_ended(service, record.execution_id, rebuilt.answers, seen)
    return seen


async def _answer_until_ended(
    service: Service, execution_id: str, answers: Sequence[dict[str, Any]], seen: ConvertedRun
) -> None:
    left = list(answers)
    while True:
        status = (await service.executions.wait(execution_id)).status
        seen.statuses.append(status)
        if status != "paused":
            break
        request, *_ = await service.executions.requests(execution_id)
        await service.executions.answer(execution_id, request.request_id, left.pop(0))
    seen.state = await service.executions.state(execution_id)
    seen.events = [event async for event in service.executions.watch(execution_id)]


def _dependencies(
    models: RuleModels,
    off: Sequence[str],
    renderer: Renderer | None,
    outbound: OutboundClient | None,
    secrets: Mapping[str, Secret],
) -> Any:
    providers: Any = ListedProviders(PROVIDERS, off=off, profiles=_PROFILES)
    catalogue = library_registry(providers, [RaisingNode(), NamedTool()])
    return replace(
        dependencies(),
        catalogue=catalogue,
        providers=providers,
        node_services=lambda goal: NodeServices(
            models, providers, goal, outbound=outbound, secrets=secrets
        ),
        renderer=renderer,
    )
