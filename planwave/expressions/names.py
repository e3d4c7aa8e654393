"""The filters and tests MiniJinja has, so that a misspelt one is found before a run.

A test holds both lists against the installed engine.
"""

from __future__ import annotations

from collections.abc import Iterable

from planwave.errors import TemplateError
from planwave.expressions.faults import FORBIDDEN
from planwave.expressions.lexer import Segment, tokenize

# fmt: off
ENGINE_FILTERS = frozenset((
    "abs", "attr", "batch", "bool", "capitalize", "chain", "count", "d", "default", "dictsort", "e",
    "escape", "filesizeformat", "first", "float", "format", "groupby", "indent", "int", "items",
    "join", "last", "length", "lines", "list", "lower", "map", "max", "min", "pluralize", "pprint",
    "reject", "rejectattr", "replace", "reverse", "round", "safe", "select", "selectattr", "slice",
    "sort", "split", "string", "striptags", "sum", "title", "tojson", "trim", "truncate", "unique",
    "upper", "urlencode", "wordwrap", "zip",
))
ENGINE_TESTS = frozenset((
    "boolean", "defined", "divisibleby", "endingwith", "eq", "equalto", "escaped", "even", "false",
    "filter", "float", "ge", "greaterthan", "gt", "in", "integer", "iterable", "le", "lessthan",
    "lower", "lt", "mapping", "ne", "none", "number", "odd", "safe", "sameas", "sequence",
    "startingwith", "string", "test", "true", "undefined", "upper",
))
# fmt: on


def check_names(segments: Iterable[Segment]) -> None:
    """Check every filter and test that a template names.

    Raises:
        TemplateError: ``template-forbidden``: the engine has none of that name.
    """
    for segment in segments:
        if segment.kind in ("expression", "block"):
            tokens = tokenize(segment.source)
            for at, token in enumerate(tokens):
                if token.kind == "name":
                    _check_name([before.text for before in tokens[max(at - 2, 0) : at]], token.text)


def _check_name(before: list[str], name: str) -> None:
    """Check a name by the two tokens before it."""
    if before[-1:] == ["|"] and name not in ENGINE_FILTERS:
        raise _unknown_name("filter", name, ENGINE_FILTERS)
    is_test = before == ["is", "not"] or (before[-1:] == ["is"] and name != "not")
    if is_test and name not in ENGINE_TESTS:
        raise _unknown_name("test", name, ENGINE_TESTS)


def _unknown_name(kind: str, name: str, known: Iterable[str]) -> TemplateError:
    return TemplateError(
        f"there is no {kind} {name[:40]!r}",
        code=FORBIDDEN,
        hint=f"{kind}s are {', '.join(sorted(known))}",
    )
