"""The triggers of one process: their adapters, and the tasks that listen for them where it leads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from planwave.errors import InputError
from planwave.ids import new_id
from planwave.log_records import write_record
from planwave.principals import principal_json
from planwave.service.service import Service
from planwave.service.service_log import TRIGGER_LOG
from planwave.service.triggers.trigger_service import Trigger
from planwave.settings import Settings
from planwave.triggers.adapter import STARTED, TEST_PREFIX, Deliveries, TriggerAdapter
from planwave.triggers.registry import installed_adapters
from planwave.triggers.webhooks import WEBHOOK, Webhooks, hook_path

if TYPE_CHECKING:
    from planwave.shapes.common import Publication
    from planwave.shapes.plans import PublicationResponse, PublishedHook
    from planwave.shapes.triggers import DeliveryResponse, TriggerResponse
    from planwave.storage.records import ExecutionRecord, PageCursor
    from planwave.storage.triggers import DeliveryRecord

_log = logging.getLogger(__name__)
_RESTART_S: Final = 5.0
"""After a listener failed, until it is started again."""
_REFRESH_S: Final = 30.0
"""How often triggers are read that another process may have changed without a note of it."""


class _Listener(NamedTuple):
    trigger: Trigger
    task: asyncio.Task[None]


class TriggerHost:
    """The triggers that this process serves; an async context manager, in which they listen where it leads.

    Args:
        service: Holds the triggers and runs the executions.
        settings: Those of the operator.
        adapters: The classes of the adapters; by default all that are installed.

    Attributes:
        webhooks: The adapter that receives requests.
    """

    def __init__(
        self,
        service: Service,
        settings: Settings,
        adapters: Iterable[type[TriggerAdapter]] | None = None,
    ) -> None:
        classes = installed_adapters() if adapters is None else adapters
        self._service = service
        self._adapters = {each.node_type: each(service, settings) for each in classes}
        webhooks = self._adapters.get(WEBHOOK)
        self.webhooks = webhooks if isinstance(webhooks, Webhooks) else Webhooks(service, settings)
        self._tasks = asyncio.TaskGroup()
        self._leading = service.leader.lead(self._listening)
        self._listeners: dict[str, _Listener] = {}
        self._problems: dict[str, str] = {}
        self._refreshing = asyncio.Lock()
        self._listens = False

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._service.plans.changes.append(self._on_flow_change)
        if self._service.is_shared:
            await self._refresh(None)  # of webhooks, which every process receives
        await self._leading.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._leading.__aexit__(None, None, None)
        self._service.plans.changes.remove(self._on_flow_change)
        await self._tasks.__aexit__(None, None, None)

    @asynccontextmanager
    async def _listening(self) -> AsyncGenerator[None]:
        """Listen within the block, as one process at a time does."""
        self._listens = True
        following: asyncio.Task[None] | None = None
        try:
            await self._refresh(None)
            if self._service.is_shared:
                following = self._tasks.create_task(self._follow())
            yield
        finally:
            self._listens = False
            if following is not None:
                following.cancel()
            for trigger_id in list(self._listeners):
                self._stop(trigger_id)

    def adapter(self, node_type: str) -> TriggerAdapter | None:
        """Return the adapter of a node type."""
        return self._adapters.get(node_type)

    async def create(
        self,
        plan_id: str,
        *,
        node_id: str | None = None,
        revision: int | None = None,
        trigger_id: str | None = None,
    ) -> Trigger:
        """Listen for an entry node of a flow; see ``TriggerService.create``."""
        trigger = await self._service.triggers.create(
            plan_id, self._adapters, node_id=node_id, revision=revision, trigger_id=trigger_id
        )
        await self._refresh(plan_id)
        self._service.plans.announce(plan_id)
        return self._checked(trigger)

    async def get(self, trigger_id: str) -> Trigger:
        """Return a trigger; ``problem`` says why it starts nothing.

        Raises:
            NotFound: There is none of this id.
        """
        return self._checked(await self._service.triggers.get(trigger_id))

    async def page(
        self, *, plan_id: str | None = None, before: PageCursor | None = None, limit: int = 50
    ) -> Sequence[Trigger]:
        """Return triggers, newest first; ``problem`` says why one starts nothing."""
        triggers = await self._service.triggers.list(plan_id=plan_id, before=before, limit=limit)
        return [self._checked(each) for each in triggers]

    async def set_enabled(self, trigger_id: str, *, enabled: bool) -> Trigger:
        """Enable or disable a trigger.

        Raises:
            NotFound: There is none of this id.
        """
        changed = await self._service.triggers.set_enabled(trigger_id, enabled=enabled)
        await self._refresh(changed.plan_id)
        self._service.plans.announce(changed.plan_id)
        return self._checked(changed)

    async def publication(self, plan_id: str) -> PublicationResponse:
        """Return what a flow is published as, in the JSON form of the API.

        Raises:
            NotFound: There is no flow of this id.
        """
        flow = await self._service.flows.get(plan_id)
        hooks: list[PublishedHook] = [
            {
                "trigger_id": each.trigger_id,
                "path": hook_path(each.trigger_id),
                "enabled": each.enabled,
            }
            for each in await self._hooks(plan_id)
        ]
        return {
            "plan_id": plan_id,
            "name": flow.name,
            "model": "model" in flow.published,
            "tool": "tool" in flow.published,
            "hooks": hooks,
        }

    async def publish(
        self, plan_id: str, changes: Mapping[Publication, bool], *, hook: bool | None = None
    ) -> PublicationResponse:
        """Publish a flow, or unpublish it; return what it is published as then.

        Args:
            plan_id: The flow.
            changes: See ``FlowService.publish``.
            hook: Whether its ``webhook`` node is listened for; None leaves that as it is.

        Raises:
            NotFound: There is no flow of this id.
            InputError: ``invalid-trigger``: it has no ``webhook`` node, or several; ``not-a-model``.
        """
        if hook is not None:
            hooks = await self._hooks(plan_id)
            if hook and not hooks:
                await self._service.triggers.create(plan_id, {WEBHOOK})
            for each in hooks:
                await self._service.triggers.set_enabled(each.trigger_id, enabled=hook)
        await self._service.flows.publish(plan_id, changes)
        return await self.publication(plan_id)

    async def _hooks(self, plan_id: str) -> list[Trigger]:
        most = self._service.limits.triggers
        triggers = await self._service.triggers.list(plan_id=plan_id, limit=most)
        return [each for each in triggers if each.kind == WEBHOOK]

    async def delete(self, trigger_id: str) -> None:
        """Delete a trigger with its deliveries.

        Raises:
            NotFound: There is none of this id.
        """
        await self._service.triggers.delete(trigger_id)
        self._stop(trigger_id)
        self._service.plans.announce()

    async def fire(
        self, trigger_id: str, value: Any = None, *, delivery_id: str | None = None
    ) -> ExecutionRecord:
        """Start the execution of a test delivery, also of a trigger that is disabled.

        Args:
            trigger_id: The trigger.
            value: What it is to have received; None for what the adapter finds typical.
            delivery_id: Identifies the delivery, for a caller that may repeat the request.

        Raises:
            NotFound: There is none of this id.
            InputError: ``invalid-trigger``: its node is gone; the value does not fit the node.
            QueueFull, ShuttingDown, StoreError: Nothing was started.
        """
        trigger = await self._service.triggers.get(trigger_id)
        adapter = self._adapters.get(trigger.kind)
        if adapter is None or trigger.problem is not None:
            raise InputError(
                trigger.problem or f"nothing listens for {trigger.kind!r} here",
                code="invalid-trigger",
                hint="change the flow, or delete the trigger",
            )
        values = adapter.test_values(trigger, value)
        claim = await self._service.triggers.claim_delivery(
            trigger, f"{TEST_PREFIX}{delivery_id or new_id()}"
        )
        record = await self._service.triggers.start(trigger, values, claim)
        await self._service.triggers.settle_delivery(
            trigger, claim.key, STARTED, note="a test delivery", execution_id=record.execution_id
        )
        return record

    async def as_json(self, triggers: Sequence[Trigger]) -> list[TriggerResponse]:
        """Return triggers with their last deliveries in the JSON form of the API."""
        deliveries = await self._service.triggers.deliveries([each.trigger_id for each in triggers])
        return [self._as_json(each, deliveries.get(each.trigger_id, ())) for each in triggers]

    def _as_json(self, trigger: Trigger, deliveries: Sequence[DeliveryRecord]) -> TriggerResponse:
        adapter = self._adapters.get(trigger.kind)
        usable = adapter is not None and trigger.data is not None
        rejection = self._service.triggers.last_rejection(trigger.trigger_id)
        return {
            "trigger_id": trigger.trigger_id,
            "kind": trigger.kind,
            "plan_id": trigger.plan_id,
            "flow": trigger.flow,
            "revision": trigger.revision,
            "live_revision": trigger.live_revision,
            "node_id": trigger.node_id,
            "enabled": trigger.enabled,
            "problem": trigger.problem,
            "created_at": trigger.created_at,
            "created_by": principal_json(trigger.created_by),
            "details": adapter.details(trigger) if adapter is not None and usable else {},
            "deliveries": [_delivery_json(each) for each in deliveries],
            "last_rejection": None if rejection is None else rejection.as_json(),
        }

    def _checked(self, trigger: Trigger) -> Trigger:
        """Return a trigger with what its adapter finds wrong."""
        if trigger.problem is not None:
            return trigger
        adapter = self._adapters.get(trigger.kind)
        if adapter is None:
            return replace(trigger, problem=f"nothing listens for {trigger.kind!r} here")
        return replace(trigger, problem=adapter.problem(trigger))

    # -- listeners

    def _on_flow_change(self, plan_id: str) -> None:
        self._tasks.create_task(self._refresh_safely(plan_id or None))

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_S)
            await self._refresh_safely(None)

    async def _refresh_safely(self, plan_id: str | None) -> None:
        try:
            await self._refresh(plan_id)
        except Exception as error:  # noqa: BLE001 - a task boundary
            _log.warning("the triggers of %s listen as before: %s", plan_id or "all flows", error)

    async def _refresh(self, plan_id: str | None) -> None:
        """Start and stop listeners as the triggers of a flow, or all of them, are now."""
        async with self._refreshing:
            triggers = await self.page(plan_id=plan_id, limit=self._service.limits.triggers)
            self.webhooks.hook_ids.update(
                e.trigger_id for e in triggers if e.kind == WEBHOOK and e.enabled
            )
            targets = {
                each.trigger_id: each
                for each in triggers
                if each.enabled and each.problem is None and self._adapters[each.kind].listens
            }
            if not self._listens:
                return
            self._log_problems(triggers)
            for trigger_id, (trigger, _) in list(self._listeners.items()):
                in_scope = plan_id in (None, trigger.plan_id)
                if in_scope and not _is_same(trigger, targets.get(trigger_id)):
                    self._stop(trigger_id)
            for trigger_id, trigger in targets.items():
                if trigger_id not in self._listeners:
                    task = self._tasks.create_task(self._listen(trigger))
                    self._listeners[trigger_id] = _Listener(trigger, task)

    def _log_problems(self, triggers: Sequence[Trigger]) -> None:
        """Log why triggers receive nothing; once for each reason."""
        for trigger in triggers:
            problem = trigger.problem if trigger.enabled else None
            if problem is not None and self._problems.get(trigger.trigger_id) != problem:
                about = {"kind": trigger.kind, "flow": trigger.flow, "trigger": trigger.trigger_id}
                write_record(
                    TRIGGER_LOG, logging.WARNING, "receives nothing", {**about, "reason": problem}
                )
            if problem is None:
                self._problems.pop(trigger.trigger_id, None)
            else:
                self._problems[trigger.trigger_id] = problem

    def _stop(self, trigger_id: str) -> None:
        listener = self._listeners.pop(trigger_id, None)
        if listener is not None:
            listener.task.cancel()

    async def _listen(self, trigger: Trigger) -> None:
        """Run the listener of a trigger until it is cancelled; start it again after a failure."""
        adapter = self._adapters[trigger.kind]
        while True:
            try:
                current = await self._service.triggers.get(trigger.trigger_id)
                deliveries = Deliveries(self._service, current, self._tasks.create_task)
                await adapter.listen(current, deliveries)
            except Exception as error:  # noqa: BLE001 - a task boundary: the service continues
                _log.warning("trigger %s (%s): %s", trigger.trigger_id, trigger.kind, error)
            await asyncio.sleep(_RESTART_S)


def _is_same(running: Trigger, current: Trigger | None) -> bool:
    """Return whether a listener can go on; where it has got to does not matter."""
    return current is not None and replace(running, position="") == replace(current, position="")


def _delivery_json(delivery: DeliveryRecord) -> DeliveryResponse:
    has_execution = delivery.outcome in (None, STARTED)
    return {
        "key": delivery.key,
        "received_at": delivery.received_at,
        "outcome": delivery.outcome,
        "note": delivery.note,
        "execution_id": delivery.execution_id if has_execution else None,
    }
