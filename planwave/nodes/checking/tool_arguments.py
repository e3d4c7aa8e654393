"""Checks of the arguments of a call that stands in a graph, as far as they are known before a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from planwave.expressions import has_template
from planwave.graph.model import Json
from planwave.graph.suggestions import Correction, closest_match
from planwave.nodes.authoring.node_type import NodeFinding

_POINTER: Final = "/data/arguments"


def check_arguments(
    arguments: Mapping[str, Json], schema: Mapping[str, Any], what: str
) -> Iterator[NodeFinding]:
    """Find arguments that the schema of a tool refuses, whatever the templates in them become.

    Args:
        arguments: ``data.arguments`` of a node.
        schema: The schema of the tool's arguments.
        what: The tool, for messages.
    """
    # Lazy: test_the_schema_library_is_loaded_only_for_forms
    from planwave.nodes.json_schema import certain_errors

    properties: Mapping[str, Any] = schema.get("properties") or {}
    for error in certain_errors(dict(schema), dict(arguments), has_template):
        hint = correction = None
        if (name := error.unexpected) is not None and error.pointer.count("/") == 1:
            near = closest_match(name, [each for each in properties if each not in arguments])
            hint = f"did you mean {near!r}?" if near else _names_text(properties)
            if near is not None and not isinstance(
                arguments[name], dict
            ):  # its nulls would be lost
                renamed = {"arguments": {name: None, near: arguments[name]}}
                correction = Correction(f"Rename it to {near}", {"data": renamed})
        yield NodeFinding(
            "invalid-arguments",
            f"the arguments do not fit {what}: {error.message}",
            f"{_POINTER}{error.pointer}",
            error.hint or hint,
            correction=correction,
        )


def _names_text(properties: Mapping[str, Any]) -> str:
    return f"it takes {', '.join(properties)}" if properties else "it takes no arguments"
