"""Triggers for commands: those of a service in this process, or of a running one over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from planwave.triggers.host import TriggerHost

if TYPE_CHECKING:
    from planwave.client import AsyncClient
    from planwave.service.flows.flow_queries import Publication
    from planwave.service.service import Service
    from planwave.settings import Settings

_PAGE: int = 200


class TriggerBackend(Protocol):
    """Lists and changes triggers; each is the JSON of ``TriggerResponse``."""

    async def all(self) -> list[dict[str, Any]]:
        """Return all triggers, newest first."""
        ...

    async def create(
        self, plan_id: str, node_id: str | None, revision: int | None
    ) -> dict[str, Any]: ...
    async def set_enabled(self, trigger_id: str, *, enabled: bool) -> dict[str, Any]: ...
    async def delete(self, trigger_id: str) -> None: ...
    async def publish(
        self, plan_id: str, changes: Mapping[Publication, bool], hook: bool | None
    ) -> dict[str, Any]:
        """Publish a flow, or unpublish it; return the JSON of ``PublicationResponse``."""
        ...

    async def fire(self, trigger_id: str, value: Any) -> str:
        """Start the execution of a test delivery; return its id."""
        ...


class LocalTriggers:
    """The triggers of a service in this process, which does not listen for them."""

    def __init__(self, service: Service, settings: Settings) -> None:
        self._host = TriggerHost(service, settings)
        self._service = service
        self.delete = self._host.delete

    async def publish(
        self, plan_id: str, changes: Mapping[Publication, bool], hook: bool | None
    ) -> dict[str, Any]:
        """See :meth:`TriggerHost.publish`."""
        return await self._host.publish(plan_id, changes, hook=hook)

    async def all(self) -> list[dict[str, Any]]:
        """See :meth:`TriggerBackend.all`."""
        return await self._host.as_json(await self._host.page(limit=self._service.limits.triggers))

    async def create(
        self, plan_id: str, node_id: str | None, revision: int | None
    ) -> dict[str, Any]:
        """See :meth:`TriggerHost.create`."""
        made = await self._host.create(plan_id, node_id=node_id, revision=revision)
        return (await self._host.as_json([made]))[0]

    async def set_enabled(self, trigger_id: str, *, enabled: bool) -> dict[str, Any]:
        """See :meth:`TriggerHost.set_enabled`."""
        changed = await self._host.set_enabled(trigger_id, enabled=enabled)
        return (await self._host.as_json([changed]))[0]

    async def fire(self, trigger_id: str, value: Any) -> str:
        """See :meth:`TriggerHost.fire`; the execution has come to rest when this returns."""
        record = await self._host.fire(trigger_id, value)
        await self._service.wait(record.execution_id)
        return record.execution_id


class RemoteTriggers:
    """The triggers of a running service."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self.delete = client.delete_trigger

    async def publish(
        self, plan_id: str, changes: Mapping[Publication, bool], hook: bool | None
    ) -> dict[str, Any]:
        """See :meth:`AsyncClient.publish_flow`."""
        made = await self._client.publish_flow(plan_id, **changes, hook=hook)
        return cast("dict[str, Any]", made)

    async def all(self) -> list[dict[str, Any]]:
        """See :meth:`TriggerBackend.all`."""
        found: list[dict[str, Any]] = []
        cursor = None
        while True:
            page = await self._client.triggers(cursor=cursor, limit=_PAGE)
            found += cast("list[dict[str, Any]]", page["triggers"])
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    async def create(
        self, plan_id: str, node_id: str | None, revision: int | None
    ) -> dict[str, Any]:
        """See :meth:`AsyncClient.create_trigger`."""
        made = await self._client.create_trigger(plan_id, node_id=node_id, revision=revision)
        return cast("dict[str, Any]", made)

    async def set_enabled(self, trigger_id: str, *, enabled: bool) -> dict[str, Any]:
        """See :meth:`AsyncClient.enable_trigger`."""
        change = self._client.enable_trigger if enabled else self._client.disable_trigger
        return cast("dict[str, Any]", await change(trigger_id))

    async def fire(self, trigger_id: str, value: Any) -> str:
        """See :meth:`AsyncClient.fire_trigger`."""
        return (await self._client.fire_trigger(trigger_id, value))["execution_id"]
