"""Messages of the command line, whole, as a user meets them."""

from __future__ import annotations

import asyncio
import json
import socket
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import planwave
from planwave.bootstrap import open_service
from planwave.cli.formatting import clock_time
from planwave.errors import GraphInvalid
from planwave.events import OpenRequest
from planwave.events.request_text import end_of_timer
from planwave.settings import Settings
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import (
    approval_graph,
    execute_graph,
    invoke,
    invoke_json,
)


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)


def written(*nodes: dict[str, Any], edges: tuple[dict[str, Any], ...] = ()) -> str:
    """Write a graph into a file; return the name of the file."""
    Path("graph.json").write_text(json.dumps({"nodes": nodes, "edges": edges}))
    return "graph.json"


TEXT_NODE = {"id": "a", "type": "text", "data": {"text": "x"}}
TEXT_GRAPH = {"nodes": [TEXT_NODE], "edges": []}


def flow(source: str, target: str, **handles: str) -> dict[str, Any]:
    return {"source": source, "target": target, "data": {"channel": "flow"}, **handles}


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (
            {"type": "transform", "data": {"expression": "{{ 10 / 0 }}"}},
            'num: data.expression: division by zero in "10 / 0"',
        ),
        (
            {"type": "number", "data": {"value": "{{ 'foo' ~ '=bar' }}"}},
            "num: data.value: 'foo=bar' is not a number",
        ),
        (
            {"type": "transform", "data": {"expression": "{{ ('foo' ~ '=bar') | float }}"}},
            "num: data.expression: 'foo=bar' is not a number",
        ),
    ],
)
def test_failed_calculation_names_the_field_and_the_value(
    node: dict[str, Any], message: str
) -> None:
    done = invoke("exec", written({"id": "num", **node}))
    assert done.exit_code == 1
    assert f"✗ {message}\n" in done.output


def test_unclosed_comment_is_located() -> None:
    node = {"id": "note", "type": "text", "data": {"text": "one\ntwo {# three"}}
    done = invoke("check", written(node))
    assert "node 'note': data.text: {# in line 2, column 5 is never closed" in done.output


async def paused_by_timer() -> tuple[str, OpenRequest]:
    """Run a graph until it waits for a timer; return the execution's id and its request."""
    node = {"id": "later", "type": "wait", "data": {"seconds": 3600}}
    async with open_service(Settings()) as service:
        record = await service.executions.execute(
            await service.plans.read({"nodes": [node], "edges": []})
        )
        await service.executions.wait(record.execution_id)
        (request,) = await service.executions.requests(record.execution_id)
        return record.execution_id, request


def test_resume_of_a_timer_says_how_to_go_on() -> None:
    execution_id, request = asyncio.run(paused_by_timer())
    done = invoke("resume", execution_id)
    assert done.exit_code == 2
    until = clock_time(end_of_timer(request.request))
    assert done.output == (
        f"✗ it waits for a timer until {until}\n  → start planwave serve, or: planwave answer "
        f"{execution_id} {request.request_id} --decision continue\n"
    )


def test_a_time_of_another_day_has_its_date() -> None:
    now = datetime(2030, 1, 31, 12).astimezone()
    assert clock_time(now.replace(hour=13).isoformat(), now) == "13:00:00"
    assert clock_time((now + timedelta(days=1)).isoformat(), now) == "2030-02-01 12:00:00"
    assert clock_time("tomorrow\n", now) == "tomorrow"


def test_resume_of_an_open_request_says_how_to_answer() -> None:
    shown = execute_graph(approval_graph())
    execution_id, (request,) = shown["execution_id"], shown["requests"]
    request_id = request["request_id"]
    assert invoke("resume", execution_id).output == (
        f"✗ it waits for an answer to {request_id}\n"
        f"  → planwave answer {execution_id} {request_id} --decision approve\n"
    )


def test_watched_request_says_how_to_answer() -> None:
    data = {"prompt": "Send it?", "actions": ["send later", "drop"]}
    ask = {"id": "q", "type": "approval", "data": data}
    edge = flow("q", "a", sourceHandle="drop")
    shown = execute_graph({"nodes": [ask, TEXT_NODE], "edges": [edge]})
    execution_id, (request,) = shown["execution_id"], shown["requests"]
    command = f"planwave answer {execution_id} {request['request_id']} --decision 'send later'"
    assert f"  answer with: {command}\n" in invoke("watch", "last").stdout
    assert f"  answer with: {command}   (or drop)\n" in invoke("show", "last").stdout
    assert invoke("resume", "last").output.endswith(f"  → {command}\n")


def test_answer_without_terminal_names_the_option() -> None:
    shown = execute_graph(approval_graph(actions=["approve", "reject"]))
    done = invoke("answer", shown["execution_id"])
    assert done.output == (
        f"✗ {shown['requests'][0]['request_id']} asks: q: Send it?\n"
        "  → no terminal to ask on; pass --decision approve or --decision reject\n"
    )


def test_answered_request_names_the_explanation() -> None:
    shown = execute_graph(approval_graph())
    execution_id, request_id = shown["execution_id"], shown["requests"][0]["request_id"]
    assert invoke("answer", "last", "--decision", "approve").exit_code == 0
    hint = f"  → see its steps: planwave explain {execution_id}\n"
    assert invoke("answer", "last", request_id, "--decision", "approve").output == (
        f"✗ request '{request_id}' was answered already\n{hint}"
    )
    assert invoke("answer", "last", "--decision", "approve").output == (
        f"✗ execution {execution_id} has no open request\n{hint}"
    )


def test_node_that_cannot_be_cancelled_says_why() -> None:
    execution_id = execute_graph(approval_graph())["execution_id"]
    for node, shown in {
        "draft": "✗ node 'draft' is already completed\n"
        "  → only a node that runs or waits can be cancelled\n",
        "sent": "✗ node 'sent' neither runs nor waits\n"
        "  → cancel the whole execution, or wait until the node has started\n",
        "send": f"✗ execution {execution_id} has no node 'send'\n  → did you mean 'sent'?\n",
        "x": f"✗ execution {execution_id} has no node 'x'\n"
        "  → its nodes are draft, q, sent, dropped\n",
    }.items():
        assert invoke("cancel", "last", "--node", node).output == shown


def test_branch_not_taken_names_the_decision() -> None:
    execution_id = execute_graph(approval_graph())["execution_id"]
    invoke("answer", execution_id, "--decision", "approve")
    shown = invoke("show", execution_id, "--json").stdout
    reasons = {node["path"]: node["reason"] for node in json.loads(shown)["nodes"]}
    assert reasons["dropped"] == "not taken: q decided 'approve'"


def test_branch_without_a_value_names_the_output() -> None:
    Path("graph.json").write_text(json.dumps(approval_graph()))
    assert invoke("exec", "graph.json", "--set-result", "q=yes").exit_code == 0
    shown = invoke("show", "last").stdout
    assert "sent     not taken: q has no value on 'approve'\n" in shown


def test_given_result_is_shown_as_given() -> None:
    name = written({"id": "in", "type": "start"}, TEXT_NODE, edges=(flow("in", "a"),))
    assert "given      in\n" in invoke("exec", name, "--input", "tea").stdout
    assert "  ✓ given                    in" in invoke("show", "last").stdout


def test_input_of_a_wrong_shape_is_named_in_the_words_of_json() -> None:
    name = written({"id": "in", "type": "start"})
    assert invoke("exec", name, "--input", '{"in": 5}').output == (
        "✗ inputs['in'] must be an object, got a number\n"
        "  → inputs are {node_id: {handle: value}}; a start node's handle is 'output'\n"
    )


def test_name_that_another_flow_has_names_the_flow() -> None:
    name = written(TEXT_NODE)
    taken, _ = (invoke_json("flow", "save", each, name) for each in ("Texts", "other"))
    assert invoke("flow", "rename", "other", "TEXTS").output == (
        f"✗ another flow has the name 'TEXTS': {taken['plan_id']}\n"
        "  → choose another name, or change that flow\n"
    )


def test_flow_in_use_names_what_leads_to_it_and_the_way_out() -> None:
    invoke_json("flow", "save", "texts", written(TEXT_NODE))
    invoke_json("flow", "publish", "texts", "--tool")
    assert invoke("flow", "rm", "texts").output == (
        "✗ flow 'texts' is in use: it is published as a tool\n"
        "  → take these away first, or all at once with force; graphs that name it stay as they are\n"
    )


def test_retry_of_a_completed_execution_names_the_fork() -> None:
    execution_id = execute_graph(TEXT_GRAPH)["execution_id"]
    assert invoke("retry", execution_id).output == (
        "✗ nothing to retry: it completed\n"
        f"  → to run steps again: planwave fork {execution_id} --rerun STEP\n"
    )


def test_misspelt_provider_has_one_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    assert invoke("plan", "Compare", "--provider", "opnai").output == (
        "✗ unknown provider 'opnai': did you mean 'openai'?\n"
        "  → the providers are openai, anthropic, local (planwave doctor)\n"
    )


def test_unreachable_provider_names_address_and_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://user:secret@127.0.0.1:{port}/v1")
    monkeypatch.setenv("PLANWAVE_LIMIT_CALL_ATTEMPTS", "1")
    assert invoke("plan", "Compare", "--model", "gpt-x").output.splitlines()[-2:] == [
        f"✗ openai (gpt-x) cannot be reached at http://127.0.0.1:{port}: connection refused",
        "  → check the network and the endpoint's address, or choose another provider",
    ]


def test_type_mismatch_names_the_output_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    number = {"id": "num", "type": "number", "data": {"value": 3}}
    agent = {"id": "ask", "type": "agent", "data": {"userPrompt": "Hello"}}
    edge = flow("num", "ask", sourceHandle="output", targetHandle="maxTokens")
    assert invoke("check", written(number, agent, edges=(edge,))).output == (
        "  error   /edges/0  edge 'e1' (num to ask): output 'output' is of type number, "
        "input 'maxTokens' accepts integer  [type-mismatch]\n"
        "      use the output 'integer' of the same node\n"
        "✗ 1 error in graph.json: it cannot run\n"
    )


def test_edge_without_ends_has_no_finding_about_its_channel() -> None:
    assert invoke("check", written(TEXT_NODE, edges=({},))).output == (
        "  error   /edges/0/source  edge 0 has no source  [missing-field]\n"
        "  error   /edges/0/target  edge 0 has no target  [missing-field]\n"
        "✗ 2 errors in graph.json: it cannot run\n"
    )


def test_exception_lists_all_errors() -> None:
    nodes = [{"id": f"n{n}", "type": "text", "data": {"text": "", "size": n}} for n in range(22)]
    with pytest.raises(GraphInvalid) as caught:
        planwave.run_sync({"nodes": nodes, "edges": []})
    listed = "; ".join(
        f"({n + 1}) node 'n{n}': data.size is not a field of this type" for n in range(20)
    )
    assert str(caught.value) == f"22 errors: {listed}; and 2 more"


def test_id_that_is_not_text_is_named() -> None:
    assert invoke("check", written({**TEXT_NODE, "id": 5})).output == (
        "  error   /nodes/0/id  node 0: an id is text, not a number (5)  [invalid-id]\n"
        "      ids are 1 to 64 of the characters A-Z a-z 0-9 _ . -\n"
        "✗ 1 error in graph.json: it cannot run\n"
    )


def test_option_beyond_a_limit_is_an_error() -> None:
    done = invoke("exec", written(TEXT_NODE), "--max-parallel", "65")
    assert (done.exit_code, done.stderr) == (
        2,
        "✗ the option max_parallel is 65, at most 64 is allowed (limit parallel_nodes)\n"
        "  → ask for less, or raise the limit parallel_nodes (PLANWAVE_LIMIT_PARALLEL_NODES)\n",
    )


def test_an_entry_node_without_an_input_is_a_note_that_says_how_to_give_it() -> None:
    name = written(
        {"id": "product", "type": "start"},
        {"id": "b", "type": "text", "data": {"text": "Buy {{ input }}"}},
        edges=(flow("product", "b"),),
    )
    done = invoke("exec", name)
    assert done.exit_code == 0
    assert done.stderr == (
        "! the entry node 'product' has no input and begins with an empty value\n"
        "  → give it one: --input product=TEXT\n"
    )
    for given in ("tea", "product=tea", "product:output=tea", '{"output": "tea"}'):
        done = invoke("exec", name, "--input", given)
        assert (done.exit_code, done.stderr) == (0, "")
        assert "Buy tea" in done.stdout
