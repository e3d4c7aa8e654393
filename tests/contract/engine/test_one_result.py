"""Every face shows the same result of a run, for graphs in which the ways of reading it used to differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import planwave
from planwave.cli.views.result import final_results
from planwave.events import ExecutionState
from planwave.graph.model import Graph
from planwave.graph.reading.documents import read_graph
from planwave.interop.mcp_server.outcomes import outcome_of
from planwave.service.notifications.messages import message_of
from planwave.service.service import Service
from planwave.storage.documents import build_document
from planwave.storage.notifications import NotificationRecord
from planwave.triggers.webhook_answers import wait_for_answer
from tests.support.nodes.nested_graphs import graph_document, node_document
from tests.support.service.dependencies import dependencies, execute_goal


class Case(NamedTuple):
    nodes: dict[str, tuple[str, str]]
    """Type and text, by id."""
    edges: tuple[tuple[str, ...], ...]
    values: dict[str, Any]
    defaults: tuple[tuple[str, str], ...] = ()
    """Nodes that fail, and the values in place of their errors."""


FAILS = "{{ 1 / 0 }}"
CASES = {
    "one node": Case({"a": ("text", "x")}, (), {"a": "x"}),
    "a chain": Case({"a": ("text", "x"), "b": ("text", "y")}, (("a", "b"),), {"b": "y"}),
    "two last nodes": Case({"a": ("text", "x"), "b": ("text", "y")}, (), {"a": "x", "b": "y"}),
    "an error edge that is not taken": Case(
        {"a": ("text", "good"), "b": ("text", "mended")}, (("a", "b", "error"),), {"a": "good"}
    ),
    "an error edge that is taken": Case(
        {"a": ("text", FAILS), "b": ("text", "mended")}, (("a", "b", "error"),), {"b": "mended"}
    ),
    "a value in place of an error": Case(
        {"a": ("text", FAILS)}, (), {"a": "preset"}, (("a", "preset"),)
    ),
    "an end beside another last node": Case(
        {"a": ("text", "x"), "e": ("end", ""), "b": ("text", "y")}, (("a", "e"),), {"e": "x"}
    ),
    "a last node that delivers nothing": Case(
        {"a": ("text", "x"), "v": ("void", "")}, (("a", "v"),), {}
    ),
}  # fmt: skip


def graph_of(case: Case) -> Graph:
    nodes = [
        node_document(node_id, kind, **({"text": text} if kind == "text" else {}))
        for node_id, (kind, text) in case.nodes.items()
    ]
    for node in nodes:
        if any(edge[0] == node["id"] and edge[-1] == "error" for edge in case.edges):
            node["policy"] = {"onError": "continue"}
        elif (preset := dict(case.defaults).get(node["id"])) is not None:
            default = {"handle": "output", "value": preset}
            node["policy"] = {"onError": "default", "default": default}
    return read_graph(graph_document(*nodes, edges=case.edges))[0]


def value_of(values: dict[str, Any]) -> Any:
    return next(iter(values.values())) if len(values) == 1 else values or None


class Ended(NamedTuple):
    """An execution that ended, and the service that ran it."""

    service: Service
    store: Any
    state: ExecutionState

    async def document(self) -> dict[str, Any]:
        execution_id = self.state.execution_id
        record = await self.store.execution(execution_id)
        return build_document(await self.store.events(execution_id), record)


async def of_the_document(ended: Ended) -> dict[str, Any]:
    result = (await ended.document())["result"]
    nodes = result["nodes"]
    return dict.fromkeys(nodes, result["value"]) if len(nodes) == 1 else result["value"] or {}


async def of_the_command_line(ended: Ended) -> dict[str, Any]:
    return dict(final_results(await ended.document()))


async def of_a_webhook(ended: Ended) -> dict[str, Any]:
    answer = await wait_for_answer(ended.service, ended.state.execution_id, with_result=True)
    return json.loads(answer.body)["outputs"]


async def of_a_notification(ended: Ended) -> dict[str, Any]:
    at = ended.state.created_at or ""
    notice = NotificationRecord(
        "n", "t", ended.state.execution_id, ended.state.last_seq, "execution.completed", at, at, at
    )
    message = json.loads(await message_of(ended.store, notice, 10_000) or "{}")
    return message["data"]["outputs"]


FACES: dict[str, Callable[[Ended], Any]] = {
    "document": of_the_document,
    "command line": of_the_command_line,
    "webhook": of_a_webhook,
    "notification": of_a_notification,
}


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("name", CASES)
async def test_each_face_shows_the_values_of_the_last_nodes(name: str, face: str) -> None:
    case = CASES[name]
    parts = dependencies(graph_of(case))
    async with Service(parts) as service:
        record = await execute_goal(service)
        await service.executions.wait(record.execution_id)
        ended = Ended(service, parts.store, await service.executions.state(record.execution_id))
        assert ended.state.status == "completed"
        assert await FACES[face](ended) == case.values


@pytest.mark.parametrize("name", CASES)
async def test_mcp_and_nested_graphs_give_the_value(name: str) -> None:
    case = CASES[name]
    graph = graph_of(case)
    around = graph_document(node_document("i", "inner", graph=graph.to_document()))
    for each in (graph, read_graph(around)[0]):
        parts = dependencies(each)
        async with Service(parts) as service:
            record = await execute_goal(service)
            await service.executions.wait(record.execution_id)
            outcome = await outcome_of(service, record.execution_id)
        assert outcome["result"] == value_of(case.values)


@pytest.mark.parametrize("name", CASES)
def test_the_python_library_gives_the_text(name: str) -> None:
    case = CASES[name]
    result = planwave.run_sync(graph_of(case).to_document())
    assert result.text == "\n\n".join(case.values.values())
    assert result.document["result"]["nodes"] == list(case.values)
