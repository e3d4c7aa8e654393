"""Runs used wrongly or from other threads: refused with the way out, and never left hanging."""

from __future__ import annotations

import asyncio
import gc
import threading
import traceback
from pathlib import Path
from typing import Any

import pytest

import planwave
from planwave.errors import StoreError
from planwave.nodes.library import LIBRARY

FLOW = {"channel": "flow"}
TEXT = {"nodes": [{"id": "t", "type": "text", "data": {"text": "hi"}}], "edges": []}
APPROVAL: dict[str, Any] = {
    "nodes": [
        {"id": "s", "type": "start"},
        {"id": "ask", "type": "approval", "data": {"prompt": "Send?", "actions": ["send"]}},
    ],
    "edges": [{"source": "s", "target": "ask", "data": FLOW}],
}


def one_node(registry: planwave.Registry, node_type: str) -> planwave.BuiltGraph:
    graph = {
        "nodes": [
            {"id": "s", "type": "start", "data": {"initialInput": "x"}},
            {"id": "a", "type": node_type},
        ],
        "edges": [{"source": "s", "target": "a", "data": FLOW}],
    }
    return planwave.build(graph, registry=registry)


def unstarted() -> planwave.Run:
    """Return a run that never begins, and that nobody has to await."""
    run = planwave.run(TEXT)
    run.cancel()
    return run


@pytest.fixture
def registry() -> planwave.Registry:
    return planwave.Registry(LIBRARY)


async def test_a_sync_function_that_raises_stop_iteration_fails_its_node(
    registry: planwave.Registry,
) -> None:
    @planwave.node("first", registry=registry)
    def first(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        return next(iter(()))

    async with asyncio.timeout(5):
        result = await planwave.run(one_node(registry, "first"), check=False)
    assert [each.message for each in result.failures] == [
        "RuntimeError: function raised StopIteration"
    ]


def test_a_run_that_blocks_a_thread_is_cancelled_from_another(registry: planwave.Registry) -> None:
    started = threading.Event()

    @planwave.node("forever", registry=registry)
    async def forever(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        started.set()
        await asyncio.sleep(20)
        return input

    run = planwave.run(one_node(registry, "forever"))

    def cancel() -> None:
        started.wait(5)
        run.cancel()

    other = threading.Thread(target=cancel)
    other.start()
    assert run.wait().status == "cancelled"
    other.join()


async def test_a_waiting_run_is_answered_from_another_thread() -> None:
    run = planwave.run(APPROVAL, "Dear Ann")
    async for event in run:
        if event.type == "node.waiting":
            request_id = event.data["request_id"]
            await asyncio.to_thread(run.answer, request_id, {"decision": "send"})
    assert (await run).status == "completed"


@pytest.mark.parametrize("store", [5, b"runs", ["runs"]])
def test_a_store_of_another_type_is_refused_before_anything_runs(store: Any) -> None:
    with pytest.raises(TypeError, match="must be the path of a directory or a store, not"):
        planwave.run(TEXT, store=store)
    with pytest.raises(TypeError, match="must be the path of a directory or a store, not"):
        planwave.open(store, "x")


def test_the_class_of_a_store_is_no_store() -> None:
    store: Any = planwave.MemoryStore
    with pytest.raises(TypeError, match=r"is the class MemoryStore, .* planwave\.MemoryStore\(\)"):
        planwave.run(TEXT, store=store)


def test_a_sqlite_store_is_opened_with_a_path_or_its_text(tmp_path: Path) -> None:
    store = planwave.SqliteStore.open(str(tmp_path))
    assert planwave.run_sync(TEXT, store=store).text == "hi"
    asyncio.run(store.close())
    with pytest.raises(StoreError) as closed:
        planwave.run_sync(TEXT, store=store)
    assert (closed.value.message, closed.value.hint) == (
        "the store was closed",
        "open the store again",
    )
    directory: Any = "runs"
    with pytest.raises(TypeError, match=r"opened: planwave\.SqliteStore\.open\('runs'\)"):
        planwave.SqliteStore(directory)


@pytest.mark.parametrize("path", ["a\0b", "a" * 300])
def test_a_path_that_cannot_exist_is_no_store(path: str) -> None:
    with pytest.raises(StoreError, match="cannot be used"):
        planwave.run_sync(TEXT, store=path)
    with pytest.raises(StoreError, match="there is no directory"):
        planwave.open(path, "x")


def test_an_empty_path_is_no_store() -> None:
    with pytest.raises(ValueError, match="the store is an empty path"):
        planwave.run(TEXT, store="")


def test_opening_an_execution_creates_no_directory(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no directory"):
        planwave.open(tmp_path / "typo", "x")
    assert not (tmp_path / "typo").exists()


async def test_a_directory_that_this_process_has_open_says_how_to_share_it(tmp_path: Path) -> None:
    store = planwave.SqliteStore.open(tmp_path)
    try:
        with pytest.raises(StoreError) as refused:
            await planwave.run(TEXT, store=tmp_path)
        assert "open it once and pass that to each" in (refused.value.hint or "")
        assert (await planwave.run(TEXT, store=store)).text == "hi"
    finally:
        await store.close()


def test_options_and_rerun_of_another_type_are_refused() -> None:
    options: Any = {"scheduling": "waves"}
    executor = planwave.Executor
    for refused in (lambda: planwave.run(TEXT, options=options), lambda: executor(options=options)):
        with pytest.raises(TypeError, match=r"options must be planwave\.RunOptions"):
            refused()
    with pytest.raises(TypeError, match=r"write rerun=\['t'\]"):
        planwave.run_sync(TEXT).run.fork(rerun="t")


CHANGES_FORM = (
    r'changes must be \{node_id: \{"description": …, "data": \{…\}\} or \{"outputs": \{…\}\}\}'
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"changes": 5}, rf"{CHANGES_FORM}, not 5"),
        ({"changes": [("t", {})]}, rf"{CHANGES_FORM}, not \[\("),
        ({"changes": {1: {}}}, rf"{CHANGES_FORM}; the key 1 is not text"),
        ({"set": "t.text=5"}, r"""set must be \{"node.field": value\}, not 't.text=5'"""),
        ({"set": {1: 2}}, r"the key 1 is not text"),
        ({"rerun": 5}, "rerun must be a list of node ids, not 5"),
        ({"rerun": {"t": 1}}, "rerun must be a list of node ids, not {'t': 1}"),
    ],
)
def test_fork_refuses_arguments_of_another_type(arguments: Any, message: str) -> None:
    run = planwave.run_sync(TEXT).run
    with pytest.raises(TypeError, match=message):
        run.fork(**arguments)


FORK_HINT = (
    'write {"description": "the task"}, {"data": {…}} or both, or {"outputs": {handle: value}}'
)


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ({"changes": {"t": 5}}, "the change of node 't' is 5, must be an object", FORK_HINT),
        (
            {"changes": {"t": 5}, "set": {"t.text": "x"}},
            "the change of node 't' is 5, must be an object",
            FORK_HINT,
        ),
        ({"changes": {"t": None}}, "the change of node 't' is null, must be an object", FORK_HINT),
        ({"changes": {"zz": {"data": {}}}}, "the execution has no node 'zz'", "its nodes are t"),
        (
            {"changes": {"t": {"data": {1: 2}}}},
            "/changes/t/data has the key 1, which is not text",
            "keys of JSON objects are text",
        ),
        (
            {"set": {"t": 5}},
            "'t' is not a field of a step",
            "write NODE.FIELD; the steps are t",
        ),
    ],
)
def test_fork_refuses_changes_that_cannot_be_made(arguments: Any, message: str, hint: str) -> None:
    fork = planwave.run_sync(TEXT).run.fork(**arguments)
    with pytest.raises(planwave.InputError) as caught:
        fork.wait()
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_inputs_with_keys_that_are_not_text_are_refused() -> None:
    inputs: Any = {"t": {1: 2}}
    with pytest.raises(planwave.InputError) as caught:
        planwave.run_sync(TEXT, inputs=inputs)
    assert caught.value.message.endswith(": / has the key 1, which is not text")
    assert caught.value.hint == "keys of JSON objects are text"


def test_arguments_of_a_graph_of_another_type_are_refused() -> None:
    five: Any = 5
    with pytest.raises(TypeError, match=r"registry must be a planwave\.Registry, not 5"):
        planwave.build(TEXT, registry=five)
    with pytest.raises(TypeError, match=r"images must be a list of URLs: write images=\['u'\]"):
        planwave.run(TEXT, "hi", images="u")
    with pytest.raises(TypeError, match="a goal is text, not 5"):
        planwave.run(TEXT, goal=five)
    with pytest.raises(TypeError, match="check is True or False, not 5"):
        planwave.run(TEXT, check=five)
    with pytest.raises(TypeError, match="require_approval is True or False, not 5"):
        planwave.run(TEXT, require_approval=five)


@pytest.mark.parametrize("arguments", [{"options": {"scheduling": "waves"}}, {"store": 5}])
def test_arguments_of_another_type_are_refused_before_a_goal_is_planned(
    arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def plan(*_: Any, **__: Any) -> planwave.Plan:
        raise AssertionError("planned")

    monkeypatch.setattr("planwave.library.plan", plan)
    with pytest.raises(TypeError, match="must be"):
        planwave.run_goal_sync("Write a poem", **arguments)


def test_a_run_is_shown_by_its_id() -> None:
    run = unstarted()
    assert repr(run) == f"<Run {run.execution_id}>"
    retry = run.retry()
    assert repr(retry) == "<Run: a fork that has not begun>"
    retry.cancel()


def test_a_node_event_needs_no_run_id_and_no_data() -> None:
    event = planwave.NodeEvent("a", "text", "note")
    assert (event.run_id, event.data) == ("", None)


ECHO: dict[str, Any] = {
    "nodes": [
        {"id": "product", "type": "start"},
        {"id": "b", "type": "text", "data": {"text": "Buy {{ input }}"}},
    ],
    "edges": [{"source": "product", "target": "b", "data": FLOW}],
}


def test_a_run_without_the_input_that_it_reads_warns_at_the_line_of_its_caller() -> None:
    message = (
        "the entry node 'product' has no input and begins with an empty value; pass a "
        "message, inputs={'product': {'output': …}}, or give the node data of its own"
    )
    graph = planwave.build(ECHO)
    runs = (planwave.run, planwave.Executor().execute)
    for call in (planwave.run_sync, *(lambda graph, run=run: run(graph).cancel() for run in runs)):
        with pytest.warns(UserWarning, match="has no input") as warned:
            call(graph)
        assert [str(each.message) for each in warned] == [message]
        assert warned[0].filename == __file__


def test_a_run_with_its_input_does_not_warn() -> None:
    given = planwave.build(ECHO)
    assert planwave.run_sync(given, "tea").text == "Buy tea"
    inputs = {"product": {"output": "tea"}}
    assert planwave.run_sync(ECHO, inputs=inputs).text == "Buy tea"
    options = planwave.RunOptions(run_from=("b",))
    assert planwave.run_sync(ECHO, options=options).status == "completed"


_RUN_ARGUMENTS = (
    "graph, message, images, inputs, options, services, store, goal, registry, check, "
    "require_approval"
)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: planwave.run_sync(ECHO, input="tea"),
            "planwave.run_sync has no argument 'input'; did you mean 'inputs'?",
        ),
        (
            lambda: planwave.run_sync(ECHO, scheduling="waves"),
            "planwave.run_sync has no argument 'scheduling'; pass "
            "options=planwave.RunOptions(scheduling=…)",
        ),
        (
            lambda: planwave.Executor().execute(ECHO, nonsense=1),
            f"planwave.run has no argument 'nonsense'; its arguments are {_RUN_ARGUMENTS}",
        ),
        (
            lambda: planwave.run_sync(ECHO, mesage="tea"),
            "planwave.run_sync has no argument 'mesage'; did you mean 'message'?",
        ),
        (
            lambda: planwave.plan("a goal", modell="m"),
            "planwave.plan has no argument 'modell'; did you mean 'model'?",
        ),
        (
            lambda: planwave.plan_sync("a goal", modell="m"),
            "planwave.plan_sync has no argument 'modell'; did you mean 'model'?",
        ),
        (
            lambda: planwave.plan("a goal", "openai"),  # type: ignore[call-arg]
            "planwave.plan takes only goal by position; write provider=…, model=…, on_progress=…, answers=…",
        ),
        (
            lambda: unstarted().answer("r1", decison="send"),  # type: ignore[call-arg]
            "run.answer has no argument 'decison'; did you mean 'decision'?",
        ),
        (
            lambda: unstarted().fork(sets={}),  # type: ignore[call-arg]
            "run.fork has no argument 'sets'; did you mean 'set'?",
        ),
        (
            lambda: unstarted().fork({"t.text": "x"}),  # type: ignore[call-arg]
            "run.fork takes no argument by position; write set=…, changes=…, rerun=…, graph=…",
        ),
        (
            lambda: planwave.run_goal("a goal", scheduling="waves"),
            "planwave.run_goal has no argument 'scheduling'; pass "
            "options=planwave.RunOptions(scheduling=…)",
        ),
    ],
)
def test_an_unknown_argument_says_which_one_is_meant(call: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == message


def frames_of(error: BaseException) -> list[str]:
    return [Path(frame.filename).name for frame in traceback.extract_tb(error.__traceback__)]


def test_the_traceback_of_a_failed_run_ends_near_the_line_of_its_caller(
    registry: planwave.Registry,
) -> None:
    @planwave.node("fails", registry=registry)
    def fails(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        raise ValueError("no")

    graph = one_node(registry, "fails")
    here = Path(__file__).name
    for call in (
        lambda: planwave.run_sync(graph),
        lambda: planwave.run(graph).wait(),
        lambda: planwave.build("{"),
        lambda: planwave.run_sync(graph, inputs={"nobody": {"output": 1}}),
    ):
        with pytest.raises(planwave.PlanwaveError) as caught:
            call()
        assert frames_of(caught.value)[1:] == [here, "source_locations.py"]
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


async def test_the_traceback_of_an_awaited_failed_run_is_short(
    registry: planwave.Registry,
) -> None:
    @planwave.node("fails", registry=registry)
    def fails(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        raise ValueError("no")

    with pytest.raises(planwave.ExecutionFailed) as caught:
        await planwave.run(one_node(registry, "fails"))
    assert frames_of(caught.value)[1:] == ["runs.py", "results.py"]


def test_the_hint_of_an_exceeded_bound_names_the_option_of_a_run() -> None:
    options = planwave.RunOptions(max_steps=1)
    result = planwave.run_sync(ECHO, "x", options=options, check=False)
    assert result.status == "completed"
    chain = {**ECHO, "nodes": [*ECHO["nodes"], {"id": "c", "type": "end"}]}
    chain["edges"] = [*ECHO["edges"], {"source": "b", "target": "c", "data": FLOW}]
    with pytest.raises(planwave.ExecutionFailed) as caught:
        planwave.run_sync(chain, "x", options=options)
    assert str(caught.value) == "limit steps for starts of nodes in one execution is 1, met 2"
    assert caught.value.hint == "let the run do less, or raise its option max_steps"


async def test_the_hint_of_an_error_is_in_its_traceback(registry: planwave.Registry) -> None:
    with pytest.raises(planwave.InputError) as caught:
        planwave.run("write a poem")
    assert "".join(traceback.format_exception_only(caught.value)) == (
        "planwave.errors.InputError: 'write a poem' is not a graph\n"
        "hint: to plan and run a goal call planwave.run_goal_sync(…); planwave.plan_sync(…) only plans it\n"
    )
    with pytest.raises(planwave.Conflict) as ended:
        await (await planwave.run(TEXT)).run.retry()
    assert ended.value.__notes__ == [f"hint: {ended.value.hint}"]
    waiting = (await planwave.run(APPROVAL, "x")).run
    with pytest.raises(planwave.InputError) as unknown:
        waiting.answer(waiting.result().requests[0].request_id, {"decision": "sent"})
    assert unknown.value.__notes__ == ["hint: did you mean 'send'? decisions are send"]

    @planwave.node("fails", registry=registry)
    def fails(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        raise ValueError("no")

    with pytest.raises(planwave.ExecutionFailed) as failed:
        await planwave.run(one_node(registry, "fails"))
    (note,) = failed.value.__notes__
    assert note.startswith("a: raised at ")


def test_a_run_that_has_not_started_has_no_result() -> None:
    with pytest.raises(RuntimeError, match=r"not started yet; await it, or call run\.wait"):
        unstarted().result()


def test_what_a_result_has_is_not_looked_for_in_its_run() -> None:
    run: Any = unstarted()
    for name in ("text", "status", "requests"):
        with pytest.raises(AttributeError, match=rf"of the result: .*run\.wait\(\)\.{name}"):
            getattr(run, name)
    with pytest.raises(AttributeError, match="a run has no 'nonsense'"):
        run.nonsense  # noqa: B018
    with pytest.raises(TypeError, match=r"with 'async for'; run\.wait"):
        list(run)


async def test_a_run_that_blocks_says_what_to_write_in_an_event_loop() -> None:
    with pytest.raises(RuntimeError, match=r"run\.wait\(\) cannot wait .* write: await run$"):
        unstarted().wait()


def test_a_run_is_awaited_in_one_event_loop_at_a_time(registry: planwave.Registry) -> None:
    started, may_end = threading.Event(), threading.Event()

    @planwave.node("held", registry=registry)
    def held(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        started.set()
        may_end.wait(30)
        return input

    run = planwave.run(one_node(registry, "held"))
    other = threading.Thread(target=run.wait)
    other.start()
    started.wait(30)
    with pytest.raises(RuntimeError, match="another thread or event loop awaits the run"):
        run.wait()
    may_end.set()
    other.join()
    assert run.wait().status == "completed"


def test_a_second_answer_is_refused_at_once_and_the_first_one_counts() -> None:
    run = planwave.run_sync(APPROVAL, "x").run
    (request,) = run.result().requests
    run.answer(request.request_id, {"decision": "send"})
    with pytest.raises(planwave.Conflict, match="was answered already"):
        run.answer(request.request_id, {"decision": "send"})
    assert run.wait().status == "completed"


def test_an_answer_that_is_only_a_decision_says_how_it_is_written() -> None:
    run = planwave.run_sync(APPROVAL, "x").run
    (request,) = run.result().requests
    for answer, hint in (("send", 'write {"decision": "send"}'), ("sent", "decisions are send")):
        with pytest.raises(
            planwave.errors.InvalidAnswer, match="an object with a decision"
        ) as caught:
            run.answer(request.request_id, answer)
        assert caught.value.hint == hint


async def test_resuming_a_run_that_is_awaited_changes_nothing() -> None:
    run = planwave.run(TEXT)
    async for event in run:
        if event.type == "node.started":
            run.resume()
    assert (await run).status == "completed"


async def test_a_run_is_resumed_in_the_event_of_its_pause() -> None:
    ask = {**APPROVAL["nodes"][1]["data"], "timeoutS": 0.01, "timeoutAction": "send"}
    graph = {**APPROVAL, "nodes": [APPROVAL["nodes"][0], {**APPROVAL["nodes"][1], "data": ask}]}
    run = planwave.run(graph, "x")
    async for event in run:
        if event.type == "execution.paused":
            run.resume()
    assert (await run).status == "completed"


async def test_a_graph_inside_a_node_that_is_no_graph_is_refused(
    registry: planwave.Registry,
) -> None:
    @planwave.node("nests", registry=registry)
    async def nests(  # pyright: ignore[reportUnusedFunction]
        input: str, context: planwave.FlowContext
    ) -> str:
        graph: Any = TEXT
        await context.runtime.run_graph("k", graph, {})
        return input

    result = await planwave.run(one_node(registry, "nests"), check=False)
    assert [each.message for each in result.failures] == [
        "TypeError: graph must be a planwave.Graph, not dict; planwave.build(document).graph makes one"
    ]


def test_a_rejected_command_is_raised_once(tmp_path: Path) -> None:
    paused = planwave.run_sync(APPROVAL, "x", store=tmp_path)
    (request,) = paused.requests
    with pytest.raises(planwave.Conflict, match="waits for an answer"):
        paused.run.resume().wait()
    assert paused.run.wait().status == "paused"
    opened = planwave.open(tmp_path, paused.execution_id)
    with pytest.raises(planwave.errors.InvalidAnswer, match="no decision 'sent'"):
        opened.answer(request.request_id, {"decision": "sent"}).wait()
    assert opened.wait().status == "paused"
    assert opened.answer(request.request_id, {"decision": "send"}).wait().status == "completed"


def test_a_start_or_an_end_of_an_id_opens_its_run(tmp_path: Path) -> None:
    first, second = (planwave.run_sync(TEXT, store=tmp_path).execution_id for _ in range(2))
    for name, execution_id in ((first[-6:], first), ("last", second), (f"…{second[-4:]}", second)):
        assert planwave.open(tmp_path, name).execution_id == execution_id
    with pytest.raises(planwave.InputError) as several:
        planwave.open(tmp_path, first[:8])
    assert several.value.code == "ambiguous-id"
    with pytest.raises(planwave.InputError, match="too short for an id"):
        planwave.open(tmp_path, first[-3:])
    with pytest.raises(planwave.NotFound) as unknown:
        planwave.open(tmp_path, "zzzz")
    assert unknown.value.hint == "planwave.executions(…) lists them"


def test_nothing_is_the_last_execution_of_an_empty_directory(tmp_path: Path) -> None:
    with pytest.raises(planwave.NotFound, match="nothing has run here yet"):
        planwave.open(tmp_path, "last")


async def test_a_run_that_has_not_started_cannot_be_retried_or_forked() -> None:
    for made in (unstarted().retry(), unstarted().fork(set={"t.text": "ho"})):
        with pytest.raises(planwave.Conflict) as caught:
            await made
        assert (caught.value.code, caught.value.message, caught.value.hint) == (
            "not-started",
            "the run has not started yet",
            "await it first, then retry or fork it",
        )


def test_an_answer_names_its_request_by_the_id() -> None:
    paused = planwave.run_sync(APPROVAL, "Dear Ann")
    request: Any = paused.requests[0]
    with pytest.raises(TypeError, match="the id of a request is text, not OpenRequest"):
        paused.run.answer(request, {"decision": "send"})
    assert paused.run.answer(request.request_id, {"decision": "send"}).wait().status == "completed"


def test_a_misspelt_step_of_a_fork_is_named_with_the_closest_one() -> None:
    result = planwave.run_sync(APPROVAL, "Dear Ann")
    with pytest.raises(planwave.InputError) as caught:
        result.run.fork(set={"aks.prompt": "Send now?"}).wait()
    assert (caught.value.message, caught.value.hint) == (
        "'aks.prompt': there is no step 'aks'",
        "did you mean 'ask'? the steps are s, ask",
    )


def test_a_store_is_opened_once_for_several_runs_and_closed_at_the_end(tmp_path: Path) -> None:
    for _ in range(2):  # a store that is left open locks its directory
        with planwave.SqliteStore.open(tmp_path) as store:
            results = [planwave.run_sync(TEXT, store=store) for _ in range(2)]
    assert planwave.open(tmp_path, results[0].execution_id).wait().text == "hi"


async def test_a_store_is_closed_at_the_end_in_an_event_loop(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="in an event loop write: async with"),
        planwave.SqliteStore.open(tmp_path),
    ):
        pass
    async with planwave.SqliteStore.open(tmp_path) as store:
        result = await planwave.run(TEXT, store=store)
    assert (await planwave.open(tmp_path, result.execution_id)).text == "hi"


def test_a_run_that_nobody_awaits_warns_as_a_coroutine_does() -> None:
    with pytest.warns(RuntimeWarning, match=r"<Run 0.*> was never awaited, so it did not begin"):
        planwave.run(TEXT)


def test_an_answer_that_nobody_awaits_warns(tmp_path: Path) -> None:
    paused = planwave.run_sync(APPROVAL, "x", store=tmp_path)
    opened = planwave.open(tmp_path, "last")
    opened.answer(paused.requests[0].request_id, decision="send")
    with pytest.warns(RuntimeWarning, match="was never awaited"):
        del opened
    assert planwave.open(tmp_path, "last").result().status == "paused"


def test_a_run_that_is_only_looked_at_does_not_warn(tmp_path: Path) -> None:
    planwave.run_sync(TEXT, store=tmp_path)
    assert planwave.open(tmp_path, "last").result().text == "hi"
    planwave.open(tmp_path, "last")
    gc.collect()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda run: run.answer("r"), "the answer is missing: write decision=…"),
        (lambda run: run.answer("r", 1, note="x"), "a value, or note by name, not both"),
        (lambda run: run.answer("r", 1, decision="a", form={}), "or decision, form by name"),
    ],
)
def test_an_answer_is_given_in_one_way(answer: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        answer(unstarted())


def test_an_answer_is_written_by_name() -> None:
    paused = planwave.run_sync(APPROVAL, "x")
    (request,) = paused.requests
    with pytest.raises(planwave.errors.InvalidAnswer, match="no decision 'sent'"):
        paused.run.answer(request.request_id, decision="sent")
    result = paused.run.answer(request.request_id, decision="send", note="now").wait()
    assert result.status == "completed"
