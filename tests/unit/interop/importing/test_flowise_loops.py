"""Loop steps of Flowise, which jump back, as ``while`` nodes; the state of a flow; what later rounds read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.interop.importing.importer import import_text
from tests.support.interop.damage import Damaged, damaged
from tests.support.interop.flowise_engine import Engine
from tests.support.interop.flowise_files import (
    data_at,
    import_chain,
    import_steps,
    llm_step,
    notes_of,
    pointers_of,
    remembering_step,
    run_import,
    said_in,
    start_step,
    step_node,
    types_of,
    wire,
)
from tests.support.interop.imports import SETUP_CODES, assert_accounted_for, findings_of, outcomes

_START = "startAgentflow_0"


def _loop(number: int, target: str, **inputs: Any) -> dict[str, Any]:
    return step_node(f"loopAgentflow_{number}", {"loopBackToNode": f"{target}-Step", **inputs})


def _choice(number: int, value: str, *wanted: str) -> dict[str, Any]:
    tests = [
        {"type": "string", "operation": "equal", "value1": value, "value2": each} for each in wanted
    ]
    return step_node(f"conditionAgentflow_{number}", {"conditions": tests})


def _reply(number: int, message: str) -> dict[str, Any]:
    return step_node(f"directReplyAgentflow_{number}", {"directReplyMessage": message})


def _writer(
    *, last: str = "{{ llmAgentflow_0 }}", step: Any = None, **loop: Any
) -> tuple[list[Any], list[Any]]:
    """Return a flow that writes until the text is ``ok``."""
    first = step or remembering_step(0, "Write.")
    nodes = [start_step(), first, _choice(0, f"{{{{ {first['id']} }}}}", "ok"), _reply(0, last), _loop(0, first["id"], **loop)]  # fmt: skip
    edges = [
        wire(_START, first["id"]), wire(first["id"], "conditionAgentflow_0"),
        wire("conditionAgentflow_0", "directReplyAgentflow_0", 0), wire("conditionAgentflow_0", "loopAgentflow_0", 1),
    ]  # fmt: skip
    return nodes, edges


def _replies(*texts: Any) -> Callable[[Any], str]:
    left = iter(texts)
    return lambda _: text if isinstance(text := next(left), str) else json.dumps(text)


async def test_a_loop_goes_back_until_a_way_leads_out_of_it() -> None:
    imported = import_steps(*_writer())
    assert types_of(imported) == {
        _START: "chat_start", "loopAgentflow_0-outer": "transform", "loopAgentflow_0": "inner",
        "loopAgentflow_0-way": "switch", "loopAgentflow_0-stop": "text", "directReplyAgentflow_0": "text",
    }  # fmt: skip
    assert "llmAgentflow_0 → conditionAgentflow_0 → loopAgentflow_0 → llmAgentflow_0" in notes_of(imported, "loopAgentflow_0")  # fmt: skip
    assert {code for each in findings_of(imported) if (code := each.code)} <= SETUP_CODES
    told = import_text(_text(_writer()), "flowise", provider="fake")
    output, requests = await run_import(told, "Hello", _replies("bad", "worse", "ok"))
    assert output == "ok"
    assert said_in(requests[2]) == [
        ("user", "Hello"), ("user", "bad"), ("user", "worse"), ("user", "Write.")
    ]  # fmt: skip


def _text(flow: tuple[Sequence[Any], Sequence[Any]]) -> str:
    return json.dumps({"nodes": flow[0], "edges": flow[1]})


@pytest.mark.parametrize(
    ("settings", "rounds", "expected"),
    [
        ({}, 5, "Loop completed after reaching maximum iteration count of 5."),
        ({"maxLoopCount": "2"}, 2, "Loop completed after reaching maximum iteration count of 2."),
        ({"maxLoopCount": 3, "fallbackMessage": "<p>Not {{ question }}</p>"}, 3, "Not Hello"),
        ({"maxLoopCount": "x"}, 10, "Loop completed after reaching maximum iteration count of 10."),
        ({"maxLoopCount": 1, "fallbackMessage": "{{ loop_count }}"}, 1, "0"),
    ],
)
async def test_a_loop_ends_after_its_rounds_with_its_message(
    settings: Any, rounds: int, expected: str
) -> None:
    imported = import_text(_text(_writer(**settings)), "flowise", provider="fake")
    output, requests = await run_import(imported, "Hello", lambda _: "bad")
    assert (output, len(requests)) == (expected, rounds)


async def test_a_step_reads_what_a_later_one_gave_in_the_round_before() -> None:
    nodes = [
        start_step(), llm_step(0, "Draft. Said: {{ llmAgentflow_1 }}"), llm_step(1, "Judge {{ llmAgentflow_0 }}"),
        _choice(0, "{{ llmAgentflow_1 }}", "good"), _loop(0, "llmAgentflow_0"), _reply(0, "{{ llmAgentflow_0 }} is {{ llmAgentflow_1 }}"),
    ]  # fmt: skip
    edges = [
        wire(_START, "llmAgentflow_0"), wire("llmAgentflow_0", "llmAgentflow_1"), wire("llmAgentflow_1", "conditionAgentflow_0"),
        wire("conditionAgentflow_0", "directReplyAgentflow_0", 0), wire("conditionAgentflow_0", "loopAgentflow_0", 1),
    ]  # fmt: skip
    imported = import_text(_text((nodes, edges)), "flowise", provider="fake")
    output, requests = await run_import(imported, "x", _replies("a", "bad", "b", "good"))
    assert output == "b is good"
    assert [each.prompt for each in requests] == [
        "Draft. Said: {{ llmAgentflow_1 }}", "Judge a", "Draft. Said: bad", "Judge b"
    ]  # fmt: skip


def _team(most: int = 5) -> tuple[list[Any], list[Any]]:
    """Return a flow in which a leader chooses who works next, with a loop step for each worker."""
    fields = [{"key": key, "type": "string"} for key in ("next", "task")]
    writes = [{"key": key, "value": f"<p>{{{{ output.{key} }}}}</p>"} for key in ("next", "task")]
    nodes = [
        start_step(startState=[{"key": "next", "value": ""}, {"key": "task", "value": "none"}]),
        remembering_step(0, "Who? {{ $flow.state.task }}", llmStructuredOutput=fields, llmUpdateState=writes),
        _choice(0, "{{ $flow.state.next }}", "a", "b"),
        remembering_step(1, "{{ $flow.state.task }}"), remembering_step(2, "B {{ $flow.state.task }}"),
        _loop(0, "llmAgentflow_0", maxLoopCount=most), _loop(1, "llmAgentflow_0", maxLoopCount=most), _reply(0, "{{ $flow.state.task }}"),
    ]  # fmt: skip
    edges = [
        wire(_START, "llmAgentflow_0"), wire("llmAgentflow_0", "conditionAgentflow_0"),
        *(wire("conditionAgentflow_0", f"llmAgentflow_{i + 1}", i) for i in (0, 1)),
        wire("conditionAgentflow_0", "directReplyAgentflow_0", 2),
        *(wire(f"llmAgentflow_{i + 1}", f"loopAgentflow_{i}") for i in (0, 1)),
    ]  # fmt: skip
    return nodes, edges


async def test_the_state_of_a_flow_goes_through_the_rounds() -> None:
    imported = import_text(_text(_team()), "flowise", provider="fake")
    assert imported.report["summary"]["placeholder"] == 0
    script = [{"next": "a", "task": "1"}, "A", {"next": "b", "task": "2"}, "B", {"next": "", "task": "end"}]  # fmt: skip
    output, requests = await run_import(imported, "Go", _replies(*script))
    assert output == "end"
    last = [said_in(each)[-1][1] for each in requests]
    assert last == ["Who? none", "1", "Who? 1", "B 2", "Who? 2"]
    assert [text for _, text in said_in(requests[-1])] == [
        "Go", json.dumps(script[0]), "A", json.dumps(script[2]), "B", "Who? 2"
    ]  # fmt: skip


async def test_each_loop_step_counts_for_itself() -> None:
    imported = import_text(_text(_team(most=2)), "flowise", provider="fake")
    a, b = ({"next": each, "task": each} for each in "ab")
    output, requests = await run_import(imported, "Go", _replies(a, "A", b, "B", a, "A"))
    assert (output, len(requests)) == ("Loop completed after reaching maximum iteration count of 2.", 6)  # fmt: skip


async def test_a_person_may_send_a_run_back() -> None:
    look = step_node("humanInputAgentflow_0", {"humanInputDescription": "Sure?"})
    nodes = [start_step(), remembering_step(0), look, _loop(0, "llmAgentflow_0"), remembering_step(1, "Title?")]  # fmt: skip
    edges = [
        wire(_START, "llmAgentflow_0"), wire("llmAgentflow_0", look["id"]), wire(look["id"], "llmAgentflow_1", 0),
        wire(look["id"], "loopAgentflow_0", 1),
    ]  # fmt: skip
    imported = import_text(_text((nodes, edges)), "flowise", provider="fake")
    answers = [{"decision": each, "note": ""} for each in ("reject", "proceed")]
    output, requests = await run_import(imported, "Hi", _replies("one", "two", "three"), answers)
    assert output == "three"
    assert said_in(requests[1]) == [("user", "Hi"), ("user", "one"), ("assistant", "Sure?"), ("user", "reject")]  # fmt: skip
    assert [text for _, text in said_in(requests[2])] == ["Hi", "one", "Sure?", "reject", "two", "Sure?", "proceed", "Title?"]  # fmt: skip


async def test_the_rounds_are_counted_anew_after_a_decision() -> None:
    look = step_node("humanInputAgentflow_0", {"humanInputDescription": "Sure?"})
    nodes = [start_step(), llm_step(0, "x"), look, _loop(0, "llmAgentflow_0", maxLoopCount=2), llm_step(1, "Title?")]  # fmt: skip
    edges = [
        wire(_START, "llmAgentflow_0"), wire("llmAgentflow_0", look["id"]), wire(look["id"], "llmAgentflow_1", 0),
        wire(look["id"], "loopAgentflow_0", 1),
    ]  # fmt: skip
    imported = import_text(_text((nodes, edges)), "flowise", provider="fake")
    answers = [{"decision": each, "note": ""} for each in ("reject", "reject", "reject", "proceed")]
    output, requests = await run_import(imported, "Hi", lambda r: r.prompt, answers)
    assert (output, len(requests)) == ("Title?", 5)


async def test_a_loop_inside_a_loop_keeps_its_count() -> None:
    nodes = [
        start_step(), llm_step(0, "Outer"), llm_step(1, "Inner {{ llmAgentflow_0 }}"),
        _choice(0, "{{ llmAgentflow_1 }}", "out", "again"), _loop(0, "llmAgentflow_0"), _loop(1, "llmAgentflow_1", maxLoopCount=3),
        _reply(0, "{{ llmAgentflow_0 }}/{{ llmAgentflow_1 }}"),
    ]  # fmt: skip
    edges = [
        wire(_START, "llmAgentflow_0"), wire("llmAgentflow_0", "llmAgentflow_1"), wire("llmAgentflow_1", "conditionAgentflow_0"),
        wire("conditionAgentflow_0", "loopAgentflow_0", 0), wire("conditionAgentflow_0", "loopAgentflow_1", 1),
        wire("conditionAgentflow_0", "directReplyAgentflow_0", 2),
    ]  # fmt: skip
    told = import_text(_text((nodes, edges)), "flowise", provider="fake")
    assert told.report["summary"]["placeholder"] == 0
    assert_accounted_for(told, **pointers_of({"nodes": nodes, "edges": edges}))
    output, requests = await run_import(
        told, "x", _replies("a", "again", "out", "b", "again", "end")
    )
    assert output == "b/end"
    assert [each.prompt for each in requests] == ["Outer", "Inner a", "Inner a", "Outer", "Inner b", "Inner b"]  # fmt: skip
    told = import_text(_text((nodes, edges)), "flowise", provider="fake")
    output, _ = await run_import(told, "x", _replies("a", "again", "out", "b", "again", "again"))
    assert output == "Loop completed after reaching maximum iteration count of 3."


async def test_an_iteration_inside_a_loop_reads_what_is_outside_of_both() -> None:
    inside = llm_step(1, "{{ $iteration.a }} {{ question }} {{ llmAgentflow_0 }}")
    nodes = [
        start_step(), llm_step(0, "Plan"), step_node("iterationAgentflow_0", {"iterationInput": '[{"a": "1"}, {"a": "2"}]'}),
        {**inside, "parentNode": "iterationAgentflow_0"}, _choice(0, "{{ iterationAgentflow_0 }}", "x\ny"),
        _loop(0, "llmAgentflow_0"), _reply(0, "{{ iterationAgentflow_0 }}"),
    ]  # fmt: skip
    edges = [
        wire(_START, "llmAgentflow_0"), wire("llmAgentflow_0", "iterationAgentflow_0"), wire("iterationAgentflow_0", "conditionAgentflow_0"),
        wire("conditionAgentflow_0", "directReplyAgentflow_0", 0), wire("conditionAgentflow_0", "loopAgentflow_0", 1),
    ]  # fmt: skip
    told = import_text(_text((nodes, edges)), "flowise", provider="fake")
    assert_accounted_for(told, **pointers_of({"nodes": nodes, "edges": edges}))
    output, requests = await run_import(told, "Q", _replies("p", "w", "v", "q", "x", "y"))
    assert output == "x\ny"
    assert [each.prompt for each in requests] == ["Plan", "1 Q p", "2 Q p", "Plan", "1 Q q", "2 Q q"]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("middle", "begin before the one that it leads back to"),
        ("outside", "several of the steps that it repeats are led to from outside"),
        ("fork", "several steps follow 'llmAgentflow_0' at once"),
        ("nowhere", "which is no loop here: llmAgentflow_9"),
        ("iteration", "it stands inside an iteration"),
        ("start", "a run begins inside"),
    ],
)
def test_steps_that_are_no_loop_say_why(case: str, reason: str) -> None:
    nodes = [start_step(), llm_step(0, "a"), llm_step(1, "b"), _loop(0, "llmAgentflow_0"), llm_step(2, "c")]  # fmt: skip
    edges = [wire("llmAgentflow_0", "llmAgentflow_1"), wire("llmAgentflow_1", "loopAgentflow_0")]
    edges += [] if case == "iteration" else [wire(_START, "llmAgentflow_0")]
    match case:
        case "middle":
            nodes[3] = _loop(0, "llmAgentflow_1")
            nodes.append(_loop(1, "llmAgentflow_0"))
            edges.append(wire("loopAgentflow_0", "loopAgentflow_1"))
            nodes[4] = _loop(2, "llmAgentflow_1")
            edges = [wire(_START, "llmAgentflow_1"), wire("llmAgentflow_1", "llmAgentflow_0"), wire("llmAgentflow_0", "loopAgentflow_0")]  # fmt: skip
            nodes[3] = _loop(0, "llmAgentflow_0")
            edges.append(wire("llmAgentflow_0", "llmAgentflow_1", 1))
        case "outside":
            edges.append(wire(_START, "llmAgentflow_1"))
        case "fork":
            edges.append(wire("llmAgentflow_0", "llmAgentflow_2"))
        case "nowhere":
            nodes[3] = _loop(0, "llmAgentflow_9")
            nodes[3]["data"]["inputs"]["loopBackToNode"] = "llmAgentflow_9"
        case "iteration":
            nodes.append(step_node("iterationAgentflow_0", {"iterationInput": "[1]"}))
            for each in nodes[1:4]:
                each["parentNode"] = "iterationAgentflow_0"
        case _:
            nodes[3] = _loop(0, _START)
    imported = import_steps(nodes, edges)
    assert reason in notes_of(imported, "loopAgentflow_0")
    assert outcomes(imported)["loopAgentflow_0"] == "placeholder"


def test_loops_that_are_nested_too_deep_are_placeholders() -> None:
    nodes, edges = _writer()
    iteration = step_node("iterationAgentflow_0", {"iterationInput": "[1]"})
    nodes += [_choice(1, "{{ question }}", "a"), iteration, {**llm_step(3, "x"), "parentNode": iteration["id"]}, _loop(1, "conditionAgentflow_1")]  # fmt: skip
    edges[0] = wire(_START, "llmAgentflow_0")
    edges[1] = wire("llmAgentflow_0", "conditionAgentflow_1")
    edges += [wire("conditionAgentflow_1", iteration["id"], 0), wire(iteration["id"], "loopAgentflow_1"), wire("conditionAgentflow_1", "conditionAgentflow_0", 1)]  # fmt: skip
    imported = import_steps(nodes, edges)
    assert "not nested so deep" in notes_of(imported, "loopAgentflow_1")


# -- the state -------------------------------------------------------------------------------------


def _state(value: str, **more: Any) -> dict[str, Any]:
    return {"llmUpdateState": [{"key": "k", "value": value}], **more}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{{ output }}", "R"), ("<p>{{output}} </p>", "R"), ("Got {{ output }}, {{ question }}", "Got R, Q"),
        ("{% x %}", "{% x %}"), ("", ""),
    ],
)  # fmt: skip
async def test_what_a_step_writes_into_the_state_is_read_later(value: str, expected: str) -> None:
    imported = import_chain(start_step(startState=[{"key": "k", "value": "old"}]), llm_step(0, "a", **_state(value)), _reply(0, "{{ $flow.state.k }}"))  # fmt: skip
    assert imported.report["summary"]["placeholder"] == 0
    assert (await run_import(imported, "Q", lambda _: "R"))[0] == expected


async def test_a_state_that_nobody_wrote_stays_as_it_is_written() -> None:
    imported = import_chain(start_step(startState='[{"key": "n", "value": 3}]'), _reply(0, "{{ $flow.state.n }} {{ $flow.state.k }}"))  # fmt: skip
    assert (await run_import(imported, "Q", lambda _: ""))[0] == "3 {{ $flow.state.k }}"


async def test_the_branch_that_ran_wrote_the_state() -> None:
    nodes = [
        start_step(startState=[{"key": "k", "value": "old"}]), _choice(0, "{{ question }}", "a"),
        llm_step(0, "a", **_state("{{ output }}")), _reply(0, "{{ $flow.state.k }}"),
    ]  # fmt: skip
    edges = [
        wire(_START, "conditionAgentflow_0"), wire("conditionAgentflow_0", "llmAgentflow_0", 0),
        wire("llmAgentflow_0", "directReplyAgentflow_0"), wire("conditionAgentflow_0", "directReplyAgentflow_0", 1),
    ]  # fmt: skip
    imported = import_steps(nodes, edges)
    assert (await run_import(imported, "a", lambda _: "new"))[0] == "new"
    assert (await run_import(imported, "b", lambda _: "new"))[0] == "old"


def test_steps_that_write_the_state_at_the_same_time_are_not_read() -> None:
    nodes = [start_step(), *(llm_step(i, "a", **_state("{{ output }}")) for i in (0, 1)), _reply(0, "{{ $flow.state.k }}")]  # fmt: skip
    edges = [wire(_START, f"llmAgentflow_{i}") for i in (0, 1)]
    edges += [wire(f"llmAgentflow_{i}", "directReplyAgentflow_0") for i in (0, 1)]
    imported = import_steps(nodes, edges)
    assert "at the same time write the state" in notes_of(imported, "directReplyAgentflow_0")


def test_a_state_that_doubles_at_each_step_ends_in_a_placeholder() -> None:
    doubled = _state("{{ $flow.state.k }}{{ $flow.state.k }}")
    begin = start_step(startState=[{"key": "k", "value": "a"}])
    imported = import_chain(begin, *(llm_step(i, "a", **doubled) for i in range(40)))
    assert len(json.dumps(imported.document)) < 1_000_000
    assert outcomes(imported)["llmAgentflow_39"] == "placeholder"


def test_500_steps_of_a_loop_convert() -> None:
    steps = [remembering_step(i, "{{ $flow.state.k }}", **_state("{{ output }}")) for i in range(90)]  # fmt: skip
    steps += [_reply(i, f"{{{{ directReplyAgentflow_{i + 1} }}}}") for i in range(90, 497)]
    nodes = [start_step(), *steps, _choice(0, "{{ question }}", "a"), _loop(0, "llmAgentflow_0")]
    edges = [wire(a["id"], b["id"]) for a, b in pairwise(nodes[:-1])]
    edges.append(wire("conditionAgentflow_0", "loopAgentflow_0", 0))
    imported = import_text(_text((nodes, edges)))
    lost = [name for name, outcome in outcomes(imported).items() if outcome == "placeholder"]
    assert lost == ["directReplyAgentflow_496"]


def test_a_state_that_begins_with_a_reference_is_lost() -> None:
    imported = import_chain(start_step(startState=[{"key": "k", "value": "{{ output }}"}]), _reply(0, "x"))  # fmt: skip
    assert outcomes(imported)[_START] == "placeholder"


def test_what_an_iteration_writes_into_the_state_is_not_read_after_it() -> None:
    nodes = [
        start_step(), step_node("iterationAgentflow_0", {"iterationInput": "[1]"}),
        {**llm_step(0, "x", **_state("{{ output }}")), "parentNode": "iterationAgentflow_0"}, _reply(0, "{{ $flow.state.k }}"),
    ]  # fmt: skip
    edges = [wire(_START, "iterationAgentflow_0"), wire("iterationAgentflow_0", "directReplyAgentflow_0")]  # fmt: skip
    imported = import_steps(nodes, edges)
    assert outcomes(imported)["directReplyAgentflow_0"] == "placeholder"


# -- steps that choose, and roles ------------------------------------------------------------------


def _sorter(**inputs: Any) -> dict[str, Any]:
    scenarios = [{"scenario": each} for each in ("one", "two")]
    return step_node("conditionAgentAgentflow_0", {"conditionAgentModel": "chatOpenAI", "conditionAgentScenarios": scenarios, **inputs})  # fmt: skip


@pytest.mark.parametrize(("choice", "expected"), [("0", "R0"), ("1", "R1"), ("neither", "R1")])
async def test_a_reply_that_names_no_scenario_takes_the_last(choice: str, expected: str) -> None:
    nodes = [start_step(), _sorter(), _reply(0, "R0"), _reply(1, "R1")]
    edges = [wire(_START, nodes[1]["id"]), *(wire(nodes[1]["id"], f"directReplyAgentflow_{i}", i) for i in (0, 1))]  # fmt: skip
    assert (await run_import(import_steps(nodes, edges), "x", lambda _: choice))[0] == expected


async def test_a_step_that_chooses_is_the_first_to_hear_the_question() -> None:
    last = remembering_step(1, "And?")
    nodes = [start_step(), remembering_step(0), _sorter(conditionAgentEnableMemory=True, conditionAgentInput="Sort"), last]  # fmt: skip
    edges = [wire(_START, "llmAgentflow_0"), wire("llmAgentflow_0", nodes[2]["id"]), wire(nodes[2]["id"], last["id"], 0)]  # fmt: skip
    told = import_text(_text((nodes, edges)), "flowise", provider="fake")
    _, requests = await run_import(told, "Q", _replies("r", "0", "end"))
    assert said_in(requests[1]) == [("user", "Q"), ("user", "r"), ("user", "Sort")]
    assert said_in(requests[2]) == [("user", "Q"), ("user", "r"), ("user", "And?")]
    nodes, edges = [start_step(), _sorter(), last], [wire(_START, nodes[2]["id"]), edges[2]]
    told = import_text(_text((nodes, edges)), "flowise", provider="fake")
    _, requests = await run_import(told, "Q", _replies("0", "end"))
    assert said_in(requests[1]) == [("user", "Q"), ("user", "And?")]


async def test_a_conversation_may_be_read_as_a_text() -> None:
    last = llm_step(1, "Sum up: {{ chat_history }} ({{ runtime_messages_length }}/{{ chat_history }})")  # fmt: skip
    imported = import_chain(start_step(), remembering_step(0, llmReturnResponseAs="assistantMessage"), last)  # fmt: skip
    told = {"message": "Q", "history": [{"role": "user", "content": "{b}"}, {"role": "assistant", "content": " "}]}  # fmt: skip
    _, requests = await run_import(imported, told, _replies("one", "end"))
    text = "Human: {b}\nHuman: Q\nAssistant: one"
    assert requests[1].prompt == f"Sum up: {text} (1/{text})"
    nodes, edges = _writer(step=remembering_step(0, "Said: {{ chat_history }}"))
    imported = import_text(_text((nodes, edges)), "flowise", provider="fake")
    _, requests = await run_import(imported, "Hi", _replies("bad", "ok"))
    assert [said_in(each)[-1][1] for each in requests] == ["Said: ", "Said: Human: Hi\nHuman: bad"]


async def test_data_are_put_into_messages_as_json() -> None:
    fields = [{"key": "ok", "type": "boolean"}, {"key": "n", "type": "number"}]
    first = llm_step(0, "a", llmStructuredOutput=fields, llmUpdateState=[{"key": "k", "value": "{{ output.ok }}"}])  # fmt: skip
    both = "{{ $flow.state.k }} {{ llmAgentflow_0.output.n }}"
    last = llm_step(1, llmEnableMemory=True, llmMessages=[{"role": "user", "content": "{{ $flow.state.k }}"}], llmUserMessage=both)  # fmt: skip
    imported = import_chain(start_step(), first, last)
    _, requests = await run_import(imported, "Q", _replies({"ok": True, "n": 2}, "end"))
    said = [text for _, text in said_in(requests[1])]
    assert (said[0], said[-1]) == ("true", "true 2")


def test_a_message_of_the_developer_is_one_of_the_system() -> None:
    step = llm_step(0, llmMessages=[{"role": "developer", "content": "D"}, {"role": "system", "content": "S"}])  # fmt: skip
    imported = import_chain(start_step(), step)
    assert data_at(imported, "llmAgentflow_0")["system"] == "S\n\nD"
    late = llm_step(0, "u", llmMessages=[{"role": "user", "content": "u"}, {"role": "developer", "content": "D"}])  # fmt: skip
    assert outcomes(import_chain(start_step(), late))["llmAgentflow_0"] == "placeholder"


def test_a_step_of_the_older_editor_says_what_it_is() -> None:
    worker = step_node("worker_0")
    assert "sequential agents of Flowise's older editor" in notes_of(import_steps([worker]), "worker_0")  # fmt: skip


# -- any loop --------------------------------------------------------------------------------------


@st.composite
def looping_flows(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a chain of steps with ways out of it and back to earlier steps, which read each other."""
    steps = draw(st.integers(2, 4))
    nodes: list[dict[str, Any]] = [start_step(startState=[{"key": "k", "value": "0"}])]
    edges: list[dict[str, Any]] = []
    texts = st.sampled_from(["a", "{{ question }}", "{{ $flow.state.k }}", "{{ runtime_messages_length }}", *(f"{{{{ llmAgentflow_{i} }}}}" for i in range(steps))])  # fmt: skip
    before, output = _START, None
    for number in range(steps):
        writes = _state(draw(texts)) if draw(st.booleans()) else {}
        step = (remembering_step if draw(st.booleans()) else llm_step)(number, draw(texts), **writes)  # fmt: skip
        nodes += [step, _choice(number, draw(texts), "x")]
        edges += [wire(before, step["id"], output), wire(step["id"], f"conditionAgentflow_{number}")]  # fmt: skip
        if draw(st.booleans()):
            target = draw(st.integers(0, number))
            nodes.append(_loop(number, f"llmAgentflow_{target}", maxLoopCount=2, fallbackMessage=draw(texts)))  # fmt: skip
            edges.append(wire(f"conditionAgentflow_{number}", f"loopAgentflow_{number}", 1))
        before, output = f"conditionAgentflow_{number}", 0
    if draw(st.booleans()):
        nodes.append(_reply(0, draw(texts)))
        edges.append(wire(before, "directReplyAgentflow_0", 0))
    return {"nodes": nodes, "edges": edges}


@given(looping_flows())
def test_any_loop_is_a_graph_that_passes_the_check(document: dict[str, Any]) -> None:
    imported = import_text(json.dumps(document), "flowise")
    assert_accounted_for(imported, **pointers_of(document))
    assert {each.code for each in findings_of(imported)} <= SETUP_CODES


@given(looping_flows(), st.lists(st.sampled_from(["x", "a", "0"]), min_size=1, max_size=5))
async def test_any_loop_runs_as_in_the_engine_of_there(document: dict[str, Any], replies: list[str]) -> None:  # fmt: skip
    def reply(number: int) -> str:
        return replies[number % len(replies)]

    engine = Engine(document, "Q", reply)
    engine.run()
    imported = import_text(json.dumps(document), "flowise", provider="fake")
    if imported.report["summary"]["placeholder"]:
        return
    numbers = count()
    output, requests = await run_import(imported, "Q", lambda _: reply(next(numbers)))
    asked = [said_in(each) or [("user", each.prompt)] for each in requests]
    assert asked == engine.asked
    if engine.result is not None:
        assert output == engine.result


@given(damaged(looping_flows()))
def test_any_damaged_loop_is_accounted_for(case: Damaged) -> None:
    imported = import_text(json.dumps(case.document), "flowise")
    assert_accounted_for(imported, **pointers_of(case.document), secrets=case.secrets)
