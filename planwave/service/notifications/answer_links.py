"""Links in notifications, with which whoever receives one can answer the request that it tells of.

The key is derived from a secret that signs the message, which is not stored: so every attempt sends the same link,
and neither the stored message nor the store holds a key.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from planwave.events import fold
from planwave.ids import new_id
from planwave.jsonio import dumps_exact
from planwave.service.links import KEY_BYTES, digest_of, link_url
from planwave.service.queries.digest import deadline_of
from planwave.storage.event_codec import WAITING_NOTICE
from planwave.storage.links import LinkRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planwave.events import Event, OpenRequest
    from planwave.service.dependencies import ServiceDependencies
    from planwave.storage.notifications import NotificationRecord

_PURPOSE: Final = b"planwave link\0"


async def with_answer_link(
    dependencies: ServiceDependencies, notification: NotificationRecord, body: str, secret: bytes
) -> str:
    """Return the body of a notification with a link that answers its request, and store the link.

    It is returned as it is where it tells of no request, or of one whose time is over, and where nobody has said where
    people reach the service.

    Args:
        dependencies: Those of the service.
        notification: What is sent.
        body: Its body as it is stored.
        secret: The key of the target that signs it.

    Raises:
        StoreError: The link cannot be stored.
    """
    base, now = dependencies.public_url, dependencies.now().astimezone(UTC)
    if base is None or notification.event != WAITING_NOTICE:
        return body
    request = await _request_of(dependencies, notification)
    if request is None:
        return body
    most = timedelta(hours=dependencies.limits.answer_link_hours)
    end = datetime.fromisoformat(notification.created_at) + most
    end = min(end, deadline_of(request) or end).astimezone(UTC)
    if end <= now:
        return body
    derived = hmac.digest(secret, _PURPOSE + notification.notification_id.encode(), "sha256")
    key = urlsafe_b64encode(derived[:KEY_BYTES]).decode().rstrip("=")
    expires_at = end.isoformat(timespec="microseconds")
    await dependencies.store.links.create(
        LinkRecord(
            new_id(), digest_of(key), "request", notification.execution_id,
            dependencies.timestamp(), expires_at, request.request_id, notification.target_id,
        )
    )  # fmt: skip
    message = json.loads(body)
    message["data"]["request"] |= {
        "answer_url": link_url(base, key),
        "answer_url_expires_at": expires_at,
    }
    return dumps_exact(message)


async def _request_of(
    dependencies: ServiceDependencies, notification: NotificationRecord
) -> OpenRequest | None:
    """Return the request that a notification tells of, as it was then; None if its execution was deleted."""
    events = await dependencies.store.events(notification.execution_id, limit=notification.seq)
    return await asyncio.to_thread(_request_at, events, notification.seq) if events else None


def _request_at(events: Sequence[Event], seq: int) -> OpenRequest | None:
    return fold(events).requests.get(f"r{seq}")
