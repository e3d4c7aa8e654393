"""Executions of every kind, each a function of a stage; its name is that of its golden file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Final

import planwave
from planwave.events import Event
from planwave.executor.options import RunOptions
from planwave.providers.protocols import ModelReply, ModelRequest, ToolCall, Usage
from tests.contract.engine.golden_logs.stage import (
    Rewrites,
    Stage,
    act,
    answer,
    ended,
    graph_document,
    seen,
)
from tests.support.llm.watched_model import in_pieces
from tests.support.nodes.agent_runs import Kit, agent_graph, tool
from tests.support.nodes.node_context import services_with

Scenario = Callable[[Stage], Awaitable[list[Event] | None]]

SCENARIOS: Final[dict[str, Scenario]] = {}
"""Each runs executions on the stage; one that returns events is compared by these, not by what is stored."""

_CHAIN = graph_document(act("a"), act("b"), act("c"), edges=[("a", "b"), ("b", "c")])
_ASKS = {"kind": "question", "prompt": "Go on?"}
_INSIDE = graph_document(act("i"), act("j"), edges=[("i", "j")])


def scenario(run: Scenario) -> Scenario:
    SCENARIOS[run.__name__] = run
    return run


def runs_to_its_end(name: str, graph: dict[str, Any], **how: Any) -> None:
    """Add a scenario that runs one graph to its end."""

    async def run(stage: Stage) -> None:
        async with stage.service() as service:
            await ended(service, await stage.begin(service, graph, **how))

    run.__name__ = name
    scenario(run)


def approval(node_id: str, **data: Any) -> dict[str, Any]:
    return act(node_id, "approval", prompt="Good?", **data)


# -- joins, branches, order

runs_to_its_end("chain", _CHAIN)
runs_to_its_end(
    "join_all",
    graph_document(act("a", seconds=2), act("b", seconds=1), act("c"), act("d"),
             edges=[("a", "c"), ("b", "c"), ("b", "d")]),
)  # fmt: skip
runs_to_its_end(
    "join_any",
    graph_document(act("slow", seconds=5), act("fast", seconds=1), act("c", policy={"join": "any"}),
             edges=[("slow", "c"), ("fast", "c")]),
)  # fmt: skip
runs_to_its_end(
    "join_any_after_a_failure",
    graph_document(act("bad", fails=9), act("other", seconds=1), act("c", policy={"join": "any"}),
             act("d"), edges=[("bad", "c"), ("other", "c"), ("bad", "d")]),
)  # fmt: skip
runs_to_its_end(
    "branches",
    graph_document(act("a", handle="yes"), act("b"), act("c"), act("d"), act("e"),
             edges=[("a", "b", "yes"), ("a", "c", "no"), ("b", "d"), ("c", "d"), ("c", "e")]),
)  # fmt: skip
runs_to_its_end(
    "library_branches",
    graph_document(
        act("n", value={"lang": "de"}),
        act("by", "conditional", condition="{{ input.lang }}"),
        act("german"), act("english"),
        edges=[("n", "by"), ("by", "german", "de"), ("by", "english", "en")],
    ),
)  # fmt: skip
runs_to_its_end(
    "gives_nothing", graph_document(act("a", gives_nothing=True), act("b"), edges=[("a", "b")])
)
runs_to_its_end(
    "waves",
    graph_document(
        act("a"), act("b", seconds=3), act("c"), act("d"), edges=[("a", "c"), ("b", "d")]
    ),
    options=RunOptions(scheduling="waves"),
)
runs_to_its_end(
    "one_at_a_time",
    graph_document(
        act("a", seconds=1), act("b", seconds=1), act("c"), edges=[("a", "c"), ("b", "c")]
    ),
    options=RunOptions(max_parallel=1),
)
runs_to_its_end("run_to", _CHAIN, options=RunOptions(run_to=["b"]))
runs_to_its_end(
    "run_from", _CHAIN, options=RunOptions(run_from=["b"]), inputs={"a": {"output": "given"}}
)
runs_to_its_end(
    "inputs",
    graph_document(act("s", "start"), act("t", "start"), act("a", value="{{ input }}!"), act("b"),
             edges=[("s", "a"), ("t", "b")]),
    inputs={"s": {"output": "hello"}},
)  # fmt: skip
runs_to_its_end(
    "expressions",
    graph_document(act("a", value={"x": [1, "two"]}), act("b", value="{{ input.x }} {{ nodes.a.output }}"),
             act("c", value="{{ input.missing }}"), edges=[("a", "b"), ("a", "c")]),
)  # fmt: skip

# -- failures, retries, bounds

_BAD = graph_document(
    act("bad", fails=9), act("after"), act("beyond"), act("aside", seconds=2),
    edges=[("bad", "after"), ("after", "beyond")],
)  # fmt: skip
runs_to_its_end("failure_goes_on", _BAD)
runs_to_its_end("failure_stops", _BAD, options=RunOptions(on_failure="stop"))
runs_to_its_end(
    "failure_handled",
    graph_document(act("bad", fails=9, policy={"onError": "continue"}), act("mends"), act("after"),
             edges=[("bad", "mends", "error"), ("bad", "after")]),
)  # fmt: skip
runs_to_its_end(
    "failure_with_a_default",
    graph_document(act("bad", fails=9, policy={"onError": "default", "default": {"handle": "output", "value": "instead"}}),
             act("after"), edges=[("bad", "after")]),
)  # fmt: skip
runs_to_its_end(
    "retries",
    graph_document(act("third", fails=2, policy={"retry": {"attempts": 3, "backoffS": 2}}),
             act("never", fails=9, policy={"retry": {"attempts": 2, "backoffS": 1}}),
             act("final", fails=9, retryable=False, policy={"retry": {"attempts": 3}})),
)  # fmt: skip
runs_to_its_end(
    "node_timeout",
    graph_document(act("a", seconds=9, policy={"timeoutS": 2, "retry": {"attempts": 2, "backoffS": 1}}),
             act("b"), edges=[("a", "b")]),
)  # fmt: skip
runs_to_its_end(
    "run_timeout",
    graph_document(act("a"), act("b", seconds=90), act("c"), edges=[("a", "b"), ("b", "c")]),
    options=RunOptions(run_timeout_s=10),
)
runs_to_its_end("too_many_steps", _CHAIN, options=RunOptions(max_steps=2))
runs_to_its_end("too_large", _CHAIN, options=RunOptions(max_state_bytes=12))
runs_to_its_end(
    "odd_results",
    graph_document(*(act(f"n{n}", "odd", gives=what)
               for n, what in enumerate(["nothing", "handle", "a set", "a tuple"]))),
)  # fmt: skip
runs_to_its_end(
    "what_nodes_say",
    graph_document(act("a", says=[
        ["log", {"message": "a line", "level": "warning"}], ["log", "text"],
        ["usage", {"provider": "p", "model": "m", "input_tokens": 3, "output_tokens": 4}],
        ["logic_check", {"content": "x is 1"}], ["once", {"key": "k"}], ["own", [1]],
    ])),
)  # fmt: skip


def _delegation(ending: str, **more: Any) -> list[Any]:
    """An event of an agent that another one called, as agents emit it."""
    called = {"call_id": "c2", "parent_call_id": "c1", "name": "delegate_Leaf", "kind": "agent",
              "path": "l[1]/a[delegate_Mid-0]/m", "depth": 1}  # fmt: skip
    return [f"subagent_call_{ending}", {**called, "agent": {"id": "leaf", "name": "Leaf"}, **more}]


runs_to_its_end(
    "calls_of_agents",
    graph_document(act("a", says=[
        _delegation("start", arguments={"task": "Look."}), _delegation("end", result="Seen."),
        _delegation("error", error={"code": "max-steps", "message": "It went on."}),
        _delegation("end", parent_call_id=None, depth=0, path="l[1]/a"),
    ])),
)  # fmt: skip


@scenario
async def library_run(stage: Stage) -> list[Event]:
    graph = graph_document(act("a", "talks"), act("b"), edges=[("a", "b")])
    registry = planwave.Registry([*stage.types])
    return [event async for event in planwave.run(graph, registry=registry)]


# -- people and time


@scenario
async def approvals(stage: Stage) -> None:
    graph = graph_document(
        act("draft", value="A draft"), approval("ask"), act("yes"), act("no"), act("aside", asks=_ASKS),
        edges=[("draft", "ask"), ("ask", "yes", "approve"), ("ask", "no", "reject")],
    )  # fmt: skip
    async with stage.service() as service:
        own = await stage.begin(service, graph)
        await service.executions.wait(own)
        await answer(service, own, "ask", {"decision": "approve", "note": "fine"})
        await seen(service, own, "node.completed", "yes")
        await answer(service, own, "aside", "on")
        await ended(service, own)


runs_to_its_end(
    "answer_in_time_never_came",
    graph_document(approval("ask", timeoutS=60, timeoutAction="reject"), act("yes"), act("no"),
             edges=[("ask", "yes", "approve"), ("ask", "no", "reject")]),
)  # fmt: skip
runs_to_its_end("wait", graph_document(act("a"), act("w", "wait", seconds=30), act("b"),
                                 edges=[("a", "w"), ("w", "b")]))  # fmt: skip


@scenario
async def approvals_of_plans(stage: Stage) -> None:
    graph = graph_document(act("a"), act("b"), act("c"), edges=[("a", "b"), ("b", "c")])
    async with stage.service() as service:
        own = await stage.begin(service, graph, require_approval=True, inputs={"a": {"output": 1}})
        await seen(service, own, "execution.paused")
        await service.executions.pause(own)
    async with stage.service() as service:
        await service.recover()
        await answer(service, own, None, {"decision": "approve", "note": "go on"})
        await service.executions.resume(own)
        await ended(service, own)
        stage.execution_ids.append((await service.executions.fork(own, rerun=["c"])).execution_id)
        await ended(service, stage.execution_ids[-1])
        own = await stage.begin(service, graph, require_approval=True)
        await seen(service, own, "execution.paused")
        edited = {"decision": "edit", "value": graph_document(act("a"))}
        following = await answer(service, own, None, edited)
        await ended(service, own)
        stage.execution_ids.append(following)
        await seen(service, following, "execution.paused")
        await answer(service, following, None, {"decision": "reject", "note": "no"})
        await ended(service, following)


@scenario
async def budget_that_is_raised_after_a_restart(stage: Stage) -> None:
    inner = graph_document(act("i", spends=30))
    graph = graph_document(act("a", spends=80), act("b", spends=40), act("c", runs={"k": inner}))
    async with stage.service() as service:
        options = RunOptions(budget={"tokens": 100, "usd": None})
        own = await stage.begin(service, graph, options=options)
        await seen(service, own, "execution.paused")
    async with stage.service() as service:
        await service.recover()
        await answer(service, own, None, {"decision": "raise", "value": {"tokens": 130}})
        await seen(service, own, "execution.paused", count=2)
        await answer(service, own, None, {"decision": "stop", "note": "enough"})
        await ended(service, own)


@scenario
async def pause_and_resume(stage: Stage) -> None:
    graph = graph_document(
        act("a", seconds=5), act("b"), act("q", asks=_ASKS), edges=[("a", "b"), ("q", "b")]
    )
    async with stage.service() as service:
        own = await stage.begin(service, graph)
        await seen(service, own, "node.waiting")
        await service.executions.pause(own)
        await seen(service, own, "node.completed", "a")
        await answer(service, own, "q", "yes")
        await service.executions.resume(own)
        await ended(service, own)


@scenario
async def cancel(stage: Stage) -> None:
    graph = graph_document(act("a"), act("b", seconds=90), act("c"), approval("q"),
                     edges=[("a", "b"), ("b", "c")])  # fmt: skip
    async with stage.service() as service:
        own = await stage.begin(service, graph)
        await seen(service, own, "node.started", "b")
        await service.executions.cancel(own, cause="enough")
        await ended(service, own)


@scenario
async def cancel_a_node(stage: Stage) -> None:
    graph = graph_document(act("a", seconds=90), act("b"), act("c", seconds=1), edges=[("a", "b")])
    async with stage.service() as service:
        own = await stage.begin(service, graph)
        await seen(service, own, "node.started", "a")
        await service.executions.cancel(own, node="a")
        await ended(service, own)


# -- agents


@scenario
async def agents(stage: Stage) -> None:
    """Calls of every outcome: side by side, approved with changes, rejected, failed, of another agent."""
    stage.types = (
        *stage.types,
        Kit([tool("look"), tool("send", effect="once", approval="always")]),
    )
    services, _ = services_with(_reply_of_agent, recorder=stage.store)
    stage.node_services = lambda _: services
    lead = act("lead", "agent", userPrompt="Go")
    clerk = {**act("clerk", "agent", userPrompt="{{ input }}"), "name": "Clerk"}
    graph = agent_graph(lead, clerk, edges=[("clerk", "lead")], kit_of=("lead", "clerk"))
    async with stage.service() as service:
        own = await stage.begin(service, graph)
        await seen(service, own, "execution.paused")
        changed = {"decision": "approve", "value": {"to": "Ada Lovelace"}}
        await answer(service, own, "lead[approve-1-1]/send", changed)
        await seen(service, own, "execution.paused", count=2)
        rejected = {"decision": "reject", "note": "Not him."}
        await answer(service, own, "lead[approve-1-2]/send", rejected)
        await ended(service, own)


def _reply_of_agent(request: ModelRequest) -> Iterable[Any]:
    if request.prompt == "Find it." or any(turn.text == "Find it." for turn in request.messages):
        return [_calls("k1 look")] if request.prompt else _says("Found.")
    rounds = sum(turn.role == "assistant" for turn in request.messages)
    if rounds == 0:
        return [_calls("c1 look", "c2 send Ada", "c3 send Bob", "c4 delegate_Clerk", "c5 lock")]
    return _says("All done.") if rounds > 1 else [_calls("c6 look")]


def _says(text: str) -> Iterator[Any]:
    """Return a reply of one piece."""
    return in_pieces(text, usage=Usage(3, 1, 0.5))


def _calls(*wanted: str) -> ModelReply:
    """Return a reply that asks for calls, each ``ID NAME [RECEIVER]``."""
    made: list[ToolCall] = []
    for call_id, name, *to in map(str.split, wanted):
        arguments = {"to": to[0]} if to else {"task": "Find it."} if "delegate" in name else {}
        made.append(ToolCall(call_id, name, json.dumps(arguments)))
    return ModelReply("", "openai", "m", "stop", Usage(3, 2, 0.5), tool_calls=tuple(made))


# -- graphs inside nodes

runs_to_its_end(
    "nested_runs",
    graph_document(act("a", runs={"x": _INSIDE, "y": _INSIDE}), act("b"), edges=[("a", "b")]),
)
runs_to_its_end(
    "nested_failure_and_retry",
    graph_document(act("a", policy={"retry": {"attempts": 2}},
                 runs={"x": graph_document(act("i"), act("j", fails=1), edges=[("i", "j")])})),
)  # fmt: skip
_ITEM = graph_document(
    act("s", "start"), act("t", value="{{ item }}: {{ input }}"), edges=[("s", "t")]
)
runs_to_its_end(
    "loop", graph_document(act("l", "loop", items=["x", "y", "z"], parallel=2, body=_ITEM))
)
runs_to_its_end(
    "loop_with_a_failure",
    graph_document(act("l", "loop", items=[1, 2], parallel=1, onItemError="skip",
                 body=graph_document(act("s", "start"), act("t", "parser", template="{{ item }}"),
                               act("u", fails=9), edges=[("s", "t"), ("t", "u")]))),
)  # fmt: skip
runs_to_its_end(
    "while",
    graph_document(act("w", "while", condition="value.goes",
                 initial={"goes": True, "next": {"goes": True, "next": {"goes": False}}},
                 body=graph_document(act("n", value="{{ value.next }}"), act("e", "end"),
                               edges=[("n", "e")]))),
)  # fmt: skip
runs_to_its_end(
    "inner",
    graph_document(act("a", value="Ada"),
             act("in", "inner", inputs={"name": "text"}, outputs={"short": "i"},
                 graph=graph_document(act("i", value="Hello {{ name }}"), act("j"), edges=[("i", "j")])),
             act("b"), edges=[("a", "in", "output", "name"), ("in", "b", "short")]),
)  # fmt: skip
_QUESTIONS = graph_document(
    act("each", "loop", items=["a", "b"],
        body=graph_document(act("s", "start"), approval("ask"), act("kept"),
                      edges=[("s", "ask"), ("ask", "kept", "approve")])),
    act("all"), edges=[("each", "all")],
)  # fmt: skip


@scenario
async def parked_while_people_think(stage: Stage) -> None:
    async with stage.service() as service:
        own = await stage.begin(service, _QUESTIONS)
        await service.executions.wait(own)
        await answer(service, own, "each[1]/ask", {"decision": "reject"})
        await seen(service, own, "execution.paused", count=2)
        await answer(service, own, "each[0]/ask", {"decision": "approve"})
        await ended(service, own)


@scenario
async def nested_timeout(stage: Stage) -> None:
    graph = graph_document(
        act(
            "a",
            policy={"timeoutS": 2},
            runs={"x": graph_document(act("i", seconds=5), act("j", seconds=1))},
        )
    )
    async with stage.service() as service:
        await ended(service, await stage.begin(service, graph))


# -- what is found again

_KEEPS = graph_document(act("a", once="token", fails=0, asks=_ASKS), act("b", once="other"))


@scenario
async def once_values(stage: Stage) -> None:
    async with stage.service() as service:
        own = await stage.begin(service, _KEEPS)
        await service.executions.wait(own)
        await answer(service, own, "a", "yes")
        await ended(service, own)


@scenario
async def cut_off_and_taken_up(stage: Stage) -> None:
    graph = graph_document(
        act("a"), act("b", seconds=50), act("c"), act("r", fails=1, policy={"retry": {"attempts": 2, "backoffS": 40}}),
        edges=[("a", "b"), ("b", "c")],
    )  # fmt: skip
    async with stage.service() as service:
        own = await stage.begin(service, graph)
        await seen(service, own, "node.started", "b")
        await seen(service, own, "node.retrying", "r")
        await asyncio.sleep(5)
    async with stage.service() as service:
        await service.recover()
        await ended(service, own)


@scenario
async def cut_off_inside_nodes(stage: Stage) -> None:
    inside = graph_document(
        act("i"), act("j", seconds=50), act("k"), edges=[("i", "j"), ("j", "k")]
    )
    graph = graph_document(
        act("a", once="key", runs={"x": _INSIDE, "y": inside}), act("b"), edges=[("a", "b")]
    )
    async with stage.service() as service:
        own = await stage.begin(service, graph)
        await seen(service, own, "node.started", "a[y]/j")
        await asyncio.sleep(5)
    async with stage.service() as service:
        await service.recover()
        await ended(service, own)


@scenario
async def cut_off_where_it_may_act_only_once(stage: Stage) -> None:
    graph = graph_document(act("pay", "act_once", seconds=50), act("b"), edges=[("pay", "b")])
    async with stage.service() as service:
        own = await stage.begin(service, graph)
        await seen(service, own, "node.started", "pay")
        await asyncio.sleep(5)
    async with stage.service() as service:
        await service.recover()
        asked = await seen(service, own, "node.waiting", "pay")
        await service.executions.answer(own, asked.data["request_id"], {"decision": "run_again"})
        await ended(service, own)


@scenario
async def cut_off_while_it_waits(stage: Stage) -> None:
    async with stage.service() as service:
        own = await stage.begin(service, _QUESTIONS)
        await service.executions.wait(own)
    async with stage.service() as service:
        await service.recover()
        await answer(service, own, "each[0]/ask", {"decision": "approve"})
        await seen(service, own, "execution.paused", count=2)
    async with stage.service() as service:
        await answer(service, own, "each[1]/ask", {"decision": "approve"})
        await ended(service, own)


@scenario
async def paused_over_a_restart(stage: Stage) -> None:
    async with stage.service() as service:
        own = await stage.begin(
            service, graph_document(act("a", seconds=5), act("b"), edges=[("a", "b")])
        )
        await seen(service, own, "node.started", "a")
        await service.executions.pause(own)
        await seen(service, own, "node.completed", "a")
    async with stage.service() as service:
        await service.recover()
        await service.executions.resume(own)
        await ended(service, own)


@scenario
async def retry_of_an_execution(stage: Stage) -> None:
    graph = graph_document(
        act("a"), act("each", "loop", items=[1, 2], parallel=1,
                      body=graph_document(act("s", "start"), act("i"), act("j", "odd", gives="a set"),
                                    edges=[("s", "i"), ("i", "j")])),
        act("b"), edges=[("a", "each"), ("each", "b")],
    )  # fmt: skip
    async with stage.service() as service:
        own = await stage.begin(service, graph)
        await ended(service, own)
        stage.execution_ids.append((await service.executions.retry(own)).execution_id)
        await ended(service, stage.execution_ids[-1])


@scenario
async def fork_with_changes(stage: Stage) -> None:
    graph = graph_document(
        act("a"), act("b", once="key"), act("c"), act("in", "inner", graph=_INSIDE), act("d"),
        edges=[("a", "b"), ("b", "c"), ("a", "in"), ("c", "d"), ("in", "d")],
    )  # fmt: skip
    async with stage.service() as service:
        own = await stage.begin(service, graph)
        await ended(service, own)
        for more in (
            {"changes": {"c": {"data": {"value": "other"}}}},
            {"changes": {"b": {"outputs": {"output": "set"}}}},
            {"rerun": ["in"]},
        ):
            stage.execution_ids.append((await service.executions.fork(own, **more)).execution_id)
            await ended(service, stage.execution_ids[-1])


# -- changes of the graph


@scenario
async def changes_while_it_waits(stage: Stage) -> None:
    """Steps are added, changed, rewired and dropped, a failed one too; then the change is changed."""
    graph = graph_document(
        act("a"), act("q", asks=_ASKS), act("f", fails=9, retryable=False), act("g"), act("b"), act("c"), act("x"),
        edges=[("a", "q"), ("q", "b"), ("b", "c"), ("a", "f"), ("f", "g"), ("q", "x")],
    )  # fmt: skip
    first = graph_document(
        act("a"), act("q", asks=_ASKS), act("g"), act("b", value="changed"), act("c"), act("costs"),
        act("late"), edges=[("a", "q"), ("q", "b"), ("b", "c"), ("a", "g"), ("a", "costs"), ("costs", "c"),
                            ("c", "late")],
    )  # fmt: skip
    async with stage.service() as service:
        own = await stage.begin(service, graph, options=RunOptions(on_failure="continue"))
        await seen(service, own, "node.blocked")
        await seen(service, own, "node.waiting")
        await service.changes.revise(own, first, note="also cover costs")
        await seen(service, own, "node.completed", "costs")
        second = {**first, "nodes": [each for each in first["nodes"] if each["id"] != "late"]}
        second["edges"] = [each for each in first["edges"] if each["target"] != "late"]
        await service.changes.revise(own, second)
        await answer(service, own, "q", "yes")
        await ended(service, own)


@scenario
async def changes_in_waves_over_a_restart(stage: Stage) -> None:
    """A step that needs nothing comes in the wave that is open, and moves those that need it."""
    graph = graph_document(act("a"), act("b"), act("q", asks=_ASKS), act("c"),
                     edges=[("a", "b"), ("b", "q"), ("q", "c")])  # fmt: skip
    wider = graph_document(act("a"), act("b"), act("q", asks=_ASKS), act("c"), act("n"), act("m"),
                     edges=[("a", "b"), ("b", "q"), ("q", "c"), ("n", "m")])  # fmt: skip
    async with stage.service() as service:
        own = await stage.begin(service, graph, options=RunOptions(scheduling="waves"))
        await seen(service, own, "node.waiting")
        await service.changes.revise(own, wider, note="two more")
        await seen(service, own, "execution.paused", count=2)
    async with stage.service() as service:
        await service.recover()
        await answer(service, own, "q", "yes")
        await ended(service, own)


@scenario
async def changes_after_failures(stage: Stage) -> None:
    """A step that fails has the graph changed by a model, twice asked for, once refused; a stop waits for that."""
    graph = graph_document(
        act("a"), act("f", fails=9, retryable=False), act("g"), act("q", asks=_ASKS), act("z"),
        edges=[("a", "f"), ("f", "g"), ("q", "z")],
    )  # fmt: skip
    other = graph_document(
        act("a"), act("g"), act("q", asks=_ASKS), act("z"), act("h", fails=9, retryable=False),
        edges=[("a", "h"), ("h", "g"), ("q", "z")],
    )  # fmt: skip
    stage.planner = Rewrites(other)
    options = RunOptions(on_failure="stop", replan={"on_failure": True, "max": 2})
    async with stage.service() as service:
        own = await stage.begin(service, graph, options=options)
        await ended(service, own)


@scenario
async def changes_that_a_person_decides(stage: Stage) -> None:
    """A model adds an effect: nothing starts before a person has decided, over a restart too; nothing is written twice."""
    graph = graph_document(
        act("a"), act("f", fails=9, retryable=False), act("g"), act("s", seconds=5), act("z"),
        edges=[("a", "f"), ("f", "g"), ("s", "z")],
    )  # fmt: skip
    other = graph_document(
        act("a"), act("h", "act_once"), act("g"), act("s", seconds=5), act("z"),
        edges=[("a", "h"), ("h", "g"), ("s", "z")],
    )  # fmt: skip
    stage.planner = Rewrites(other)
    options = RunOptions(replan={"on_failure": True, "max": 1})
    async with stage.service() as service:
        approved = await stage.begin(service, graph, options=options)
        rejected = await stage.begin(service, graph, options=options)
        for each in (approved, rejected):
            await seen(service, each, "execution.paused")
            await seen(service, each, "node.completed", "s")
    stage.planner = None
    async with stage.service() as service:
        await service.recover()
        await answer(service, approved, None, {"decision": "approve"})
        await answer(service, rejected, None, {"decision": "reject", "note": "not twice"})
        for each in (approved, rejected):
            await ended(service, each)


@scenario
async def changes_in_words_of_a_person(stage: Stage) -> None:
    """A person has a model change the graph while a step waits and one runs; then it is asked for what it cannot do."""
    steps = (act("a"), act("q", asks=_ASKS), act("s", seconds=5), act("b"), act("z"))
    edges = [("a", "q"), ("q", "b"), ("a", "s"), ("s", "z")]
    graph = graph_document(*steps, edges=edges)
    wider = [*edges, ("a", "costs"), ("costs", "b")]
    stage.planner = Rewrites(graph_document(*steps, act("costs"), edges=wider))
    async with stage.service() as service:
        own = await stage.begin(service, graph)
        await seen(service, own, "node.waiting")
        await service.changes.replan(own, "also cover the costs")
        await seen(service, own, "execution.paused")
        await service.changes.replan(own, "make coffee")
        await seen(service, own, "execution.paused", count=2)
        await answer(service, own, "q", "yes")
        await ended(service, own)
