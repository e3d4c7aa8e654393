"""``webhook_reply``: answer the request that started the run, which goes on."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

from pydantic import Field

from planwave.errors import PermanentError
from planwave.graph.diagnostics import short_repr
from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DataValue, Json, Port
from planwave.graph.protocols import FlowContext
from planwave.http_headers import (
    ANSWER_HEADERS,
    LOCATION,
    answer_header_fault,
    is_relative_location,
)
from planwave.nodes.authoring.data_fields import POLICY
from planwave.nodes.authoring.node_type import NodeData, NodeFinding, NodeType, pass_through
from planwave.nodes.checking.node_view import NodeView
from planwave.outbound.urls import AllowedServices

_ABSOLUTE: Final = re.compile(r"https?://([A-Za-z0-9.-]+)(?::\d+)?(?:[/?#][!-\[\]-~]*)?", re.ASCII)


class WebhookReplyData(NodeData):
    """The answer besides its body, which is the input."""

    status: int = Field(200, ge=200, le=599, description="The HTTP status.")
    headers: dict[str, str] = Field(
        {}, description="Headers of the answer.", json_schema_extra=POLICY
    )


class WebhookReply(NodeType):
    """Answers the request of the ``webhook`` that started the run.

    It outputs ``{"body", "status", "headers"}``. The request ends with the first answer, the run does not. A text is sent as plain text, any other
    value as JSON, unless a header ``content-type`` says otherwise. Headers are those about the answer, such as
    ``location`` (a path, or a host of the setting ``redirect_hosts``) and ``retry-after``, and ``x-`` headers that
    no proxy or browser acts on.
    """

    node_type = "webhook_reply"
    purpose = "Answer the request that started the run with the input; the run goes on."
    summary = "Answer the request that started the run."
    Data = WebhookReplyData
    plan_fields = ("status",)
    fails_permanently = True
    outputs = (Port(DEFAULT_SOURCE_HANDLE, "json"),)
    planned = False
    gives_reply = True

    async def run(self, data: WebhookReplyData, inputs: Inputs, context: FlowContext) -> DataValue:
        for finding in _check_headers(data):  # those of wires were not checked before the run
            raise PermanentError(finding.message, code="invalid-data", hint=finding.hint)
        body: Json = pass_through(inputs).value
        headers: dict[str, Json] = {name.lower(): each for name, each in data.headers.items()}
        return DataValue("json", {"body": body, "status": data.status, "headers": headers})

    def check(self, data: WebhookReplyData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is not None:
            yield from _check_headers(data, view.index.redirect_hosts)


def _check_headers(
    data: WebhookReplyData, redirect_hosts: Collection[str] | None = None
) -> Iterable[NodeFinding]:
    """Yield what is wrong with headers; with None any host may be redirected to."""
    for name, value in data.headers.items():
        pointer = f"/data/headers/{name.replace('~', '~0').replace('/', '~1')}"
        fault = answer_header_fault(name, value)
        if fault in ("name", "value"):
            message = f"data.headers: {name!r} cannot be sent"
            hint = "names are tokens, values one line of ASCII characters"
            yield NodeFinding("invalid-data", message, pointer, hint)
        elif fault is not None:
            message = f"data.headers: an answer may not have the header {name!r}"
            allowed = ", ".join(sorted(ANSWER_HEADERS))
            hint = (
                f"allowed are {allowed}, and headers with x- that proxies and browsers do not know"
            )
            yield NodeFinding("invalid-data", message, pointer, hint)
        elif name.lower() == LOCATION and not _is_allowed_location(value, redirect_hosts):
            message = f"data.headers: an answer may not redirect to {short_repr(value)}"
            hint = "write a path, or have the operator add the host to the setting redirect_hosts"
            yield NodeFinding("invalid-data", message, pointer, hint)


def _is_allowed_location(value: str, hosts: Collection[str] | None) -> bool:
    if is_relative_location(value):
        return True
    match = _ABSOLUTE.fullmatch(value)
    return match is not None and AllowedServices(hosts=hosts).includes_host(match[1])
