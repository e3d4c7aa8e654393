"""Tokens of JavaScript expressions."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

MAX_LENGTH: Final = 10_000
"""Characters of an expression that is read."""

Kind = Literal["number", "string", "template", "name", "operator", "end"]


class Untranslatable(Exception):
    """A part of an expression has no counterpart that gives the same value.

    Attributes:
        reason: What it is, as the end of a sentence: ``an arrow function``.
        text: The expression.
    """

    def __init__(self, reason: str, text: str = "") -> None:
        super().__init__(f"{reason}: {text}" if text else reason)
        self.reason, self.text = reason, text


class Token(NamedTuple):
    """A token, its value, and where it begins and ends.

    Attributes:
        kind: What it is.
        value: The text of a name or an operator; the value of a number or a string.
        start: Where it begins.
        end: Where it ends.
        parts: Of a template its literal parts, with the places of the expressions between them.
    """

    kind: Kind
    value: str | int | float
    start: int
    end: int
    parts: tuple[str | tuple[int, int], ...] = ()


_SPACE: Final = re.compile(r"(?:\s|\ufeff)+")
_NAME: Final = re.compile(r"[A-Za-z_$\u00aa-\U0010ffff][\w$]*")
_NUMBER: Final = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_OPERATORS: Final = (
    ">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=", "=>", "==", "!=", "<=",
    ">=", "&&", "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "**", "<<",
    ">>", "+", "-", "*", "/", "%", "<", ">", "=", "!", "?", ":", ".", ",", "(", ")", "[", "]", "{", "}",
    "&", "|", "^", "~", ";",
)  # fmt: skip
_OPERATOR: Final = re.compile("|".join(map(re.escape, _OPERATORS)))
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_CODE: Final = re.compile(r"u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})")


def next_token(text: str, position: int, end: int) -> Token:
    """Return the token at a position, after white space.

    Args:
        text: The text that holds the expression.
        position: Where to begin.
        end: Where the expression ends at the latest.

    Raises:
        Untranslatable: There is none, or it is one that is not read, such as a comment.
    """
    if (space := _SPACE.match(text, position, end)) is not None:
        position = space.end()
    if position >= end:
        return Token("end", "", position, position)
    character = text[position]
    if character in "'\"":
        return _string(text, position, end)
    if character == "`":
        return _template(text, position, end)
    if text.startswith(("//", "/*"), position):
        raise Untranslatable("a comment")
    if (match := _NUMBER.match(text, position, end)) is not None:
        return _number(text, match, end)
    if (match := _NAME.match(text, position, end)) is not None:
        return Token("name", match[0], position, match.end())
    return _operator(text, position, end)


def _operator(text: str, position: int, end: int) -> Token:
    match = _OPERATOR.match(text, position, end)
    if match is None:
        raise Untranslatable(f"the character {text[position]!r}")
    operator = match[0]
    if operator == "?." and text[position + 2 : position + 3].isdigit():
        operator = "?"
    return Token("operator", operator, position, position + len(operator))


def _number(text: str, match: re.Match[str], end: int) -> Token:
    written = match[0]
    following = text[match.end() : match.end() + 1] if match.end() < end else ""
    if following.isalnum() or following in ("_", "$") or re.match(r"0\d", written):
        raise Untranslatable("a number that is not decimal")
    value = float(written)
    return Token(
        "number",
        int(value) if value.is_integer() and value < 2**53 else value,
        match.start(),
        match.end(),
    )


def _string(text: str, start: int, end: int) -> Token:
    quote, position, parts = text[start], start + 1, list[str]()
    while position < end:
        character = text[position]
        if character == quote:
            return Token("string", _joined(parts), start, position + 1)
        if character in "\n\r":
            break
        part, position = _character(text, position, end)
        parts.append(part)
    raise Untranslatable("a text without its closing quote")


def _template(text: str, start: int, end: int) -> Token:
    position, literal, parts = start + 1, list[str](), list[str | tuple[int, int]]()
    while position < end:
        if text[position] == "`":
            parts.append(_joined(literal))
            return Token("template", "", start, position + 1, tuple(parts))
        if text.startswith("${", position):
            closing = closing_of(text, position + 2, end, "}")
            if closing is None:
                break
            parts += [_joined(literal), (position + 2, closing)]
            literal, position = [], closing + 1
            continue
        part, position = _character(text, position, end)
        literal.append(part)
    raise Untranslatable("a template literal without its end")


def _joined(parts: list[str]) -> str:
    """Join characters; two halves of one become it."""
    joined = "".join(parts)
    if not any("\ud800" <= each <= "\udfff" for each in joined):
        return joined
    try:
        return joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise Untranslatable("half a character") from None


def _character(text: str, position: int, end: int) -> tuple[str, int]:
    """Return the character at a position of a string, and where the next one is."""
    if text[position] != "\\":
        return text[position], position + 1
    position += 1
    if position >= end:
        raise Untranslatable("a text without its closing quote")
    if text[position] == "\n":
        return "", position + 1
    if (match := _CODE.match(text, position, end)) is not None:
        code = int(match[1] or match[2] or match[3], 16)
        if code > 0x10FFFF:
            raise Untranslatable("a character that does not exist")
        return chr(code), match.end()
    if text[position] in "123456789ux" or text[position : position + 2] in ("00", "01"):
        raise Untranslatable("an escape that is not read")
    return _ESCAPES.get(text[position], text[position]), position + 1


def closing_of(text: str, position: int, end: int, closing: str) -> int | None:
    """Return where an expression ends: at ``closing``, outside of texts and of brackets.

    Args:
        text: The text that holds it.
        position: Where the expression begins.
        end: Where the text ends.
        closing: ``}`` or ``}}``.
    """
    open_brackets = list[str]()
    while position < end:
        if not open_brackets and text.startswith(closing, position):
            return position
        character = text[position]
        if character in "'\"`":
            after = _after_text(text, position, end)
            if after is None:
                return None
            position = after
            continue
        if character in "([{":
            open_brackets.append(character)
        elif character in ")]}" and open_brackets:
            open_brackets.pop()
        position += 1
    return None


def _after_text(text: str, position: int, end: int) -> int | None:
    """Return where a string or a template literal is over."""
    quote, position = text[position], position + 1
    while position < end:
        if text[position] == quote:
            return position + 1
        if text[position] == "\\":
            position += 2
        elif quote == "`" and text.startswith("${", position):
            inner = closing_of(text, position + 2, end, "}")
            if inner is None:
                return None
            position = inner + 1
        else:
            position += 1
    return None
