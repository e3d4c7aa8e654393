"""``POST /api/import``: a report, a graph and its check; nothing stored unless asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planwave.api.routes.imports import FILE_TYPES
from planwave.interop.importing.importer import KINDS
from tests.support.interop.imports import OWN
from tests.support.server.in_process_client import in_process_client
from tests.support.server.running_server import NO_RATE_LIMITS
from tests.support.service.dependencies import dependencies

PLAN = {
    "title": "Note",
    "nodes": [{"id": "a", "name": "Facts", "description": "Find facts.", "dependencies": []}],
}
BOTH = '{"nodes": [{"id": "a", "dependencies": []}], "connections": []}'
LOST = {"nodes": [{**PLAN["nodes"][0], "dependencies": ["gone"]}]}


async def test_an_import_gives_report_graph_and_check_and_stores_nothing() -> None:
    async with in_process_client(dependencies()) as calls:
        answer = await calls.post_json("/api/import", {"text": json.dumps(PLAN)})
        assert answer["report"]["summary"]["mapped"] == 1
        assert answer["document"]["title"] == "Note"
        assert answer["diagnostics"] == []
        assert answer["saved"] is None
        assert (await calls.get_json("/api/plans"))["plans"] == []


async def test_a_placeholder_is_a_finding_not_an_error() -> None:
    async with in_process_client(dependencies()) as calls:
        answer = await calls.post_json("/api/import", {"text": json.dumps(LOST)})
        assert answer["report"]["summary"]["placeholder"] == 1
        assert [each["code"] for each in answer["diagnostics"]] == ["placeholder"]


async def test_it_is_saved_as_a_flow_where_asked() -> None:
    async with in_process_client(dependencies()) as calls:
        body = {"text": json.dumps(PLAN), "save_as_flow": "note"}
        answer = await calls.post_json("/api/import", body)
        flow = await calls.get_json(f"/api/flows/{answer['saved']}")
        assert flow["name"] == "note"
        plan = await calls.get_json(f"/api/plans/{answer['saved']}")
        assert plan["imported_from"] == {
            "imported_at": plan["created_at"],
            "report": answer["report"],
        }


async def test_a_graph_with_placeholders_is_saved_as_a_draft() -> None:
    async with in_process_client(dependencies()) as calls:
        body = {"text": json.dumps(LOST), "save_as_flow": "lost"}
        answer = await calls.post_json("/api/import", body)
        flow = await calls.get_json(f"/api/plans/{answer['saved']}")
        assert [node["type"] for node in flow["nodes"]] == ["placeholder"]
        refused: Any = await calls.post("/api/execute", json={"flow": "lost"})
        assert refused.status_code in (409, 422)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "invalid-json"),
        ("a: &x 1\nb: *x", "unsupported-yaml"),
        ('{"hello": 1}', "unknown-format"),
        ("[" * 100 + "]" * 100, "limit-exceeded"),
        ((OWN / "hostile" / "alias_bomb.yml").read_text(), "unsupported-yaml"),
    ],
)
async def test_what_cannot_be_read_is_a_problem(text: str, code: str) -> None:
    async with in_process_client(dependencies()) as calls:
        answer: Any = await calls.post("/api/import", json={"text": text})
        assert answer.status_code == 422
        assert answer.json()["code"] == code


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ('{"hello": 1}', list(KINDS)),
        (BOTH, [kind for kind in ("agiraph", "agentflow") if kind in KINDS]),
        ("sequenceDiagram\n A->>B: x", None),
    ],
)
async def test_a_format_that_a_person_may_name_is_in_the_problem(
    text: str, kinds: list[str] | None
) -> None:
    async with in_process_client(dependencies()) as calls:
        answer: Any = await calls.post("/api/import", json={"text": text})
        assert answer.json().get("kinds") == kinds


async def test_an_unknown_kind_names_the_known_ones() -> None:
    async with in_process_client(dependencies()) as calls:
        answer: Any = await calls.post("/api/import", json={"text": "{}", "kind": "visio"})
        assert answer.status_code == 422
        assert answer.json()["code"] == "unknown-kind"


def sent_as(media_type: str, body: bytes) -> dict[str, Any]:
    return {"content": body, "headers": {"content-type": media_type}}


@pytest.mark.parametrize("media_type", [*FILE_TYPES, "Text/Plain; charset=UTF-8"])
async def test_a_file_is_sent_as_it_is_with_its_options_in_the_query(media_type: str) -> None:
    file = (OWN / "dify" / "code_tool_knowledge.yml").read_bytes()
    options = {"kind": "dify", "write_code": "true", "provider": "fake", "save_as_flow": "App"}
    async with in_process_client(dependencies()) as calls:
        sent: Any = await calls.post(
            "/api/import", params=options, **sent_as(media_type, b"\xef\xbb\xbf" + file)
        )
        answer = sent.json()
        posted = await calls.post_json("/api/import", {"text": file.decode()})
        assert answer["report"]["source_sha256"] == posted["report"]["source_sha256"]
        assert (posted["code"], answer["code"]) == ("", answer["code"] or None)
        assert (await calls.get_json(f"/api/flows/{answer['saved']}"))["name"] == "App"


async def test_json_of_another_program_is_a_file_where_its_type_says_so() -> None:
    async with in_process_client(dependencies()) as calls:
        file = sent_as("text/plain", json.dumps(PLAN).encode())
        answer: Any = await calls.post("/api/import", **file)
        assert answer.json()["report"]["kind"] == "agiraph"


@pytest.mark.parametrize(
    ("media_type", "body", "query", "expected"),
    [
        ("text/plain", b"\xff\xfe", {}, (422, "invalid-text")),
        ("text/plain", b"", {}, (422, "invalid-json")),
        ("text/plain; charset=latin-1", b"a", {}, (415, "unsupported-media-type")),
        ("application/yaml", b"nodes: \x00", {}, (422, "invalid-yaml")),
        ("application/yaml", b"a: 1", {"write_code": "perhaps"}, (422, "invalid-request")),
        ("application/yaml", b"a: 1", {"save_as_flow": ""}, (422, "invalid-request")),
        ("application/yaml", b"a: 1", {"kind": "x"}, (422, "unknown-kind")),
        ("application/json", b'{"text": "{}"}', {"kind": "dify"}, (422, "invalid-request")),
        ("multipart/form-data; boundary=a", b"--a", {}, (415, "unsupported-media-type")),
        ("application/x-www-form-urlencoded", b"a: 1", {}, (415, "unsupported-media-type")),
        ("", b"a: 1", {}, (415, "unsupported-media-type")),
    ],
)
async def test_what_is_no_file_is_refused(
    media_type: str, body: bytes, query: dict[str, str], expected: tuple[int, str]
) -> None:
    async with in_process_client(dependencies()) as calls:
        answer: Any = await calls.post("/api/import", params=query, **sent_as(media_type, body))
        assert (answer.status_code, answer.json()["code"]) == expected
        assert (await calls.get_json("/api/plans"))["plans"] == []


async def test_the_types_that_are_taken_are_named() -> None:
    async with in_process_client(dependencies()) as calls:
        answer: Any = await calls.post("/api/import", **sent_as("multipart/form-data", b"x"))
        assert all(each in answer.json()["hint"] for each in ("application/json", *FILE_TYPES))


async def test_a_file_is_measured_before_it_is_read() -> None:
    limits = NO_RATE_LIMITS.model_copy(update={"body_bytes": 1024})
    async with in_process_client(dependencies(), limits=limits) as calls:
        answer: Any = await calls.post("/api/import", **sent_as("text/plain", b"a: &x 1\n" * 200))
        assert (answer.status_code, answer.json()["code"]) == (413, "limit-exceeded")
