"""Random damage to documents of other programs, and secrets put into them."""

from __future__ import annotations

import copy
import re
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

ODD_TEXTS: Final = (
    "", " ", "a\"b'c", "{{ x }}", "{% if", "{# {", "}}", "é ü 漢 \u200b", "a/b~c", "__proto__", "x" * 300,
    "\n\t", "$input.x", "{input.x}", "{steps.a.output}", "-->", "0", "null", "false",
)  # fmt: skip
"""Texts that names and prompts of real files have sooner or later."""
ODD_VALUES: Final = (
    None, True, False, 0, -1, 2.5, 10**18, [], {}, [None], [[]], {"": ""}, {"id": "a"}, ["a", 1], *ODD_TEXTS,
)  # fmt: skip
_SECRET_KEYS: Final = (
    "api_key",
    "apiKey",
    "Authorization",
    "password",
    "client_secret",
    "X-Api-Key",
)


class Damaged(NamedTuple):
    """A document, and the texts in it that are secrets."""

    document: Any
    secrets: tuple[str, ...]


@st.composite
def damaged(draw: st.DrawFn, documents: st.SearchStrategy[Any]) -> Damaged:
    """Draw a document with fields removed, replaced and repeated, and secrets in it.

    Args:
        draw: Hypothesis gives it.
        documents: Draws the documents, which are objects.
    """
    document, secrets = copy.deepcopy(draw(documents)), list[str]()
    for number in range(draw(st.integers(0, 4))):
        places = list(_places(document))
        if not places:
            break
        holder, key = draw(st.sampled_from(places))
        _ACTIONS[draw(st.sampled_from(sorted(_ACTIONS)))](draw, holder, key, number, secrets)
    return Damaged(document, tuple(secrets))


def _places(value: Any) -> Any:
    """Yield each ``(container, key)`` of a document."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield value, key
            yield from _places(inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield value, index
            yield from _places(inner)


def _remove(draw: st.DrawFn, holder: Any, key: Any, number: int, secrets: list[str]) -> None:
    del holder[key]


def _replace(draw: st.DrawFn, holder: Any, key: Any, number: int, secrets: list[str]) -> None:
    holder[key] = copy.deepcopy(draw(st.sampled_from(ODD_VALUES)))


def _repeat(draw: st.DrawFn, holder: Any, key: Any, number: int, secrets: list[str]) -> None:
    if isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))


def _swap(draw: st.DrawFn, holder: Any, key: Any, number: int, secrets: list[str]) -> None:
    """Give a text the value of another one of its container, such as the id of the next node."""
    other = draw(st.sampled_from(list(holder) if isinstance(holder, dict) else range(len(holder))))
    if isinstance(holder[other], str) and isinstance(holder[key], str):
        # A secret that nothing marks as one cannot be told from other texts.
        holder[key] = holder[key] if re.search(r"hidden\d", holder[other]) else holder[other]


def _hide_by_key(draw: st.DrawFn, holder: Any, key: Any, number: int, secrets: list[str]) -> None:
    if isinstance(holder, dict):
        secrets.append(f"hidden{number}Xq7Zt42")
        holder[draw(st.sampled_from(_SECRET_KEYS))] = secrets[-1]


def _hide_in_text(draw: st.DrawFn, holder: Any, key: Any, number: int, secrets: list[str]) -> None:
    if isinstance(holder[key], str) and not re.search(r"hidden\d", holder[key]):
        secrets.append(f"sk-hidden{number}Xq7Zt42Ab")
        holder[key] = f"{holder[key]} Authorization: Bearer {secrets[-1]} end"


_ACTIONS: Final = {
    "remove": _remove,
    "replace": _replace,
    "repeat": _repeat,
    "swap": _swap,
    "hide by key": _hide_by_key,
    "hide in text": _hide_in_text,
}
