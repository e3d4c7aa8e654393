"""What the tools do: each method processes the calls of one tool."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from contextlib import aclosing
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import mcp_types

from planwave.errors import Conflict, InputError, NotFound, ShuttingDown, SlowConsumer
from planwave.events.request_text import field_of
from planwave.graph.diagnostics import short_repr
from planwave.interop.mcp_server.access import Caller
from planwave.interop.mcp_server.arguments import (
    MAX_ID_CHARS,
    AnswerArguments,
    PlanArguments,
    ResultArguments,
    RunArguments,
    StatusArguments,
)
from planwave.interop.mcp_server.outcomes import (
    is_at_rest,
    may_be_at_rest,
    outcome_of,
    status_of,
    text_of,
)
from planwave.interop.mcp_server.results import json_result, outcome_result
from planwave.interop.mcp_server.tool_list import KEY_ARGUMENT, takes_key
from planwave.service.flows.flow_queries import FlowRef

if TYPE_CHECKING:
    from planwave.graph.plan import Plan
    from planwave.interop.mcp_server.open_calls import OpenCall
    from planwave.interop.mcp_server.progress import CallProgress
    from planwave.service.flows.flow_tools import FlowTool
    from planwave.service.service import Service
    from planwave.storage.records import ExecutionRecord

_DONE: Final = 200
"""The status that is stored with the idempotency key of a call that started its execution."""
_ONE_SOURCE: Final = ("goal", "plan_id", "flow")


class Admission(NamedTuple):
    """Who calls a tool that creates an execution.

    Attributes:
        caller: See ``Caller``.
        admit: Counts the execution that is about to be created.
    """

    caller: Caller
    admit: Callable[[], object]


class ToolCalls:
    """Processes calls; one for all clients.

    Args:
        service: Plans, runs and stores.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def plan(
        self, arguments: PlanArguments, progress: CallProgress
    ) -> mcp_types.CallToolResult:
        """Plan a goal and store the plan; run nothing."""
        plan = await self._plan(
            arguments.goal,
            arguments.provider,
            arguments.model,
            progress,
            answers=arguments.answers,
        )
        document = _plan_json(plan)
        return json_result(document, _plan_text(document))

    async def run(
        self,
        arguments: RunArguments,
        call: OpenCall,
        progress: CallProgress,
        admission: Admission,
    ) -> mcp_types.CallToolResult:
        """Start an execution and wait for it.

        Args:
            arguments: The arguments.
            call: The call, whose cancellation cancels the execution.
            progress: Where the waves are reported.
            admission: Who calls.
        """
        source, caller = _source_of(arguments), admission.caller
        if source != "flow":
            caller.require_scope(None, "goals and plans")
        call.cancels_on_disconnect = arguments.on_disconnect == "cancel"
        self._service.executions.driver.check_capacity()

        async def execute(execution_id: str | None) -> ExecutionRecord:
            admission.admit()
            if source == "goal":
                ref: str | FlowRef = await self._planned(arguments, execution_id, progress)
            elif arguments.flow is not None:
                ref = FlowRef(
                    await caller.find_flow(self._service, arguments.flow), arguments.revision
                )
                if caller.flows is not None:
                    ref = await self._service.access_tokens.flow_for(ref, arguments.inputs)
            else:
                ref = str(arguments.plan_id)
            return await call.start(
                self._service.executions.execute(
                    ref, inputs=arguments.inputs, execution_id=execution_id
                )
            )

        digest = arguments.model_dump(exclude={"wait_s", "on_disconnect", "idempotency_key"})
        name = f"{caller.principal.account} run"
        record = await self._once(call, name, arguments.idempotency_key, digest, execute)
        return await self._wait(record.execution_id, progress, arguments.wait_s)

    async def run_flow(
        self,
        tool: FlowTool,
        raw_arguments: Mapping[str, Any],
        call: OpenCall,
        progress: CallProgress,
        admission: Admission,
    ) -> mcp_types.CallToolResult:
        """Run a flow that is a tool, to its end or until it waits for a person.

        Args:
            tool: The flow.
            raw_arguments: The arguments, and perhaps an idempotency key.
            call: See ``run``.
            progress: See ``run``.
            admission: See ``run``.
        """
        arguments = dict(raw_arguments)
        key = arguments.pop(KEY_ARGUMENT, None) if takes_key(tool) else None
        if key is not None and not (isinstance(key, str) and 0 < len(key) <= MAX_ID_CHARS):
            message = f"{KEY_ARGUMENT} has to be text of 1 to {MAX_ID_CHARS} characters"
            raise _invalid(message, "leave it out, or give a new UUID")
        inputs = await self._service.flow_tools.inputs(tool, arguments)

        async def execute(execution_id: str | None) -> ExecutionRecord:
            admission.admit()
            return await call.start(
                self._service.executions.execute(
                    tool.flow, inputs=inputs, execution_id=execution_id
                )
            )

        name = f"{admission.caller.principal.account} {tool.flow.plan_id}"
        record = await self._once(call, name, key, arguments, execute)
        return await self._wait(record.execution_id, progress, None)

    async def status(self, arguments: StatusArguments) -> mcp_types.CallToolResult:
        """Return how far an execution is."""
        state = await self._service.executions.state(arguments.execution_id)
        status = status_of(state)
        nodes = {node.path: node.status for node in state.nodes.values() if "/" not in node.path}
        waves = status["waves"]
        counts = f"wave {waves['current']} of {waves['total']}"
        names = ", ".join(f"{path}: {each}" for path, each in nodes.items())
        text = "\n".join((text_of(status), counts, names))
        return json_result({**status, "nodes": nodes, "usage": state.usage.as_json()}, text)

    async def result(
        self, arguments: ResultArguments, progress: CallProgress
    ) -> mcp_types.CallToolResult:
        """Return the result of an execution, or of one node; wait for it first if asked."""
        await self._follow(arguments.execution_id, progress, arguments.wait_s)
        document = await self._service.executions.document(arguments.execution_id)
        if arguments.node is not None:
            return self._node_result(document, arguments.node)
        outcome = await outcome_of(self._service, arguments.execution_id)
        # That an execution has failed is no failure of this call.
        return json_result({**outcome, "node_results": document["node_results"]}, text_of(outcome))

    async def answer(
        self, arguments: AnswerArguments, progress: CallProgress, value: object = None
    ) -> mcp_types.CallToolResult:
        """Answer a request, and wait for the execution to end or to wait again.

        Args:
            arguments: The arguments.
            progress: Where the waves are reported.
            value: The argument ``value`` as it was sent: a text that replaces a text stays one.
        """
        if (arguments.decision is None) == ("answer" not in arguments.model_fields_set):
            raise _invalid("give either decision or answer", "decision is one of the actions")
        state = await self._service.executions.state(arguments.execution_id)
        before = state.last_seq
        request_id = arguments.request_id or _only_request(
            list(state.requests), arguments.execution_id
        )
        request = state.requests.get(request_id)
        if isinstance(value, str) and isinstance(
            field_of(request and request.request, "value"), str
        ):
            arguments = arguments.model_copy(update={"value": value})
        record = await self._service.executions.answer(
            arguments.execution_id, request_id, arguments.as_answer()
        )
        after = before if record.execution_id == arguments.execution_id else 0
        return await self._wait(record.execution_id, progress, arguments.wait_s, after=after)

    # -- planning and starting

    async def _plan(
        self,
        goal: str,
        provider: str | None,
        model: str | None,
        progress: CallProgress,
        plan_id: str | None = None,
        answers: Mapping[str, str] | None = None,
    ) -> Plan:
        await progress.planning()
        plan = await self._service.plans.create(
            goal, provider, model, plan_id=plan_id, answers=answers or {}
        )
        await progress.planned(plan.title, len(plan.graph.nodes))
        return plan

    async def _planned(
        self, arguments: RunArguments, execution_id: str | None, progress: CallProgress
    ) -> str:
        """Return the id of the plan of a goal; a call that is repeated uses the plan of the first."""
        assert arguments.goal is not None  # noqa: S101 - see _source_of
        plan = await self._plan(
            arguments.goal, arguments.provider, arguments.model, progress, execution_id
        )
        return plan.plan_id

    async def _once(
        self,
        call: OpenCall,
        name: str,
        key: str | None,
        arguments: Mapping[str, Any],
        execute: Callable[[str | None], Coroutine[Any, Any, ExecutionRecord]],
    ) -> ExecutionRecord:
        """Start the execution of a call, unless a call with the same key has started it before."""
        if key is None:
            return await execute(None)
        name = f"mcp {name} {key}"
        digest = sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()
        claim = await self._service.maintenance.claim_idempotency_key(name, digest)
        if claim.digest != digest:
            raise Conflict(
                f"the idempotency key {short_repr(key)} was used with other arguments",
                code="idempotency-key-reused",
                hint="use a new key for each new call",
            )
        if not claim.is_new:
            return await call.start(self._first_execution(claim.subject, key))
        try:
            record = await execute(claim.subject)
        except asyncio.CancelledError:
            raise  # the execution may have been started: the key stays claimed
        except BaseException:
            await self._service.maintenance.release_idempotency_key(name)
            raise
        await self._service.maintenance.store_response(name, _DONE, "")
        return record

    async def _first_execution(self, execution_id: str, key: str) -> ExecutionRecord:
        try:
            return await self._service.executions.get(execution_id)
        except NotFound:
            raise Conflict(
                f"the first call with the idempotency key {short_repr(key)} has not ended",
                code="request-under-way",
                hint="call again in a moment",
            ) from None

    # -- waiting

    async def _wait(
        self, execution_id: str, progress: CallProgress, wait_s: float | None, *, after: int = 0
    ) -> mcp_types.CallToolResult:
        await self._follow(execution_id, progress, wait_s, after=after)
        return outcome_result(await outcome_of(self._service, execution_id))

    async def _follow(
        self,
        execution_id: str,
        progress: CallProgress,
        wait_s: float | None,
        *,
        after: int | None = None,
    ) -> None:
        """Report the waves of an execution until it is at rest, at most so long.

        Args:
            execution_id: The execution.
            progress: Where its waves are reported.
            wait_s: Seconds; None for no limit.
            after: The last event that is known; None returns at once if it is at rest now.
        """
        state = await self._service.executions.state(execution_id)
        if after is None:
            if is_at_rest(state):
                return
            after = state.last_seq
        progress.set_waves(state.waves.total)
        try:
            async with asyncio.timeout(wait_s):
                await self._report_until_rest(execution_id, progress, after)
        except (TimeoutError, ShuttingDown):  # the outcome says that it continues
            return

    async def _report_until_rest(
        self, execution_id: str, progress: CallProgress, after: int
    ) -> None:
        while True:
            try:
                events = self._service.executions.watch(execution_id, after=after)
                async with aclosing(events):
                    async for event in events:
                        after = event.seq or after
                        await progress.event(event)
                        if may_be_at_rest(event) and await self._is_at_rest(execution_id):
                            return
                return
            except SlowConsumer:  # the client reads slowly: go on where it is
                continue

    async def _is_at_rest(self, execution_id: str) -> bool:
        return is_at_rest(await self._service.executions.state(execution_id))

    def _node_result(self, document: Mapping[str, Any], node: str) -> mcp_types.CallToolResult:
        nodes = {each["path"]: each for each in document["nodes"]}
        entry = nodes.get(node)
        if entry is None:
            raise NotFound(
                f"execution {document['execution_id']} has no node {short_repr(node)}",
                hint=f"its nodes are {', '.join(nodes)}",
            )
        fields = ("path", "name", "status", "result", "outputs", "error", "reason")
        node_result = {name: entry[name] for name in fields}
        return json_result(node_result, entry["result"] or f"status: {entry['status']}")


def _source_of(arguments: RunArguments) -> str:
    named = [name for name in _ONE_SOURCE if getattr(arguments, name) is not None]
    if len(named) != 1:
        raise _invalid("give one of goal, plan_id and flow", "goal plans; the others exist already")
    for name, source in (("revision", "flow"), ("provider", "goal"), ("model", "goal")):
        if getattr(arguments, name) is not None and named != [source]:
            raise _invalid(f"{name} goes with {source}", f"leave {name} out, or give {source}")
    return named[0]


def _only_request(open_requests: list[str], execution_id: str) -> str:
    if len(open_requests) == 1:
        return open_requests[0]
    if not open_requests:
        raise Conflict(f"execution {execution_id} waits for no answer", hint="see its status first")
    raise InputError(
        f"execution {execution_id} has {len(open_requests)} open requests",
        code="ambiguous-request",
        hint=f"give request_id, one of {', '.join(open_requests)}",
    )


def _invalid(message: str, hint: str) -> InputError:
    return InputError(message, code="invalid-arguments", hint=hint)


def _plan_json(plan: Plan) -> dict[str, Any]:
    waves = plan.forecast.get("waves")
    assumed = any(each["assumed"] for each in plan.questions)
    nodes = [
        {"id": node.id, "name": node.name, "type": node.type, "description": node.description}
        for node in plan.graph.nodes
    ]
    edges = [
        {"source": edge.source, "target": edge.target, "channel": edge.channel}
        for edge in plan.graph.edges
    ]
    return {
        "plan_id": plan.plan_id,
        "title": plan.title,
        "nodes": nodes,
        "edges": edges,
        "waves": waves,
        "forecast": dict(plan.forecast),
        "questions": [*plan.questions],
        "next": "Call `run` with this plan_id to run it."
        + (" To change what is assumed, call `plan` again with `answers`." if assumed else ""),
    }


def _plan_text(plan: Mapping[str, Any]) -> str:
    lines = [f"{plan['title']} (plan_id: {plan['plan_id']})"]
    for each in plan["questions"]:
        head = "Assumed" if each["assumed"] else "Answered"
        lines.append(f"{head}: {each['question']} {each['answer']}")
    for node in plan["nodes"]:
        after = [e["source"] for e in plan["edges"] if e["target"] == node["id"]]
        needs = f" after {', '.join(after)}" if after else ""
        about = f": {node['description']}" if node["description"] else ""
        lines.append(f"- {node['id']} ({node['type']}){needs}{about}")
    return "\n".join([*lines, plan["next"]])
