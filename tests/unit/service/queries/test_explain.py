"""Which wires fed a node's parameters, as explain tells it of real executions."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import planwave
from planwave.errors import NodeError
from planwave.events import Event, fold
from planwave.executor.recovery.history import History
from planwave.graph.model import DataValue, Policy, Retry
from planwave.graph.protocols import ExecutionResult, Suspension
from planwave.nodes.library import LIBRARY
from planwave.service.queries.explain import (
    describe_sources,
    explain,
    wired_parameters,
)
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.engine.event_histories import created_event, is_event, run_events
from tests.support.engine.generic_nodes import (
    ExecutionHarness,
    MemoryJournal,
    node_event,
    result_with,
)
from tests.support.engine.random_schedules import ByteChoices
from tests.support.examples import examples
from tests.support.graph.fake_node_types import parse_graph
from tests.support.nodes.node_context import services_with
from tests.support.virtual_loop import virtual_time
from tests.unit.executor.driver.test_execution_properties import Scene
from tests.unit.executor.driver.test_resume import Interrupted

STATUS_OF = {
    "pending": {"not-started", "sources-open", "wave-closed", "ready", "paused", "execution-ended"},
    "waiting": {"waits-for-answer", "waits-for-decision", "waits-for-time"},
    "retrying": {"waits-to-retry"},
    "skipped": {"no-input", "required-input-skipped", "other-entry"},
    "blocked": {"blocked"},
    "cancelled": {"stopped", "cancelled", "node-cancelled"},
    "linked": {"linked"},
    "not_reached": {"not-reached"},
}

REASON_CODES = frozenset(
    {
        "root", "inputs-arrived", "first-input", "given", "reused", "changed", "nested",
        "waits-for-answer", "waits-for-decision", "waits-for-time", "waits-to-retry",
        "not-started", "sources-open", "wave-closed", "ready", "paused",
        "no-input", "required-input-skipped", "other-entry",
        "blocked", "stopped", "cancelled", "node-cancelled", "execution-ended",
        "linked", "not-reached",
    }
)  # fmt: skip


def check_all(told: list[Event]) -> None:
    """Every node has an explanation that fits what became of it, and what it read is all there."""
    for path, node in fold(told).nodes.items():
        found = explain(told, path)
        assert found["code"] in REASON_CODES
        ran = {"root", "inputs-arrived", "first-input", "given", "reused", "changed", "nested"}
        assert found["code"] in STATUS_OF.get(node.status, ran)
        assert found["reason"].endswith((".", "…."))
        delivered = [each for each in found["because"] if each.get("settled") == "delivered"]
        read = [each for one in found["inputs"].values() for each in one["arrivals"]]
        if found["code"] in ("root", "inputs-arrived"):
            direct = [each["edge"] for each in delivered if "through" not in each]
            assert sorted(each["edge"] for each in read) == sorted(direct)
        if found["code"] == "first-input":
            assert len(read) == 1
        did_not_run = any(
            step["what"] in ("given", "reused", "changed") for step in found["course"]
        )
        left_out = {"node.log", "node.event"} | ({"node.started"} if did_not_run else set())
        assert len(found["course"]) == sum(e.path == path and e.type not in left_out for e in told)


@given(st.integers(0, 2**64), st.integers(0, 60))
@settings(max_examples=examples(80), deadline=None)
def test_every_node_has_an_explanation_at_any_time(seed: int, cut: int) -> None:
    scene = Scene(ByteChoices(Random(seed).randbytes(260)))  # noqa: S311 - a test's choices

    @virtual_time
    async def plays() -> None:
        stored = [e._replace(seq=e.seq + 1) for e in (await scene.run()).stored]
        received = [created_event(scene.graph, scene.options), *stored]
        check_all(received)
        check_all(received[: 1 + cut])

    plays()


@given(st.integers(0, 2**64))
@settings(max_examples=examples(60), deadline=None)
def test_every_interrupted_node_has_an_explanation(seed: int) -> None:
    scene = Interrupted(ByteChoices(Random(seed).randbytes(260)))  # noqa: S311 - a test's choices

    @virtual_time
    async def plays() -> None:
        stored = [created_event(scene.graph, scene.options)]
        for cut in [*scene.cuts, None]:
            stored = await scene.run_once(stored, cut)
            check_all(stored)
            if fold(stored).is_over:
                break

    plays()


async def test_explanation_has_the_input_text() -> None:
    acts = {"a": result_with("one\n\n two "), "b": result_with({"k": ["ü", 1]})}
    graph = parse_graph("a b c d", "a>c", "b>c", "b>c.other", "c>d")
    received = await run_events(graph, acts)
    read = explain(received, "c")["inputs"]
    assert list(read) == ["input", "other"]
    assert read["input"]["text"] == ('From a (a):\none\n\n two \n\nFrom b (b):\n{"k":["ü",1]}')
    assert read["input"]["arrivals"][1] == {
        "edge": "e2", "source": "b", "sourceName": "b", "sourceHandle": "output",
        "type": "any", "value": {"k": ["ü", 1]}, "text": '{"k":["ü",1]}',
    }  # fmt: skip
    assert read["other"]["text"] == '{"k":["ü",1]}'
    assert explain(received, "a")["inputs"] == {}


async def test_any_join_reads_only_the_first_input() -> None:
    graph = parse_graph("a b c", "a>c", "b>c", policies={"c": Policy(join="any")})
    received = await run_events(graph, {"a": result_with("first")})
    (one,) = explain(received, "c")["inputs"].values()
    assert (one["text"], len(one["arrivals"])) == ("first", 1)


async def test_pending_node_has_no_inputs() -> None:
    received = await run_events(
        parse_graph("a b c", "a>c", "b>c"), until=is_event("node.completed", "a")
    )
    assert explain(received, "c")["inputs"] == {}


async def test_linked_node_has_inputs() -> None:
    received = await run_events(parse_graph("a g:vein u", "a>g", "g~u"), {"a": result_with("data")})
    assert explain(received, "g")["inputs"]["input"]["text"] == "data"


async def test_explanation_has_the_prompt() -> None:
    def asks(inputs: Any, context: Any) -> Any:
        async def tells() -> Any:
            yield node_event(context, "prompt", {"prompt": "Write.", "model": "m"})
            yield result_with("Written.")

        return tells()

    received = await run_events(parse_graph("a"), {"a": asks})
    assert explain(received, "a")["prompt"] == {"prompt": "Write.", "model": "m"}


async def test_failed_attempts_are_listed() -> None:
    def third_time(inputs: Any, context: Any) -> Any:
        async def acts() -> Any:
            if context.attempt < 3:
                raise NodeError(f"busy {context.attempt}", retryable=True)
            return result_with("done")

        return acts()

    graph = parse_graph("a", policies={"a": Policy(retry=Retry(3, 0))})
    found = explain(await run_events(graph, {"a": third_time}), "a")
    assert found["reason"].endswith(
        " It ran again after failed attempts: busy 1 (attempt 1 of 3); busy 2 (attempt 2 of 3)."
    )
    assert [(step["what"], step["attempt"]) for step in found["course"]] == [
        ("started", 1), ("tried-again", 1), ("started", 2), ("tried-again", 2), ("started", 3),
        ("completed", 3),
    ]  # fmt: skip
    assert found["course"][1]["error"]["message"] == "busy 1 (attempt 1 of 3)"


def asking(timeout_s: float | None = None) -> dict[str, Any]:
    def asks(inputs: Any, context: Any) -> Any:
        async def suspends() -> Suspension:
            return Suspension({"prompt": "ok?"}, None, timeout_s, {"decision": "reject"})

        return suspends()

    async def goes_on(inputs: Any, context: Any, state: Any, answer: Any) -> Any:
        return ExecutionResult({"output": DataValue("any", answer["decision"])})

    return {"a": asks, "a:resume": goes_on}


async def test_answer_is_explained() -> None:
    def answers(harness: ExecutionHarness, event: Event) -> None:
        if event.type == "node.waiting":
            output = {"decision": "approve", "note": "fine by me"}
            harness.execution.answer(event.data["request_id"], output)

    found = explain(await run_events(parse_graph("a"), asking(), on_event=answers), "a")
    assert found["reason"].endswith(" The answer was: approve: fine by me.")
    requested, answered = (s for s in found["course"] if s["what"] in ("asked", "answered"))
    assert requested["request"] == {"prompt": "ok?"}
    assert (answered["by"], answered["decision"], answered["note"]) == (
        "person", "approve", "fine by me",
    )  # fmt: skip
    assert answered["request_id"] == requested["request_id"]


@virtual_time
async def test_expired_request_is_explained() -> None:
    received = await run_events(parse_graph("a"), asking(60), on_event=lambda *_: None)
    found = explain(received, "a")
    assert found["reason"].endswith(" Nobody answered in time, so it continued with: reject.")
    assert found["course"][-2]["by"] == "timeout"
    waiting = explain(received[: 1 + [e.type for e in received].index("node.waiting")], "a")
    assert waiting["reason"].startswith(
        "It waits for the answer to its request until 2026-01-01T00:01:00+00:00."
    )


@virtual_time
async def test_interruptions_are_counted() -> None:
    graph = parse_graph("a")

    async def lives(stored: list[Event], **more: Any) -> list[Event]:
        journal = MemoryJournal(**more)
        harness = ExecutionHarness(
            graph, None, journal=journal, history=History(stored), is_recovery=len(stored) > 1
        )
        try:
            await harness.run()
        except Exception:  # noqa: BLE001 - the end of its process
            await asyncio.sleep(0)
        return [*stored, *journal.appended]

    stored = await lives([created_event(graph)], fail_at=2)
    assert explain(stored, "a")["status"] == "running"
    stored = await lives(await lives(stored, fail_at=2))
    found = explain(stored, "a")
    assert (
        " It was interrupted 2 times by the end of its process, and ran again." in (found["reason"])
    )
    assert [step["what"] for step in found["course"]] == [
        "started", "entered-again", "entered-again", "completed",
    ]  # fmt: skip


async def test_interrupted_decision_is_explained() -> None:
    once = Policy(effect="once")
    graph = parse_graph("a", policies={"a": once})
    received = await run_events(graph, until=is_event("node.started", "a"))
    request = {"kind": "interrupted", "message": "?", "actions": ["run_again"]}
    data = {"request_id": f"r{len(received) + 1}", "request": request}
    received.append(Event("x1", len(received) + 1, received[-1].at, "node.waiting", "a", 1, data))
    found = explain(received, "a")
    assert (found["code"], found["requests"][0]["request"]["kind"]) == (
        "waits-for-decision", "interrupted",
    )  # fmt: skip


FLOW, LINK = {"channel": "flow"}, {"channel": "link"}


def text(node_id: str, value: str) -> dict[str, Any]:
    return {"id": node_id, "type": "text", "data": {"text": value}}


def wire(edge_id: str, source: str, target: str, handle: str, data: dict[str, str]) -> Any:
    return {
        "id": edge_id,
        "source": source,
        "target": target,
        "targetHandle": handle,
        "data": data,
    }


async def told_of(nodes: list[dict[str, Any]], *edges: dict[str, Any]) -> list[Event]:
    """Run a graph with a model that repeats its prompt, and give all that is stored of it."""
    store = MemoryStore()
    services, _ = services_with(lambda request: [request.prompt])
    graph = {"nodes": nodes, "edges": list(edges)}
    built = planwave.build(graph, registry=planwave.Registry(LIBRARY))
    result = await planwave.run(built, services=services, store=store)
    return list(await store.events(result.execution_id))


async def test_flow_wire_is_named_with_overridden_value() -> None:
    found = explain(
        await told_of(
            [text("a", "wired"), text("b", "written")], wire("e", "a", "b", "text", FLOW)
        ),
        "b",
    )
    assert found["parameters"] == {
        "text": {"channel": "flow", "edge": "e", "source": "a", "over": ["inline"]}
    }
    assert found["reason"].endswith(
        " Its field 'text' was set by the flow edge from 'a', instead of the value in its data."
    )


async def test_link_wire_is_named() -> None:
    nodes = [text("l", "linked"), {"id": "b", "type": "text", "data": {"text": "written"}}]
    events = await told_of(nodes, wire("k", "l", "b", "text", LINK))
    assert explain(events, "b")["parameters"] == {
        "text": {"channel": "link", "edge": "k", "source": "l", "over": ["inline"]}
    }
    (done,) = [e for e in events if e.type == "node.completed" and e.path == "b"]
    assert done.data["outputs"]["output"]["value"] == "linked"


async def test_linked_model_parameters_are_named() -> None:
    nodes = [
        {"id": "m", "type": "model", "data": {"model": "n", "temperature": 1}},
        {"id": "ask", "type": "llm", "data": {"prompt": "Hi", "model": "m", "temperature": 0.5}},
    ]
    found = explain(await told_of(nodes, wire("k", "m", "ask", "model", LINK)), "ask")
    linked = {"channel": "link", "edge": "k", "source": "m"}
    assert found["parameters"] == {
        "temperature": {**linked, "handle": "model", "over": ["inline"]},
        "provider": {**linked, "handle": "model", "over": []},
        "model": {**linked, "over": ["inline"]},
    }
    assert "Its field 'provider' was set by the link edge from 'm' into 'model'." in found["reason"]
    assert found["prompt"]["model"] == "n"


async def test_nested_node_parameters_are_named() -> None:
    number = {"id": "n", "type": "number", "data": {"value": "{{ item }}"}}
    inside = {"nodes": [number, text("t", "")], "edges": [wire("k", "n", "t", "text", LINK)]}
    loop = {"id": "l", "type": "loop", "data": {"items": [7], "body": inside}}
    found = explain(await told_of([loop]), "l[0]/t")
    assert found["parameters"] == {
        "text": {"channel": "link", "edge": "k", "source": "n", "over": ["inline"]}
    }


async def test_unwired_parameters_are_omitted() -> None:
    found = explain(await told_of([text("a", "x")]), "a")
    assert "parameters" not in found


def event(seq: int, kind: str, **data: Any) -> Event:
    return Event("x", seq, "2026-01-01T00:00:00+00:00", kind, "n", 1, data)


def test_only_the_last_attempt_counts() -> None:
    fields = {"a": {"channel": "flow", "edge": "e", "source": "s", "over": []}}
    wired = event(2, "node.event", event_type="wired", data={"fields": fields})
    events = [event(1, "node.started"), wired]
    assert wired_parameters(events, "n") == fields
    assert wired_parameters(events, "other") == {}
    assert wired_parameters([*events, event(3, "node.started")], "n") == {}
    assert list(describe_sources(fields)) == ["Its field 'a' was set by the flow edge from 's'."]


def test_all_overridden_sources_are_named() -> None:
    fed = {"channel": "link", "edge": "e", "source": "s", "over": ["flow", "inline"]}
    assert list(describe_sources({"a": fed})) == [
        "Its field 'a' was set by the link edge from 's', instead of the flow edge and the value in its data."
    ]
