"""What an access token may do: one table, from each route to the scope and the flow that it needs.

A route that is not in the table is the operator's (403). What belongs to another flow does not exist
for a token (404). So does what belongs to none, such as executions that were started as a plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from starlette.requests import HTTPConnection

from planwave.errors import Forbidden
from planwave.service.access_tokens import Scope, require_live
from planwave.service.flows.flow_queries import FlowRef, flow_not_found
from planwave.service.service import Service
from planwave.service.streaming.stored_execution import execution_not_found
from planwave.storage.access_tokens import AccessTokenRecord

ACCESS_TOKEN: Final = "planwave.access-token"  # noqa: S105
"""Key of the access token in a connection's scope."""
_MAX_DIGITS: Final = 10
"""Of a revision number in a query."""


class Rule(NamedTuple):
    """What a route needs of a token.

    Attributes:
        scope: The scope that the token must have.
        owner: The parameter of the path that leads to a flow; None where the route itself
            looks at the token (``access_token``, ``require_flow``, ``listed_flow``).
        live: Only for the live revision of the flow: that of the execution, or the parameter
            ``revision``. What creates executions goes through ``flow_to_run``.
    """

    scope: Scope
    owner: Literal["execution_id", "plan_id"] | None
    live: bool = False


RULES: Final[dict[str, Rule]] = {
    "createExecution": Rule("run", None),
    "startExecution": Rule("run", "execution_id", live=True),
    "cancelExecution": Rule("run", "execution_id"),
    "listExecutions": Rule("read", None),
    "getExecution": Rule("read", "execution_id"),
    "getResult": Rule("read", "execution_id"),
    "getDocument": Rule("read", "execution_id"),
    "getNode": Rule("read", "execution_id"),
    "explainNode": Rule("read", "execution_id"),
    "streamEvents": Rule("read", "execution_id"),
    "listRequests": Rule("read", "execution_id"),
    "getFirstStatus": Rule("read", "execution_id"),
    "getFirstResult": Rule("read", "execution_id"),
    "loadExecution": Rule("read", "execution_id"),
    "/ws/{execution_id:path}": Rule("read", "execution_id"),
    "getFlow": Rule("read", "plan_id", live=True),
    "exportFlow": Rule("read", "plan_id", live=True),
    "exportExecution": Rule("read", "execution_id"),
    "listModels": Rule("chat", None),
    "getModel": Rule("chat", None),
    "createChatCompletion": Rule("chat", None),
    "createResponse": Rule("chat", None),
}
"""By the ``operation_id`` of a route; of a WebSocket, by its path."""


async def check_access(connection: HTTPConnection, service: Service) -> None:
    """Check that the token of a request, if it has one, may use the route.

    Raises:
        Forbidden: The route is not for tokens, the token has not its scope, or ``old-revision``.
        NotFound: The execution or the flow is not one of the token's.
    """
    token = access_token(connection)
    if token is None:
        return
    route = connection.scope.get("route")
    rule = RULES.get(getattr(route, "operation_id", None) or getattr(route, "path", ""))
    if rule is None:
        raise Forbidden(
            "an access token is not enough for this route", hint="use the token of the service"
        )
    if rule.scope not in token.scopes:
        raise Forbidden(
            f"the access token has not the scope {rule.scope!r}",
            hint="create a token with this scope",
        )
    if rule.owner is not None:
        await _require_owner(service, token, rule, connection)


def access_token(connection: HTTPConnection) -> AccessTokenRecord | None:
    """Return the access token of an authenticated request; None for the operator."""
    return connection.scope.get(ACCESS_TOKEN)


def require_flow(connection: HTTPConnection, plan_id: str | None) -> None:
    """Check that a request may use a flow, or with None what belongs to no flow.

    Raises:
        Forbidden: It belongs to no flow, and the request has an access token.
        NotFound: The flow is not one of the token's.
    """
    token = access_token(connection)
    if token is None:
        return
    if plan_id is None:
        raise Forbidden("an access token is for flows only", hint="name one of its flows")
    if plan_id not in token.flows:
        raise flow_not_found(plan_id)


async def flow_to_run(
    connection: HTTPConnection,
    service: Service,
    flow: FlowRef,
    inputs: Mapping[str, Any] | None,
    *,
    changes_terms: bool,
) -> FlowRef:
    """Return the flow that a request is to run; with an access token checked, and of a fixed revision.

    Args:
        connection: The request.
        service: Where the flow is.
        flow: The flow, one that ``require_flow`` lets through.
        inputs: Those of the request.
        changes_terms: Whether the request brings a budget or policies of its own, or lets a model change the graph.

    Raises:
        Forbidden: They are not for access tokens: the inputs name a node that is no entry node, or the
            request brings terms of its own.
        NotFound: There is no such flow or revision.
        Forbidden: ``old-revision``: with an access token, another revision than the live one.
    """
    if access_token(connection) is None:
        return flow
    if changes_terms:
        raise Forbidden(
            "an access token cannot change the budget or the policies of a flow, nor have it changed",
            hint="leave them out, or use the token of the service",
        )
    return await service.access_tokens.flow_for(flow, inputs)


def listed_flow(connection: HTTPConnection, plan_id: str | None) -> str | None:
    """Return the flow to which a list is limited: the one that is named, or the token's only one.

    Raises:
        Forbidden: None is named, and the token has several.
        NotFound: The flow is not one of the token's.
    """
    token = access_token(connection)
    if token is not None and plan_id is None and len(token.flows) == 1:
        return token.flows[0]
    require_flow(connection, plan_id)
    return plan_id


async def _require_owner(
    service: Service, token: AccessTokenRecord, rule: Rule, connection: HTTPConnection
) -> None:
    own_id = connection.path_params[str(rule.owner)]
    if rule.owner == "plan_id":
        if own_id not in token.flows:
            raise flow_not_found(own_id)
        revision = connection.query_params.get("revision")
        if rule.live and revision is not None:
            require_live(_number(revision), (await service.flows.to_start(own_id)).revision)
        return
    record = await service.executions.get(own_id)
    if record.flow_id is None or record.flow_id not in token.flows:
        raise execution_not_found(own_id)
    if rule.live:
        require_live(record.revision, (await service.flows.to_start(record.flow_id)).revision)


def _number(text: str) -> int | None:
    """Return a number of a query; None for any other text, which is then refused."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _MAX_DIGITS else None
