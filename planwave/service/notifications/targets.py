"""Which URLs are notified, and whether they can be: the secrets that sign, and where they may go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from planwave.errors import OutboundError
from planwave.nodes.secrets import Secret
from planwave.outbound.urls import parse_url
from planwave.settings import NotificationSettings
from planwave.signatures import signing_key
from planwave.storage.notifications import NotificationTarget

_EVENT_PREFIX: Final = "execution."


def operator_targets(tables: Mapping[str, NotificationSettings]) -> list[NotificationTarget]:
    """Return the targets of the operator's settings."""
    return [
        NotificationTarget(name, table.url, tuple(table.secrets), event_types(table.events))
        for name, table in tables.items()
    ]


def event_types(names: Sequence[str]) -> tuple[str, ...]:
    """Return the types of events, such as ``execution.failed``, for their names."""
    return tuple(_EVENT_PREFIX + name for name in names)


def event_name(event: str) -> str:
    """Return the name of a type of events, such as ``failed``."""
    return event.removeprefix(_EVENT_PREFIX)


def signing_keys(target: NotificationTarget, secrets: Mapping[str, Secret]) -> list[bytes]:
    """Return the keys that sign for a target; none if no secret of it can be used."""
    usable = (secrets[name] for name in target.secrets if name in secrets)
    keys = [
        signing_key(secret.value.get_secret_value())
        for secret in usable
        if _may_sign(secret, target)
    ]
    return [key for key in keys if key is not None]


def problem_of(target: NotificationTarget, secrets: Mapping[str, Secret]) -> str | None:
    """Return why a target gets nothing, one sentence, or None."""
    try:
        parse_url(target.url)
    except OutboundError as error:
        return error.message
    if signing_keys(target, secrets):
        return None
    own = [secrets[name] for name in target.secrets if name in secrets]
    if not own:
        return "none of its secrets has a value; see [secrets.NAME] in planwave.toml"
    if not any(_may_sign(secret, target) for secret in own):
        return "none of its secrets may be used for its host; see hosts of [secrets.NAME] in planwave.toml"
    return "none of its secrets is whsec_ and base64 of 24 to 64 bytes"


def _may_sign(secret: Secret, target: NotificationTarget) -> bool:
    """Return whether a secret may sign for a target: the author of a flow does not decide it."""
    return target.plan_id is None or secret.may_be_sent_to(target.url)
