"""Calls of tools: approval, the call itself, its record and its events.

A model asks for those of one reply, which are made side by side; a step that calls a tool without a
model makes one. All that is said of a call here holds for both.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Final, NamedTuple, cast

from planwave.errors import (
    GraphInvalid,
    LimitExceeded,
    PermanentError,
    PlanwaveError,
    StoreError,
    ToolError,
)
from planwave.expressions.json_text import to_text
from planwave.graph.diagnostics import short_repr
from planwave.graph.json_values import NotJson, size_of, to_json
from planwave.graph.model import Json
from planwave.graph.plan import canonical_json
from planwave.graph.protocols import FlowContext
from planwave.graph.reading.strict_json import parse_strict_json
from planwave.graph.suggestions import closest_match
from planwave.jsonio import dumps_exact
from planwave.nodes.agents.delegation import Delegation
from planwave.nodes.agents.once_calls import OnceCalls
from planwave.nodes.agents.tool import AGENT, FLOW, Approval, Tool, ToolCallContext
from planwave.nodes.agents.tool_questions import (
    CallAbandoned,
    GivenResult,
    Rejected,
    ask_after_interruption,
    ask_approval,
    ask_repetition,
)
from planwave.nodes.recorded_calls import ExternalCall, call_scope
from planwave.nodes.services import NodeServices, approved_tools_of, limits_of
from planwave.providers.protocols import PromptMessage, ToolCall, ToolSpec
from planwave.redaction import NOTHING_SECRET
from planwave.source_locations import own_frame, traceback_of

_MAX_SHOWN_CHARS: Final = 16_384
"""The longest result in an event; the whole one is in the record of the call, found by its number."""
_FINGERPRINT_CHARS: Final = 16
"""Of a tool's fingerprint, in the names of what is kept of a call."""
_NESTED_KINDS: Final = frozenset({AGENT, FLOW})
"""Kinds whose calls are nested runs."""
_FATAL: Final = (StoreError, LimitExceeded)
"""Errors of the run itself, which no model can do anything about."""
_INTERRUPTS: Final = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt)
"""What ends the call, the node or the process, whatever a tool does."""


class _Made(NamedTuple):
    """What a call gave, and the arguments that a person wrote in place of the requested ones."""

    result: Json
    changed: Mapping[str, Json] | None = None

    @property
    def for_model(self) -> Json:
        """The result as a model reads it, which does not know what a person changed."""
        if self.changed is None:
            return self.result
        changed = f"(A person changed the arguments of this call to {to_text(dict(self.changed))}.)"
        return f"{changed}\n{to_text(self.result)}"


class ToolCalls:
    """Makes the calls of one attempt of an agent, or of a step that calls a tool.

    Args:
        tools: The tools of the agent; their names are unique.
        context: The context of the attempt.
        delegation: Where the agent is, if another agent called it.
        approval: When a person approves calls, besides what each tool says; the stricter holds.
        parallel: Whether the calls of one reply are made at the same time.
        caller: What makes the calls, in questions to people.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        context: FlowContext,
        delegation: Delegation,
        *,
        approval: Approval = "never",
        parallel: bool = True,
        caller: str = "agent",
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._context = context
        self._scope = call_scope(context)
        self._delegation = delegation
        self._once = OnceCalls(context, delegation)
        self._approval: Approval = approval
        self._parallel = parallel
        self._caller = caller
        self._delegations = 0
        self._begun: dict[int, asyncio.Event] = {}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as a model is offered them."""
        return tuple(tool.spec for tool in self._tools.values())

    async def run(self, calls: Sequence[ToolCall]) -> list[PromptMessage]:
        """Make the calls of one reply; return their results for the model, in the order of the calls.

        A call that fails, is rejected or is not valid has an error as its result, which the model sees.

        Raises:
            NodeError: A person let an interrupted call fail.
            StoreError, LimitExceeded: The run itself cannot go on.
        """
        numbered = [
            (self._scope.next_ordinal(), call, self._exceeds_delegations(call)) for call in calls
        ]
        if not self._parallel or len(calls) == 1:
            return [await self._run_one(*each) for each in numbered]
        self._begun = {ordinal: asyncio.Event() for ordinal, _, _ in numbered}
        try:
            async with self._context.task_group() as group:
                tasks = [group.create_task(self._run_one(*each)) for each in numbered]
        except BaseExceptionGroup as errors:
            raise _first(errors) from errors
        return [await task for task in tasks]

    def _exceeds_delegations(self, call: ToolCall) -> bool:
        """Count a call of another agent; return whether it is one too many."""
        tool, limits = self._tools.get(call.name), limits_of(self._context)
        if tool is None or tool.kind != AGENT or limits is None:
            return False
        self._delegations += 1
        return self._delegations > limits.subagent_calls

    async def call(self, name: str, arguments: Mapping[str, Json], call_id: str) -> Json:
        """Make one call that no model asked for; return its result.

        Args:
            name: The tool.
            arguments: Its arguments.
            call_id: The id of the call; the same when the attempt runs again.

        Raises:
            ToolError: It failed, a person rejected it (``rejected``), or the arguments do not fit
                (``invalid-arguments``).
            NodeError, StoreError, LimitExceeded: See ``run``.
        """
        call = ToolCall(call_id, name, dumps_exact(dict(arguments)))
        return await self._made(self._scope.next_ordinal(), call, lambda made: made.result)

    async def _run_one(
        self, ordinal: int, call: ToolCall, exceeds_delegations: bool
    ) -> PromptMessage:
        try:
            result = await self._made(
                ordinal,
                call,
                lambda made: made.for_model,
                exceeds_delegations=exceeds_delegations,
            )
        except ToolError as error:
            text, is_error = f"Error: {error.message}", True
        else:
            text, is_error = to_text(result), False
        return PromptMessage(
            "tool", text, tool_call_id=call.id, tool_name=call.name, is_error=is_error
        )

    async def _made(
        self,
        ordinal: int,
        call: ToolCall,
        shown: Callable[[_Made], Json],
        *,
        exceeds_delegations: bool = False,
    ) -> Json:
        """Make a call, and emit how it ends; return its result as it is shown.

        Raises:
            ToolError: It failed, was rejected, or is not valid.
        """
        began = time.monotonic()
        tool = self._tools.get(call.name)
        try:
            if exceeds_delegations:
                raise ToolError("no more calls of other agents are allowed", code="limit-exceeded")
            tool, arguments = self._valid(call)
            result = shown(await self._approved_call(ordinal, call, tool, arguments))
        except ToolError as error:
            facts: dict[str, Json] = {"error": {"code": error.code, "message": error.message}}
            if traceback := self._traceback_of(error):
                facts |= {"traceback": traceback, "ordinal": ordinal}
            self._emit_end("error", ordinal, self._event(call, tool) | facts, began)
            raise
        event = self._event(call, tool) | _result_facts(result, ordinal)
        self._emit_end("end", ordinal, event, began)
        return result

    def _emit_end(self, ending: str, ordinal: int, event: dict[str, Json], began: float) -> None:
        self._note_begun(ordinal)
        tool = self._tools.get(str(event["name"]))
        duration_s = round(time.monotonic() - began, 6)
        self._context.emit(f"{_prefix(tool)}_call_{ending}", event | {"duration_s": duration_s})

    def _traceback_of(self, error: ToolError) -> str:
        """Return the traceback of what a person's code raised in a tool, for the operator; "" for others."""
        cause, services = error.__cause__, self._context.services
        if cause is None or own_frame(cause) is None:
            return ""
        has_services = isinstance(services, NodeServices)
        return traceback_of(cause, (services.redactor if has_services else NOTHING_SECRET).text)

    def _note_begun(self, ordinal: int) -> None:
        """Let the next of the parallel calls begin: this one has begun, has ended, or waits for a person."""
        if (begun := self._begun.get(ordinal)) is not None:
            begun.set()

    def _valid(self, call: ToolCall) -> tuple[Tool, dict[str, Json]]:
        """Return the tool of a call and its arguments.

        Raises:
            ToolError: There is no such tool, or the arguments are not JSON or do not fit its schema.
        """
        tool = self._tools.get(call.name)
        if tool is None:
            near = closest_match(call.name, self._tools)
            meant = f" Did you mean {near!r}?" if near else f" There are: {', '.join(self._tools)}."
            raise ToolError(
                f"there is no tool {short_repr(call.name)}.{meant}", code="unknown-tool"
            )
        try:
            arguments = parse_strict_json(call.arguments or "{}")
        except GraphInvalid as error:
            message = f"the arguments are not valid JSON: {error.message}"
            raise ToolError(message, code="invalid-arguments") from error
        return tool, _checked(tool, arguments)

    async def _approved_call(
        self, ordinal: int, call: ToolCall, tool: Tool, arguments: dict[str, Json]
    ) -> _Made:
        """Make a call that a person has approved, where that is needed.

        Raises:
            ToolError: It was rejected, or failed; the model sees that.
        """
        requested: dict[str, Json] | None = None
        has_changed = await self._has_changed(ordinal, tool)
        if has_changed or self._needs_approval(tool):
            key = f"approve-{self._context.attempt}-{ordinal}"
            self._note_begun(ordinal)
            if has_changed:
                key = f"{key}-{tool.fingerprint[:_FINGERPRINT_CHARS]}"
            answer = await ask_approval(
                tool, call.id, key, arguments, self._context, has_changed=has_changed
            )
            if isinstance(answer, Rejected):
                raise _rejection(answer)
            await self._note_approval(tool)
            if answer.arguments != arguments:
                requested, arguments = arguments, _checked(tool, dict(answer.arguments))
        result = await self._recorded(ordinal, call, tool, arguments, requested)
        return _Made(result, None if requested is None else arguments)

    async def _has_changed(self, ordinal: int, tool: Tool) -> bool:
        """Return whether a server describes its tool differently since a person last approved a call.

        An attempt that is executed again finds what it found before: the answer to its question is of that.
        """
        approved, server = approved_tools_of(self._context), tool.details.get("server")
        if approved is None or not tool.fingerprint:
            return False
        last = await approved.fingerprint(str(server), str(tool.details.get("tool")))
        if last is None:
            return False

        async def compare() -> Json:
            return last != tool.fingerprint

        ending = tool.fingerprint[:_FINGERPRINT_CHARS]
        key = f"changed-{self._context.attempt}-{ordinal}-{ending}"
        return bool(await self._context.runtime.once(key, compare))

    async def _note_approval(self, tool: Tool) -> None:
        approved, server = approved_tools_of(self._context), tool.details.get("server")
        if approved is not None and tool.fingerprint:
            await approved.approve(str(server), str(tool.details.get("tool")), tool.fingerprint)

    def _needs_approval(self, tool: Tool) -> bool:
        rules = {tool.approval, self._approval}
        return "always" in rules or ("write" in rules and tool.effect in ("write", "once"))

    async def _recorded(
        self,
        ordinal: int,
        call: ToolCall,
        tool: Tool,
        arguments: dict[str, Json],
        requested: dict[str, Json] | None,
    ) -> Json:
        """Make a call, or return its recorded result; a person decides about one that was cut off.

        A nested run goes on where it was cut off; its own nodes ask about what must not happen twice.
        """
        request: dict[str, Json] = {"arguments": arguments}
        external = ExternalCall(
            self._context,
            tool.kind,
            tool.name,
            request,
            definition=tool.definition,
            ordinal=ordinal,
            nests=tool.kind in _NESTED_KINDS,
        )
        if not tool.is_recorded:
            return await self._act(external, ordinal, call, tool, arguments, requested)
        decided: GivenResult | CallAbandoned | ToolError | None = None
        if tool.effect == "once":
            try:
                decided = await self._begin(external, ordinal, call, tool, arguments)
            except (CallAbandoned, ToolError) as error:
                decided = error

        async def make() -> Json:
            match decided:
                case GivenResult(value):
                    return value
                case CallAbandoned() | ToolError():
                    raise decided
                case None:
                    return await self._act(external, ordinal, call, tool, arguments, requested)

        # What a person decided is recorded too: the tool may have acted, and forks are served a rejection.
        return await external.run(make, keep=(ToolError, CallAbandoned))

    async def _begin(
        self,
        external: ExternalCall,
        ordinal: int,
        call: ToolCall,
        tool: Tool,
        arguments: dict[str, Json],
    ) -> GivenResult | None:
        """Note that a call begins which must not happen twice.

        A person decides each time that it was cut off, and may give the result. A person also decides
        about a call that may repeat one of an earlier attempt or execution.

        Raises:
            CallAbandoned: The person lets it fail.
            ToolError: A person rejects the call.
        """
        for number in count():
            state = await external.state(number)
            if state == "new":
                if not number:
                    await self._ask_repetition(ordinal, call, tool, arguments)
                await external.begin(number)
                await self._once.note(tool.name)
            if state != "begun" or tool.kind in _NESTED_KINDS:
                return None
            key = f"interrupted-{self._context.attempt}-{ordinal}-{number}"
            self._note_begun(ordinal)
            repetition = await ask_after_interruption(tool, call.id, key, arguments, self._context)
            if repetition is not None:
                return repetition
        return None

    async def _ask_repetition(
        self, ordinal: int, call: ToolCall, tool: Tool, arguments: dict[str, Json]
    ) -> None:
        is_approved = self._needs_approval(tool)
        if not await self._once.may_repeat(tool.name, is_approved=is_approved):
            return
        key = f"repeat-{self._context.attempt}-{ordinal}"
        self._note_begun(ordinal)
        rejected = await ask_repetition(
            tool, call.id, key, arguments, self._context, caller=self._caller
        )
        if rejected is not None:
            raise _rejection(rejected)

    async def _act(
        self,
        external: ExternalCall,
        ordinal: int,
        call: ToolCall,
        tool: Tool,
        arguments: dict[str, Json],
        requested: dict[str, Json] | None,
    ) -> Json:
        """Call a tool.

        Raises:
            ToolError: It failed.
        """
        run_key = _run_key(tool, ordinal, call)
        start = self._event(call, tool) | {"arguments": arguments}
        if tool.kind in _NESTED_KINDS:
            start["run_key"] = run_key
        if requested is not None:
            start["requested_arguments"] = requested
        kind = f"{_prefix(tool)}_call_start"
        if (before := self._begun.get(ordinal - 1)) is not None:
            await (
                before.wait()
            )  # calls of one reply begin in the order in which the model made them
        if tool.effect in ("write", "once"):
            await self._context.record(kind, start)  # on disk before the tool acts
        else:
            self._context.emit(kind, start)
        self._note_begun(ordinal)
        call_context = ToolCallContext(
            self._context,
            call.id,
            external.idempotency_key,
            self._delegation.depth,
            run_key,
        )
        time_limit = asyncio.timeout(tool.timeout_s)
        with _failures_for_the_model(tool, time_limit):
            async with time_limit:
                result = _as_json(await tool.call(arguments, call_context))
            self._check_size(result)
            return result

    def _check_size(self, result: Json) -> None:
        """Refuse a result that is too large for a conversation.

        Raises:
            ToolError: ``limit-exceeded``: ``tool_result_bytes``.
        """
        limits = limits_of(self._context)
        if limits is not None and (size := size_of(result)) > limits.tool_result_bytes:
            raise ToolError(
                f"the call was made, but its result has {size} bytes, and may have "
                f"{limits.tool_result_bytes} (limit tool_result_bytes): ask for less",
                code=LimitExceeded.code,
            )

    def _event(self, call: ToolCall, tool: Tool | None) -> dict[str, Json]:
        return {
            "call_id": call.id,
            "parent_call_id": self._delegation.call_id,
            "name": call.name,
            "kind": "tool" if tool is None else tool.kind,
            "node_id": None if tool is None else tool.node_id,
            "path": self._context.path,
            "depth": self._delegation.depth,
            **({} if tool is None else tool.details),
        }


def _prefix(tool: Tool | None) -> str:
    return "subagent" if tool is not None and tool.kind == AGENT else "tool"


def _result_facts(result: Json, ordinal: int) -> dict[str, Json]:
    """Return a result for the event of a call, the beginning of its text where it is long."""
    text = to_text(result)
    if len(text) <= _MAX_SHOWN_CHARS:
        return {"result": result}
    more = {"truncated": True, "chars": len(text), "ordinal": ordinal}
    return {"result": text[:_MAX_SHOWN_CHARS], **more}


def _rejection(answer: Rejected) -> ToolError:
    note = f" They wrote: {answer.note}" if answer.note else ""
    message = f"a person rejected this call; it was not made.{note}"
    return ToolError(message, code="rejected")


def _run_key(tool: Tool, ordinal: int, call: ToolCall) -> str:
    """Return the name of a nested run: the call finds it again after a crash, no other call does."""
    digest = hashlib.sha256(canonical_json(list(call)).encode()).hexdigest()
    return f"{tool.name}-{ordinal}-{digest[:8]}"


def _checked(tool: Tool, arguments: Json) -> dict[str, Json]:
    """Return arguments that fit the schema of a tool.

    Raises:
        ToolError: They do not; the message names everything that is wrong.
        NodeError: ``invalid-tool``: the schema is unusable, whatever the model sends.
    """
    # Lazy: test_the_schema_library_is_loaded_only_for_forms
    from planwave.nodes.json_schema import check_schema, validate

    if not isinstance(arguments, dict):
        message = f"the arguments are an object, not {short_repr(arguments)}"
        raise ToolError(message, code="invalid-arguments")
    errors = validate(cast("Json", tool.parameters), arguments)
    if errors and (unusable := check_schema(cast("Json", tool.parameters))):
        if tool.checks_arguments:
            return cast("dict[str, Json]", arguments)
        raise PermanentError(
            f"the tool {tool.name!r} has no usable JSON Schema: {unusable[0].message}",
            code="invalid-tool",
            hint="correct its parameters",
        )
    if errors:
        reasons = "; ".join(f"{error.pointer or 'arguments'}: {error.message}" for error in errors)
        message = f"the arguments do not fit the tool: {reasons}"
        raise ToolError(message, code="invalid-arguments")
    return cast("dict[str, Json]", arguments)


@contextmanager
def _failures_for_the_model(tool: Tool, time_limit: asyncio.Timeout) -> Generator[None]:
    """Turn whatever a tool raises into a ``ToolError``, but for what ends the agent or the process."""
    try:
        yield
    except (ToolError, *_FATAL, *_INTERRUPTS):
        raise
    except PlanwaveError as error:
        raise ToolError(
            error.message, code=error.code, hint=error.hint, retryable=error.retryable
        ) from error
    except BaseException as error:
        if time_limit.expired():
            message = f"the tool did not answer within {tool.timeout_s:g} s"
            raise ToolError(message, code="tool-timeout") from error
        raise ToolError(": ".join(filter(None, (type(error).__name__, str(error))))) from error


def _as_json(value: object) -> Json:
    try:
        return to_json(value)
    except NotJson as error:
        raise ToolError(f"the tool gave no JSON: {error}", code="result-not-json") from error


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error in a group, which another may have caused."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseException", error.exceptions[0])
    return error
