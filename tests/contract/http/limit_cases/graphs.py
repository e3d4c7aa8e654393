"""Limits of graphs, plans and goals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import planwave
from planwave.errors import InputError
from planwave.graph.operations import Operation, SetTitle, UpdateNode
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.nodes.services import NodeServices
from planwave.planner.planner import Planner
from planwave.service.service import Service
from planwave.settings import Limits
from tests.contract.http.limit_cases.registry import (
    Refusal,
    case,
    refusal_in_diagnostics,
    refusal_in_events,
    run_graph,
)
from tests.support.graph.builders import make_graph, text_node
from tests.support.llm.fake_providers import FakeProviders, library_registry
from tests.support.llm.planner_replies import planner_reply, reply_node
from tests.support.llm.watched_model import WatchedModel
from tests.support.service.dependencies import dependencies


async def check(limits: Limits, document: Any) -> Refusal | None:
    catalogue = Registry(LIBRARY, providers=FakeProviders(), limits=limits)
    service = Service(replace(dependencies(limits=limits), catalogue=catalogue))
    text = document if isinstance(document, str) else json.dumps(document)
    return refusal_in_diagnostics(service.plans.check(text).diagnostics)


def document_of(*nodes: dict[str, Any], edges: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    wires = [{"source": a, "target": b, "data": {"channel": "flow"}} for a, b in edges]
    return {"nodes": list(nodes), "edges": wires}


def text_document(node_id: str = "a", text: str = "t", **more: Any) -> dict[str, Any]:
    return {"id": node_id, "type": "text", "name": node_id, "data": {"text": text}, **more}


def node_ids(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


@case("nodes", 3)
async def _(limits: Limits, amount: int) -> Refusal | None:
    return await check(limits, document_of(*map(text_document, node_ids(amount))))


@case("edges", 3)
async def _(limits: Limits, amount: int) -> Refusal | None:
    first, *others = node_ids(amount + 1)
    edges = [(first, each) for each in others]
    return await check(limits, document_of(*map(text_document, [first, *others]), edges=edges))


@case("depth", 3)
async def _(limits: Limits, amount: int) -> Refusal | None:
    ids = node_ids(amount)
    return await check(limits, document_of(*map(text_document, ids), edges=list(pairwise(ids))))


@case("json_depth", 8, mentions=["json_depth", "8"])
async def _(limits: Limits, amount: int) -> Refusal | None:
    inner: Any = {}
    for _ in range(amount - 4):  # below document, nodes, node and ui
        inner = {"in": inner}
    return await check(limits, document_of(text_document(ui=inner)))


@case("string_bytes", 100)
async def _(limits: Limits, amount: int) -> Refusal | None:
    return await check(limits, document_of(text_document(text="é" + "x" * (amount - 2))))


@case("plan_bytes", 400)
async def _(limits: Limits, amount: int) -> Refusal | None:
    text = json.dumps(document_of(text_document()))
    return await check(limits, text + " " * (amount - len(text)))


@case("policy_timeout_s", 60)
async def _(limits: Limits, amount: float) -> Refusal | None:
    return await check(limits, document_of(text_document(policy={"timeoutS": amount})))


@case("policy_attempts", 3)
async def _(limits: Limits, amount: int) -> Refusal | None:
    return await check(limits, document_of(text_document(policy={"retry": {"attempts": amount}})))


@case("policy_backoff_s", 7)
async def _(limits: Limits, amount: float) -> Refusal | None:
    policy = {"retry": {"attempts": 2, "backoffS": amount}}
    return await check(limits, document_of(text_document(policy=policy)))


@case("call_tokens", 500)
async def _(limits: Limits, amount: int) -> Refusal | None:
    asks = {"id": "a", "type": "llm", "name": "A", "data": {"prompt": "p", "maxTokens": amount}}
    return await check(limits, document_of(asks))


@case("steps", 3)
async def _(limits: Limits, amount: int) -> Refusal | None:
    return refusal_in_events(
        await run_graph(limits, make_graph(*map(text_node, node_ids(amount)))), "execution.failed"
    )


@case("nested_depth", 3)
async def _(limits: Limits, amount: int) -> Refusal | None:
    document = document_of(text_document())
    for _ in range(amount):
        document = document_of({"id": "a", "type": "inner", "data": {"graph": document}})
    return await check(limits, document)


async def _run(limits: Limits, kind: str, data: dict[str, Any]) -> Refusal | None:
    services = NodeServices(WatchedModel(()), FakeProviders(), limits=limits)
    document = document_of({"id": "a", "type": kind, "data": data})
    ended = await planwave.run(document, services=services, check=False)
    return None if ended.error is None else Refusal(ended.error["code"], ended.error["message"])


@case("loop_items", 3)
async def _(limits: Limits, amount: int) -> Refusal | None:
    return await _run(
        limits, "loop", {"items": node_ids(amount), "body": document_of(text_document())}
    )


@case("loop_rounds", 3)
async def _(limits: Limits, amount: int) -> Refusal | None:
    value: Any = {"goes": False}
    for _ in range(amount):
        value = {"goes": True, "next": value}
    body = document_of({"id": "b", "type": "parser", "data": {"template": "{{ value.next }}"}})
    return await _run(limits, "while", {"initial": value, "condition": "value.goes", "body": body})


async def _edited(limits: Limits, changes: Sequence[Sequence[Operation]]) -> list[int]:
    """Edit a plan; return the numbers of the revisions that it has then."""
    service = Service(dependencies(limits=limits))
    plan = await service.plans.create("goal")
    for operations in changes:
        await service.plans.edit(plan.plan_id, operations, expected=None)
    return [each.revision for each in await service.revisions.list(plan.plan_id)]


@case("plan_operations", 3)
async def _(limits: Limits, amount: int) -> Refusal | None:
    await _edited(limits, [[SetTitle(f"T{n}") for n in range(amount)]])
    return None


@case("plan_revisions", 3, code="gone", mentions=["[4, 3, 1]"])
async def _(limits: Limits, amount: int) -> Refusal | None:
    """No change is refused: the oldest goes that nothing refers to, but for the first."""
    changes = [[UpdateNode("a", {"data": {"text": f"{n}"}})] for n in range(amount - 1)]
    kept = await _edited(limits, changes)
    return None if len(kept) == amount else Refusal("gone", str(kept))


def _planner(limits: Limits, *script: str) -> Planner:
    providers = FakeProviders()
    return Planner(WatchedModel(script), providers, library_registry(providers), limits)


@case("goal_chars", 10)
async def _(limits: Limits, amount: int) -> Refusal | None:
    await _planner(limits, planner_reply(reply_node("a"))).create_plan("é" * amount)
    return None


@case("plan_nodes", 3)
async def _(limits: Limits, amount: int) -> Refusal | None:
    written = planner_reply(*map(reply_node, node_ids(amount)))
    try:
        await _planner(limits, *[written] * 5).create_plan("goal")
    except InputError as error:
        return refusal_in_diagnostics(getattr(error, "diagnostics", ()))
    return None
