"""JSON merge patches (RFC 7396)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from planwave.graph.model import Json


def apply_merge_patch(target: Json, patch: Json) -> Json:
    """Return a value with an RFC 7396 merge patch applied; neither argument is changed.

    Null removes a field, an object is merged field by field, anything else replaces the value.
    """
    if not isinstance(patch, Mapping):
        return patch
    fields = cast("Mapping[str, Json]", patch)
    is_object = isinstance(target, Mapping)
    merged = dict(cast("Mapping[str, Json]", target)) if is_object else dict[str, Json]()
    for name, value in fields.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = apply_merge_patch(merged.get(name), value)
    return merged
