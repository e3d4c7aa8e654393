"""Data fields that mean more than their value: graphs, and expressions a node resolves itself."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field, JsonValue

from planwave.expressions.lexer import has_template

HIDDEN_FROM_PLANNER: Final[dict[str, JsonValue]] = {"planned": False}
"""Marks data fields that are not for plans written by models: these are not told of them."""


def graph_field(*names: str, names_of: str | None = None) -> Any:
    """Declare a data field that holds a graph document, run inside the node.

    Nothing in it is resolved before it runs; it is checked together with the graph around it.

    Args:
        names: What its expressions may name besides what those of the graph around it may.
        names_of: A field that is an object; its keys are such names too.
    """
    marks: dict[str, Any] = {"graph": True, "names": [*names]}
    if names_of is not None:
        marks["namesOf"] = names_of
    return Field(None, json_schema_extra=marks)


def expression_field(*names: str) -> Any:
    """Declare a required data field that is one expression, resolved by the node as it runs.

    Args:
        names: What it may name besides what templates of the node may.
    """
    return Field(..., min_length=1, json_schema_extra={"expression": True, "names": [*names]})


def limited_field(limit: str) -> Any:
    """Declare a data field for a whole number that a limit of the settings bounds; None is that."""
    return Field(None, ge=1, json_schema_extra={"limit": limit})


def as_expression(text: str) -> str:
    """Give what is to be resolved of an expression that may be written with its braces or without."""
    return text if has_template(text) else f"{{{{ {text} }}}}"
