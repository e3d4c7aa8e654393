"""What messages mean: retries, timeouts, error policies, waiting, nested runs, what nodes say."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.errors import (
    Conflict,
    InputError,
    NodeError,
    NotFound,
    PermanentError,
    ProviderError,
    ResultNotJson,
    StoreError,
    TemplateError,
    TooManyRequests,
)
from planwave.events import Event
from planwave.executor.options import RunOptions
from planwave.graph.model import DataValue, Policy, Retry
from planwave.graph.protocols import ExecutionResult, Suspension
from tests.support.engine.behaviors import asks, forever, returns_after, runs_graph
from tests.support.engine.generic_nodes import (
    ExecutionHarness,
    MemoryJournal,
    node_event,
    result_with,
)
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

HERE = Path(__file__).relative_to(Path.cwd())

Inputs = Context = Any


def now() -> float:
    return asyncio.get_running_loop().time()


def fails_until(attempt: int, *, retryable: bool = True, at: list[float] | None = None) -> Any:
    async def act(inputs: Inputs, context: Context) -> Any:
        if at is not None:
            at.append(now())
        if context.attempt < attempt:
            raise NodeError(f"attempt {context.attempt}", retryable=retryable)
        return result_with(context.attempt)

    return act


# -- retry


@virtual_time
async def test_a_retryable_failure_is_retried_after_a_doubling_delay() -> None:
    at: list[float] = []
    graph = parse_graph("a", policies={"a": Policy(retry=Retry(4, 1.5))})
    harness = ExecutionHarness(graph, {"a": fails_until(4, at=at)})
    assert await harness.run() == "completed"
    assert at == [0, 1.5, 4.5, 10.5]
    assert harness.data_of("node.retrying")[0] == {
        "error": {"code": "node-failed", "message": "attempt 1 (attempt 1 of 4)"},
        "delay_s": 1.5,
        "next_attempt": 2,
    }
    attempts = [(e.type, e.attempt) for e in harness.stored if e.path == "a"]
    assert attempts == [
        ("node.started", 1), ("node.retrying", 1), ("node.started", 2), ("node.retrying", 2),
        ("node.started", 3), ("node.retrying", 3), ("node.started", 4), ("node.completed", 4),
    ]  # fmt: skip
    assert harness.execution.outputs["a"]["output"].value == 4


@virtual_time
async def test_the_failure_of_the_last_attempt_is_that_of_the_node() -> None:
    graph = parse_graph("a", policies={"a": Policy(retry=Retry(2, 0))})
    harness = ExecutionHarness(graph, {"a": fails_until(9)})
    assert await harness.run() == "failed"
    assert [d["error"]["message"] for d in harness.data_of("node.failed")] == [
        "attempt 2 (attempt 2 of 2)"
    ]


@pytest.mark.parametrize(
    ("retry", "delays"),
    [
        (Retry(14, 100), [*(100 * 2**n for n in range(10)), 86_400, 86_400, 86_400]),
        (Retry(1_100, 0.0), [0] * 1_099),
    ],
)
@virtual_time
async def test_a_retry_delay_doubles_up_to_a_day(retry: Retry, delays: list[float]) -> None:
    graph = parse_graph("a", policies={"a": Policy(retry=retry)})
    harness = ExecutionHarness(graph, {"a": fails_until(retry.attempts)})
    assert await harness.run() == "completed"
    assert [data["delay_s"] for data in harness.data_of("node.retrying")] == delays


@pytest.mark.parametrize("backoff_s", [100_000, 1e308])
@virtual_time
async def test_a_backoff_of_more_than_a_day_is_not_changed(
    backoff_s: float,
) -> None:
    graph = parse_graph("a", policies={"a": Policy(retry=Retry(9, backoff_s))})
    harness = ExecutionHarness(graph, {"a": fails_until(9)}, RunOptions(run_timeout_s=250_000))
    assert await harness.run() == "failed"
    assert {data["delay_s"] for data in harness.data_of("node.retrying")} == {backoff_s}


def raises(error: BaseException, cause: BaseException | None = None) -> Any:
    async def act(inputs: Inputs, context: Context) -> Any:
        raise error from cause

    return act


async def errors_of(retry: Retry, act: Any) -> tuple[list[str], str]:
    """Return the messages of the retried failures of a node, and that of the last one."""
    harness = ExecutionHarness(parse_graph("a", policies={"a": Policy(retry=retry)}), {"a": act})
    assert await harness.run() == "failed"
    (failed,) = harness.data_of("node.failed")
    return [d["error"]["message"] for d in harness.data_of("node.retrying")], failed["error"][
        "message"
    ]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (NodeError("no"), "no"),
        (ValueError("no"), "ValueError: no"),
        (ConnectionResetError("no"), "ConnectionResetError: no"),
        (StoreError("no"), "no"),
        (TooManyRequests("no", retry_after_s=1), "no"),
        (ExceptionGroup("all", [KeyError("no")]), "KeyError: 'no'"),
        (asyncio.CancelledError(), "the node cancelled itself"),
    ],
)
@virtual_time
async def test_any_failure_of_a_nodes_own_code_is_tried_again(
    error: BaseException, message: str
) -> None:
    assert await errors_of(Retry(3, 1), raises(error)) == (
        [f"{message} (attempt 1 of 3)", f"{message} (attempt 2 of 3)"],
        f"{message} (attempt 3 of 3)",
    )


@pytest.mark.parametrize(
    "error",
    [
        NodeError("no", retryable=False),
        PermanentError("no"),
        InputError("no"),
        TemplateError("no"),
        ResultNotJson("no"),
        NotFound("no"),
        ProviderError("no", provider="p"),
    ],
)
@virtual_time
async def test_an_error_that_is_not_retryable_is_not_retried(error: Exception) -> None:
    not_retried = "no (attempt 1 of 3, not retried: the error is permanent)"
    assert await errors_of(Retry(3, 1), raises(error)) == ([], not_retried)
    assert await errors_of(Retry(1), raises(error)) == ([], "no")


@virtual_time
async def test_a_result_that_cannot_be_stored_is_not_tried_again() -> None:
    retried, last = await errors_of(Retry(3), result_with({1, 2}))
    assert retried == []
    assert last.endswith(" (attempt 1 of 3, not retried: the error is permanent)")


@pytest.mark.parametrize("way_out", [SystemExit("x"), GeneratorExit("x")])
@virtual_time
async def test_an_attempt_to_end_the_process_is_not_tried_again(way_out: BaseException) -> None:
    assert (await errors_of(Retry(3), raises(way_out)))[0] == []


NO_NAME = "retry.on does not name it"
REFUSED = NodeError("no", code="rate-limited")


@pytest.mark.parametrize(
    ("on", "not_on", "act", "refusal"),
    [
        ("ValueError", "", raises(ValueError()), None),
        ("KeyError ValueError", "", raises(ValueError()), None),
        ("Exception", "", raises(ValueError()), None),
        ("ConnectionError", "", raises(ConnectionResetError()), None),
        ("node-failed", "", raises(ValueError()), None),
        ("rate-limited", "", raises(REFUSED), None),
        ("NodeError", "", raises(REFUSED), None),
        ("TimeoutError", "", raises(NodeError("no"), TimeoutError()), None),
        ("KeyError", "", raises(ExceptionGroup("all", [KeyError("no")])), None),
        ("KeyError", "", raises(ValueError()), NO_NAME),
        ("valueerror", "", raises(ValueError()), NO_NAME),
        ("busy", "", raises(REFUSED), NO_NAME),
        ("", "KeyError", raises(ValueError()), None),
        ("", "KeyError", raises(KeyError()), "retry.notOn names 'KeyError'"),
        ("", "OSError", raises(ConnectionResetError()), "retry.notOn names 'OSError'"),
        ("", "busy rate-limited", raises(REFUSED), "retry.notOn names 'rate-limited'"),
        ("OSError", "ConnectionError", raises(FileNotFoundError()), None),
        ("OSError", "ConnectionError", raises(ConnectionError()), "retry.notOn names 'ConnectionError'"),
        ("InputError", "", raises(InputError("no")), "the error is permanent"),
    ],
)  # fmt: skip
@virtual_time
async def test_a_retry_policy_names_what_it_is_for(
    on: str, not_on: str, act: Any, refusal: str | None
) -> None:
    retried, last = await errors_of(Retry(2, 0, tuple(on.split()), tuple(not_on.split())), act)
    if refusal is None:
        assert (len(retried), last.endswith(" (attempt 2 of 2)")) == (1, True)
    else:
        assert retried == []
        assert last.endswith(f" (attempt 1 of 2, not retried: {refusal})")


NAMES = st.frozensets(st.sampled_from(["ValueError", "Exception", "KeyError", "node-failed", "x"]))


@given(NAMES, NAMES)
@virtual_time
async def test_not_on_has_priority_over_on(on: frozenset[str], not_on: frozenset[str]) -> None:
    own = {"ValueError", "Exception", "node-failed"}
    retried, _ = await errors_of(Retry(2, 0, (*on,), (*not_on,)), raises(ValueError()))
    assert bool(retried) == ((not on or bool(own & on)) and not own & not_on)


@virtual_time
async def test_a_node_out_of_time_is_named_by_its_code_or_as_a_timeout_error() -> None:
    for name, attempts in (("node-timeout", 2), ("TimeoutError", 2), ("ValueError", 1)):
        policy = Policy(timeout_s=3, retry=Retry(2, 0, (name,)))
        harness = ExecutionHarness(parse_graph("a", policies={"a": policy}), {"a": forever})
        assert await harness.run() == "failed"
        assert len(harness.data_of("node.started")) == attempts


@virtual_time
async def test_the_attempts_of_a_node_and_of_a_node_inside_it_are_distinguished() -> None:
    inner = parse_graph("i", policies={"i": Policy(retry=Retry(2, 0))})
    graph = parse_graph("a", policies={"a": Policy(retry=Retry(2, 0))})
    acts = {"a": runs_graph("x", inner), "i": raises(ValueError("no"))}
    harness = ExecutionHarness(graph, acts)
    assert await harness.run() == "failed"
    (failed,) = harness.data_of("node.failed", "a")
    inside = "node 'a[x]/i' failed: ValueError: no (attempt 2 of 2)"
    assert failed["error"]["message"] == f"{inside} (attempt 2 of 2 of 'a')"


@pytest.mark.usefixtures("in_checkout")
@virtual_time
async def test_other_exceptions_are_named_and_planwave_errors_keep_code_and_hint() -> None:
    async def breaks(inputs: Inputs, context: Context) -> Any:
        raise ZeroDivisionError("division by zero")

    async def refuses(inputs: Inputs, context: Context) -> Any:
        raise InputError("not that", code="odd", hint="this")

    harness = ExecutionHarness(parse_graph("a b"), {"a": breaks, "b": refuses})
    assert await harness.run() == "failed"
    assert [d["error"] for d in harness.data_of("node.failed")] == [
        {
            "code": "node-failed",
            "message": "ZeroDivisionError: division by zero",
            "hint": f"raised at {HERE}:{breaks.__code__.co_firstlineno + 1}, in breaks",
        },
        {"code": "odd", "message": "not that", "hint": "this"},
    ]


# -- timeouts


@virtual_time
async def test_a_node_timeout_fails_the_attempt_and_can_be_retried() -> None:
    graph = parse_graph("a b", "a>b", policies={"a": Policy(timeout_s=3, retry=Retry(2, 1))})
    harness = ExecutionHarness(graph, {"a": forever})
    assert await harness.run() == "failed"
    assert now() == pytest.approx(7, abs=0.01)
    assert len(harness.data_of("node.retrying")) == 1
    (data,) = harness.data_of("node.failed")
    assert data["error"]["code"] == "node-timeout"
    assert data["duration_s"] == pytest.approx(3, abs=0.01)


@virtual_time
async def test_the_default_timeout_applies_to_nodes_without_their_own() -> None:
    async def five(inputs: Inputs, context: Context) -> Any:
        await asyncio.sleep(5)
        return result_with(1)

    graph = parse_graph("a b", policies={"b": Policy(timeout_s=10)})
    harness = ExecutionHarness(graph, {"a": five, "b": five}, RunOptions(node_timeout_s=4))
    assert await harness.run() == "failed"
    assert harness.event_names("node.failed", "node.completed") == [
        "node.failed a",
        "node.completed b",
    ]


@virtual_time
async def test_a_node_that_ignores_its_timeout_is_settled_and_its_late_result_dropped() -> None:
    release = asyncio.Event()

    async def ignores(inputs: Inputs, context: Context) -> Any:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        return result_with("late")

    async def frees(inputs: Inputs, context: Context) -> Any:
        release.set()
        await asyncio.sleep(1)
        return result_with("b")

    policies = {"a": Policy(timeout_s=1, on_error="default", default={"handle": "h", "value": 0})}
    graph = parse_graph("a b", "a.h>b", policies=policies)
    harness = ExecutionHarness(graph, {"a": ignores, "b": frees})
    assert await harness.run() == "completed"
    assert harness.execution.outputs["a"] == {"h": DataValue("any", 0)}
    assert harness.event_names("node.completed", "node.failed") == [
        "node.failed a",
        "node.completed b",
    ]


@virtual_time
async def test_a_run_timeout_fails_the_execution_with_its_own_code() -> None:
    harness = ExecutionHarness(
        parse_graph("a b", "a>b"), {"a": forever}, RunOptions(run_timeout_s=30)
    )
    assert await harness.run() == "failed"
    assert now() == 30
    assert harness.execution.error == {
        "code": "run-timeout",
        "message": "the execution did not finish within 30 s",
    }
    assert sorted(harness.event_names("node.cancelled")) == ["node.cancelled a", "node.cancelled b"]
    harness.check_sequence()


@virtual_time
async def test_too_many_events_end_the_run() -> None:
    async def chatters(inputs: Inputs, context: Context) -> Any:
        for n in range(1000):
            yield node_event(context, "log", {"message": str(n)})
            await asyncio.sleep(0)
        yield result_with(1)

    harness = ExecutionHarness(parse_graph("a"), {"a": chatters}, RunOptions(max_events=20))
    assert await harness.run() == "failed"
    assert harness.execution.error is not None
    assert harness.execution.error["code"] == "limit-exceeded"
    assert len(harness.stored) < 30
    harness.check_sequence()


# -- error policies


@virtual_time
async def test_on_error_continue_sends_the_error_from_the_error_handle() -> None:
    got: list[Any] = []

    async def takes(inputs: Inputs, context: Context) -> Any:
        got.append(inputs["input"].value)
        return result_with(1)

    graph = parse_graph("a b c", "a.error>b", "a>c", policies={"a": Policy(on_error="continue")})
    harness = ExecutionHarness(graph, {"a": fails_until(2), "b": takes})
    assert await harness.run() == "completed"
    assert got == [{"code": "node-failed", "message": "attempt 1"}]
    assert harness.event_names("node.skipped") == ["node.skipped c"]
    (failed,) = harness.data_of("node.failed")
    assert failed["handled"] is True
    assert failed["outputs"]["error"]["value"]["code"] == "node-failed"
    assert harness.data_of("execution.completed") == [{"handled_failures": ["a"]}]


@virtual_time
async def test_on_error_default_gives_the_preset_value_and_does_not_stop_the_run() -> None:
    policy = Policy(on_error="default", default={"handle": "output", "value": [7]})
    harness = ExecutionHarness(
        parse_graph("a b", "a>b", policies={"a": policy}),
        {"a": fails_until(2), "b": _echo},
        RunOptions(on_failure="stop"),
    )
    assert await harness.run() == "completed"
    assert harness.execution.outputs["b"]["output"].value == [7]
    assert harness.data_of("execution.completed") == [{"handled_failures": ["a"]}]


async def _echo(inputs: Inputs, context: Context) -> Any:
    return result_with(inputs["input"].value)


# -- what nodes say


@virtual_time
async def test_events_of_a_node_are_stored_in_order_and_before_its_completion() -> None:
    async def talks(inputs: Inputs, context: Context) -> Any:
        yield node_event(context, "delta", {"text": "Hel"})
        yield node_event(context, "delta", {"text": "hm", "kind": "reasoning"})
        yield node_event(context, "log", {"message": "one", "level": "debug"})
        yield node_event(context, "usage", {"input_tokens": 3})
        yield node_event(context, "delta", {"text": "lo"})
        yield node_event(context, "spark", {"n": 1})
        yield ExecutionResult(
            {"output": DataValue("text", "Hello")}, [node_event(context, "spark", {"n": 2})]
        )

    harness = ExecutionHarness(parse_graph("a"), {"a": talks})
    assert await harness.run() == "completed"
    assert harness.data_of("node.delta") == [
        {"kind": "text", "text": "Hel", "offset": 0},
        {"kind": "reasoning", "text": "hm", "offset": 0},
        {"kind": "text", "text": "lo", "offset": 3},
    ]
    assert harness.data_of("node.log") == [{"message": "one", "level": "debug"}]
    assert harness.data_of("usage") == [{"input_tokens": 3}]
    assert harness.data_of("node.event") == [
        {"event_type": "spark", "data": {"n": 1}},
        {"event_type": "spark", "data": {"n": 2}},
    ]
    assert [e.type for e in harness.stored][2:8] == [
        "node.started", "node.log", "usage", "node.event", "node.event", "node.completed",
    ]  # fmt: skip
    assert [e.seq for e in harness.published if e.type == "node.delta"] == [0, 0, 0]


@virtual_time
async def test_the_stream_of_a_new_attempt_starts_at_offset_zero() -> None:
    async def talks(inputs: Inputs, context: Context) -> Any:
        yield node_event(context, "delta", {"text": "abc"})
        if context.attempt == 1:
            raise NodeError("cut", retryable=True)
        yield result_with(1)

    harness = ExecutionHarness(
        parse_graph("a", policies={"a": Policy(retry=Retry(2))}), {"a": talks}
    )
    assert await harness.run() == "completed"
    deltas = [(e.attempt, e.data["offset"]) for e in harness.published if e.type == "node.delta"]
    assert deltas == [(1, 0), (2, 0)]


@virtual_time
async def test_events_after_the_timeout_of_an_attempt_are_dropped() -> None:
    async def talks(inputs: Inputs, context: Context) -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield node_event(context, "log", {"message": "too late"})
            yield node_event(context, "delta", {"text": "too late"})
        yield result_with("too late")

    harness = ExecutionHarness(parse_graph("a", policies={"a": Policy(timeout_s=1)}), {"a": talks})
    assert await harness.run() == "failed"
    assert harness.data_of("node.log") == harness.data_of("node.delta") == []
    harness.check_sequence()


@pytest.mark.parametrize("data", ["just text", None, 7, ["x"]])
@pytest.mark.parametrize("kind", ["log", "usage", "spark"])
@virtual_time
async def test_malformed_event_data_of_a_node_do_not_fail_the_run(kind: str, data: Any) -> None:
    async def talks(inputs: Inputs, context: Context) -> Any:
        yield node_event(context, kind, data)
        yield result_with(1)

    harness = ExecutionHarness(parse_graph("a"), {"a": talks})
    assert await harness.run() == "completed"
    assert all(isinstance(d, dict) for d in harness.data_of("usage") + harness.data_of("node.log"))


@virtual_time
async def test_event_data_that_are_not_json_are_logged_as_a_warning() -> None:
    async def talks(inputs: Inputs, context: Context) -> Any:
        yield node_event(context, "spark", {"n": {1, 2}})
        yield result_with(1)

    harness = ExecutionHarness(parse_graph("a"), {"a": talks})
    assert await harness.run() == "completed"
    assert harness.data_of("node.log") == [
        {"message": "event 'spark' was not stored: its data is a set", "level": "warning"}
    ]


@virtual_time
async def test_a_node_emits_events_at_once_from_callbacks_and_threads() -> None:
    async def talks(inputs: Inputs, context: Context) -> Any:
        loop = asyncio.get_running_loop()
        loop.call_soon(context.emit, "log", {"message": "from a callback"})
        context.emit("delta", {"text": "so"})
        thread = Thread(target=context.emit, args=("spark", {"n": 1}))
        thread.start()
        thread.join()
        await asyncio.sleep(1)
        seen = [(e.type, e.data) for e in harness.published if e.type in said]
        late.append(context)
        return result_with([list(each) for each in seen])

    said = ("node.delta", "node.log", "node.event")
    late: list[Context] = []
    harness = ExecutionHarness(parse_graph("a"), {"a": talks})
    assert await harness.run() == "completed"
    seen = harness.execution.outputs["a"]["output"].value
    assert [kind for kind, _ in seen] == ["node.delta", "node.log", "node.event"]
    assert seen[1][1] == {"message": "from a callback", "level": "info"}
    assert seen[2][1] == {"event_type": "spark", "data": {"n": 1}}
    late[0].emit("spark", 2)  # of an attempt that has ended: dropped
    assert len(harness.data_of("node.event")) == 1


@virtual_time
async def test_a_recorded_event_is_durable_before_the_node_goes_on() -> None:
    class SlowJournal(MemoryJournal):
        async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
            await asyncio.sleep(1)
            await super().append(execution_id, epoch, events)

    async def acts(inputs: Inputs, context: Context) -> Any:
        await context.record("tool_call_start", {"name": "pay"})
        return result_with([e.data["data"] for e in harness.stored if e.type == "node.event"])

    harness = ExecutionHarness(parse_graph("a"), {"a": acts}, journal=SlowJournal())
    assert await harness.run() == "completed"
    assert harness.execution.outputs["a"]["output"].value == [{"name": "pay"}]


@pytest.mark.parametrize(
    ("kind", "data", "code"),
    [
        ("once", {"key": "v", "value": 1}, "reserved-event"),
        ("run_graph", {}, "reserved-event"),
        ("delta", {"text": "x"}, "reserved-event"),
        ("spark", {1, 2}, "result-not-json"),
    ],
)
@virtual_time
async def test_an_event_that_cannot_be_recorded_is_refused(kind: str, data: Any, code: str) -> None:
    async def acts(inputs: Inputs, context: Context) -> Any:
        with pytest.raises(NodeError) as caught:
            await context.record(kind, data)
        return result_with(caught.value.code)

    harness = ExecutionHarness(parse_graph("a"), {"a": acts})
    assert await harness.run() == "completed"
    assert harness.execution.outputs["a"]["output"].value == code
    assert not harness.data_of("node.event")


@virtual_time
async def test_nothing_is_recorded_for_an_attempt_that_has_ended() -> None:
    late: list[Context] = []

    async def acts(inputs: Inputs, context: Context) -> Any:
        late.append(context)
        return result_with(1)

    async def later(inputs: Inputs, context: Context) -> Any:
        with pytest.raises(NodeError, match="is over"):
            await late[0].record("spark", 1)
        return result_with(2)

    harness = ExecutionHarness(parse_graph("a b", "a>b"), {"a": acts, "b": later})
    assert await harness.run() == "completed"
    assert not harness.data_of("node.event")


# -- waiting


@virtual_time
async def test_a_suspended_node_pauses_the_run_until_its_answer() -> None:
    harness = ExecutionHarness(parse_graph("a b", "a>b"), {"a": asks([1])})
    loop = asyncio.get_running_loop()

    def answer() -> None:
        assert harness.execution.status == "paused"
        harness.execution.answer(harness.request_id(), "yes")
        with pytest.raises(Conflict):
            harness.execution.answer(harness.request_id(), "again")

    loop.call_later(5, answer)
    assert await harness.run() == "completed"
    assert harness.execution.outputs["a"]["output"].value == [[1], "yes"]
    assert [t for t in harness.event_names() if not t.startswith("wave")] == [
        "execution.started", "node.started a", "node.waiting a", "execution.paused",
        "execution.resumed", "node.answered a", "node.completed a", "node.started b",
        "node.completed b", "execution.completed",
    ]  # fmt: skip
    (waiting,) = harness.data_of("node.waiting")
    assert waiting["request"] == {"for": "a"}
    assert harness.data_of("node.answered") == [
        {"request_id": waiting["request_id"], "answer": "yes"}
    ]


@virtual_time
async def test_two_requests_are_answered_one_by_one() -> None:
    harness = ExecutionHarness(parse_graph("a b"), {"a": asks(), "b": asks()})
    harness.answer_after(1, number=1)
    harness.answer_after(2, number=0)
    assert await harness.run() == "completed"
    assert (
        len(harness.data_of("execution.paused")) == len(harness.data_of("execution.resumed")) == 2
    )


@virtual_time
async def test_a_resumed_node_may_suspend_again_or_be_retried_from_the_top() -> None:
    async def resumed(inputs: Inputs, context: Context, state: Any, answer: Any) -> Any:
        if answer == "again":
            return Suspension({"q": 2}, state)
        if context.attempt == 1:
            raise NodeError("shaky", retryable=True)
        return result_with(answer)

    graph = parse_graph("a", policies={"a": Policy(retry=Retry(2, 1))})
    harness = ExecutionHarness(graph, {"a": asks(), "a:resume": resumed})
    harness.answer_after(1, "again", 0)
    harness.answer_after(2, "no", 1)
    harness.answer_after(9, "yes", 2)
    assert await harness.run() == "completed"
    assert harness.execution.outputs["a"]["output"].value == "yes"
    assert len({d["request_id"] for d in harness.data_of("node.waiting")}) == 3


@virtual_time
async def test_a_resumed_node_may_stream_and_emit_events() -> None:
    async def resumed(inputs: Inputs, context: Context, state: Any, answer: Any) -> Any:
        yield node_event(context, "delta", {"text": "so ", "kind": "text"})
        yield node_event(context, "thought", {"of": answer})
        yield result_with(answer)

    harness = ExecutionHarness(parse_graph("a"), {"a": asks(), "a:resume": resumed})
    harness.answer_after(1, "yes")
    assert await harness.run() == "completed"
    assert harness.execution.outputs["a"]["output"].value == "yes"
    assert harness.data_of("node.event") == [{"event_type": "thought", "data": {"of": "yes"}}]
    assert [delta["text"] for delta in harness.data_of("node.delta")] == ["so "]


# -- nested runs


@virtual_time
async def test_a_nested_run_has_its_own_paths_and_waves() -> None:
    inner = parse_graph("summarise then", "summarise>then")
    harness = ExecutionHarness(
        parse_graph("loop after", "loop>after"), {"loop": runs_graph("2", inner)}
    )
    assert await harness.run() == "completed"
    assert harness.execution.outputs["loop"]["output"].value == {
        "summarise": {"output": "summarise"},
        "then": {"output": "then"},
    }
    assert "node.completed loop[2]/summarise" in harness.event_names()
    assert harness.event_names("wave.started") == [
        "wave.started", "wave.started loop[2]", "wave.started loop[2]", "wave.started",
    ]  # fmt: skip
    harness.check_sequence()


@virtual_time
async def test_the_inputs_of_a_nested_run_settle_its_nodes() -> None:
    inner = parse_graph("i j", "i>j")
    harness = ExecutionHarness(
        parse_graph("a"), {"a": runs_graph("k", inner, {"i": {"output": 5}}), "j": _echo}
    )
    assert await harness.run() == "completed"
    assert harness.execution.outputs["a"]["output"].value["j"] == {"output": 5}
    assert "node.started a[k]/i" not in harness.event_names()


@virtual_time
async def test_a_known_key_gives_the_stored_result_also_in_a_later_attempt() -> None:
    inner = parse_graph("i")

    async def act(inputs: Inputs, context: Context) -> Any:
        first = await context.runtime.run_graph("k", inner, {})
        assert await context.runtime.run_graph("k", inner, {}) == first
        if context.attempt == 1:
            raise NodeError("again", retryable=True)
        return result_with(first["i"]["output"].value)

    harness = ExecutionHarness(parse_graph("a", policies={"a": Policy(retry=Retry(2))}), {"a": act})
    assert await harness.run() == "completed"
    assert harness.event_names("node.started").count("node.started a[k]/i") == 1


@virtual_time
async def test_a_node_that_ends_cancels_its_nested_run() -> None:
    async def leaves(inputs: Inputs, context: Context) -> Any:
        async with asyncio.TaskGroup() as group:
            group.create_task(context.runtime.run_graph("k", parse_graph("i"), {}))
            await asyncio.sleep(1)
            raise NodeError("changed my mind")

    harness = ExecutionHarness(
        parse_graph("a b c", "b>c"), {"a": leaves, "i": forever, "b": returns_after(5)}
    )
    assert await harness.run() == "failed"
    assert "node.cancelled a[k]/i" in harness.event_names()
    assert "node.completed c" in harness.event_names()
    harness.check_sequence()


@virtual_time
async def test_a_nested_run_without_callers_is_cancelled() -> None:
    async def gives_up(inputs: Inputs, context: Context) -> Any:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await context.runtime.run_graph("k", parse_graph("i"), {})
        await asyncio.sleep(5)
        return result_with("went on")

    harness = ExecutionHarness(
        parse_graph("a b", policies={"a": Policy(timeout_s=20)}),
        {"a": gives_up, "i": forever, "b": returns_after(5)},
        RunOptions(max_parallel=2, run_timeout_s=100),
    )
    assert await harness.run() == "completed"
    assert harness.event_names("node.cancelled", "node.completed") == [
        "node.cancelled a[k]/i", "node.completed b", "node.completed a",
    ]  # fmt: skip
    assert now() == 6


@virtual_time
async def test_an_abandoned_attempt_cannot_start_nested_runs() -> None:
    async def stubborn(inputs: Inputs, context: Context) -> Any:
        if context.attempt == 1:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            await context.runtime.run_graph("late", parse_graph("i"), {})
        await asyncio.sleep(2)
        return result_with(context.attempt)

    graph = parse_graph("a", policies={"a": Policy(timeout_s=3, retry=Retry(2, 1))})
    harness = ExecutionHarness(graph, {"a": stubborn}, RunOptions(run_timeout_s=100))
    assert await harness.run() == "completed"
    assert "node.started a[late]/i" not in harness.event_names()
    assert harness.execution.outputs["a"]["output"].value == 2


@virtual_time
async def test_a_node_can_read_its_remaining_time() -> None:
    seen: list[float] = []

    async def looks(inputs: Inputs, context: Context) -> Any:
        seen.append(context.time_left_s())
        await asyncio.sleep(3)
        seen.append(context.time_left_s())
        return result_with(1)

    harness = ExecutionHarness(parse_graph("a", policies={"a": Policy(timeout_s=10)}), {"a": looks})
    assert await harness.run() == "completed"
    unlimited = ExecutionHarness(parse_graph("a"), {"a": looks})
    assert await unlimited.run() == "completed"
    assert seen == pytest.approx([10, 7, math.inf, math.inf])
