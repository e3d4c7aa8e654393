"""Expressions ``{{ … }}`` in node data: find, check and resolve them; the render worker.

A plain path with filters is resolved in process; everything else is rendered in one worker process,
with limits on time, memory and output (see ``renderer.py``).
"""

from planwave.expressions.json_text import copy_json, to_text
from planwave.expressions.literals import escape_templates, is_literal
from planwave.expressions.tasks import TaskTemplate, check_task, compile_task
from planwave.expressions.templates import Template, VariableSource, compile_template, has_template
from planwave.expressions.variables import (
    FLOW_INPUTS,
    FUNCTIONS,
    NODES,
    ROOT_VARIABLES,
    VariableRef,
)

__all__ = [
    "FLOW_INPUTS",
    "FUNCTIONS",
    "NODES",
    "ROOT_VARIABLES",
    "TaskTemplate",
    "Template",
    "VariableRef",
    "VariableSource",
    "check_task",
    "compile_task",
    "compile_template",
    "copy_json",
    "escape_templates",
    "has_template",
    "is_literal",
    "to_text",
]
