"""The OpenAPI document of the service, as the generators of client types read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, cast, get_args

from planwave.api.app import create_app
from planwave.settings import Settings
from planwave.shapes import common

REF = "#/components/schemas/"
ALIASES: dict[frozenset[str], str] = {
    frozenset(get_args(getattr(common, name))): name
    for name in ("ExecutionStatus", "NodeStatus", "PlanStatus")
}
"""The sets of values that have a name, by the values."""


@cache
def document() -> dict[str, Any]:
    """Return the whole document."""
    service = cast("Any", None)  # only the routes are read
    return create_app(Settings(), service).openapi()


def schemas() -> dict[str, Any]:
    """Return the schemas of all components, by name."""
    return document()["components"]["schemas"]


def aliases() -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the sets of values that have a name, in their order, and the name."""
    for name in ALIASES.values():
        yield get_args(getattr(common, name)), name


def with_parts(name: str, schemas: Mapping[str, Any], done: set[str]) -> Iterator[str]:
    """Yield a schema's name after those of the schemas it refers to, each once."""
    if name in done:
        return
    done.add(name)
    for reference in references(schemas[name]):
        yield from with_parts(reference, schemas, done)
    yield name


def references(schema: Any) -> Iterator[str]:
    """Yield the names of the schemas that a schema, or a list of them, refers to itself."""
    if isinstance(schema, list):
        for item in cast("list[Any]", schema):
            yield from references(item)
    elif isinstance(schema, dict):
        for key, value in cast("dict[str, Any]", schema).items():
            if key == "$ref":
                yield value.removeprefix(REF)
            else:
                yield from references(value)
