"""Fields of steps: those that are read, and what is said of those that are not."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from planwave.interop.importing.magic_agents.flow import Step, environment_names
from planwave.interop.importing.reading import text_of
from planwave.interop.importing.templates import literal

_WITHOUT_BEARING: Final = frozenset({"extra_data", "handles", "position", "label", "name"})


def text_field(step: Step, *names: str) -> tuple[str, str]:
    """Return the first of some fields that has a text, and its pointer.

    A text with ``{{env.NAME}}`` in it is lost: an import resolves no variable of the environment.
    """
    for name in names:
        if text := text_of(step.data, name):
            pointer = f"{step.node.pointer}/data/{name}"
            lose_environment(step, text, pointer)
            return text, pointer
    return "", f"{step.node.pointer}/data"


def literal_field(step: Step, *names: str) -> str:
    """Return a template that renders to the text of the first of some fields that has one."""
    return literal(text_field(step, *names)[0])


def lose_environment(step: Step, text: str, pointer: str) -> None:
    """Lose a text that names variables of the environment."""
    if names := environment_names(text):
        step.node.lose(
            f"it holds the environment variable {names[0]}, which an import never reads",
            text,
            pointer,
        )


def note_unread(step: Step, read: Collection[str]) -> None:
    """Say which fields of a step are left out."""
    for name, value in step.data.items():
        if name not in read and name not in _WITHOUT_BEARING and not _is_empty(value):
            step.node.note(
                "import-ignored",
                f"its field {name} is not read here",
                f"{step.node.pointer}/data/{name}",
            )


def _is_empty(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})
