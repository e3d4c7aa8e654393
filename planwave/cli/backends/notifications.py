"""Notifications for commands: those of a service in this process, or of a running one over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from planwave.service.notifications.documents import notification_document, target_document

if TYPE_CHECKING:
    from planwave.client import AsyncClient
    from planwave.service.service import Service


class NotificationBackend(Protocol):
    """Lists and changes notifications; each is the JSON of the API."""

    async def targets(self) -> list[dict[str, Any]]:
        """Return what is notified: the targets of the operator, then those of flows."""
        ...

    async def dead(self, limit: int) -> list[dict[str, Any]]:
        """Return notifications that nobody accepted, newest first."""
        ...

    async def create_target(
        self, plan_id: str, url: str, secrets: Sequence[str], events: Sequence[str]
    ) -> dict[str, Any]: ...
    async def delete_target(self, target_id: str) -> None: ...
    async def resend(self, notification_id: str) -> dict[str, Any]: ...


class LocalNotifications:
    """The notifications of a service in this process, which does not send them."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.delete_target = service.notifications.delete_target

    async def targets(self) -> list[dict[str, Any]]:
        """See :meth:`NotificationBackend.targets`."""
        return [target_document(each) for each in await self._service.notifications.targets()]

    async def dead(self, limit: int) -> list[dict[str, Any]]:
        """See :meth:`NotificationBackend.dead`."""
        found = await self._service.notifications.list(status="dead", limit=limit)
        return [notification_document(each) for each in found]

    async def create_target(
        self, plan_id: str, url: str, secrets: Sequence[str], events: Sequence[str]
    ) -> dict[str, Any]:
        """See :meth:`NotificationService.create_target`."""
        made = await self._service.notifications.create_target(plan_id, url, secrets, events)
        return target_document(made)

    async def resend(self, notification_id: str) -> dict[str, Any]:
        """See :meth:`NotificationService.resend`."""
        return notification_document(await self._service.notifications.resend(notification_id))


class RemoteNotifications:
    """The notifications of a running service."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self.delete_target = client.delete_notification_target

    async def targets(self) -> list[dict[str, Any]]:
        """See :meth:`AsyncClient.notification_targets`."""
        return cast("list[dict[str, Any]]", (await self._client.notification_targets())["targets"])

    async def dead(self, limit: int) -> list[dict[str, Any]]:
        """See :meth:`AsyncClient.notifications`."""
        page = await self._client.notifications(status="dead", limit=limit)
        return cast("list[dict[str, Any]]", page["notifications"])

    async def create_target(
        self, plan_id: str, url: str, secrets: Sequence[str], events: Sequence[str]
    ) -> dict[str, Any]:
        """See :meth:`AsyncClient.create_notification_target`."""
        made = await self._client.create_notification_target(plan_id, url, secrets, events)
        return cast("dict[str, Any]", made)

    async def resend(self, notification_id: str) -> dict[str, Any]:
        """See :meth:`AsyncClient.resend_notification`."""
        return cast("dict[str, Any]", await self._client.resend_notification(notification_id))
