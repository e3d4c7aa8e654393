"""Methods of the client with async methods, by what they are about."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planwave.client import requests
from planwave.client.requests import RequestSpec

if TYPE_CHECKING:
    from planwave.shapes.chats import (
        ChatResponse,
        ChatsResponse,
        MessageResponse,
        ReplyResponse,
        TurnResponse,
    )
    from planwave.shapes.common import ExportFormat
    from planwave.shapes.executions import ExecutionCreated
    from planwave.shapes.plans import (
        FlowEditResponse,
        FlowResponse,
        FlowsResponse,
        InputSetResponse,
        InputSetsResponse,
        PublicationResponse,
    )
    from planwave.shapes.triggers import (
        LinkCreatedResponse,
        LinkKind,
        LinksResponse,
        NotificationResponse,
        NotificationsResponse,
        TargetResponse,
        TargetsResponse,
        TokenCreatedResponse,
        TokensResponse,
        TriggerResponse,
        TriggersResponse,
    )


class AsyncFlowMethods(ABC):
    """The methods for flows."""

    @abstractmethod
    async def _send(self, call: RequestSpec) -> Any: ...

    async def create_flow(
        self,
        name: str,
        graph: Mapping[str, Any] | None = None,
        *,
        plan_id: str | None = None,
        description: str | None = None,
        draft: bool = False,
        idempotency_key: str | None = None,
    ) -> FlowResponse:
        """Make a flow of a graph, or give a stored plan a name; durable when this returns.

        Args:
            name: The name of the flow, unique without regard to case.
            graph: ``{"nodes", "edges"}``.
            plan_id: A stored plan whose graph is saved, instead of ``graph``.
            description: The purpose of the flow; by default the title of a plan made for a goal.
            draft: Whether a graph with errors is saved, too; it cannot be executed.
            idempotency_key: Repeating the call with the same key and arguments creates one flow.

        Raises:
            GraphInvalid: The graph has errors; nothing is stored.
        """
        body: dict[str, Any] = {"name": name, "graph": graph, "plan_id": plan_id}
        body |= {"description": description, "draft": draft or None}
        return await self._send(requests.post("api", "flows", body=body, key=idempotency_key))

    async def flows(
        self,
        *,
        q: str | None = None,
        name: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> FlowsResponse:
        """Return one page of flows, newest first: ``{"flows": […], "next_cursor"}``.

        Args:
            q: Only those with this in name, title, description or goal.
            name: Only the one with this name, whatever its case.
            cursor: The ``next_cursor`` of the page before.
            limit: How many at most.
        """
        return await self._send(
            requests.get("api", "flows", q=q, name=name, cursor=cursor, limit=limit)
        )

    async def flow(self, plan_id: str, revision: int | None = None) -> FlowResponse:
        """Return a flow, in the revision that callers start or in another one."""
        return await self._send(requests.get("api", "flows", plan_id, revision=revision))

    async def update_flow(
        self,
        plan_id: str,
        *,
        name: str | None = None,
        graph: Mapping[str, Any] | None = None,
        from_plan_id: str | None = None,
        description: str | None = None,
        draft: bool = False,
        if_match: str | None = None,
        author: str | None = None,
        note: str | None = None,
        force: bool = False,
    ) -> FlowResponse:
        """Change a flow; arguments that are None leave their field unchanged.

        Args:
            plan_id: The flow to change.
            name: The new name.
            graph: The new graph; another one than the present is a new revision.
            from_plan_id: A stored plan whose graph is used, instead of ``graph``.
            description: The new description.
            draft: Whether a graph with errors is saved, too; callers go on starting the one before.
            if_match: The hash the flow must have; otherwise nothing is changed.
            author: ``person`` or ``api``, the default: who makes the new revision.
            note: The author's note on it.
            force: Whether to remove what leads to a name that is changed.

        Raises:
            PreconditionFailed: The flow has another hash than ``if_match``.
            Conflict: ``name-taken``; ``flow-in-use``: something leads to its name.
            GraphInvalid: The graph has errors; nothing was changed.
        """
        body = {
            "name": name,
            "graph": graph,
            "from_plan_id": from_plan_id,
            "description": description,
            "draft": draft or None,
            "author": author,
            "note": note,
        }
        return await self._send(
            requests.put("api", "flows", plan_id, body=body, if_match=if_match, force=force or None)
        )

    async def edit_flow(
        self,
        plan_id: str,
        operations: Sequence[Mapping[str, Any]],
        *,
        if_match: str,
        author: str | None = None,
        note: str | None = None,
    ) -> FlowEditResponse:
        """Apply operations to a flow, all or none; a graph with errors is refused.

        Args:
            plan_id: The flow to change.
            operations: As those of ``AsyncClient.edit_plan``.
            if_match: The hash the flow must have; ``*`` for any.
            author: ``person`` or ``api``, the default: who makes the new revision.
            note: The author's note on it.

        Raises:
            PreconditionFailed: The flow has the hash ``error.current``; nothing was changed.
            InvalidOperation: An operation cannot be applied; nothing was changed.
            GraphInvalid: The changed graph has errors; nothing was changed.
        """
        body = {"operations": list(operations), "author": author, "note": note}
        return await self._send(
            requests.patch("api", "flows", plan_id, body=body, if_match=if_match)
        )

    async def publication(self, plan_id: str) -> PublicationResponse:
        """Return what a flow is published as."""
        return await self._send(requests.get("api", "flows", plan_id, "publication"))

    async def publish_flow(
        self,
        plan_id: str,
        *,
        model: bool | None = None,
        tool: bool | None = None,
        hook: bool | None = None,
    ) -> PublicationResponse:
        """Publish a flow, or unpublish it; arguments that are None change nothing.

        Args:
            plan_id: The flow.
            model: Whether it is a model of ``/v1/models``.
            tool: Whether it is a tool of the MCP server.
            hook: Whether its ``webhook`` node is listened for.
        """
        body = {"model": model, "tool": tool, "hook": hook}
        path = ("api", "flows", plan_id, "publication")
        return await self._send(requests.put(*path, body=body))

    async def input_sets(self, plan_id: str) -> InputSetsResponse:
        """Return the inputs that are saved of a flow: ``{"input_sets": […]}``."""
        return await self._send(requests.get("api", "flows", plan_id, "input-sets"))

    async def save_input_set(
        self,
        plan_id: str,
        name: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        new_name: str | None = None,
    ) -> InputSetResponse:
        """Save inputs of a flow under a name, in place of those that have it; or give those another name.

        Raises:
            InputError: ``invalid-inputs``: an execution would refuse them.
            NotFound: Nothing is saved under the name, and no inputs are given.
            Conflict: ``name-taken``: others have the new name.
        """
        path = ("api", "flows", plan_id, "input-sets", name)
        body = {"inputs": inputs, "name": new_name}
        return await self._send(requests.put(*path, body=body))

    async def delete_input_set(self, plan_id: str, name: str) -> None:
        """Delete the inputs that are saved under a name."""
        await self._send(requests.delete("api", "flows", plan_id, "input-sets", name))

    async def delete_flow(self, plan_id: str, *, force: bool = False) -> None:
        """Delete a flow with its revisions; its executions are kept.

        Raises:
            Conflict: ``flow-in-use``: something leads to its name, and ``force`` is not set.
        """
        await self._send(requests.delete("api", "flows", plan_id, force=force or None))

    async def remove_name(self, plan_id: str, *, force: bool = False) -> None:
        """Take the name of a flow away; the plan is kept. Errors are those of ``delete_flow``."""
        await self._send(requests.delete("api", "flows", plan_id, "name", force=force or None))

    async def execute_flow(
        self,
        flow: str,
        *,
        revision: int | None = None,
        inputs: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        start: bool = True,
        require_approval: bool = False,
        idempotency_key: str | None = None,
    ) -> ExecutionCreated:
        """Execute a flow, or one of its revisions.

        Args:
            flow: The flow to execute, by its name or its id.
            revision: One of its revisions; by default the one that callers start.
            inputs: ``{node_id: {handle: value}}``: preset results of nodes; ``{handle: value}`` if
                the graph has one entry node.
            options: As in ``AsyncClient.execute``.
            start: Queue the execution now; if False, call ``AsyncClient.start`` later.
            require_approval: Ask a person before the first node starts.
            idempotency_key: Repeating the call with the same key and arguments creates one
                execution.
        """
        call = requests.execute_flow(
            flow, revision, inputs, options, start, idempotency_key, require_approval
        )
        return await self._send(call)


class AsyncExportMethods(ABC):
    """The methods that return a graph as text: Mermaid, DOT, YAML, JSON Schema, Python."""

    @abstractmethod
    async def _send(self, call: RequestSpec) -> Any: ...

    async def export_graph(
        self, to: ExportFormat, graph: Mapping[str, Any] | None = None, *, title: str = ""
    ) -> str:
        """Return a graph as text; nothing is stored.

        Args:
            to: The format.
            graph: ``{"nodes", "edges"}``; not needed for ``json-schema``.
            title: What the picture or the document is called.

        Raises:
            GraphInvalid: A part of the graph cannot be read.
        """
        body = {"to": to, "graph": graph, "title": title}
        return await self._send(requests.post("api", "export", body=body)._replace(is_text=True))

    async def export_plan(self, plan_id: str, to: ExportFormat) -> str:
        """Return the newest revision of a plan as text of a format."""
        return await self._send(_export("plans", plan_id, to))

    async def export_flow(self, plan_id: str, to: ExportFormat, revision: int | None = None) -> str:
        """Return a flow as text of a format, in its live revision or another one."""
        return await self._send(_export("flows", plan_id, to, revision=revision))

    async def export_execution(self, execution_id: str, to: ExportFormat) -> str:
        """Return the graph of an execution as text of a format; pictures have the status of each node."""
        return await self._send(_export("executions", execution_id, to))


def _export(kind: str, own_id: str, to: ExportFormat, **query: Any) -> RequestSpec:
    return requests.get("api", kind, own_id, "export", to=to, **query)._replace(is_text=True)


class AsyncTriggerMethods(ABC):
    """The methods for what calls flows: triggers, access tokens of other programs; and for links."""

    @abstractmethod
    async def _send(self, call: RequestSpec) -> Any: ...

    async def create_trigger(
        self,
        plan_id: str,
        *,
        node_id: str | None = None,
        revision: int | None = None,
        idempotency_key: str | None = None,
    ) -> TriggerResponse:
        """Listen for an entry node of a flow.

        Args:
            plan_id: The flow.
            node_id: Its entry node; not needed where only one can be listened for.
            revision: The revision of the flow that it starts; by default the live one, whatever it is
                then.
            idempotency_key: Repeating the call with the same key and arguments creates one trigger.
        """
        body = {"plan_id": plan_id, "node_id": node_id, "revision": revision}
        return await self._send(requests.post("api", "triggers", body=body, key=idempotency_key))

    async def triggers(
        self, *, plan_id: str | None = None, cursor: str | None = None, limit: int | None = None
    ) -> TriggersResponse:
        """Return one page of triggers with their last deliveries, newest first."""
        return await self._send(
            requests.get("api", "triggers", plan_id=plan_id, cursor=cursor, limit=limit)
        )

    async def trigger(self, trigger_id: str) -> TriggerResponse:
        """Return a trigger with its last deliveries."""
        return await self._send(requests.get("api", "triggers", trigger_id))

    async def enable_trigger(self, trigger_id: str) -> TriggerResponse:
        """Have a trigger start executions."""
        return await self._send(requests.post("api", "triggers", trigger_id, "enable"))

    async def disable_trigger(self, trigger_id: str) -> TriggerResponse:
        """Have a trigger start nothing until it is enabled."""
        return await self._send(requests.post("api", "triggers", trigger_id, "disable"))

    async def fire_trigger(
        self, trigger_id: str, value: Any = None, *, idempotency_key: str | None = None
    ) -> ExecutionCreated:
        """Start an execution as if a trigger had received something.

        Args:
            trigger_id: The trigger; it may be disabled.
            value: What it is to have received; None for what is typical of its kind.
            idempotency_key: Repeating the call with the same key and value starts one execution.
        """
        path = ("api", "triggers", trigger_id, "fire")
        return await self._send(requests.post(*path, body={"value": value}, key=idempotency_key))

    async def tokens(self) -> TokensResponse:
        """Return all access tokens, newest first."""
        return await self._send(requests.get("api", "tokens"))

    async def create_token(
        self,
        name: str,
        scopes: Sequence[str],
        flows: Sequence[str],
        *,
        requests_per_minute: int | None = None,
        executions_per_minute: int | None = None,
        expires_in_s: float | None = None,
    ) -> TokenCreatedResponse:
        """Create an access token; only the response has its text.

        Args:
            name: Who gets it.
            scopes: ``chat``, ``run``, ``read``.
            flows: The ids of the flows for which it is.
            requests_per_minute: Its own limit of requests.
            executions_per_minute: Its own limit of executions.
            expires_in_s: Seconds for which it is valid; by default for ever.
        """
        body = {
            "name": name,
            "scopes": list(scopes),
            "flows": list(flows),
            "requests_per_minute": requests_per_minute,
            "executions_per_minute": executions_per_minute,
            "expires_in_s": expires_in_s,
        }
        return await self._send(requests.post("api", "tokens", body=body))

    async def revoke_token(self, token_id: str) -> None:
        """Revoke an access token."""
        await self._send(requests.delete("api", "tokens", token_id))

    async def create_link(
        self,
        execution_id: str,
        kind: LinkKind = "result",
        *,
        request_id: str | None = None,
        expires_in_s: float | None = None,
    ) -> LinkCreatedResponse:
        """Create a link that shows a result, or answers one request, without a token; only the response has its key.

        Args:
            execution_id: The execution.
            kind: ``result``, ``run`` (with what each step delivered), or ``request``.
            request_id: Of ``request``: which.
            expires_in_s: Seconds for which it is valid.
        """
        body = {"kind": kind, "request_id": request_id, "expires_in_s": expires_in_s}
        return await self._send(
            requests.post("api", "executions", execution_id, "links", body=body)
        )

    async def links(
        self,
        *,
        execution_id: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> LinksResponse:
        """Return one page of the links that still open something, newest first."""
        return await self._send(
            requests.get("api", "links", execution_id=execution_id, cursor=cursor, limit=limit)
        )

    async def revoke_link(self, link_id: str) -> None:
        """Revoke a link."""
        await self._send(requests.delete("api", "links", link_id))

    async def delete_trigger(self, trigger_id: str) -> None:
        """Delete a trigger with its deliveries; the flow and its executions are kept."""
        await self._send(requests.delete("api", "triggers", trigger_id))


class AsyncChatMethods(ABC):
    """The methods for chats."""

    @abstractmethod
    async def _send(self, call: RequestSpec) -> Any: ...

    async def create_chat(
        self,
        plan_id: str | None = None,
        *,
        config: Mapping[str, Any] | None = None,
        title: str = "",
        plan_revision: int | None = None,
        node_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> ChatResponse:
        """Create a chat with a flow, or with a model.

        Args:
            plan_id: The flow that replies.
            config: What replies without a flow; docs/chat.md has its fields.
            title: By default the beginning of the first message.
            plan_revision: Of the flow; None for the live one, whatever it is then.
            node_id: The entry node of the flow; None for the only one.
            idempotency_key: Repeating the call with the same key and arguments creates one chat.
        """
        body = {
            "plan_id": plan_id,
            "config": config,
            "title": title,
            "plan_revision": plan_revision,
            "node_id": node_id,
        }
        return await self._send(requests.post("api", "chats", body=body, key=idempotency_key))

    async def chats(
        self, *, q: str | None = None, cursor: str | None = None, limit: int | None = None
    ) -> ChatsResponse:
        """Return one page of chats, newest first, without their messages."""
        return await self._send(requests.get("api", "chats", q=q, cursor=cursor, limit=limit))

    async def chat(self, chat_id: str) -> ChatResponse:
        """Return a chat with all its messages."""
        return await self._send(requests.get("api", "chats", chat_id))

    async def delete_chat(self, chat_id: str) -> None:
        """Delete a chat with its messages; its executions are kept."""
        await self._send(requests.delete("api", "chats", chat_id))

    async def send_message(
        self,
        chat_id: str,
        message: str,
        *,
        images: Sequence[Any] = (),
        files: Sequence[Mapping[str, Any]] = (),
        idempotency_key: str | None = None,
    ) -> TurnResponse:
        """Say something after the last reply; return the message and the reply that was started."""
        body = {"message": message, "images": list(images), "files": list(files)}
        path = ("api", "chats", chat_id, "messages")
        return await self._send(requests.post(*path, body=body, key=idempotency_key))

    async def edit_message(
        self,
        chat_id: str,
        message_id: str,
        message: str,
        *,
        idempotency_key: str | None = None,
    ) -> TurnResponse:
        """Say something in place of a message; both are kept."""
        path = ("api", "chats", chat_id, "messages", message_id, "edit")
        body = {"message": message}
        return await self._send(requests.post(*path, body=body, key=idempotency_key))

    async def retry_message(
        self, chat_id: str, message_id: str, *, idempotency_key: str | None = None
    ) -> ReplyResponse:
        """Have another reply given beside a reply."""
        path = ("api", "chats", chat_id, "messages", message_id, "retry")
        return await self._send(requests.post(*path, key=idempotency_key))

    async def continue_message(
        self, chat_id: str, message_id: str, *, idempotency_key: str | None = None
    ) -> ReplyResponse:
        """Have a reply continued, as another one beside it."""
        path = ("api", "chats", chat_id, "messages", message_id, "continue")
        return await self._send(requests.post(*path, key=idempotency_key))

    async def cancel_message(self, chat_id: str, message_id: str) -> MessageResponse:
        """Cancel a reply, also one that has not started."""
        path = ("api", "chats", chat_id, "messages", message_id, "cancel")
        return await self._send(requests.post(*path))


class AsyncNotificationMethods(ABC):
    """The methods for notifications, which are sent to URLs when executions end."""

    @abstractmethod
    async def _send(self, call: RequestSpec) -> Any: ...

    async def create_notification_target(
        self,
        plan_id: str,
        url: str,
        secrets: Sequence[str],
        events: Sequence[str] | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> TargetResponse:
        """Notify a URL of the executions of a flow.

        Args:
            plan_id: The flow.
            url: The address that messages are sent to.
            secrets: The names of the operator's secrets that sign them.
            events: ``completed``, ``failed``, ``cancelled``, ``waiting``; by default the first three.
            idempotency_key: Repeating the call with the same key and arguments creates one target.
        """
        body = {"plan_id": plan_id, "url": url, "secrets": secrets, "events": events}
        path = ("api", "notification-targets")
        return await self._send(requests.post(*path, body=body, key=idempotency_key))

    async def notification_targets(self) -> TargetsResponse:
        """Return the URLs that are notified: those of the operator, then those of flows."""
        return await self._send(requests.get("api", "notification-targets"))

    async def delete_notification_target(self, target_id: str) -> None:
        """Delete a target of a flow with its notifications."""
        await self._send(requests.delete("api", "notification-targets", target_id))

    async def notifications(
        self, *, status: str | None = None, cursor: str | None = None, limit: int | None = None
    ) -> NotificationsResponse:
        """Return one page of notifications, newest first: all, or those of one status."""
        return await self._send(
            requests.get("api", "notifications", status=status, cursor=cursor, limit=limit)
        )

    async def notification(self, notification_id: str) -> NotificationResponse:
        """Return a notification."""
        return await self._send(requests.get("api", "notifications", notification_id))

    async def resend_notification(self, notification_id: str) -> NotificationResponse:
        """Have a notification sent again, under the same id."""
        return await self._send(requests.post("api", "notifications", notification_id, "resend"))
