"""Outputs of a node, by handle: as values, and as the JSON document that events carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from planwave.graph.model import DataValue
from planwave.shapes.common import OutputDocument, OutputsDocument

Outputs: TypeAlias = Mapping[str, DataValue]


def outputs_to_json(outputs: Outputs) -> OutputsDocument:
    """Return outputs as events carry them: ``{handle: {"type", "value"}}``."""
    document: OutputsDocument = {}
    for handle, (kind, value) in outputs.items():  # a comprehension is a call more for each node
        document[handle] = {"type": kind, "value": value}
    return document


def outputs_from_json(document: Mapping[str, OutputDocument] | None) -> dict[str, DataValue]:
    """Return the outputs that an event carries, none where it has no document."""
    return {
        handle: DataValue(each["type"], each["value"]) for handle, each in (document or {}).items()
    }
