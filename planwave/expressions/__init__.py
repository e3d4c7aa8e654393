"""Expressions in node data: ``{{ … }}`` found, checked and resolved; the render worker.

One plain path with filters is resolved in process; anything more goes to one worker process, with
limits on time, memory and output (see ``renderer.py``).
"""

from typing import TYPE_CHECKING, Any

from planwave.expressions.json_text import copy_json, to_text
from planwave.expressions.syntax import VariableRef
from planwave.expressions.templates import Template, VariableSource, compile_template

if TYPE_CHECKING:
    from planwave.expressions.renderer import Renderer

__all__ = [
    "Renderer",
    "Template",
    "VariableRef",
    "VariableSource",
    "compile_template",
    "copy_json",
    "to_text",
]


def __getattr__(name: str) -> Any:
    """Load ``Renderer`` at its first use: asyncio is half of this room's import time."""
    if name == "Renderer":
        from planwave.expressions.renderer import Renderer

        return Renderer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
