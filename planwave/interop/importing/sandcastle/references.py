"""What the braces in a prompt of Sandcastle stand for.

``{input.x}``, ``{steps.id.output.field}``, ``{run_id}`` and ``{date}`` are replaced where they have a value;
all other braces stay as they are. A brace belongs to the first closing one, so that none is replaced inside
``{"a": {input.x}}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from planwave.interop.importing.reading import list_of, object_of

_BRACES: Final = re.compile(r"\{([^}]+)\}")
_ITEM, _INDEX = "_item", "_index"

Root = Literal["input", "step", "item", "index", "none"]
"""What a reference begins at; ``none`` has no counterpart in templates."""


class Reference(NamedTuple):
    """A part of a prompt that is replaced.

    Attributes:
        text: The text between the braces.
        root: What it begins at.
        step: The step whose output it reads, or "".
        fields: The fields and places that lead to the value.
    """

    text: str
    root: Root
    step: str = ""
    fields: tuple[str | int, ...] = ()

    @property
    def written(self) -> str:
        """The reference as it stands in the prompt."""
        return f"{{{self.text}}}"


def reference_of(path: str, steps: Set[str], *, in_loop: bool) -> Reference | None:
    """Return what a path stands for; None where it is plain text.

    Args:
        path: The text between the braces.
        steps: The ids of the steps.
        in_loop: Whether it stands in a step that runs for each item of a list.
    """
    first, *rest = path.split(".")
    fields = tuple(int(part) if part.isdecimal() and len(part) < 9 else part for part in rest)
    if first == "input" and fields[:1] in ((_ITEM,), (_INDEX,)):
        root: Root = "item" if fields[0] == _ITEM else "index"
        return Reference(path, root, fields=fields[1:]) if in_loop else None
    if first == "input":
        return Reference(path, "input", fields=fields)
    if first == "steps" and len(rest) > 1 and rest[0] in steps and rest[1] == "output":
        return Reference(path, "step", rest[0], fields[2:])
    if path in ("run_id", "date") or first == "storage":
        return Reference(path, "none")
    return None


def pieces_of(prompt: str, steps: Set[str], *, in_loop: bool = False) -> Iterator[str | Reference]:
    """Yield the plain texts and the references of a prompt, in their order."""
    end = 0
    for match in _BRACES.finditer(prompt):
        reference = reference_of(match[1], steps, in_loop=in_loop)
        if reference is not None:
            yield prompt[end : match.start()]
            yield reference
            end = match.end()
    yield prompt[end:]


def is_named(step: str, prompt: str) -> bool:
    """Return whether a prompt names the output of a step; outputs of others are added to its end."""
    return f"steps.{step}." in prompt or f"steps.{step}}}" in prompt


@dataclass
class Shape:
    """The parts of a value that other steps read.

    Attributes:
        fields: Fields that are read, and what is read of them.
        items: What is read of each item; None where it is not used as a list.
    """

    fields: dict[str, Shape] = field(default_factory=dict[str, "Shape"])
    items: Shape | None = None

    def at(self, path: tuple[str | int, ...]) -> Shape:
        """Return the shape of the part at a path; it is read from now on."""
        shape = self
        for part in path:
            if isinstance(part, int):
                shape = shape.as_list()
            else:
                shape = shape.fields.setdefault(part, Shape())
        return shape

    def as_list(self) -> Shape:
        """Return the shape of each item of a list."""
        if self.items is None:
            self.items = Shape()
        return self.items

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of a value that has these parts."""
        if self.fields:
            properties = {name: shape.schema() for name, shape in self.fields.items()}
            return {"type": "object", "properties": properties, "required": [*properties]}
        if self.items is not None:
            return {"type": "array", "items": self.items.schema()}
        return {"type": "string"}


def is_certain(schema: Mapping[str, Any], path: tuple[str | int, ...]) -> bool:
    """Return whether a value that fits a schema has a part at a path."""
    for part in path:
        if part not in list_of(schema, "required"):
            return False
        schema = object_of(object_of(schema, "properties"), str(part))
    return True


def part_of(schema: Mapping[str, Any], path: tuple[str | int, ...]) -> Mapping[str, Any]:
    """Return the schema of the part at a path; an empty one where nothing is said of it."""
    for part in path:
        if isinstance(part, int):
            schema = object_of(schema, "items")
        else:
            schema = object_of(object_of(schema, "properties"), part)
    return schema
