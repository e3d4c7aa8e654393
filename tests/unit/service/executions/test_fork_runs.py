"""Forks and retries: what they take over, what they run, and that nothing is paid for twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import Conflict, InputError, NodeError
from planwave.executor.options import RunOptions
from planwave.graph.model import LINK, DataValue, Node, Policy, Port
from planwave.graph.protocols import ExecutionResult
from planwave.ids import new_id
from planwave.service.service import Service
from planwave.settings import Limits
from tests.support.graph.builders import make_edge, make_graph, text_node
from tests.support.service.dependencies import execute_goal
from tests.unit.service.executions.test_commands import Asks, Counts, executed, opened, outputs_of


class Joins:
    """A node type that joins what arrives with its own text, counts its runs, and can fail."""

    node_type = "joins"

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        self.broken: set[str] = set()

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        self.runs[context.node_id] += 1
        if context.node_id in self.broken:
            raise NodeError("out of order")
        texts = [str(arrival.value.value) for arrival in inputs.arrivals]
        output = "+".join([*texts, data.get("say", context.node_id)])
        return ExecutionResult({"output": DataValue("text", output)})


def joins(node_id: str, **data: Any) -> Node:
    return Node(node_id, "joins", node_id.upper(), data=data)


CHAIN = make_graph(
    joins("a"), joins("b"), joins("c"), joins("d"), edges=[("a", "b"), ("b", "c"), ("a", "d")]
)


async def result(service: Service, execution_id: str) -> dict[str, Any]:
    await service.executions.wait(execution_id)
    outputs = await outputs_of(service, execution_id)
    return {path: given.get("output") for path, given in outputs.items()}


async def reused(service: Service, execution_id: str) -> set[str | None]:
    events = await service.executions.events(execution_id)
    return {e.path for e in events if e.type == "node.completed" and "reused" in e.data}


async def test_retry_runs_only_failed_and_blocked_nodes(tmp_path: Path) -> None:
    work = Joins()
    work.broken = {"b"}
    async with opened(tmp_path, CHAIN, work) as service:
        first = await executed(service)
        assert (await service.executions.wait(first)).status == "failed"
        assert work.runs == {"a": 1, "b": 1, "d": 1}
        work.broken.clear()
        again = await service.executions.retry(first)
        assert again.execution_id != first
        assert await result(service, again.execution_id) == {
            "a": "a", "b": "a+b", "c": "a+b+c", "d": "a+d",
        }  # fmt: skip
        assert work.runs == {"a": 1, "b": 2, "c": 1, "d": 1}
        assert await reused(service, again.execution_id) == {"a", "d"}
        state = await service.executions.state(again.execution_id)
        assert state.parent == {"execution_id": first, "retry": True, "rerun": ["b"]}
        with pytest.raises(Conflict) as refused:
            await service.executions.retry(again.execution_id)
        assert refused.value.code == "nothing-to-retry"


async def test_fork_reuses_what_its_changes_do_not_reach(tmp_path: Path) -> None:
    work = Joins()
    async with opened(tmp_path, CHAIN, work) as service:
        first = await executed(service)
        await service.executions.wait(first)
        fork = await service.executions.fork(first, changes={"b": {"data": {"say": "B"}}})
        assert (await result(service, fork.execution_id))["c"] == "a+B+c"
        assert work.runs == {"a": 1, "b": 2, "c": 2, "d": 1}
        # A change that comes to the same changes nothing: what follows is taken over.
        same = await service.executions.fork(
            fork.execution_id, changes={"a": {"data": {"say": "a"}}}
        )
        assert (await result(service, same.execution_id))["c"] == "a+B+c"
        assert work.runs == {"a": 2, "b": 2, "c": 2, "d": 1}


class ReadsTask:
    """A node type whose result is its task, as that of an agent is."""

    node_type = "reads_task"

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        task = context.runtime.get_node(context.node_id).description
        return ExecutionResult({"output": DataValue("text", task)})


async def test_a_step_with_a_changed_task_and_those_after_it_run_again(tmp_path: Path) -> None:
    work = Joins()
    task = Node("t", "reads_task", "T", "Find it.")
    graph = make_graph(joins("a"), task, joins("c"), edges=[("a", "t"), ("t", "c")])
    async with opened(tmp_path, graph, work, ReadsTask()) as service:
        first = await executed(service)
        assert (await result(service, first))["c"] == "Find it.+c"
        same = await service.executions.fork(first, changes={"t": {"description": "Find it."}})
        await service.executions.wait(same.execution_id)
        assert await reused(service, same.execution_id) == {"a", "t", "c"}
        fork = await service.executions.fork(first, changes={"t": {"description": "Sum it up."}})
        assert (await result(service, fork.execution_id))["c"] == "Sum it up.+c"
        assert await reused(service, fork.execution_id) == {"a"}
        assert work.runs == {"a": 1, "c": 2}


async def test_fork_presets_outputs(tmp_path: Path) -> None:
    work = Joins()
    work.broken = {"b"}
    async with opened(tmp_path, CHAIN, work) as service:
        first = await executed(service)
        await service.executions.wait(first)
        fork = await service.executions.fork(
            first, changes={"b": {"outputs": {"output": "by hand"}}}
        )
        assert (await result(service, fork.execution_id))["c"] == "by hand+c"
        assert work.runs == {"a": 1, "b": 1, "c": 1, "d": 1}
        nodes = (
            await service.executions.state(fork.execution_id)
        ).nodes  # a and d reused, b set, c ran
        assert {path: node.wave for path, node in nodes.items()} == {"a": 1, "b": 2, "c": 3, "d": 2}


async def test_rerun_runs_dependents_only_if_the_result_changed(
    tmp_path: Path,
) -> None:
    work = Joins()
    async with opened(tmp_path, CHAIN, work) as service:
        first = await executed(service)
        await service.executions.wait(first)
        fork = await service.executions.fork(first, rerun=["a"])
        assert (await service.executions.wait(fork.execution_id)).status == "completed"
        assert work.runs == {"a": 2, "b": 1, "c": 1, "d": 1}


async def test_interrupted_fork_still_reuses_results(tmp_path: Path) -> None:
    counts = Counts()
    hold = make_graph(
        Node("a", "counts", "A"), Node("b", "counts", "B", data={"hold": True}),
        Node("c", "counts", "C"), Node("d", "counts", "D"),
        edges=[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")],
    )  # fmt: skip
    async with opened(tmp_path, hold, counts) as service:
        counts.held.set()
        first = await executed(service)
        await service.executions.wait(first)
        counts.held.clear()
        counts.started.clear()
        fork = (await service.executions.fork(first, rerun=["b"])).execution_id
        await counts.started.wait()
    counts.held.set()
    async with opened(tmp_path, hold, counts) as service:
        await service.recover()
        async for _ in service.executions.watch(fork):
            pass
        assert (await service.executions.get(fork)).status == "completed"
        assert counts.runs == {"a": 1, "b": 3, "c": 1, "d": 1}


async def test_invalid_fork_is_rejected_before_creation(tmp_path: Path) -> None:
    graph = make_graph(Node("s", "start", "S"), joins("j"), edges=[("s", "j")])
    async with opened(tmp_path, graph, Joins()) as service:
        plan = await service.plans.create("do it")
        first = await service.executions.execute(plan.plan_id, inputs={"s": {"output": "hello"}})
        await service.executions.wait(first.execution_id)
        with pytest.raises(InputError):
            await service.executions.fork(
                first.execution_id, changes={"s": {"outputs": {"nope": 1}}}
            )
        for options in (RunOptions(run_to=["nobody"]), RunOptions(run_from=["nobody"])):
            with pytest.raises(InputError) as refused:
                await service.executions.fork(first.execution_id, options=options)
            assert refused.value.code == "unknown-node"
            with pytest.raises(InputError):
                await service.executions.execute(plan.plan_id, options=options)
        assert len(await service.executions.list()) == 1


async def test_paused_execution_forks_and_running_does_not(tmp_path: Path) -> None:
    counts = Counts()
    graph = make_graph(
        Node("t", "counts", "T", data={"hold": True}), Node("q", "asks", "Q"), joins("j"),
        edges=[("t", "q"), ("q", "j")],
    )  # fmt: skip
    async with opened(tmp_path, graph, counts, Asks(), Joins()) as service:
        first = await executed(service)
        await counts.started.wait()
        with pytest.raises(Conflict) as refused:
            await service.executions.fork(first)
        assert refused.value.code == "still-running"
        counts.held.set()
        await service.executions.wait(first)
        fork = await service.executions.fork(first, changes={"q": {"outputs": {"output": "yes"}}})
        assert (await result(service, fork.execution_id))["j"] == "yes+j"
        assert counts.runs == {"t": 1}
        assert (await service.executions.get(first)).status == "paused"


async def test_fork_runs_to_or_from_a_node(tmp_path: Path) -> None:
    work = Joins()
    async with opened(tmp_path, CHAIN, work) as service:
        first = await execute_goal(service, options=RunOptions(run_to=["b"]))
        await service.executions.wait(first.execution_id)
        assert work.runs == {"a": 1, "b": 1}
        fork = await service.executions.fork(first.execution_id, options=RunOptions(run_from=["c"]))
        assert (await service.executions.wait(fork.execution_id)).status == "completed"
        assert work.runs == {"a": 1, "b": 1, "c": 1}
        assert (await service.executions.state(fork.execution_id)).nodes[
            "d"
        ].status == "not_reached"


@pytest.mark.parametrize("is_retry", [False, True])
async def test_lower_limits_of_today_hold_for_forks(tmp_path: Path, is_retry: bool) -> None:
    options, today = RunOptions(max_steps=50, max_parallel=3), Limits(steps=20, parallel_nodes=8)
    work = Joins()
    work.broken = {"b"}
    async with opened(tmp_path, CHAIN, work) as service:
        own = (await execute_goal(service, options=options)).execution_id
        await service.executions.wait(own)
    async with opened(tmp_path, CHAIN, work, limits=today) as service:
        fork = await (
            service.executions.retry(own) if is_retry else service.executions.fork(own, rerun=["a"])
        )
        found = (await service.executions.state(fork.execution_id)).options or {}
        assert (found["max_steps"], found["max_parallel"]) == (20, 3)
        await service.executions.wait(fork.execution_id)


async def test_deleted_parent_leaves_nothing_to_reuse(tmp_path: Path) -> None:
    work = Joins()
    async with opened(tmp_path, CHAIN, work) as service:
        first = await executed(service)
        await service.executions.wait(first)
        created = await service.executions.fork(first, start=False)
        await service.maintenance.delete_execution(first)
        await service.executions.start(created.execution_id)
        assert (await service.executions.wait(created.execution_id)).status == "completed"
        assert work.runs == {"a": 2, "b": 2, "c": 2, "d": 2}


async def test_handled_failure_is_not_reused(tmp_path: Path) -> None:
    work = Joins()
    work.broken = {"a"}
    policy = {"onError": "default", "default": {"handle": "output", "value": "instead"}}
    first_node = Node("a", "joins", "A", policy=Policy(on_error="default", default=policy["default"]),
                      policy_document=policy)  # fmt: skip
    async with opened(
        tmp_path, make_graph(first_node, joins("b"), edges=[("a", "b")]), work
    ) as service:
        first = await executed(service)
        assert await result(service, first) == {"a": "instead", "b": "instead+b"}
        work.broken.clear()
        fork = await service.executions.fork(first)
        assert await result(service, fork.execution_id) == {"a": "a", "b": "a+b"}


class JoinsWithHelp(Joins):
    """The same, with something linked in."""

    inputs = (Port("input", multiple=True), Port("help", channel=LINK))


class Helps:
    """A node type that is only linked."""

    node_type = "helps"
    outputs = (Port("output", channel=LINK),)

    async def materialize(self, data: Any, output_handle: str, context: Any) -> Any:
        return "help"


INSIDE: dict[str, Any] = {
    "nodes": [
        {"id": "n", "type": "joins", "data": {"say": "n"}},
        {"id": "t", "type": "text", "data": {"text": "t"}},
    ],
    "edges": [{"source": "n", "target": "t", "data": {"channel": "flow"}}],
}
VERSIONED = make_graph(
    joins("a"), text_node("t"), joins("b"), Node("h", "helps", "H"),
    Node("l", "loop", "L", data={"items": [1, 2], "body": INSIDE}),
    edges=[("a", "t"), ("t", "b"), make_edge("h", "b", channel=LINK, target_handle="help")],
)  # fmt: skip


@pytest.mark.parametrize("kind", [JoinsWithHelp, Helps])
async def test_results_of_another_type_version_are_not_reused(tmp_path: Path, kind: type) -> None:
    async def took_over(before: str | None, version: int) -> tuple[str, set[str | None]]:
        types = JoinsWithHelp(), Helps()
        for each in types:
            each.version = version if isinstance(each, kind) else 1
        async with opened(tmp_path, VERSIONED, *types) as service:
            if before is None:
                own = await executed(service)
            else:
                own = (await service.executions.fork(before)).execution_id
            assert (await service.executions.wait(own)).status == "completed"
            return own, await reused(service, own)

    first, _ = await took_over(None, 1)
    second, taken = await took_over(first, 2)
    others = {"a", "t", "l"} if kind is Helps else {"t", "l[0]/t", "l[1]/t"}
    assert taken == others, "also of a type inside a node"
    everything = {"a", "t", "b", "l"}
    third, taken = await took_over(second, 2)
    assert taken == everything
    fourth, taken = await took_over(third, 2)
    assert taken == everything, "also of what was taken over itself"
    async with opened(tmp_path, VERSIONED, JoinsWithHelp(), Helps()) as service:
        await service.maintenance.delete_execution(first)
    _, taken = await took_over(fourth, 1)
    assert taken == others, "an earlier one is another too"


@pytest.mark.parametrize("start", [True, False])
async def test_fork_and_retry_with_a_known_id_are_created_once(tmp_path: Path, start: bool) -> None:
    work = Joins()
    work.broken = {"b"}
    async with opened(tmp_path, CHAIN, work) as service:
        failed = await executed(service)
        await service.executions.wait(failed)
        for again in (service.executions.fork, service.executions.retry):
            own = new_id()
            first = await again(failed, start=start, new_id=own)
            second = await again(failed, start=start, new_id=own)
            assert first.execution_id == second.execution_id == own
        assert len(await service.executions.list()) == 3
