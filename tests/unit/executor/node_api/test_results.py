"""One attempt: what counts as a result, and what expressions in a node's data may name."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.executor.node_api.results import error_names, to_node_error, validate_result
from planwave.executor.program import BoundNode
from planwave.graph.model import DataValue, Graph, Node, Policy, Port, Retry
from planwave.graph.ports import fixed_outputs
from planwave.graph.protocols import ExecutionResult, NodeEvent, NodeTypeInfo, Suspension
from tests.support.engine.generic_nodes import ExecutionHarness, MemoryJournal, result_with
from tests.support.graph.fake_node_types import parse_graph
from tests.support.graph.json_values import nested_lists
from tests.support.virtual_loop import virtual_time

HERE = Path(__file__).relative_to(Path.cwd())

Inputs = Context = Any


@pytest.mark.parametrize(
    "value", [{1, 2}, float("nan"), {"\ud800": 1}, nested_lists(100_000)], ids=type
)
@virtual_time
async def test_a_result_that_is_not_json_fails_the_node(value: Any) -> None:
    harness = ExecutionHarness(
        parse_graph("a b", "a>b"),
        {"a": result_with(value, "h")},
        journal=MemoryJournal(),
    )
    assert await harness.run() == "failed"
    (failed,) = harness.data_of("node.failed")
    assert failed["error"]["code"] == "result-not-json"
    assert "'a'" in failed["error"]["message"]
    assert "'h'" in failed["error"]["message"]
    assert harness.event_names("node.blocked") == ["node.blocked b"]


ODD_RESULTS = {
    "nothing": (None, "invalid-result"),
    "a bare value": ("text", "invalid-result"),
    "a bare output": (ExecutionResult({"output": "text"}), "result-not-json"),
    "a handle that is no text": (ExecutionResult({7: DataValue("any", 1)}), "result-not-json"),
    "a handle that cannot be written": (
        ExecutionResult({"\ud800": DataValue("any", 1)}), "result-not-json",
    ),
    "a socket type that is no text": (
        ExecutionResult({"output": DataValue(object(), 1)}), "result-not-json",
    ),
    "no outputs at all": (ExecutionResult(None), "invalid-result"),  # pyright: ignore
    "outputs that are a list": (ExecutionResult([1]), "invalid-result"),  # pyright: ignore
    "the reserved handle": (ExecutionResult({"error": DataValue("any", 1)}), "invalid-result"),
    "an odd request": (Suspension({1}), "result-not-json"),
    "an odd state": (Suspension("?", object()), "result-not-json"),
}  # fmt: skip


@pytest.mark.parametrize("what", ODD_RESULTS)
@virtual_time
async def test_an_invalid_result_fails_the_node(what: str) -> None:
    result, code = ODD_RESULTS[what]

    async def act(inputs: Inputs, context: Context) -> Any:
        return result

    harness = ExecutionHarness(parse_graph("a"), {"a": act}, journal=MemoryJournal())
    assert await harness.run() == "failed"
    (failed,) = harness.data_of("node.failed")
    assert failed["error"]["code"] == code
    for event in harness.stored:
        json.dumps(event.data)


def silent(attempt: Any, event: NodeEvent) -> None:
    raise AssertionError(event)


NOBODY: Any = None


def node_of(node_type: str, *outputs: Port) -> Any:
    """A step of a node whose type declares these outputs."""
    facts = NodeTypeInfo(node_type, "", (), outputs)
    return BoundNode(Node("a", node_type, "a"), facts, object(), None, fixed_outputs(facts))


@pytest.mark.parametrize(
    ("outputs", "handle", "offered"),
    [
        ((Port("output"),), "outptu", "output"),
        ((Port("yes"), Port("no")), "output", "yes, no"),
        ((Port("case-{i}"), Port("else")), "case-x", "case-{i}, else"),
        ((Port("output"),), "error", "output"),
        ((Port("{name}"),), "error", "{name}"),
        ((), "other", "output"),
    ],
)
def test_a_result_on_an_undeclared_handle_is_rejected_with_the_declared_ones(
    outputs: tuple[Port, ...], handle: str, offered: str
) -> None:
    with pytest.raises(NodeError) as caught:
        validate_result(node_of("t", *outputs), result_with(1, handle), silent, NOBODY)
    assert caught.value.code == "invalid-result"
    assert repr(handle) in caught.value.message
    assert "'a'" in caught.value.message
    assert f"its outputs are: {offered}" in caught.value.message


@pytest.mark.parametrize(
    ("outputs", "handle"),
    [
        ((Port("yes"), Port("no")), "no"),
        ((Port("case-{i}"), Port("else")), "case-12"),
        ((Port("{name}"),), "anything"),
        ((Port("output"), Port("error")), "error"),
        ((), "output"),
    ],
)
def test_a_result_on_a_declared_handle_is_accepted(outputs: tuple[Port, ...], handle: str) -> None:
    result = result_with(1, handle)
    assert validate_result(node_of("t", *outputs), result, silent, NOBODY) is result


@virtual_time
async def test_a_suspension_of_a_type_without_resume_fails_the_attempt() -> None:
    async def asks(inputs: Inputs, context: Context) -> Any:
        return Suspension("?")

    class Dumb:
        node_type = "step"

        def execute(self, data: Any, inputs: Inputs, context: Context) -> Any:
            return asks(inputs, context)

    harness = ExecutionHarness(parse_graph("a"))
    harness.program.steps[0] = replace(harness.program.steps[0], implementation=Dumb())
    assert await harness.run() == "failed"
    assert harness.data_of("node.waiting") == []
    (failed,) = harness.data_of("node.failed")
    assert failed["error"]["code"] == "not-resumable"
    assert "'a'" in failed["error"]["message"]
    assert "resume" in failed["error"]["hint"]


@virtual_time
async def test_a_handle_may_have_a_non_ascii_name() -> None:
    harness = ExecutionHarness(parse_graph("a"), {"a": result_with(None, "größe")})
    assert await harness.run() == "completed"
    assert harness.execution.outputs["a"] == {"größe": DataValue("any", None)}


@virtual_time
async def test_a_generator_without_a_result_fails_the_node() -> None:
    async def says_nothing(inputs: Inputs, context: Context) -> Any:
        for nothing in ():
            yield nothing

    harness = ExecutionHarness(parse_graph("a"), {"a": says_nothing})
    assert await harness.run() == "failed"
    assert "gave NoneType" in harness.data_of("node.failed")[0]["error"]["message"]


@virtual_time
async def test_a_generator_is_closed_after_its_result() -> None:
    seen: list[str] = []

    async def goes_on(inputs: Inputs, context: Context) -> Any:
        try:
            yield result_with(1)
            seen.append("went on")
        finally:
            seen.append("closed")

    harness = ExecutionHarness(parse_graph("a"), {"a": goes_on})
    assert await harness.run() == "completed"
    assert seen == ["closed"]


@virtual_time
async def test_any_async_iterator_may_give_the_result() -> None:
    class Once:
        def __aiter__(self) -> Any:
            return self

        async def __anext__(self) -> Any:
            return result_with("from an iterator")

    harness = ExecutionHarness(parse_graph("a"), {"a": lambda inputs, context: Once()})
    assert await harness.run() == "completed"
    assert harness.execution.outputs["a"]["output"].value == "from an iterator"


@virtual_time
async def test_an_exception_before_the_first_await_fails_the_node() -> None:
    def breaks(inputs: Inputs, context: Context) -> Any:
        raise KeyError("x")

    harness = ExecutionHarness(parse_graph("a"), {"a": breaks})
    assert await harness.run() == "failed"


@virtual_time
async def test_a_node_that_cancels_itself_fails() -> None:
    async def gives_up(inputs: Inputs, context: Context) -> Any:
        raise asyncio.CancelledError

    harness = ExecutionHarness(parse_graph("a b"), {"a": gives_up})
    assert await harness.run() == "failed"
    assert harness.data_of("node.failed")[0]["error"]["message"] == "the node cancelled itself"
    assert "node.completed b" in harness.event_names()


# -- expressions


async def data_of_c(
    data: Any, graph: Graph, acts: Any = None, **more: Any
) -> tuple[ExecutionHarness, Any]:
    """Run a graph whose node ``c`` has these data; return the data that it was executed with."""
    got: list[Any] = []
    nodes = tuple(n._replace(data=data) if n.id == "c" else n for n in graph.nodes)
    harness = ExecutionHarness(Graph(nodes, graph.edges), acts, **more)
    implementation = harness.program.steps[-1].implementation
    execute = implementation.execute

    def record(data: Any, inputs: Inputs, context: Context) -> Any:
        if context.node_id == "c":
            got.append(data)
        return execute(data, inputs, context)

    implementation.execute = record
    await harness.run()
    return harness, got[0] if got else None


CHAIN = parse_graph("a b c", "a>b", "b>c.first", "a>c.second")


@virtual_time
async def test_expressions_may_name_inputs_ancestors_and_variables() -> None:
    data = {
        "handles": "{{ inputs.first }} {{ inputs.second }}",
        "bare": "{{ first }}",
        "far": '{{ nodes["a"].output }}',
        "goal": "{{ goal }}",
        "all": "{{ PREVIOUS_OUTPUT }}",
        "typed": "{{ inputs.second }}",
        "plain": 7,
    }
    acts = {"a": result_with({"x": [1]})}
    _, got = await data_of_c(data, CHAIN, acts, variables={"goal": "win"})
    assert got == {
        "handles": 'b {"x":[1]}',
        "bare": "b",
        "far": {"x": [1]},
        "goal": "win",
        "all": 'From b (b):\nb\n\nFrom a (a):\n{"x":[1]}',
        "typed": {"x": [1]},
        "plain": 7,
    }


@pytest.mark.parametrize(
    ("graph", "expression", "value"),
    [
        (parse_graph("a b c", "b>c.theme", "a>c"), "{{ PREVIOUS_OUTPUT }}", "a"),
        (parse_graph("a c", "a>c.odd"), "{{ input }}", "a"),
    ],
    ids=["previous output is only what reached the input", "input is the one arrival"],
)
@virtual_time
async def test_names_for_the_input_mean_its_handle_or_the_only_arrival(
    graph: Graph, expression: str, value: str
) -> None:
    _, got = await data_of_c({"x": expression}, graph)
    assert got == {"x": value}


@pytest.mark.parametrize("text", ["{{ third }}", '{{ nodes["c"].output }}', "{{ trigger }}"])
@virtual_time
async def test_an_unknown_name_fails_the_node(text: str) -> None:
    harness, got = await data_of_c({"field": text}, CHAIN)
    assert got is None
    (failed,) = harness.data_of("node.failed")
    assert failed["error"]["code"] != "node-failed"
    assert "field" in failed["error"]["message"]


# -- exceptions that are not meant to be caught


class Escape(BaseException):
    """A node's own way out, past every ``except Exception``."""


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("way_out", [GeneratorExit("x"), SystemExit("x"), Escape("x")])
@pytest.mark.usefixtures("in_checkout")
@virtual_time
async def test_an_exception_that_is_no_exception_subclass_fails_only_its_node(
    way_out: BaseException, durable: bool
) -> None:
    async def leaves(inputs: Inputs, context: Context) -> Any:
        raise way_out

    harness = ExecutionHarness(
        parse_graph("a b"), {"a": leaves}, journal=MemoryJournal() if durable else None
    )
    assert await harness.run() == "failed"
    (failed,) = harness.data_of("node.failed")
    assert failed["error"] == {
        "code": "node-failed",
        "message": f"{type(way_out).__name__}: x",
        "hint": f"raised at {HERE}:{leaves.__code__.co_firstlineno + 1}, in leaves",
    }
    assert "node.completed b" in harness.event_names()


@virtual_time
async def test_a_failure_inside_a_task_group_is_unwrapped() -> None:
    async def fails() -> None:
        raise NodeError("too warm", code="warm", hint="wait", retryable=True)

    async def a(inputs: Inputs, context: Context) -> Any:
        async with asyncio.TaskGroup() as outer, asyncio.TaskGroup() as inner:
            if context.attempt == 1:
                inner.create_task(fails())
            outer.create_task(asyncio.sleep(9))
        return result_with(1)

    policy = Policy(retry=Retry(2))
    harness = ExecutionHarness(parse_graph("a", policies={"a": policy}), {"a": a})
    assert await harness.run() == "completed"
    (again,) = harness.data_of("node.retrying")
    assert again["error"] == {
        "code": "warm", "message": "too warm (attempt 1 of 2)", "hint": "wait"
    }  # fmt: skip


@pytest.mark.parametrize("has_journal", [False, True])
def test_a_keyboard_interrupt_in_a_node_fails_it_and_is_raised(has_journal: bool) -> None:
    async def interrupted(inputs: Inputs, context: Context) -> Any:
        raise KeyboardInterrupt

    rigs: list[ExecutionHarness] = []

    @virtual_time
    async def scene() -> None:
        journal = MemoryJournal() if has_journal else None
        rigs.append(ExecutionHarness(parse_graph("a"), {"a": interrupted}, journal=journal))
        await rigs[0].run()

    with pytest.raises(KeyboardInterrupt):
        scene()
    (failed,) = rigs[0].data_of("node.failed")
    assert failed["error"]["message"].startswith("KeyboardInterrupt")


@virtual_time
async def test_an_attempt_closed_from_outside_reports_no_failure() -> None:
    async def forever(inputs: Inputs, context: Context) -> Any:
        await asyncio.Event().wait()

    harness = ExecutionHarness(parse_graph("a"), {"a": forever})
    running = asyncio.get_running_loop().create_task(harness.run())
    await asyncio.sleep(0)
    (task,) = [each for each in asyncio.all_tasks() if each.get_name() == "node of x1 a"]
    await asyncio.sleep(0)
    attempt: Any = task.get_coro()
    attempt.close()  # as the interpreter does with what is left when a loop is gone
    assert harness.data_of("node.failed") == []
    task.cancel()
    await asyncio.wait([task])
    assert task.exception() is not None
    running.cancel()
    await asyncio.wait([running])


def test_a_retry_policy_can_name_an_error_of_any_shape() -> None:
    first, second = ValueError("first"), KeyError("second")
    first.__cause__, second.__cause__ = second, first
    assert {"ValueError", "KeyError", "LookupError", "node-failed"} <= error_names(first)
    odd: Any = NodeError("odd", code=["a", "list"])  # pyright: ignore[reportArgumentType]
    assert "['a', 'list']" in error_names(odd)


class _Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("no"), "ValueError: no"),
        (ValueError(), "ValueError"),
        (AssertionError(""), "AssertionError"),
        (_Unreadable(), "_Unreadable: its text cannot be read (RuntimeError)"),
        (ValueError("x" * 20_000), f"ValueError: {'x' * 10_000}… (20,000 characters)"),
        (ValueError("a\ud800"), "ValueError: a\\ud800"),
    ],
    ids=["text", "none", "empty", "unreadable", "long", "surrogate"],
)
def test_the_message_of_any_exception_can_be_stored_and_printed(
    error: Exception, message: str
) -> None:
    assert to_node_error(error).message == message


@virtual_time
async def test_an_exception_without_readable_text_fails_only_its_node() -> None:
    def fails(*_: Any) -> Any:
        raise _Unreadable

    harness = ExecutionHarness(parse_graph("a b"), {"a": fails, "b": result_with(1, "output")})
    assert await harness.run() == "failed"
    (failed,) = harness.data_of("node.failed")
    assert failed["error"]["message"].startswith("_Unreadable: ")
    assert len(harness.data_of("node.completed")) == 1
