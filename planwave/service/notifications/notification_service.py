"""Notifications as the operator sees them: the URLs that are notified, the messages sent, and those never accepted."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from planwave.errors import InputError, LimitExceeded, NotFound, OutboundError
from planwave.graph.diagnostics import short_repr
from planwave.ids import new_id
from planwave.outbound.urls import parse_url
from planwave.service.notifications.sender import NotificationSender
from planwave.service.notifications.targets import event_types, operator_targets, problem_of
from planwave.setting_tables import ENDS
from planwave.storage.notifications import NotificationTarget

if TYPE_CHECKING:
    from planwave.service.dependencies import ServiceDependencies
    from planwave.service.flows.flow_queries import FlowQueries
    from planwave.storage.notifications import NotificationRecord, NotificationStatus
    from planwave.storage.records import PageCursor

_log = logging.getLogger(__name__)
_CODE: Final = "invalid-target"
_HINT: Final = "list the notifications"


class TargetReport(NamedTuple):
    """A target, the name of its flow, and why it gets nothing (None if it does)."""

    target: NotificationTarget
    flow: str | None
    problem: str | None


class NotificationService:
    """The use cases of notifications: targets of flows, lists, and sending again."""

    def __init__(self, dependencies: ServiceDependencies, flows: FlowQueries) -> None:
        self._dependencies = dependencies
        self._store = dependencies.store.notifications
        self._flows = flows
        targets = operator_targets(dependencies.notification_tables)
        self._store.set_operator_targets(targets)
        for each in targets:
            if (problem := problem_of(each, dependencies.secrets)) is not None:
                _log.warning("[notifications.%s] gets nothing: %s", each.target_id, problem)

    def sender(self) -> NotificationSender:
        """Return what sends the notifications while it is entered."""
        return NotificationSender(self._dependencies)

    async def create_target(
        self,
        plan_id: str,
        url: str,
        secrets: Sequence[str],
        events: Sequence[str] = ENDS,
        *,
        target_id: str | None = None,
    ) -> TargetReport:
        """Notify a URL of the executions of a flow from now on; durable when this returns.

        Args:
            plan_id: The flow.
            url: The URL; requests to it keep to the rules for all URLs that users choose.
            secrets: The names of the operator's secrets that sign; each must be for the host of the URL.
            events: The events it is notified of, such as ``failed``.
            target_id: The id, chosen by a caller that may repeat the request; if it exists already,
                it is returned.

        Raises:
            NotFound: No such flow.
            InputError: ``invalid-target``: the URL or the secrets cannot be used.
            LimitExceeded: ``notification_targets``.
        """
        if target_id is not None and (target := await self._store.target(target_id)) is not None:
            return await self._report(target)
        flow = await self._flows.record(plan_id)
        new = NotificationTarget(
            target_id or new_id(),
            _checked_url(url),
            tuple(dict.fromkeys(secrets)),
            event_types(list(dict.fromkeys(events))),
            flow.plan_id,
            self._dependencies.timestamp(),
        )
        self._check_secrets(new)
        most, present = (
            self._dependencies.limits.notification_targets,
            await self._store.count_targets(),
        )
        if present >= most:
            hint = "delete some, or raise the limit notification_targets"
            raise LimitExceeded("notification_targets", most, present + 1, hint=hint)
        await self._store.create_target(new)
        return await self._report(new)

    async def targets(self) -> Sequence[TargetReport]:
        """Return the targets of the operator, then those of flows, newest first."""
        return [await self._report(each) for each in await self._store.targets()]

    async def delete_target(self, target_id: str) -> None:
        """Delete a target of a flow with its notifications.

        Raises:
            NotFound: There is none of that id.
            InputError: ``invalid-target``: it is one of the operator's settings.
        """
        if await self._store.delete_target(target_id):
            return
        if await self._store.target(target_id) is not None:
            raise InputError(
                f"target {target_id!r} is set by the operator",
                code=_CODE,
                hint=f"remove [notifications.{target_id}] from planwave.toml",
            )
        raise NotFound(f"there is no target {short_repr(target_id)}", hint=_HINT)

    async def get(self, notification_id: str) -> NotificationRecord:
        """Return a notification.

        Raises:
            NotFound: There is none of that id.
        """
        record = await self._store.get(notification_id)
        if record is None:
            raise NotFound(f"there is no notification {short_repr(notification_id)}", hint=_HINT)
        return record

    async def list(
        self,
        *,
        status: NotificationStatus | None = None,
        before: PageCursor | None = None,
        limit: int = 50,
    ) -> Sequence[NotificationRecord]:
        """Return notifications, newest first: all, or those of one status."""
        return await self._store.page(status=status, before=before, limit=limit)

    async def resend(self, notification_id: str) -> NotificationRecord:
        """Have a notification sent again, under the same id, that was delivered or is dead.

        Raises:
            NotFound: There is none of that id.
        """
        await self._store.resend(notification_id, self._dependencies.timestamp())
        return await self.get(notification_id)

    async def _report(self, target: NotificationTarget) -> TargetReport:
        own = target.plan_id
        name = None if own is None else (await self._flows.record(own)).name
        return TargetReport(target, name, problem_of(target, self._dependencies.secrets))

    def _check_secrets(self, target: NotificationTarget) -> None:
        """Refuse secrets that do not exist, or may not be used for the host.

        Raises:
            InputError: ``invalid-target``.
        """
        secrets = self._dependencies.secrets
        if not target.secrets:
            raise InputError(
                "a notification is signed, and no secret is named",
                code=_CODE,
                hint=_secret_hint("NAME"),
            )
        for name in target.secrets:
            if name not in secrets:
                raise InputError(
                    f"there is no secret {short_repr(name)}", code=_CODE, hint=_secret_hint(name)
                )
            if not secrets[name].may_be_sent_to(target.url):
                raise InputError(
                    f"the secret {name!r} may not be used for the host of the URL",
                    code=_CODE,
                    hint=f"the operator can add the host to hosts of [secrets.{name}]",
                )
        if (problem := problem_of(target, secrets)) is not None:
            raise InputError(problem, code=_CODE)


def _secret_hint(name: str) -> str:
    return f"the operator can add [secrets.{name}] with env and hosts to planwave.toml"


def _checked_url(url: str) -> str:
    try:
        parse_url(url)
    except OutboundError as error:
        raise InputError(error.message, code=_CODE, hint=error.hint) from error
    return url
