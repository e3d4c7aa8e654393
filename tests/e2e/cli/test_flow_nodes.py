"""Stored flows run as nodes of other graphs: by name and revision, and never without an end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from planwave.bootstrap import open_service
from planwave.errors import Conflict, GraphInvalid
from planwave.graph.operations import ReplaceGraph
from planwave.service.service import Service
from planwave.settings import Limits, Settings
from tests.support.cli.command_process import isolated_directory

DEPTH = 3


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    """A service as ``planwave serve`` has it, over a disk."""
    isolated_directory(tmp_path, monkeypatch)
    limits = Limits(nested_depth=DEPTH)
    async with open_service(Settings(storage_dir=tmp_path / "storage", limits=limits)) as opened:
        yield opened


def saying(text: str) -> dict[str, Any]:
    return {
        "nodes": [
            {"id": "s", "type": "start"},
            {"id": "say", "type": "text", "data": {"text": text}},
        ],
        "edges": [{"source": "s", "target": "say", "data": {"channel": "flow"}}],
    }


def running(plan_id: str, revision: int | None = None) -> dict[str, Any]:
    """A graph whose one step runs a flow."""
    named = {"id": plan_id} if revision is None else {"id": plan_id, "revision": revision}
    return {
        "nodes": [
            {"id": "word", "type": "text", "data": {"text": "tide"}},
            {"id": "run", "type": "inner", "data": {"flow": named}},
        ],
        "edges": [{"source": "word", "target": "run", "data": {"channel": "flow"}}],
    }


async def executed(service: Service, graph: dict[str, Any]) -> dict[str, Any]:
    plan = await service.plans.read(graph)
    record = await service.executions.execute(plan)
    await service.executions.wait(record.execution_id)
    return await service.executions.document(record.execution_id)


async def test_inner_node_runs_live_or_named_revision(service: Service) -> None:
    first = await service.flows.create("Say", graph=saying("first {{ input }}"))
    await service.flows.update(first.plan_id, graph=saying("second {{ input }}"))
    draft = ReplaceGraph({"nodes": [{"id": "a", "type": "gone"}], "edges": []})
    await service.plans.edit(first.plan_id, [draft], expected=None)
    newest = await executed(service, running(first.plan_id))
    assert newest["node_results"]["run"] == "second tide"
    older = await executed(service, running(first.plan_id, 1))
    assert older["node_results"]["run"] == "first tide"


async def test_unknown_flow_is_found_before_anything_runs(service: Service) -> None:
    nobody = "019a0000-0000-7000-8000-00000000000f"
    with pytest.raises(GraphInvalid, match=nobody) as caught:
        await executed(service, running(nobody))
    assert [each.code for each in caught.value.diagnostics] == ["unknown-flow"]
    assert await service.executions.list() == []


async def test_flow_that_is_deleted_before_its_node_runs_fails_the_node(service: Service) -> None:
    flow = await service.flows.create("Say", graph=saying("x"))
    record = await service.executions.create(await service.plans.read(running(flow.plan_id)))
    with pytest.raises(Conflict, match="names it") as caught:
        await service.flows.delete(flow.plan_id)
    assert caught.value.code == "flow-in-use"
    await service.flows.delete(flow.plan_id, force=True)
    await service.executions.start(record.execution_id)
    await service.executions.wait(record.execution_id)
    document = await service.executions.document(record.execution_id)
    (failed,) = [node for node in document["nodes"] if node["status"] == "failed"]
    assert (failed["id"], failed["error_detail"]["code"]) == ("run", "unknown-flow")


async def test_recursive_flow_ends_at_the_depth_limit(service: Service) -> None:
    created = await service.flows.create("Again", graph=saying("x"))
    await service.flows.update(created.plan_id, graph=running(created.plan_id))
    document = await executed(service, running(created.plan_id))
    assert document["status"] == "failed"
    runs = [node for node in document["nodes"] if node["id"] == "run"]
    assert len(runs) == DEPTH + 1, "one in the graph itself, one on each level below"
    errors = [node["error_detail"] for node in runs]
    assert "limit-exceeded" in {error["code"] for error in errors}
    assert any("nested_depth" in error["message"] for error in errors)


async def test_fork_runs_the_live_flow_revision(service: Service) -> None:
    created = await service.flows.create("Say", graph=saying("first {{ input }}"))
    plan = await service.plans.read(running(created.plan_id))
    record = await service.executions.execute(plan)

    async def said(execution_id: str) -> tuple[str, bool]:
        await service.executions.wait(execution_id)
        events = await service.executions.events(execution_id)
        (done,) = [e for e in events if e.type == "node.completed" and e.path == "run"]
        return done.data["outputs"]["output"]["value"], "reused" in done.data

    assert await said(record.execution_id) == ("first tide", False)
    same = await service.executions.fork(record.execution_id)
    assert await said(same.execution_id) == ("first tide", True)
    await service.flows.update(created.plan_id, graph=saying("second {{ input }}"))
    changed = await service.executions.fork(record.execution_id)
    assert await said(changed.execution_id) == ("second tide", False)
    assert await said((await service.executions.fork(changed.execution_id)).execution_id) == (
        "second tide",
        True,
    )
