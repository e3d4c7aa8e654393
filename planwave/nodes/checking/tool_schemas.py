"""Checks of the JSON Schemas of tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from planwave.graph.model import Json
from planwave.nodes.authoring.node_type import NodeFinding

NO_ARGUMENTS: Final[dict[str, Any]] = {"type": "object", "properties": {}}
"""The schema of a tool without arguments."""


def check_parameters(parameters: Mapping[str, Json]) -> Iterator[NodeFinding]:
    """Find what is wrong with the JSON Schema of arguments."""
    # Lazy: test_importing_the_node_library_loads_no_sdk
    from planwave.nodes.json_schema import check_schema

    pointer = "/data/parameters"
    if parameters.get("type") != "object":
        yield NodeFinding(
            "invalid-data",
            "the arguments of a tool are an object, and this schema does not say so",
            f"{pointer}/type",
            hint='write "type": "object"',
        )
    for error in check_schema(dict(parameters)):
        message = f"data.parameters is no usable JSON Schema: {error.message}"
        yield NodeFinding("invalid-data", message, f"{pointer}{error.pointer}", error.hint)
