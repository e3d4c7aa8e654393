"""The OpenAPI document: FastAPI's own, completed with bodies, errors and authentication."""

from __future__ import annotations

import ast
import inspect
import pkgutil
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import Any, Final, cast

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts
from typing_extensions import get_original_bases, is_typeddict

from planwave import errors, principals, shapes
from planwave.api.auth import require_principal
from planwave.api.json_body import body_model
from planwave.api.middleware.idempotency import IDEMPOTENCY_HEADER, takes_key
from planwave.api.problems import MEDIA_TYPE, Problem, ProblemError, problems
from planwave.api.schemas.streams import definitions, stream_schemas
from planwave.interop.openai.errors import PREFIX as OPENAI_PREFIX
from planwave.interop.openai.errors import openai_error
from planwave.shapes.openai import OpenAIError

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
    document = generate()
    components = document.setdefault("components", {})
    schemas: dict[str, Any] = components.setdefault("schemas", {})
    for name in _FASTAPI_SCHEMAS:
        schemas.pop(name, None)
    routes = list(http_routes(app))
    schemas |= stream_schemas() | definitions(Problem, *_shapes_of_responses(routes))
    for name, schema in definitions(*_body_models(routes)).items():
        schemas.setdefault(name, schema)  # shapes are not as strict as the bodies that they are in
    _describe_fields(schemas)
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": "planwave_session"},
    }
    for route in routes:
        for method in (route.methods or ()) if route.include_in_schema else ():
            operation = document["paths"][route.path_format][method.lower()]
            if takes_key(method, route.path or ""):
                operation.setdefault("parameters", []).append(_KEY_PARAMETER)
            _complete(operation, route.dependant)
            _restore_examples(operation["responses"], route.responses)
            if (route.path or "").startswith(OPENAI_PREFIX):
                _write_errors_as_openai(operation["responses"])
    return document


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


def _complete(operation: dict[str, Any], dependant: Dependant) -> None:
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
        content = {"schema": {"$ref": _SCHEMAS.format(model=model.__name__)}}
        others = operation.get("requestBody", {}).get("content", {})  # ``openapi_extra``
        operation["requestBody"] = {
            "required": not may_be_empty,
            "content": {"application/json": content, **others},
        }
    responses = operation["responses"]
    if any(_is_fastapi_default(response) for response in responses.values()):
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


# -- schemas of shapes -----------------------------------------------------------------------------


def response_shapes(route: RouteContext) -> dict[str, tuple[str, ...]]:
    """Return the names of the shapes of a route's JSON responses, by status."""
    return {
        str(status): tuple(_names_in(json_content["schema"]))
        for status, response in route.responses.items()
        if (json_content := response.get("content", {}).get("application/json"))
    }


def shapes_by_name() -> dict[str, Any]:
    """Return all shapes that responses may have."""
    return {
        name: each
        for module in _modules_of_shapes()
        for name, each in vars(module).items()
        if is_typeddict(each)
    }


def _names_in(schema: Mapping[str, Any]) -> Iterator[str]:
    for each in schema.get("anyOf", [schema]):
        if "$ref" in each:
            yield each["$ref"].rpartition("/")[2]


def _shapes_of_responses(routes: Iterable[RouteContext]) -> list[Any]:
    shapes = shapes_by_name()
    names = {name for each in routes for names in response_shapes(each).values() for name in names}
    return [OpenAIError, *(shapes[name] for name in sorted(names))]


def _body_models(routes: Iterable[RouteContext]) -> list[Any]:
    calls = {call: None for route in routes for call in dependencies_of(route.dependant)}
    return [model for model, _ in filter(None, map(body_model, calls))]


def _describe_fields(schemas: dict[str, Any]) -> None:
    """Give the fields of shapes the docstrings that stand below them.

    Pydantic would search the source of a class anew for each schema that it is part of, and not see
    inherited fields.
    """
    for name, shape in shapes_by_name().items():
        if name in schemas:
            for field, text in _field_docstrings(shape).items():
                schemas[name]["properties"][field].setdefault("description", text)


def _field_docstrings(shape: Any) -> dict[str, str]:
    docstrings = dict(_docstrings_in(shape.__module__)[shape.__name__])
    for base in filter(is_typeddict, get_original_bases(shape)):
        docstrings |= _field_docstrings(base)
    return docstrings


@cache
def _docstrings_in(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of fields, by class and field."""
    by_class: dict[str, dict[str, str]] = {}
    for statement in ast.parse(inspect.getsource(import_module(module))).body:
        if isinstance(statement, ast.ClassDef):
            fields = by_class[statement.name] = {}
            for field, text in pairwise(statement.body):
                match field, text:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(docstring))),
                    ):
                        fields[name] = inspect.cleandoc(docstring)
                    case _:
                        pass
    return by_class


def _modules_of_shapes() -> Iterator[ModuleType]:
    yield from (errors, principals)
    for each in pkgutil.iter_modules(shapes.__path__, f"{shapes.__name__}."):
        yield import_module(each.name)
