"""Plans: checked, forecast, and changed: revisions, drafts with errors, concurrent editors."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import (
    GraphInvalid,
    InvalidOperation,
    LimitExceeded,
    NotFound,
    PreconditionFailed,
)
from planwave.graph.model import Node
from planwave.graph.operations import (
    AddEdge,
    AddNode,
    Operation,
    RemoveNode,
    Rename,
    ReplaceGraph,
    SetTitle,
    UpdateNode,
)
from planwave.graph.plan import graph_hash, unreadable_hash
from planwave.graph.reading.documents import read_graph
from planwave.ids import new_id
from planwave.service.service import Service
from planwave.settings import Limits
from planwave.storage.records import PlanRecord
from planwave.storage.sqlite.memory import MemoryStore
from planwave.storage.sqlite.store import SqliteStore
from tests.support.graph.builders import make_graph, text_node
from tests.support.service.dependencies import dependencies

EDGE_DATA = {"channel": "flow", "label": "ü", "points": [1, {"x": None}]}
GRAPH: dict[str, Any] = {
    "nodes": [
        {"id": "a", "type": "text", "data": {"text": "one"}, "ui": {"position": {"x": 1}}},
        {"id": "b", "type": "text", "data": {"text": '{{ nodes["a"].output }}'}},
    ],
    "edges": [{"id": "wire", "source": "a", "target": "b", "type": "smooth", "data": EDGE_DATA}],
}
CHAIN, _ = read_graph(GRAPH)
PAIR = make_graph(text_node("a"), text_node("b"), edges=[("a", "b")])


def service_over(store: Any = None, **limits: Any) -> Service:
    return Service(dependencies(CHAIN, store=store, limits=Limits(**limits)))


async def planned(service: Service) -> PlanRecord:
    return await service.plans.get((await service.plans.create("goal")).plan_id)


async def edited(service: Service, plan: PlanRecord, *operations: Operation) -> PlanRecord:
    """Change a plan that nobody else changes."""
    return await service.plans.edit(plan.plan_id, operations, expected={plan.hash})


def by_id(plan: PlanRecord) -> dict[str, Any]:
    return {node["id"]: node for node in plan.document["nodes"]}


async def test_edit_makes_a_revision_and_keeps_the_one_before() -> None:
    service = service_over()
    plan = await planned(service)
    changed = await service.plans.edit(
        plan.plan_id,
        [UpdateNode("a", {"data": {"text": "two"}}), SetTitle("New")],
        expected={plan.hash},
        author="person",
        note="why",
    )
    document = changed.document
    assert (document["revision"], document["title"], changed.title) == (2, "New", "New")
    assert document["hash"] == changed.hash != plan.hash
    assert changed.hash == graph_hash(read_graph(graph_of(changed))[0])
    assert by_id(changed)["a"]["data"] == {"text": "two"}
    assert await service.plans.get(plan.plan_id) == changed
    assert document["edges"][0]["data"] == EDGE_DATA
    assert document["edges"][0]["type"] == "smooth"
    newest, first = await service.revisions.list(plan.plan_id)
    assert (newest.revision, newest.author, newest.note) == (2, "person", "why")
    assert (first.revision, first.author, first.note, first.hash) == (1, "api", "", plan.hash)
    assert first.created_at == plan.created_at < newest.created_at
    kept = await service.revisions.get(plan.plan_id, 1)
    assert (kept.title, kept.document) == (plan.title, {**graph_of(plan), "diagnostics": []})
    current = await service.revisions.get(plan.plan_id, 2)
    assert current.document == {**graph_of(changed), "diagnostics": []}


def graph_of(plan: PlanRecord) -> dict[str, Any]:
    return {name: plan.document[name] for name in ("nodes", "edges")}


async def test_plan_that_a_model_wrote_has_the_planner_as_its_first_author() -> None:
    service = service_over()
    plan = await planned(service)
    written = replace(plan, document={**plan.document, "provider": "openai"})
    await service.plans.delete(plan.plan_id)
    store: Any = service._store  # pyright: ignore[reportPrivateUsage]
    await store.save_plan(written)
    changed = await edited(service, written, RemoveNode("b"))
    authors = [each.author for each in await service.revisions.list(changed.plan_id)]
    assert authors == ["api", "planner"]


@pytest.mark.parametrize(
    "operations",
    [
        [AddNode({"id": "c", "type": "nothing"})],
        [AddEdge({"source": "b", "target": "a", "data": EDGE_DATA})],
        [AddEdge({"source": "b", "target": "a", "data": {}})],
        [AddNode({"id": "c", "type": "text", "strange": 1, "policy": {"join": "some"}})],
        [ReplaceGraph({"nodes": [], "edges": []})],
        [ReplaceGraph({"nodes": [{"id": "a", "type": "text"}] * 2, "edges": []})],
    ],
    ids=["type", "cycle", "channel", "fields", "empty", "twice"],
)
async def test_edit_with_errors_is_kept_as_a_draft_that_does_not_run(
    operations: list[Operation],
) -> None:
    service = service_over()
    plan = await planned(service)
    draft = await edited(service, plan, *operations)
    errors = [f for f in draft.document["diagnostics"] if f["severity"] == "error"]
    assert errors
    assert draft.document["forecast"] == {}
    assert await service.plans.get(plan.plan_id) == draft
    assert (await service.revisions.list(plan.plan_id))[0].error_count == len(errors)
    for use in (
        service.executions.execute(plan.plan_id),
        service.flows.create("F", plan_id=plan.plan_id),
        service.plans.forecast(plan.plan_id),
    ):
        with pytest.raises(GraphInvalid) as refused:
            await use
        assert {f["pointer"] for f in errors} == {
            f.pointer for f in refused.value.diagnostics if f.severity == "error"
        }
    assert await service.executions.list() == []
    assert not (await service.plans.validate(plan.plan_id)).can_run
    back = await service.revisions.restore(plan.plan_id, 1, expected={draft.hash})
    assert (back.hash, back.document["diagnostics"]) == (plan.hash, [])
    assert back.document["forecast"]["nodes"] == 2
    await service.executions.create(plan.plan_id)


async def test_graph_that_cannot_be_read_is_kept_as_it_was_given() -> None:
    service = service_over()
    plan = await planned(service)
    odd = {
        "nodes": [{"id": "a", "type": "text", "odd": [1, {"x": None}], "policy": {"join": 3}}],
        "edges": [
            {"id": "e", "source": "a", "target": "zz", "data": {"label": "ü", "channel": "flow"}}
        ],
    }
    draft = await edited(service, plan, ReplaceGraph(odd), UpdateNode("a", {"name": "A"}))
    nodes = [{**odd["nodes"][0], "name": "A", "ui": GRAPH["nodes"][0]["ui"]}]
    assert graph_of(draft) == {"nodes": nodes, "edges": odd["edges"]}
    assert draft.hash == unreadable_hash({"nodes": nodes, "edges": odd["edges"]})
    mended = await edited(
        service, draft, UpdateNode("a", {"odd": None, "policy": None, "data": {"text": "x"}}),
        ReplaceGraph({"nodes": [{"id": "a", "type": "text", "data": {"text": "x"}}], "edges": []}),
    )  # fmt: skip
    assert mended.document["diagnostics"] == []
    assert mended.hash == graph_hash(make_graph(text_node("a", "x")))


def test_hash_of_an_unreadable_document_is_never_that_of_a_graph() -> None:
    document = CHAIN.to_document()
    moved = {**document, "nodes": [{**node, "ui": {"x": 7}} for node in document["nodes"]]}
    assert unreadable_hash(document) == unreadable_hash(moved) != graph_hash(CHAIN)


async def test_ui_alone_makes_no_revision_and_keeps_the_hash() -> None:
    service = service_over()
    plan = await planned(service)
    moved = await edited(service, plan, UpdateNode("a", {"ui": {"position": {"y": 2}}}))
    assert (moved.hash, moved.document["revision"]) == (plan.hash, 1)
    assert by_id(moved)["a"]["ui"] == {"position": {"x": 1, "y": 2}}
    again = await edited(service, plan, UpdateNode("b", {"ui": {"x": True}}))
    assert by_id(again)["b"]["ui"] == {"x": True}
    once_more = await edited(service, plan, UpdateNode("b", {"ui": {"x": 1}}))
    assert repr(by_id(once_more)["b"]["ui"]) == "{'x': 1}", "1 is not true"
    assert len(await service.revisions.list(plan.plan_id)) == 1


async def test_edit_that_changes_nothing_stores_nothing() -> None:
    service = service_over()
    plan = await planned(service)
    same = await edited(service, plan, SetTitle(plan.title), UpdateNode("a", {"type": "text"}))
    assert same == plan == await service.plans.get(plan.plan_id)
    there_and_back = await edited(service, plan, Rename("a", "z"), Rename("z", "a"))
    assert there_and_back == plan


async def test_stale_hash_is_refused_with_the_present_one() -> None:
    service = service_over()
    plan = await planned(service)
    changed = await edited(service, plan, SetTitle("X"), RemoveNode("b"))
    for attempt in (
        edited(service, plan, SetTitle("Y")),
        edited(service, plan, UpdateNode("a", {"ui": {}})),
        edited(service, plan, RemoveNode("nobody")),
        service.revisions.restore(plan.plan_id, 1, expected={plan.hash}),
    ):
        with pytest.raises(PreconditionFailed) as refused:
            await attempt
        assert (refused.value.code, refused.value.current) == ("plan-changed", changed.hash)
    assert await service.plans.get(plan.plan_id) == changed
    anyway = await service.plans.edit(plan.plan_id, [SetTitle("Z")], expected=None)
    assert (anyway.document["revision"], anyway.title) == (2, "Z"), "a title makes no revision"


async def test_operations_are_applied_all_or_none() -> None:
    service = service_over()
    plan = await planned(service)
    with pytest.raises(InvalidOperation) as refused:
        await edited(service, plan, SetTitle("X"), RemoveNode("a"), UpdateNode("a", {}))
    assert refused.value.diagnostics[0].pointer == "/operations/2/id"
    assert await service.plans.get(plan.plan_id) == plan


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return MemoryStore() if request.param == "memory" else SqliteStore.open(tmp_path)


async def test_editors_at_once_lose_nothing(store: Any) -> None:
    service = service_over(store)
    plan = await planned(service)
    refusals = 0

    async def edit(number: int) -> None:
        nonlocal refusals
        mine = await service.plans.get(plan.plan_id)
        while True:
            try:
                node = {"id": f"n{number}", "type": "text", "data": {"text": f"t{number}"}}
                await edited(service, mine, AddNode(node))
            except PreconditionFailed:
                refusals += 1
                mine = await service.plans.get(plan.plan_id)
            else:
                return

    async def move(number: int) -> None:
        """Move a node as an editor does that never reads the plan again."""
        wanted = [UpdateNode(name, {"ui": {f"by{number}": number}}) for name in ("a", "b")]
        await service.plans.edit(plan.plan_id, wanted, expected=None)

    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(edit(number))
            group.create_task(move(number))
    final = await service.plans.get(plan.plan_id)
    assert {f"n{n}" for n in range(8)} <= by_id(final).keys()
    assert {f"by{n}": n for n in range(8)}.items() <= by_id(final)["b"]["ui"].items()
    assert {f"by{n}": n for n in range(8)}.items() <= by_id(final)["a"]["ui"].items()
    numbers = [each.revision for each in await service.revisions.list(plan.plan_id)]
    assert numbers == list(range(9, 0, -1)), "each edit made one revision, each move none"
    assert refusals > 0
    for number in range(1, 9):
        diff = await service.revisions.diff(plan.plan_id, number, number + 1)
        assert [entry["change"] for entry in diff["nodes"]] == ["added"]
    await service.close()


async def test_one_of_two_conflicting_edits_is_refused(store: Any) -> None:
    service = service_over(store)
    plan = await planned(service)

    async def attempt(text: str) -> PlanRecord | PreconditionFailed:
        try:
            return await edited(service, plan, UpdateNode("a", {"data": {"text": text}}))
        except PreconditionFailed as error:
            return error

    async with asyncio.TaskGroup() as group:
        attempts = [group.create_task(attempt(text)) for text in ("mine", "yours")]
    results = [each.result() for each in attempts]
    (kept,) = [each for each in results if isinstance(each, PlanRecord)]
    (refused,) = [each for each in results if isinstance(each, PreconditionFailed)]
    assert (await service.plans.get(plan.plan_id), refused.current) == (kept, kept.hash)
    await service.close()


async def test_edit_of_the_graph_keeps_a_move_that_comes_between() -> None:
    """The move is stored between reading and saving, so the edit is computed again."""

    class Interrupted(MemoryStore):
        between: Any = None

        async def plan(self, plan_id: str) -> PlanRecord | None:
            found = await super().plan(plan_id)
            if (move := self.between) is not None:
                self.between = None
                await move()
            return found

    store = Interrupted()
    service = service_over(store)
    plan = await planned(service)
    store.between = lambda: edited(service, plan, UpdateNode("a", {"ui": {"x": 5}}))
    changed = await edited(service, plan, UpdateNode("a", {"data": {"text": "two"}}))
    assert by_id(changed)["a"]["data"] == {"text": "two"}
    assert by_id(changed)["a"]["ui"]["x"] == 5
    assert changed.document["revision"] == 2


async def test_revisions_are_paged_across_the_current_one() -> None:
    service = service_over()
    plan = await planned(service)
    for number in range(4):
        text = UpdateNode("a", {"data": {"text": f"{number}"}})
        await service.plans.edit(plan.plan_id, [text], expected=None)
    pages = [
        [each.revision for each in await service.revisions.list(plan.plan_id, before=at, limit=2)]
        for at in (None, 4, 2, 1, 99)
    ]
    assert pages == [[5, 4], [3, 2], [1], [], [5, 4]]
    assert await service.revisions.list(plan.plan_id, limit=0) == []
    for missing in (service.revisions.list(new_id()), service.revisions.get(new_id(), 1)):
        with pytest.raises(NotFound):
            await missing
    for number in (0, 6):
        with pytest.raises(NotFound, match=f"no revision {number}"):
            await service.revisions.get(plan.plan_id, number)


async def test_diff_names_titles_and_defaults_to_the_current_revision() -> None:
    service = service_over()
    plan = await planned(service)
    changed = await edited(service, plan, Rename("a", "z"), SetTitle("X"))
    diff = await service.revisions.diff(plan.plan_id, 1)
    assert (diff["a"], diff["b"], diff["hash"]) == (1, 2, [plan.hash, changed.hash])
    assert diff["title"] == [plan.title, "X"]
    assert [(each["id"], each["change"]) for each in diff["nodes"]] == [
        ("a", "removed"), ("z", "added"), ("b", "changed"),
    ]  # fmt: skip
    assert [(each["change"], (each.get("before") or each["after"])["source"]) for each in diff["edges"]] == [
        ("removed", "a"), ("added", "z"),
    ]  # fmt: skip
    same = await service.revisions.diff(plan.plan_id, 2, 2)
    assert (same["nodes"], same["edges"], same["title"]) == ([], [], None)


async def test_execution_stays_bound_to_the_hash_it_ran() -> None:
    async with service_over() as service:
        plan = await planned(service)
        before = await service.executions.execute(plan.plan_id)
        await service.executions.wait(before.execution_id)
        changed = await edited(service, plan, UpdateNode("a", {"data": {"text": "two"}}))
        after = await service.executions.execute(plan.plan_id)
        await service.executions.wait(after.execution_id)
        documents = [
            await service.executions.document(each.execution_id) for each in (before, after)
        ]
        assert [each["plan_hash"] for each in documents] == [plan.hash, changed.hash]
        assert [each["node_results"]["b"] for each in documents] == ["one", "two"]
        assert {each["plan_id"] for each in documents} == {plan.plan_id}
        assert await service.plans.status(plan.plan_id) == "completed"


async def test_provider_that_is_missing_here_leaves_the_forecast() -> None:
    service = service_over()
    plan = await planned(service)
    off = Node("n", "agent", "n", "do it", data={"provider": "off"})
    draft = await edited(service, plan, ReplaceGraph(make_graph(off).to_document()))
    assert {f["code"] for f in draft.document["diagnostics"]} == {"unavailable-provider"}
    assert draft.document["forecast"]["nodes"] == 1


@pytest.mark.parametrize(
    ("limit", "value"), [("nodes", 2), ("edges", 1), ("plan_bytes", 600)], ids=str
)
async def test_edit_past_a_limit_of_graphs_is_refused(limit: str, value: int) -> None:
    service = service_over(**{limit: value})
    plan = await planned(service)
    with pytest.raises(LimitExceeded) as refused:
        await edited(
            service, plan, AddNode({"id": "c", "type": "text", "data": {"text": "x" * 400}}),
            AddEdge({"source": "a", "target": "c", "data": EDGE_DATA}),
        )  # fmt: skip
    assert (refused.value.limit, refused.value.status_hint) == (limit, 413)
    assert await service.plans.get(plan.plan_id) == plan


async def test_deleted_plan_cannot_be_changed() -> None:
    service = service_over()
    plan = await planned(service)
    await edited(service, plan, SetTitle("X"))
    await service.plans.delete(plan.plan_id)
    with pytest.raises(NotFound):
        await edited(service, plan, SetTitle("Y"))


async def test_stored_plan_is_validated_against_current_limits() -> None:
    created = dependencies(PAIR)
    async with Service(created) as service:
        plan = await service.plans.create("do it")
        report = await service.plans.validate(plan.plan_id)
        assert (report.can_run, report.envelope["plan_id"]) == (True, plan.plan_id)
        assert report.graph == PAIR
    tighter = replace(created, limits=Limits(nodes=1))
    async with Service(tighter) as service:
        report = await service.plans.validate(plan.plan_id)
        assert not report.can_run
        assert [found.code for found in report.diagnostics] == ["limit-exceeded"]


async def test_stored_plan_is_forecast() -> None:
    async with Service(dependencies(PAIR)) as service:
        plan = await service.plans.read(json.dumps(PAIR.to_document()))
        await service.executions.create(plan)
        assert await service.plans.forecast(plan.plan_id) == plan.forecast
        assert plan.forecast["waves"] == 2
