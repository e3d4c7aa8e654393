"""Texts whose braces are to stay as they are, where templates are resolved."""

from __future__ import annotations

from typing import Any, Final, cast

from planwave.expressions.templates import has_template

_OPENINGS: Final = ("{{", "{%", "{#")
_RAW, _END_RAW = "{% raw %}", "{% endraw %}"


def escape_templates(value: Any) -> Any:
    """Return a JSON value whose texts resolve to themselves."""
    match value:
        case str() if any(opening in value for opening in _OPENINGS):
            return "".join(
                f"{_RAW}{part}{_END_RAW}" if any(o in part for o in _OPENINGS) else part
                for part in _split_endraw(value)
            )
        case list():
            return [escape_templates(item) for item in cast("list[Any]", value)]
        case dict():
            table = cast("dict[str, Any]", value)
            return {key: escape_templates(item) for key, item in table.items()}
        case _:
            return value


def is_literal(text: str) -> bool:
    """Return whether a text has no template, besides what ``escape_templates`` writes."""
    rest = text
    while _RAW in rest:
        before, _, rest = rest.partition(_RAW)
        raw, closing, rest = rest.partition(_END_RAW)
        # Other spellings of the end of the literal would end it, too.
        if has_template(before) or not closing or "endraw" in raw:
            return False
    return not has_template(rest)


def _split_endraw(text: str) -> list[str]:
    """Cut a text so that no part holds a whole ``endraw``, which would end the literal early."""
    parts = text.split("endraw")
    return [
        piece for i, part in enumerate(parts) for piece in ((part,) if i == 0 else ("endraw", part))
    ]
