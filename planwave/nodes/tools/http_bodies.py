"""Bodies of HTTP requests and responses as JSON or text, for every node type that sends requests."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping
from email.message import Message
from typing import Final

from planwave.errors import OutboundError
from planwave.expressions import to_text
from planwave.graph.model import Json
from planwave.jsonio import dumps_exact
from planwave.outbound.client import OutboundResponse

Scalar = str | int | float | bool

_CONTENT_TYPE: Final = "Content-Type"
_TEXT_TYPES: Final = (
    "text/",
    "application/xml",
    "application/javascript",
    "application/x-www-form",
)

_CHARSET: Final = re.compile(
    r"ascii|utf-(8|8-sig|16|16-le|16-be|32|32-le|32-be)|iso8859-\d+|cp(125\d|866|874|932|949)|tis-620"
    r"|koi8-[rtu]|mac-\w+|gb(k|2312|18030)|big5(hkscs)?|euc_\w+|iso2022_\w+|shift_jis\w*"
)
"""The names in Python of charsets that servers use. Source: the WHATWG Encoding Standard."""


def header_texts(values: Mapping[str, Scalar]) -> dict[str, str]:
    """Return the values of headers as text."""
    return {name: to_text(value) for name, value in values.items()}


def json_content(value: Json, headers: dict[str, str]) -> bytes:
    """Return JSON as a body, and add its content type to the headers where they have none."""
    if not any(name.lower() == _CONTENT_TYPE.lower() for name in headers):
        headers[_CONTENT_TYPE] = "application/json"
    return dumps_exact(value).encode("utf-8", "surrogatepass")


def response_value(response: OutboundResponse, *, is_head: bool) -> Json:
    """Return the body of a response: as JSON where its content type says so, else as text.

    Raises:
        OutboundError: ``invalid-response``: it is neither.
    """
    written = Message()
    written[_CONTENT_TYPE] = response.headers.get(_CONTENT_TYPE.lower(), "")
    kind = written.get_content_type()
    if kind == "application/json" or kind.endswith("+json"):
        return None if is_head or not response.body else _parse_json(response)
    is_text = kind.startswith(_TEXT_TYPES) or kind.endswith("+xml")
    charset = known_charset(written.get_content_charset("utf-8"))
    is_replaced = is_text or charset is None
    try:
        return response.body.decode(charset or "utf-8", "replace" if is_replaced else "strict")
    except UnicodeDecodeError as error:
        raise _invalid(response, f"its type is {kind!r}, which is no text") from error


def body_text(response: OutboundResponse) -> str:
    """Return the body of a response of any type as text, in its charset where that is known."""
    written = Message()
    written[_CONTENT_TYPE] = response.headers.get(_CONTENT_TYPE.lower(), "")
    charset = known_charset(written.get_content_charset("utf-8"))
    return response.body.decode(charset or "utf-8", "replace")


def known_charset(declared: str) -> str | None:
    """Return the codec of a declared charset of text; None if it is not known.

    Python has other codecs that take any time, or are not of text. A body of an unknown charset is read as
    UTF-8 with replacement.
    """
    try:
        name = codecs.lookup(declared).name
    except (LookupError, ValueError):
        return None
    return name if _CHARSET.fullmatch(name) is not None else None


def _parse_json(response: OutboundResponse) -> Json:
    try:
        return json.loads(response.body, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise _invalid(response, "it is no JSON, although its type says so") from error


def _reject_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON")


def _invalid(response: OutboundResponse, why: str) -> OutboundError:
    return OutboundError(
        f"the response of {response.url} cannot be used: {why}", code="invalid-response"
    )
