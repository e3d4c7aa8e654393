"""Dialogues with the driver: messages in, events and effects out, turn by turn, without an event loop.

    assert (
        play(run)
        >> AttemptFailed(a, NodeError("boom"))
        << emitted("node.retrying", "a", 1, error=ANY, delay_s=2.0, next_attempt=2)
        << SetTimer(RetryTimer(following), 2.0)
        >> passes(2.0)
        >> RetryTimer(following)
        << …
    )

What follows ``>>`` without a ``<<`` between is one turn. After ``<<`` stand all events of the turn, in order,
and all its effects, in order. The events of each turn count as durable at once. ``following`` is a
``Placeholder``: it takes whatever stands in its place, and is that from then on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from difflib import ndiff
from typing import Any, NamedTuple, TypeAlias
from unittest.mock import ANY

from planwave.events import Event
from planwave.events.paths import nested_prefix
from planwave.executor.driver.run_state import Now, RunState
from planwave.executor.driver.turn import Turn, commit, turn
from planwave.executor.messages import (
    Effect,
    Message,
    NestedRunRequested,
    StartAttempt,
    StartExecution,
)
from planwave.executor.node_api.host import NodeHost
from planwave.executor.node_api.nested import create_graph_run
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.executor.recovery.history import History
from planwave.executor.state import Attempt, GraphRun, NodeRun, ReplyTo
from planwave.graph.model import Graph
from planwave.graph.plan import canonical_json, graph_hash
from tests.support.engine.generic_nodes import GenericNodeTypes

AT = "2026-01-01T00:00:00.000000+00:00"
TASK: Any = object()
"""Stands for the task of each attempt."""


class Placeholder:
    """Something that a dialogue does not know before: equal to what it meets first, and then only to that."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    @property
    def value(self) -> Any:
        """What it stands for; an error before it has met anything."""
        return self.values[0]

    def __eq__(self, other: object) -> bool:
        if not self.values:
            self.values.append(other)
        return self.value is other or self.value == other

    def __hash__(self) -> int:
        return id(self)


class Emitted(NamedTuple):
    """An event as a dialogue expects it."""

    type: str
    path: Any
    attempt: Any
    data: Mapping[str, Any]

    def matches(self, event: Event) -> bool:
        return (self.type, self.path, self.attempt, self.data) == (
            event.type, event.path, event.attempt, event.data,
        )  # fmt: skip


@dataclass
class Passes:
    """The clock of the event loop moves on."""

    seconds: float


Input: TypeAlias = Message | Passes
Output: TypeAlias = Emitted | Effect


def emitted(
    event_type: str, path: str | None = None, attempt: Any = None, /, **data: Any
) -> Emitted:
    """An event with exactly these data, durations apart if they are ``ANY``."""
    return Emitted(event_type, path, attempt, data)


def passes(seconds: float) -> Passes:
    """The clock moves on before the next turn."""
    return Passes(seconds)


class Dialogue:
    """What is said to a run, and what it is to say; played when its truth is asked for."""

    def __init__(self, run: RunState) -> None:
        self._run = run
        self._rounds: list[tuple[list[Input], list[Output]]] = []

    def __rshift__(self, said: Input) -> Dialogue:
        if not self._rounds or self._rounds[-1][1]:
            self._rounds.append(([], []))
        self._rounds[-1][0].append(said)
        return self

    def __lshift__(self, expected: Output) -> Dialogue:
        self._rounds[-1][1].append(expected)
        return self

    def __bool__(self) -> bool:
        for number, (said, expected) in enumerate(self._rounds, 1):
            clock_s = self._run.now.loop_s
            clock_s += sum(each.seconds for each in said if isinstance(each, Passes))
            messages = [_resolved(each) for each in said if not isinstance(each, Passes)]
            made = played(self._run, *messages, clock_s=clock_s)
            _compare(f"turn {number}: {', '.join(map(text_of, messages))}", expected, made)
        return True


def play(run: RunState) -> Dialogue:
    """Begin a dialogue with a run."""
    return Dialogue(run)


def played(run: RunState, *messages: Message, clock_s: float | None = None) -> Turn:
    """Make one turn of a run, whose events are durable at once; return what came of it."""
    now = Now(run.now.loop_s if clock_s is None else clock_s, AT)
    events, effects = turn(run, messages, now)
    effects = [*effects, *commit(run, effects, now)]
    for effect in effects:
        if isinstance(effect, StartAttempt):
            effect.attempt.task = TASK
    return Turn(events, effects)


def _compare(title: str, expected: list[Output], made: Turn) -> None:
    wanted = [each for each in expected if isinstance(each, Emitted)]
    effects = [each for each in expected if not isinstance(each, Emitted)]
    lines = [
        *_lines(wanted, made.events, lambda one, event: one.matches(event)),
        *_lines(effects, made.effects, lambda one, effect: one == effect),
    ]
    seen = [text_of(each) for each in (*made.events, *made.effects)]
    if lines != seen:
        difference = "\n".join(ndiff(lines, seen))
        raise AssertionError(f"{title}\n(- expected, + came)\n{difference}")


def _lines(expected: list[Any], came: list[Any], is_same: Any) -> list[str]:
    """The lines of what is expected; what has come is written as what came, whatever stands for it."""
    lines: list[str] = []
    for number, each in enumerate(expected):
        that = came[number] if number < len(came) else None
        if that is not None and is_same(each, that):
            lines.append(text_of(that))
        else:
            is_alike = that is not None and text_of(that) == text_of(each)
            lines.append(f"{text_of(each)}{' (another of this name)' if is_alike else ''}")
    return lines


def _resolved(message: Any) -> Any:
    """A message with what its placeholders stand for."""
    known = {
        each.name: value.value
        for each in fields(message)
        if isinstance(value := getattr(message, each.name), Placeholder)
    }
    return replace(message, **known)


def text_of(each: Any) -> str:
    """A message, an event or an effect as a reader wants to see it."""
    if isinstance(each, Event | Emitted):
        attempt = "" if each.attempt is None else f"#{each.attempt}"
        return f"{each.type} {each.path or ''}{attempt} {text_of(dict(each.data))}"
    if isinstance(each, Attempt):
        return f"{each.path}#{each.number}"
    if isinstance(each, GraphRun):
        return f"the graph at {each.prefix or '/'}"
    if isinstance(each, NodeRun):
        return f"the node at {each.attempt.path}"
    if isinstance(each, Placeholder):
        return text_of(each.value) if each.values else "…"
    if each is ANY:
        return "…"
    if isinstance(each, dict):
        return f"{{{', '.join(f'{name}: {text_of(value)}' for name, value in each.items())}}}"
    if is_dataclass(each):
        values = (text_of(getattr(each, field.name)) for field in fields(each))
        return f"{type(each).__name__}({', '.join(values)})"
    return repr(each)


# -- runs to play with -----------------------------------------------------------------------------


def new_run(
    graph: Graph,
    options: RunOptions = RunOptions(),  # noqa: B008 - immutable
    *,
    shares_places: bool = False,
    history: History | None = None,
) -> RunState:
    """A run of generic nodes that has not started."""
    host = NodeHost("x1", None, None, None, None, None)
    root = create_graph_run(Program(graph, GenericNodeTypes({})), host, options, None)
    return RunState("x1", root, options, shares_places=shares_places, history=history)


def started(graph: Graph, options: RunOptions = RunOptions(), **more: Any) -> RunState:  # noqa: B008
    """A run whose first nodes work."""
    run = new_run(graph, options, **more)
    played(run, StartExecution())
    return run


def attempt_at(run: RunState, path: str) -> Attempt:
    """The current attempt of a node, in the graph of the execution or in a nested one."""
    prefix, _, node_id = path.rpartition("/")
    graph_run = run.graph_run_at(f"{prefix}/" if prefix else "")
    assert graph_run is not None, f"no graph runs at {prefix!r}"
    return graph_run.attempts[graph_run.program.topology.index[node_id]]


def nested_run(attempt: Attempt, key: str, graph: Graph, reply: ReplyTo) -> NestedRunRequested:
    """What a node posts that runs a graph inside itself; see ``node_api/nested.py``."""
    prefix = nested_prefix(attempt.path, key)
    host = NodeHost("x1", None, None, None, None, None)
    program = Program(graph, GenericNodeTypes({}))
    graph_run = create_graph_run(program, host, RunOptions(), None, prefix)
    of_inputs = hashlib.sha256(canonical_json([{}, {}]).encode()).hexdigest()
    return NestedRunRequested(
        attempt, key, (graph_hash(graph), of_inputs), prefix, graph_run, reply, True
    )
