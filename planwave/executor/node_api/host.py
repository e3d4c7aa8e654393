"""The services that the nodes of one execution share, and the once values they find again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from planwave.errors import ResultNotJson
from planwave.executor.messages import OnceValueMade
from planwave.executor.node_api.context import NodeBudget, OwnWork
from planwave.executor.node_api.link_artefacts import OpenLinks
from planwave.executor.node_api.mailbox import Mailbox
from planwave.executor.node_api.nested import Admit, NestedGraphs
from planwave.executor.node_api.runtime import GraphRuntime, LinkStats
from planwave.executor.node_api.templates import resolve_data, resolve_value
from planwave.executor.options import RunOptions
from planwave.executor.ports import Redacting
from planwave.executor.state import DONE, Attempt, current_attempt
from planwave.executor.stored_runs import NO_ONCE_VALUES
from planwave.executor.values import GraphValues
from planwave.expressions.json_text import copy_json
from planwave.expressions.templates import TemplateEngine
from planwave.graph.inputs import Inputs
from planwave.graph.json_values import NotJson, to_json
from planwave.graph.model import Json
from planwave.graph.protocols import FlowContext

if TYPE_CHECKING:  # it is built on this module
    from planwave.executor.reuse.reuse import Reuse


class NodeHost:
    """The services of one execution's nodes; see ``Execution`` for the arguments.

    It changes no state: it posts messages into ``mailbox``.

    Attributes:
        services: What nodes find as ``context.services``.
        links: How often links were materialized, and how often a materialized one was used again.
        open_links: What links have opened, to be closed with their graph runs.
        redact: Returns JSON without the secrets that the services of the nodes know.
        budget: The budget of the execution; None where nothing limits it.
        may_replan: Nodes of the execution's own graph may ask for a change of it.
        variables: What expressions of the execution's own graph may name besides inputs.
        nested: The graphs that nodes run inside themselves.
    """

    def __init__(
        self,
        execution_id: str,
        variables: Mapping[str, Json] | None,
        services: object,
        chat_id: str | None,
        state: object,
        renderer: TemplateEngine | None,
        *,
        options: RunOptions = RunOptions(),  # noqa: B008 - immutable
        parent: Reuse | None = None,
        admit: Admit | None = None,
    ) -> None:
        self.links, self.open_links = LinkStats(), OpenLinks()
        self.services = services
        # Asked once: each event and result is redacted, and to ask a protocol costs more than that.
        self.redact: Callable[[Json], Json] = (
            services.redact if isinstance(services, Redacting) else _unchanged
        )
        self.mailbox = Mailbox()
        limits = options.budget_limits
        self.budget = NodeBudget(self.mailbox, limits) if limits else None
        self.may_replan = options.replans_by_nodes
        self.execution_id, self.chat_id, self.state = execution_id, chat_id, state
        self.variables: Mapping[str, Json] = dict(variables or {})
        self.nested = NestedGraphs(self.mailbox, options, parent, admit)
        self._renderer, self._parent = renderer, parent
        self._once_locks: dict[tuple[str, str], asyncio.Lock] = {}

    async def resolve_data(
        self, values: GraphValues, node: int, inputs: Inputs
    ) -> Mapping[str, Json]:
        """Return a node's data with its expressions resolved."""
        return await resolve_data(values, node, inputs, self._renderer)

    async def resolve_value(
        self, values: GraphValues, node: int, value: Json, variables: Mapping[str, Json]
    ) -> Json:
        """Return a value with its expressions resolved as in a node's data, with names added."""
        return await resolve_value(values, node, value, variables, self._renderer)

    def context(self, runtime: GraphRuntime, node: int, attempt: int) -> FlowContext:
        """Return the context of one attempt."""
        node_id = runtime.values.program.topology.ids[node]
        return FlowContext(
            node_id, self.execution_id, runtime.values.prefix + node_id, attempt, self.chat_id,
            self.state, runtime, self.services, budget=self.budget,
        )  # fmt: skip

    # -- once values -------------------------------------------------------------------------------

    async def once(self, key: str, fn: Callable[[], Awaitable[Json]]) -> Json:
        """Return a value that the current node finds again whenever it is entered; see ``RuntimeApi.once``."""
        attempt = current_attempt.get()
        _require_running(attempt)
        once_values = _once_values(attempt)
        if key in once_values:
            return copy_json(once_values[key])  # the node may change what it gets
        name = attempt.path, key
        async with self._once_locks.setdefault(name, asyncio.Lock()):
            _require_running(attempt)
            once_values = _once_values(attempt)
            if key in once_values:
                value = once_values[key]
            else:
                with OwnWork(attempt, self.mailbox):
                    value = await self._make_once_value(attempt, key, fn)
        self._once_locks.pop(name, None)
        return copy_json(value)

    async def _make_once_value(
        self, attempt: Attempt, key: str, fn: Callable[[], Awaitable[Json]]
    ) -> Json:
        reused = None if self._parent is None else await self._parent.once_value(attempt, key, self)
        raw = self.redact(await fn()) if reused is None else reused[0]
        try:
            value = copy_json(to_json(raw))
        except NotJson as error:
            raise ResultNotJson(
                f"node {attempt.path!r} was to keep, as {key!r}, a value that is {error}",
                hint="keep text, numbers, booleans, null, lists and objects with text keys",
            ) from error
        reply, stored = self.mailbox.expect_reply()
        self.mailbox.post(OnceValueMade(attempt, key, value, reply))
        try:
            await stored
        finally:
            self.mailbox.forget(reply)
        return value


def _once_values(attempt: Attempt) -> Mapping[str, Json]:
    return NO_ONCE_VALUES if attempt.node_run is None else attempt.node_run.once_values


def _require_running(attempt: Attempt) -> None:
    if attempt.phase is DONE:
        raise attempt.ended_error()


def _unchanged(value: Json) -> Json:
    return value
