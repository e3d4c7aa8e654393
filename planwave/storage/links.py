"""The records of links, which show one result or answer one request to whoever has their key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from planwave.principals import Principal, principal_json

if TYPE_CHECKING:
    from planwave.shapes.triggers import LinkKind, LinkResponse

LinkEnd = Literal["used", "revoked", "deleted"]
"""Why a link ended before its time: it gave its answer, somebody revoked it, or its execution was deleted."""


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """What the bearer of a key may see or do.

    Attributes:
        digest: SHA-256 of the key in hexadecimal; the key itself is not stored.
        kind: ``result`` and ``run`` show something; ``request`` answers one request, once.
        request_id: The request; None where nothing is answered.
        expires_at: From when on it opens nothing, UTC.
        target: The target of the notification that has the link; None where somebody created it.
        created_by: Who created it; None for one in a notification.
        ended: Why it ended before its time; None where it has not.
    """

    link_id: str
    digest: str
    kind: LinkKind
    execution_id: str
    created_at: str
    expires_at: str
    request_id: str | None = None
    target: str | None = None
    created_by: Principal | None = None
    ended: LinkEnd | None = None

    @property
    def principal(self) -> Principal:
        """Who acts where somebody answers by this link."""
        return Principal("link", self.link_id, self.target, self.created_by)


def link_json(link: LinkRecord) -> LinkResponse:
    """Return a link in the JSON form of the API, without the digest of its key."""
    return {
        "link_id": link.link_id,
        "kind": link.kind,
        "execution_id": link.execution_id,
        "request_id": link.request_id,
        "created_at": link.created_at,
        "expires_at": link.expires_at,
        "target": link.target,
        "created_by": principal_json(link.created_by),
    }
