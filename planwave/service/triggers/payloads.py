"""The bodies of requests that start executions: read strictly, and checked against a JSON Schema."""

from __future__ import annotations

from email.message import Message
from typing import TYPE_CHECKING, Final

from planwave.errors import GraphInvalid, InputError
from planwave.graph.diagnostics import short_repr
from planwave.graph.json_values import json_findings
from planwave.graph.reading.strict_json import parse_strict_json
from planwave.nodes.tools.http_bodies import known_charset
from planwave.service.triggers.forms import FORM_TYPES, read_form

if TYPE_CHECKING:
    from planwave.graph.model import Json

_CODE: Final = "invalid-payload"
_SHOWN: Final = 5


def read_payload(content_type: str, raw: bytes, json_depth: int) -> Json:
    """Return a body as JSON: parsed where its type says JSON or a form, else its text; None without a body.

    Raises:
        InputError: ``invalid-json`` (400) or ``invalid-payload`` (422): the body cannot be used.
    """
    written = Message()
    written["content-type"] = content_type or "text/plain"
    kind = written.get_content_type()
    if not raw:
        return None
    if kind == "application/json" or kind.endswith("+json"):
        try:
            return parse_strict_json(_json_text(written, raw), max_depth=json_depth)
        except GraphInvalid as error:
            raise _refusal(error) from error
    if kind in FORM_TYPES:
        return _storable(read_form(written, raw))
    return _storable(_text(written, raw))


def _json_text(written: Message, raw: bytes) -> bytes | str:
    declared = written.get_content_charset("utf-8")
    charset = known_charset(declared)
    return raw if charset == "utf-8" else raw.decode(charset or "utf-8", "replace")


def _text(written: Message, raw: bytes) -> str:
    """Return a text; without a declared charset it has to be UTF-8, as other types may be no text at all."""
    declared = written.get_content_charset()
    if declared is not None:
        return raw.decode(known_charset(declared) or "utf-8", "replace")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise _not_text() from error


def _storable(value: Json) -> Json:
    if json_findings(value):
        raise _not_text()
    return value


def _not_text() -> InputError:
    return InputError(
        "the body is neither JSON nor a form nor text in UTF-8",
        code=_CODE,
        hint="send JSON with Content-Type: application/json",
    )


def check_payload(value: Json, schema: dict[str, Json] | None) -> None:
    """Check a body against the schema of its node.

    Raises:
        InputError: ``invalid-payload``: the message names every error that is found.
    """
    if schema is None:
        return
    # Lazy: test_the_schema_library_is_loaded_only_for_forms
    from planwave.nodes.json_schema import validate

    if errors := validate(schema, value):
        reasons = "; ".join(f"{each.pointer or '/'}: {each.message}" for each in errors[:_SHOWN])
        more = f" (and {len(errors) - _SHOWN} more)" if len(errors) > _SHOWN else ""
        raise InputError(f"the body does not fit its schema: {reasons}{more}", code=_CODE)


def _refusal(error: GraphInvalid) -> InputError:
    first = error.diagnostics[0]
    is_text = first.code == "invalid-json"
    refusal = InputError(
        f"the body is no JSON that can be stored: {short_repr(first.message)[1:-1]}",
        code="invalid-json" if is_text else _CODE,
    )
    refusal.status_hint = 400 if is_text else 422
    return refusal
