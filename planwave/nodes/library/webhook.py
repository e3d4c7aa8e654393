"""``webhook``: begin with a request that another program sends to ``/hooks/{hook_id}``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, cast

from pydantic import Field, StringConstraints

from planwave.expressions import copy_json
from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, Json, Port
from planwave.graph.protocols import FlowContext
from planwave.graph.suggestions import closest_match
from planwave.nodes.authoring.data_fields import NO_SOCKET
from planwave.nodes.authoring.node_type import NodeData, NodeFinding, NodeType
from planwave.nodes.checking.node_view import NodeView
from planwave.signatures import SIGNED_ID

_HEADER_NAME: Final = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$"
HeaderName = Annotated[str, StringConstraints(pattern=_HEADER_NAME)]
OnDisconnect = Literal["continue", "cancel"]


class WebhookData(NodeData):
    """Who may send requests, and what they have to be."""

    auth: Literal["signature", "github", "secret", "none"] = Field(
        "signature",
        description="How a request proves its sender: a signature (Standard Webhooks, or as GitHub signs), a "
        "secret in a header, or not at all, which the operator has to allow.",
        json_schema_extra=NO_SOCKET,
    )
    secrets: list[str] = Field(
        [],
        max_length=5,
        description="Names of the operator's secrets; any of them is accepted, for rotation.",
        json_schema_extra=NO_SOCKET,
    )
    secret_header: HeaderName = Field(
        "x-webhook-secret",
        description="With `auth: secret`, the header that holds it.",
        json_schema_extra=NO_SOCKET,
    )
    delivery_header: HeaderName | None = Field(
        None,
        description="The header that identifies a delivery: a repeated one gets the first answer. "
        "Without it `webhook-id`, with `auth: github` `x-github-delivery`. With `auth: signature` it is "
        "always `webhook-id`, which is signed.",
        json_schema_extra=NO_SOCKET,
    )
    body_schema: dict[str, Json] | None = Field(
        None,
        description="A JSON Schema that the body has to fit.",
        json_schema_extra=NO_SOCKET,
    )
    allow_sse: bool = Field(
        False,
        description="Whether the sender may watch the run as a stream, with what each node gives.",
        json_schema_extra=NO_SOCKET,
    )
    on_disconnect: OnDisconnect = Field(
        "continue",
        description="What becomes of the run when a sender leaves that waits for it.",
        json_schema_extra=NO_SOCKET,
    )
    sample: Json = Field(
        None,
        description="The body of runs that no request started.",
        json_schema_extra=NO_SOCKET,
    )


class Webhook(NodeType):
    """Outputs the request that started the run.

    That is ``{"body", "hook_id", "agent_id" (the flow), "node_id", "received_at", "headers", "query",
    "method", "path", "remote": {"host", "port"}, "content_type"}``, and ``messages`` where the body has
    a list of that name. A run without a request has ``sample`` as its ``body``, and no more.
    """

    node_type = "webhook"
    purpose = "Begin with an HTTP request of another program; its body is at output.body."
    summary = "Begin with a request of another program."
    Data = WebhookData
    fails_permanently = True
    inputs: tuple[Port, ...] = ()
    outputs = (Port(DEFAULT_SOURCE_HANDLE, "json"),)
    entry = expects_input = True
    planned = False

    async def run(self, data: WebhookData, inputs: Inputs, context: FlowContext) -> Json:
        return {"body": copy_json(data.sample)}

    def input_schema(self, data: Mapping[str, Json]) -> Mapping[str, Any]:
        """Return the JSON Schema of what a run is given; that of its body is ``bodySchema``."""
        body = data.get("bodySchema")
        properties: dict[str, Any] = {"body": body} if isinstance(body, dict) else {}
        return {"type": "object", "properties": properties}

    def check(self, data: WebhookData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is None:
            return
        secrets = view.index.secrets
        for number, name in enumerate(data.secrets):
            if secrets is not None and name not in secrets:
                yield unknown_secret(name, f"/data/secrets/{number}", secrets)
        if data.auth != "none" and not data.secrets:
            yield NodeFinding(
                "missing-secret",
                "nobody can prove to be a sender: data.secrets names no secret",
                "/data/secrets",
                "name a secret of the operator, [secrets.NAME] in planwave.toml",
                "warning",
            )
        if data.auth == "signature" and (data.delivery_header or SIGNED_ID).lower() != SIGNED_ID:
            yield NodeFinding(
                "invalid-data",
                f"data.deliveryHeader: {data.delivery_header!r} is not signed: the same message could be "
                "delivered many times",
                "/data/deliveryHeader",
                f"leave it out: with auth: signature {SIGNED_ID} identifies a delivery",
            )
        yield from _check_schema(data)


def unknown_secret(name: str, pointer: str, names: Iterable[str]) -> NodeFinding:
    """Return the warning about a secret that the operator has not set."""
    near = closest_match(name, sorted(names))
    valid = re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", name) is not None
    table = name if valid else "NAME"
    hint = f"add [secrets.{table}] with env to planwave.toml, and set that variable"
    return NodeFinding(
        "unknown-secret",
        f"there is no secret {name!r}",
        pointer,
        f"did you mean {near!r}?" if near else hint,
        "warning",
    )


def _check_schema(data: WebhookData) -> Iterable[NodeFinding]:
    if data.body_schema is None:
        return
    # Lazy: test_the_schema_library_is_loaded_only_for_forms
    from planwave.nodes.json_schema import check_schema

    for error in check_schema(cast("Json", data.body_schema)):
        pointer = f"/data/bodySchema{error.pointer}"
        yield NodeFinding("invalid-data", f"data.bodySchema: {error.message}", pointer, error.hint)
