"""Check block tags before a template is accepted: known, allowed, balanced, not too deep."""

from __future__ import annotations

import re
from collections.abc import Iterable

from planwave.errors import TemplateError
from planwave.expressions.faults import FORBIDDEN, syntax_fault
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
_MIDDLES = {"else": ("if", "for"), "elif": ("if",)}
_IN_LOOPS = ("break", "continue")
_REFUSED = frozenset(("include", "import", "from", "extends", "block"))
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
            raise syntax_fault("a block {% %} names no tag")
        _check(match.group(), segment.source, opened)
    if opened:
        raise syntax_fault(f"{{% {opened[-1]} %}} is never closed by {_end(opened[-1])}")


def _end(tag: str) -> str:
    return f"{{% {_CLOSERS[tag]} %}}"


def _check(tag: str, source: str, opened: list[str]) -> None:
    if tag in _REFUSED:
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
            raise syntax_fault(f"blocks are nested deeper than {MAX_NESTING}", hint=None)
        return
    _check_inner(tag, opened)


def _check_inner(tag: str, opened: list[str]) -> None:
    """Check a tag that only makes sense inside another."""
    inside = opened[-1] if opened else None
    if tag in _MIDDLES:
        if inside not in _MIDDLES[tag]:
            raise syntax_fault(f"{{% {tag} %}} stands outside of its block", hint=None)
    elif tag in _IN_LOOPS:
        if "for" not in opened:
            raise syntax_fault(f"{{% {tag} %}} stands outside of a loop", hint=None)
    elif tag in _CLOSERS.values():
        if inside is None or _CLOSERS[inside] != tag:
            wanted = _end(inside) if inside else "nothing is open"
            raise syntax_fault(f"{{% {tag} %}} closes nothing here ({wanted})", hint=None)
        opened.pop()
    else:
        known = ", ".join(_CLOSERS)
        raise syntax_fault(f"unknown tag {{% {tag} %}}", hint=f"known tags: {known}, raw")
