"""What a flow says of the file that it was imported from: stored with its plan, kept by edits and copies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planwave.errors import LimitExceeded
from planwave.graph.operations import SetTitle, UpdateNode
from planwave.interop.importing.importer import import_text
from planwave.service.service import Service
from planwave.settings import Limits
from tests.support.interop.imports import OWN
from tests.support.service.dependencies import dependencies

IMPORTED = import_text((OWN / "agiraph" / "plan_with_contracts.json").read_bytes(), provider="fake")
OTHER = import_text((OWN / "mermaid" / "research.mmd").read_bytes(), provider="fake")
GRAPH: dict[str, Any] = {**IMPORTED.document}
FIRST: dict[str, Any] = {**GRAPH, "imported_from": {"report": IMPORTED.report}}
SECOND: dict[str, Any] = {**OTHER.document, "imported_from": {"report": OTHER.report}}


async def said(service: Service, plan_id: str) -> Any:
    """Return what the document of a plan says of an import."""
    return (await service.plans.get(plan_id)).document.get("imported_from")


async def test_a_flow_keeps_the_report_of_its_import_and_when_it_was() -> None:
    async with Service(dependencies()) as service:
        flow = await service.flows.create("Imported", graph=FIRST, draft=True)
        record = await said(service, flow.plan_id)
        assert record == {"imported_at": flow.created_at, "report": IMPORTED.report}
        assert "imported_from" not in flow.as_json(), "those who call a flow do not see it"
        assert (await service.plans.validate(flow.plan_id)).graph is not None


async def test_edits_keep_it_and_another_import_takes_its_place() -> None:
    async with Service(dependencies()) as service:
        plan_id = (await service.flows.create("Imported", graph=FIRST, draft=True)).plan_id
        first = await said(service, plan_id)
        changed = UpdateNode("node_0", {"name": "Other"})
        await service.plans.edit(plan_id, [changed, SetTitle("Other")], expected=None)
        await service.flows.update(plan_id, graph=GRAPH, draft=True)
        assert await said(service, plan_id) == first
        flow = await service.flows.update(plan_id, graph=SECOND, draft=True)
        assert (await said(service, plan_id))["report"] == OTHER.report
        again = await service.flows.update(plan_id, graph=FIRST | OTHER.document, draft=True)
        assert again.revision == flow.revision, "the graph is the same"
        assert (await said(service, plan_id))["report"] == IMPORTED.report


async def test_a_copy_has_it_whether_by_document_or_by_id() -> None:
    async with Service(dependencies()) as service:
        plan_id = (await service.flows.create("Imported", graph=FIRST, draft=True)).plan_id
        document = json.dumps((await service.plans.get(plan_id)).document)
        moved = await service.flows.create("Moved", graph=document, draft=True)
        copied = await service.flows.create("Copied", plan_id=plan_id)
        other = await service.flows.create("Other", graph=SECOND, draft=True)
        await service.flows.update(other.plan_id, graph_of=plan_id, draft=True)
        records = [await said(service, each.plan_id) for each in (moved, copied)]
        assert records == [await said(service, plan_id)] * 2
        assert (await said(service, other.plan_id))["report"] == IMPORTED.report


@pytest.mark.parametrize("value", [None, 5, "x", [], {}, {"report": {}}, {"report": None}])
async def test_one_of_another_form_is_ignored(value: Any) -> None:
    async with Service(dependencies()) as service:
        flow = await service.flows.create("A", graph={**FIRST, "imported_from": value}, draft=True)
        assert await said(service, flow.plan_id) is None


async def test_what_it_has_beside_is_left_out() -> None:
    record = {"report": {**IMPORTED.report, "text": "a"}, "source": "the file"}
    async with Service(dependencies()) as service:
        flow = await service.flows.create("A", graph=FIRST | {"imported_from": record}, draft=True)
        kept = await said(service, flow.plan_id)
        assert (set(kept), kept["report"]) == ({"imported_at", "report"}, IMPORTED.report)


async def test_it_may_be_as_large_as_a_graph() -> None:
    limits = Limits(plan_bytes=6_000)
    report = {**IMPORTED.report, "title": "x" * 6_000}
    async with Service(dependencies(limits=limits)) as service:
        with pytest.raises(LimitExceeded, match="record of an import"):
            await service.flows.create(
                "A", graph=FIRST | {"imported_from": {"report": report}}, draft=True
            )
