"""What one access token may have of the service, over HTTP; the operator and others are not affected."""

from __future__ import annotations

from typing import Any

from pydantic import SecretStr

from tests.contract.http.test_access_matrix import OPERATOR, bearing
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.server.running_server import NO_RATE_LIMITS
from tests.support.service.dependencies import dependencies

_ASKS = {"nodes": [{"id": "a", "type": "approval", "data": {"prompt": "Well?"}}], "edges": []}


async def test_a_token_has_so_many_waiting_executions_and_answers_make_room() -> None:
    limits = NO_RATE_LIMITS.model_copy(update={"waiting_executions": 2})
    parts = dependencies(limits=limits)
    async with in_process_client(parts, token=SecretStr(OPERATOR), limits=limits) as calls:
        calls.headers.update(bearing(OPERATOR))
        plan_id = (await calls.post_json("/api/flows", {"name": "f", "graph": _ASKS}, 201))[
            "plan_id"
        ]
        one, another = [await _token(calls, plan_id) for _ in range(2)]
        waiting = [await _start(calls, plan_id, one) for _ in range(2)]
        assert [each["status"] for each in waiting] == [202, 202]
        refused = await _start(calls, plan_id, one)
        assert (refused["status"], refused["code"]) == (429, "quota-exceeded")
        assert "waiting_executions" in refused["hint"]
        assert (await _start(calls, plan_id, another))["status"] == 202
        for _ in range(3):
            assert (await _start(calls, plan_id, OPERATOR))["status"] == 202
        await calls.post_json(f"/api/executions/{waiting[0]['execution_id']}/cancel", {}, 200)
        assert (await _start(calls, plan_id, one))["status"] == 202


async def _token(calls: InProcessClient, plan_id: str) -> str:
    wanted = {"name": "t", "scopes": ["run", "read"], "flows": [plan_id]}
    return (await calls.post_json("/api/tokens", wanted, 201))["token"]


async def _start(calls: InProcessClient, plan_id: str, token: str) -> dict[str, Any]:
    """Start the flow; return the answer with its status, once the execution waits."""
    body = {"flow": plan_id, "start": True}
    answer = await calls.post("/api/execute", json=body, headers=bearing(token))
    if answer.status_code == 202:
        await calls.service.executions.wait(answer.json()["execution_id"])
    return {**answer.json(), "status": answer.status_code}
