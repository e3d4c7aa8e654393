"""The conversion of a flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from planwave.interop.importing.conversion import Conversion
from planwave.interop.importing.flowise.chains import is_model, model
from planwave.interop.importing.flowise.flow import convert_steps, read_flow
from planwave.interop.importing.flowise.kinds import KINDS, know_start
from planwave.interop.importing.flowise.loops import settle_paths
from planwave.interop.importing.flowise.steps import Flow, Scope, Step
from planwave.interop.importing.importer import Source
from planwave.interop.importing.reading import text_of

_START = "startAgentflow"


def convert(source: Source) -> Conversion:
    """Make a graph of a flow."""
    document = cast("Mapping[str, Any]", source.value)
    conversion = Conversion("flowise", title=text_of(document, "name"))
    flow = Flow(conversion, Scope(conversion.graph))
    read_flow(flow, document, source.pointer)
    flow.start = next((s for s in flow.top.steps if s.kind == _START), None)
    models = {step.kind: model for step in flow.top.steps if is_model(step)}
    flow.handlers = {**models, **KINDS, _START: _begin}
    convert_steps(flow, flow.top)
    settle_paths(flow.holders)
    return conversion


def _begin(step: Step) -> None:
    KINDS[_START](step)
    if step is step.flow.start:
        know_start(step)
    else:
        step.lose("a flow has one start", step.id)
