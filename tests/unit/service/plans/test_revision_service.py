"""Revisions of plans, restored and approved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planwave.errors import NotFound
from planwave.graph.operations import RemoveNode, ReplaceGraph, SetTitle, UpdateNode
from planwave.service.service import Service
from planwave.settings import Limits
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.graph.builders import make_graph, text_node
from tests.support.service.dependencies import dependencies
from tests.unit.service.plans.test_plan_service import CHAIN, by_id, edited, planned, service_over


async def test_restored_revision_is_a_new_one_and_keeps_where_nodes_are() -> None:
    service = service_over()
    plan = await planned(service)
    second = await edited(service, plan, RemoveNode("b"), SetTitle("X"))
    third = await edited(service, second, UpdateNode("a", {"ui": {"position": {"x": 9}}}))
    restored = await service.revisions.restore(
        plan.plan_id, 1, expected={third.hash}, author="person"
    )
    assert (restored.hash, restored.title, restored.document["revision"]) == (
        plan.hash, plan.title, 3,
    )  # fmt: skip
    assert by_id(restored)["a"]["ui"] == {"position": {"x": 9}}
    assert restored.document["edges"] == plan.document["edges"]
    newest = (await service.revisions.list(plan.plan_id))[0]
    assert (newest.author, newest.note) == ("person", "revision 1 restored")
    same = await service.revisions.restore(plan.plan_id, 3, expected={plan.hash})
    assert same == restored
    with pytest.raises(NotFound, match="no revision 9"):
        await service.revisions.restore(plan.plan_id, 9, expected=None)


def approving(store: Any = None, **limits: Any) -> Service:
    parts = dependencies(CHAIN, store=store, limits=Limits(**limits))
    return Service(replace(parts, require_approval=True))


def text_graph(text: str) -> dict[str, Any]:
    return make_graph(text_node("a", text)).to_document()


async def test_the_newest_revision_of_an_approved_hash_is_live() -> None:
    async with approving() as service:
        plan_id = (await service.flows.create("F", graph=text_graph("A"))).plan_id
        for text in "BAC":
            await service.plans.edit(plan_id, [ReplaceGraph(text_graph(text))], expected=None)
        assert (await service.revisions.approve(plan_id, 2, expected=None)).live_revision == 2
        approved = await service.revisions.approve(plan_id, 1, expected=None)
        assert approved.live_revision == 3, "the third has the hash of the first"
        again = await service.revisions.approve(plan_id, 3, expected=None)
        assert (again.live_revision, again.edits) == (3, approved.edits)


async def test_a_revision_that_goes_while_it_is_approved_is_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()
    async with approving(store, plan_revisions=3) as service:
        plan_id = (await service.flows.create("F", graph=text_graph("A"))).plan_id
        for text in "BCD":
            await service.plans.edit(plan_id, [ReplaceGraph(text_graph(text))], expected=None)
        number = (await service.revisions.list(plan_id))[1].revision
        save = store.revisions.save

        async def save_late(*given: Any, **more: Any) -> bool:
            monkeypatch.setattr(store.revisions, "save", save)
            for text in "EFG":
                await service.plans.edit(plan_id, [ReplaceGraph(text_graph(text))], expected=None)
            return await save(*given, **more)

        monkeypatch.setattr(store.revisions, "save", save_late)
        with pytest.raises(NotFound, match=f"no revision {number}"):
            await service.revisions.approve(plan_id, number, expected=None)
        assert (await service.plans.get(plan_id)).live_revision is None
