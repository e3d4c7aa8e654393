"""Check block tags before a template is accepted: known, allowed, balanced, not too deep."""

from __future__ import annotations

import re
from collections.abc import Iterable

from planwave.errors import TemplateError
from planwave.expressions.faults import FORBIDDEN, syntax_error
from planwave.expressions.lexer import MAX_NESTING, Segment

_CLOSERS = {
    "if": "endif",
    "for": "endfor",
    "macro": "endmacro",
    "call": "endcall",
    "filter": "endfilter",
    "with": "endwith",
    "set": "endset",
}
_INNER_TAGS = {"else": ("if", "for"), "elif": ("if",)}
_LOOP_TAGS = ("break", "continue")
_FORBIDDEN_TAGS = frozenset(("include", "import", "from", "extends", "block"))
# Possessive: a long run of spaces must not be tried in every split.
_ASSIGNMENT = re.compile(r"set\b[\w\s.,(]*+\)?\s*+=(?!=)")
_TAG = re.compile(r"\w+")


def check_blocks(segments: Iterable[Segment]) -> None:
    """Check every ``{% … %}`` of one template.

    Raises:
        TemplateError: ``template-forbidden`` for tags that load other templates; else
            ``template-syntax``, naming the tag.
    """
    opened: list[str] = []
    for segment in segments:
        if segment.kind != "block":
            continue
        match = _TAG.match(segment.source)
        if match is None:
            raise syntax_error("a block {% %} names no tag")
        _check_tag(match.group(), segment.source, opened)
    if opened:
        raise syntax_error(f"{{% {opened[-1]} %}} is never closed by {_closing_tag(opened[-1])}")


def _closing_tag(tag: str) -> str:
    return f"{{% {_CLOSERS[tag]} %}}"


def _check_tag(tag: str, source: str, opened: list[str]) -> None:
    if tag in _FORBIDDEN_TAGS:
        raise TemplateError(
            f"{{% {tag} %}} is not allowed: a template cannot load another one",
            code=FORBIDDEN,
            hint="write the text here, or pass it in from another step",
        )
    if tag in _CLOSERS:
        if tag == "set" and _ASSIGNMENT.match(source):
            return
        opened.append(tag)
        if len(opened) > MAX_NESTING:
            raise syntax_error(f"blocks are nested deeper than {MAX_NESTING}", hint=None)
        return
    _check_inner_tag(tag, opened)


def _check_inner_tag(tag: str, opened: list[str]) -> None:
    """Check a tag that only makes sense inside another."""
    inside = opened[-1] if opened else None
    if tag in _INNER_TAGS:
        if inside not in _INNER_TAGS[tag]:
            raise syntax_error(f"{{% {tag} %}} stands outside of its block", hint=None)
    elif tag in _LOOP_TAGS:
        if "for" not in opened:
            raise syntax_error(f"{{% {tag} %}} stands outside of a loop", hint=None)
    elif tag in _CLOSERS.values():
        if inside is None or _CLOSERS[inside] != tag:
            wanted = _closing_tag(inside) if inside else "nothing is open"
            raise syntax_error(f"{{% {tag} %}} closes nothing here ({wanted})", hint=None)
        opened.pop()
    else:
        known = ", ".join(_CLOSERS)
        raise syntax_error(f"unknown tag {{% {tag} %}}", hint=f"known tags: {known}, raw")
