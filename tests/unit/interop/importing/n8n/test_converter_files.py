"""The n8n workflows that were written for these tests, and those of others where they are there."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from planwave.executor.options import RunOptions
from planwave.interop.importing.importer import Imported, import_text
from tests.support.conformance.converted_runs import ConvertedGraph, RuleModels, run_converted
from tests.support.interop.imports import (
    OWN,
    REAL,
    assert_accounted_for,
    findings_of,
    outcomes,
)
from tests.support.interop.n8n import by_name, codes, imported, pointers
from tests.support.outbound.fake_network import PUBLIC, FakeNetwork, response
from tests.support.paths import SHARED

_EXPECTED = SHARED / "import" / "expected.json"
_REAL = sorted((REAL / "n8n").glob("*.json")) if (REAL / "n8n").is_dir() else []


def _file(name: str) -> dict[str, Any]:
    return json.loads((OWN / "n8n" / f"{name}.json").read_text("utf-8"))


def _echo(request: Any, count: int) -> str:
    return f"<{request.prompt}>"


def _json(value: Any) -> bytes:
    return response(json.dumps(value).encode(), kind="application/json")


async def _run(made: Imported, *answers: bytes, inputs: Any = None, resumes: int = 0) -> Any:
    net = FakeNetwork({host: [PUBLIC] for host in _HOSTS}, *answers)
    graph = ConvertedGraph(
        {name: made.document[name] for name in ("nodes", "edges")},
        RunOptions(),
        inputs or {},
        answers=[{"decision": "continue"}] * resumes,
    )
    run = await run_converted(graph, RuleModels(_echo), outbound=net.client())
    assert not run.refusal_codes, run.refusal_codes
    assert run.statuses[-1] == "completed", [each.error for each in run.state.nodes.values()]
    return run, net


_HOSTS = ("blog.example.com", "render.example.com")


def test_a_chat_with_tools() -> None:
    made = imported(_file("chat_agent_tools"))
    found, nodes = outcomes(made), by_name(made)
    assert "placeholder" not in found.values()
    assert len(found) == 8
    assert not findings_of(made)
    assert found["Sticky Note"] == "dropped"
    assert nodes["OpenAI Chat Model"]["data"] == {
        "provider": "openai",
        "model": "gpt-4o-mini",
        "temperature": 0.2,
    }
    links = [e for e in made.document["edges"] if e["data"]["channel"] == "link"]
    assert {(e["source"], e["targetHandle"]) for e in links} == {
        ("OpenAI-Chat-Model", "model"),
        ("Look-up-order", "tools"),
        ("Refund-order", "tools"),
    }
    assert "OpenAI account" in json.dumps(made.report)
    tool = nodes["Look up order"]["data"]
    assert tool["url"] == "https://shop.example.com/api/orders/{number}"
    assert tool["parameters"]["properties"] == {
        "number": {"type": "string", "description": "The number of the order, such as 1042"}
    }
    assert nodes["Refund order"]["data"]["flow"] == {"name": "Refund an order"}
    assert {"what": "flow", "name": "Refund an order", "used_by": ["Refund-order"]} in made.report[
        "setup"
    ]
    chat = nodes["Helpdesk Agent (conversation)"]["data"]
    key = '{{ nodes["When-chat-message-received"].output.chatId | default(none) }}'
    assert chat["memory"] == {"key": key, "maxTurns": 8}
    assert found["Window Buffer Memory"] == "changed"
    assert chat["message"] == "{{ input.chatInput | default(none) }}"
    assert 'nodes["Shop"].output.shop' in chat["system"]
    assert '"open" if' in chat["system"]
    assert nodes["Helpdesk Agent"]["data"]["maxSteps"] == 6
    assert nodes["Shop"]["data"]["expression"] == (
        '{{ dict({"chatInput": (input.message | default(none)), "sessionId": '
        '(input.chatId | default(none))}, **{"shop": "Acme Lamps", "open": true}) }}'
    )


def test_connectors_and_code_stay_placeholders() -> None:
    source = _file("connectors_and_code")
    made = imported(source)
    found, nodes = outcomes(made), by_name(made)
    placeholders = {name for name, outcome in found.items() if outcome == "placeholder"}
    assert placeholders == {"Rows", "Count by owner", "Send", "Tell ops"}
    assert nodes["Every morning"]["data"]["cron"] == "30 7 * * 1-5"
    assert nodes["Draft"]["type"] == "llm"
    assert nodes["Draft"]["policy"] == {"onError": "continue"}
    ends = {(e["source"], e["sourceHandle"], e["target"]) for e in made.document["edges"]}
    assert ("Draft", "error", "Tell-ops") in ends
    assert nodes["Draft"]["data"]["prompt"] == (
        "Write a short mail about {{ input.counts | tojson }}."
    )
    assert nodes["Rows"]["policy"] == {"retry": {"attempts": 3, "backoffS": 2}}
    assert found["Old step"] == found["Note"] == "dropped"
    edge = next(e for e in made.report["edges"] if e["source"] == "/connections/Send/main/0/0")
    assert edge["outcome"] == "dropped"
    assert edge["notes"]
    assert any("pinned to 'Rows'" in note["message"] for note in made.report["notes"])
    assert '{"owner": "ada"}' not in json.dumps([made.document, made.report])
    code = source["nodes"][2]["parameters"]["jsCode"]
    assert nodes["Count by owner"]["data"]["code"] == code
    assert {each.code for each in findings_of(made)} == {"placeholder"}
    assert len(findings_of(made)) == 4


_LOST = {
    "arrow": "an arrow function", "time": "the time", "environment": "the environment of n8n",
    "workflow": "the workflow itself", "all_items": "all items of a step", "regex": "a regular expression",
    "from_ai": "what a model fills in",
}  # fmt: skip


def test_expressions_without_counterpart_are_lost_with_place_and_text() -> None:
    source = _file("expressions")
    made = imported(source)
    assert outcomes(made) == {"Manual": "mapped", "Input": "mapped", "Fields": "placeholder"}
    given = source["nodes"][2]["parameters"]["assignments"]["assignments"]
    lost = {
        f"/nodes/2/parameters/assignments/assignments/{number}/value": each
        for number, each in enumerate(given)
        if each["name"] in _LOST
    }
    assert [each["pointer"] for each in made.report["lost"]] == list(lost)
    for entry in made.report["lost"]:
        each = lost[entry["pointer"]]
        assert entry["text"] == each["value"][3:-2].strip()
        assert entry["message"].startswith(_LOST[each["name"]])
        assert entry["code"] == "import-expression"


async def test_expressions_give_their_values() -> None:
    source = _file("expressions")
    assignments = source["nodes"][2]["parameters"]["assignments"]
    assignments["assignments"] = [a for a in assignments["assignments"] if a["name"] not in _LOST]
    made = imported(source)
    run, _ = await _run(made)
    items = [{"name": "lamp", "full name": "Desk lamp"}]
    assert run.outputs["Fields"]["output"] == {
        "plain": " Ada ", "deep": "Desk lamp", "optional": None, "node": 12, "node_first": 12, "old_node": 12,
        "length": 1, "upper": "ADA", "ternary": "many", "or_default": " Ada ", "nullish": "none",
        "strict_equal": True, "json": json.dumps(items, separators=(",", ":")), "sum": 16.28,
        "text": "Dear  Ada , you have 1 items.", "join": "new, sale", "includes": True,
        "not_an_expression": "{{ $json.name }}", "literal_braces": '{ "a": 12 }',
        "template_literal": " Ada !", "object": {"id": "7"},
    }  # fmt: skip


async def test_a_loop_over_items_runs_its_steps_for_each() -> None:
    made = imported(_file("loop_items"))
    nodes = by_name(made)
    assert "placeholder" not in outcomes(made).values()
    assert nodes["Loop Over Items"]["type"] == "loop"
    inside = {each["name"] for each in nodes["Loop Over Items"]["data"]["body"]["nodes"]}
    assert {"Summarise", "Keep", "Model"} <= inside
    assert not {"All", "Digest"} & inside
    nodes["Model"]["data"] = {"provider": "anthropic", "model": "claude"}
    posts = [{"title": "One", "body": "first"}, {"title": "Two", "body": "second"}]
    run, net = await _run(made, _json({"posts": posts}))
    assert len(run.calls) == 2
    assert b"limit=5" in net.requests[0]
    assert run.outputs["Digest"]["output"] == {
        "count": 2,
        "summaries": [
            {
                "title": each["title"],
                "summary": f"<Summarise in one sentence: {each['title']}\n\n{each['body']}>",
            }
            for each in posts
        ],
    }


async def test_polling_repeats_until_it_is_ready() -> None:
    made = imported(_file("poll_until_ready"))
    assert "placeholder" not in outcomes(made).values()
    assert not findings_of(made)
    assert "import-cycle" in codes(made, "Wait")
    for name, each in by_name(made).items():
        if name == "Wait":
            each["data"] = {"seconds": 0} if each["type"] == "wait" else each["data"]
    states = [
        {"state": state, "url": f"u{i}"} for i, state in enumerate(("running", "running", "done"))
    ]
    run, net = await _run(made, _json({"id": 7}), *map(_json, states))
    assert [request.split(b" ")[1] for request in net.requests] == [b"/jobs", *[b"/jobs/7"] * 3]
    assert run.outputs["Result"]["output"] == {"url": "u2"}


@pytest.mark.parametrize(
    ("body", "status", "answer"),
    [
        ({"kind": "order", "total": 120, "customer": {"mail": "A@EXAMPLE.COM"}}, 202, {"state": "review", "mail": "a@example.com"}),
        ({"kind": "order", "total": 5, "customer": {"mail": "A@EXAMPLE.COM"}}, 200, "Order over 5 accepted."),
        ({"kind": "order", "total": 5, "customer": {"mail": "a@example.ORG"}}, 202, {"state": "review", "mail": "a@example.org"}),
        ({"kind": "refund", "total": 5, "customer": {"mail": ""}}, 200, "Refund noted."),
        ({"kind": "x", "total": 5, "customer": {"mail": ""}}, 422, "Cannot handle x."),
    ],
)  # fmt: skip
async def test_a_request_is_routed_and_answered(body: Any, status: int, answer: Any) -> None:
    made = imported(_file("webhook_route_reply"))
    run, _ = await _run(made, inputs={"Webhook": {"output": {"body": body}}})
    replies = [
        each["output"] for each in run.outputs.values() if "status" in (each.get("output") or ())
    ]
    assert [(reply["status"], reply["body"]) for reply in replies] == [(status, answer)]


def test_a_webhook_says_what_is_different() -> None:
    made = imported(_file("webhook_route_reply"))
    assert "placeholder" not in outcomes(made).values()
    assert not findings_of(made)
    nodes = by_name(made)
    assert nodes["Webhook"]["data"]["auth"] == "signature"
    notes = next(e for e in made.report["nodes"] if e["source_name"] == "Webhook")["notes"]
    assert any("'route'" in note["message"] for note in notes)
    assert any("authentication is none" in note["message"] for note in notes)
    assert nodes["Switch"]["data"]["outputHandles"] == ["order", "refund", "other"]
    assert nodes["Switch"]["data"]["condition"].endswith('else "other" }}')
    assert " or " in nodes["Large?"]["data"]["condition"]
    assert nodes["Edit Fields"]["data"]["fields"]["mail"].endswith("| lower }}")


def test_connections_without_ends_and_equal_names_are_reported() -> None:
    document = json.loads((OWN / "hostile" / "n8n_dangling.json").read_text("utf-8"))
    made = imported(document)
    assert [each["outcome"] for each in made.report["nodes"]] == ["mapped", "dropped"]
    assert [each["outcome"] for each in made.report["edges"]] == ["dropped", "dropped"]
    assert all(each["notes"] for each in made.report["edges"])


@pytest.mark.parametrize("path", _REAL, ids=lambda path: path.stem)
def test_files_of_others_are_accounted_for(path: Path) -> None:
    expected = json.loads(_EXPECTED.read_text("utf-8"))[f"real/n8n/{path.name}"]
    document = json.loads(path.read_text("utf-8"))
    made = import_text(path.read_bytes())
    assert_accounted_for(made, **pointers(document))
    found = made.report["nodes"]
    placeholders = {each["source_name"] for each in found if each["outcome"] == "placeholder"}
    assert set(expected["placeholders"]) <= placeholders
    for name in placeholders - set(expected["placeholders"]):
        assert "import-expression" in codes(made, name), name
    notes = [each for each in found if each["source_kind"].endswith("stickyNote")]
    assert len(notes) == expected["notes"]
    assert len(found) - len(notes) == expected["nodes"]
    assert len(made.report["edges"]) == expected["edges"]


def test_own_files_have_the_counts_that_are_expected() -> None:
    if not _EXPECTED.exists():
        pytest.skip("the expectations are not on this machine")
    expected = json.loads(_EXPECTED.read_text("utf-8"))
    for name, each in expected.items():
        if not name.startswith("own/n8n/"):
            continue
        document = json.loads((OWN / name.removeprefix("own/")).read_text("utf-8"))
        made = imported(copy.deepcopy(document))
        notes = [e for e in made.report["nodes"] if e["source_kind"].endswith("stickyNote")]
        counts = (len(made.report["nodes"]) - len(notes), len(notes), len(made.report["edges"]))
        assert counts == (each["nodes"], each["notes"], each["edges"]), name
        placeholders = {n for n, o in outcomes(made).items() if o == "placeholder"}
        assert placeholders == set(each["placeholders"]) | ({"Fields"} & placeholders), name
