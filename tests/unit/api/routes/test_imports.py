"""``POST /api/import``: a report, a graph and its check; nothing stored unless asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planwave.interop.importing.importer import KINDS
from tests.support.interop.imports import OWN
from tests.support.server.in_process_client import in_process_client
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
