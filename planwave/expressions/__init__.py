"""Expressions ``{{ … }}`` in node data: find, check and resolve them; the render worker.

A plain path with filters is resolved in process; everything else is rendered in one worker process,
with limits on time, memory and output (see ``renderer.py``).
"""

from planwave.expressions.json_text import copy_json, to_text
from planwave.expressions.syntax import VariableRef
from planwave.expressions.templates import Template, VariableSource, compile_template

__all__ = [
    "Template",
    "VariableRef",
    "VariableSource",
    "compile_template",
    "copy_json",
    "to_text",
]
