"""``transform``: work out a value with an expression, or an object with several."""

from __future__ import annotations

from collections.abc import Iterable

from planwave.errors import PermanentError
from planwave.expressions import copy_json, has_template
from planwave.graph.inputs import Inputs
from planwave.graph.model import Json
from planwave.graph.protocols import FlowContext
from planwave.nodes.authoring.node_type import NodeData, NodeFinding, NodeType, template
from planwave.nodes.checking.node_view import NodeView

_HINT = 'write "expression": "{{ … }}", or "fields": {"name": "{{ … }}"}'


class TransformData(NodeData):
    """One of the two."""

    expression: Json = template(None, written=True, description="What gives the value: {{ … }}.")
    fields: dict[str, Json] | None = template(
        None,
        written=True,
        description="An expression for each field of an object, in place of one.",
    )


class Transform(NodeType):
    """Outputs the value of ``data.expression`` with its type, or the object of ``data.fields``."""

    node_type = "transform"
    purpose = (
        "Work out a value with an expression such as {{ input.price * 2 }}, or an object with one "
        "for each of its fields; no model is asked."
    )
    summary = "Work out a value from earlier results."
    Data = TransformData
    plan_fields = ("expression", "fields")
    fails_permanently = True

    async def run(self, data: TransformData, inputs: Inputs, context: FlowContext) -> Json:
        for message in _check_fields(data.model_fields_set, context.node_id):
            raise PermanentError(message, code="invalid-data", hint=_HINT)
        # A copy, so that changing the result does not change the graph.
        return copy_json(data.expression if data.fields is None else data.fields)

    def check(self, data: TransformData | None, view: NodeView) -> Iterable[NodeFinding]:
        present = {name for name in TransformData.model_fields if name in view.node.data}
        present |= {name for name in TransformData.model_fields if view.is_wired(name)}
        for message in _check_fields(present, view.node.id):
            yield NodeFinding("invalid-data", message, "/data", _HINT)
        text = view.node.data.get("expression")
        if isinstance(text, str) and not has_template(text) and not view.is_wired("expression"):
            yield NodeFinding(
                "invalid-data",
                "data.expression holds no expression: text without {{ … }} stays as it is",
                "/data/expression",
                f'write "{{{{ {text} }}}}", or use a node of type text for a fixed text',
            )


def _check_fields(present: Iterable[str], node_id: str) -> Iterable[str]:
    names = sorted(present)
    if len(names) != 1:
        both = " and ".join(names)
        yield f"{node_id!r} has {both or 'neither expression nor fields'}; it takes one of the two"
