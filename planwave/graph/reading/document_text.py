"""Text of a document in a file: JSON, or YAML of the same values. This module decides which."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from planwave.errors import GraphInvalid
from planwave.graph.model import Json
from planwave.graph.reading.strict_json import parse_strict_json
from planwave.graph.reading.yaml_text import parse_yaml

_JSON_START: Final = re.compile(r"\ufeff?\s*(?:[\[{]|$)", re.ASCII)
_JSON_START_BYTES: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:[\[{]|$)")
MAX_YAML_BYTES: Final = 1024 * 1024
"""Reading YAML takes a second for each MiB; no limit on plans can be higher than this."""
_HINT: Final = "planwave reads JSON, and YAML that has nodes and edges at the top"


def parse_document_text(
    text: str | bytes, *, max_bytes: int | None = None, max_depth: int | None = None
) -> Json:
    """Parse a document that is JSON or YAML.

    Text that begins with a brace or a bracket is JSON and nothing else: YAML would take the mistakes in it for
    text. Other text is YAML if that makes an object or an array of it. Bodies of HTTP requests are not read by this
    function: they are JSON.

    Args:
        text: The text; bytes must be UTF-8. A leading byte order mark is ignored.
        max_bytes: The limit in bytes of UTF-8, or None.
        max_depth: The limit on nesting; never more than 64.

    Raises:
        GraphInvalid: As ``parse_strict_json`` or ``parse_yaml``, whichever the text is meant for.
    """
    is_json = begins_as_json(text)
    if not is_json:
        yaml_bytes = MAX_YAML_BYTES if max_bytes is None else min(max_bytes, MAX_YAML_BYTES)
        value = parse_yaml(text, max_bytes=yaml_bytes, max_depth=max_depth)
        if type(value) in (dict, list):
            return value
    try:
        return parse_strict_json(text, max_bytes=max_bytes, max_depth=max_depth)
    except GraphInvalid as error:
        if is_json or error.diagnostics[0].code != "invalid-json":
            raise
        raise GraphInvalid([replace(d, hint=_HINT) for d in error.diagnostics]) from error


def begins_as_json(text: str | bytes) -> bool:
    """Return whether a text is an object or an array of JSON, or is meant to be one; empty text is."""
    start = _JSON_START.match(text) if isinstance(text, str) else _JSON_START_BYTES.match(text)
    return start is not None
