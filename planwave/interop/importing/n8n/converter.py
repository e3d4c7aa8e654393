"""n8n workflows as planwave graphs.

A step of n8n runs once for each item of a list; planwave's once. What runs for several items is a loop here,
or a placeholder. Parameters that begin with ``=`` hold JavaScript, which is translated from a closed list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, cast

from planwave.graph.json_values import pointer_part
from planwave.interop.importing.conversion import Conversion
from planwave.interop.importing.drafts import GraphDraft, new_edge
from planwave.interop.importing.importer import Source
from planwave.interop.importing.n8n.branches import BRANCHES
from planwave.interop.importing.n8n.control import CONTROL
from planwave.interop.importing.n8n.fields import Placement
from planwave.interop.importing.n8n.items import ITEMS
from planwave.interop.importing.n8n.kinds import Kind, Making
from planwave.interop.importing.n8n.models import MODELS, Helpers, place_helper
from planwave.interop.importing.n8n.placement import Placer
from planwave.interop.importing.n8n.requests import REQUESTS, credential_name
from planwave.interop.importing.n8n.triggers import TRIGGERS
from planwave.interop.importing.n8n.workflow import (
    Step,
    Way,
    Workflow,
    drop_disabled,
    drop_what_never_runs,
    in_order,
    read_connections,
    read_steps,
)
from planwave.interop.importing.reading import number_of, object_of, objects_in, text_of

_PACKAGES: Final = ("n8n-nodes-base.", "@n8n/n8n-nodes-langchain.")
_KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {**TRIGGERS, **ITEMS, **BRANCHES, **CONTROL, **REQUESTS, **MODELS}
)
_MANY: Final = frozenset(("merge",))
"""Kinds that take what arrives from several ways together."""


def convert(source: Source) -> Conversion:
    """Make a node of each step, a link of each helper, a loop of what runs for items or leads back."""
    document, at = cast("Mapping[str, Any]", source.value), source.pointer
    conversion = Conversion("n8n", title=text_of(document, "name"))
    workflow = Workflow(conversion, at, settings=object_of(document, "settings"))
    read_steps(workflow, objects_in(document, "nodes"))
    read_connections(workflow, document.get("connections"))
    drop_disabled(workflow)
    drop_what_never_runs(workflow)
    for step in workflow.steps.values():
        _describe(workflow, step)
    _check_outputs(workflow)
    workflow.steps = {name: workflow.steps[name] for name in in_order(workflow)}
    workflow.ways.sort_by_input()
    _Converter(workflow).place()
    _note_the_file(workflow, document)
    return conversion


def _describe(workflow: Workflow, step: Step) -> None:
    """Say what outputs a step has, and what it hands on."""
    kind = _kind_of(step)
    if kind is None:
        step.handles = _placeholder_handles(workflow, step)
        return
    step.handles = kind.handles(step)
    step.envelope, step.passes = kind.envelope(workflow, step), kind.passes
    if step.fields.get("onError") != "continueErrorOutput":
        return
    if any(way.output == len(step.handles) for way in workflow.out_of(step.name)):
        step.handles = [*step.handles, "error"]
    else:
        step.node.change(
            "the run fails with it here; there its errors lead nowhere, and the run goes on"
        )


def _kind_of(step: Step) -> Kind | None:
    is_known = step.node.kind in (f"{package}{step.kind}" for package in _PACKAGES)
    return _KINDS.get(step.kind) if is_known else None


def _placeholder_handles(workflow: Workflow, step: Step) -> list[str]:
    count = max((way.output for way in workflow.out_of(step.name)), default=0) + 1
    handles = ["output", *(f"output-{number}" for number in range(1, count))]
    if step.fields.get("onError") == "continueErrorOutput" and count > 1:
        handles[-1] = "error"
    return handles


def _check_outputs(workflow: Workflow) -> None:
    """Leave out connections from outputs that a step does not have."""

    def is_there(way: Way) -> bool:
        return way.output < len(workflow.steps[way.source].handles)

    for way in workflow.ways:
        if is_there(way):
            continue
        message = f"{way.source} has no output {way.output}"
        way.edge.drop("import-dangling", message)
        workflow.steps[way.target].node.lose(
            message, way.source, way.edge.pointer, code="import-dangling"
        )
    workflow.ways.keep(is_there)


class _Converter:
    def __init__(self, workflow: Workflow) -> None:
        self._workflow = workflow
        self._placer = Placer(workflow, self._make)

    def place(self) -> None:
        workflow = self._workflow
        helpers = {
            link.source
            for link in workflow.links
            if not workflow.into(link.source) and not workflow.out_of(link.source)
        }
        names = [name for name in workflow.steps if name not in helpers]
        graph = workflow.conversion.graph
        self._placer.place(names, graph)
        for name in workflow.steps:
            if name in helpers and not workflow.steps[name].node.targets:
                place_helper(self._placer.placement, workflow.steps[name], graph)
        for step in workflow.steps.values():
            _note_credentials(step)

    def _make(self, placement: Placement, step: Step, graph: GraphDraft) -> None:
        kind, making = _kind_of(step), Making(placement, step, graph)
        self._check_arriving(step)
        before, begin = len(step.node.targets), None
        if kind is not None and not step.is_trigger and not self._workflow.into(step.name):
            begin = making.becomes("start", suffix="start")
        if kind is None:
            target = making.becomes("placeholder")
            step.node.becomes_placeholder(f"{step.node.kind or 'a step'} has no counterpart")
            Helpers(making).settle(target)
        else:
            kind.make(making)
            if step.kind not in MODELS:
                Helpers(making).settle(step.node.target)
        if begin is not None:
            new_edge(graph, begin.id, step.node.targets[before + 1].id)
        _set_policy(self._workflow, step)

    def _check_arriving(self, step: Step) -> None:
        """Lose a step to which several ways lead, unless one alone is taken: its value arrives then."""
        ways = self._placer.arriving(step.name)
        if len(ways) > 1 and step.kind not in _MANY and not self._placer.are_exclusive(ways):
            step.node.lose(
                f"{len(ways)} ways lead to it: it runs once for each of them there",
                ", ".join(way.source for way in ways),
                code="import-many-items",
            )


def _set_policy(workflow: Workflow, step: Step) -> None:
    """Say how often it is tried again, and where its errors go."""
    fields, policy = step.fields, dict[str, Any]()
    if fields.get("retryOnFail") is True:
        attempts = int(number_of(fields, "maxTries") or 3)
        pause = (number_of(fields, "waitBetweenTries") or 1000) / 1000
        policy["retry"] = {
            "attempts": min(max(attempts, 1), 5),
            "backoffS": min(max(pause, 0), 300),
        }
        step.node.note("import-changed", "the time between two tries doubles here")
    error = fields.get("onError")
    ways: Sequence[Way] = workflow.out_of(step.name)
    if "error" in step.handles and any(step.handles[way.output] == "error" for way in ways):
        policy["onError"] = "continue"
    elif error == "continueRegularOutput" or fields.get("continueOnFail") is True:
        if step.handles[:1] == ["output"]:
            value = {"error": "the step failed"}
            policy |= {"onError": "default", "default": {"handle": "output", "value": value}}
            step.node.change("what it hands on when it fails does not tell the error")
        else:
            step.node.lose("it goes on when it fails", str(error), f"{step.pointer}/onError")
    if policy and step.node.targets:
        (step.worker or step.node.target).node["policy"] = policy


def _note_credentials(step: Step) -> None:
    name = credential_name(step)
    if name:
        step.node.note(
            "import-secret-removed",
            f"its credential {name!r} is not in the file: set it up here",
            f"{step.pointer}/credentials",
        )


def _note_the_file(workflow: Workflow, document: Mapping[str, Any]) -> None:
    at, conversion = workflow.pointer, workflow.conversion
    for name, pinned in object_of(document, "pinData").items():
        if pinned:
            conversion.note(
                "import-ignored",
                f"the data that are pinned to {name!r} are not imported",
                f"{at}/pinData/{pointer_part(name)}",
            )
    triggers = [step.name for step in workflow.steps.values() if step.is_trigger]
    if len(triggers) > 1:
        conversion.note(
            "import-changed",
            f"it has several triggers ({', '.join(triggers)}): a run that none of them started begins at "
            "all of them here",
            at,
        )
    if text_of(workflow.settings, "errorWorkflow"):
        conversion.note(
            "import-ignored", "its error workflow is not run here", f"{at}/settings/errorWorkflow"
        )
