"""What an execution that failed delivered all the same, and what is missing of it."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.errors import NodeError
from planwave.events import Event, ExecutionState, fold
from planwave.events.outcome import last_nodes_of, missing_text, outcome_of
from planwave.executor.options import RunOptions
from planwave.graph.model import DataValue, Graph, Policy, Retry
from planwave.graph.protocols import ExecutionResult
from tests.support.engine.event_story import EventStory
from tests.support.engine.generic_nodes import ExecutionHarness
from tests.support.engine.random_schedules import SOURCE_HANDLES, ByteChoices, random_graph
from tests.support.examples import examples
from tests.support.nodes.nested_graphs import graph_document, node_document
from tests.support.virtual_loop import virtual_time

BOOM = {"code": "boom", "message": "it broke"}


class Run:
    """A random graph whose nodes fail, deliver at some handles or nothing, or are cancelled."""

    def __init__(self, choices: ByteChoices) -> None:
        graph, self.passive = random_graph(choices)
        nodes = [
            node._replace(type="vein" if n in self.passive else "step", policy=policy(choices))
            for n, node in enumerate(graph.nodes)
        ]
        self.graph = Graph(tuple(nodes), graph.edges)
        self.acts = {
            node.id: (choices.below(4), choices.below(3), choices.some(SOURCE_HANDLES))
            for node in nodes
        }
        stops = choices.one_in(3)
        self.options = RunOptions(
            scheduling=("eager", "waves")[choices.below(2)],
            on_failure="stop" if stops else "continue",
        )

    async def act(self, inputs: Any, context: Any) -> Any:
        what, delay, handles = self.acts[context.node_id]
        await asyncio.sleep(delay)
        if what == 3:
            raise NodeError(f"{context.node_id} broke", retryable=True)
        return ExecutionResult({h: DataValue("any", context.node_id) for h in sorted(handles)})

    async def events(self) -> list[Event]:
        harness = ExecutionHarness(self.graph, dict.fromkeys(self.acts, self.act), self.options)
        await harness.run()
        created = Event(
            "x1", 1, "t", "execution.created", None, None, {"graph": self.graph.to_document()}
        )
        return [created, *(each._replace(seq=each.seq + 1) for each in harness.stored)]

    def last(self) -> list[str]:
        """The nodes that no flow edge leaves but of the handle ``error``, in the order of the graph."""
        left = {each.source for each in self.graph.edges if each.channel == "flow"}
        return [each.id for each in self.graph.nodes if each.id not in left]

    def before(self, node_id: str) -> set[str]:
        """The nodes from which edges of any channel lead to a node."""
        found: set[str] = set()
        open_ids = [node_id]
        while open_ids:
            target = open_ids.pop()
            sources = {e.source for e in self.graph.edges if e.target == target} - found
            found |= sources
            open_ids += sources
        return found


def policy(choices: ByteChoices) -> Policy:
    return Policy(
        join="any" if choices.one_in(6) else "all",
        retry=Retry(1 + choices.below(2), 0),
        on_error="continue" if choices.one_in(6) else "fail",
    )


@given(st.binary(min_size=90, max_size=200))
@settings(max_examples=examples(200), deadline=None)
@virtual_time
async def test_partial_is_what_failed_and_delivered_and_each_last_node_is_accounted_for(
    source: bytes,
) -> None:
    run = Run(ByteChoices(source))
    events = await run.events()
    state = fold(events)
    ends = {each.path: each for each in events if each.type.startswith("node.")}
    became = {own: ends[own] for own in run.last() if own in ends}
    ran = [own for own, end in became.items() if end.type != "node.skipped"]
    delivered = [own for own in ran if became[own].data.get("outputs", {}).keys() - {"error"}]
    owed_nothing = [
        own
        for own in ran
        if own not in delivered
        and (became[own].type == "node.completed" or became[own].data.get("handled"))
    ]

    found, outcome = last_nodes_of(state), outcome_of(state)
    missing = [each["path"] for each in found.missing]
    assert found.delivered == delivered
    assert sorted(missing) == sorted(set(ran) - {*delivered, *owed_nothing})
    is_partial = state.status == "failed" and bool(delivered)
    assert outcome["outcome"] == ("partial" if is_partial else None)
    assert outcome["missing"] == (found.missing if is_partial else [])
    if is_partial:
        assert {*state.result().outputs} == {*delivered}
    for each in found.missing if state.status == "failed" else ():
        node = each["cause"]["node"]
        assert each["status"] == became[each["path"]].type.removeprefix("node.")
        assert node is not None
        assert ends[node].type == "node.failed"
        assert each["cause"]["error"]["message"] == ends[node].data["error"]["message"]
        if each["status"] == "failed":
            assert node == each["path"]
        if each["status"] == "blocked":
            assert node in run.before(each["path"])


def failed(
    *facts: tuple[str, str, dict[str, Any]], edges: Any = (), **error: Any
) -> ExecutionState:
    kinds = {"a": "text", "b": "text", "c": "text", "e": "end"}
    nodes = [node_document(each, kind) for each, kind in kinds.items()]
    story = EventStory().add("execution.created", graph=graph_document(*nodes, edges=edges))
    for kind, path, data in facts:
        story.add(f"node.{kind}", path, 1, **data)
    return story.add("execution.failed", error={**BOOM, **error}, failures=["a"]).state


def gave(path: str) -> tuple[str, str, dict[str, Any]]:
    return "completed", path, {"outputs": {"output": {"type": "text", "value": path}}}


def test_a_failure_inside_a_nested_run_is_named_where_it_began() -> None:
    origin = {"node": "a[1]/x", "code": "boom", "message": "it broke", "hint": "mend it"}
    nested = {"code": "nested-run-failed", "message": "node 'a[1]/x' failed", "cause": origin}
    blocked = {"cause": {"node": "a", "error": nested}}
    state = failed(
        ("failed", "a", {"error": nested}), ("blocked", "b", blocked), gave("c"), gave("e"),
        edges=[("a", "b")],
    )  # fmt: skip
    [missing] = outcome_of(state)["missing"]
    assert missing == {
        "path": "b", "name": "b", "status": "blocked",
        "cause": {"node": "a[1]/x", "error": {"code": "boom", "message": "it broke", "hint": "mend it"}},
    }  # fmt: skip
    assert missing_text(missing) == "blocked, because 'a[1]/x' failed: it broke"


def test_what_was_never_reached_is_missing_for_what_ended_the_execution() -> None:
    state = failed(gave("e"), code="execution-timeout", message="over its time")
    outcome = outcome_of(state)
    assert outcome["outcome"] == "partial"
    assert [each["path"] for each in outcome["missing"]] == ["a", "b", "c"]
    for each in outcome["missing"]:
        assert each["cause"]["node"] is None
        assert missing_text(each) == "pending: over its time"


def test_where_all_last_nodes_delivered_nothing_is_missing() -> None:
    state = failed(
        ("failed", "a", {"error": BOOM}),
        gave("b"),
        gave("c"),
        gave("e"),
        edges=[("a", "b"), ("c", "b")],
    )
    assert outcome_of(state) == {"outcome": "partial", "missing": []}


def test_an_end_node_and_another_last_node_are_both_accounted_for() -> None:
    state = failed(gave("a"), gave("b"), gave("e"), ("failed", "c", {"error": BOOM}))
    assert state.result().values == {"e": "e"}
    assert last_nodes_of(state).delivered == ["a", "b", "e"]
    [missing] = outcome_of(state)["missing"]
    assert missing_text(missing) == "failed: it broke"


def test_a_failure_without_any_result_is_no_partial_outcome() -> None:
    state = failed(("failed", "a", {"error": BOOM}))
    assert outcome_of(state) == {"outcome": None, "missing": []}


def test_an_execution_that_was_cancelled_has_no_outcome_beside_its_status() -> None:
    graph = graph_document(node_document("a", "text"))
    story = (
        EventStory()
        .add("execution.created", graph=graph)
        .add("node.completed", "a", 1, **gave("a")[2])
    )
    assert outcome_of(story.add("execution.cancelled", cause="enough").state)["outcome"] is None
