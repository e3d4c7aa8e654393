"""Batch runs: one question to a model for each row of a table, as a ``loop``."""

from __future__ import annotations

from typing import Final

from planwave.interop.importing.drafts import new_edge
from planwave.interop.importing.langflow.flow import Component, Plug
from planwave.interop.importing.langflow.models import model_settings, settle_model
from planwave.interop.importing.templates import inserted, path, quoted

_REPLY: Final = "model_response"
"""The column of the reply where the form names none."""


def batch_run(component: Component) -> None:
    """Become a ``loop`` whose body asks the model and adds the reply to the row."""
    main = component.becomes("loop")
    if component.takes("df", main, "input", "table") is None:
        component.lose("no table leads to it", "", "df")
    column, reply = component.text("column_name"), component.text("output_column_name") or _REPLY
    if not column:
        component.lose("whole rows are asked, as a text of their own form", "", "column_name")
    for wire in component.arriving:
        if wire.field != "df":
            message = f"what is wired to {wire.field!r} does not reach into the body of a loop"
            component.lose(message, wire.source.id, wire.field)
    body = component.node.body()
    asked = inserted(f"{path('item', [column])} | string")
    data = {**model_settings(component), "prompt": asked}
    if system := component.template("system_message"):
        data["system"] = system
    ask = component.node.becomes("llm", data, node_id="ask", name="Ask", graph=body)
    settle_model(component, ask)
    added = f'{{{quoted(reply)}: input, "batch_index": index}}'
    row = component.node.becomes(
        "transform",
        {"expression": inserted(f"dict(item, **{added})")},
        node_id="row",
        name="Row",
        graph=body,
    )
    new_edge(body, ask.id, row.id)
    main.node["data"]["body"] = body.document()
    component.node.change("a row without the column fails here; there it is asked as 'nan'")
    if component.flag("enable_metadata"):
        component.node.change("rows get no metadata", component.pointer("enable_metadata"))
    component.outputs["batch_results"] = Plug(main, "output")
