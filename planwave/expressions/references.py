"""Which variables a template refers to, as far as its text tells."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from planwave.expressions.lexer import Segment, Token, tokenize
from planwave.expressions.paths import KEYWORDS, ValuePath

NODES = "nodes"
_KEYED = (NODES, "inputs")
WELL_KNOWN = frozenset(("input", "inputs", NODES, "trigger", "goal", "PREVIOUS_OUTPUT"))
_ENGINE_NAMES = frozenset(("range", "dict", "namespace", "loop", "super", "caller", "self"))
_GUARDS = {"|": ("default", "d"), "is": ("defined", "undefined"), "not": ("defined", "undefined")}
"""What may follow which token where a template copes with an absent variable."""
_SIMPLE_STRING = re.compile(r"['\"][^\\]*['\"]\Z")


class VariableRef(NamedTuple):
    """One variable a template refers to.

    Attributes:
        root: ``input``, ``inputs``, ``nodes``, ``trigger``, ``goal``, ``PREVIOUS_OUTPUT`` or the
            name of a bare variable.
        key: Of ``nodes["id"]`` and ``nodes.id`` the node's id, of ``inputs.topic`` the handle; None
            where it is computed.
        pointer: JSON pointer of the field, relative to ``node.data``.
        guarded: Whether the template copes with the variable's absence: ``default``, ``is defined``.
        handle: Of ``nodes["id"].output`` the output; None where it is computed or not named.
    """

    root: str
    key: str | None
    pointer: str
    guarded: bool = False
    handle: str | None = None


class Variable(NamedTuple):
    """A reference before its field is known."""

    name: str
    key: str | None = None
    guarded: bool = False
    handle: str | None = None


def variables_of_path(path: ValuePath) -> tuple[Variable, ...]:
    """Give the root of a plain path; none for a text literal."""
    if path.root is None:
        return ()
    guarded = bool(path.filters) and path.filters[0].handles_undefined
    if path.root not in _KEYED or not path.steps:
        return (Variable(path.root, None, guarded),)
    key, *beyond = path.steps
    named = path.root == NODES and beyond and isinstance(beyond[0], str)
    return (Variable(path.root, str(key), guarded, str(beyond[0]) if named else None),)


def variables_of_segments(segments: Iterable[Segment]) -> tuple[tuple[Variable, ...], frozenset[str]]:
    """Give every name an engine template may look up, and the names it binds itself.

    The first is a superset: loop variables and the like are among it. A name that is guarded in one
    place counts as guarded in all of the template, for a block may depend on it.
    """
    found: dict[Variable, None] = {}
    bound: set[str] = set()
    guarded: set[str] = set()
    for segment in segments:
        if segment.kind not in ("expression", "block"):
            continue
        tokens = tokenize(segment.source)
        if segment.kind == "block":
            bound |= _bound_names(tokens)
            tokens = tokens[1:]
        here = [_variable_at(tokens, at) for at in range(len(tokens)) if _is_lookup(tokens, at)]
        found |= dict.fromkeys(here)
        if any(a.text in _GUARDS.get(b.text, ()) for b, a in pairwise(tokens)):
            guarded |= {root.name for root in here}
    roots = (root._replace(guarded=root.name in guarded) for root in found)
    return tuple(roots), frozenset(bound)


def is_external(variable: Variable, bound: frozenset[str]) -> bool:
    """Tell whether a root comes from outside the template, for what its text tells."""
    if variable.name in WELL_KNOWN:
        return True
    return variable.name not in bound and variable.name not in _ENGINE_NAMES


def _is_lookup(tokens: list[Token], at: int) -> bool:
    """Tell whether a name is a variable: not a key, filter, test, keyword or keyword argument."""
    if tokens[at].kind != "name" or tokens[at].text in KEYWORDS:
        return False
    before = tokens[at - 1].text if at else ""
    if before in (".", "|", "is"):
        return False
    if before == "not" and at >= 2 and tokens[at - 2].text == "is":
        return False
    after = tokens[at + 1].text if at + 1 < len(tokens) else ""
    return after != "="


def _variable_at(tokens: list[Token], at: int) -> Variable:
    name = tokens[at].text
    if name not in _KEYED:
        return Variable(name)
    key, end = _literal_key(tokens, at + 1)
    handle = _literal_key(tokens, end)[0] if key is not None and name == NODES else None
    return Variable(name, key, handle=handle)


def _literal_key(tokens: list[Token], at: int) -> tuple[str | None, int]:
    """Give the key of a step that is written out, ``["key"]`` or ``.key``, and where it ends."""
    following = [*tokens[at : at + 3], *[Token("op", "")] * 3][:3]
    match following:
        case [Token(_, "["), Token("string", text), Token(_, "]")] if _SIMPLE_STRING.match(text):
            return text[1:-1], at + 3
        case [Token(_, "."), Token("name", text), Token(_, after)] if after != "(":
            return text, at + 2
        case _:
            return None, at


def _bound_names(tokens: list[Token]) -> set[str]:
    """Give the names a block binds: loop targets, assigned names, macro parameters."""
    if not tokens:
        return set()
    names = [token.text for token in tokens if token.kind == "name"]
    match tokens[0].text:
        case "for":
            return set(names[1 : names.index("in")]) if "in" in names else set()
        case "set" | "with":
            targets = {
                a.text for a, b in pairwise(tokens) if a.kind == "name" and b.text in ("=", ",")
            }
            return targets | set(names[1:2] if tokens[0].text == "set" else ())
        case "macro":
            return set(names[1:])
        case "call" if len(tokens) > 1 and tokens[1].text == "(":
            end = next(at for at, token in enumerate(tokens) if token.text == ")")
            return {token.text for token in tokens[2:end] if token.kind == "name"}
        case "filter":
            return set(names[1:2])
        case _:
            return set()
