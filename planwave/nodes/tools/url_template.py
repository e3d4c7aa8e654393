"""Addresses with placeholders: ``https://api.example.com/orders/{id}?expand={fields}``.

Arguments come from a model that may have read hostile text. They fill one segment of the path or one
value of the query, percent-encoded. So they change neither scheme, host and port, nor the number of
segments, nor the names in the query. What a server might decode into another path (``..``, an empty
segment, control characters) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, cast
from urllib.parse import quote, unquote

from planwave.errors import OutboundError, ToolError
from planwave.expressions import to_text
from planwave.graph.diagnostics import short_repr
from planwave.graph.model import Json
from planwave.outbound.urls import parse_url

_PARTS: Final = re.compile(
    r"(?P<origin>https?://[^/?#{}\\\s]+)(?P<path>(/[^?#]*)?)(\?(?P<query>[^#]*))?(?P<rest>#.*)?",
    re.IGNORECASE | re.DOTALL,
)
_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*)\}")
_BRACES: Final = re.compile(r"[{}]")
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SEPARATORS: Final = re.compile(r"[/\\]")
_DECODINGS: Final = 3
"""How often a value is decoded to find a path in it that some chain of servers may see."""


class UrlTemplateError(ValueError):
    """A template that cannot be used; the text says why."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class UrlTemplate(NamedTuple):
    """An address with placeholders.

    Attributes:
        origin: Scheme, host and port, as written.
        path: The segments of the path, each perhaps with placeholders.
        query: The names and values of the query; a name without ``=`` has the value None.
    """

    origin: str
    path: tuple[str, ...]
    query: tuple[tuple[str, str | None], ...]

    @property
    def path_names(self) -> list[str]:
        """The placeholders in the path, which every call has to fill."""
        return _names(self.path)

    @property
    def query_names(self) -> list[str]:
        """The placeholders in the query; a parameter without a value is left out."""
        return _names(value for _, value in self.query if value is not None)

    @property
    def names(self) -> frozenset[str]:
        """All placeholders."""
        return frozenset((*self.path_names, *self.query_names))

    @property
    def query_keys(self) -> frozenset[str]:
        """The names in the query, decoded."""
        return frozenset(unquote(key) for key, _ in self.query)

    def fill(self, arguments: Mapping[str, Json], more: Mapping[str, Json] | None = None) -> str:
        """Return the address for some arguments.

        Args:
            arguments: Values for placeholders.
            more: Parameters to add to the query.

        Raises:
            ToolError: A placeholder in the path has no value, or a value cannot be in an address.
        """
        path = "/".join(_segment(segment, arguments) for segment in self.path)
        pairs = [pair for key, value in self.query for pair in _pairs(key, value, arguments)]
        for name, value in (more or {}).items():
            pairs += [f"{_encode(name, name)}={each}" for each in _query_values(name, value)]
        return f"{self.origin}{path}" + (f"?{'&'.join(pairs)}" if pairs else "")


def parse_url_template(text: str) -> UrlTemplate:
    """Read an address with placeholders.

    Raises:
        UrlTemplateError: It cannot be used.
    """
    text = text.strip()
    match = _PARTS.fullmatch(text)
    if match is None:
        raise UrlTemplateError(
            f"{short_repr(text)} is no address with placeholders: scheme and host are fixed",
            "write it like https://api.example.com/orders/{id}",
        )
    if match["rest"] is not None:
        raise UrlTemplateError("an address has no part after #", "remove it")
    if _BRACES.search(_PLACEHOLDER.sub("", text)):
        raise UrlTemplateError(
            f"{short_repr(text)} has a brace that is no placeholder",
            "a placeholder is a name in single braces, as in {id}",
        )
    try:
        parse_url(_PLACEHOLDER.sub("x", text))
    except OutboundError as error:
        raise UrlTemplateError(error.message, error.hint) from error
    query = tuple(_query_part(part) for part in (match["query"] or "").split("&") if part)
    return UrlTemplate(match["origin"], tuple(match["path"].split("/")), query)


def _query_part(part: str) -> tuple[str, str | None]:
    key, equals, value = part.partition("=")
    if _PLACEHOLDER.search(key):
        raise UrlTemplateError(
            f"a placeholder names a parameter of the query: {short_repr(key)}",
            "write it after the =, as in ?status={status}",
        )
    return key, value if equals else None


def _names(texts: Iterable[str]) -> list[str]:
    return [name for text in texts for name in _PLACEHOLDER.findall(text)]


def _segment(segment: str, arguments: Mapping[str, Json]) -> str:
    """Return one segment of the path, filled."""
    names = _PLACEHOLDER.findall(segment)
    if not names:
        return segment

    def text_of(match: re.Match[str]) -> str:
        return _path_text(match[1], arguments.get(match[1]))

    filled = _PLACEHOLDER.sub(text_of, segment)
    if any(part in ("", ".", "..") for part in _SEPARATORS.split(filled)) or _leads_elsewhere(
        filled
    ):
        raise ToolError(
            f"{_listed(names)} may not be {short_repr(filled)} in the path of an address",
            code="invalid-arguments",
        )
    literal = _PLACEHOLDER.split(segment)
    return "".join(
        part if number % 2 == 0 else _encode(part, _path_text(part, arguments.get(part)))
        for number, part in enumerate(literal)
    )


def _leads_elsewhere(text: str) -> bool:
    """Return whether a server that decodes a segment again may see another path."""
    for _ in range(_DECODINGS):
        text = unquote(text)
        if any(part in (".", "..") for part in _SEPARATORS.split(text)) or _CONTROLS.search(text):
            return True
    return False


def _path_text(name: str, value: Json) -> str:
    if value is None or isinstance(value, (list, dict)):
        what = "is missing" if value is None else "is neither text nor a number"
        raise ToolError(f"the argument {name!r} {what}", code="invalid-arguments")
    return to_text(value)


def _pairs(key: str, value: str | None, arguments: Mapping[str, Json]) -> Iterator[str]:
    """Yield the parameter of a query; nothing where a placeholder in it has no value."""
    names = [] if value is None else _PLACEHOLDER.findall(value)
    if value is None or not names:
        yield key if value is None else f"{key}={value}"
        return
    if any(arguments.get(name) is None for name in names):
        return
    if _PLACEHOLDER.fullmatch(value):
        for each in _query_values(names[0], arguments[names[0]]):
            yield f"{key}={each}"
        return
    filled = _PLACEHOLDER.sub(lambda match: _encode(match[1], to_text(arguments[match[1]])), value)
    yield f"{key}={filled}"


def _query_values(name: str, value: Json) -> list[str]:
    """Return the values of a parameter, encoded: those of a list one by one, none for null."""
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [_encode(name, to_text(each)) for each in values if each is not None]


def _encode(name: str, text: str) -> str:
    """Return text with everything encoded but letters, digits and ``_.-~``."""
    try:
        if "\0" not in text:
            return quote(text, safe="")
    except UnicodeEncodeError:
        pass
    raise ToolError(
        f"the argument {name!r} has a character that cannot be in an address",
        code="invalid-arguments",
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, dict.fromkeys(names)))
