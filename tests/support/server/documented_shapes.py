"""Every JSON response of the application against the shape that its route documents."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple, Union, cast

import httpx2
from pydantic import TypeAdapter
from starlette.routing import compile_path

from planwave.api.app import create_app
from planwave.api.openapi import http_routes, response_shapes, shapes_by_name
from planwave.settings import Settings

UNDOCUMENTED = ("/hooks/",)
"""What is answered there is what a flow gives."""


class DocumentedRoute(NamedTuple):
    """A route, and the names of the shapes of its responses by status."""

    methods: frozenset[str]
    path: re.Pattern[str]
    shapes: dict[str, tuple[str, ...]]


@cache
def documented_routes() -> list[DocumentedRoute]:
    """Return all routes, in the order in which they are tried."""
    app = create_app(Settings(), cast("Any", None))  # only the routes are read
    return [
        DocumentedRoute(
            frozenset(each.methods or ()),
            compile_path(each.path or "")[0],
            response_shapes(each),
        )
        for each in http_routes(app)
        if each.include_in_schema
    ]


@cache
def shape_reader(names: tuple[str, ...]) -> TypeAdapter[Any]:
    """Return what reads JSON of one of these shapes."""
    known = shapes_by_name()
    return TypeAdapter(Union[tuple(known[name] for name in names)])  # noqa: UP007


def check_shape(value: Any, *names: str) -> None:
    """Refuse JSON that has not one of these shapes, or has more than it."""
    shape_reader(names).validate_python(value, strict=True, extra="forbid")


async def check_response(response: httpx2.Response) -> None:
    """Refuse a successful JSON response that is not as its route documents it.

    For ``event_hooks`` of a client, so that each test of the API is one of its document.
    """
    path, is_json = response.request.url.path, response.headers.get("content-type", "")
    if not response.is_success or is_json != "application/json" or path.startswith(UNDOCUMENTED):
        return
    for route in documented_routes():
        if response.request.method in route.methods and route.path.match(path):
            if names := route.shapes.get(str(response.status_code)):
                await response.aread()
                check_shape(response.json(), *names)
            return
