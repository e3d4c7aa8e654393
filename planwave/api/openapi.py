"""The OpenAPI document: FastAPI's own, completed with bodies, errors and authentication."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, cast

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts
from pydantic.json_schema import models_json_schema

from planwave.api.auth import require_principal
from planwave.api.json_body import body_model
from planwave.api.middleware.idempotency import IDEMPOTENCY_HEADER, takes_key
from planwave.api.problems import MEDIA_TYPE, Problem, ProblemError, problems
from planwave.api.schemas.openai.responses import OpenAIError
from planwave.api.schemas.streams import stream_schemas
from planwave.interop.openai.errors import PREFIX as OPENAI_PREFIX
from planwave.interop.openai.errors import openai_error

ALL_ROUTES_STATUSES: Final[tuple[int, ...]] = (403, 408, 413, 431, 500, 503)
"""What any route may answer with."""
AUTHENTICATED_STATUSES: Final[tuple[int, ...]] = (401, 429)
BODY_STATUSES: Final[tuple[int, ...]] = (400, 415, 422)
IDEMPOTENCY_STATUSES: Final[tuple[int, ...]] = (409, 422)
EVENT_STREAM_TYPE: Final = "text/event-stream"
_EVENT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "event": {"type": "string"},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["event", "data"],
}
"""One message of a stream: that is what the schema of a stream is about."""
_KEY_PARAMETER: Final[dict[str, Any]] = {
    "name": IDEMPOTENCY_HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1},
    "description": "Any text of yours: the same request again gives the same answer.",
}
"""How an ``Idempotency-Key`` is shown."""
_DEFAULT_DESCRIPTION: Final = "Successful Response"
_SUCCESS_DESCRIPTIONS: Final = {
    200: "What was asked for.",
    201: "Made; `Location` says where it is.",
    202: "Made and queued; `Location` says where it is.",
    204: "Done; there is nothing to tell.",
}
"""What FastAPI leaves unsaid of a success."""
_SCHEMAS: Final = "#/components/schemas/{model}"
_FASTAPI_SCHEMAS: Final = ("HTTPValidationError", "ValidationError")
_SECURITY: Final[list[dict[str, list[str]]]] = [{"token": []}, {"session": []}]


def build_openapi(app: FastAPI, generate: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return FastAPI's document, from ``generate``, with the parts it does not know."""
    made = generate()
    components = made.setdefault("components", {})
    schemas: dict[str, Any] = components.setdefault("schemas", {})
    for name in _FASTAPI_SCHEMAS:
        schemas.pop(name, None)
    schemas |= _definitions(Problem)
    for name, schema in stream_schemas().items():
        schemas.setdefault(name, schema)
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": "planwave_session"},
    }
    for route in http_routes(app):
        for method in (route.methods or ()) if route.include_in_schema else ():
            operation = made["paths"][route.path_format][method.lower()]
            if takes_key(method, route.path or ""):
                operation.setdefault("parameters", []).append(_KEY_PARAMETER)
            _complete(operation, route.dependant, schemas)
            _restore_examples(operation["responses"], route.responses)
            if (route.path or "").startswith(OPENAI_PREFIX):
                schemas |= _definitions(OpenAIError)
                _write_errors_as_openai(operation["responses"])
    return made


def http_routes(app: FastAPI) -> Generator[RouteContext]:
    """Yield all routes but WebSockets, those of included routers too."""
    for route in iter_route_contexts(app.routes):
        if isinstance(route.original_route, APIRoute):
            yield route


def dependencies_of(dependant: Dependant) -> Generator[Callable[..., Any] | None]:
    """Yield all dependencies of a route in the order of their calls."""
    for inner in dependant.dependencies:
        yield from dependencies_of(inner)
        yield inner.call


def _complete(operation: dict[str, Any], dependant: Dependant, schemas: dict[str, Any]) -> None:
    statuses: list[int] = [*ALL_ROUTES_STATUSES]
    calls = list(dependencies_of(dependant))
    if require_principal in calls:
        statuses.extend(AUTHENTICATED_STATUSES)
        operation["security"] = _SECURITY
    if _KEY_PARAMETER in operation.get("parameters", ()):
        statuses.extend(IDEMPOTENCY_STATUSES)
    for body in filter(None, map(body_model, calls)):
        statuses.extend(BODY_STATUSES)
        model, may_be_empty = body
        schemas |= _definitions(model)
        content = {"schema": {"$ref": _SCHEMAS.format(model=model.__name__)}}
        operation["requestBody"] = {
            "required": not may_be_empty,
            "content": {"application/json": content},
        }
    responses = operation["responses"]
    if any(_is_fastapi_default(given) for given in responses.values()):
        statuses.append(422)
    for status, described in problems(*statuses).items():
        if _is_fastapi_default(responses.get(str(status), {"content": _NOTHING})):
            responses[str(status)] = described
    for status, response in responses.items():
        if EVENT_STREAM_TYPE in (content := response.get("content", {})):
            content[EVENT_STREAM_TYPE] |= {"schema": _EVENT_SCHEMA}
        if response["description"] == _DEFAULT_DESCRIPTION:
            response["description"] = _SUCCESS_DESCRIPTIONS[int(status)]
    operation["responses"] = dict(sorted(responses.items()))


def _write_errors_as_openai(responses: dict[str, Any]) -> None:
    """Give the errors of a route the form that OpenAI's clients read."""
    schema = {"$ref": _SCHEMAS.format(model=OpenAIError.__name__)}
    for status, response in responses.items():
        if (content := response["content"]).keys() != {MEDIA_TYPE}:
            continue
        problem = content[MEDIA_TYPE]["example"]
        error = ProblemError(int(status), problem["code"], problem["detail"])
        example = {"schema": schema, "example": openai_error(error)[1]}
        responses[status] = {**response, "content": {"application/json": example}}


def _restore_examples(responses: dict[str, Any], declared: Mapping[int | str, Any]) -> None:
    """Restore the nulls of examples, which FastAPI leaves out."""
    for status, response in declared.items():
        for kind, content in response.get("content", {}).items():
            if "example" in content:
                responses[str(status)]["content"][kind]["example"] = content["example"]


_NOTHING: Final = {"application/json": {"schema": {"$ref": "HTTPValidationError"}}}


def _is_fastapi_default(response: dict[str, Any]) -> bool:
    content = cast("dict[str, Any]", response.get("content", {})).get("application/json", {})
    return str(content.get("schema", {}).get("$ref", "")).endswith("HTTPValidationError")


def _definitions(model: Any) -> dict[str, Any]:
    """Return the JSON Schemas of a model and of its parts, by name."""
    _, whole = models_json_schema([(model, "validation")], ref_template=_SCHEMAS)
    return whole["$defs"]
