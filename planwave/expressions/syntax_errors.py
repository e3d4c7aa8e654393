"""Errors of Jinja2's parser in planwave's words: the missing or surplus part, and its place."""

from __future__ import annotations

import re
from typing import Final

from planwave.errors import TemplateError
from planwave.expressions.errors import LITERAL_HINT, syntax_error

_MAX_CHARS: Final = 300
_TOKENS: Final = {
    "'begin of print statement'": "{{",
    "'begin of statement block'": "{%",
    "'end of print statement'": "}}",
    "'end of statement block'": "%}",
    "'end of template'": "the end of the template",
    "'float'": "a number",
    "'integer'": "a number",
    "'name'": "a name",
    "'string'": "a text",
}
_TOKEN: Final = re.compile("|".join(_TOKENS))
_SENTENCES: Final = (
    (re.compile(r"expected an expression, got (.+)", re.IGNORECASE), r"an expression is missing before \1"),
    (re.compile(r"expected token (.+), got (.+)"), r"expected \1, found \2"),
    (re.compile(r"unexpected (.+), expected (.+)"), r"expected \2, found \1"),
)  # fmt: skip
_CHARACTER: Final = re.compile(r"unexpected char (.+) at (\d+)")
_TAG: Final = re.compile(r"Encountered unknown tag '(\w+)'")
_OPEN: Final = re.compile(r"block that needs to be closed is '(\w+)'")


def describe_syntax(message: str, line: int, text: str) -> TemplateError:
    """Return the error of a template that Jinja2 cannot parse.

    Args:
        message: The message of Jinja2.
        line: The line that it names.
        text: The template.
    """
    where = f" (line {line})" if line > 1 else ""
    if (unexpected := _CHARACTER.fullmatch(message)) is not None:
        return syntax_error(_unexpected_character(unexpected[1], text[: int(unexpected[2])]))
    tag, opened = _TAG.match(message), _OPEN.search(message)
    if tag is not None or opened is not None:
        return syntax_error(_unbalanced(tag and tag[1], opened and opened[1]) + where, None)
    readable = _TOKEN.sub(lambda token: _TOKENS[token[0]], message)
    for pattern, sentence in _SENTENCES:
        readable = pattern.sub(sentence, readable)
    readable = readable[:1].lower() + readable[1:_MAX_CHARS].rstrip(".")
    return syntax_error(readable + where, LITERAL_HINT)


def _unexpected_character(character: str, before: str) -> str:
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    place = f"in line {line}, column {column}"
    if character in ('"\'"', "'\"'"):
        return f"the text that begins {place} is never closed"
    return f"the character {character} {place} cannot stand in an expression"


def _unbalanced(tag: str | None, opened: str | None) -> str:
    """Return what is wrong with a tag that was found, or with the end, given the open block."""
    if tag is None:
        return f"{{% {opened} %}} is never closed: {{% end{opened} %}} is missing"
    if opened is not None:
        return f"{{% {tag} %}} is inside {{% {opened} %}}, which needs {{% end{opened} %}} first"
    return f"{{% {tag} %}} belongs to no block that is open"
