"""Forms as objects, as browsers, Slack, Twilio and GitHub send them.

A name that is repeated has the list of its values. A file is ``{"filename", "contentType", "size"}`` with
its ``text``, or with ``base64`` where it is not text in UTF-8.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from email.message import Message
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from planwave.errors import InputError
from planwave.nodes.tools.http_bodies import known_charset

if TYPE_CHECKING:
    from planwave.graph.model import Json

URL_ENCODED: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"
FORM_TYPES: Final = frozenset({URL_ENCODED, MULTIPART})
_CODE: Final = "invalid-payload"
_MOST_FIELDS: Final = 1_000
_HEAD_BYTES: Final = 16 * 1024


def read_form(written: Message, raw: bytes) -> dict[str, Json]:
    """Return the fields of a form.

    Args:
        written: Its content type, one of ``FORM_TYPES``, with its parameters.
        raw: The body.

    Raises:
        InputError: ``invalid-payload``: it is no such form, or has too many fields.
    """
    charset = known_charset(written.get_content_charset("utf-8")) or "utf-8"
    if written.get_content_type() == URL_ENCODED:
        return _collected(_url_encoded(raw, charset))
    boundary = written.get_boundary("")
    if not boundary:
        raise _invalid("its content type names no boundary")
    return _collected(_parts(raw, boundary.encode(errors="replace"), charset))


def _url_encoded(raw: bytes, charset: str) -> Iterable[tuple[str, Json]]:
    text = raw.decode(charset, "replace")
    try:
        return parse_qsl(
            text,
            keep_blank_values=True,
            encoding=charset,
            errors="replace",
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError:
        raise _too_many() from None


def _collected(fields: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    by_name: dict[str, list[Json]] = {}
    for name, value in fields:
        by_name.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in by_name.items()}


def _parts(raw: bytes, boundary: bytes, charset: str) -> Iterator[tuple[str, Json]]:
    """Yield the fields of a multipart form (RFC 7578).

    The standard library's parser of mails does not fit: it decodes parts that are messages themselves.
    """
    delimiter = b"\r\n--" + boundary
    _, *parts = (b"\r\n" + raw).split(delimiter, _MOST_FIELDS + 2)
    if len(parts) > _MOST_FIELDS + 1:
        raise _too_many()
    if not parts or not parts[-1].startswith(b"--"):
        raise _invalid("it does not end with its boundary")
    for part in parts[:-1]:
        head, separator, content = part.partition(b"\r\n\r\n")
        if not separator or len(head) > _HEAD_BYTES:
            raise _invalid("a part of it has no head")
        headers = _headers_of(head)
        name = headers.get_param("name", header="content-disposition")
        if not isinstance(name, str):
            raise _invalid("a part of it has no name")
        yield name, _value_of(headers, content, charset)


def _headers_of(head: bytes) -> Message:
    headers = Message()
    for line in head.decode(errors="replace").split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip():
            headers[name.strip()] = value.strip()
    return headers


def _value_of(headers: Message, content: bytes, charset: str) -> Json:
    filename = headers.get_filename()
    if filename is None:
        declared = known_charset(headers.get_content_charset(charset)) or "utf-8"
        return content.decode(declared, "replace")
    file: dict[str, Json] = {
        "filename": filename,
        "contentType": headers.get("content-type", "application/octet-stream"),
        "size": len(content),
    }
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    is_text = "\0" not in text
    return {**file, "text": text} if is_text else {**file, "base64": b64encode(content).decode()}


def _too_many() -> InputError:
    return _invalid(f"it has more than {_MOST_FIELDS} fields")


def _invalid(why: str) -> InputError:
    return InputError(f"the body is no form that can be read: {why}", code=_CODE)
