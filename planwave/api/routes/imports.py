"""Routes: files of other programs as graphs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query
from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from planwave.api.dependencies import AUTHENTICATED, ServiceDep
from planwave.api.json_body import (
    BODY_MODEL_ATTRIBUTE,
    json_body,
    media_type,
    require_media_type,
)
from planwave.api.problems import ProblemError, problems
from planwave.api.responses import json_response
from planwave.api.schemas.examples import success
from planwave.api.schemas.requests import RequestModel
from planwave.interop.importing.importer import KINDS, import_text, text_of
from planwave.service.flows.flow_service import NAME_CHARS
from planwave.shapes.imports import ImportResponse

router = APIRouter(tags=["plans"], dependencies=AUTHENTICATED)
_SOURCE: Final = (
    '{"title": "Note", "nodes": [{"id": "n", "name": "Facts", "description": "Find three facts.", '
    '"dependencies": []}]}'
)
IMPORTED: Final[dict[str, Any]] = {
    "report": {
        "kind": "agiraph",
        "kind_version": None,
        "title": "Note",
        "source_sha256": "9b7c1b5fae0a1a9c9b6f2b8a6e0f9f3f2f2f4a1c55d7d4c8e9a0b1c2d3e4f506",
        "options": {"scheduling": "waves"},
        "nodes": [
            {
                "source": "/nodes/0",
                "source_kind": "task",
                "source_name": "Facts",
                "outcome": "mapped",
                "target": ["n"],
                "notes": [],
            }
        ],
        "edges": [],
        "notes": [
            {
                "code": "import-changed",
                "message": "tasks run in waves there; here that is an option of the run",
                "pointer": "",
            }
        ],
        "lost": [],
        "secrets": [],
        "setup": [],
        "summary": {"mapped": 1, "changed": 0, "placeholder": 0, "dropped": 0},
    },
    "document": {
        "title": "Note",
        "nodes": [
            {"id": "n", "type": "agent", "name": "Facts", "description": "Find three facts."}
        ],
        "edges": [],
    },
    "diagnostics": [],
    "code": "",
    "saved": None,
}


FILE_TYPES: Final = ("text/plain", "application/yaml", "application/octet-stream")
"""Media types of a body that is the file itself; the options stand in the query then."""
_KIND: Final = "The format; without it the shape of the document tells."
_WRITE_CODE: Final = "Whether programs in the file become node types of a module, `code`."
_PROVIDER: Final = "A provider in place of each that the file names."
_MODEL: Final = "A model of that provider; else its default."
_SAVE_AS_FLOW: Final = (
    "The name of a new flow that the graph is saved as; with placeholders it is a draft."
)


class ImportRequest(RequestModel):
    """A file of another program, as text."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": _SOURCE}]})

    text: str = Field(description="JSON, YAML, or a Mermaid flowchart.")
    kind: str | None = Field(None, description=_KIND, json_schema_extra={"enum": [*KINDS, None]})
    write_code: bool = Field(False, description=_WRITE_CODE)
    provider: str | None = Field(None, description=_PROVIDER)
    model: str | None = Field(None, description=_MODEL)
    save_as_flow: str | None = Field(
        None, description=_SAVE_AS_FLOW, min_length=1, max_length=NAME_CHARS
    )


_read_json: Final[Callable[[Request], Awaitable[ImportRequest]]] = json_body(
    ImportRequest
).dependency


async def read_import(
    request: Request,
    kind: Annotated[str | None, Query(description=_KIND, examples=["dify"])] = None,
    write_code: Annotated[bool, Query(description=_WRITE_CODE)] = False,
    provider: Annotated[str | None, Query(description=_PROVIDER, examples=["openai"])] = None,
    model: Annotated[str | None, Query(description=_MODEL)] = None,
    save_as_flow: Annotated[
        str | None, Query(description=_SAVE_AS_FLOW, min_length=1, max_length=NAME_CHARS)
    ] = None,
) -> ImportRequest:
    """Read what is to be imported: a file with options in the query, or JSON with both.

    Raises:
        ProblemError: 415; 422 ``invalid-request``: options in the query beside JSON.
        InvalidBody: As ``json_body``.
        InputError: ``invalid-text``: the file is not UTF-8.
    """
    require_media_type(request, "application/json", *FILE_TYPES)
    if media_type(request) in FILE_TYPES:
        return ImportRequest(
            text=text_of(await request.body()),
            kind=kind,
            write_code=write_code,
            provider=provider,
            model=model,
            save_as_flow=save_as_flow,
        )
    if ImportRequest.model_fields.keys() & request.query_params.keys():
        raise ProblemError(
            422,
            "invalid-request",
            "the options of a JSON body stand in it, not in the query",
            hint=f"put them into the body, or send the file itself as {FILE_TYPES[0]}",
        )
    return await _read_json(request)


setattr(read_import, BODY_MODEL_ATTRIBUTE, (ImportRequest, False))


@router.post(
    "/api/import",
    operation_id="importFile",
    summary="Import a file of another program",
    responses={
        **success(ImportResponse, "The graph, and what became of the file.", IMPORTED),
        **problems(409),
    },
    openapi_extra={
        "requestBody": {"content": {each: {"schema": {"type": "string"}} for each in FILE_TYPES}}
    },
)
async def import_file(
    service: ServiceDep, body: Annotated[ImportRequest, Depends(read_import)]
) -> Response:
    """Convert a file of another program to a graph, and report what became of each of its parts.

    The body is JSON, or the file itself with the options in the query.

    Nothing is stored but with `save_as_flow`. A part that has no counterpart is a node of the type
    `placeholder`, which the check names as an error, so that nothing that lost meaning can run. Secrets in
    the file are never copied.
    """
    imported = await asyncio.to_thread(
        import_text,
        body.text,
        body.kind,
        write_code=body.write_code,
        provider=body.provider,
        model=body.model,
    )
    document: Any = imported.document
    report = await asyncio.to_thread(service.plans.check, document)
    report = await service.flows.check_references(report)
    saved = None
    if body.save_as_flow is not None:
        graph = {**document, "imported_from": {"report": imported.report}}
        saved = (await service.flows.create(body.save_as_flow, graph=graph, draft=True)).plan_id
    response: ImportResponse = {
        "report": imported.report,
        "document": imported.document,
        "diagnostics": [each.as_json() for each in report.diagnostics],
        "code": imported.code,
        "saved": saved,
    }
    return json_response(response)
