"""The API's own documentation: the OpenAPI document, and a page of it that loads nothing else.

``/llms.txt``, the list of the pages of documentation for language models, needs no token.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from html import escape
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, cast

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, HTMLResponse, Response

from planwave.api.dependencies import AUTHENTICATED
from planwave.api.middleware.security_headers import NO_FRAMES, POLICY_HEADER
from planwave.jsonio import dumps_exact

router = APIRouter(include_in_schema=False, dependencies=AUTHENTICATED)
public_router = APIRouter(include_in_schema=False)

_LLMS_TXT: Final = Path(__file__).resolve().parent.parent / "llms.txt"
_POLICY: Final = f"default-src 'none'; style-src 'unsafe-inline'; {NO_FRAMES}"
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "code,pre{font:14px/1.4 ui-monospace,monospace}pre{overflow:auto;padding:.5rem;"
    "border:1px solid #8886}summary{cursor:pointer;padding:.25rem 0}"
    "section{padding:0 0 1rem 1rem}dt{font-family:ui-monospace,monospace}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}a{color:#8bf}}"
)


@public_router.get("/llms.txt")
async def llms_txt() -> FileResponse:
    """Return the pages of documentation, as https://llmstxt.org has it; ``tools/gen_llms_txt.py`` writes them."""
    return FileResponse(_LLMS_TXT, media_type="text/plain; charset=utf-8")


@router.get("/openapi.json")
async def openapi_document(request: Request) -> Response:
    """Return the OpenAPI document."""
    return Response(dumps_exact(request.app.openapi()), media_type="application/json")


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    """Return the OpenAPI document as a page that loads nothing from other hosts."""
    page = "".join(_page(request.app.openapi()))
    return HTMLResponse(page, headers={POLICY_HEADER: _POLICY})


def _page(document: Mapping[str, Any]) -> Generator[str]:
    info = document["info"]
    title = escape(f"{info['title']} {info['version']}")
    yield f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
    yield f"<style>{_STYLE}</style><h1>{title}</h1><p>{escape(info.get('summary', ''))} "
    yield 'For programs: <a href="openapi.json">openapi.json</a>.</p>'
    schemas = document["components"]["schemas"]
    for tag, operations in _by_tag(document).items():
        yield f"<h2>{escape(tag)}</h2>"
        for method, path, operation in operations:
            yield from _operation(method, path, operation)
    yield "<h2>schemas</h2>"
    for name, schema in sorted(schemas.items()):
        yield f"<details id={escape(name)}><summary><code>{escape(name)}</code></summary>"
        yield f"{_code(schema)}</details>"


def _by_tag(document: Mapping[str, Any]) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    by_tag: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = (operation.get("tags") or ["other"])[0]
            by_tag.setdefault(tag, []).append((method.upper(), path, operation))
    return by_tag


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> Generator[str]:
    yield f"<details><summary><code>{method} {escape(path)}</code> "
    yield f"{escape(operation.get('summary', ''))}</summary><section>"
    for paragraph in operation.get("description", "").split("\n\n"):
        yield f"<p>{escape(paragraph)}</p>"
    if parameters := operation.get("parameters"):
        yield "<dl>"
        for each in parameters:
            yield f"<dt>{escape(each['name'])} <small>({escape(each['in'])})</small></dt>"
            yield f"<dd>{escape(each.get('description', ''))}</dd>"
        yield "</dl>"
    if body := operation.get("requestBody"):
        yield f"<p>Body:</p>{_content(body)}"
    for status, response in operation["responses"].items():
        phrase = HTTPStatus(int(status)).phrase if str(status).isdecimal() else ""
        yield f"<p><strong>{status} {phrase}</strong> {escape(response['description'])}</p>"
        if str(status).startswith("2"):
            yield _content(response)
    yield "</section></details>"


def _content(part: Mapping[str, Any]) -> str:
    return "".join(
        f"<p><code>{escape(kind)}</code></p>{_code(each)}"
        for kind, each in cast("dict[str, Any]", part.get("content", {})).items()
    )


def _code(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, indent=2, ensure_ascii=False))}</pre>"
