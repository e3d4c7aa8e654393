from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import NodeError, NotFound
from planwave.events import Event, fold
from planwave.executor.options import RunOptions
from planwave.graph.model import Node, Policy, Retry
from planwave.graph.protocols import Suspension
from planwave.service.queries.explain import explain
from planwave.service.service import Service
from tests.support.engine.event_histories import (
    TIMESTAMP,
    created_event,
    is_event,
    raise_error,
    run_events,
    suspend,
)
from tests.support.engine.generic_nodes import ExecutionHarness, result_with
from tests.support.graph.builders import make_graph as nodes_of
from tests.support.graph.builders import text_node
from tests.support.graph.fake_node_types import parse_graph
from tests.support.nodes.held_nodes import HeldNode
from tests.support.service.dependencies import dependencies, execute_goal


async def test_completed_node_names_its_sources() -> None:
    received = await run_events(parse_graph("a b c", "a>c", "b>c"))
    first = explain(received, "a")
    assert (first["path"], first["status"], first["code"]) == ("a", "completed", "root")
    assert first["because"] == []
    found = explain(received, "c")
    assert (found["code"], found["status"]) == ("inputs-arrived", "completed")
    assert found["because"][0] == {
        "node": "a",
        "status": "completed",
        "settled": "delivered",
        "edge": "e1",
        "sourceHandle": "output",
        "targetHandle": "input",
    }


async def test_any_join_names_the_first_input() -> None:
    graph = parse_graph("a b c", "a>c", "b>c", policies={"c": Policy(join="any")})
    found = explain(await run_events(graph, {"a": raise_error}), "c")
    assert found["code"] == "first-input"
    assert [(each["node"], each["settled"]) for each in found["because"]] == [
        ("a", "failed"),
        ("b", "delivered"),
    ]


async def test_skipped_node_names_the_branch_taken() -> None:
    graph = parse_graph("fork yes no after", "fork.yes>yes", "fork.no>no", "no>after")
    received = await run_events(graph, {"fork": result_with(1, "yes")})
    found = explain(received, "no")
    assert found["code"] == "no-input"
    assert found["because"][0]["gave"] == ["yes"]
    assert found["because"][0]["edge"] == "e2"


async def test_skipped_required_input_is_named() -> None:
    graph = parse_graph("fork b n:picky", "fork.no>n.need", "b>n")
    found = explain(await run_events(graph, {"fork": result_with(1, "yes")}), "n")
    assert (found["status"], found["code"]) == ("skipped", "required-input-skipped")
    assert [each["node"] for each in found["because"]] == ["fork"]


async def test_blocked_node_names_the_first_failure() -> None:
    received = await run_events(parse_graph("a b c d", "a>b", "b>c", "d>c"), {"a": raise_error})
    assert explain(received, "a")["error"]["message"] == "boom"
    found = explain(received, "c")
    assert found["code"] == "blocked"
    assert [each["node"] for each in found["because"]] == ["b", "a"]
    assert found["because"][1]["error"]["code"] == "node-failed"


async def test_handled_failure_blocks_no_node() -> None:
    caught = Policy(on_error="default", default={"handle": "output", "value": 1})
    received = await run_events(
        parse_graph("a b", "a>b", policies={"a": caught}), {"a": raise_error}
    )
    assert explain(received, "b")["code"] == "inputs-arrived"


async def test_stopped_node_names_the_failure() -> None:
    graph = parse_graph("a b c", "b>c")
    received = await run_events(
        graph, {"a": raise_error}, RunOptions(on_failure="stop", max_parallel=1)
    )
    found = explain(received, "c")
    assert (found["status"], found["code"]) == ("cancelled", "stopped")
    assert found["because"][0]["node"] == "a"


async def test_cancelled_node_names_the_cause() -> None:
    received = await run_events(parse_graph("a b", "a>b"), {"a": suspend})
    assert explain(received, "a")["code"] == "cancelled"
    assert explain(received, "b")["code"] == "cancelled"


async def test_waiting_node_has_request_and_dependents_name_it() -> None:
    graph = parse_graph("a b c", "a>b", "b>c")
    received = await run_events(graph, {"a": suspend}, until=is_event("execution.paused"))
    found = explain(received, "a")
    assert (found["status"], found["code"]) == ("waiting", "waits-for-answer")
    assert found["requests"][0]["request"] == "which one?"
    behind = explain(received, "c")
    assert behind["code"] == "sources-open"
    assert [(each["node"], each["status"]) for each in behind["because"]] == [
        ("b", "pending"),
        ("a", "waiting"),
    ]


async def test_timer_names_its_time() -> None:
    def timed(*_: Any) -> Any:
        return Suspension({"kind": "timer", "until": "2030-01-31T09:00:00+00:00"}, None, 3_600)

    received = await run_events(parse_graph("a"), {"a": timed}, until=is_event("execution.paused"))
    found = explain(received, "a")
    assert (found["status"], found["code"]) == ("waiting", "waits-for-time")


async def test_retrying_node_names_the_error() -> None:
    def not_yet(*_: Any) -> Any:
        raise NodeError("busy", retryable=True)

    graph = parse_graph("a", policies={"a": Policy(retry=Retry(2, 0))})
    received = await run_events(graph, {"a": not_yet}, until=is_event("node.retrying", "a"))
    found = explain(received, "a")
    assert (found["status"], found["code"]) == ("retrying", "waits-to-retry")


async def test_linked_node_lists_its_users() -> None:
    received = await run_events(parse_graph("g u", "g~u"))
    found = explain(received, "g")
    assert (found["status"], found["code"]) == ("linked", "linked")
    assert found["because"] == [{"node": "u", "status": "completed", "edge": "e1"}]


async def test_needs_of_linked_node_apply_to_its_users() -> None:
    graph = parse_graph("a b g:vein h:vein u", "a>g", "g~h", "h~u", "b>u")
    received = await run_events(graph, {"a": raise_error})
    found = explain(received, "u")
    assert (found["status"], found["code"]) == ("blocked", "blocked")
    assert found["because"][0]["through"] == "g"


async def test_node_before_start_is_not_started() -> None:
    assert explain([created_event(parse_graph("a b", "a>b"))], "b")["code"] == "not-started"


async def test_node_of_failed_start_names_the_error() -> None:
    error = {"code": "unavailable-provider", "message": "no key"}
    ended = Event(
        "x1", 2, TIMESTAMP, "execution.failed", None, None, {"error": error, "failures": []}
    )
    found = explain([created_event(parse_graph("a")), ended], "a")
    assert found["code"] == "execution-ended"


async def test_ready_node_waits_for_wave_or_capacity() -> None:
    graph = parse_graph("a b c d", "a>c", "b>d")
    waves = RunOptions(scheduling="waves", max_parallel=1)
    first_done = is_event("node.completed", "a")
    assert explain(await run_events(graph, options=waves, until=first_done), "c")["code"] == (
        "wave-closed"
    )
    narrow = RunOptions(max_parallel=1)
    assert (
        explain(await run_events(graph, options=narrow, until=first_done), "c")["code"] == "ready"
    )
    behind = explain(await run_events(graph, options=narrow, until=first_done), "d")
    assert behind["code"] == "sources-open"


async def test_inputs_explain_entries() -> None:
    graph = parse_graph("a:door b:door c d", "a>c", "b>d")
    received = await run_events(graph, inputs={"a": {"output": "hi"}})
    assert {path: explain(received, path)["code"] for path in fold(received).nodes} == {
        "a": "given",
        "b": "other-entry",
        "c": "inputs-arrived",
        "d": "not-reached",
    }
    assert explain(received, "d")["because"] == [{"node": "a", "status": "completed"}]


async def test_options_explain_excluded_nodes() -> None:
    graph = parse_graph("a b c", "a>b", "b>c")
    received = await run_events(graph, options=RunOptions(run_from=("a",), run_to=("a",)))
    found = explain(received, "b")
    assert found["code"] == "not-reached"


async def test_nested_node_is_explained_by_its_parent() -> None:
    async def nests(inputs: Any, context: Any) -> Any:
        inner = parse_graph("i f s", "f>s")
        await context.runtime.run_graph("2", inner, {})

    received = await run_events(parse_graph("loop"), {"loop": nests, "f": raise_error})
    started, failed, blocked = (path for path in fold(received).nodes if path != "loop")
    assert explain(received, started)["code"] == explain(received, failed)["code"] == "nested"
    assert explain(received, started)["because"] == [{"node": "loop", "status": "failed"}]
    assert explain(received, blocked)["because"][0]["node"] == failed


async def test_nested_node_is_explained_by_its_siblings() -> None:
    async def nests(inputs: Any, context: Any) -> Any:
        inner = parse_graph("s t u:picky v", "s>t", "s>u", "s.no>u.need", "u>v")
        await context.runtime.run_graph("2", inner, {"s": {"output": "in"}})
        return result_with(1)

    received = await run_events(parse_graph("loop"), {"loop": nests})
    given, started = explain(received, "loop[2]/s"), explain(received, "loop[2]/t")
    assert given["code"] == "given"
    assert started["code"] == "inputs-arrived"
    assert [each["node"] for each in started["because"]] == ["loop[2]/s"]
    assert started["inputs"]["input"]["text"] == "in"
    assert explain(received, "loop[2]/u")["code"] == "required-input-skipped"
    assert explain(received, "loop[2]/v")["code"] == "no-input"
    assert explain(received, "loop[2]/v")["because"][0]["node"] == "loop[2]/u"


async def test_need_of_nested_link_is_named() -> None:
    async def nests(inputs: Any, context: Any) -> Any:
        await context.runtime.run_graph("2", parse_graph("a g:vein u", "a>g", "g~u"), {})
        return result_with(1)

    received = await run_events(parse_graph("loop"), {"loop": nests})
    (need,) = explain(received, "loop[2]/u")["because"]
    assert (need["node"], need["through"]) == ("loop[2]/a", "loop[2]/g")


async def test_nested_other_entry_names_the_parent() -> None:
    async def nests(inputs: Any, context: Any) -> Any:
        await context.runtime.run_graph("2", parse_graph("d:door e:door"), {"d": {"output": "in"}})
        return result_with(1)

    received = await run_events(parse_graph("loop"), {"loop": nests})
    found = explain(received, "loop[2]/e")
    assert found["code"] == "other-entry"


async def test_nested_node_without_stored_graph_is_explained_by_its_parent() -> None:
    async def nests(inputs: Any, context: Any) -> Any:
        await context.runtime.run_graph("2", parse_graph("s t", "s>t"), {})
        return result_with(1)

    received = await run_events(parse_graph("loop"), {"loop": nests})
    older = [each._replace(data=_without_document(each.data)) for each in received]
    assert explain(older, "loop[2]/t")["code"] == "nested"
    assert explain(older, "loop[2]/t")["inputs"] == {}
    assert explain(received, "loop[2]/t")["code"] == "inputs-arrived"


def _without_document(data: dict[str, Any]) -> dict[str, Any]:
    if data.get("event_type") != "run_graph":
        return data
    return {**data, "data": {k: v for k, v in data["data"].items() if k != "document"}}


async def test_parent_waiting_for_nested_node_names_it() -> None:
    async def nests(inputs: Any, context: Any) -> Any:
        await context.runtime.run_graph("2", parse_graph("i q"), {})

    graph = parse_graph("loop")
    received = await run_events(
        graph, {"loop": nests, "q": suspend}, until=is_event("execution.paused")
    )
    found = explain(received, "loop")
    assert (found["status"], found["code"]) == ("waiting", "waits-for-answer")
    assert found["because"] == [{"node": "loop[2]/q", "status": "waiting"}]
    assert [step["what"] for step in found["course"]] == ["started"]


async def test_unknown_node_lists_the_nodes() -> None:
    received = await run_events(parse_graph("a b"))
    with pytest.raises(NotFound, match="'nobody'") as caught:
        explain(received, "nobody")
    assert "'a' and 'b'" in (caught.value.hint or "")


async def test_node_cancelled_alone_is_distinguished() -> None:
    def alone(harness: ExecutionHarness, event: Event) -> None:
        if event.type == "execution.paused":
            harness.execution.cancel_node("a", "no need")

    received = await run_events(parse_graph("a b c", "a>b"), {"a": suspend}, on_event=alone)
    found = explain(received, "a")
    assert (found["code"], found["status"]) == ("node-cancelled", "cancelled")
    assert explain(received, "b")["code"] == "blocked"


async def test_paused_execution_explains_pending_nodes() -> None:
    def pauses(harness: ExecutionHarness, event: Event) -> None:
        if (event.type, event.path) == ("node.started", "a"):
            harness.execution.pause()
        elif event.type == "execution.paused":
            harness.execution.cancel("enough")

    graph = parse_graph("a b", "a>b")
    paused = await run_events(graph, on_event=pauses, until=is_event("execution.paused"))
    assert explain(paused, "b")["code"] == "sources-open"
    ready = [*paused[:-1], *_completed("a", paused[-1]), _after(paused[-1], 1)]
    found = explain(ready, "b")
    assert found["code"] == "paused"


def _completed(path: str, at: Event) -> list[Event]:
    outputs = {"output": {"type": "any", "value": path}}
    return [at._replace(type="node.completed", path=path, attempt=1, data={"outputs": outputs})]


def _after(event: Event, places: int) -> Event:
    return event._replace(seq=event.seq + places)


def settled_without_a_run(told: list[Event], **facts: Any) -> list[Event]:
    """The events of an execution whose first node has its result without having run."""
    stored = [e for e in told if e.path is None and not e.type.startswith("wave")]
    data = {**told[-1].data, **facts}
    return [*stored, told[-1]._replace(seq=len(stored) + 1, attempt=None, data=data)]


async def test_reused_result_names_its_execution() -> None:
    received = await run_events(parse_graph("a b", "a>b"), until=is_event("node.completed", "a"))
    found = explain(settled_without_a_run(received, reused={"execution_id": "x0"}), "a")
    assert (found["code"], found["status"]) == ("reused", "completed")


async def test_preset_result_of_fork_is_explained() -> None:
    received = await run_events(parse_graph("a b", "a>b"), until=is_event("node.completed", "a"))
    found = explain(settled_without_a_run(received, changed=True), "a")
    assert (found["code"], found["status"], found["inputs"]) == ("changed", "completed", {})


async def test_running_execution_is_explained() -> None:
    held = HeldNode()
    graph = nodes_of(Node("a", "held", "a"), text_node("b"), edges=[("a", "b")])
    async with Service(dependencies(graph, types=[held])) as service:
        record = await execute_goal(service)
        await held.started.wait()
        found = await service.executions.explain(record.execution_id, "b")
        assert (found["code"], found["reason"]) == ("sources-open", "It waits for 'a' (running).")
        held.release.set()
        await service.executions.wait(record.execution_id)
        assert (await service.executions.explain(record.execution_id, "b"))[
            "code"
        ] == "inputs-arrived"
        with pytest.raises(NotFound):
            await service.executions.explain(record.execution_id, "c")
