# Generated from async_methods.py by tools/unasync.py; do not edit. Run: make generate
"""Methods of the client with blocking methods, by what they are about."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from planwave.client import requests
from planwave.client.requests import RequestSpec
from planwave.client.types import (
    ExecutionCreated,
    FlowResponse,
    FlowsResponse,
    FlowVersionsResponse,
    NotificationResponse,
    NotificationsResponse,
    TargetResponse,
    TargetsResponse,
    TriggerResponse,
    TriggersResponse,
)


class FlowMethods(ABC):
    """The methods for flows."""

    @abstractmethod
    def _send(self, call: RequestSpec) -> Any: ...

    def create_flow(
        self,
        name: str,
        graph: Mapping[str, Any] | None = None,
        *,
        plan_id: str | None = None,
        description: str | None = None,
        idempotency_key: str | None = None,
    ) -> FlowResponse:
        """Save a graph, or the graph of a stored plan, as a flow; durable when this returns.

        Args:
            name: The name of the flow; names need not be unique.
            graph: ``{"nodes", "edges"}``.
            plan_id: A stored plan whose graph is saved, instead of ``graph``.
            description: The purpose of the flow; by default the goal of the plan.
            idempotency_key: Repeating the call with the same key and arguments creates one flow.

        Raises:
            GraphInvalid: The graph has errors; nothing is stored.
        """
        body = {"name": name, "graph": graph, "plan_id": plan_id, "description": description}
        return self._send(requests.post("api", "flows", body=body, key=idempotency_key))

    def flows(
        self, *, q: str | None = None, cursor: str | None = None, limit: int | None = None
    ) -> FlowsResponse:
        """Return one page of flows, newest first: ``{"flows": […], "next_cursor"}``."""
        return self._send(requests.get("api", "flows", q=q, cursor=cursor, limit=limit))

    def flow(self, flow_id: str, version: str | None = None) -> FlowResponse:
        """Return a flow, in its current or in the given version."""
        return self._send(requests.get("api", "flows", flow_id, version=version))

    def flow_versions(
        self, flow_id: str, *, cursor: str | None = None, limit: int | None = None
    ) -> FlowVersionsResponse:
        """Return one page of versions, newest first: ``{"versions": […], "next_cursor"}``."""
        path = ("api", "flows", flow_id, "versions")
        return self._send(requests.get(*path, cursor=cursor, limit=limit))

    def update_flow(
        self,
        flow_id: str,
        *,
        name: str | None = None,
        graph: Mapping[str, Any] | None = None,
        plan_id: str | None = None,
        description: str | None = None,
        if_match: str | None = None,
    ) -> FlowResponse:
        """Change a flow; arguments that are None leave their field unchanged.

        Args:
            flow_id: The flow to change.
            name: The new name.
            graph: The new graph; a graph the flow never had before becomes a new version.
            plan_id: A stored plan whose graph is used, instead of ``graph``.
            description: The new description.
            if_match: The version the flow must have; otherwise nothing is changed.

        Raises:
            PreconditionFailed: The flow has another version than ``if_match``.
            GraphInvalid: The graph has errors; nothing was changed.
        """
        body = {"name": name, "graph": graph, "plan_id": plan_id, "description": description}
        return self._send(requests.put("api", "flows", flow_id, body=body, if_match=if_match))

    def edit_flow(
        self, flow_id: str, operations: Sequence[Mapping[str, Any]], *, if_match: str
    ) -> FlowResponse:
        """Apply operations to the name and the graph of a flow, all or none.

        Args:
            flow_id: The flow to change.
            operations: As those of :meth:`Client.edit_plan`; ``set_title`` changes the name.
            if_match: The version the flow must have; ``*`` for any.

        Raises:
            PreconditionFailed: The flow has the version ``error.current``; nothing was changed.
            InvalidOperation: An operation cannot be applied; nothing was changed.
            GraphInvalid: The changed graph has errors; nothing was changed.
        """
        body = {"operations": list(operations)}
        return self._send(requests.patch("api", "flows", flow_id, body=body, if_match=if_match))

    def delete_flow(self, flow_id: str) -> None:
        """Delete a flow with all its versions; its executions are kept."""
        self._send(requests.delete("api", "flows", flow_id))

    def execute_flow(
        self,
        flow_id: str,
        *,
        version: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        start: bool = True,
        require_approval: bool = False,
        idempotency_key: str | None = None,
    ) -> ExecutionCreated:
        """Execute a flow, or one of its versions.

        Args:
            flow_id: The flow to execute.
            version: One of its versions; by default the current one.
            inputs: ``{node_id: {handle: value}}``: preset results of nodes; ``{handle: value}`` if
                the graph has one entry node.
            options: As in :meth:`Client.execute`.
            start: Queue the execution now; if False, call :meth:`Client.start` later.
            require_approval: Ask a person before the first node starts.
            idempotency_key: Repeating the call with the same key and arguments creates one
                execution.
        """
        call = requests.execute_flow(
            flow_id, version, inputs, options, start, idempotency_key, require_approval
        )
        return self._send(call)


class TriggerMethods(ABC):
    """The methods for triggers, the entry nodes of flows that are listened for."""

    @abstractmethod
    def _send(self, call: RequestSpec) -> Any: ...

    def create_trigger(
        self,
        flow_id: str,
        *,
        node_id: str | None = None,
        version: str | None = None,
        idempotency_key: str | None = None,
    ) -> TriggerResponse:
        """Listen for an entry node of a flow.

        Args:
            flow_id: The flow.
            node_id: Its entry node; not needed where only one can be listened for.
            version: The version of the flow that it starts; by default the newest, whatever it is
                then.
            idempotency_key: Repeating the call with the same key and arguments creates one trigger.
        """
        body = {"flow_id": flow_id, "node_id": node_id, "version": version}
        return self._send(requests.post("api", "triggers", body=body, key=idempotency_key))

    def triggers(
        self, *, flow_id: str | None = None, cursor: str | None = None, limit: int | None = None
    ) -> TriggersResponse:
        """Return one page of triggers with their last deliveries, newest first."""
        return self._send(
            requests.get("api", "triggers", flow_id=flow_id, cursor=cursor, limit=limit)
        )

    def trigger(self, trigger_id: str) -> TriggerResponse:
        """Return a trigger with its last deliveries."""
        return self._send(requests.get("api", "triggers", trigger_id))

    def enable_trigger(self, trigger_id: str) -> TriggerResponse:
        """Have a trigger start executions."""
        return self._send(requests.post("api", "triggers", trigger_id, "enable"))

    def disable_trigger(self, trigger_id: str) -> TriggerResponse:
        """Have a trigger start nothing until it is enabled."""
        return self._send(requests.post("api", "triggers", trigger_id, "disable"))

    def fire_trigger(
        self, trigger_id: str, value: Any = None, *, idempotency_key: str | None = None
    ) -> ExecutionCreated:
        """Start an execution as if a trigger had received something.

        Args:
            trigger_id: The trigger; it may be disabled.
            value: What it is to have received; None for what is typical of its kind.
            idempotency_key: Repeating the call with the same key and value starts one execution.
        """
        path = ("api", "triggers", trigger_id, "fire")
        return self._send(requests.post(*path, body={"value": value}, key=idempotency_key))

    def delete_trigger(self, trigger_id: str) -> None:
        """Delete a trigger with its deliveries; the flow and its executions are kept."""
        self._send(requests.delete("api", "triggers", trigger_id))


class NotificationMethods(ABC):
    """The methods for notifications, which are sent to URLs when executions end."""

    @abstractmethod
    def _send(self, call: RequestSpec) -> Any: ...

    def create_notification_target(
        self,
        flow_id: str,
        url: str,
        secrets: Sequence[str],
        events: Sequence[str] | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> TargetResponse:
        """Notify a URL of the executions of a flow.

        Args:
            flow_id: The flow.
            url: The address that messages are sent to.
            secrets: The names of the operator's secrets that sign them.
            events: ``completed``, ``failed``, ``cancelled``, ``waiting``; by default the first three.
            idempotency_key: Repeating the call with the same key and arguments creates one target.
        """
        body = {"flow_id": flow_id, "url": url, "secrets": secrets, "events": events}
        path = ("api", "notification-targets")
        return self._send(requests.post(*path, body=body, key=idempotency_key))

    def notification_targets(self) -> TargetsResponse:
        """Return the URLs that are notified: those of the operator, then those of flows."""
        return self._send(requests.get("api", "notification-targets"))

    def delete_notification_target(self, target_id: str) -> None:
        """Delete a target of a flow with its notifications."""
        self._send(requests.delete("api", "notification-targets", target_id))

    def notifications(
        self, *, status: str | None = None, cursor: str | None = None, limit: int | None = None
    ) -> NotificationsResponse:
        """Return one page of notifications, newest first: all, or those of one status."""
        return self._send(
            requests.get("api", "notifications", status=status, cursor=cursor, limit=limit)
        )

    def notification(self, notification_id: str) -> NotificationResponse:
        """Return a notification."""
        return self._send(requests.get("api", "notifications", notification_id))

    def resend_notification(self, notification_id: str) -> NotificationResponse:
        """Have a notification sent again, under the same id."""
        return self._send(requests.post("api", "notifications", notification_id, "resend"))
