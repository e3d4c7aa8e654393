"""Templates with names in braces, as Python's ``str.format`` and Mustache have them, as templates of planwave."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from planwave.interop.importing.templates import literal

_SINGLE: Final = re.compile(
    r"(?P<escaped>\{\{|\}\})|\{(?P<name>[^\W\d]\w*)\}|(?P<more>\{[^\W\d]\w*[.\[!:][^{}]*\})|(?P<other>[{}])"
)
_DOUBLE: Final = re.compile(r"\{\{\s*(?P<name>[^\W\d]\w*)\s*\}\}|(?P<more>\{\{[#^/&!>{]?)")


class Braces(NamedTuple):
    """A template in parts.

    Attributes:
        parts: Texts as they are, and names of variables in tuples of one.
        lost: Parts that are more than a name.
        odd: Whether braces stand in it that are neither.
    """

    parts: Sequence[str | tuple[str]]
    lost: Sequence[str]
    odd: bool

    @property
    def names(self) -> list[str]:
        """The variables, each once, in their order."""
        return list(dict.fromkeys(part[0] for part in self.parts if isinstance(part, tuple)))

    def rendered(self, variable: Callable[[str], str]) -> str:
        """Return a template of planwave.

        Args:
            variable: Gives what stands for a name there.
        """
        return "".join(
            variable(part[0]) if isinstance(part, tuple) else literal(part)
            for part in _joined(self.parts)
        )


def read_braces(text: str, *, double: bool = False) -> Braces:
    """Read a template.

    Args:
        text: The template.
        double: Whether names stand in two braces, so that one brace is a text.
    """
    parts: list[str | tuple[str]] = []
    lost: list[str] = []
    odd, copied = False, 0
    for match in (_DOUBLE if double else _SINGLE).finditer(text):
        parts.append(text[copied : match.start()])
        copied = match.end()
        found = match.groupdict()
        if found["name"]:
            parts.append((found["name"],))
        elif found["more"]:
            lost.append(found["more"])
        elif found["escaped"]:
            parts.append(found["escaped"][0])
        else:
            parts.append(match[0])
            odd = True
    return Braces([*parts, text[copied:]], lost, odd)


def _joined(parts: Sequence[str | tuple[str]]) -> Sequence[str | tuple[str]]:
    """Join texts that follow each other, so that braces are escaped that meet."""
    joined: list[str | tuple[str]] = []
    for part in parts:
        if joined and isinstance(part, str) and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return joined
