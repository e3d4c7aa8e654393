"""Saved inputs of flows over HTTP: checked when they are saved, and again against what the flow is now."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from planwave.ids import new_id
from planwave.service.executions import input_sets
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies
from tests.support.triggers.hook_sender import text

INPUTS = {"city": "Lisbon", "days": 2}


def trip(**fields: Any) -> dict[str, Any]:
    """Return a graph with these fields and a city, which is required."""
    properties = {"city": {"type": "string"}, **fields}
    schema = {"type": "object", "properties": properties, "required": ["city"]}
    start = {"id": "s", "type": "start", "data": {"schema": schema}}
    return {"nodes": [start, text("t", "{{ city }}")], "edges": []}


GRAPH = trip(days={"type": "integer"})


@asynccontextmanager
async def saved_flow(graph: Any = GRAPH) -> AsyncGenerator[tuple[InProcessClient, str]]:
    async with in_process_client(dependencies()) as calls:
        flow = await calls.post_json("/api/flows", {"name": "Trip", "graph": graph}, 201)
        yield calls, f"/api/flows/{flow['plan_id']}"


async def save(
    calls: InProcessClient,
    flow: str,
    name: str = "Weekend",
    *,
    to: str | None = None,
    inputs: Any = INPUTS,
) -> Any:
    """Save inputs, or give those of a name another one."""
    body = {"inputs": inputs} if to is None else {"name": to}
    answer = await calls.put(f"{flow}/input-sets/{name}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def listed(calls: InProcessClient, flow: str) -> list[dict[str, Any]]:
    return (await calls.get_json(f"{flow}/input-sets"))["input_sets"]


async def refused(
    calls: InProcessClient, flow: str, body: Any, status: int, name: str = "Weekend"
) -> dict[str, Any]:
    return await calls.expect_problem("PUT", f"{flow}/input-sets/{name}", status, body)


async def test_inputs_are_saved_listed_replaced_renamed_and_deleted() -> None:
    async with saved_flow() as (calls, flow):
        assert await listed(calls, flow) == []
        first = await save(calls, flow)
        assert first == {
            "name": "Weekend", "inputs": INPUTS, "created_at": first["created_at"],
            "updated_at": first["created_at"], "created_by": {"kind": "local"}, "issues": [],
        }  # fmt: skip
        await save(calls, flow, "A day", inputs={"city": "Porto"})
        assert [each["name"] for each in await listed(calls, flow)] == ["A day", "Weekend"]
        again = await save(calls, flow, inputs={"city": "Faro"})
        assert (again["inputs"], again["created_at"]) == ({"city": "Faro"}, first["created_at"])
        renamed = await save(calls, flow, to="Long weekend")
        assert renamed["name"] == "Long weekend"
        assert renamed["inputs"] == {"city": "Faro"}
        assert [each["name"] for each in await listed(calls, flow)] == ["A day", "Long weekend"]
        assert (await calls.delete(f"{flow}/input-sets/A day")).status_code == 204
        await calls.expect_problem("DELETE", f"{flow}/input-sets/A day", 404)
        assert [each["name"] for each in await listed(calls, flow)] == ["Long weekend"]


@pytest.mark.parametrize(
    "inputs",
    [INPUTS, {"s": {"output": INPUTS}}, {"output": INPUTS}],
    ids=["fields", "node", "handle"],
)
async def test_inputs_are_kept_by_the_names_of_fields_and_start_an_execution(inputs: Any) -> None:
    async with saved_flow() as (calls, flow):
        kept = (await save(calls, flow, inputs=inputs))["inputs"]
        assert kept == INPUTS
        body = {"flow": "Trip", "inputs": kept, "start": True}
        started = await calls.post_json("/api/execute", body, 202)
        await calls.service.executions.wait(started["execution_id"])
        path = f"/api/executions/{started['execution_id']}/result"
        assert (await calls.get_json(path))["node_results"]["t"] == "Lisbon"


async def test_inputs_that_are_no_fields_are_kept_by_node() -> None:
    async with saved_flow({"nodes": [{"id": "s", "type": "start"}], "edges": []}) as (calls, flow):
        assert (await save(calls, flow, inputs={"output": "x"}))["inputs"] == {"s": {"output": "x"}}


@pytest.mark.parametrize(
    ("inputs", "pointer"),
    [
        ({"city": 7}, "/inputs/city"),
        ({"days": 2}, "/inputs/city"),
        ({"city": "x", "citty": 1}, "/inputs/citty"),
    ],
)
async def test_what_an_execution_would_refuse_is_not_saved(inputs: Any, pointer: str) -> None:
    async with saved_flow() as (calls, flow):
        problem = await refused(calls, flow, {"inputs": inputs}, 422)
        assert problem["code"] == "invalid-inputs"
        assert [each["pointer"] for each in problem["issues"]] == [pointer]
        assert await listed(calls, flow) == []


async def test_a_revision_that_inputs_do_not_fit_says_so_and_keeps_them() -> None:
    async with saved_flow() as (calls, flow):
        await save(calls, flow)
        changed = trip(days={"type": "string"})
        assert (await calls.put(flow, json={"graph": changed})).status_code == 200
        (kept,) = await listed(calls, flow)
        assert kept["inputs"] == INPUTS
        assert [each["pointer"] for each in kept["issues"]] == ["/inputs/days"]
        assert (await calls.put(flow, json={"graph": trip()})).status_code == 200
        (kept,) = await listed(calls, flow)
        assert [each["pointer"] for each in kept["issues"]] == ["/inputs/days"]
        assert (await save(calls, flow, to="Old"))["issues"] == kept["issues"]
        assert (await calls.put(flow, json={"graph": GRAPH})).status_code == 200
        assert [each["issues"] for each in await listed(calls, flow)] == [[]]


async def test_other_names_of_nodes_do_not_matter_to_fields() -> None:
    async with saved_flow() as (calls, flow):
        await save(calls, flow, inputs={"s": {"output": INPUTS}})
        start, shown = GRAPH["nodes"]
        moved = {**GRAPH, "nodes": [{**start, "id": "begin"}, shown]}
        assert (await calls.put(flow, json={"graph": moved})).status_code == 200
        assert [each["issues"] for each in await listed(calls, flow)] == [[]]


async def test_names_are_one_line_and_belong_to_one_set() -> None:
    async with saved_flow() as (calls, flow):
        await save(calls, flow)
        await save(calls, flow, "Other")
        assert (await refused(calls, flow, {"name": "Other"}, 409))["code"] == "name-taken"
        assert (await refused(calls, flow, {"name": "a/b"}, 422))["code"] == "invalid-name"
        assert (await refused(calls, flow, {"name": " \t"}, 422))["code"] == "invalid-name"
        await refused(calls, flow, {"name": "New"}, 404, name="Unknown")
        await refused(calls, flow, {}, 422)
        await calls.expect_problem("GET", f"/api/flows/{new_id()}/input-sets", 404)


async def test_a_flow_keeps_a_bounded_number_of_inputs_of_a_bounded_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(input_sets, "MAX_SETS", 1)
    async with saved_flow() as (calls, flow):
        await save(calls, flow)
        problem = await refused(calls, flow, {"inputs": INPUTS}, 409, name="Second")
        assert problem["code"] == "too-many-input-sets"
        long = {"inputs": {"city": "x" * input_sets.MAX_BYTES}}
        assert (await refused(calls, flow, long, 413))["limit"] == "input_set_bytes"
        assert (await save(calls, flow, inputs={"city": "Faro"}))["inputs"] == {"city": "Faro"}


async def test_they_go_with_the_flow_and_stay_where_only_its_name_goes() -> None:
    async with saved_flow() as (calls, flow):
        await save(calls, flow)
        assert (await calls.delete(f"{flow}/name")).status_code == 204
        await calls.expect_problem("GET", f"{flow}/input-sets", 404)
        plan_id = flow.rpartition("/")[2]
        await calls.post_json("/api/flows", {"name": "Trip", "plan_id": plan_id}, 201)
        assert len(await listed(calls, flow)) == 1
        assert (await calls.delete(flow)).status_code == 204
        await calls.expect_problem("GET", f"{flow}/input-sets", 404)
