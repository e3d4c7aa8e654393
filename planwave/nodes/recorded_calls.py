"""External calls of nodes, recorded so that none is made twice: tools, MCP servers, HTTP.

Model calls are recorded by the client of the models. All calls of an attempt have one scope, and so
one sequence of numbers.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, Final, Literal, cast

from planwave.errors import NodeError, PlanwaveError, ResultNotJson, StoreError
from planwave.expressions.json_text import copy_json
from planwave.graph.json_values import NotJson, size_of, to_json
from planwave.graph.model import Json
from planwave.graph.plan import canonical_json
from planwave.graph.protocols import FlowContext
from planwave.nodes.services import NodeServices, utc_now
from planwave.providers.protocols import CallKey, CallScope, Recorder
from planwave.providers.recordings import KIND, find_record, idempotency_key
from planwave.redaction import NOTHING_SECRET

MAX_REQUEST_BYTES: Final = 4_096
"""A larger request is left out of its record; it is known by its hash."""
_BEGUN: Final = "/begun"
"""What follows the hash of a call in the key of the note that it has begun."""
_SCOPE: Final = "call_scope"

CallState = Literal["new", "begun", "recorded"]


def call_scope(context: FlowContext) -> CallScope:
    """Return the scope of all external calls of an attempt."""
    scope = context.local.get(_SCOPE)
    if scope is None:
        scope = context.local[_SCOPE] = CallScope(
            context.run_id, context.path, context.attempt, context.answers, context.time_left_s,
            context.idle, context.loading,
        )  # fmt: skip
        scope.warn = partial(_warn, context)
    return cast("CallScope", scope)


def _warn(context: FlowContext, message: str) -> None:
    context.emit("log", {"message": message, "level": "warning"})


class ExternalCall:
    """One external call of an attempt: recorded, without secrets, before its result is returned.

    An attempt that is entered again after a crash is served the recorded result, or the recorded
    failure, as long as it makes the same calls in the same order.

    Args:
        context: The context of the attempt.
        kind: ``tool``, ``mcp``, ``http``, ``flow``, ``agent`` or ``fetch``; for the document.
        name: What is called; for the document.
        request: What identifies the call, as JSON. It is stored if it is small: no secrets.
        definition: What else identifies the call, such as the definition of a tool; it is not stored.
        ordinal: The number of the call, taken before from ``call_scope(context).next_ordinal()``; None
            takes the next one. Take numbers in a fixed order, then call side by side.
        nests: Whether the call is a nested run. Any other call is own work of the node, which is
            not parked while the call is made and recorded.

    Attributes:
        key: The key of its record.
    """

    def __init__(
        self,
        context: FlowContext,
        kind: str,
        name: str,
        request: Json,
        *,
        definition: str = "",
        ordinal: int | None = None,
        nests: bool = False,
    ) -> None:
        self._kind, self._name, self._request = kind, name, request
        self._own_work = nullcontext if nests else context.own_work
        self._scope = call_scope(context)
        number = self._scope.next_ordinal() if ordinal is None else ordinal
        identity: list[Json] = [kind, name, request, *([definition] if definition else [])]
        request_hash = hashlib.sha256(canonical_json(identity).encode("utf-8")).hexdigest()
        scope = self._scope
        self.key = CallKey(scope.execution_id, scope.path, scope.attempt, number, request_hash)
        services = context.services
        has_services = isinstance(services, NodeServices)
        self._recorder: Recorder | None = services.recorder if has_services else None
        self._redactor = services.redactor if has_services else NOTHING_SECRET
        self._now = services.now if has_services else utc_now

    @property
    def idempotency_key(self) -> str:
        """The same whenever this call is made again, by later attempts too."""
        return idempotency_key(self.key)

    async def state(self, number: int = 0) -> CallState:
        """Return what is known of the call before it is made.

        ``recorded``: ``run`` returns its result without a call. ``begun``: it was begun for the
        time ``number`` (``begin``), or even made, by this attempt or by the one that a fork
        continues, and there is no result to be served: it may have acted.
        """
        if self._recorder is None:
            return "new"
        if await find_record(self._recorder, self.key, self._scope) is not None:
            return "recorded"
        beside = [self._key_of_begin(number)]
        if not number:
            beside.append(self.key)
        for key in beside:  # the note first: what a fork finds of its parent becomes its own
            if await self._recorder.recorded(key) is not None:
                return "begun"
        return "new"

    async def begin(self, number: int = 0) -> None:
        """Note that the call is about to act; durable on return. For what must not act twice.

        Args:
            number: How often the call was begun before, and cut off.
        """
        if self._recorder is not None:
            await self._recorder.record(self._key_of_begin(number), {"at": self._timestamp()})

    def _key_of_begin(self, number: int) -> CallKey:
        ending = f"{_BEGUN}/{number}" if number else _BEGUN
        return self.key._replace(request_hash=self.key.request_hash + ending)

    async def run(
        self, make: Callable[[], Awaitable[Json]], *, keep: tuple[type[PlanwaveError], ...] = ()
    ) -> Json:
        """Return the recorded result of the call, or make it and record its result.

        Args:
            make: Makes the call; its result is JSON.
            keep: Failures that are recorded like results, and raised again in its place; other
                failures are not recorded, and the call is made again.

        Raises:
            Exception: One of ``keep``, also from the record; whatever else ``make`` raises.
            ResultNotJson: The result is not JSON.
            StoreError: The result cannot be stored, or a record is invalid.
        """
        with self._own_work():
            if self._recorder is None:
                return await self._make(make)
            return await self._recorded(self._recorder, make, keep)

    async def _recorded(
        self,
        recorder: Recorder,
        make: Callable[[], Awaitable[Json]],
        keep: tuple[type[PlanwaveError], ...],
    ) -> Json:
        record = await find_record(recorder, self.key, self._scope)
        if record is not None:
            return _result_of(record, keep)
        started_at, clock = self._timestamp(), asyncio.get_running_loop().time
        began = clock()
        failure: PlanwaveError | None = None
        outcome: dict[str, Json]
        try:
            outcome = {"result": await self._make(make)}
        except keep as error:
            failure, outcome = error, {"error": _as_record(error)}
        duration_s = round(clock() - began, 6)
        facts = {KIND: self._kind, "name": self._name, "started_at": started_at}
        if size_of(self._request) <= MAX_REQUEST_BYTES:
            facts["request"] = self._request
        await recorder.record(self.key, {**facts, "duration_s": duration_s, **outcome})
        if failure is not None:
            raise failure
        return outcome["result"]

    def _timestamp(self) -> str:
        return self._now().isoformat(timespec="microseconds")

    async def _make(self, make: Callable[[], Awaitable[Json]]) -> Json:
        try:
            reply = await make()
        except PlanwaveError as error:
            self._redactor.clean(error)
            raise
        try:
            return self._redactor.value(copy_json(to_json(reply)))
        except NotJson as error:
            raise ResultNotJson(f"call of {self._name!r} gave a result that is {error}") from error


async def record_call(
    context: FlowContext,
    kind: str,
    name: str,
    request: Json,
    make: Callable[[], Awaitable[Json]],
    *,
    ordinal: int | None = None,
    keep: tuple[type[PlanwaveError], ...] = (),
) -> Json:
    """Return the recorded result of an external call, or make it; see ``ExternalCall``."""
    return await ExternalCall(context, kind, name, request, ordinal=ordinal).run(make, keep=keep)


def _as_record(error: PlanwaveError) -> dict[str, Json]:
    return {
        "type": type(error).__name__,
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "retryable": error.retryable,
    }


def _result_of(record: dict[str, Any], keep: tuple[type[PlanwaveError], ...]) -> Json:
    """Return the result in a record, or raise the failure in it."""
    if "result" in record:
        return record["result"]
    try:
        stored = cast("dict[str, Any]", record["error"])
        kinds: dict[str, type[PlanwaveError]] = {each.__name__: each for each in keep}
        kind = kinds.get(stored["type"], NodeError)
        error = kind(stored["message"], code=stored["code"], hint=stored["hint"])
        error.retryable = bool(stored["retryable"])
    except (KeyError, TypeError) as cause:
        raise StoreError(
            f"a recorded call cannot be read: {type(cause).__name__}",
            code="bad-record",
            hint="run the execution again",
        ) from cause
    raise error
