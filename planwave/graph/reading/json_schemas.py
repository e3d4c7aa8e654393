"""JSON Schemas of others as documents: their parts, their references, and the words of older drafts.

Pure, and for schemas of any quality: nothing here fails on a schema that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast
from urllib.parse import unquote

ONE_PART: Final = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Keywords whose value is a schema."""
LISTED_PARTS: Final = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
"""Keywords whose value is a list of schemas (``items`` up to draft 2019-09)."""
NAMED_PARTS: Final = frozenset(
    {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)
"""Keywords whose value is an object of schemas."""
UNEVALUATED: Final = ("unevaluatedItems", "unevaluatedProperties")
VALUES: Final = frozenset({"const", "default", "enum", "example", "examples"})
"""Keywords that hold values, in which nothing is a keyword."""

Path = tuple[str | int, ...]
"""The keys that lead to a part of a document."""
Rewrite = Callable[[Any], Any]
_REFERENCE: Final = "$ref"
_TEXTS: Final = ("$comment", "description", "format", "title")
_ANCHOR: Final = "$anchor"


def with_parts(schema: Mapping[str, Any], rewrite: Rewrite) -> dict[str, Any]:
    """Return a copy of a schema in which each schema directly inside is what a function gives for it."""
    copy: dict[str, Any] = {}
    for word, value in schema.items():
        if word in NAMED_PARTS and isinstance(value, dict):
            named = cast("dict[str, Any]", value)
            copy[word] = {name: rewrite(part) for name, part in named.items()}
        elif word in LISTED_PARTS and isinstance(value, list):
            copy[word] = [rewrite(part) for part in cast("list[Any]", value)]
        elif word in ONE_PART and isinstance(value, dict):
            copy[word] = rewrite(value)
        else:
            copy[word] = value
    return copy


def parts_of(schema: object, path: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield all schemas in a schema, itself first, each with its path; those that are objects."""
    stack: list[tuple[Path, object]] = [(path, schema)]
    while stack:
        where, part = stack.pop()
        if not isinstance(part, dict):
            continue
        words = cast("dict[str, Any]", part)
        yield where, words
        for word, value in words.items():
            if word in NAMED_PARTS and isinstance(value, dict):
                named = cast("dict[str, Any]", value)
                stack += [((*where, word, name), inner) for name, inner in named.items()]
            elif word in LISTED_PARTS and isinstance(value, list):
                listed = cast("list[Any]", value)
                stack += [((*where, word, number), inner) for number, inner in enumerate(listed)]
            elif word in ONE_PART:
                stack.append(((*where, word), value))


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the types that a schema names; none where it names none."""
    named = schema.get("type")
    listed = cast("list[Any]", named) if isinstance(named, list) else [named]
    return tuple(each for each in listed if isinstance(each, str))


def modern(schema: Any) -> Any:
    """Return a schema in the words of draft 2020-12, where older ones and OpenAPI's mean the same.

    That is ``exclusiveMinimum: true``, a list of ``items``, ``nullable``, the type ``any``; a name that is required
    twice; ``null`` in place of a text, which says nothing.
    """
    if not isinstance(schema, dict):
        return schema
    words = with_parts(cast("dict[str, Any]", schema), modern)
    words = {
        word: value for word, value in words.items() if value is not None or word not in _TEXTS
    }
    if words.get("type") == "any":
        del words["type"]
    if "examples" in words and not isinstance(words["examples"], list):
        words["examples"] = [words["examples"]]
    words |= {word: _once(words[word]) for word in ("required", "type") if word in words}
    return _with_modern_items(_with_modern_limits(_with_null(words)))


def _once(names: Any) -> Any:
    if not isinstance(names, list):
        return names
    listed = cast("list[Any]", names)
    is_named = all(isinstance(each, str) for each in listed)
    return list(dict.fromkeys(listed)) if is_named else listed


def _with_null(words: dict[str, Any]) -> dict[str, Any]:
    kind, choices = words.get("type"), words.get("enum")
    if words.get("nullable") is not True or not isinstance(kind, str) or kind == "null":
        return words
    copy = {**words, "type": [kind, "null"]}
    if isinstance(choices, list) and None not in choices:
        copy["enum"] = [*cast("list[Any]", choices), None]
    return copy


def _with_modern_limits(words: dict[str, Any]) -> dict[str, Any]:
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(bound := words.get(exclusive), bool):
            del words[exclusive]
            if bound and limit in words:
                words[exclusive] = words.pop(limit)
    return words


def _with_modern_items(words: dict[str, Any]) -> dict[str, Any]:
    items = words.get("items")
    if not isinstance(items, list):
        return words
    copy = {word: each for word, each in words.items() if word not in ("items", "additionalItems")}
    copy |= {"prefixItems": items} if items else {}
    return copy | ({"items": words["additionalItems"]} if "additionalItems" in words else {})


def target_of(reference: str, root: Mapping[str, Any]) -> Any:
    """Return the part that a reference names within a document; None if it names none there."""
    base = root.get("$id")
    if isinstance(base, str) and base and reference.startswith(f"{base.rstrip('#')}#"):
        reference = reference[len(base.rstrip("#")) :]
    if reference == "#":
        return root
    if reference[:1] != "#":
        return None
    pointer = unquote(reference[1:])
    if pointer[:1] != "/":
        named = (part for _, part in parts_of(root) if part.get(_ANCHOR) == pointer)
        return next(named, None)
    part: Any = root
    for step in pointer[1:].split("/"):
        part = _inside(part, step.replace("~1", "/").replace("~0", "~"))
    return part


def _inside(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).get(step)
    if isinstance(value, list) and step.isdecimal():
        listed = cast("list[Any]", value)
        return listed[int(step)] if int(step) < len(listed) else None
    return None


def recursive_references(root: Mapping[str, Any]) -> frozenset[str]:
    """Return the references of a document that lead back to themselves."""
    leads_to: dict[str, set[str]] = {}
    pending = list(_references_in(root))
    while pending:
        reference = pending.pop()
        if reference not in leads_to:
            leads_to[reference] = _references_in(target_of(reference, root))
            pending += leads_to[reference]
    return frozenset(each for each in leads_to if each in _reachable(each, leads_to))


def _reachable(start: str, leads_to: Mapping[str, set[str]]) -> set[str]:
    members: set[str] = set()
    pending = [*leads_to[start]]
    while pending:
        reference = pending.pop()
        if reference not in members:
            members.add(reference)
            pending += leads_to[reference]
    return members


def _references_in(schema: object) -> set[str]:
    references = (part.get(_REFERENCE) for _, part in parts_of(schema))
    return {each for each in references if isinstance(each, str)}


CUT: Final = "planwaveCut"
"""Marks, until ``loosened``, a schema that says less than the one it was made of."""
_CONTAINERS: Final = ("$defs", "definitions")
_ANNOTATIONS: Final = frozenset(
    {"$comment", CUT, "default", "deprecated", "description", "examples", "title"}
)
_MAX_WRITTEN: Final = 5_000
"""Parts that are written out, before references are cut."""


def written_out(
    root: Mapping[str, Any], levels: int, is_kept: Callable[[str], bool] = lambda _: False
) -> dict[str, Any]:
    """Return a schema with its references replaced by what they name; what is cut is marked.

    Args:
        root: The schema.
        levels: How often a part is written out inside itself; below that any value of its type fits.
        is_kept: Whether a reference stays as it is.
    """
    recursive = recursive_references(root)
    budget = _MAX_WRITTEN

    def write(part: Any, above: tuple[str, ...]) -> Any:
        nonlocal budget
        if not isinstance(part, dict):
            return part
        budget -= 1
        words = cast("dict[str, Any]", part)
        reference = words.get(_REFERENCE)
        if not isinstance(reference, str):
            return with_parts(words, lambda inner: write(inner, above))
        beside = {word: value for word, value in words.items() if word != _REFERENCE}
        own = with_parts(beside, lambda inner: write(inner, above))
        if is_kept(reference):
            return {_REFERENCE: reference, **own}
        target = target_of(reference, root)
        is_cut = budget < 0 or (above.count(reference) >= levels and reference in recursive)
        if target is None or is_cut:
            return _joined(_outline_of(target), own)
        if target is root:
            target = {word: value for word, value in root.items() if word not in _CONTAINERS}
        return _joined(write(target, (*above, reference)), own)

    whole = write(dict(root), ())
    for container in _CONTAINERS:
        if isinstance(named := whole.pop(container, None), dict):
            definitions = {
                name: part
                for name, part in cast("dict[str, Any]", named).items()
                if is_kept(f"#/{container}/{name}")
            }
            whole |= {container: definitions} if definitions else {}
    return whole


def _outline_of(target: object) -> dict[str, Any]:
    named = cast("dict[str, Any]", target) if isinstance(target, dict) else {}
    return {CUT: True} | {word: named[word] for word in ("type", "description") if word in named}


def _joined(target: Any, beside: dict[str, Any]) -> Any:
    """Return a schema that holds what two say."""
    if not isinstance(target, dict):
        return beside if target in (None, True) else {"allOf": [target], **beside}
    words = cast("dict[str, Any]", target)
    if beside.keys() <= _ANNOTATIONS or words.keys() <= _ANNOTATIONS:
        return {**words, **beside}
    return {"allOf": [words], **beside}


def loosened(root: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without marks that accepts at least all that the one accepted it was made of.

    Where a part says less than before, what it stands in may say more: ``not`` of it goes, as does ``if``,
    and ``oneOf`` becomes ``anyOf``.
    """
    if not any(CUT in part for _, part in parts_of(root)):
        return dict(root)

    def settle(part: Any) -> tuple[Any, bool]:
        if not isinstance(part, dict):
            return part, False
        words = cast("dict[str, Any]", part)
        cut = {word for word in (CUT, _REFERENCE) if word in words}
        copy: dict[str, Any] = {}
        for word, value in words.items():

            def settle_inside(inner: Any, word: str = word) -> Any:
                settled, is_cut = settle(inner)
                cut.update({word} if is_cut else ())
                return settled

            copy |= with_parts({word: value}, settle_inside)
        copy.pop(CUT, None)
        return _without_limits(copy, cut - set(_CONTAINERS)), bool(cut - set(_CONTAINERS))

    return settle(dict(root))[0]


def _without_limits(words: dict[str, Any], cut: set[str]) -> dict[str, Any]:
    """Return a schema without the words that would refuse more than before, where some parts are cut."""
    gone: set[str] = set()
    gone |= {"not"} & cut
    gone |= {"if", "then", "else"} if "if" in cut else set()
    gone |= {"maxContains"} if "contains" in cut else set()
    gone |= {*UNEVALUATED} if cut else set()
    copy = {word: value for word, value in words.items() if word not in gone}
    if "oneOf" in cut:
        choices = copy.pop("oneOf")
        if "anyOf" in copy:
            copy["allOf"] = [*copy.get("allOf", ()), {"anyOf": choices}]
        else:
            copy["anyOf"] = choices
    return copy
