"""Executions as resources: their results, and their whole documents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import mcp_types
from mcp.shared.exceptions import MCPError

from planwave.errors import NotFound
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


async def list_resources(service: Service, before: str | None) -> mcp_types.ListResourcesResult:
    """Return the results of executions, newest first, page by page.

    Args:
        service: Has the executions.
        before: The cursor: the id of the last execution of the page before.
    """
    found = await service.executions(before=before, limit=_PAGE)
    return mcp_types.ListResourcesResult(
        resources=[_resource(each) for each in found],
        next_cursor=found[-1].execution_id if len(found) == _PAGE else None,
    )


async def read_resource(service: Service, uri: str) -> mcp_types.ReadResourceResult:
    """Return the content of a resource as JSON.

    Raises:
        MCPError: There is no such resource.
    """
    match = _URI.fullmatch(uri)
    if match is None:
        known = " and ".join(each.uri_template for each in templates())
        raise MCPError(
            mcp_types.INVALID_PARAMS, f"there is no resource {uri!r}; those here are {known}"
        )
    try:
        content = await _content(service, *match.groups())
    except NotFound as error:
        raise MCPError(mcp_types.INVALID_PARAMS, error.message) from error
    return mcp_types.ReadResourceResult(
        contents=[
            mcp_types.TextResourceContents(uri=uri, mime_type=_JSON, text=dumps_exact(content))
        ]
    )


async def _content(service: Service, execution_id: str, kind: str) -> dict[str, Any]:
    document = await service.document(execution_id)
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
