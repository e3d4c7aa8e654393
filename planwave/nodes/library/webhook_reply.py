"""``webhook_reply``: answer the request that started the run, which goes on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pydantic import Field

from planwave.errors import PermanentError
from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DataValue, Json, Port
from planwave.graph.protocols import FlowContext
from planwave.nodes.authoring.node_type import NodeData, NodeFinding, NodeType, pass_through
from planwave.nodes.checking.node_view import NodeView

_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]{0,4000}[\x21-\x7e])?|", re.ASCII)
_RESERVED: Final = frozenset(
    {
        "access-control-allow-origin",
        "clear-site-data",
        "connection",
        "content-encoding",
        "content-length",
        "content-security-policy",
        "cross-origin-opener-policy",
        "cross-origin-resource-policy",
        "keep-alive",
        "set-cookie",
        "strict-transport-security",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-content-type-options",
    }
)
"""Headers that planwave sets, or that would speak for all of its pages."""


class WebhookReplyData(NodeData):
    """The answer besides its body, which is the input."""

    status: int = Field(200, ge=200, le=599, description="The HTTP status.")
    headers: dict[str, str] = Field({}, description="Headers of the answer.")


class WebhookReply(NodeType):
    """Answers the request of the ``webhook`` that started the run.

    It outputs ``{"body", "status", "headers"}``. The request ends with the first answer, the run does not. A text is sent as plain text, any other
    value as JSON, unless a header ``content-type`` says otherwise.
    """

    node_type = "webhook_reply"
    purpose = "Answer the request that started the run with the input; the run goes on."
    summary = "Answer the request that started the run."
    Data = WebhookReplyData
    fails_permanently = True
    outputs = (Port(DEFAULT_SOURCE_HANDLE, "json"),)
    planned = False

    async def run(self, data: WebhookReplyData, inputs: Inputs, context: FlowContext) -> DataValue:
        for finding in _check_headers(data):  # those of wires were not checked before the run
            raise PermanentError(finding.message, code="invalid-data", hint=finding.hint)
        body: Json = pass_through(inputs).value
        headers: dict[str, Json] = {name.lower(): each for name, each in data.headers.items()}
        return DataValue("json", {"body": body, "status": data.status, "headers": headers})

    def check(self, data: WebhookReplyData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is not None and not view.is_wired("headers"):
            yield from _check_headers(data)


def _check_headers(data: WebhookReplyData) -> Iterable[NodeFinding]:
    for name, value in data.headers.items():
        pointer = f"/data/headers/{name.replace('~', '~0').replace('/', '~1')}"
        if _NAME.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
            message = f"data.headers: {name!r} cannot be sent"
            hint = "names are tokens, values one line of ASCII characters"
            yield NodeFinding("invalid-data", message, pointer, hint)
        elif name.lower() in _RESERVED:
            message = f"data.headers: planwave decides about {name!r}"
            yield NodeFinding("invalid-data", message, pointer, "leave this header out")
