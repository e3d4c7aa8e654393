"""Sends the stored notifications, again and again until they are accepted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Self
from zlib import crc32

from planwave.errors import Conflict, NodeError, OutboundError, PlanwaveError, StoreError
from planwave.outbound.retry_after import parse_retry_after
from planwave.service.notifications.answer_links import with_answer_link
from planwave.service.notifications.messages import message_of
from planwave.service.notifications.targets import problem_of, signing_keys
from planwave.signatures import signed_headers
from planwave.storage.notifications import DEAD, DELIVERED

if TYPE_CHECKING:
    from planwave.outbound.client import OutboundResponse
    from planwave.service.dependencies import ServiceDependencies
    from planwave.storage.notifications import NotificationRecord, NotificationTarget

_log = logging.getLogger(__name__)
_LONGEST_SLEEP_S: Final = 30.0
"""The timer of the event loop does not follow the clock: it is read again after so long at most."""
_SHARED_SLEEP_S: Final = 1.0
"""The same where other processes store notifications too."""
_TARGETS_AT_ONCE: Final = 16
_MESSAGES_AT_ONCE: Final = 4
"""Messages that one target receives at the same time."""
_TAKEN: Final = 100
_AFTER_FAILURE_S: Final = 5.0
"""After the store could not be used, until it is tried again."""
_GONE: Final = 410
_LONGEST_ERROR: Final = 500


class _Refused(PlanwaveError):
    """The receiver did not accept a message."""

    def __init__(self, message: str, retry_after_s: float | None, *, is_final: bool) -> None:
        super().__init__(message, code="not-accepted")
        self.retry_after_s = retry_after_s
        self.is_final = is_final


class NotificationSender:
    """Sends notifications when they are due; an async context manager, in which it works.

    A message that was sent and not yet marked as delivered when the process ended is sent again,
    under the same id. A slow target delays no other one.
    """

    def __init__(self, dependencies: ServiceDependencies) -> None:
        self._dependencies = dependencies
        self._store = dependencies.store
        self._tasks = asyncio.TaskGroup()
        self._longest_sleep_s = _SHARED_SLEEP_S if self._store.is_shared else _LONGEST_SLEEP_S
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        if self._dependencies.notifier is not None:
            self._store.notifications.on_new = self._changed.set
            self._loop = self._tasks.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._store.notifications.on_new = None
        for task in (self._loop, *self._busy.values()):
            if task is not None:
                task.cancel()
        await self._tasks.__aexit__(None, None, None)

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            sleep_s = self._longest_sleep_s
            try:
                await self._start_due()
                sleep_s = await self._seconds_left()
            except Exception as error:  # noqa: BLE001 - a task boundary: the service continues
                _log.warning("no notification is sent now: %s", error)
            try:
                async with asyncio.timeout(sleep_s):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _start_due(self) -> None:
        """Start a task for each target with messages whose time has come."""
        while len(self._busy) < _TARGETS_AT_ONCE:
            batch = await self._store.notifications.due(
                self._dependencies.timestamp(), _TAKEN, busy=self._busy
            )
            if not batch:
                return
            target_id = batch[0].target_id
            own = [each for each in batch if each.target_id == target_id]
            self._busy[target_id] = self._tasks.create_task(self._serve(target_id, own))

    async def _seconds_left(self) -> float:
        if len(self._busy) >= _TARGETS_AT_ONCE:
            return self._longest_sleep_s
        due = await self._store.notifications.next_due(busy=self._busy)
        if due is None:
            return self._longest_sleep_s
        left_s = (datetime.fromisoformat(due) - self._now()).total_seconds()
        return min(max(left_s, 0.0), self._longest_sleep_s)

    async def _serve(self, target_id: str, messages: Sequence[NotificationRecord]) -> None:
        """Send the messages of one target, some of them at the same time."""
        try:
            waiting = iter(messages)
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(_MESSAGES_AT_ONCE, len(messages))):
                    workers.create_task(self._send_each(waiting))
        except Exception as error:  # noqa: BLE001 - a task boundary: other targets are served
            _log.warning("notifications of %s: %s", target_id, error)
            await asyncio.sleep(_AFTER_FAILURE_S)
        finally:
            del self._busy[target_id]
            self._changed.set()

    async def _send_each(self, messages: Iterator[NotificationRecord]) -> None:
        for message in messages:
            tried = await self._attempt(message)
            for observer in self._dependencies.observers:
                observer.notification_attempted(tried)
            await self._keep(tried)

    async def _keep(self, message: NotificationRecord) -> None:
        """Store what became of an attempt, however long that takes: it is not repeated meanwhile."""
        while True:
            try:
                return await self._store.notifications.update(message)
            except StoreError as error:
                _log.warning("notification %s is not stored: %s", message.notification_id, error)
            await asyncio.sleep(_AFTER_FAILURE_S)

    async def _attempt(self, message: NotificationRecord) -> NotificationRecord:
        """Send a message; return its record after that.

        Raises:
            StoreError: The store cannot be read now; the message stays due.
        """
        tried = replace(message, attempts=message.attempts + 1)
        try:
            body = message.body or await self._body(message)
            tried = replace(tried, body=body)
            await self._send(message, body)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - a task boundary: an odd message is no reason to stop
            return self._failed(tried, error)
        return replace(tried, status=DELIVERED, error="")

    async def _body(self, message: NotificationRecord) -> str:
        limit = self._dependencies.limits.notification_bytes
        body = await message_of(self._store, message, limit)
        if body is None:
            raise _Refused("its execution was deleted before it was sent", None, is_final=True)
        return body

    async def _send(self, message: NotificationRecord, body: str) -> None:
        """Send a message once.

        Raises:
            PlanwaveError: It was not accepted.
        """
        target = await self._store.notifications.target(message.target_id)
        client = self._dependencies.notifier
        if target is None or client is None:
            raise _Refused(f"there is no target {message.target_id!r}", None, is_final=False)
        keys = self._signing_keys(target)
        body = await with_answer_link(self._dependencies, message, body, keys[0])
        content = body.encode(errors="replace")
        headers = self._signed(keys, message.notification_id, content)
        response = await client.request("POST", target.url, headers=headers, content=content)
        if not 200 <= response.status < 300:
            raise self._refusal(response)

    def _signing_keys(self, target: NotificationTarget) -> Sequence[bytes]:
        """Return the keys that sign for a target.

        Raises:
            PlanwaveError: No secret of the target can be used now.
        """
        secrets = self._dependencies.secrets
        if (problem := problem_of(target, secrets)) is not None:
            raise _Refused(problem, None, is_final=False)
        return signing_keys(target, secrets)

    def _signed(self, keys: Sequence[bytes], message_id: str, content: bytes) -> dict[str, str]:
        """Return the headers of a message."""
        timestamp = int(self._now().timestamp())
        signed = signed_headers(keys, message_id, timestamp, content)
        return {"content-type": "application/json", **signed}

    def _refusal(self, response: OutboundResponse) -> _Refused:
        return _Refused(
            f"it answered {response.status} {response.reason}".rstrip(),
            parse_retry_after(response.headers, self._now()),
            is_final=response.status == _GONE,
        )

    def _failed(self, tried: NotificationRecord, error: Exception) -> NotificationRecord:
        """Return a message that was not accepted, with its next attempt or as dead."""
        text = error.message if isinstance(error, PlanwaveError) else repr(error)
        message = self._dependencies.redactor.text(text)[:_LONGEST_ERROR]
        retry_after_s = error.retry_after_s if isinstance(error, _Refused) else None
        end = datetime.fromisoformat(tried.since) + timedelta(
            hours=self._dependencies.limits.notification_hours
        )
        following = next_attempt(
            tried.notification_id, tried.attempts, self._now(), end, retry_after_s
        )
        if following is None or _is_final(error):
            _log.warning(
                "notification %s of execution %s is dead: %s",
                tried.notification_id, tried.execution_id, message,
            )  # fmt: skip
            return replace(tried, status=DEAD, error=message)
        return replace(tried, error=message, next_at=following.isoformat(timespec="microseconds"))

    def _now(self) -> datetime:
        return self._dependencies.now().astimezone(UTC)


def _is_final(error: Exception) -> bool:
    """Return whether another attempt cannot succeed before a person changes something."""
    if isinstance(error, _Refused):
        return error.is_final
    if isinstance(error, OutboundError | NodeError):
        return not error.retryable
    return isinstance(error, Conflict)


_DELAYS_S: Final = (5.0, 60.0, 300.0, 1_800.0, 7_200.0, 14_400.0)
"""After the first attempt, the second, …; the last one again and again."""
_JITTER: Final = 0.2
"""Delays are up to this part longer, so that messages that failed together come apart."""


def next_attempt(
    notification_id: str, attempts: int, now: datetime, end: datetime, retry_after_s: float | None
) -> datetime | None:
    """Return the time of the next attempt; None once there is no time left.

    The last attempt is made at ``end``, whatever the delays are.

    Args:
        notification_id: Chooses the jitter.
        attempts: How many attempts have failed, the present one included.
        now: The time after the present one.
        end: When to give up.
        retry_after_s: How long the receiver asks to wait, None if it does not.
    """
    if now >= end:
        return None
    delay_s = _DELAYS_S[min(attempts, len(_DELAYS_S)) - 1]
    jitter = crc32(f"{notification_id} {attempts}".encode()) / 2**32 * _JITTER
    wait_s = max(delay_s * (1 + jitter), retry_after_s or 0.0)
    left_s = (end - now).total_seconds()
    return end if wait_s >= left_s else now + timedelta(seconds=wait_s)
