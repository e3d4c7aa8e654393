"""``fetch``: send one HTTP request."""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Final, Literal

from pydantic import Field

from planwave.errors import LimitExceeded, OutboundError, PermanentError
from planwave.expressions import has_template, to_text
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Json, Port
from planwave.graph.plan import canonical_json
from planwave.graph.protocols import EffectByField, ExecutionResult, FlowContext
from planwave.nodes.authoring.data_fields import HIDDEN_FROM_PLANNER, to_data_value
from planwave.nodes.authoring.node_type import NodeData, NodeFinding, NodeType, template
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.recorded_calls import ExternalCall
from planwave.nodes.services import limits_of, outbound_of
from planwave.nodes.tools.http_bodies import (
    Scalar,
    body_text,
    header_texts,
    json_content,
    response_value,
)
from planwave.nodes.tools.secret_headers import (
    SecretHeaders,
    SecretHeadersField,
    check_secret_headers,
)
from planwave.outbound.client import OutboundResponse, status_error
from planwave.outbound.retry_after import parse_retry_after
from planwave.outbound.urls import check_headers, errors_at, parse_url
from planwave.redaction import Redactor

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]

_READING: Final = frozenset({"GET", "HEAD"})
_IDEMPOTENCY_KEY: Final = "Idempotency-Key"
_MAX_RETRY_DELAY_S: Final = 60.0
"""The longest ``Retry-After`` that is honoured without limits of a service."""
_BOTH: Final = "data.body and data.json are both given; a request has one body"


class FetchData(NodeData):
    """The request."""

    url: str = template(description="The address: http:// or https://.")
    method: Method = Field(
        "GET",
        description="What the request does; GET and HEAD only read.",
        json_schema_extra=HIDDEN_FROM_PLANNER,
    )
    headers: dict[str, Scalar] = template({}, description="Headers to send.")
    secret_headers: SecretHeadersField = Field({})
    params: dict[str, Scalar | list[Scalar]] = template(
        {}, description="Parameters to add to the query of the address."
    )
    body: str | None = template(None, description="The body, as text.")
    json_body: Json = template(None, alias="json", description="The body, as JSON; null for none.")


class Fetch(NodeType):
    """Sends one HTTP request and outputs the response: JSON where its content type says so, else text.

    Only public addresses can be requested, at the ports 80 and 443, and the services that the
    operator names (``allowed_outbound``). The operator may also limit the hosts
    (``outbound_hosts``). A status from 400 on fails the node; 408, 429 and those from
    500 on are retried by the node's policy, after the time that ``Retry-After`` asks for. The effect
    of ``GET`` and ``HEAD`` is ``read``; the others carry an ``Idempotency-Key``, which is the same in
    every attempt, unless you give one. A response that came before a crash is not requested again.
    Credentials in ``headers`` are stored with the graph, in the clear; ``secretHeaders`` names secrets of the
    operator (``[secrets.NAME]``), which are sent to the services of the secret only, and withheld from
    the response. A redirect to another address carries neither.
    """

    node_type = "fetch"
    purpose = "Request data.url over HTTP: read a page or call a service; gives JSON or text."
    summary = "Read a web page or call a service."
    Data = FetchData
    plan_fields = ("url", "headers", "params")
    outputs = (Port("output"), Port("status", "integer"), Port("headers", "json"))
    effect = "write"
    effect_by = EffectByField("method", {"GET": "read", "HEAD": "read"}, absent="read")
    uses_services = True
    planned = False

    async def run(self, data: FetchData, inputs: Inputs, context: FlowContext) -> ExecutionResult:
        secrets = SecretHeaders(data.secret_headers, data.url, context)
        response = await _request(data, secrets, context)
        if response.status >= 400:
            with errors_at(data.url.strip()):
                raise _status_error(data.method, response, context)
        value = secrets.redactor.value(response_value(response, is_head=data.method == "HEAD"))
        return ExecutionResult(
            {
                "output": to_data_value(value),
                "status": DataValue("integer", response.status),
                "headers": DataValue("json", dict(response.headers)),
            }
        )

    def check(self, data: FetchData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is None:
            return
        is_wired = view.is_wired("body") or view.is_wired("json")
        if data.body is not None and data.json_body is not None and not is_wired:
            yield NodeFinding("invalid-data", _BOTH, "/data/json", "remove one of them")
        checks = (
            ("url", data.url, lambda: parse_url(data.url.strip())),
            (
                "headers",
                to_text(header_texts(data.headers)),
                lambda: check_headers(header_texts(data.headers)),
            ),
        )
        for name, text, look in checks:
            if view.is_wired(name) or has_template(text):
                continue
            try:
                look()
            except OutboundError as error:
                yield NodeFinding("invalid-data", error.message, f"/data/{name}", error.hint)
        yield from check_secret_headers(data.secret_headers, view)


async def _request(
    data: FetchData, secrets: SecretHeaders, context: FlowContext
) -> OutboundResponse:
    """Send the request, or return the response that this attempt has recorded."""
    content, headers = _content_and_headers(data)
    client, url = outbound_of(context), data.url.strip()
    call = ExternalCall(
        context,
        "fetch",
        f"{data.method} {url}",
        {
            "method": data.method,
            "url": url,
            "params": data.params,
            "headers": list(headers),
            # Their values may be secrets.
            "headers_hash": hashlib.sha256(canonical_json(headers).encode("utf-8")).hexdigest(),
            "body": None if content is None else _body_document(content),
            # As written: with the names of secrets.
            **({"secret_headers": data.secret_headers} if data.secret_headers else {}),
        },
    )
    is_keyed = any(name.lower() == _IDEMPOTENCY_KEY.lower() for name in headers)
    if data.method not in _READING and not is_keyed:
        headers = {**headers, _IDEMPOTENCY_KEY: call.idempotency_key}

    async def send() -> Json:
        try:
            response = await client.request(
                data.method,
                url,
                params=data.params,
                headers={**headers, **secrets.values()},
                content=content,
            )
        except (OutboundError, LimitExceeded) as error:
            error.message = secrets.redactor.text(error.message)
            raise
        response = _without_secrets(response, secrets.redactor)
        headers_of, body = dict(response.headers), _body_document(response.body)
        return secrets.redactor.value({**asdict(response), "headers": headers_of, "body": body})

    stored = await call.run(send)
    return OutboundResponse(
        stored["url"],
        stored["status"],
        stored["reason"],
        stored["headers"],
        _body_from(stored["body"]),
    )


def _without_secrets(response: OutboundResponse, redactor: Redactor) -> OutboundResponse:
    """Return a response whose body shows no secret, whatever its character set."""
    text = body_text(response)
    shown = redactor.text(text)
    if shown == text:
        return response
    kind, _, _ = response.headers.get("content-type", "text/plain").partition(";")
    headers = {**response.headers, "content-type": f"{kind}; charset=utf-8"}
    return replace(response, body=shown.encode("utf-8"), headers=headers)


def _body_document(body: bytes) -> dict[str, str]:
    """Return a body as JSON: as text where it is UTF-8."""
    try:
        return {"text": body.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": b64encode(body).decode("ascii")}


def _body_from(document: Mapping[str, str]) -> bytes:
    if "text" in document:
        return document["text"].encode("utf-8")
    return b64decode(document["base64"])


def _content_and_headers(data: FetchData) -> tuple[bytes | None, dict[str, str]]:
    headers = header_texts(data.headers)
    if data.body is not None and data.json_body is not None:
        raise PermanentError(_BOTH, code="invalid-data", hint="remove one of them")
    if data.json_body is not None:
        return json_content(data.json_body, headers), headers
    return (None if data.body is None else data.body.encode("utf-8", "replace")), headers


def _status_error(method: str, response: OutboundResponse, context: FlowContext) -> OutboundError:
    error = status_error(method, response)
    limits = limits_of(context)
    longest = _MAX_RETRY_DELAY_S if limits is None else limits.retry_after_s
    delay_s = parse_retry_after(response.headers, datetime.now(UTC))
    error.retry_delay_s = min(delay_s or 0.0, longest)
    return error
