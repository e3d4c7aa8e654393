"""What becomes of an attempt: it starts, succeeds, waits, fails, is retried, times out, emits."""

from __future__ import annotations

from typing import Final, cast

from planwave.errors import (
    NESTED_FAILED,
    ErrorDocument,
    LimitExceeded,
    NodeError,
    PermanentError,
    ResultNotJson,
)
from planwave.events.plan_payloads import REPLAN
from planwave.events.types import (
    NODE_COMPLETED,
    NODE_EVENT,
    NODE_FAILED,
    NODE_LOG,
    NODE_RETRYING,
    NODE_STARTED,
    NODE_WAITING,
    ONCE,
    RUN_GRAPH,
    TEXT_DISCARDED,
    USAGE,
    WAVE_STARTED,
    NodeCompletedData,
    NodeEventData,
    NodeFailedData,
    NodeLogData,
    NodeRetryingData,
    NodeStartedData,
    NodeWaitingData,
    OnceStoredData,
    UsageData,
)
from planwave.executor.driver import plan_requests
from planwave.executor.driver.endings import (
    cancel_nested_runs,
    end_attempt,
    fail_execution,
    streamed_by,
)
from planwave.executor.driver.parking import ensure_active, start_attempt_timer, update_activity
from planwave.executor.driver.run_state import RunState
from planwave.executor.driver.timeouts import (
    attempt_limit_s,
    attempt_timeout,
    start_request_timer,
)
from planwave.executor.messages import (
    AttemptFailed,
    AttemptSucceeded,
    AttemptSuspended,
    AttemptTimer,
    CancelTask,
    KeepOnceValue,
    NodeEmitted,
    OnceValueMade,
    RaiseInterrupt,
    Reply,
    ResultReused,
    RetryTimer,
    SetTimer,
)
from planwave.executor.node_api.context import DELTA
from planwave.executor.node_api.results import error_names, to_node_error
from planwave.executor.recovery.history import History
from planwave.executor.recovery.replay import reenter
from planwave.executor.requests import PendingRequest
from planwave.executor.state import DONE, Attempt, NodeRun, Outputs
from planwave.graph.json_values import NotJson, to_json
from planwave.graph.model import ERROR_HANDLE, DataValue, Json, Retry
from planwave.graph.outputs import outputs_to_json
from planwave.graph.protocols import Suspension

_RESERVED: Final = frozenset({ONCE, RUN_GRAPH})
"""Event types that only the driver emits: an execution is resumed by them."""


# -- starts ----------------------------------------------------------------------------------------


def started(run: RunState, attempt: Attempt) -> bool:
    """Record that an attempt got a slot, and that its wave began if the attempt is its first.

    The start of an attempt that resumes after a wait is not recorded again, except for a node whose
    effect must happen at most once.

    Returns:
        False if the execution fails because it started too many nodes.
    """
    if attempt.was_started and not attempt.at_most_once:
        return True
    if run.limits is not None and (exceeded := run.limits.count_start()) is not None:
        fail_execution(run, exceeded.as_json())
        return False
    graph_run = attempt.graph_run
    wave = graph_run.schedule.waves.number[attempt.node]
    nodes = graph_run.unstarted_waves.pop(wave, None)
    if nodes is not None:
        run.emit(WAVE_STARTED, {"wave": wave, "nodes": nodes}, graph_run.path)
    run.emit(NODE_STARTED, _start_data(attempt, wave), attempt.path, attempt.number)
    return True


def _start_data(attempt: Attempt, wave: int) -> NodeStartedData:
    graph_run, program = attempt.graph_run, attempt.graph_run.program
    data: NodeStartedData = {"wave": wave}
    winner = graph_run.join_winners.get(attempt.node)
    if winner is not None:
        data["via"] = program.graph.edges[winner].id
    if attempt.reentries and not attempt.was_started:
        data["reentry"] = attempt.reentries
    if program.versions and (versions := program.type_versions(attempt.node)):
        data["versions"] = versions
    if graph_run.nested_run is not None and (name := program.steps[attempt.node].node.name):
        data["name"] = name
    return data


def begin(run: RunState, attempt: Attempt) -> None:
    """Start the clocks of an attempt whose task starts now: its ``node.started`` is durable."""
    attempt.started = attempt.own_since = run.now.loop_s
    attempt.limit_s = attempt_limit_s(run, attempt)
    start_attempt_timer(run, attempt)
    if run.history is not None:
        _restore_once_values(run.history, attempt)


# -- results ---------------------------------------------------------------------------------------


def succeeded(run: RunState, message: AttemptSucceeded) -> None:
    """Complete a node, unless its result is too large."""
    attempt, outputs = message.attempt, message.result.outputs
    if attempt.phase is DONE:
        return
    ensure_active(run, attempt)
    if run.limits is not None:
        refusal = run.limits.add_result(attempt.path, outputs)
        if refusal is not None:
            failed(run, attempt, refusal)
            return
    end_attempt(run, attempt)
    times: NodeCompletedData = {"duration_s": attempt.elapsed(run.now.loop_s)}
    if attempt.depends_on is not None:
        times["depends_on"] = attempt.depends_on
    _complete(run, attempt, outputs, times)


def reused(run: RunState, message: ResultReused) -> None:
    """Complete a node with a reused result; the node does not run."""
    attempt = message.attempt
    if attempt.phase is not DONE:
        end_attempt(run, attempt)
        wave = attempt.graph_run.schedule.waves.number[attempt.node]
        times: NodeCompletedData = {"duration_s": 0.0, "wave": wave, **message.event_data}
        _complete(run, attempt, message.outputs, times)


def _complete(run: RunState, attempt: Attempt, outputs: Outputs, times: NodeCompletedData) -> None:
    run.causes.discard(attempt.path)
    attempt.graph_run.outputs[attempt.node] = outputs
    data: NodeCompletedData = {"outputs": outputs_to_json(outputs), **times}
    if attempt.replan is not None:
        plan_requests.node_completed(run, attempt, attempt.replan)
    run.emit(NODE_COMPLETED, data, attempt.path, attempt.number)
    attempt.graph_run.schedule.completed(attempt.node, outputs)


def suspended(run: RunState, message: AttemptSuspended) -> None:
    """Put a node into its wait for an answer, without a task; fail it if the request is too large.

    Graphs that run inside the node go on. Once it is resumed, it gets their outcomes by their keys.
    """
    attempt, suspension = message.attempt, message.suspension
    if attempt.phase is DONE:
        return
    ensure_active(run, attempt)
    if run.limits is not None:
        content = [suspension.request, suspension.state]
        refusal = run.limits.add_event(attempt.path, "a request", content)
        if refusal is not None:
            failed(run, attempt, refusal)
            return
    if attempt.node_run is not None:
        attempt.node_run.is_between_attempts = True
    end_attempt(run, attempt, is_final=False)
    wait_for_answer(run, attempt, suspension)


def wait_for_answer(
    run: RunState, attempt: Attempt, suspension: Suspension, *, is_interrupted: bool = False
) -> None:
    """Open a request of a node."""
    request_id = f"r{run.seq + 1}"
    request = PendingRequest(
        attempt.path, attempt.number, suspension, run.now.at, is_interrupted, attempt
    )
    run.requests.add(request_id, request)
    attempt.graph_run.schedule.waits(attempt.node)
    data: NodeWaitingData = {
        **request.as_event_data(request_id),
        **attempt.stop_clock(run.now.loop_s),
    }
    if attempt.depends_on is not None:
        data["depends_on"] = attempt.depends_on
    if attempt.replan is not None:
        data["replan"] = attempt.replan
    run.emit(NODE_WAITING, data, attempt.path, attempt.number)
    start_request_timer(run, request_id, request)


def reenter_interrupted(run: RunState, attempt: Attempt) -> None:
    """Execute an interrupted attempt again; ask a person first where it must act only once."""
    graph_run, node = attempt.graph_run, attempt.node
    if not attempt.at_most_once:
        following = graph_run.attempts[node] = reenter(attempt)
        run.slots.enqueue(following)
        return
    del graph_run.attempts[node]
    message = (
        f"Node {attempt.path!r} was cut off while it ran. It may act only once, and nobody knows "
        "whether it did. Run it again, give its result, or let it fail?"
    )
    actions = ["run_again", "give_result", "fail"]
    request = {"kind": "interrupted", "message": message, "actions": actions}
    wait_for_answer(run, attempt, Suspension(request), is_interrupted=True)


# -- failures --------------------------------------------------------------------------------------


def raised(run: RunState, message: AttemptFailed) -> None:
    """Fail an attempt with what its node raised; a KeyboardInterrupt ends the execution too."""
    failed(run, message.attempt, message.error, message.raised, message.traceback)
    if isinstance(message.error, KeyboardInterrupt):
        run.effects.append(RaiseInterrupt(message.error))


def failed(
    run: RunState,
    attempt: Attempt,
    error: BaseException,
    raised: BaseException | None = None,
    traceback: str = "",
) -> None:
    """Retry a node, or fail it as its error policy says; the last two are those of ``AttemptFailed``."""
    if attempt.phase is DONE:
        return
    ensure_active(run, attempt)
    end_attempt(run, attempt, is_final=False)
    node_error = to_node_error(error)
    retry = attempt.graph_run.program.steps[attempt.node].node.policy.retry
    tries = attempt.number - attempt.graph_run.attempt_offset
    has_attempts_left = tries < retry.attempts
    refusal = _retry_refusal(retry, error, node_error) if has_attempts_left else None
    document = node_error.as_json()
    if retry.attempts > 1:
        note = _attempt_note(attempt, retry, tries, node_error, refusal)
        document["message"] = f"{node_error.message} ({note})"
    if has_attempts_left and refusal is None:
        delay_s = max(retry.wait_s(tries), node_error.retry_delay_s)
        _schedule_retry(run, attempt, document, delay_s, traceback)
    else:
        if node_error.code != NESTED_FAILED:
            run.causes.add(attempt.path, raised or error)
        _fail(run, attempt, document, node_error.retryable, traceback)


def _fail(
    run: RunState, attempt: Attempt, error: ErrorDocument, retryable: bool, traceback: str
) -> None:
    graph_run, node = attempt.graph_run, attempt.node
    policy = graph_run.program.steps[node].node.policy
    outputs: Outputs | None = None
    if policy.on_error == "continue":
        outputs = {ERROR_HANDLE: DataValue("json", error)}
    elif policy.on_error == "default" and policy.default is not None:
        outputs = {policy.default["handle"]: DataValue("any", policy.default["value"])}
    data: NodeFailedData = {
        "error": error, "handled": outputs is not None,
        "duration_s": attempt.elapsed(run.now.loop_s),
    }  # fmt: skip
    if retryable:
        data["retryable"] = True
    if traceback:
        data["traceback"] = traceback
    if (streamed := streamed_by(run, attempt)) is not None:
        data["streamed"] = streamed
    if outputs is not None:
        run.causes.discard(attempt.path)
        graph_run.outputs[node] = outputs
        data["outputs"] = outputs_to_json(outputs)
        graph_run.handled_failures.append(attempt.path)
    else:
        graph_run.record_failure(attempt.path, error, retryable)
    attempt.close()
    run.emit(NODE_FAILED, data, attempt.path, attempt.number)
    graph_run.fail(node, f"{error['code']}: {error['message']}", outputs)
    if outputs is None:
        plan_requests.node_failed(run, graph_run, attempt.path)


def timed_out(run: RunState, timer: AttemptTimer) -> None:
    """Fail an attempt whose own time is used up."""
    attempt = timer.attempt
    error = attempt_timeout(run, attempt)
    if error is not None:
        _fail_running(run, attempt, error, "the node ran out of time")


def _fail_running(run: RunState, attempt: Attempt, error: NodeError, cause: str) -> None:
    """Fail an attempt while its task runs; ``cause`` is for the nodes nested in it."""
    cancel_nested_runs(run, attempt, cause)
    run.effects.append(CancelTask(attempt))
    failed(run, attempt, error)


# -- retries ---------------------------------------------------------------------------------------


def _retry_refusal(retry: Retry, error: BaseException, node_error: NodeError) -> str | None:
    """Return why a failure is not retried although attempts are left; None if it is."""
    if not node_error.retryable:
        return "the error is permanent"
    if not (retry.on or retry.not_on):
        return None
    names = error_names(error)
    for name in retry.not_on:
        if name in names:
            return f"retry.notOn names {name!r}"
    return None if not retry.on or names.intersection(retry.on) else "retry.on does not name it"


def _attempt_note(
    attempt: Attempt, retry: Retry, tries: int, node_error: NodeError, refusal: str | None
) -> str:
    """Return which attempt failed and why no other follows, for the end of its message."""
    # The message of a failed nested run may end in the same words about the node inside.
    of_node = f" of {attempt.path!r}" if node_error.code == NESTED_FAILED else ""
    why = f", not retried: {refusal}" if refusal else ""
    return f"attempt {tries} of {retry.attempts}{of_node}{why}"


def _schedule_retry(
    run: RunState, attempt: Attempt, error: ErrorDocument, delay_s: float, traceback: str
) -> None:
    if run.history is not None:
        run.history.nested_runs.mark_failed_for_restart(attempt.path)
    following = attempt.replaced_by(Attempt(attempt.graph_run, attempt.node, attempt.number + 1))
    attempt.graph_run.attempts[attempt.node] = following
    data: NodeRetryingData = {
        "error": error, "delay_s": delay_s, "next_attempt": following.number
    }  # fmt: skip
    if traceback:
        data["traceback"] = traceback
    if (streamed := streamed_by(run, attempt)) is not None:
        data["streamed"] = streamed
    run.emit(NODE_RETRYING, data, attempt.path, attempt.number)
    delay_retry(run, following, delay_s)
    attempt.graph_run.schedule.retries(attempt.node)


def delay_retry(run: RunState, attempt: Attempt, delay_s: float) -> None:
    """Keep an attempt out of the queue for some seconds."""
    run.slots.hold_back(attempt)
    run.effects.append(SetTimer(RetryTimer(attempt), run.now.loop_s + delay_s))


def retry(run: RunState, timer: RetryTimer) -> None:
    """Queue an attempt whose delay is over."""
    if timer.attempt.phase is not DONE:
        run.slots.enqueue(timer.attempt)


# -- events and once values ------------------------------------------------------------------------


def emitted(run: RunState, message: NodeEmitted) -> None:
    """Store an event that a running node emitted.

    An event that cannot be stored is refused if the node waits for it; else a warning is stored, or
    the node fails if the event is too large.
    """
    attempt, kind = message.attempt, message.event.event_type
    is_over = attempt.phase is DONE
    ensure_active(run, attempt)
    refusal = attempt.ended_error() if is_over else _store_event(run, attempt, message)
    if message.reply is not None:
        run.effects.append(Reply(message.reply, refusal))
    elif refusal is not None and not is_over:
        if refusal.code == LimitExceeded.code:
            _fail_running(run, attempt, refusal, "one of its events was too large")
        else:
            _warn(run, attempt, f"event {kind!r} was not stored: {refusal.message}")
    update_activity(run, attempt)


def _log_data(data: Json) -> NodeLogData:
    """Return a log line as it is stored."""
    log = cast("dict[str, Json]", data) if isinstance(data, dict) else {"message": data}
    line: NodeLogData = {
        "message": str(log.get("message", "")),
        "level": log.get("level", "info"),
    }
    if isinstance(kind := log.get("kind"), str):
        line["kind"] = kind
    return line


def _store_event(run: RunState, attempt: Attempt, message: NodeEmitted) -> NodeError | None:
    """Emit what a node emitted; return why it cannot be stored."""
    kind = message.event.event_type
    try:
        data = to_json(message.event.data)
    except NotJson as error:
        return ResultNotJson(f"its data is {error}")
    if kind in _RESERVED or kind == DELTA:  # a delta comes here only to be recorded
        return PermanentError("that name is reserved", code="reserved-event")
    if kind == TEXT_DISCARDED and message.reply is None:
        # Text is published at once: text after an event that is not awaited may come before it.
        return PermanentError("it has to be recorded, not emitted", code="reserved-event")
    if kind == "log":
        data = cast("Json", _log_data(data))
    if run.limits is not None:
        refusal = run.limits.add_event(attempt.path, f"an event {kind!r}", data)
        if refusal is not None:
            return refusal
    if kind == REPLAN:  # stored once the node completes
        return plan_requests.take_request(run, attempt, data)
    _emit(run, attempt, kind, data)
    return None


def _emit(run: RunState, attempt: Attempt, kind: str, data: Json) -> None:
    if kind == "log":
        run.emit(NODE_LOG, cast("NodeLogData", data), attempt.path, attempt.number)
    elif kind == "usage" and isinstance(data, dict):
        run.emit(USAGE, cast("UsageData", data), attempt.path, attempt.number)
    else:
        run.emit(NODE_EVENT, _event_data(kind, data), attempt.path, attempt.number)
    if kind == TEXT_DISCARDED:
        attempt.streamed = None


def _event_data(kind: str, data: Json) -> NodeEventData:
    """Return an event as it is stored; a traceback in its data becomes a field for the operator alone."""
    told = cast("dict[str, Json]", data) if isinstance(data, dict) else {}
    if not isinstance(trace := told.get("traceback"), str):
        return {"event_type": kind, "data": data}
    others: Json = {name: told[name] for name in told if name != "traceback"}
    return {"event_type": kind, "data": others, "traceback": trace}


def _warn(run: RunState, attempt: Attempt, message: str) -> None:
    run.emit(NODE_LOG, {"message": message, "level": "warning"}, attempt.path, attempt.number)


def store_once_value(run: RunState, message: OnceValueMade) -> None:
    """Record a value of ``runtime.once``; it is the node's once that is durable."""
    attempt = message.attempt
    if attempt.phase is DONE:
        run.effects.append(Reply(message.reply, attempt.ended_error()))
        return
    if run.limits is not None:
        outputs = {message.key: DataValue("any", message.value)}
        refusal = run.limits.add_result(attempt.path, outputs)
        if refusal is not None:
            run.effects.append(Reply(message.reply, refusal))
            return
    stored: OnceStoredData = {"key": message.key, "value": message.value}
    if attempt.depends_on is not None:
        stored["depends_on"] = attempt.depends_on
    run.emit(NODE_EVENT, {"event_type": ONCE, "data": stored}, attempt.path, attempt.number)
    node_run = ensure_node_run(attempt)
    run.effects.append(KeepOnceValue(node_run, message.key, message.value, message.reply))


def _restore_once_values(history: History, attempt: Attempt) -> None:
    """Restore the once values of a node that is entered again."""
    once_values, depends_on = history.nested_runs.pop_once_values(attempt.path)
    if once_values:
        ensure_node_run(attempt).once_values.update(once_values)
        attempt.depends_on = depends_on


def ensure_node_run(attempt: Attempt) -> NodeRun:
    """Return what runs inside a node; create it where nothing did so far."""
    if attempt.node_run is None:
        attempt.node_run = NodeRun(attempt)
    return attempt.node_run
