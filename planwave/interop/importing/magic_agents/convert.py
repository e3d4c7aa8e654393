"""The conversion of a flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from planwave.interop.importing.conversion import Conversion
from planwave.interop.importing.importer import Source
from planwave.interop.importing.magic_agents.flow import Flow, read_flow
from planwave.interop.importing.magic_agents.graphs import Graph
from planwave.interop.importing.magic_agents.kinds import made_of
from planwave.interop.importing.magic_agents.loops import Loops
from planwave.interop.importing.reading import text_of

_IGNORED: Final = (
    "debug",
    "debug_config",
    "contract_config",
    "master",
    "persistence_enabled",
    "hooks",
)


def convert(source: Source) -> Conversion:
    """Make a graph of a flow, of either version."""
    document = cast("Mapping[str, Any]", source.value)
    conversion = Conversion("magic-agents", title=text_of(document, "name"))
    flow = read_flow(conversion, document, source.pointer)
    conversion.kind_version = "legacy" if flow.is_legacy else "current"
    graph = Graph(conversion, flow, flow.steps, conversion.graph)
    graph.build(made_of, lambda each: Loops(each, made_of))
    _note_whole(conversion, document, source.pointer, flow)
    return conversion


def _note_whole(
    conversion: Conversion, document: Mapping[str, Any], pointer: str, flow: Flow
) -> None:
    for name in _IGNORED:
        if document.get(name):
            conversion.note("import-ignored", f"{name} is not read here", f"{pointer}/{name}")
    if document.get("timeout"):
        conversion.note(
            "import-changed",
            "a step waits here until what leads to it has ended, not for a number of seconds",
            f"{pointer}/timeout",
        )
    if any(step.kind in ("parser", "conditional") for step in flow.steps):
        conversion.note(
            "import-changed",
            "texts show lists, objects, true and null as JSON does, there as Python does",
            pointer,
        )
    entries = [step for step in flow.steps if step.kind == "user_input"]
    if len(entries) != 1 and not flow.is_legacy:
        conversion.note(
            "import-changed",
            f"it has {len(entries)} steps user_input: there it did not run, here it does",
            f"{pointer}/nodes",
        )
