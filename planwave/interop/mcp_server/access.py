"""Who calls the tools, and what they may do: the operator everything, an access token what it is for.

A tool needs a scope of the token, and what it touches has to belong to a flow of the token. The tools
that are in no row are the operator's. What belongs to another flow does not exist for a token.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from planwave.errors import Forbidden, NotFound
from planwave.graph.diagnostics import short_repr
from planwave.interop.mcp_server.protocol import Request
from planwave.principals import LOCAL, Principal
from planwave.service.service import Service
from planwave.service.streaming.stored_execution import execution_not_found

RUN: Final = "run"
"""The scope that a flow needs which is a tool."""
READ: Final = "read"
"""The scope that resources need."""
TOOL_ACTIONS: Final[dict[str, tuple[str, bool]]] = {
    "plan": ("plan.created", False),
    "run": ("execution.created", False),
    "answer": ("request.answered", True),
}
"""What the audit log says of tools, and whether the tool must not be used without it; of a flow that is
a tool it is ``execution.created``. Those that are missing read."""
TOOL_SCOPES: Final = {"run": RUN, "status": READ, "result": READ}


class Caller(NamedTuple):
    """Who sends a request.

    Attributes:
        principal: What is recorded as having called; its account keeps idempotency keys apart.
        flows: The ids of the flows that the caller may use; None for the operator.
        scopes: Those of an access token.
    """

    principal: Principal = LOCAL
    flows: frozenset[str] | None = None
    scopes: frozenset[str] = frozenset()

    def has_scope(self, scope: str | None) -> bool:
        """Return whether the caller may do what needs a scope; with None what is the operator's."""
        return self.flows is None or scope in self.scopes

    def has_flow(self, plan_id: str | None) -> bool:
        """Return whether the caller may use a flow, or with None what belongs to no flow."""
        return self.flows is None or plan_id in self.flows

    def require_scope(self, scope: str | None, what: str) -> None:
        """Check a scope.

        Raises:
            Forbidden: The token has not the scope, or is not enough at all.
        """
        if self.has_scope(scope):
            return
        if scope is None:
            raise Forbidden(
                f"an access token is not enough for {what}", hint="use the token of the service"
            )
        raise Forbidden(
            f"the access token has not the scope {scope!r}, which {what} needs",
            hint="create a token with this scope",
        )

    async def require_execution(self, service: Service, execution_id: str) -> None:
        """Check that an execution is one of the caller's.

        Raises:
            NotFound: It is not, or there is none of this id.
        """
        record = await service.executions.get(execution_id)
        if not self.has_flow(record.flow_id):
            raise execution_not_found(execution_id)

    async def find_flow(self, service: Service, name: str) -> str:
        """Return the id of a flow of the caller by its id or its name.

        Raises:
            NotFound: There is none, or it is another's.
        """
        if self.flows is None:
            return (await service.flows.find(name)).plan_id
        with suppress(NotFound):
            plan_id = (await service.flows.find(name)).plan_id
            if plan_id in self.flows:
                return plan_id
        raise NotFound(f"there is no flow {short_repr(name)}")


class Gate(Protocol):
    """Identifies the client of a request, and counts the executions of each."""

    def caller(self, context: Request) -> Caller: ...
    def admit(self, context: Request) -> None:
        """Count an execution that is about to be created.

        Raises:
            TooManyRequests: The caller created too many.
        """
        ...


class OpenGate:
    """The gate of a process whose one client may do everything."""

    def caller(self, context: Request) -> Caller:
        return Caller()

    def admit(self, context: Request) -> None:
        """Admit every execution."""
