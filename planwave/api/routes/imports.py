"""Routes: files of other programs as graphs."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

from fastapi import APIRouter
from pydantic import ConfigDict, Field
from starlette.responses import Response

from planwave.api.dependencies import AUTHENTICATED, ServiceDep
from planwave.api.json_body import json_body
from planwave.api.problems import problems
from planwave.api.responses import json_response
from planwave.api.schemas.examples import success
from planwave.api.schemas.requests import RequestModel
from planwave.interop.importing.importer import KINDS, import_text
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


class ImportRequest(RequestModel):
    """A file of another program, as text."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": _SOURCE}]})

    text: str = Field(description="JSON, YAML, or a Mermaid flowchart.")
    kind: str | None = Field(
        None,
        description="The format; without it the shape of the document tells.",
        json_schema_extra={"enum": [*KINDS, None]},
    )
    write_code: bool = Field(
        False, description="Whether programs in the file become node types of a module, `code`."
    )
    provider: str | None = Field(
        None, description="A provider in place of each that the file names."
    )
    model: str | None = Field(None, description="A model of that provider; else its default.")
    save_as_flow: str | None = Field(
        None,
        description="The name of a new flow that the graph is saved as; with placeholders it is a draft.",
        min_length=1,
        max_length=NAME_CHARS,
    )


@router.post(
    "/api/import",
    operation_id="importFile",
    summary="Import a file of another program",
    responses={
        **success(ImportResponse, "The graph, and what became of the file.", IMPORTED),
        **problems(409),
    },
)
async def import_file(
    service: ServiceDep, body: Annotated[ImportRequest, json_body(ImportRequest)]
) -> Response:
    """Convert a file of another program to a graph, and report what became of each of its parts.

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
