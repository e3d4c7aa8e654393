"""Suggestions for misspelt names, and the operations that correct a graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from planwave.graph.editing.merge_patch import apply_merge_patch
from planwave.graph.model import Edge, Json, edge_document
from planwave.graph.operations import AddEdge, RemoveEdge, UpdateNode, operation_json
from planwave.graph.reading.unreadable import UNREADABLE

if TYPE_CHECKING:
    from planwave.shapes.graphs import SuggestionResponse

LOAD_OWN_TYPE: Final = (
    "a type of your own is known when its module is imported; the command line and the service "
    "import the node_modules of planwave.toml"
)
"""The rest of a hint about an unknown node type."""
MAX_SUGGESTIONS: Final = 10
"""Misspelt names of one document that are compared with the known ones."""
_MIN_SIMILARITY: Final = 0.65
"""Ratio of ``difflib``. At its default of 0.6, the type "divide" would be a misspelt "void"."""
_MAX_CHARS: Final = 64
_MAX_CANDIDATES: Final = 300


class Correction(NamedTuple):
    """The one way to correct a node or an edge.

    ``label`` is the text of a button; ``patch`` is a merge patch (RFC 7396) for its document.
    """

    label: str
    patch: Mapping[str, Json]


def node_suggestion(node_id: str, correction: Correction | None) -> SuggestionResponse | None:
    """Return the correction of a node as ``Diagnostic.suggestion``."""
    if correction is None:
        return None
    return _suggestion(correction.label, UpdateNode(node_id, correction.patch))


def edge_suggestion(edge: Edge, correction: Correction | None) -> SuggestionResponse | None:
    """Return the correction of an edge as ``Diagnostic.suggestion``: the edge is replaced."""
    if correction is None or UNREADABLE in edge[:6]:
        return None
    corrected = apply_merge_patch(edge_document(edge), correction.patch)
    return _suggestion(correction.label, RemoveEdge(edge.id), AddEdge(corrected))


def edge_removal(edge: Edge) -> SuggestionResponse:
    """Return the removal of an edge as ``Diagnostic.suggestion``."""
    return _suggestion("Remove the edge", RemoveEdge(edge.id))


def _suggestion(label: str, *operations: UpdateNode | RemoveEdge | AddEdge) -> SuggestionResponse:
    documents: Any = [operation_json(each) for each in operations]
    return {"label": label, "operations": documents}


def closest_match(name: str, candidates: Collection[str]) -> str | None:
    """Return the known name closest to a misspelt one, or None if none is close.

    Names over 64 characters and more than 300 known names are not compared: it takes too long.
    """
    if len(name) > _MAX_CHARS or len(candidates) > _MAX_CANDIDATES:
        return None
    plain = normalized(name)
    for candidate in candidates:
        if normalized(candidate) == plain:
            return candidate
    close = get_close_matches(name, candidates, n=1, cutoff=_MIN_SIMILARITY)
    return close[0] if close else None


def normalized(name: str) -> str:
    """Return a name without case and separators, so that "Research X" matches "research_x"."""
    return "".join(c for c in name.casefold() if c.isalnum())
