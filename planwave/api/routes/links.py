"""Routes: links, which show one result or answer one request, and the pages behind them.

The pages need no token: who has the key of a link may open it, and nothing else. ``GET`` never decides, so that
previews of chats and scanners of mail decide nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Literal, TypeVarTuple
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import Field
from starlette.responses import HTMLResponse, Response

from planwave.api.auth import PRINCIPAL, require_no_other_site
from planwave.api.dependencies import (
    AUTHENTICATED,
    AppState,
    ServiceDep,
    StateDep,
    require_not_draining,
)
from planwave.api.json_body import json_body
from planwave.api.middleware.audit import add_audit_ids
from planwave.api.pagination import (
    LINK_ID,
    Cursor,
    ExecutionId,
    LinkId,
    PageSize,
    decode_cursor,
    page_size,
    paginate,
)
from planwave.api.problems import ProblemError, problems
from planwave.api.responses import NOT_REPLAYABLE, json_response
from planwave.api.schemas.examples import EXECUTION_ID, REQUEST_ID, TIME, success
from planwave.api.schemas.requests import RequestModel
from planwave.errors import InputError, InvalidAnswer, NotFound, PlanwaveError
from planwave.events.request_text import field_of
from planwave.service.links import link_url
from planwave.shapes.triggers import LinkCreatedResponse, LinksResponse
from planwave.storage.links import LinkRecord, link_json

_Ts = TypeVarTuple("_Ts")

router = APIRouter(tags=["links"], dependencies=AUTHENTICATED)
public_router = APIRouter(tags=["links"])

LINK: Final[dict[str, Any]] = {
    "link_id": LINK_ID,
    "kind": "result",
    "execution_id": EXECUTION_ID,
    "request_id": None,
    "created_at": TIME,
    "expires_at": TIME,
    "target": None,
    "created_by": {"kind": "operator"},
}
CREATED_LINK: Final[dict[str, Any]] = {
    **LINK,
    "key": "…",
    "url": "https://planwave.example/links/…",
}
LINKS: Final[dict[str, Any]] = {"links": [LINK], "next_cursor": None}
_MOST_FIELDS: Final = 1_000
_HTML: Final = {"text/html": {"schema": {"type": "string"}, "example": "<!doctype html>"}}


def _pages(**statuses: str) -> dict[int | str, dict[str, Any]]:
    """Return OpenAPI ``responses`` that are pages, by ``s`` and the status."""
    return {
        int(status[1:]): {"description": description, "content": _HTML}
        for status, description in statuses.items()
    }


_REFUSALS: Final = _pages(
    s404="There is no such link.",
    s410="It has expired, was used or revoked; its request is answered or closed, or its execution was deleted.",
    s429="Too many requests, or too many wrong keys.",
    s503="The service is shutting down, or its store cannot be used.",
)

LinkKey = Annotated[
    str, Path(description="The key of a link.", examples=["q1w2e3r4t5y6u7i8o9p0aA"])
]


class LinkCreateRequest(RequestModel):
    """What a link shows or answers."""

    kind: Literal["result", "run", "request"] = Field(
        "result",
        description="`result`: shows the result. `run`: also what each step delivered. `request`: answers "
        "one request, once.",
    )
    request_id: str | None = Field(
        None,
        pattern="^r[1-9][0-9]{0,17}$",
        description="Of `request`: which.",
        examples=[REQUEST_ID],
    )
    expires_in_s: float | None = Field(
        None,
        gt=0,
        le=10 * 366 * 86_400,
        description="Seconds for which it is valid; by default a week, of `request` the limit `answer_link_hours`. "
        "It never answers after the deadline of its request.",
    )


@router.post(
    "/api/executions/{execution_id}/links",
    operation_id="createLink",
    summary="Create a link to a result or a request",
    status_code=201,
    responses={
        **success(LinkCreatedResponse, "The link.", CREATED_LINK, 201),
        **problems(404, 409, 410),
    },
)
async def create_link(
    request: Request,
    state: StateDep,
    execution_id: ExecutionId,
    body: Annotated[LinkCreateRequest, json_body(LinkCreateRequest, may_be_empty=True)],
) -> Response:
    """Create a link that needs no token. Its key is in this response, and nowhere else.

    The response is not stored under an `Idempotency-Key`: a repeated request creates another link.
    """
    await require_not_draining(request)
    request.scope[NOT_REPLAYABLE] = True
    created = await state.service.links.create(
        execution_id, body.kind, request_id=body.request_id, lifetime_s=body.expires_in_s
    )
    add_audit_ids(request, link_id=created.record.link_id)
    base = f"{request.base_url}".rstrip("/") + state.settings.root_path
    url = state.service.links.url(created.key) or link_url(base, created.key)
    return json_response({**link_json(created.record), "key": created.key, "url": url}, 201)


@router.get(
    "/api/links",
    operation_id="listLinks",
    summary="List links",
    responses={**success(LinksResponse, "One page.", LINKS), **problems(422)},
)
async def list_links(
    service: ServiceDep,
    execution_id: Annotated[
        str | None, Query(description="Only those to this execution.", max_length=36)
    ] = None,
    cursor: Cursor = None,
    limit: PageSize = None,
) -> Response:
    """Return the links that still open something, without their keys, newest first."""
    size = page_size(limit, service.limits)
    records = await service.links.page(execution_id, before=decode_cursor(cursor), limit=size + 1)
    page, next_cursor = paginate(records, size)
    return json_response({"links": list(map(link_json, page)), "next_cursor": next_cursor})


@router.delete(
    "/api/links/{link_id}",
    operation_id="revokeLink",
    summary="Revoke a link",
    status_code=204,
    response_description="It opens nothing any more.",
    responses=problems(404),
)
async def revoke_link(service: ServiceDep, link_id: LinkId) -> Response:
    """Revoke a link: from now on it opens nothing."""
    await service.links.revoke(link_id)
    return Response(status_code=204)


@public_router.get(
    "/links/{key}",
    operation_id="openLink",
    summary="Open a link",
    response_class=HTMLResponse,
    responses={**_pages(s200="What it shows, or the request that it answers."), **_REFUSALS},
)
async def open_link(request: Request, state: StateDep, key: LinkKey) -> Response:
    """Return the page of a link: one result, one run, or one request with its form. Nothing is decided."""

    async def show(link: LinkRecord) -> Response:
        # Lazy: test_pages_of_links_are_loaded_when_one_is_opened
        from planwave.api.link_pages import answer_form, pages

        if link.kind != "request":
            run = await state.service.links.run_of(link)
            return await _rendered(request, pages.shared_page, run, link)
        linked = await state.service.links.request_of(link)
        form = answer_form.answer_form(linked.request.request)
        return await _rendered(request, pages.request_page, linked, form)

    return await _opened(request, state, key, show)


@public_router.post(
    "/links/{key}",
    operation_id="answerByLink",
    summary="Answer by a link",
    response_class=HTMLResponse,
    responses={
        **_pages(
            s200="The answer is taken.",
            s405="The link only shows something.",
            s422="It is no answer; the page says why.",
        ),
        **_REFUSALS,
    },
    dependencies=[Depends(require_no_other_site)],
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/x-www-form-urlencoded": {
                    "schema": {"type": "object", "additionalProperties": {"type": "string"}}
                }
            },
        }
    },
)
async def answer_by_link(request: Request, state: StateDep, key: LinkKey) -> Response:
    """Take the form of a request, once: its answer is stored before this responds, and the link ends."""

    async def take(link: LinkRecord) -> Response:
        # Lazy: test_pages_of_links_are_loaded_when_one_is_opened
        from planwave.api.link_pages import answer_form, pages

        if link.kind != "request":
            raise _only_shows()
        await require_not_draining(request)
        linked, posted = await state.service.links.request_of(link), await _posted(request)
        asked = linked.request.request
        try:
            answer = answer_form.read_answer(asked, posted)
            await state.service.links.answer(link, posted.get("request_id", ""), answer)
        except InvalidAnswer as error:
            form = answer_form.answer_form(asked, posted, error)
            return await _rendered(request, pages.request_page, linked, form, 422)
        decision = field_of(answer, "decision")
        return pages.answered_page(decision if isinstance(decision, str) else None)

    return await _opened(request, state, key, take)


async def _rendered(request: Request, page: Callable[[*_Ts], Response], *args: *_Ts) -> Response:
    async with request.app.state.in_flight.rendering_links:
        return await asyncio.to_thread(page, *args)


async def _opened(
    request: Request, state: AppState, key: str, use: Callable[[LinkRecord], Awaitable[Response]]
) -> Response:
    """Return the page that ``use`` makes for the link of a key, or the page that says why not."""
    try:
        return await use(await _find(request, state, key))
    except PlanwaveError as error:
        return error_page(error)


def error_page(error: PlanwaveError) -> Response:
    """Return the page that says why a link opens nothing, also where no route has seen the request."""
    # Lazy: test_pages_of_links_are_loaded_when_one_is_opened
    from planwave.api.link_pages import pages

    page = pages.error_page(error)
    page.headers.update(getattr(error, "headers", {}))
    return page


async def _find(request: Request, state: AppState, key: str) -> LinkRecord:
    """Return the link of a key, which acts from now on; each has a rate of its own, and all wrong keys have one.

    Raises:
        NotFound: ``unknown-link``.
        TooManyRequests: There were too many.
    """
    try:
        link = await state.service.links.find(key)
    except NotFound:
        state.authenticator.count_failure()
        raise
    request.scope[PRINCIPAL] = link.principal
    add_audit_ids(request, link_id=link.link_id, execution_id=link.execution_id)
    if link.request_id is not None:
        add_audit_ids(request, request_id=link.request_id)
    state.authenticator.count_request(link.principal.account)
    return link


def _only_shows() -> ProblemError:
    message, allowed = "the link shows something, and answers nothing", {"Allow": "GET, HEAD"}
    return ProblemError(405, "method-not-allowed", message, headers=allowed)


async def _posted(request: Request) -> dict[str, str]:
    """Return the fields of a sent form.

    Raises:
        InputError: ``invalid-body``.
    """
    try:
        text = (await request.body()).decode("utf-8", "replace")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError as error:
        raise InputError("the form has too many fields", code="invalid-body") from error
