"""Executions as resources: their results, and their whole documents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import mcp_types
from mcp.shared.exceptions import MCPError

from planwave.errors import Forbidden, NotFound
from planwave.interop.mcp_server.access import READ, Caller
from planwave.interop.mcp_server.outcomes import outcome_of
from planwave.jsonio import dumps_exact

if TYPE_CHECKING:
    from planwave.service.service import Service
    from planwave.storage.records import ExecutionRecord

_JSON: Final = "application/json"
_PAGE: Final = 50
_URI: Final = re.compile(r"planwave://executions/([^/]+)/(result|document)")
_ABOUT: Final = {
    "result": "The result of an execution: its status, its value and the text of each node.",
    "document": "The whole document of an execution: graph, inputs, prompts, results and log.",
}


def templates() -> list[mcp_types.ResourceTemplate]:
    """Return the URI templates of the resources."""
    return [
        mcp_types.ResourceTemplate(
            name=f"execution-{kind}",
            uri_template=f"planwave://executions/{{execution_id}}/{kind}",
            description=about,
            mime_type=_JSON,
        )
        for kind, about in _ABOUT.items()
    ]


async def list_resources(
    service: Service, caller: Caller, before: str | None
) -> mcp_types.ListResourcesResult:
    """Return the results of executions, newest first, page by page.

    Args:
        service: Has the executions.
        caller: Sees those of their flows.
        before: The cursor: the id of the last execution of the page before.

    Raises:
        MCPError: The cursor is no execution of the caller's: there is none of this id, or it is another's.
    """
    records: list[ExecutionRecord] = []
    try:
        if before is not None:
            await caller.require_execution(service, before)
        if caller.flows is None:
            records += await service.executions.list(before=before, limit=_PAGE)
        elif caller.has_scope(READ):
            for plan_id in caller.flows:
                records += await service.executions.list(
                    before=before, limit=_PAGE, plan_id=plan_id, as_flow=True
                )
    except NotFound as error:
        raise MCPError(mcp_types.INVALID_PARAMS, "the cursor is unknown") from error
    newest = sorted(records, key=lambda each: each.execution_id, reverse=True)[:_PAGE]
    return mcp_types.ListResourcesResult(
        resources=[_resource(each) for each in newest],
        next_cursor=newest[-1].execution_id if len(newest) == _PAGE else None,
    )


async def read_resource(service: Service, caller: Caller, uri: str) -> mcp_types.ReadResourceResult:
    """Return the content of a resource as JSON.

    Raises:
        MCPError: There is no such resource, or the caller may not read it.
    """
    match = _URI.fullmatch(uri)
    if match is None:
        uris = " and ".join(each.uri_template for each in templates())
        raise MCPError(
            mcp_types.INVALID_PARAMS, f"there is no resource {uri!r}; those here are {uris}"
        )
    try:
        caller.require_scope(READ, "a resource")
        await caller.require_execution(service, match[1])
        content = await _content(service, *match.groups())
    except (NotFound, Forbidden) as error:
        raise MCPError(mcp_types.INVALID_PARAMS, error.message) from error
    return mcp_types.ReadResourceResult(
        contents=[
            mcp_types.TextResourceContents(uri=uri, mime_type=_JSON, text=dumps_exact(content))
        ]
    )


async def _content(service: Service, execution_id: str, kind: str) -> Mapping[str, Any]:
    document = await service.executions.document(execution_id)
    if kind == "document":
        return document
    outcome = await outcome_of(service, execution_id)
    return {**outcome, "node_results": document["node_results"]}


def _resource(record: ExecutionRecord) -> mcp_types.Resource:
    return mcp_types.Resource(
        name=f"result-{record.execution_id}",
        title=record.title or record.user_prompt or record.execution_id,
        uri=f"planwave://executions/{record.execution_id}/result",
        description=f"The result of an execution of {record.created_at}: {record.status}.",
        mime_type=_JSON,
    )
