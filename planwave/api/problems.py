"""Every failure as ``application/problem+json`` (RFC 9457) with a stable ``code``.

Routes raise; no route builds an error response itself. ``responses=problems(404, 409)`` documents the
errors of a route in OpenAPI. Pointers in diagnostics are prefixed so that they
point into the request body.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from planwave.errors import (
    Forbidden,
    GraphInvalid,
    InputError,
    InvalidInputs,
    LimitExceeded,
    NotFound,
    PlanInvalid,
    PlanwaveError,
    PreconditionFailed,
    ProviderError,
    ShuttingDown,
    StoreError,
    TooManyRequests,
    Unauthorized,
)
from planwave.graph.diagnostics import Diagnostic, short_repr
from planwave.interop.importing.importer import UnknownFormat
from planwave.interop.openai.errors import PREFIX as OPENAI_PREFIX
from planwave.interop.openai.errors import openai_error
from planwave.jsonio import dumps_exact
from planwave.service.plans.plan_service import DESCRIPTION_POINTER
from planwave.service.plans.policies import POLICIES
from planwave.storage.records import STORE_UNREACHABLE
from planwave.validation import describe_error

MEDIA_TYPE: Final = "application/problem+json"
DRAINING_RETRY_S: Final = 5.0
_STORE_RETRY_S: Final = 5.0
_BUSY_RETRY_S: Final = 1
_LISTED: Final = ("execution", "plan", "flow", "trigger")
"""What a GET of its plural lists, by the name in a path's ``*_id``."""
_LONGEST_REASON: Final = 123
"""Bytes of a WebSocket close reason (RFC 6455 §5.5)."""
_CLOSE_CODES: Final = {401: 4401, 403: 4403, 404: 4404, 429: 4429, 503: 1012}
_UNPROCESSABLE: Final = 1008

_STATUS_EXAMPLES: Final = {
    400: ("invalid-json", "The body is not JSON, or the request is not HTTP."),
    401: ("unauthorized", "The token is missing or wrong."),
    403: (
        "forbidden",
        "The `Host` or `Origin` is not allowed, or the access token is not for this.",
    ),
    404: ("not-found", "Nothing of that id exists."),
    405: ("method-not-allowed", "The route has no such method; `Allow` lists those it has."),
    408: ("request-timeout", "The request did not arrive in time."),
    409: ("conflict", "The request is not possible in the present state."),
    410: (
        "request-closed",
        "The request is closed: its time was over, or its node or execution was cancelled.",
    ),
    412: (
        "outdated",
        "The item has changed since the version in `If-Match`; `current` is its present hash.",
    ),
    413: (
        "limit-exceeded",
        "A value is larger than a limit: `limit` is its name, `value` the limit, `met` the value.",
    ),
    415: ("unsupported-media-type", "Bodies are JSON: `Content-Type: application/json`."),
    422: ("invalid-body", "The body has errors; `issues` lists all of them."),
    428: (
        "precondition-required",
        "The change does not name what it is based on: send `If-Match`.",
    ),
    429: ("too-many-requests", "Too many requests; `Retry-After` says when to send the next one."),
    431: ("limit-exceeded", "The head of the request is larger than `header_bytes`."),
    500: ("internal-error", "A fault in planwave; its log has it under `request_id`."),
    502: ("provider-error", "A model provider failed."),
    503: ("server-draining", "The service is shutting down, or its store cannot be used."),
}
"""Of each status: a code that comes with it, and when."""


class Issue(BaseModel):
    """One error, warning or note."""

    model_config = ConfigDict(extra="allow")

    code: str = Field(description="Stable; branch on it.")
    message: str = Field(description="The error and its location, one sentence.")
    pointer: str = Field(description="JSON pointer into the document that was sent.")
    severity: str | None = Field(None, description="`error`, `warning` or `info`.")
    hint: str | None = Field(None, description="How to correct it.")
    node: str | None = Field(None, description="Id of the node concerned.")
    edge: str | None = Field(None, description="Id of the edge concerned.")
    path: list[str] | None = Field(None, description="Of a cycle: the node ids around it.")
    suggestion: dict[str, Any] | None = Field(
        None, description="The one way to correct it: `{label, operations}`, as a check gives it."
    )
    parameter: str | None = Field(None, description="The query or header parameter concerned.")


class Problem(BaseModel):
    """A failure (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

    type: str = Field("about:blank", description="Always `about:blank`: `code` tells them apart.")
    title: str = Field(description="The code in words.")
    status: int = Field(description="The HTTP status.")
    code: str = Field(description="Stable and machine-readable; branch on it, never on `detail`.")
    detail: str = Field(description="The failure and its location, one sentence.")
    hint: str | None = Field(None, description="The way out.")
    request_id: str | None = Field(None, description="The id of the request in the log.")
    issues: list[Issue] | None = Field(None, description="All errors.")
    attempts: list[dict[str, Any]] | None = Field(
        None, description="Of `plan-invalid`: each reply of the model, with its errors."
    )
    limit: str | None = Field(
        None, description="The name of the limit that is exceeded, if it is one."
    )
    value: float | None = Field(None, description="Of `limit-exceeded`: the limit.")
    met: float | None = Field(None, description="Of `limit-exceeded`: the value that exceeds it.")
    retry_after_s: float | None = Field(
        None, description="Seconds until the next request may be sent."
    )
    current: str | None = Field(None, description="Of 412: the present hash, as in `ETag`.")
    kinds: list[str] | None = Field(
        None,
        description="Of `unknown-format` and `ambiguous-format`: the kinds that the file may be read as.",
    )


ErrorPages = Mapping[str, Callable[[PlanwaveError], Response]]
"""What makes pages of errors, by the beginning of the paths."""


class ProblemError(InputError):
    """An error of the HTTP request itself, with its own status."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.status_hint = status
        self.headers = headers or {}


DENIED: Final = "planwave.denied"
"""Key of the error in the scope of a connection that was not allowed (401, 403)."""


class InvalidRequest(InputError):
    """Several things are wrong with a request; ``issues`` holds them as JSON."""

    code = "invalid-request"

    def __init__(self, message: str, issues: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(message)
        self.issues = issues


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return OpenAPI ``responses`` for the errors of a route."""
    return {status: _response(status) for status in statuses}


def problem_details(error: PlanwaveError, request_id: str | None = None) -> dict[str, Any]:
    """Return ``{type, title, status, code, detail, hint?, issues?, …}``; see ``Problem``."""
    return {
        "type": "about:blank",
        "title": error.code.replace("-", " "),
        "status": error.status_hint,
        "code": error.code,
        "detail": error.message,
        **({"hint": error.hint} if error.hint else {}),
        **_extension_members(error),
        **({"request_id": request_id} if request_id is not None else {}),
    }


def problem_response(error: PlanwaveError, request_id: str | None = None) -> Response:
    """Return the response to a request that failed."""
    return ProblemResponse(error, request_id)


class ProblemResponse(Response):
    """The response to a request that failed: a problem, at ``/v1/`` an error as OpenAI writes it, or a page for people.

    ``app.state.error_pages`` has what makes the pages, by the beginning of the paths where people open them.
    """

    media_type = MEDIA_TYPE

    def __init__(self, error: PlanwaveError, request_id: str | None = None) -> None:
        super().__init__(
            dumps_exact(problem_details(error, request_id)), error.status_hint, _headers(error)
        )
        self._error = error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        response = self._in_form_of(scope)
        await (super().__call__ if response is None else response)(scope, receive, send)

    def _in_form_of(self, scope: Scope) -> Response | None:
        """Return the response in the form that the path of a request has; None for a problem."""
        path = f"{scope.get('path', '')}/"  # with a slash, so that /v1 itself is one of its paths
        if path.startswith(OPENAI_PREFIX):
            status, body = openai_error(self._error)
            headers = _headers(self._error)
            return Response(dumps_exact(body), status, headers, media_type="application/json")
        pages: ErrorPages = getattr(scope["app"].state, "error_pages", {}) if "app" in scope else {}
        for prefix, page in pages.items():
            if path.startswith(prefix):
                return page(self._error)
        return None


async def send_problem(connection: HTTPConnection, error: PlanwaveError) -> Response | None:
    """Answer a request, or close a WebSocket, with the problem; None for the latter."""
    if isinstance(error, Unauthorized | Forbidden):
        connection.scope[DENIED] = error
    if not isinstance(connection, WebSocket):
        return problem_response(error)
    with suppress(OSError, WebSocketDisconnect):  # the client has disconnected
        if connection.client_state is WebSocketState.CONNECTING:
            await connection.accept()
        await connection.close(*close_of(error))
    return None


def close_of(error: PlanwaveError) -> tuple[int, str]:
    """Return the code and the reason with which an error closes a WebSocket."""
    code = _CLOSE_CODES.get(error.status_hint, _UNPROCESSABLE)
    return code, _truncated(f"{error.code}: {error.message}")


def register_handlers(app: FastAPI) -> None:
    """Answer every planned failure, and those of the framework, with a problem."""

    async def planned(connection: HTTPConnection, error: Exception) -> Response | None:
        assert isinstance(error, PlanwaveError)  # noqa: S101 - registered for no other class
        return await send_problem(connection, error)

    async def of_framework(connection: HTTPConnection, error: Exception) -> Response | None:
        assert isinstance(error, HTTPException)  # noqa: S101 - registered for no other class
        return await send_problem(connection, _from_http_exception(connection, error))

    async def of_parameters(connection: HTTPConnection, error: Exception) -> Response | None:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for no other class
        return await send_problem(connection, _from_validation_error(connection, error.errors()))

    app.add_exception_handler(PlanwaveError, planned)  # pyright: ignore[reportArgumentType]
    app.add_exception_handler(HTTPException, of_framework)  # pyright: ignore[reportArgumentType]
    app.add_exception_handler(RequestValidationError, of_parameters)  # pyright: ignore[reportArgumentType]


def _response(status: int) -> dict[str, Any]:
    code, when = _STATUS_EXAMPLES[status]
    example = {
        "type": "about:blank",
        "title": code.replace("-", " "),
        "status": status,
        "code": code,
        "detail": when.replace("`", ""),
    }
    schema = {"$ref": "#/components/schemas/Problem"}
    content = {MEDIA_TYPE: {"schema": schema, "example": example}}
    return {"description": when, "content": content}


def _retry_after_s(error: PlanwaveError) -> float | None:
    """Return when a request may be sent again that is refused only for now; None where that is not known."""
    match error:
        case TooManyRequests():
            return error.retry_after_s
        case ShuttingDown():
            return DRAINING_RETRY_S
        case StoreError() if error.code == STORE_UNREACHABLE:
            return _STORE_RETRY_S
        case _:
            return None


def _extension_members(error: PlanwaveError) -> dict[str, Any]:
    if (retry_after_s := _retry_after_s(error)) is not None:
        return {"retry_after_s": retry_after_s}
    match error:
        case GraphInvalid():
            attempts = {"attempts": list(error.attempts)} if isinstance(error, PlanInvalid) else {}
            return {"issues": _issues(error.diagnostics), **attempts}
        case InvalidRequest():
            return {"issues": list(error.issues)}
        case LimitExceeded():
            return {"limit": error.limit, "value": error.value, "met": error.met}
        case PreconditionFailed():
            return {"current": error.current}
        case UnknownFormat(kinds=(_, *_)):
            return {"kinds": list(error.kinds)}
        case InputError(limit=str(limit)):
            return {"limit": limit}
        case ProviderError():
            return {"provider": error.provider, "model": error.model}
        case _:
            return {}


def _issues(diagnostics: Iterable[Any]) -> list[dict[str, Any]]:
    return [each.as_json() for each in diagnostics]


def _headers(error: PlanwaveError) -> dict[str, str]:
    if (retry_after_s := _retry_after_s(error)) is not None:
        return {"Retry-After": str(max(1, math.ceil(retry_after_s)))}
    match error:
        case LimitExceeded(status_hint=503):
            return {"Retry-After": str(_BUSY_RETRY_S)}
        case Unauthorized():
            return {"WWW-Authenticate": "Bearer"}
        case PreconditionFailed():
            return {"ETag": f'"{error.current}"'}
        case ProblemError():
            return dict(error.headers)
        case _:
            return {}


def _from_http_exception(connection: HTTPConnection, error: HTTPException) -> PlanwaveError:
    """Convert an error of Starlette or FastAPI."""
    where = short_repr(connection.url.path)
    match error.status_code:
        case 404:
            return NotFound(f"there is nothing at {where}", hint="GET /openapi.json lists routes")
        case 405 if isinstance(connection, Request):
            message = f"{where} has no method {short_repr(connection.method)}"
            allowed = ", ".join(_allowed_methods(connection))
            return ProblemError(405, "method-not-allowed", message, headers={"Allow": allowed})
        case _:
            message = f"{where}: {error.detail}"
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    return ProblemError(error.status_code, code, message, headers=error.headers)


def _allowed_methods(connection: HTTPConnection) -> list[str]:
    """Return the methods of all routes of a path; the framework lists those of the first one."""
    routes = iter_route_contexts(connection.app.routes)
    here = (r.methods or () for r in routes if r.path_regex.match(connection.scope["path"]))
    allowed = {method for methods in here for method in methods}
    return sorted(
        allowed | {"HEAD"} if "GET" in allowed else allowed
    )  # see middleware/head_method.py


def _from_validation_error(connection: HTTPConnection, errors: Sequence[Any]) -> PlanwaveError:
    """Convert validation errors of path, query and headers; an invalid id in a path is not found."""
    issues: list[dict[str, Any]] = []
    for each in errors:
        place, *rest = each["loc"]
        name = ".".join(str(part) for part in rest)
        if place == "path":
            value = short_repr(connection.path_params.get(name, ""))
            kind = name.removesuffix("_id")
            hint = f"GET /api/{kind}s lists the {kind}s and their ids" if kind in _LISTED else None
            return NotFound(f"{value} is no {name.replace('_', ' ')}", hint=hint)
        message = describe_error(f"{place} parameter {short_repr(name)}", each)
        issue = {"code": "invalid-parameter", "message": message, "pointer": "", "parameter": name}
        issues.append(issue)
    more = f" (and {len(issues) - 1} more)" if len(issues) > 1 else ""
    return InvalidRequest(f"{issues[0]['message']}{more}", issues)


def _truncated(text: str) -> str:
    return text.encode()[:_LONGEST_REASON].decode(errors="ignore")


GRAPH_POINTER: Final = "/graph"
"""Where the graph is in bodies that hold one."""
_OPTIONS_POINTER: Final = "/options"


@contextmanager
def prefix_error_pointers(graph: str = "") -> Generator[None]:
    """Prefix the pointers of diagnostics so that they point into the body; ``graph`` points to its graph."""
    try:
        yield
    except InvalidInputs:  # they point into the body already
        raise
    except GraphInvalid as error:
        diagnostics: tuple[Diagnostic, ...] = error.diagnostics
        error.diagnostics = tuple(
            replace(
                each,
                pointer=f"{_parent_of(each, graph)}{each.pointer}",
            )
            for each in diagnostics
        )
        raise


def _parent_of(finding: Diagnostic, graph: str) -> str:
    """Return where in a body the document is that a pointer points into."""
    if finding.pointer.startswith(f"{POLICIES}/"):
        return _OPTIONS_POINTER
    is_description = finding.pointer == DESCRIPTION_POINTER and finding.code.startswith("template-")
    return "" if is_description else graph
