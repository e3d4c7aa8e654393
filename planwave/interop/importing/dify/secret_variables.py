"""Variables of the environment that steps use as secrets, whatever the file calls them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from planwave.interop.importing.secrets import is_secret_key

_PREFIX: Final = "{{#env."
_READ: Final = re.compile(r"\{\{#env\.([A-Za-z_][A-Za-z0-9_]*)#\}\}")
_ASSIGNED: Final = re.compile(
    r"""(?<![A-Za-z0-9_-])(?P<key>[A-Za-z_][A-Za-z0-9_-]{1,60})\\?["']?[ \t]{0,4}[:=][ \t]{0,4}\\?["']?"""
    r"""(?:[A-Za-z]{1,20}[ ]+)?\Z"""
)
_BEFORE: Final = 100
"""Characters in front of a reference that say what it is for: a key, and a scheme."""


def secrets_read_in(value: object) -> Iterator[str]:
    """Yield the variables of the environment that are put where the name of a field or header asks for a secret."""
    if isinstance(value, dict):
        fields = cast("Mapping[str, Any]", value)
        named = next((fields[k] for k in ("key", "name") if isinstance(fields.get(k), str)), "")
        for name, each in fields.items():
            if not isinstance(each, str):
                yield from secrets_read_in(each)
            elif _PREFIX in each:
                is_secret = is_secret_key(name) or (name == "value" and is_secret_key(named))
                yield from _READ.findall(each) if is_secret else _assigned(each)
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from secrets_read_in(each)
    elif isinstance(value, str) and _PREFIX in value:
        yield from _assigned(value)


def _assigned(text: str) -> Iterator[str]:
    for match in _READ.finditer(text):
        key = _ASSIGNED.search(text[max(0, match.start() - _BEFORE) : match.start()])
        if key is not None and is_secret_key(key["key"]):
            yield match[1]
