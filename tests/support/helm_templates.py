"""Rendering of Helm templates without Helm: the part of its language that the chart of this repository uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

_CONDITION = re.compile(
    r"^\{\{- if (not )?(\S+) \}\}\n(.*?)^\{\{- end \}\}\n", re.DOTALL | re.MULTILINE
)
_BLOCK = re.compile(r"^ *\{\{- toYaml (\S+) \| nindent (\d+) \}\}$", re.MULTILINE)
_VALUE = re.compile(r"\{\{ (\S+?)(?: \| default (\S+))? \}\}")


def rendered(template: str, scope: Mapping[str, Any]) -> str:
    """Return a template with all its actions replaced.

    Args:
        template: Its text.
        scope: What ``.Values``, ``.Release`` and ``.Chart`` are.

    Raises:
        KeyError: It names a value that there is not.
        AssertionError: It uses something else of the language.
    """

    def chosen(found: re.Match[str]) -> str:
        holds = bool(value_of(found[2], scope)) is not bool(found[1])
        return found[3] if holds else ""

    def block(found: re.Match[str]) -> str:
        lines = yaml.safe_dump(value_of(found[1], scope)).splitlines()
        return "\n".join(" " * int(found[2]) + line for line in lines)

    def value(found: re.Match[str]) -> str:
        given = value_of(found[1], scope)
        return str(value_of(found[2], scope) if not given and found[2] else given)

    text = _VALUE.sub(value, _BLOCK.sub(block, _CONDITION.sub(chosen, template)))
    assert "{{" not in text, text
    return text


def value_of(path: str, scope: Mapping[str, Any]) -> Any:
    """Return the value at a path such as ``.Values.image.tag``."""
    value: Any = scope
    for name in path.removeprefix(".").split("."):
        value = value[name]
    return value
