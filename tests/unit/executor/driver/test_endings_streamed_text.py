"""What an attempt had streamed is stored where it does not complete, and nothing else follows from it."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.errors import NodeError
from planwave.events import fold
from planwave.executor.driver.execution import Execution
from planwave.executor.options import RunOptions
from planwave.executor.recovery.history import History
from planwave.graph.json_values import size_of
from planwave.graph.model import Policy, Retry
from planwave.graph.protocols import Suspension
from tests.support.engine.generic_nodes import ExecutionHarness, node_event, result_with
from tests.support.examples import examples
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

Inputs = Context = Any
Pieces = list[tuple[str, str]]


def streams(pieces: Pieces, *, then: BaseException | Suspension | None = None) -> Any:
    """A node that streams pieces, one a second, and then fails, waits, or completes."""

    async def act(inputs: Inputs, context: Context) -> Any:
        for kind, text in pieces:
            yield node_event(context, "delta", {"text": text, "kind": kind})
            await asyncio.sleep(1)
        if isinstance(then, BaseException):
            raise then
        yield result_with("done") if then is None else then

    return act


def documents(streamed: dict[str, str]) -> dict[str, Any]:
    return {kind: {"type": "text", "value": text} for kind, text in streamed.items()}


def joined(pieces: Pieces) -> dict[str, str]:
    texts = {kind: "".join(text for own, text in pieces if own == kind) for kind, _ in pieces}
    return {kind: text for kind, text in texts.items() if text and kind in ("text", "reasoning")}


async def cancelled_after(harness: ExecutionHarness, delay_s: float, path: str = "") -> str:
    execution = harness.execution
    cancel = (
        (lambda: execution.cancel_node(path, "stop")) if path else lambda: execution.cancel("stop")
    )
    asyncio.get_running_loop().call_later(delay_s, cancel)
    return await harness.run()


PIECES: Pieces = [("reasoning", "So: "), ("text", "Lis"), ("text", "bon…"), ("text", " never")]
SO_FAR = {"reasoning": "So: ", "text": "Lisbon…"}


@virtual_time
async def test_a_cancelled_step_keeps_what_it_had_streamed() -> None:
    harness = ExecutionHarness(parse_graph("a b", "a>b"), {"a": streams(PIECES)})
    assert await cancelled_after(harness, 2.5) == "cancelled"
    assert harness.data_of("node.cancelled") == [
        {"cause": "stop", "streamed": documents(SO_FAR)},
        {"cause": "stop"},
    ]


@virtual_time
async def test_a_step_that_is_cancelled_alone_keeps_what_it_had_streamed() -> None:
    harness = ExecutionHarness(parse_graph("a"), {"a": streams(PIECES)})
    assert await cancelled_after(harness, 2.5, "a") == "failed"
    assert harness.data_of("node.cancelled") == [{"cause": "stop", "streamed": documents(SO_FAR)}]


@virtual_time
async def test_a_step_that_waits_for_an_answer_keeps_what_it_had_streamed_before() -> None:
    for path in ("", "a"):
        acts = {"a": streams(PIECES[:3], then=Suspension({"ask": 1}))}
        harness = ExecutionHarness(parse_graph("a"), acts)
        await cancelled_after(harness, 9.0, path)
        assert harness.data_of("node.cancelled") == [
            {"cause": "stop", "streamed": documents(SO_FAR)}
        ]


@virtual_time
async def test_the_deadline_of_the_run_keeps_what_was_streamed() -> None:
    options = RunOptions(run_timeout_s=2.5)
    harness = ExecutionHarness(parse_graph("a"), {"a": streams(PIECES)}, options)
    assert await harness.run() == "failed"
    assert harness.data_of("node.cancelled")[0]["streamed"] == documents(SO_FAR)


@virtual_time
async def test_steps_inside_a_step_that_is_cancelled_keep_what_they_had_streamed() -> None:
    async def nests(inputs: Inputs, context: Context) -> Any:
        await context.runtime.run_graph("k", parse_graph("i"), {})
        raise AssertionError

    harness = ExecutionHarness(parse_graph("a"), {"a": nests, "i": streams(PIECES)})
    await cancelled_after(harness, 2.5)
    of_inner, of_outer = harness.data_of("node.cancelled")
    assert (of_inner["streamed"], "streamed" in of_outer) == (documents(SO_FAR), False)


@virtual_time
async def test_attempts_that_fail_or_run_out_of_time_keep_what_they_had_streamed() -> None:
    fails = {"a": streams(PIECES[:3], then=NodeError("cut off"))}
    harness = ExecutionHarness(parse_graph("a", policies={"a": Policy(retry=Retry(2, 1))}), fails)
    assert await harness.run() == "failed"
    for event_type in ("node.retrying", "node.failed"):
        assert [each["streamed"] for each in harness.data_of(event_type)] == [documents(SO_FAR)]
    slow = ExecutionHarness(
        parse_graph("a", policies={"a": Policy(timeout_s=2.5)}), {"a": streams(PIECES)}
    )
    assert await slow.run() == "failed"
    assert slow.data_of("node.failed")[0]["streamed"] == documents(SO_FAR)


@virtual_time
async def test_discarded_text_is_not_kept_and_that_after_it_is() -> None:
    async def act(inputs: Inputs, context: Context) -> Any:
        yield node_event(context, "delta", {"text": "void"})
        await context.record("text_discarded", {"message": "again"})
        yield node_event(context, "delta", {"text": "kept"})
        raise NodeError("cut off")

    harness = ExecutionHarness(parse_graph("a"), {"a": act})
    assert await harness.run() == "failed"
    assert harness.data_of("node.failed")[0]["streamed"] == documents({"text": "kept"})


class Services:
    """The services of nodes that know one secret."""

    def redact(self, value: Any) -> Any:
        return value.replace("s3cret", "[secret]") if isinstance(value, str) else value


@virtual_time
async def test_a_secret_that_came_in_two_pieces_is_not_stored() -> None:
    pieces = [("text", "it is s3c"), ("text", "ret.")]
    harness = ExecutionHarness(
        parse_graph("a"), {"a": streams(pieces, then=NodeError("x"))}, services=Services()
    )
    await harness.run()
    assert harness.data_of("node.failed")[0]["streamed"] == documents({"text": "it is [secret]."})


SLACK = 64 * 1024


@given(st.integers(0, 40), st.integers(1, 60), st.integers(5, 9), st.integers(1, 90_000))
@settings(max_examples=examples(40), deadline=None)
@virtual_time
async def test_no_part_of_a_secret_is_stored_where_text_is_cut(
    before: int, secrets: int, most: int, after: int
) -> None:
    pieces = [("text", "." * before + "s3cret" * secrets), ("text", "x" * after)]
    pieces.insert(1, ("text", "s3cret" * (SLACK // 6)))
    harness = ExecutionHarness(
        parse_graph("a"),
        {"a": streams(pieces, then=NodeError("x"))},
        RunOptions(max_result_bytes=most * 10),
        services=Services(),
    )
    await harness.run()
    streamed = harness.data_of("node.failed")[0]["streamed"]["text"]["value"]
    whole = "." * before + "[secret]" * (secrets + SLACK // 6)
    assert whole.startswith(streamed)
    assert most * 10 - 2 == len(streamed)


@pytest.mark.parametrize(("kind", "bound_mb"), [("audio", 2), ("text", 3), ("reasoning", 3)])
@virtual_time
async def test_what_is_never_stored_does_not_stay_in_memory(kind: str, bound_mb: int) -> None:
    sizes: list[int] = []

    async def act(inputs: Inputs, context: Context) -> Any:
        tracemalloc.start()
        try:
            for n in range(20):
                yield node_event(context, "delta", {"text": f"{n % 10}" * 1_000_000, "kind": kind})
            sizes.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
        raise NodeError("cut off")

    program = ExecutionHarness(parse_graph("a"), {"a": act}).program
    options = RunOptions(max_result_bytes=1_000_000)
    execution = Execution(program, execution_id="x", options=options)
    assert await execution.run() == "failed"
    assert sizes[0] < bound_mb * 1_000_000


@pytest.mark.parametrize("options", [{"max_result_bytes": 12}, {"max_state_bytes": 12}])
@virtual_time
async def test_as_much_is_kept_as_a_result_may_have(options: dict[str, int]) -> None:
    pieces = [("text", "äöü" * 10), ("reasoning", "r" * 30)]
    harness = ExecutionHarness(
        parse_graph("a"), {"a": streams([*pieces, ("text", "…")])}, RunOptions(**options)
    )
    assert await cancelled_after(harness, 2.5) == "cancelled"
    streamed = harness.data_of("node.cancelled")[0]["streamed"]
    assert streamed["text"]["value"] == "äöüäö"
    assert streamed.get("reasoning", {"value": "r" * 10})["value"] == "r" * 10
    assert ("reasoning" in streamed) == ("max_result_bytes" in options)


pieces_of_a_step = st.lists(
    st.tuples(st.sampled_from(["text", "reasoning", "progress"]), st.text(max_size=5)), max_size=6
)


@given(
    pieces_of_a_step,
    st.integers(0, 7),
    st.sampled_from(["cancel", "cancel node", "deadline", "timeout", "failure", "completion"]),
    st.one_of(st.none(), st.integers(2, 40)),
)
@settings(max_examples=examples(80), deadline=None)
@virtual_time
async def test_what_is_stored_is_what_was_seen(
    pieces: Pieces, seconds: int, end: str, most: int | None
) -> None:
    cut_s = seconds + 0.5
    policy = Policy(timeout_s=cut_s if end == "timeout" else None)
    options = RunOptions(
        run_timeout_s=cut_s if end == "deadline" else None, max_result_bytes=most or 10_000
    )
    then = NodeError("x") if end == "failure" else None
    harness = ExecutionHarness(
        parse_graph("a", policies={"a": policy}), {"a": streams(pieces, then=then)}, options
    )
    if end.startswith("cancel"):
        await cancelled_after(harness, cut_s, "a" if end == "cancel node" else "")
    else:
        await harness.run()
    live, again = fold(harness.published).nodes["a"], fold(harness.stored).nodes["a"]
    if live.status == "completed":
        assert "streamed" not in harness.data_of("node.completed")[0]
        assert again.text == again.reasoning == ""
        return
    assert live == again
    assert (live.text, live.reasoning) == (again.text, again.reasoning)
    was_cut = end in ("cancel", "cancel node", "deadline", "timeout")
    seen = joined(pieces[: int(cut_s) + 1] if was_cut else pieces)
    for kind, text in seen.items():
        stored = getattr(again, kind)
        assert text.startswith(stored)
        assert stored == text or size_of(text) > (most or 10_000)
    ends = [e for e in harness.stored if e.type in ("node.cancelled", "node.failed")]
    sizes = [size_of(each["value"]) for each in ends[0].data.get("streamed", {}).values()]
    history = History(harness.stored)
    assert (history.state_bytes, history.streamed_bytes) == (0, sum(sizes))


@pytest.mark.parametrize("is_resumed", [False, True])
@virtual_time
async def test_text_of_failed_attempts_does_not_count_towards_what_a_run_may_give(
    is_resumed: bool,
) -> None:
    talks = streams([("text", "x" * 40_000)], then=NodeError("cut off"))
    begun: list[None] = []

    async def act(inputs: Inputs, context: Context) -> Any:
        begun.append(None)
        if len(begun) < 4:
            async for each in talks(inputs, context):
                yield each
        yield result_with("y" * 40_000)

    graph = parse_graph("a", policies={"a": Policy(retry=Retry(4, 1))})
    options = RunOptions(max_state_bytes=100_000)
    harness = ExecutionHarness(graph, {"a": act}, options)
    retries: list[dict[str, Any]] = []
    if is_resumed:
        harness.interrupt_after(1.5)
        await harness.run()
        retries += harness.data_of("node.retrying")
        past = History(harness.stored)
        harness = ExecutionHarness(graph, {"a": act}, options, history=past)
    assert await harness.run() == "completed"
    retries += harness.data_of("node.retrying")
    kept = [len(each["streamed"]["text"]["value"]) for each in retries]
    assert kept[:2] == [40_000, 40_000]
    assert 19_900 < kept[2] < 20_000
    assert harness.execution.result_bytes == 40_002
