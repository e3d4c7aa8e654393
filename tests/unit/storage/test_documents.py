from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.errors import InputError, ProviderError
from planwave.events import Event
from planwave.ids import new_id
from planwave.providers.protocols import CallKey, ModelReply, ToolCall, Usage
from planwave.providers.recordings import failure_record
from planwave.storage.documents import (
    build_document,
    build_node_document,
    document_pieces,
    document_text,
    open_document,
    write_documents,
)
from planwave.storage.records import ExecutionRecord, StoredCall
from tests.support.server.documented_shapes import check_shape
from tests.support.storage.documents import write_document

FIXED_ID = "01a20072-575e-7000-adb6-ac842cc54314"
AT = "2026-01-01T00:00:00.000000Z"
RECORD = ExecutionRecord("x1", "p1", "T", "why", "completed", AT)


def node(name: str, **data: Any) -> dict[str, Any]:
    return {"id": name, "type": "agent", "name": name.upper(), "description": "d", "data": data}


def edge(source: str, target: str, channel: str = "flow", handle: str = "output") -> dict[str, Any]:
    return {
        "id": f"{source}-{target}",
        "source": source,
        "sourceHandle": handle,
        "target": target,
        "targetHandle": "input",
        "data": {"channel": channel},
    }


GRAPH = {
    "nodes": [
        node("c"),
        node("a", provider="p", model="m"),
        node("b"),
        node("tool"),
        node("never"),
    ],
    "edges": [
        edge("a", "c"),
        edge("b", "c"),
        edge("tool", "c", "link"),
        edge("a", "never", handle="no"),
    ],
}


def text(value: Any, handle: str = "output") -> dict[str, Any]:
    return {handle: {"type": "text", "value": value}}


def inside() -> list[Event]:
    """A node that runs one graph twice."""
    inner = {"nodes": [node("i", provider="p", model="m"), node("j")], "edges": [edge("i", "j")]}
    opened = {"graph": "h", "inputs": "x"}
    steps: list[tuple[str, str | None, dict[str, Any]]] = [
        ("execution.created", None, {"graph": {"nodes": [node("l")], "edges": []}}),
        ("execution.started", None, {"waves": 1}),
        ("node.started", "l", {"wave": 1}),
    ]
    for key in ("0", "1"):
        more = {"document": inner} if key == "0" else {}
        output = {"event_type": "run_graph", "data": {"key": key, **opened, **more}}
        steps += [
            ("node.event", "l", output),
            ("node.started", f"l[{key}]/i", {"wave": 1}),
            ("node.completed", f"l[{key}]/i", {"outputs": text(f"of {key}"), "duration_s": 0.5}),
            ("node.started", f"l[{key}]/j", {"wave": 2}),
        ]
    return [
        Event("x1", seq, AT, kind, path, 1 if path else None, data)
        for seq, (kind, path, data) in enumerate(steps, start=1)
    ]


def test_nested_nodes_have_fields_of_their_graph() -> None:
    nodes = {each["path"]: each for each in build_document(inside(), RECORD)["nodes"]}
    i, j = nodes["l[1]/i"], nodes["l[1]/j"]
    assert (j["id"], j["type"], j["name"], j["description"]) == ("j", "agent", "J", "d")
    assert (i["provider"], i["model"], i["dependencies"]) == ("p", "m", [])
    assert j["dependencies"] == ["l[1]/i"]
    assert j["inputs"] == {"input": {"type": "text", "value": "of 1"}}
    assert nodes["l[0]/j"]["inputs"] == {"input": {"type": "text", "value": "of 0"}}


def story() -> list[Event]:
    steps: list[tuple[str, str | None, dict[str, Any]]] = [
        (
            "execution.created",
            None,
            {"goal": "why", "title": "T", "graph": GRAPH, "plan_hash": "h"},
        ),
        ("execution.started", None, {"linked": ["tool"], "waves": 2}),
        ("node.started", "a", {"wave": 1}),
        ("node.started", "b", {"wave": 1}),
        ("node.event", "b", {"event_type": "prompt", "data": {"prompt": "say"}}),
        ("usage", "b", {"provider": "p2", "model": "m2", "input_tokens": 1, "output_tokens": 2}),
        ("node.completed", "a", {"outputs": text("one"), "duration_s": 0.5}),
        ("node.completed", "b", {"outputs": text({"k": "ü"}, "data"), "duration_s": 0.25}),
        ("node.skipped", "never", {"reason": "no branch led here"}),
        ("node.started", "c", {"wave": 2}),
        ("node.failed", "c", {"error": {"code": "x", "message": "boom"}, "handled": False}),
        ("execution.failed", None, {"error": {"code": "node-failed"}, "failures": ["c"]}),
    ]
    return [
        Event("x1", seq, AT, kind, path, 1 if path else None, data)
        for seq, (kind, path, data) in enumerate(steps, 1)
    ]


def test_document_has_request_and_outcome() -> None:
    created = build_document(story(), RECORD)
    assert {
        key: created[key]
        for key in ("execution_id", "plan_id", "user_prompt", "title", "timestamp", "status")
    } == {
        "execution_id": "x1",
        "plan_id": "p1",
        "user_prompt": "why",
        "title": "T",
        "timestamp": AT,
        "status": "failed",
    }
    assert (created["schema_version"], created["last_seq"], created["plan_hash"]) == (3, 12, "h")
    assert created["graph"] == GRAPH
    assert created["waves"] == {"current": 1, "total": 2}
    assert created["usage"]["input_tokens"] == 1
    assert (created["error"], created["failures"]) == ({"code": "node-failed"}, ["c"])
    assert (created["waitingForInput"], created["currentNodeId"]) == (False, None)
    assert created["execution_logs"][-1] == "Execution completed. Status: failed"


def test_nodes_are_in_graph_order_with_dependencies() -> None:
    nodes = build_document(story(), RECORD)["nodes"]
    assert [(n["id"], n["status"], n["dependencies"]) for n in nodes] == [
        ("c", "failed", ["a", "b"]),
        ("a", "completed", []),
        ("b", "completed", []),
        ("tool", "linked", []),
        ("never", "skipped", ["a"]),
    ]
    assert nodes[4]["reason"] == "no branch led here"


def test_node_results_are_texts() -> None:
    created = build_document(story(), RECORD)
    assert created["node_results"] == {"a": "one", "b": '{"k":"ü"}'}
    assert [n["result"] for n in created["nodes"]] == [None, "one", '{"k":"ü"}', None, None]


def test_node_has_inputs_prompt_and_model() -> None:
    c, a, b, *_ = build_document(story(), RECORD)["nodes"]
    assert (a["provider"], a["model"], b["provider"], b["model"]) == ("p", "m", "p2", "m2")
    assert (b["prompt"], b["attempts"], b["wave"], b["execution_time"]) == (
        {"prompt": "say"},
        1,
        1,
        0.25,
    )
    assert c["inputs"] == {"input": {"type": "text", "value": "one"}}
    assert (c["error"], c["error_detail"]) == ("boom", {"code": "x", "message": "boom"})
    assert (a["error"], a["error_detail"]) == (None, None)
    assert (a["inputs"], a["started_at"], a["path"]) == ({}, AT, "a")


def test_several_arrivals_are_a_list_unless_one_won() -> None:
    events = story()
    events[7] = events[7]._replace(data={"outputs": text("two"), "duration_s": 1})
    assert build_document(events, RECORD)["nodes"][0]["inputs"] == {
        "input": {"type": "list", "value": ["one", "two"]}
    }
    events[9] = events[9]._replace(data={"wave": 2, "via": "b-c"})
    assert build_document(events, RECORD)["nodes"][0]["inputs"] == {
        "input": {"type": "text", "value": "two"}
    }


def test_open_request_is_in_the_document() -> None:
    waiting = Event("x1", 5, AT, "node.waiting", "b", 1, {"request_id": "r", "request": {}})
    created = build_document([*story()[:4], waiting], RECORD)
    assert (created["waitingForInput"], created["currentNodeId"]) == (True, "b")
    assert [(each["request_id"], each["path"]) for each in created["requests"]] == [("r", "b")]


def test_answers_and_reentries_are_in_the_document() -> None:
    facts = [
        ("node.waiting", {"request_id": "r5", "request": {}}),
        ("node.answered", {"request_id": "r5", "answer": {"decision": "yes", "note": "n"}}),
        ("node.started", {"wave": 1, "reentry": 1}),
    ]
    more = [Event("x1", n, AT, kind, "b", 1, data) for n, (kind, data) in enumerate(facts, 5)]
    created = build_document([*story()[:4], *more], RECORD)
    b = next(each for each in created["nodes"] if each["id"] == "b")
    assert b["reentries"] == 1
    (answer,) = b["answers"]
    assert (answer["request_id"], answer["by"], answer["decision"], answer["note"]) == (
        "r5", "person", "yes", "n",
    )  # fmt: skip
    assert created["requests"] == []


def test_fork_names_its_parent() -> None:
    first = story()[0]
    parent = {"execution_id": "x0"}
    created = build_document([first._replace(data={**first.data, "parent": parent})], RECORD)
    assert created["parent"] == parent
    assert build_document([first], RECORD)["parent"] is None


@pytest.mark.parametrize("ends", ["completed", "failed"])
def test_nested_failure_is_handled_if_its_parent_completed(ends: str) -> None:
    error = {"code": "no", "message": "no"}
    data: dict[str, Any] = {"outputs": {}} if ends == "completed" else {"error": error}
    events = [
        *story()[:2],
        Event("x1", 3, AT, "node.started", "a", 1, {"wave": 1}),
        Event("x1", 4, AT, "node.started", "a[0]/sub", 1, {"wave": 1}),
        Event("x1", 5, AT, "node.failed", "a[0]/sub", 1, {"error": error, "handled": False}),
        Event("x1", 6, AT, f"node.{ends}", "a", 1, data),
    ]
    handled = {node["path"]: node["handled"] for node in build_document(events, RECORD)["nodes"]}
    assert handled["a[0]/sub"] is (ends == "completed")


def test_nested_node_follows_graph_nodes() -> None:
    nested = Event("x1", 3, AT, "node.started", "a[0]/sub", 1, {"wave": 1})
    last = build_document([*story()[:2], nested], RECORD)["nodes"][-1]
    assert (last["id"], last["path"], last["name"]) == ("sub", "a[0]/sub", "sub")
    named = Event("x1", 3, AT, "node.started", "a[0]/sub", 1, {"wave": 1, "name": "Sum up"})
    assert build_document([*story()[:2], named], RECORD)["nodes"][-1]["name"] == "Sum up"


@given(st.integers(1, 12))
def test_document_is_deterministic_json(length: int) -> None:
    events = story()[:length]
    once = json.dumps(build_document(events, RECORD))
    assert once == json.dumps(build_document([Event(*e) for e in events], RECORD))
    assert json.loads(once)["last_seq"] == length


async def test_document_is_readable_json(tmp_path: Path) -> None:
    name = new_id()
    path = await write_document(tmp_path, name, {"title": "Übersicht", "odd": "\ud800"})
    assert path == tmp_path / f"{name}.json"
    content = path.read_bytes().decode("utf-8")
    assert '\n  "title": "Übersicht",\n' in content
    assert json.loads(content) == {"title": "Übersicht", "odd": "\ud800"}
    assert os.listdir(tmp_path) == [f"{name}.json"]


@pytest.mark.parametrize("name", ["../etc", "x1", "", f"{FIXED_ID}/x", f"{FIXED_ID}\n"])
async def test_only_a_uuid_becomes_a_file_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="not an execution id"):
        await write_document(tmp_path, name, {})
    assert os.listdir(tmp_path) == []


async def test_failed_write_keeps_the_old_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = new_id()
    path = await write_document(tmp_path, name, {"n": 1})

    def fail(_handle: int) -> None:
        raise OSError(5, "disk I/O error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk I/O"):
        await write_document(tmp_path, name, {"n": 2})
    assert os.listdir(tmp_path) == [path.name]
    assert json.loads(path.read_text()) == {"n": 1}


async def test_invalid_document_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        await write_document(tmp_path, new_id(), {"n": {1}})
    assert os.listdir(tmp_path) == []


async def test_each_writable_document_is_written(tmp_path: Path) -> None:
    names = [new_id() for _ in range(20)]
    (tmp_path / f"{names[7]}.json").mkdir()
    texts = {name: document_text({"id": name}) for name in [*names, "../etc"]}
    failed = await write_documents(tmp_path, texts)
    assert {name: type(error) for name, error in failed.items()} == {
        names[7]: IsADirectoryError, "../etc": InputError
    }  # fmt: skip
    assert sorted(os.listdir(tmp_path)) == sorted(f"{name}.json" for name in names)
    assert json.loads((tmp_path / f"{names[8]}.json").read_text()) == {"id": names[8]}


# -- recorded calls

LONG = "x" * 5_000


def stored(path: str, ordinal: int, reply: dict[str, Any], attempt: int = 1) -> StoredCall:
    key = CallKey("x1", path, attempt, ordinal, f"h{ordinal}")
    return StoredCall(key, json.loads(json.dumps(reply)))


def test_recorded_calls_are_in_their_nodes_in_order() -> None:
    reply = ModelReply(
        "hi", "box", "box-1", "stop", Usage(3, 2), duration_s=0.5,
        tool_calls=(ToolCall("c1", "look", "{}"),),
        native={"parts": [{"part_kind": "thinking", "content": "hm"}, {"part_kind": "text"}]},
    )  # fmt: skip
    tool = {"kind": "tool", "name": "look", "started_at": "2026", "duration_s": 0.1}
    calls = [
        stored("a", 1, {**tool, "request": {"q": 1}, "result": [1]}),
        stored("a", 0, asdict(reply)),
        stored("a", 2, {**tool, "error": {"code": "no", "message": "not there", "hint": None}}),
        stored("a", 0, failure_record(ProviderError("down", provider="box", model="m")), 2),
        StoredCall(CallKey("x1", "a", 1, 1, "h1/begun"), {"at": "2026"}),
    ]
    nodes = {each["path"]: each for each in build_document(story(), RECORD, calls)["nodes"]}
    assert nodes["b"]["calls"] == []
    first, second, third, fourth = nodes["a"]["calls"]
    assert [(c["attempt"], c["ordinal"]) for c in nodes["a"]["calls"]] == [
        (1, 0), (1, 1), (1, 2), (2, 0),
    ]  # fmt: skip
    assert (first["kind"], first["name"], first["duration_s"]) == ("model", "box/box-1", 0.5)
    assert first["result"] == {
        "text": "hi", "finish_reason": "stop", "reasoning": "hm",
        "tool_calls": [{"id": "c1", "name": "look", "arguments": "{}"}],
    }  # fmt: skip
    assert first["usage"]["input_tokens"] == 3
    assert second == {
        "ordinal": 1, "attempt": 1, "kind": "tool", "name": "look", "request": {"q": 1},
        "result": [1], "started_at": "2026", "duration_s": 0.1,
    }  # fmt: skip
    assert third["error"] == {"code": "no", "message": "not there"}
    assert (fourth["kind"], fourth["name"]) == ("model", "box/m")
    assert fourth["error"]["message"] == "down"
    for each in nodes["a"]["calls"]:
        check_shape(each, "RecordedCallResponse")


def test_times_that_were_not_recorded_are_left_out_of_a_call() -> None:
    calls = [
        stored("a", 0, {"kind": "tool", "name": "look", "request": {}, "result": 1}),
        stored("a", 1, {"text": "hi", "provider": "box", "model": "m"}),
    ]
    document = build_document(story(), RECORD, calls)
    (shown,) = (each["calls"] for each in document["nodes"] if each["path"] == "a")
    assert len(shown) == 2
    for each in shown:
        check_shape(each, "RecordedCallResponse")


def test_of_large_results_the_document_has_the_size() -> None:
    calls = [
        stored("a", 0, {"kind": "fetch", "name": "f", "request": LONG, "result": {"body": LONG}}),
        stored("a", 1, asdict(ModelReply(LONG, "box", "m", "stop"))),
    ]
    document = build_document(story(), RECORD, calls)
    ((fetched, said),) = (each["calls"] for each in document["nodes"] if each["path"] == "a")
    assert fetched.keys() >= {"request_bytes", "result_bytes"}
    assert fetched["request_bytes"] == 5_002
    assert said["result_bytes"] > 5_000
    assert LONG not in json.dumps(document)


def test_one_call_of_a_node_is_whole_where_that_is_asked_for() -> None:
    calls = [stored("a", n, {"kind": "fetch", "name": "f", "result": LONG}) for n in range(3)]
    node = build_node_document(story(), "a", calls, whole_call=1)
    assert node is not None
    assert [each.get("result") for each in node["calls"]] == [None, LONG, None]


def test_the_pieces_of_a_document_are_the_document_and_some_members_of_it() -> None:
    whole = build_document(story(), RECORD)
    assert json.loads(b"".join(document_pieces(story(), RECORD))) == whole
    names = ["status", "node_results"]
    some = json.loads(b"".join(document_pieces(story(), RECORD, (), names)))
    assert some == {name: whole[name] for name in names}
    assert len([*document_pieces(story(), RECORD)]) > len(whole["nodes"])


async def test_a_written_document_is_opened_unless_an_earlier_version_wrote_it(
    tmp_path: Path,
) -> None:
    assert open_document(tmp_path, FIXED_ID) is None
    document = {**build_document(story(), RECORD), "execution_id": FIXED_ID}
    for version, is_opened in ((document["schema_version"], True), (1, False)):
        text = document_text({**document, "schema_version": version})
        assert await write_documents(tmp_path, {FIXED_ID: text}) == {}
        file = open_document(tmp_path, FIXED_ID)
        assert (file is not None) is is_opened
        if file is not None:
            with file:
                assert file.read() == text
