"""Schemas of arguments as servers send them, without what planwave cannot check.

The server checks its arguments itself, so that a copy may say less. It never says more: what fits the schema
of the server fits the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

from planwave.graph.reading.json_schemas import (
    CUT,
    NAMED_PARTS,
    loosened,
    modern,
    parts_of,
    recursive_references,
    target_of,
    with_parts,
    written_out,
)
from planwave.jsonio import MAX_JSON_DEPTH, dumps_exact

MAX_BYTES: Final = 64 * 1024
"""Of the copy: more would fill the context of the model."""
_MAX_READ_BYTES: Final = 512 * 1024
"""A larger schema is not read at all."""
_RECURSION_LEVELS: Final = (3, 2, 1, 0)
"""How often a part is written out inside itself: the first that fits."""
_DEPTHS: Final = (10, 7, 5, 4, 3, 2, 1, 0)
"""To how many levels of parts a schema is cut that is too large: the first that fits."""
_MAX_ROUNDS: Final = 20
_MAX_SHOWN: Final = 5
_WITH_ANOTHER: Final = {
    "properties": ("additionalProperties",),
    "patternProperties": ("additionalProperties",),
    "prefixItems": ("items",),
    "contains": ("minContains", "maxContains"),
    "if": ("then", "else"),
}
"""What goes with a keyword, since it would mean something else without it."""
_NO_PARTS: Final[dict[str, Any]] = {"type": "object", "properties": {}}


class ServerSchema(NamedTuple):
    """A schema that planwave can check, and what was left out of it, in JSON pointers or words."""

    schema: Mapping[str, Any]
    left_out: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """The rest of a sentence about its tool; empty where nothing was left out."""
        if not self.left_out:
            return ""
        more = len(self.left_out) - _MAX_SHOWN
        parts = ", ".join(self.left_out[:_MAX_SHOWN]) + (f" and {more} more" if more > 0 else "")
        return (
            f"is offered without the parts of its schema that planwave cannot check ({parts}); "
            "the server checks its arguments itself"
        )


def usable_schema(schema: Mapping[str, Any]) -> ServerSchema:
    """Return a schema of an object without the words that planwave cannot check."""
    if _size(schema) > _MAX_READ_BYTES:
        return ServerSchema(_NO_PARTS, ("all of it: it is too large",))
    pruned = modern(_pruned(dict(schema), MAX_JSON_DEPTH - 2))
    is_deep = any(CUT in part for _, part in parts_of(pruned))
    if not is_deep and _fits(pruned):
        return ServerSchema(pruned)
    left_out = dict.fromkeys(["what is nested too deep"] if is_deep else [])
    sound = _without_errors(pruned, left_out)
    for reference in _broken_references(sound):
        left_out[f"the reference {reference[:100]!r}"] = None

    recursive = recursive_references(sound)

    def is_kept(reference: str) -> bool:
        is_whole = _is_plain(reference) and reference not in recursive
        return is_whole and target_of(reference, sound) is not None

    is_recursive = bool(recursive)
    for levels in _RECURSION_LEVELS if is_recursive else _RECURSION_LEVELS[-1:]:
        flat = loosened(written_out(sound, levels, is_kept))
        if _fits(flat):
            left_out |= (
                {f"what is more than {levels} times in itself": None} if is_recursive else {}
            )
            return ServerSchema(flat, tuple(left_out))
    shortest = written_out(sound, 0, is_kept)
    return ServerSchema(_first_that_fits(shortest), (*left_out, "what makes it too large"))


def sound_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of an object without what breaks the rules; it may be recursive, and large."""
    # Lazy: test_the_schema_library_is_loaded_only_for_forms
    from planwave.nodes.json_schema import document_errors

    if not document_errors(dict(schema)):
        return schema
    pruned = modern(_pruned(dict(schema), MAX_JSON_DEPTH - 2))
    return loosened(_without_errors(pruned, {}))


def _fits(schema: Mapping[str, Any]) -> bool:
    # Lazy: test_the_schema_library_is_loaded_only_for_forms
    from planwave.nodes.json_schema import check_schema

    return _size(schema) <= MAX_BYTES and not check_schema(dict(schema))


def _size(schema: Mapping[str, Any]) -> int:
    return len(dumps_exact(schema).encode("utf-8", "replace"))


def _is_plain(reference: str) -> bool:
    # Lazy: test_the_schema_library_is_loaded_only_for_forms
    from planwave.nodes.json_schema import is_plain_reference

    return is_plain_reference(reference)


def _broken_references(schema: Mapping[str, Any]) -> list[str]:
    references = (part.get("$ref") for _, part in parts_of(schema))
    texts = dict.fromkeys(each for each in references if isinstance(each, str))
    return [each for each in texts if target_of(each, schema) is None]


def _pruned(value: Any, levels: int) -> Any:
    """Return JSON of at most so many levels; an object that is deeper is empty, and marked."""
    if isinstance(value, dict):
        named = cast("dict[str, Any]", value)
        if levels == 0:
            return {CUT: True}
        return {name: _pruned(each, levels - 1) for name, each in named.items()}
    if isinstance(value, list):
        listed = cast("list[Any]", value)
        return [_pruned(each, levels - 1) for each in listed] if levels else []
    return value


def _without_errors(schema: dict[str, Any], left_out: dict[str, None]) -> dict[str, Any]:
    """Drop the words of a schema that cannot be used; each is noted, and marked where it was."""
    # Lazy: test_the_schema_library_is_loaded_only_for_forms
    from planwave.nodes.json_schema import document_errors

    left_out |= dict.fromkeys(_drop_unusable_words(schema))
    for _ in range(_MAX_ROUNDS):
        pointers = {error.pointer for error in document_errors(schema)}
        if not pointers:
            return schema
        for pointer in sorted(pointers, key=len, reverse=True):
            left_out[_drop(schema, pointer)] = None
        schema.setdefault("type", "object")
    left_out["all of it"] = None
    return dict(_NO_PARTS)


def _drop_unusable_words(schema: dict[str, Any]) -> Iterator[str]:
    """Drop patterns that the engine does not have, and words that move references."""
    # Lazy: test_the_schema_library_is_loaded_only_for_forms
    from planwave.nodes.json_schema import is_usable_pattern

    for path, part in [*parts_of(schema)]:
        where = "".join(f"/{step}" for step in path)
        pattern, patterns = part.get("pattern"), part.get("patternProperties")
        if isinstance(pattern, str) and not is_usable_pattern(pattern):
            _forget(part, "pattern")
            yield f"{where}/pattern"
        named = cast("dict[str, Any]", patterns) if isinstance(patterns, dict) else {}
        for name in [name for name in named if not is_usable_pattern(name)]:
            del named[name]
            part.pop("additionalProperties", None)
            part[CUT] = True
            yield f"{where}/patternProperties/{name}"
        for word in ("$dynamicRef", "$recursiveRef"):
            if word in part:
                _forget(part, word)
                yield f"{where}/{word}"
        for word in ("$id", "$schema", "$vocabulary"):
            if path:
                part.pop(word, None)


def _forget(part: dict[str, Any], word: str) -> None:
    for gone in (word, *_WITH_ANOTHER.get(word, ())):
        part.pop(gone, None)
    part[CUT] = True


def _drop(schema: dict[str, Any], pointer: str) -> str:
    """Drop the innermost keyword that a pointer leads into; return the pointer of what was dropped."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    parts = {tuple(map(str, path)): part for path, part in parts_of(schema)}
    length = max(n for n in range(len(steps) + 1) if tuple(steps[:n]) in parts)
    part, rest = parts[tuple(steps[:length])], steps[length:]
    held = part.get(rest[0]) if rest else None
    if len(rest) > 1 and rest[0] in NAMED_PARTS and isinstance(held, dict):
        cast("dict[str, Any]", held)[rest[1]] = {CUT: True}
        return pointer
    if rest and rest[0] in part:
        _forget(part, rest[0])
        return "/" + "/".join([*steps[:length], rest[0]])
    part.clear()
    part[CUT] = True
    return pointer or "all of it"


def _first_that_fits(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the most that fits of a schema that is too large."""
    shorter = _rewritten(schema, _without_texts)
    simpler = _rewritten(shorter, _without_patterns)
    names = [*simpler.get("properties", ())] if isinstance(simpler.get("properties"), dict) else []
    choices: list[Callable[[], Mapping[str, Any]]] = [
        lambda: shorter,
        lambda: simpler,
        *(lambda levels=levels: _shallow(simpler, levels) for levels in _DEPTHS),
        lambda: {"type": "object", "properties": {name: True for name in names}},
    ]
    for choose in choices:
        candidate = loosened(choose())
        if _fits(candidate):
            return candidate
    return _NO_PARTS


def _rewritten(part: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    if not isinstance(part, dict):
        return part
    return change(with_parts(cast("dict[str, Any]", part), lambda inner: _rewritten(inner, change)))


def _without_texts(part: dict[str, Any]) -> dict[str, Any]:
    gone = {"$comment", "default", "description", "examples", "title"}
    return {word: value for word, value in part.items() if word not in gone}


def _without_patterns(part: dict[str, Any]) -> dict[str, Any]:
    for word in ("pattern", "patternProperties"):
        if word in part:
            _forget(part, word)
    return part


def _shallow(part: Any, levels: int) -> Any:
    if not isinstance(part, dict):
        return part
    words = cast("dict[str, Any]", part)
    if levels < 0:
        return {CUT: True} | {word: words[word] for word in ("type",) if word in words}
    return with_parts(words, lambda inner: _shallow(inner, levels - 1))
