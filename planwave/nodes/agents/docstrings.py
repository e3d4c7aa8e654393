"""What a Google-style docstring says: the first paragraph, and a text for each argument."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

_ARGUMENTS: Final = frozenset({"Args:", "Arguments:", "Parameters:"})
_ENTRY: Final = re.compile(r"(?P<name>\w+)\s*(\([^)]*\))?\s*:\s*(?P<text>.*)")


class Docstring(NamedTuple):
    """The texts of a docstring, each on one line."""

    summary: str
    arguments: dict[str, str]


def read_docstring(function: Callable[..., Any]) -> Docstring:
    """Return the texts of a function's docstring; a text that is missing is empty."""
    lines = (inspect.getdoc(function) or "").splitlines()
    return Docstring(_first_paragraph(lines), _arguments(lines))


def _first_paragraph(lines: Iterable[str]) -> str:
    words: list[str] = []
    for line in lines:
        if not line.strip() or line.strip() in _ARGUMENTS:
            break
        words.append(line.strip())
    return " ".join(words)


def _arguments(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    heading = next((i for i, line in enumerate(lines) if line.strip() in _ARGUMENTS), len(lines))
    indent, name = None, ""
    for line in lines[heading + 1 :]:
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        if depth == 0:
            break  # the next section
        indent = depth if indent is None else indent
        entry = _ENTRY.fullmatch(line.strip()) if depth <= indent else None
        if entry is not None:
            name = entry["name"]
            found[name] = entry["text"]
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found
