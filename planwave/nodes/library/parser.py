"""``parser``: reshape what arrived with a template."""

from __future__ import annotations

from planwave.expressions import copy_json
from planwave.graph.inputs import Inputs
from planwave.graph.model import Json, Port
from planwave.graph.protocols import FlowContext
from planwave.nodes.authoring.node_type import INPUT, NodeData, NodeType, template


class ParserData(NodeData):
    """The template: a text, or a list or object whose texts are templates."""

    template: Json = template(
        description="A text, or a list or object of texts; each input is a variable of its name."
    )


class Parser(NodeType):
    """Outputs its template, rendered.

    Every input handle is also a variable: an edge into ``topic`` defines ``{{ topic }}``.
    A template that is a single expression keeps the type of its value.
    """

    node_type = "parser"
    purpose = (
        "Combine or reshape inputs with a template; each input handle is a variable in it, "
        "no model is asked."
    )
    summary = "Combine inputs into a text by a template."
    Data = ParserData
    plan_fields = ("template",)
    fails_permanently = True
    inputs = (INPUT, Port("{name}", multiple=True))

    async def run(self, data: ParserData, inputs: Inputs, context: FlowContext) -> Json:
        return copy_json(
            data.template
        )  # a copy, so that changing the result does not change the graph
