"""The differences between two graph documents: nodes and edges added, removed and changed, by field.

``ui`` is left out: it decides where an editor draws a node, not what the graph does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from planwave.graph.json_values import pointer_part
from planwave.graph.model import Json
from planwave.graph.plan import canonical_json, without_ui

if TYPE_CHECKING:
    from planwave.shapes.plans import ElementDifference, FieldDifference, GraphDifference

_KINDS: Final = ("nodes", "edges")
_Key = tuple[Json, int, str, str]


def graph_difference(a: Mapping[str, Json], b: Mapping[str, Json]) -> GraphDifference:
    """Return what distinguishes graph ``b`` from graph ``a``.

    Args:
        a: A graph document whose lists hold objects.
        b: Another one.

    Returns:
        ``{"nodes": […], "edges": […], "reordered": ["nodes"?, "edges"?]}``. An entry is
        ``{"id", "change": "added", "after"}``, ``{"id", "change": "removed", "before"}`` or
        ``{"id", "change": "changed", "fields": [{"pointer", "before"?, "after"?}]}``; pointers are
        into the node or the edge. A changed edge has ``after``, too: its id tells a person nothing. Removed ones come
        first, the others in the order of ``b``. An edge between other nodes than before is one that was removed and one
        that was added, also under the same id.
        ``reordered`` names the lists whose common members have another order.
    """
    difference: GraphDifference = {"nodes": [], "edges": [], "reordered": []}
    for kind in _KINDS:
        is_edge = kind == "edges"
        before, after = (_by_key(each[kind], is_edge=is_edge) for each in (a, b))
        difference[kind].extend(_list_difference(before, after, is_edge=is_edge))
        if [key for key in before if key in after] != [key for key in after if key in before]:
            difference["reordered"].append(kind)
    return difference


def _by_key(items: Sequence[dict[str, Json]], *, is_edge: bool) -> dict[_Key, dict[str, Json]]:
    """Return nodes by id, edges by id and ends; several of the same id are counted."""
    seen = Counter[Json]()
    by_key: dict[_Key, dict[str, Json]] = {}
    for item in items:
        own_id = item.get("id")
        ends = (str(item.get("source")), str(item.get("target"))) if is_edge else ("", "")
        by_key[own_id, seen[own_id], *ends] = item if is_edge else without_ui(item)
        seen[own_id] += 1
    return by_key


def _list_difference(
    before: Mapping[_Key, dict[str, Json]],
    after: Mapping[_Key, dict[str, Json]],
    *,
    is_edge: bool,
) -> Iterator[ElementDifference]:
    for key, item in before.items():
        if key not in after:
            yield {"id": key[0], "change": "removed", "before": item}
    for key, item in after.items():
        if key not in before:
            yield {"id": key[0], "change": "added", "after": item}
        elif fields := list(field_differences(before[key], item)):
            changed: ElementDifference = {"id": key[0], "change": "changed", "fields": fields}
            yield {**changed, "after": item} if is_edge else changed


def field_differences(
    before: Mapping[str, Json], after: Mapping[str, Json], pointer: str = ""
) -> Iterator[FieldDifference]:
    """Yield the fields that differ; objects are compared field by field, lists as a whole.

    Args:
        before: An object.
        after: Another one.
        pointer: The JSON pointer of both.

    Yields:
        ``{"pointer", "before"?, "after"?}``.
    """
    for name in dict.fromkeys((*before, *after)):
        here = f"{pointer}/{pointer_part(name)}"
        if name not in before:
            yield {"pointer": here, "after": after[name]}
        elif name not in after:
            yield {"pointer": here, "before": before[name]}
        elif isinstance(before[name], dict) and isinstance(after[name], dict):
            yield from field_differences(
                cast("dict[str, Json]", before[name]), cast("dict[str, Json]", after[name]), here
            )
        elif canonical_json(before[name]) != canonical_json(after[name]):  # True is not 1
            yield {"pointer": here, "before": before[name], "after": after[name]}
