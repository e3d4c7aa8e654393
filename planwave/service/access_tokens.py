"""Access tokens: for programs that may use some flows only, and nothing that is the operator's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any, Final, Literal, NamedTuple

from planwave.errors import Forbidden, InputError, NotFound, PlanwaveError
from planwave.graph.diagnostics import short_repr
from planwave.ids import new_id
from planwave.principals import current_principal
from planwave.service.dependencies import ServiceDependencies
from planwave.service.flows.flow_queries import FlowQueries, FlowRef
from planwave.service.following import Following
from planwave.storage.access_tokens import AccessTokenRecord

_log = logging.getLogger(__name__)

Scope = Literal["chat", "run", "read"]
SCOPES: Final[tuple[Scope, ...]] = ("chat", "run", "read")
"""Talk to the flows as models; start and cancel their executions; read these."""
NAME_CHARS: Final = 200
TOKEN_PREFIX: Final = "pw_"  # noqa: S105
"""Shows people, and scanners of source code, what the text is."""
_BYTES: Final = 32
LAST_USE_INTERVAL: Final = timedelta(minutes=1)
"""The last use of a token is noted once in this time."""


class TokenLimits(NamedTuple):
    """The limits of one token; None leaves those of every principal.

    Attributes:
        expires_in_s: Seconds from now on; None for ever.
    """

    requests_per_minute: int | None = None
    executions_per_minute: int | None = None
    expires_in_s: float | None = None


class CreatedToken(NamedTuple):
    """A new token, and its text, which only this has."""

    record: AccessTokenRecord
    secret: str


class AccessTokens:
    """The access tokens of a service. Requests look them up in memory; ``following`` fills it.

    Attributes:
        following: Loads them, and again when another process has changed them.
    """

    def __init__(self, dependencies: ServiceDependencies, flows: FlowQueries) -> None:
        self._dependencies = dependencies
        self._store = dependencies.store.access_tokens
        self._flows = flows
        self._by_digest: dict[str, AccessTokenRecord] = {}
        self._revoked = set[str]()
        """Digests of those that were revoked since this process began."""
        self._changes = 0
        """Own changes: tokens that were read before one are not those that are stored."""
        self._notices = dependencies.store.notices
        self.following = Following(dependencies.store, "tokens", self.load, dependencies.now)
        self._noted: dict[str, datetime] = {}
        self._unstored: dict[str, str] = {}
        self._storing: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Read the stored tokens."""
        while True:
            changes = self._changes
            stored = {each.digest: each for each in await self._store.all()}
            if changes == self._changes:
                break
        self._revoked |= self._by_digest.keys() - stored.keys()
        self._by_digest = stored

    async def flow_released(self) -> None:
        """Read the stored tokens after what led to a flow was removed, here and in other processes."""
        await self.load()
        self._notices.publish("tokens", "")

    async def create(
        self,
        name: str,
        scopes: Collection[Scope],
        flows: Collection[str],
        limits: TokenLimits | None = None,
    ) -> CreatedToken:
        """Create a token; durable when this returns.

        Args:
            name: A note on who gets the token.
            scopes: At least one of ``SCOPES``.
            flows: The ids of the flows for which it is, at least one.
            limits: Those of this token.

        Raises:
            InputError: ``invalid-access-token``: the name, or there is no scope or no flow.
            NotFound: There is no such flow.
        """
        name = name.strip()
        if not name or len(name) > NAME_CHARS or not name.isprintable() or not scopes or not flows:
            raise InputError(
                "a token has a name, a scope and a flow",
                code="invalid-access-token",
                hint=f"give a name of one line, scopes of {', '.join(SCOPES)}, and flows",
            )
        for plan_id in flows:
            await self._flows.record(plan_id)
        limits = limits or TokenLimits()
        now = self._dependencies.now()
        lifetime = limits.expires_in_s
        secret = f"{TOKEN_PREFIX}{token_urlsafe(_BYTES)}"
        record = AccessTokenRecord(
            new_id(),
            name,
            _digest(secret),
            tuple(each for each in SCOPES if each in scopes),
            tuple(dict.fromkeys(flows)),
            _timestamp(now),
            limits.requests_per_minute,
            limits.executions_per_minute,
            None if lifetime is None else _timestamp(now + timedelta(seconds=lifetime)),
            current_principal(),
        )
        await self._store.create(record)
        self._by_digest[record.digest] = record
        self._announce_change()
        return CreatedToken(record, secret)

    async def flow_for(self, flow: FlowRef, inputs: Mapping[str, Any] | None) -> FlowRef:
        """Return the revision of a flow that a token may run with some inputs: the live one.

        Only entry nodes can be given a value: one for another node would replace that node, such as
        the approval of a person.

        Raises:
            NotFound: There is no such flow.
            Forbidden: The inputs name another node; ``old-revision``: another revision than the live one.
            Conflict: ``not-approved``: no revision is live.
        """
        live = await self._flows.to_start(flow.plan_id)
        require_live(flow.revision or live.revision, live.revision)
        nodes: Sequence[Mapping[str, Any]] = live.graph.get("nodes", ())
        for node in nodes:
            info = self._dependencies.catalogue.type_info(node["type"])
            if node["id"] in (inputs or ()) and not (info is not None and info.entry):
                raise Forbidden(
                    f"an access token gives values to entry nodes only, not to {node['id']!r}",
                    hint="leave it out, or use the token of the service",
                )
        return FlowRef(live.plan_id, live.revision)

    async def list(self) -> Sequence[AccessTokenRecord]:
        """Return all tokens, newest first."""
        await self.store_last_uses()
        return await self._store.all()

    async def revoke(self, token_id: str) -> None:
        """Revoke a token: the next request with it is refused.

        Raises:
            NotFound: There is none of that id.
        """
        if not await self._store.delete(token_id):
            raise NotFound(f"there is no token {short_repr(token_id)}", hint="list the tokens")
        tokens = self._by_digest.items()
        self._revoked |= {key for key, each in tokens if each.token_id == token_id}
        self._by_digest = {key: each for key, each in tokens if each.token_id != token_id}
        self._announce_change()

    def _announce_change(self) -> None:
        self._changes += 1
        self._notices.publish("tokens", "")

    def find(self, secret: str) -> AccessTokenRecord | None:
        """Return the token of a text, unless it was revoked or has expired.

        Raises:
            StoreError: ``store-unreachable``: whether another process has revoked it is not known.
        """
        if not secret.startswith(TOKEN_PREFIX):
            return None
        self.following.require_confirmed()
        token = self._by_digest.get(_digest(secret))
        if token is None or token.expires_at is None:
            return token
        return token if _timestamp(self._dependencies.now()) < token.expires_at else None

    def why_denied(self, secret: str) -> str:
        """Return why a text is no valid token, for the operator: what ``find`` does not say."""
        digest = _digest(secret)
        if digest in self._by_digest:
            return "token-expired"
        return "token-revoked" if digest in self._revoked else "token-unknown"

    def note_use(self, token_id: str) -> None:
        """Note that a token is used now; stored later, at most once a minute for each token."""
        now = self._dependencies.now()
        noted = self._noted.get(token_id)
        if noted is not None and now - noted < LAST_USE_INTERVAL:
            return
        self._noted[token_id] = now
        self._unstored[token_id] = _timestamp(now)
        if self._storing is None or self._storing.done():
            self._storing = asyncio.get_running_loop().create_task(self._store_safely())

    async def store_last_uses(self) -> None:
        """Store the uses that were noted since."""
        uses, self._unstored = self._unstored, {}
        if uses:
            await self._store.set_last_used(uses)

    async def close(self) -> None:
        """Wait until the last uses are stored."""
        if self._storing is not None:
            await asyncio.wait((self._storing,))

    async def _store_safely(self) -> None:
        try:
            await self.store_last_uses()
        except PlanwaveError as error:
            _log.warning("the last uses of access tokens are not stored: %s", error)


def require_live(revision: int | None, live: int) -> None:
    """Check that a revision is the one that access tokens may use.

    An older one may lack what was added since, such as an approval. The error is the same whether
    the revision exists or not.

    Raises:
        Forbidden: ``old-revision``.
    """
    if revision != live:
        raise Forbidden(
            "an access token is good for the live revision of a flow only",
            code="old-revision",
            hint="leave out the revision, or use the token of the service",
        )


def _digest(secret: str) -> str:
    return sha256(secret.encode(errors="replace")).hexdigest()


def _timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
