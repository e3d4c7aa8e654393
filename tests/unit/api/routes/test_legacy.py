from __future__ import annotations

from tests.support.nodes.held_nodes import FailingNode
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies

GRAPH = {
    "nodes": [
        {"id": "node_0", "type": "text", "name": "Context", "data": {"text": "facts"}},
        {"id": "node_1", "type": "broken", "name": "Research"},
        {"id": "node_2", "type": "text", "name": "Report", "data": {"text": "never"}},
    ],
    "edges": [
        {"source": "node_0", "target": "node_1", "data": {"channel": "flow"}},
        {"source": "node_1", "target": "node_2", "data": {"channel": "flow"}},
    ],
}


async def executed(calls: InProcessClient) -> str:
    created = await calls.post_json("/api/execute", {"graph": GRAPH}, 201)
    execution_id = created["execution_id"]
    await calls.post_json(f"/api/execute/{execution_id}/start", status=202)
    await calls.service.executions.wait(execution_id)
    return execution_id


async def test_legacy_status_has_the_original_fields() -> None:
    async with in_process_client(dependencies(types=[FailingNode()])) as calls:
        execution_id = await executed(calls)
        found = await calls.get_json(f"/api/execution/{execution_id}/status")
        assert list(found) == ["execution_id", "plan_id", "status", "node_states", "logs"]
        assert (found["execution_id"], found["status"]) == (execution_id, "failed")
        assert found["node_states"] == {
            "node_0": "completed",
            "node_1": "failed",
            "node_2": "blocked",
        }
        assert found["logs"][0] == "Starting execution..."
        assert "Cannot proceed - dependencies failed: ['node_1']" in found["logs"]


async def test_legacy_result_lists_every_node() -> None:
    async with in_process_client(dependencies(types=[FailingNode()])) as calls:
        execution_id = await executed(calls)
        found = await calls.get_json(f"/api/execution/{execution_id}/result")
        assert list(found) == [
            "execution_id", "plan_id", "status", "node_results", "execution_logs",
            "started_at", "completed_at",
        ]  # fmt: skip
        good, bad, blocked = found["node_results"]
        assert good.pop("execution_time") >= 0
        assert good == {
            "node_id": "node_0",
            "name": "Context",
            "status": "completed",
            "result": "facts",
            "error": None,
        }
        assert (bad["status"], bad["result"]) == ("failed", None)
        assert "it broke" in bad["error"]
        assert (blocked["status"], blocked["error"]) == ("blocked", None)
        assert found["completed_at"] > found["started_at"]


async def test_legacy_load_returns_the_document() -> None:
    async with in_process_client(dependencies(types=[FailingNode()])) as calls:
        execution_id = await executed(calls)
        found = await calls.get_json(f"/api/execution/{execution_id}/load")
        assert found == await calls.get_json(f"/api/executions/{execution_id}/document")
        assert found["node_results"] == {"node_0": "facts"}
        assert found["nodes"][2]["dependencies"] == ["node_1"]
