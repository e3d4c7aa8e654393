"""Forks of a whole new graph: what they reuse, what a preview says of it, and what they refuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.errors import Conflict, GraphInvalid, InputError, InvalidChanges
from planwave.executor.options import RunOptions
from planwave.graph.editing.editor import PlanContent, apply_operations
from planwave.graph.model import LINK, Graph, Node, Port
from planwave.graph.operations import (
    AddEdge,
    AddNode,
    Operation,
    RemoveEdge,
    RemoveNode,
    Rename,
    UpdateNode,
)
from planwave.service.service import Service
from tests.support.graph.builders import make_edge, make_graph
from tests.support.service.dependencies import dependencies, execute_goal
from tests.unit.service.executions.test_fork_runs import (
    CHAIN,
    Joins,
    JoinsWithHelp,
    ReadsTask,
    joins,
    result,
    reused,
)

Document = dict[str, Any]


def opened(graph: Graph, *types: Any, **more: Any) -> Service:
    return Service(dependencies(graph, types=types, **more))


def edited(document: Document, *operations: Operation) -> Document:
    """A graph document after some operations."""
    content = PlanContent("", {"nodes": document["nodes"], "edges": document["edges"]})
    return dict(
        apply_operations(content, operations, dependencies(types=[Joins()]).catalogue).graph
    )


async def ended(service: Service, **more: Any) -> str:
    first = (await execute_goal(service, **more)).execution_id
    await service.executions.wait(first)
    return first


async def test_a_fork_of_a_new_graph_runs_only_what_is_new_or_changed() -> None:
    work = Joins()
    work.broken = {"b"}
    async with opened(CHAIN, work) as service:
        first = await ended(service)
        work.broken.clear()
        graph = edited(
            CHAIN.to_document(),
            RemoveNode("b"),
            AddNode({"id": "b1", "type": "joins", "name": "B1", "data": {}}),
            AddEdge({"source": "a", "target": "b1"}),
            AddEdge({"source": "b1", "target": "c"}),
        )
        preview = await service.executions.preview_fork(first, graph=graph)
        assert preview == (["a", "d"], ["b1"], ["c"])
        assert len(await service.executions.list()) == 1
        work.runs.clear()
        fork = await service.executions.fork(first, graph=graph)
        assert await result(service, fork.execution_id) == {
            "a": "a", "d": "a+d", "b1": "a+b1", "c": "a+b1+c",
        }  # fmt: skip
        assert work.runs == {"b1": 1, "c": 1}
        assert await reused(service, fork.execution_id) == {"a", "d"}
        state = await service.executions.state(fork.execution_id)
        assert (state.plan_id, state.revision) == (fork.plan_id, None)
        assert fork.parent_id == first


async def test_a_fork_of_the_newest_revision_of_its_plan_is_of_that_revision() -> None:
    work = Joins()
    async with opened(CHAIN, work) as service:
        first = await ended(service)
        plan_id = (await service.executions.get(first)).plan_id or ""
        change = UpdateNode("c", {"data": {"say": "C"}})
        plan = await service.plans.edit(plan_id, [change], expected=None)
        fork = await service.executions.fork(first, graph=plan.document)
        assert (fork.plan_id, fork.revision) == (plan_id, 2)
        assert (await result(service, fork.execution_id))["c"] == "a+b+C"
        assert work.runs == {"a": 1, "b": 1, "c": 2, "d": 1}
        other = edited(plan.document, UpdateNode("c", {"data": {"say": "D"}}))
        unsaved = await service.executions.fork(first, graph={**plan.document, **other})
        assert (unsaved.plan_id, unsaved.revision) == (plan_id, None)


async def test_the_goal_of_a_new_plan_counts_and_that_of_the_parent_otherwise() -> None:
    async with opened(CHAIN, Joins()) as service:
        first = await ended(service)
        document = CHAIN.to_document()
        fork = await service.executions.fork(first, graph=document)
        assert (fork.user_prompt, fork.title) == ("do it", "A title")
        named = {**document, "user_prompt": "do that", "title": "That"}
        fork = await service.executions.fork(first, graph=named)
        assert (fork.user_prompt, fork.title) == ("do that", "That")


async def test_inputs_stay_where_the_new_graph_has_a_place_for_them() -> None:
    graph = make_graph(
        Node("s", "start", "S"), joins("i"), joins("j"), edges=[("s", "j"), ("i", "j")]
    )
    inputs: dict[str, Any] = {"s": {"output": "hello"}, "i": {"output": "inner"}}
    document = graph.to_document()
    changes: list[tuple[Document, dict[str, Any]]] = [
        (edited(document, RemoveNode("i")), {"s": inputs["s"]}),
        (edited(document, UpdateNode("i", {"type": "reads_task"})), {"s": inputs["s"]}),
        (edited(document, AddEdge({"source": "s", "target": "i"})), {"s": inputs["s"]}),
        (edited(document, AddNode({"id": "k", "type": "joins", "name": "k"})), inputs),
    ]
    async with opened(graph, Joins(), ReadsTask()) as service:
        plan = await service.plans.create("do it")
        first = await service.executions.execute(plan.plan_id, inputs=inputs)
        await service.executions.wait(first.execution_id)
        for changed, kept in changes:
            fork = await service.executions.fork(first.execution_id, graph=changed)
            await service.executions.wait(fork.execution_id)
            assert (await service.executions.state(fork.execution_id)).inputs == kept


async def test_other_changes_are_of_the_new_graph() -> None:
    work = Joins()
    async with opened(CHAIN, work) as service:
        first = await ended(service)
        graph = edited(CHAIN.to_document(), AddNode({"id": "e", "type": "joins", "name": "E"}))
        changes: dict[str, Any] = {"e": {"data": {"say": "E"}}, "a": {"outputs": {"output": "A"}}}
        preview = await service.executions.preview_fork(first, graph=graph, changes=changes)
        assert preview == (["a"], ["b", "d", "e"], ["c"])
        fork = await service.executions.fork(first, graph=graph, changes=changes)
        assert await result(service, fork.execution_id) == {
            "a": "A", "b": "A+b", "c": "A+b+c", "d": "A+d", "e": "E",
        }  # fmt: skip
        with pytest.raises(GraphInvalid) as refused:
            await service.executions.fork(first, graph=graph, rerun=["gone"])
        assert refused.value.code == "invalid-changes"


async def test_a_new_graph_that_cannot_run_is_refused_and_nothing_is_made() -> None:
    graph = make_graph(joins("a"), joins("b", hold=True), edges=[("a", "b")])
    cycle = edited(graph.to_document(), AddEdge({"source": "b", "target": "a"}))
    needs = {
        "nodes": [{"id": "f", "type": "flow", "data": {"flow": "019a0000-0000-7000-8000-00000000000f"}}],
        "edges": [],
    }  # fmt: skip
    async with opened(graph, Joins()) as service:
        first = await ended(service)
        for wrong in (cycle, {"nodes": [{"id": "x", "type": "nobody"}], "edges": []}, needs):
            for ask in (service.executions.fork, service.executions.preview_fork):
                with pytest.raises(InputError):
                    await ask(first, graph=wrong)
        assert len(await service.executions.list()) == 1
        created = await service.executions.create(CHAIN_PLAN)
        with pytest.raises(Conflict) as refused:
            await service.executions.preview_fork(created.execution_id)
        assert refused.value.code == "still-running"


CHAIN_PLAN = dependencies(CHAIN, types=[Joins()]).planner.plan  # type: ignore[attr-defined]


# -- any graph, any change --------------------------------------------------------------------------


def random_graph(choose: Random) -> Graph:
    ids = [f"n{number}" for number in range(choose.randint(1, 7))]
    edges = [(a, b) for at, b in enumerate(ids) for a in ids[:at] if choose.random() < 0.4]
    return make_graph(*(joins(each) for each in ids), edges=edges)


def random_operation(choose: Random, graph: Document, number: int) -> Operation:
    ids = [node["id"] for node in graph["nodes"]]
    edges = [edge["id"] for edge in graph["edges"]]
    some, other = choose.choice(ids), choose.choice(ids)
    kind = choose.randrange(6)
    if kind == 0 or not edges:
        return AddNode({"id": f"new{number}", "type": "joins", "name": "new", "data": {}})
    if kind == 1:
        return AddEdge({"source": some, "target": other})
    if kind == 2:
        return RemoveEdge(choose.choice(edges))
    if kind == 3 and len(ids) > 1:
        return RemoveNode(some)
    if kind == 4:
        return Rename(some, f"renamed{number}")
    says = choose.choice(["loud", some])  # the second comes to the same as nothing
    return UpdateNode(some, {"data": {"say": says}})


def random_revision(service: Service, choose: Random, graph: Graph) -> Document:
    """A graph after some random operations, those left out that would make it one that cannot run."""
    document: Document = graph.to_document()
    for number in range(choose.randint(0, 6)):
        changed = edited(document, random_operation(choose, document, number))
        if service.plans.check(changed).can_run:
            document = changed
    return document


def keys(graph: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, object]:
    """What the result of each node follows from, worked out from the documents alone."""
    nodes = {node["id"]: node for node in graph["nodes"]}
    return {
        node_id: (
            node["type"],
            node.get("data") or {},
            [
                (edge["targetHandle"], edge["source"], nodes[edge["source"]]["name"], given[edge["source"]])
                for edge in graph["edges"]
                if edge["target"] == node_id
            ],
        )
        for node_id, node in nodes.items()
        if node_id in given
    }  # fmt: skip


def same_keys(
    before: Mapping[str, Any],
    had: Mapping[str, Any],
    after: Mapping[str, Any],
    has: Mapping[str, Any],
) -> set[str]:
    then, now = keys(before, had), keys(after, has)
    return {node_id for node_id, key in now.items() if then.get(node_id) == key}


@given(st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
async def test_a_fork_gives_what_the_new_graph_gives_and_reuses_exactly_what_is_the_same(
    seed: int,
) -> None:
    choose, work = Random(seed), Joins()  # noqa: S311 - a test's choices
    graph = random_graph(choose)
    options = RunOptions(choose.choice(["eager", "waves"]))
    async with opened(graph, work) as service:
        work.broken = {node.id for node in graph.nodes if choose.random() < 0.15}
        first = await ended(service, options=options)
        had = {each: it for each, it in (await result(service, first)).items() if it is not None}
        work.broken.clear()
        document = random_revision(service, choose, graph)
        preview = await service.executions.preview_fork(first, graph=document)
        work.runs.clear()
        fork = (await service.executions.fork(first, graph=document)).execution_id
        given = await result(service, fork)
        ran, lent = dict(work.runs), await reused(service, fork)
        assert (await service.executions.get(fork)).status == "completed"

        checked = await service.plans.parse_and_check(document)
        whole = await service.executions.execute(checked)
        assert given == await result(service, whole.execution_id)
        assert lent == same_keys(graph.to_document(), had, checked.plan.graph.to_document(), given)
        assert set(ran) == given.keys() - lent
        assert set(ran.values()) <= {1}
        assert set(preview.reused) <= lent
        assert set(preview.runs) <= ran.keys()
        said: Sequence[str] = [*preview.reused, *preview.runs, *preview.undecided]
        assert sorted(said) == sorted(given)


class RunsOrHelps(Joins):
    """A node type that is run, or linked."""

    node_type = "both"
    outputs = (Port("output"), Port("aid", channel=LINK))

    async def materialize(self, data: Any, output_handle: str, context: Any) -> Any:
        return "help"


@pytest.mark.parametrize("was_linked", [True, False])
async def test_which_steps_are_never_run_is_a_matter_of_the_new_graph(was_linked: bool) -> None:
    steps = [Node("m", "both", "M"), joins("b")]
    link = make_edge("m", "b", channel=LINK, source_handle="aid", target_handle="help")
    linked, plain = make_graph(*steps, edges=[link]), make_graph(*steps, edges=[("m", "b")])
    before, after = (linked, plain) if was_linked else (plain, linked)
    async with opened(before, JoinsWithHelp(), RunsOrHelps()) as service:
        first = await ended(service)
        again = service.executions.preview_fork(first, graph=after.to_document(), rerun=["m"])
        if was_linked:
            assert "m" in (await again).runs
            return
        with pytest.raises(InvalidChanges) as caught:
            await again
        assert [each.code for each in caught.value.diagnostics] == ["never-run"]
