"""Triggers: which entry nodes of flows are listened for, what they received and what that started."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from planwave.errors import Conflict, InputError, LimitExceeded, NotFound, PlanwaveError
from planwave.graph.diagnostics import short_repr
from planwave.ids import new_id
from planwave.nodes.secrets import redactor_of, secret_names
from planwave.principals import Principal, acting_as, current_principal
from planwave.service.dependencies import ServiceDependencies
from planwave.service.executions.execution_service import ExecutionService
from planwave.service.flows.flow_queries import Flow, FlowQueries, FlowRef
from planwave.service.triggers.event_streams import (
    StreamEvent,
    filled_headers,
    no_outbound,
    read_event_stream,
    without_secrets,
)
from planwave.service.triggers.reply_nodes import holds_reply
from planwave.service.triggers.running import RunningDelivery, running_deliveries
from planwave.storage.triggers import DELIVERIES_SHOWN, DeliveryRecord, TriggerRecord

if TYPE_CHECKING:
    from planwave.graph.model import Json
    from planwave.shapes.common import NodeDocument
    from planwave.shapes.triggers import RejectionResponse
    from planwave.storage.records import ExecutionRecord, PageCursor

_CODE: Final = "invalid-trigger"
_HINT: Final = "list the triggers"


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger, with its node as it is in the flow now.

    Attributes:
        kind: The type of the node when the trigger was created.
        revision: The revision of the flow that it is bound to; None for the live one.
        live_revision: The revision that it starts now; None where it starts none.
        data: The validated data of the node; None with a problem.
        replies: Whether the flow has a node that answers a request, in a nested graph or not.
        problem: Why it starts nothing, or None.
        created_by: Who set it up; None where an older planwave did.
    """

    trigger_id: str
    plan_id: str
    node_id: str
    kind: str
    created_at: str
    revision: int | None
    enabled: bool
    position: str
    flow: str
    live_revision: int | None = None
    data: Any = None
    replies: bool = False
    problem: str | None = None
    created_by: Principal | None = None

    @property
    def principal(self) -> Principal:
        """The trigger as the principal of what it starts."""
        return Principal("trigger", self.trigger_id, self.kind, self.created_by)


class Rejection(NamedTuple):
    """A request to a trigger that was not authenticated: when, UTC, and why, for the operator."""

    at: str
    reason: str

    def as_json(self) -> RejectionResponse:
        """Return the rejection as JSON."""
        return {"at": self.at, "reason": self.reason}


class TriggerService:
    """The use cases of triggers: create, change and list them; process their deliveries."""

    def __init__(
        self, dependencies: ServiceDependencies, flows: FlowQueries, executions: ExecutionService
    ) -> None:
        self._dependencies = dependencies
        self._store = dependencies.store
        self._flows = flows
        self._executions = executions
        self._rejections: dict[str, Rejection] = {}

    async def create(
        self,
        plan_id: str,
        kinds: Collection[str],
        *,
        node_id: str | None = None,
        revision: int | None = None,
        trigger_id: str | None = None,
    ) -> Trigger:
        """Bind an entry node of a flow, so that it is listened for; durable when this returns.

        Args:
            plan_id: The flow.
            kinds: The node types that can be listened for.
            node_id: The entry node; None for the only one of these types.
            revision: The revision of the flow to start; None for the live one, whatever it is then.
            trigger_id: The id of the trigger, chosen by a caller that may repeat the request; if it
                exists already, it is returned.

        Raises:
            NotFound: No such flow or revision.
            InputError: ``invalid-trigger``: there is no such node, or several; ``draft-revision``.
            Conflict: ``trigger-exists``: the node has a trigger; ``not-approved``.
            LimitExceeded: ``triggers``.
        """
        if trigger_id is not None and await self._store.triggers.get(trigger_id) is not None:
            return await self.get(trigger_id)
        flow = await self._flows.to_start(plan_id, revision)
        node = _entry_node(flow, kinds, node_id)
        most, present = self._dependencies.limits.triggers, await self._store.triggers.count()
        if present >= most:
            hint = "delete some, or raise the limit triggers"
            raise LimitExceeded("triggers", most, present + 1, hint=hint)
        own_id, now = trigger_id or new_id(), self._dependencies.timestamp()
        record = TriggerRecord(
            own_id,
            plan_id,
            node["id"],
            node["type"],
            now,
            revision,
            created_by=current_principal(),
        )
        if not await self._store.triggers.create(record):
            raise Conflict(
                f"node {node['id']!r} of flow {flow.name!r} has a trigger",
                code="trigger-exists",
                hint=_HINT,
            )
        return await self.get(own_id)

    async def get(self, trigger_id: str) -> Trigger:
        """Return a trigger.

        Raises:
            NotFound: There is none of that id.
        """
        record = await self._store.triggers.get(trigger_id)
        if record is None:
            raise _not_found(trigger_id)
        return await self._resolve(record)

    async def list(
        self, *, plan_id: str | None = None, before: PageCursor | None = None, limit: int = 50
    ) -> Sequence[Trigger]:
        """Return triggers, newest first."""
        page = await self._store.triggers.page(plan_id=plan_id, before=before, limit=limit)
        return [await self._resolve(record) for record in page]

    async def set_enabled(self, trigger_id: str, *, enabled: bool) -> Trigger:
        """Enable or disable a trigger.

        Raises:
            NotFound: There is none of that id.
        """
        if not await self._store.triggers.set_enabled(trigger_id, enabled=enabled):
            raise _not_found(trigger_id)
        return await self.get(trigger_id)

    async def set_position(self, trigger_id: str, position: str) -> None:
        """Store where the adapter of a trigger continues after a restart."""
        await self._store.triggers.set_position(trigger_id, position)

    async def delete(self, trigger_id: str) -> None:
        """Delete a trigger with its deliveries; the executions that it started stay.

        Raises:
            NotFound: There is none of that id.
        """
        if not await self._store.triggers.delete(trigger_id):
            raise _not_found(trigger_id)

    async def claim_delivery(self, trigger: Trigger, key: str) -> DeliveryRecord:
        """Claim a delivery; see ``planwave.storage.sql.stores.triggers.SqlTriggers.claim``."""
        now, hours = self._dependencies.now(), self._dependencies.limits.idempotency_hours
        expired = (now - timedelta(hours=hours)).isoformat(timespec="microseconds")
        at = self._dependencies.timestamp()
        claim = await self._store.triggers.claim(trigger.trigger_id, key, at, expired=expired)
        if claim.outcome is not None:
            self.report(trigger, "duplicate")
        return claim

    async def settle_delivery(
        self,
        trigger: Trigger,
        key: str,
        outcome: str,
        *,
        note: str = "",
        reply: str | None = None,
        execution_id: str | None = None,
    ) -> None:
        """Store what became of a claimed delivery; ``execution_id``: what it started."""
        own = trigger.trigger_id
        await self._store.triggers.settle(own, key, outcome, note=note, reply=reply)
        self.report(trigger, outcome, note, execution_id)

    async def release_delivery(self, trigger: Trigger, key: str, error: Exception) -> None:
        """Forget a claimed delivery that could not be processed, so that it may come again."""
        await self._store.triggers.release(trigger.trigger_id, key)
        self.report(trigger, "failed", str(error))

    async def reject_delivery(self, trigger: Trigger, key: str, note: str) -> None:
        """Forget a claimed delivery, which may come again, and list that one was rejected."""
        await self._store.triggers.release(trigger.trigger_id, key)
        own_key = new_id()
        await self.claim_delivery(trigger, own_key)
        await self.settle_delivery(trigger, own_key, "rejected", note=note)

    def reject_stranger(self, trigger: Trigger, reason: str) -> None:
        """Note why a request that is not authenticated was rejected; nothing is stored of it."""
        self._rejections[trigger.trigger_id] = Rejection(self._dependencies.timestamp(), reason)
        self.report(trigger, "rejected", reason)

    def last_rejection(self, trigger_id: str) -> Rejection | None:
        """Return the last request of a trigger that was not authenticated, since this process began."""
        return self._rejections.get(trigger_id)

    def report(
        self, trigger: Trigger, outcome: str, note: str = "", execution_id: str | None = None
    ) -> None:
        """Tell the observers what came of something that a trigger received."""
        for observer in self._dependencies.observers:
            observer.trigger_delivered(trigger, outcome, note, execution_id)

    async def deliveries(
        self, trigger_ids: Sequence[str], limit: int = DELIVERIES_SHOWN
    ) -> Mapping[str, Sequence[DeliveryRecord]]:
        """Return the last deliveries of triggers, newest first, by trigger."""
        return await self._store.triggers.deliveries(trigger_ids, limit)

    async def running_deliveries(self, trigger: Trigger) -> Sequence[RunningDelivery]:
        """Return the deliveries of a trigger whose executions have not ended, newest first."""
        return await running_deliveries(self._store, trigger.trigger_id, trigger.plan_id)

    async def start(
        self, trigger: Trigger, values: Mapping[str, Json], delivery: DeliveryRecord
    ) -> ExecutionRecord:
        """Start the execution of a claimed delivery, unless it was started before.

        Args:
            trigger: The trigger; the live revision that it shows is started.
            values: The outputs of its node, by handle.
            delivery: The claimed delivery.

        Raises:
            QueueFull, ShuttingDown, StoreError: Nothing was started.
            InputError: The flow cannot run here.
        """
        with acting_as(trigger.principal):
            if (audit := self._dependencies.audit) is not None:
                ids = {"trigger_id": trigger.trigger_id, "new_execution_id": delivery.execution_id}
                await audit.record("execution.created", ids)
            return await self._executions.execute(
                FlowRef(trigger.plan_id, trigger.live_revision or trigger.revision),
                inputs={trigger.node_id: dict(values)},
                trigger={"id": trigger.trigger_id, "kind": trigger.kind, "delivery": delivery.key},
                execution_id=delivery.execution_id,
            )

    def read_event_stream(
        self, url: str, headers: Mapping[str, str], secret_headers: Mapping[str, str], last_id: str
    ) -> AsyncGenerator[StreamEvent]:
        """Yield the events of a stream of another service; see ``read_event_stream``.

        Args:
            url: The address of the stream.
            headers: Headers of the request.
            secret_headers: Headers that name secrets of the operator in braces.
            last_id: The id of the last event.

        Raises:
            PlanwaveError: ``no-outbound``: this service sends no requests; ``unknown-secret``,
                ``secret-refused``.
        """
        if self._dependencies.outbound is None:
            raise no_outbound()
        most = self._dependencies.limits.fetch_bytes
        secrets, redactor = self._dependencies.secrets, self._dependencies.redactor
        own = {**headers, **filled_headers(url, secret_headers, secrets)}
        sent = redactor_of(
            secrets[name] for name in secret_names(" ".join(secret_headers.values()))
        )
        return without_secrets(
            read_event_stream(self._dependencies.outbound, url, own, last_id, most),
            lambda text: redactor.text(sent.text(text)),
        )

    def problem_of_secrets(self, url: str, secret_headers: Mapping[str, str]) -> str | None:
        """Return why headers with secrets cannot be sent to a URL, or None."""
        try:
            filled_headers(url, secret_headers, self._dependencies.secrets)
        except PlanwaveError as error:
            return error.message
        return None

    async def _resolve(self, record: TriggerRecord) -> Trigger:
        flow_record = await self._flows.record(record.plan_id)
        trigger = Trigger(
            record.trigger_id,
            record.plan_id,
            record.node_id,
            record.kind,
            record.created_at,
            record.revision,
            record.enabled,
            record.position,
            flow_record.name or "",
            created_by=record.created_by,
        )
        try:
            flow = await self._flows.startable(flow_record, record.revision)
        except InputError as error:
            return replace(trigger, problem=error.message)
        data, problem = self._read_node(flow, record)
        return replace(
            trigger,
            live_revision=flow.revision,
            data=data,
            replies=holds_reply(flow.graph),
            problem=problem,
        )

    def _read_node(self, flow: Flow, record: TriggerRecord) -> tuple[Any, str | None]:
        """Return the validated data of the node of a trigger, and why it starts nothing."""
        nodes = {node["id"]: node for node in flow.graph.get("nodes", ())}
        node = nodes.get(record.node_id)
        if node is None:
            return None, f"the flow has no node {record.node_id!r} any more"
        if node["type"] != record.kind:
            return None, f"node {record.node_id!r} is a {node['type']!r} now"
        data: dict[str, Any] = node.get("data") or {}
        return self._dependencies.catalogue.read_data(record.kind, data)


def _entry_node(flow: Flow, kinds: Collection[str], node_id: str | None) -> NodeDocument:
    """Return the node of a flow to listen for.

    Raises:
        InputError: ``invalid-trigger``.
    """
    nodes = [node for node in flow.graph.get("nodes", ()) if node["type"] in kinds]
    chosen = [node for node in nodes if node_id in (None, node["id"])]
    if len(chosen) == 1:
        return chosen[0]
    ids = ", ".join(repr(node["id"]) for node in nodes)
    if not nodes:
        message = f"flow {flow.name!r} has no node that can be listened for"
        hint = f"add a node of the type {' or '.join(sorted(kinds))}"
    elif node_id is None:
        message, hint = f"flow {flow.name!r} has several entry nodes", f"name one of {ids}"
    else:
        message = f"node {short_repr(node_id)} of flow {flow.name!r} cannot be listened for"
        hint = f"name one of {ids}"
    raise InputError(message, code=_CODE, hint=hint)


def _not_found(trigger_id: str) -> NotFound:
    return NotFound(f"there is no trigger {short_repr(trigger_id)}", hint=_HINT)
