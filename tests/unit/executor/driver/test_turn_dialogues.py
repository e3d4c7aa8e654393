"""Each message of the driver, and what a turn makes of it: events, and effects."""

from __future__ import annotations

import ast
import logging
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints
from unittest.mock import ANY

import pytest

from planwave.errors import Conflict, NodeError, PermanentError
from planwave.events import Event
from planwave.events.plan_payloads import PlanRequestedData, PlanRevisedData
from planwave.executor.driver.turn import FUNCTIONS
from planwave.executor.messages import (
    AnswerChange,
    AnswerRequest,
    AttemptFailed,
    AttemptSucceeded,
    AttemptSuspended,
    AttemptTimer,
    BudgetReleased,
    BudgetReserved,
    BudgetTimer,
    BytesStored,
    CancelExecution,
    CancelNode,
    CancelReply,
    CancelTask,
    CancelTimer,
    ChangeCallEnded,
    ChangePlace,
    ChangeWritten,
    CloseLinks,
    DeliverOutcome,
    Effect,
    ExecutionTimer,
    IdleChanged,
    IdleEnded,
    InterruptExecution,
    KeepOnceValue,
    LoadingEnded,
    Message,
    NestedRunAbandoned,
    NodeActivityChanged,
    NodeEmitted,
    OnceValueMade,
    OutcomeTaken,
    PauseExecution,
    PlaceGranted,
    RaiseInterrupt,
    Reply,
    RequestChange,
    RequestTimer,
    ResultReused,
    ResumeExecution,
    RetryTimer,
    RevisePlan,
    SetTimer,
    StartAttempt,
    StartExecution,
    WriteChange,
    outline,
)
from planwave.executor.node_api.host import NodeHost
from planwave.executor.node_api.nested import create_graph_run
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.executor.recovery.history import History
from planwave.executor.state import GraphRun, ReplyTo
from planwave.graph.editing.revision import graph_change
from planwave.graph.model import DataValue, Policy, Retry
from planwave.graph.plan import graph_hash
from planwave.graph.protocols import ExecutionResult, NodeEvent, Suspension
from tests.support.engine.dialogues import (
    AT,
    Placeholder,
    attempt_at,
    emitted,
    nested_run,
    new_run,
    passes,
    play,
    played,
    started,
)
from tests.support.engine.generic_nodes import ExecutionHarness, result_with
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

R1, R2 = ReplyTo(1), ReplyTo(2)
DONE = ExecutionResult({"output": DataValue("any", 7)})
OUTPUTS = {"output": {"type": "any", "value": 7}}
ASKED = Suspension({"for": "a"}, state=[1], timeout_s=60.0, timeout_answer="none")
TWO, ONE = parse_graph("a b", "a>b"), parse_graph("a")


def once_retried() -> Any:
    return started(parse_graph("a", policies={"a": Policy(retry=Retry(2, 1.5))}))


# -- the whole execution


def test_an_execution_starts_the_nodes_that_wait_for_nothing() -> None:
    a = Placeholder()
    assert (
        play(new_run(TWO))
        >> StartExecution()
        << emitted("execution.started", waves=2)
        << emitted("wave.started", wave=1, nodes=["a"])
        << emitted("node.started", "a", 1, wave=1)
        << StartAttempt(a)
        >> AttemptSucceeded(a, DONE)
        << emitted("node.completed", "a", 1, outputs=OUTPUTS, duration_s=0.0)
        << emitted("wave.completed", wave=1)
        << emitted("wave.started", wave=2, nodes=["b"])
        << emitted("node.started", "b", 1, wave=2)
        << StartAttempt(ANY)
    )


def test_what_the_last_node_asks_for_comes_before_a_command_of_the_same_turn() -> None:
    run = started(ONE, RunOptions(replan={"by_nodes": True, "max": 1}))
    attempt_at(run, "a").replan = "more"
    asked: Any = {"change": 1, "by": "node", "path": "a", "request": "more"}
    assert (
        play(run)
        >> AttemptSucceeded(attempt_at(run, "a"), DONE)
        >> PauseExecution("later", R1)
        << emitted("node.event", "a", 1, event_type="replan", data={"request": "more"})
        << emitted("node.completed", "a", 1, outputs=OUTPUTS, duration_s=0.0)
        << emitted("plan.requested", **asked)
        << emitted("execution.paused", reason="later", kind="requested")
        << WriteChange(1, asked)
        << Reply(R1)
    )


def test_an_execution_that_needs_an_approval_asks_and_starts_nothing() -> None:
    asked = {"kind": "plan-approval"}
    assert (
        play(new_run(ONE))
        >> StartExecution(approval=asked)
        << emitted("execution.started", waves=1)
        << emitted(
            "execution.paused", reason="waiting for an answer", kind="waiting", request_id="r2",
            request=asked,
        )
        >> AnswerRequest("r2", {"decision": "approve"}, R1)
        << emitted(
            "execution.resumed", reason="answered", epoch=1, request_id="r2",
            answer={"decision": "approve"},
        )
        << emitted("wave.started", wave=1, nodes=["a"])
        << emitted("node.started", "a", 1, wave=1)
        << Reply(R1)
        << StartAttempt(ANY)
    )  # fmt: skip


def test_an_execution_that_was_cut_off_runs_again_what_had_no_result() -> None:
    events, _ = played(new_run(TWO), StartExecution())
    assert (
        play(new_run(TWO, history=History(events)))
        >> StartExecution(is_recovery=True)
        << emitted("execution.resumed", reason="recovery", epoch=1)
        << emitted("node.started", "a", 1, wave=1, reentry=1)
        << StartAttempt(ANY)
    )


def test_after_an_interruption_nothing_starts() -> None:
    run = started(TWO)
    assert (
        play(run)
        >> InterruptExecution()
        >> AttemptSucceeded(attempt_at(run, "a"), DONE)
        << emitted("node.completed", "a", 1, outputs=OUTPUTS, duration_s=0.0)
        << emitted("wave.completed", wave=1)
    )


def test_a_cancelled_execution_ends_its_tasks_and_its_nodes() -> None:
    run = started(TWO)
    assert (
        play(run)
        >> CancelExecution("enough")
        << emitted("node.cancelled", "a", 1, cause="enough")
        << emitted("node.cancelled", "b", cause="enough")
        << emitted("wave.completed", wave=1)
        << emitted("execution.cancelled", cause="enough")
        << CancelTask(attempt_at(run, "a"))
    )


def test_a_paused_execution_starts_nothing_until_it_is_resumed() -> None:
    run = started(TWO)
    assert (
        play(run)
        >> PauseExecution("lunch", R1)
        << emitted("execution.paused", reason="lunch", kind="requested")
        << Reply(R1)
        >> AttemptSucceeded(attempt_at(run, "a"), DONE)
        << emitted("node.completed", "a", 1, outputs=OUTPUTS, duration_s=0.0)
        << emitted("wave.completed", wave=1)
        >> ResumeExecution("back", R2)
        << emitted("execution.resumed", reason="back", epoch=1)
        << emitted("wave.started", wave=2, nodes=["b"])
        << emitted("node.started", "b", 1, wave=2)
        << Reply(R2)
        << StartAttempt(ANY)
    )


def test_an_execution_that_is_not_paused_cannot_be_resumed() -> None:
    refusal = Placeholder()
    assert play(started(ONE)) >> ResumeExecution("go on", R1) << Reply(R1, refusal)
    assert isinstance(refusal.value, Conflict)
    assert refusal.value.code == "not-paused"


def test_an_execution_out_of_time_fails() -> None:
    run = started(ONE, RunOptions(run_timeout_s=30))
    error = {"code": "run-timeout", "message": "the execution did not finish within 30 s"}
    assert (
        play(run)
        >> passes(30)
        >> ExecutionTimer(30)
        << emitted("node.cancelled", "a", 1, cause=error["message"])
        << emitted("wave.completed", wave=1)
        << emitted("execution.failed", error=error, failures=[])
        << CancelTask(attempt_at(run, "a"))
    )


def test_a_changed_graph_goes_on_where_the_run_was() -> None:
    run = new_run(TWO)
    run.seq = 1
    created = Event("x1", 1, AT, "execution.created", None, None, {"graph": TWO.document})
    stored = [created, *played(run, StartExecution()).events]
    wide = parse_graph("a b c", "a>b", "a>c")
    change = graph_change(TWO.document, wide.document)
    data: PlanRevisedData = {
        "change": 1, "base": graph_hash(TWO), "hash": "h2", "graph_change": change, "floor": 1,
    }  # fmt: skip

    def create(*, floors: Mapping[str, tuple[int, bool]]) -> GraphRun:
        host = NodeHost("x1", None, None, None, None, None)
        program = Program(wide, run.root.program.catalogue)
        return create_graph_run(program, host, RunOptions(), None, floors=floors)

    assert (
        play(run)
        >> RevisePlan(wide, data, create, R1, stored)
        << emitted("plan.revised", **{**data, "waves": 2})
        << CloseLinks(run.root, (attempt_at(run, "a"),))
        << Reply(R1)
        >> AttemptSucceeded(attempt_at(run, "a"), DONE)
        << emitted("node.completed", "a", 1, outputs=OUTPUTS, duration_s=0.0)
        << emitted("wave.completed", wave=1)
        << emitted("wave.started", wave=2, nodes=["b", "c"])
        << emitted("node.started", "b", 1, wave=2)
        << emitted("node.started", "c", 1, wave=2)
        << StartAttempt(ANY)
        << StartAttempt(ANY)
    )


def test_a_failure_that_has_a_change_written_keeps_the_end_back_until_it_is_refused() -> None:
    asked: PlanRequestedData = {"change": 1, "by": "failure", "path": "a"}
    error = {"code": "node-failed", "message": "boom"}
    failure = {**error, "message": "node 'a' failed: boom", "node": "a"}
    run = started(TWO, RunOptions(replan={"on_failure": True}))
    refusal = Conflict("nothing can help", code="nothing-changed")
    assert (
        play(run)
        >> AttemptFailed(attempt_at(run, "a"), PermanentError("boom"))
        << emitted("node.failed", "a", 1, error=error, handled=False, duration_s=0.0)
        << emitted("plan.requested", **asked)
        << WriteChange(1, asked)
        >> ChangeCallEnded(1, {"input_tokens": 7})
        << emitted("usage", None, 1, input_tokens=7)
        >> ChangeWritten(1, error=refusal)
        << emitted("plan.refused", change=1, error=refusal.as_json())
        << emitted("node.blocked", "b", cause={"node": "a", "error": error})
        << emitted("wave.completed", wave=1)
        << emitted("execution.failed", error=failure, failures=["a"])
    )


def test_words_of_a_person_hold_what_would_start_until_the_change_is_refused() -> None:
    asked: PlanRequestedData = {
        "change": 1, "by": "person", "request": "more", "requested_by": {"kind": "local"},
        "writer": {"provider": None, "model": None},
    }  # fmt: skip
    run = started(TWO)
    refusal = Conflict("nothing can help", code="nothing-changed")
    assert (
        play(run)
        >> RequestChange(asked, R1)
        << emitted("plan.requested", **asked)
        << WriteChange(1, asked)
        << Reply(R1)
        >> AttemptSucceeded(attempt_at(run, "a"), DONE)
        << emitted("node.completed", "a", 1, outputs=OUTPUTS, duration_s=0.0)
        >> ChangeWritten(1, error=refusal)
        << emitted("plan.refused", change=1, error=refusal.as_json())
        << emitted("wave.completed", wave=1)
        << emitted("wave.started", wave=2, nodes=["b"])
        << emitted("node.started", "b", 1, wave=2)
        << StartAttempt(ANY)
    )


def test_a_change_that_a_person_rejects_pauses_and_is_refused() -> None:
    run = new_run(TWO, RunOptions(replan={"on_failure": True}))
    run.seq = 1
    created = Event("x1", 1, AT, "execution.created", None, None, {"graph": TWO.document})
    stored = [created, *played(run, StartExecution()).events]
    failure = AttemptFailed(attempt_at(run, "a"), PermanentError("boom"))
    stored += played(run, failure).events
    other = parse_graph("c b", "c>b")
    data: PlanRevisedData = {
        "change": 1, "base": graph_hash(TWO), "hash": "h2", "floor": 1,
        "graph_change": graph_change(TWO.document, other.document),
    }  # fmt: skip
    request = {"kind": "plan-change", "actions": ["approve", "reject"]}
    request_id = f"r{run.seq + 1}"
    answer = {"decision": "reject", "note": "no"}
    rejected = {"code": "change-rejected", "message": "the change was rejected: no"}
    error = {"code": "node-failed", "message": "boom"}
    ended = {**error, "message": "node 'a' failed: boom", "node": "a"}
    assert (
        play(run)
        >> ChangeWritten(1, RevisePlan(other, data, _no_run, None, stored), request=request)
        << emitted(
            "execution.paused", reason="waiting for an answer", kind="waiting",
            request_id=request_id, request=request,
        )
        >> AnswerChange(request_id, answer, R1)
        << emitted(
            "execution.resumed", reason="answered", epoch=1, request_id=request_id, answer=answer
        )
        << emitted("plan.refused", change=1, error=rejected)
        << emitted("node.blocked", "b", cause={"node": "a", "error": error})
        << emitted("wave.completed", wave=1)
        << emitted("execution.failed", error=ended, failures=["a"])
        << Reply(R1)
    )  # fmt: skip


def _no_run(**_: object) -> GraphRun:
    raise AssertionError("nothing is made of it")


def test_the_time_limit_of_an_execution_does_not_count_a_pause() -> None:
    assert (
        play(started(ONE, RunOptions(run_timeout_s=30)))
        >> PauseExecution("lunch", R1)
        << emitted("execution.paused", reason="lunch", kind="requested")
        << Reply(R1)
        >> passes(10)
        >> ResumeExecution("back", R2)
        << emitted("execution.resumed", reason="back", epoch=1)
        << Reply(R2)
        >> passes(20)
        >> ExecutionTimer(30)
        << SetTimer(ExecutionTimer(30), 40.0)
    )


def test_what_is_stored_beside_the_events_counts_towards_the_limit() -> None:
    run = started(ONE, RunOptions(max_state_bytes=10))
    assert (
        play(run)
        >> BytesStored(10)
        >> BytesStored(1)
        << emitted("node.cancelled", "a", 1, cause=ANY)
        << emitted("wave.completed", wave=1)
        << emitted("execution.failed", error=ANY, failures=[])
        << CancelTask(attempt_at(run, "a"))
    )
    assert run.error is not None
    assert run.error["code"] == "limit-exceeded"


# -- attempts


def test_a_failure_is_retried_after_its_delay() -> None:
    run, following = once_retried(), Placeholder()
    error = {"code": "node-failed", "message": "boom (attempt 1 of 2)"}
    assert (
        play(run)
        >> AttemptFailed(attempt_at(run, "a"), NodeError("boom"))
        << emitted("node.retrying", "a", 1, error=error, delay_s=1.5, next_attempt=2)
        << SetTimer(RetryTimer(following), 1.5)
        >> passes(1.5)
        >> RetryTimer(following)
        << emitted("node.started", "a", 2, wave=1)
        << StartAttempt(following)
    )


def test_a_permanent_failure_fails_the_node_and_blocks_what_follows() -> None:
    run = started(TWO)
    error = {"code": "node-failed", "message": "boom"}
    failure = {**error, "message": "node 'a' failed: boom", "node": "a"}
    assert (
        play(run)
        >> AttemptFailed(attempt_at(run, "a"), PermanentError("boom"))
        << emitted("node.failed", "a", 1, error=error, handled=False, duration_s=0.0)
        << emitted("node.blocked", "b", cause={"node": "a", "error": error})
        << emitted("wave.completed", wave=1)
        << emitted("execution.failed", error=failure, failures=["a"])
    )


def test_a_keyboard_interrupt_ends_the_process_too() -> None:
    run, error = started(ONE), KeyboardInterrupt()
    assert (
        play(run)
        >> AttemptFailed(attempt_at(run, "a"), error)
        << emitted("node.failed", "a", 1, error=ANY, handled=False, duration_s=0.0)
        << emitted("wave.completed", wave=1)
        << emitted("execution.failed", error=ANY, failures=["a"])
        << RaiseInterrupt(error)
    )


def test_an_attempt_whose_own_time_is_used_up_fails() -> None:
    run = started(ONE, RunOptions(node_timeout_s=3))
    a = attempt_at(run, "a")
    assert (
        play(run)
        >> passes(3)
        >> AttemptTimer(a)
        << emitted("node.failed", "a", 1, error=ANY, handled=False, duration_s=3.0, retryable=True)
        << emitted("wave.completed", wave=1)
        << emitted("execution.failed", error=ANY, failures=["a"])
        << CancelTask(a)
    )


def test_the_clocks_of_an_attempt_stand_still_while_it_loads_something() -> None:
    run = started(ONE, RunOptions(node_timeout_s=3))
    a = attempt_at(run, "a")
    a.begin_loading(0.5)
    assert play(run) >> passes(3) >> AttemptTimer(a)
    a.end_loading(3.0)
    assert (
        play(run)
        >> LoadingEnded(a)
        << SetTimer(AttemptTimer(a), 5.5)
        >> passes(2.5)
        >> AttemptSucceeded(a, DONE)
        << emitted("node.completed", "a", 1, outputs=ANY, duration_s=3.0)
        << emitted("wave.completed", wave=1)
        << emitted("execution.completed")
        << CancelTimer(AttemptTimer(a))
    )


def test_a_reused_result_completes_its_node() -> None:
    run = started(ONE)
    assert (
        play(run)
        >> ResultReused(attempt_at(run, "a"), DONE.outputs, {"changed": True})
        << emitted(
            "node.completed", "a", 1, outputs=OUTPUTS, duration_s=0.0, wave=1, changed=True
        )
        << emitted("wave.completed", wave=1)
        << emitted("execution.completed")
    )  # fmt: skip


def test_an_event_of_a_node_is_stored_and_the_node_told() -> None:
    run = started(ONE)
    event = NodeEvent("a", "step", "spark", "x1", {"n": 1})
    assert (
        play(run)
        >> NodeEmitted(attempt_at(run, "a"), event, R1)
        << emitted("node.event", "a", 1, event_type="spark", data={"n": 1})
        << Reply(R1)
    )


def test_a_once_value_is_the_nodes_when_it_is_durable() -> None:
    run = started(ONE)
    a = attempt_at(run, "a")
    assert (
        play(run)
        >> OnceValueMade(a, "k", 5, R1)
        << emitted("node.event", "a", 1, event_type="once", data={"key": "k", "value": 5})
        << KeepOnceValue(ANY, "k", 5, R1)
    )
    assert a.node_run is not None
    assert a.node_run.once_values == {"k": 5}


def test_nothing_comes_of_messages_of_an_attempt_that_has_ended() -> None:
    run = started(TWO)
    a, refusal = attempt_at(run, "a"), Placeholder()
    played(run, AttemptSucceeded(a, DONE))
    assert (
        play(run)
        >> AttemptSucceeded(a, DONE)
        >> AttemptFailed(a, NodeError("late"))
        >> AttemptSuspended(a, ASKED)
        >> ResultReused(a, DONE.outputs, {})
        >> RetryTimer(a)
        >> AttemptTimer(a)
        >> LoadingEnded(a)
        >> OnceValueMade(a, "k", 5, R1)
        << Reply(R1, refusal)
    )
    assert "is over" in str(refusal.value)


# -- requests


def test_a_node_waits_for_an_answer_and_goes_on_with_it() -> None:
    run, following = started(ONE), Placeholder()
    assert (
        play(run)
        >> AttemptSuspended(attempt_at(run, "a"), ASKED)
        << emitted(
            "node.waiting", "a", 1, request_id="r4", request={"for": "a"}, state=[1],
            timeout_s=60.0, timeout_answer="none", duration_s=0.0, own_time_s=0.0,
        )
        << emitted("execution.paused", reason="waiting for an answer", kind="waiting")
        << SetTimer(RequestTimer("r4"), 60.0)
        >> AnswerRequest("r4", "yes", R1)
        << emitted("execution.resumed", reason="answered", epoch=1)
        << emitted("node.answered", "a", 1, request_id="r4", answer="yes")
        << CancelTimer(RequestTimer("r4"))
        << Reply(R1)
        << StartAttempt(following)
    )  # fmt: skip
    assert following.value.resume_args == ([1], "yes")


def test_a_request_that_is_not_answered_in_time_has_its_own_answer() -> None:
    run, following = started(ONE), Placeholder()
    played(run, AttemptSuspended(attempt_at(run, "a"), ASKED))
    assert (
        play(run)
        >> passes(60)
        >> RequestTimer("r4")
        << emitted("execution.resumed", reason="answered", epoch=1)
        << emitted("node.answered", "a", 1, request_id="r4", answer="none", by="timeout")
        << CancelTimer(RequestTimer("r4"))
        << StartAttempt(following)
    )
    assert following.value.resume_args == ([1], "none")


def test_a_node_that_waits_can_be_cancelled() -> None:
    run = started(TWO)
    played(run, AttemptSuspended(attempt_at(run, "a"), ASKED))
    assert (
        play(run)
        >> CancelNode("a", "not needed", R1)
        << emitted("node.cancelled", "a", 1, cause="not needed")
        << emitted("node.blocked", "b", cause=ANY)
        << emitted("wave.completed", wave=1)
        << emitted("execution.failed", error=ANY, failures=["a"])
        << CancelTimer(RequestTimer("r4"))
        << Reply(R1)
    )


# -- nested runs


def nesting(graph: Any = ONE, options: RunOptions = RunOptions()) -> Any:  # noqa: B008
    """A run whose node ``a`` runs a graph inside itself, and the attempt of ``a``."""
    run = started(ONE, options)
    a = attempt_at(run, "a")
    played(run, nested_run(a, "k", graph, R1))
    return run, a


def test_a_node_gives_its_slot_to_the_graph_that_it_runs() -> None:
    run, inner = started(ONE, RunOptions(max_parallel=1)), Placeholder()
    a = attempt_at(run, "a")
    request = nested_run(a, "k", ONE, R1)
    opened = {"key": "k", "graph": request.identity[0], "inputs": request.identity[1]}
    assert (
        play(run)
        >> request
        << emitted(
            "node.event", "a", 1, event_type="run_graph", data={**opened, "document": ANY}
        )
        << emitted("wave.started", "a[k]", wave=1, nodes=["a"])
        << emitted("node.started", "a[k]/a", 1, wave=1, name=ANY)
        << StartAttempt(inner)
        >> AttemptSucceeded(inner, DONE)
        << emitted("node.completed", "a[k]/a", 1, outputs=OUTPUTS, duration_s=0.0)
        << emitted("wave.completed", "a[k]", wave=1)
        << CloseLinks(ANY)
        << DeliverOutcome(a, R1, {"a": DONE.outputs})
    )  # fmt: skip


def test_the_links_of_a_nested_run_are_closed_with_it() -> None:
    run, a = nesting(parse_graph("n m", "n~m.x"))
    inside = run.graph_run_at("a[k]/")
    assert (
        play(run)
        >> AttemptSucceeded(attempt_at(run, "a[k]/m"), DONE)
        << emitted("node.completed", "a[k]/m", 1, outputs=OUTPUTS, duration_s=0.0)
        << emitted("wave.completed", "a[k]", wave=1)
        << CloseLinks(inside)
        << DeliverOutcome(a, R1, {"m": DONE.outputs})
    )


def test_a_nested_run_that_nobody_waits_for_is_cancelled() -> None:
    run, a = nesting()
    cause = "its node does not wait for it any more"
    assert (
        play(run)
        >> NestedRunAbandoned(a, "k", R1)
        << emitted("node.cancelled", "a[k]/a", 1, cause=cause)
        << emitted("wave.completed", "a[k]", wave=1)
        << emitted("node.event", "a", 1, event_type="run_graph", data={"key": "k", "dropped": True})
        << CancelTask(attempt_at(run, "a[k]/a"))
        << CloseLinks(ANY)
        << DeliverOutcome(a, R1, None)
    )


def test_a_node_that_asks_itself_gets_no_outcomes_meanwhile() -> None:
    run, a = nesting()
    assert (
        play(run)
        >> AttemptSuspended(a, ASKED)
        << emitted(
            "node.waiting", "a", 1, request_id=ANY, request={"for": "a"}, state=[1],
            timeout_s=60.0, timeout_answer="none", duration_s=0.0, own_time_s=0.0,
        )
        << CancelReply(R1)
        << SetTimer(ANY, 60.0)
    )  # fmt: skip


def test_a_node_is_parked_while_all_graphs_in_it_wait_for_answers() -> None:
    run, a = nesting()
    assert (
        play(run)
        >> AttemptSuspended(attempt_at(run, "a[k]/a"), Suspension({"q": 1}))
        << emitted(
            "node.waiting", "a[k]/a", 1, request_id="r7", request={"q": 1}, duration_s=0.0,
            own_time_s=0.0,
        )
        << emitted("node.parked", "a", 1, duration_s=0.0, own_time_s=0.0)
        << emitted("execution.paused", reason="waiting for an answer", kind="waiting")
    )  # fmt: skip
    a.own_calls += 1  # an own-work block begins beside the graph
    assert (
        play(run)
        >> NodeActivityChanged(a)
        << emitted("node.unparked", "a", 1)
        << emitted("execution.resumed", reason="nothing is waited for any more", epoch=1)
    )


def test_a_node_is_parked_once_its_task_has_taken_the_outcome_before() -> None:
    run, a = nesting()
    played(run, nested_run(a, "l", ONE, R2))
    played(run, AttemptSuspended(attempt_at(run, "a[l]/a"), Suspension({"q": 1})))
    assert (
        play(run)
        >> AttemptSucceeded(attempt_at(run, "a[k]/a"), DONE)
        << emitted("node.completed", "a[k]/a", 1, outputs=OUTPUTS, duration_s=0.0)
        << emitted("wave.completed", "a[k]", wave=1)
        << CloseLinks(ANY)
        << DeliverOutcome(a, R1, {"a": DONE.outputs})
        >> OutcomeTaken(a)
        << emitted("node.parked", "a", 1, duration_s=0.0, own_time_s=0.0)
        << emitted("execution.paused", reason="waiting for an answer", kind="waiting")
    )


# -- the budget


def test_a_call_waits_until_the_budget_has_what_it_needs() -> None:
    run = started(parse_graph("a b"), RunOptions(budget={"calls": 1}))
    a, b = attempt_at(run, "a"), attempt_at(run, "b")
    assert (
        play(run)
        >> BudgetReserved(a, {"calls": 1.0}, R1, is_counted=True)
        << DeliverOutcome(a, R1, None)
        >> OutcomeTaken(a)
        >> BudgetReserved(b, {"calls": 1.0}, R2, is_counted=True)
        << emitted("node.parked", "b", 1, duration_s=0.0, own_time_s=0.0, budget=True)
        >> BudgetReleased(a, R1)
        << emitted("node.unparked", "b", 1)
        << DeliverOutcome(b, R2, None)
    )


def test_a_change_waits_for_the_budget_and_for_no_person() -> None:
    options = RunOptions(budget={"calls": 1}, replan={"on_failure": True})
    run = started(parse_graph("a b"), options)
    a, b = attempt_at(run, "a"), attempt_at(run, "b")
    played(run, BudgetReserved(a, {"calls": 1.0}, R1, is_counted=True))
    played(run, AttemptFailed(b, PermanentError("boom")))
    refusal = Reply(R2, ANY)
    assert (
        play(run)
        >> BudgetReserved(None, {"calls": 1.0}, R2, is_counted=False)
        >> BudgetReleased(a, R1)
        << Reply(R2)
        >> BudgetReleased(None, R2)
        >> BudgetReserved(None, {"calls": 2.0}, R2, is_counted=False)
        << refusal
    )


def test_a_warning_comes_when_the_time_of_the_budget_is_nearly_used_up() -> None:
    assert (
        play(started(ONE, RunOptions(budget={"wall_s": 10})))
        >> passes(8)
        >> BudgetTimer()
        << emitted("execution.warned", message=ANY, amounts=["wall_s"])
        << SetTimer(BudgetTimer(), 10.0)
    )


# -- the running place


def test_an_execution_gives_its_place_back_while_its_nodes_only_wait() -> None:
    run = started(ONE, shares_places=True)
    a, wait = attempt_at(run, "a"), object()
    a.idle_waits.add(wait)
    assert (
        play(run)
        >> IdleChanged(a)
        << ChangePlace("freed")
        >> IdleEnded(a, R1, wait)
        << ChangePlace("wanted")
        >> PlaceGranted()
        << Reply(R1)
    )
    assert a.idle_waits == set()


# -- every message, every effect


def _flat(union: Any) -> set[type]:
    return {each for part in get_args(union) for each in (get_args(part) or (part,))}


def test_each_message_has_one_function_that_takes_it() -> None:
    takes = {
        kind: [hint for hint in get_type_hints(function).values() if hint in FUNCTIONS]
        for kind, function in FUNCTIONS.items()
    }
    assert takes == {kind: [kind] for kind in _flat(Message)}
    assert len(set(FUNCTIONS.values())) == len(FUNCTIONS)


def test_each_message_and_each_effect_has_a_dialogue() -> None:
    tree = ast.parse(Path(__file__).read_text("utf-8"))
    named = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    said: dict[type[ast.operator], set[str]] = {ast.RShift: set(), ast.LShift: set()}
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and type(node.op) in said:
            right = node.right
            if isinstance(right, ast.Name):
                right = named.get(right.id)
            if isinstance(right, ast.Call):
                said[type(node.op)].add(getattr(right.func, "id", ""))
    said[ast.RShift] |= {"NestedRunRequested"} if "nested_run" in said[ast.RShift] else set()
    assert {each.__name__ for each in _flat(Message)} - said[ast.RShift] == set()
    assert {each.__name__ for each in _flat(Effect)} - said[ast.LShift] == set()


@pytest.mark.parametrize(
    ("expected", "shown"),
    [
        (emitted("node.event", "a", 1, event_type="spark", data={"n": 2}), "data: {n: 2}"),
        (emitted("node.event", "a", 2, event_type="spark", data={"n": 1}), "node.event a#2"),
        (Reply(R2), "- Reply(2, None)"),
        (CancelReply(R1), "- CancelReply(1)"),
    ],
)
def test_a_dialogue_that_differs_shows_what_was_expected_and_what_came(
    expected: Any, shown: str
) -> None:
    run = started(ONE)
    said = NodeEmitted(attempt_at(run, "a"), NodeEvent("a", "step", "spark", "x1", {"n": 1}), R1)
    with pytest.raises(AssertionError) as difference:
        bool(play(run) >> said << expected)
    assert shown in str(difference.value)
    assert "+ Reply(1, None)" in str(difference.value)
    assert "{event_type: 'spark', data: {n: 1}}" in str(difference.value)


def test_a_placeholder_is_what_it_met_first() -> None:
    first, run = Placeholder(), started(parse_graph("a b"))
    assert first == attempt_at(run, "a")
    assert first == attempt_at(run, "a")
    assert first != attempt_at(run, "b")


# -- the log of turns


@pytest.mark.parametrize(
    "kind", sorted(_flat(Message) | _flat(Effect), key=lambda each: each.__name__)
)
def test_the_outline_of_a_message_or_an_effect_has_none_of_what_it_carries(kind: Any) -> None:
    about = {"at_s", "change", "path", "prefix", "reply", "request_id"}
    text = outline(kind(*(f"{'about' if f.name in about else 'secret'}" for f in fields(kind))))
    assert text.startswith(f"{kind.__name__}(")
    assert "secret" not in text


@virtual_time
async def test_turns_are_logged_at_level_debug_without_a_secret(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def tells(_: Any, context: Any) -> Any:
        await context.record("spark", {"token": "hunter2"})
        context.emit("log", {"message": "hunter2"})
        await context.runtime.once("k", lambda: _ready("hunter2"))
        return result_with("hunter2")

    async def fails(*_: Any) -> Any:
        raise NodeError("hunter2")

    async def logged(level: int) -> str:
        caplog.clear()
        with caplog.at_level(level, "planwave.turns"):
            await ExecutionHarness(parse_graph("a b", "a>b"), {"a": tells, "b": fails}).run()
        return caplog.text

    text = await logged(logging.DEBUG)
    assert "execution x1: messages StartExecution(); events 1 execution.started" in text
    assert "AttemptSucceeded(a#1)" in text
    assert "hunter2" not in text
    assert await logged(logging.INFO) == ""


async def _ready(value: Any) -> Any:
    return value
