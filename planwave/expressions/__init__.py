"""Expressions ``{{ … }}`` in node data: find, check and resolve them; the render worker.

A plain path with filters is resolved in process; everything else is rendered in one worker process,
with limits on time, memory and output (see ``renderer.py``).
"""

from typing import TYPE_CHECKING, Any

from planwave.expressions.json_text import copy_json, to_text
from planwave.expressions.templates import Template, VariableSource, compile_template, has_template
from planwave.expressions.variables import NODES, ROOT_VARIABLES, VariableRef

if TYPE_CHECKING:
    from planwave.expressions.renderer import Renderer

__all__ = [
    "NODES",
    "ROOT_VARIABLES",
    "Renderer",
    "Template",
    "VariableRef",
    "VariableSource",
    "compile_template",
    "copy_json",
    "has_template",
    "to_text",
]


def __getattr__(name: str) -> Any:
    """Import ``Renderer`` at its first use: asyncio is half of the import time of this package."""
    if name == "Renderer":
        from planwave.expressions.renderer import Renderer

        return Renderer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
