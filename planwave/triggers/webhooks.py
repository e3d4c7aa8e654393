"""Webhooks: a request of another program starts an execution, and may wait for its answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from planwave.errors import (
    Conflict,
    InputError,
    NotFound,
    PlanwaveError,
    TooManyRequests,
    Unauthorized,
)
from planwave.ids import new_id
from planwave.jsonio import dumps_exact
from planwave.service.service import Service
from planwave.service.service_log import TRIGGER_LOG, BoundedLines
from planwave.service.triggers.payloads import check_payload, read_payload
from planwave.service.triggers.trigger_service import Trigger
from planwave.settings import Settings
from planwave.signatures import (
    GITHUB_HEADER,
    SIGNED_ID,
    TOLERANCE_S,
    credential_fault,
    github_signature_fault,
    signature_fault,
    signing_key,
)
from planwave.triggers.adapter import STARTED, TEST_PREFIX, TriggerAdapter
from planwave.triggers.webhook_answers import (
    JSON_TYPE,
    WebhookAnswer,
    accepted_answer,
    stored_answer,
    wait_at_most,
)

if TYPE_CHECKING:
    from planwave.storage.triggers import DeliveryRecord

_log = logging.getLogger(__name__)

_LONGEST_ID: Final = 40
"""Of what strangers send in place of the id of a webhook, in the log."""
WEBHOOK: Final = "webhook"
_GITHUB_DELIVERY: Final = "x-github-delivery"
_GITHUB_EVENT: Final = "x-github-event"
_PING: Final = "ping"
_FORM: Final = "application/x-www-form-urlencoded"
_LONGEST_KEY: Final = 255
FIRST_ANSWER_S: Final = 30.0
"""How long a repeated delivery waits for the answer to the first one."""
_PRIVATE_HEADERS: Final = (
    "authorization", "cookie", "proxy-authorization", "webhook-signature", GITHUB_HEADER,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """A request to a webhook, as it was received.

    Attributes:
        headers: With names in lower case; the values of repeated headers are joined.
        remote: Host and port of the connection, whatever the headers say.
        wait_s: How long the sender waits for the end of the execution; 0 for not at all.
        streams: Whether the sender is going to watch the execution in place of an answer.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes
    remote: tuple[str, int] | None = None
    wait_s: float = 0
    streams: bool = False


def hook_path(trigger_id: str) -> str:
    """Return the path at which a webhook receives requests."""
    return f"/hooks/{trigger_id}"


class Webhooks(TriggerAdapter):
    """The adapter of ``webhook`` nodes; ``POST /hooks/{trigger_id}`` calls it.

    Attributes:
        hook_ids: Ids of enabled webhooks that were found; the store need not be asked whether others exist
            once too many have been guessed.
    """

    node_type = WEBHOOK

    def __init__(self, service: Service, settings: Settings) -> None:
        super().__init__(service, settings)
        self.hook_ids: set[str] = set()
        self._unknown = BoundedLines(TRIGGER_LOG)
        self._under_way: dict[tuple[str, str], asyncio.Future[WebhookAnswer | None]] = {}
        self._bodies: dict[tuple[str, str], tuple[str, float]] = {}
        """By trigger and digest of a body: the key of its delivery, and until when it stands for the body."""

    def problem(self, trigger: Trigger) -> str | None:
        auth = trigger.data.auth
        if auth == "none":
            allowed = self.settings.unsigned_webhooks
            return None if allowed else "the setting unsigned_webhooks does not allow auth: none"
        if not self._secrets(trigger):
            return "none of its secrets has a value; see [secrets.NAME] in planwave.toml"
        if auth == "signature" and not self._keys(trigger):
            return "none of its secrets is whsec_ and base64 of 24 to 64 bytes"
        return None

    def details(self, trigger: Trigger) -> dict[str, Any]:
        return {"path": hook_path(trigger.trigger_id)}

    def test_values(self, trigger: Trigger, value: Any) -> Mapping[str, Any]:
        body = trigger.data.sample if value is None else value
        check_payload(body, trigger.data.body_schema)
        path = self.details(trigger)["path"]
        return self._values(trigger, WebhookRequest("POST", path, {}, {}, b""), body)

    async def find(self, hook_id: str) -> Trigger:
        """Return the trigger of an enabled webhook.

        Raises:
            NotFound: There is none of this id.
        """
        with suppress(NotFound):
            trigger = await self.service.triggers.get(hook_id)
            if trigger.kind == WEBHOOK and trigger.enabled and trigger.problem is None:
                self.hook_ids.add(hook_id)
                return trigger
        self.hook_ids.discard(hook_id)
        reason = f"no webhook that receives has the id {hook_id[:_LONGEST_ID]!r}"
        self._unknown.log("", logging.WARNING, "rejected", {"kind": WEBHOOK, "reason": reason})
        raise NotFound("there is no such webhook")

    def authenticate(self, trigger: Trigger, headers: Mapping[str, str], body: bytes) -> None:
        """Check who sent a request; nothing of it was parsed before.

        Raises:
            Unauthorized: Without any detail for the sender; its ``reason`` is for the log.
        """
        reason = self._fault(trigger, headers, body)
        if reason is not None:
            self.service.triggers.reject_stranger(trigger, reason)
            raise Unauthorized("the request is not authenticated", reason=reason)

    async def receive(
        self, trigger: Trigger, request: WebhookRequest, disconnect: Callable[[], Awaitable[object]]
    ) -> WebhookAnswer:
        """Process an authenticated request, and return its answer.

        A repeated delivery gets the first answer, also while the first is processed. One that
        cannot be processed leaves nothing behind, and may come again. GitHub's ``ping`` starts nothing.

        Args:
            trigger: The webhook.
            request: The request.
            disconnect: Returns once the sender has left.

        Raises:
            InputError: ``invalid-json``, ``invalid-payload``: the body cannot be used.
            Conflict: ``request-under-way``: the first delivery takes long.
            QueueFull, ShuttingDown, StoreError: Nothing was started.
        """
        if (
            trigger.data.auth == "github"
            and request.headers.get(_GITHUB_EVENT, "").lower() == _PING
        ):
            return WebhookAnswer(
                200, {"content-type": JSON_TYPE}, dumps_exact({"event": _PING}), ""
            )
        place = trigger.trigger_id, self._delivery_key(trigger, request)
        while (first := self._under_way.get(place)) is not None:
            if (answer := await _first_answer(first)) is not None:
                return answer._replace(is_repeated=True)
        first = self._under_way[place] = asyncio.get_running_loop().create_future()
        try:
            answer = await self._process(trigger, request, place[1], disconnect)
            first.set_result(answer)
            return answer
        finally:
            del self._under_way[place]
            if not first.done():  # interrupted: the next request that waits is the first one now
                first.set_result(None)

    # -- authentication

    def _fault(self, trigger: Trigger, headers: Mapping[str, str], body: bytes) -> str | None:
        """Return why a request is not authenticated, for the operator; None if it is."""
        auth = trigger.data.auth
        if auth == "none":
            return None if self.settings.unsigned_webhooks else "unsigned-webhooks-not-allowed"
        if auth == "signature":
            now = self.service.now().timestamp()
            return signature_fault(self._keys(trigger), headers, body, now)
        if auth == "github":
            return github_signature_fault(self._secrets(trigger), headers, body)
        return credential_fault(self._secrets(trigger), headers, trigger.data.secret_header)

    def _secrets(self, trigger: Trigger) -> list[str]:
        secrets = self.service.secrets
        return [
            secrets[name].value.get_secret_value()
            for name in trigger.data.secrets
            if name in secrets
        ]

    def _keys(self, trigger: Trigger) -> list[bytes]:
        keys = [signing_key(secret) for secret in self._secrets(trigger)]
        return [key for key in keys if key is not None]

    # -- the delivery

    def _delivery_key(self, trigger: Trigger, request: WebhookRequest) -> str:
        """Return what identifies a delivery; without such a header, and without a signed body, a new id.

        GitHub signs the body and no id. So a body that comes again within the tolerance of a signature is
        the same delivery, whatever its headers say.
        """
        key = _key_in_headers(trigger, request)
        if trigger.data.auth != "github":
            return key
        now = self.service.now().timestamp()
        self._bodies = {place: each for place, each in self._bodies.items() if each[1] > now}
        place = trigger.trigger_id, sha256(request.body).hexdigest()
        return self._bodies.setdefault(place, (key, now + TOLERANCE_S))[0]

    def _payload(self, trigger: Trigger, request: WebhookRequest) -> Any:
        kind, depth = request.headers.get("content-type", ""), self.service.limits.json_depth
        body = read_payload(kind, request.body, depth)
        if trigger.data.auth == "github" and kind.split(";")[0].strip().lower() == _FORM:
            written = cast("dict[str, Any]", body or {}).get("payload")
            if isinstance(written, str):
                body = read_payload(JSON_TYPE, written.encode(), depth)
        check_payload(body, trigger.data.body_schema)
        return body

    def _values(self, trigger: Trigger, request: WebhookRequest, body: Any) -> dict[str, Any]:
        """Return the output of the node; secrets of the request stay outside."""
        hidden = {*_PRIVATE_HEADERS, trigger.data.secret_header.lower()}
        host, port = request.remote or (None, None)
        value: dict[str, Any] = {
            "body": body,
            "hook_id": trigger.trigger_id,
            "agent_id": trigger.plan_id,
            "node_id": trigger.node_id,
            "received_at": self.service.now().isoformat(timespec="microseconds"),
            "headers": {name: v for name, v in request.headers.items() if name not in hidden},
            "query": dict(request.query),
            "method": request.method,
            "path": request.path,
            "remote": {"host": host, "port": port},
            "content_type": request.headers.get("content-type", ""),
        }
        fields = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
        if isinstance(fields.get("messages"), list):
            value["messages"] = fields["messages"]
        return {"output": value}

    async def _process(
        self,
        trigger: Trigger,
        request: WebhookRequest,
        key: str,
        disconnect: Callable[[], Awaitable[object]],
    ) -> WebhookAnswer:
        claim = await self.service.triggers.claim_delivery(trigger, key)
        if claim.outcome is not None and claim.reply is not None:
            return stored_answer(claim.reply)
        await self._start(trigger, request, claim)
        answer = await self._answer(trigger, request, claim.execution_id, disconnect)
        await self.service.triggers.settle_delivery(
            trigger, key, STARTED, reply=answer.serialize(), execution_id=claim.execution_id
        )
        return answer

    async def _start(
        self, trigger: Trigger, request: WebhookRequest, claim: DeliveryRecord
    ) -> None:
        """Start the execution of a delivery, or forget the delivery.

        Raises:
            InputError: ``invalid-json``, ``invalid-payload``.
            QueueFull, ShuttingDown, StoreError: Nothing was started.
            PlanwaveError: ``execution-not-started``: the flow cannot run here.
        """
        try:
            values = self._values(trigger, request, self._payload(trigger, request))
        except InputError as error:
            await self.service.triggers.reject_delivery(trigger, claim.key, error.message)
            raise
        try:
            await self.service.triggers.start(trigger, values, claim)
        except InputError as error:
            if isinstance(error, TooManyRequests):
                await self.service.triggers.release_delivery(trigger, claim.key, error)
                raise
            _log.warning("webhook %s started nothing: %s", trigger.trigger_id, error)
            await self.service.triggers.reject_delivery(trigger, claim.key, error.message)
            # What is wrong with the flow is for the people who run it.
            message = "the request started nothing"
            raise PlanwaveError(message, code="execution-not-started") from error
        except PlanwaveError as error:
            await self.service.triggers.release_delivery(trigger, claim.key, error)
            raise

    async def _answer(
        self,
        trigger: Trigger,
        request: WebhookRequest,
        execution_id: str,
        disconnect: Callable[[], Awaitable[object]],
    ) -> WebhookAnswer:
        if request.streams or not (trigger.replies or request.wait_s):
            return accepted_answer(execution_id)
        seconds = self.service.limits.webhook_wait_s if trigger.replies else request.wait_s
        waiting = wait_at_most(seconds, self.service, execution_id, with_result=request.wait_s > 0)
        if trigger.data.on_disconnect == "continue":
            return await waiting
        async with self.service.followers.following(execution_id):
            return await self._cancelling(execution_id, waiting, disconnect)

    async def _cancelling(
        self,
        execution_id: str,
        waiting: Awaitable[WebhookAnswer],
        disconnect: Callable[[], Awaitable[object]],
    ) -> WebhookAnswer:
        """Cancel an execution if the sender leaves before its answer is there."""
        # Not a TaskGroup: an error must reach the caller without an ExceptionGroup.
        answering = asyncio.ensure_future(waiting)  # noqa: TID251
        leaving = asyncio.ensure_future(disconnect())  # noqa: TID251
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                await self.cancel(execution_id)
            return await answering
        finally:
            answering.cancel()
            leaving.cancel()

    async def cancel(self, execution_id: str) -> None:
        """Cancel an execution whose sender has left, unless it has ended."""
        with suppress(Conflict):
            await self.service.executions.cancel(execution_id, "the sender of the webhook left")


def _key_in_headers(trigger: Trigger, request: WebhookRequest) -> str:
    """Return what identifies a delivery among its headers; without such a header a new id."""
    auth, header = trigger.data.auth, trigger.data.delivery_header
    if (
        header is None or auth == "signature"
    ):  # other headers than the id of a message are not signed
        header = _GITHUB_DELIVERY if auth == "github" else SIGNED_ID
    key = request.headers.get(header.lower(), "")
    if len(key) > _LONGEST_KEY or key.startswith(TEST_PREFIX):
        return sha256(key.encode(errors="replace")).hexdigest()
    return key or new_id()


async def _first_answer(first: asyncio.Future[WebhookAnswer | None]) -> WebhookAnswer | None:
    """Wait for the answer to the first delivery; None if that was interrupted.

    Raises:
        Conflict: ``request-under-way``.
    """
    try:
        async with asyncio.timeout(FIRST_ANSWER_S):
            return await asyncio.shield(first)
    except TimeoutError:
        raise Conflict(
            "the same delivery is being processed",
            code="request-under-way",
            hint="send it again in a moment",
        ) from None
