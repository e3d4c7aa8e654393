"""Apps of Dify as they are exported: what becomes of each step, and that they run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from planwave.interop.importing.importer import Imported, import_text
from planwave.testing import FakeModel, run_sync
from tests.support.interop.dify_apps import data_of, graph_of, pointers, registry_with
from tests.support.interop.imports import (
    OWN,
    REAL,
    SETUP_CODES,
    assert_accounted_for,
    findings_of,
    outcomes,
)

FILES = sorted((OWN / "dify").iterdir())
PLACEHOLDERS: Mapping[str, set[str]] = {
    "batch.yml": {"2002"},
    "chat_router.yml": {"3006"},
    "code_tool_knowledge.yml": {"4002", "4003", "4004"},
}
COUNTS = {"batch.yml": (8, 5), "chat_router.yml": (8, 7), "code_tool_knowledge.yml": (6, 6),
          "reflect.yml": (8, 8), "wrapped_export.json": (3, 2)}  # fmt: skip


def imported(name: str, **options: Any) -> Imported:
    return import_text((OWN / "dify" / name).read_bytes(), **options)


def lost_ids(made: Imported) -> set[str]:
    return {n["target"][0] for n in made.report["nodes"] if n["outcome"] == "placeholder"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_step_and_edge_is_accounted_for(file: Path) -> None:
    text, prefix = file.read_text("utf-8"), ""
    if file.suffix == ".json":
        text, prefix = json.loads(text)["data"], "/data"
    source = yaml.safe_load(text)
    nodes, edges = pointers(source, prefix)
    made = import_text(file.read_bytes())
    assert made.report["kind"] == "dify"
    assert (len(nodes), len(edges)) == COUNTS.get(file.name, (0, 0))
    assert_accounted_for(made, nodes=nodes or ["/model_config"], edges=edges)
    assert lost_ids(made) == PLACEHOLDERS.get(file.name, set())


@pytest.mark.skipif(not (REAL / "dify").is_dir(), reason="files of others are not here")
@pytest.mark.parametrize(
    "name", ["agent_tools", "chart_demo", "jieba", "json_repair", "json_translate"]
)
def test_apps_of_others_have_no_errors_but_placeholders_and_providers(name: str) -> None:
    text = (REAL / "dify" / f"{name}.yml").read_text("utf-8")
    made = import_text(text)
    nodes, edges = pointers(yaml.safe_load(text))
    assert_accounted_for(made, nodes=nodes, edges=edges)
    kinds = {n["source_kind"] for n in made.report["nodes"] if n["outcome"] == "placeholder"}
    assert kinds <= {"code", "tool"}
    if name == "agent_tools":
        tools = [each["name"] for each in made.report["setup"] if each["what"] == "tool"]
        assert tools == ["current_time", "ddgo_search"]
        assert [each["text"] for each in made.report["lost"]] == tools


@pytest.mark.parametrize("name", ["reflect.yml", "../hostile/bom_and_crlf.yml"])
@pytest.mark.parametrize(
    ("lang", "country", "ran"),
    [("English", "Chile", "1005"), ("Spanish", "Chile", "1004"), ("English", "", "1005")],
)
def test_a_workflow_runs_and_takes_the_branches_of_the_source(
    name: str, lang: str, country: str, ran: str
) -> None:
    model = FakeModel(lambda request: f"<{request.prompt}>")
    inputs = {"text": "Hallo", "lang": lang, "country": country}
    result = run_sync(graph_of(imported(name)), inputs, model=model)
    notes = (
        f"What would a reader in {country} change?" if ran == "1004" else "What would you change?"
    )
    draft = "<Translate:\nHallo>"
    assert result.output == {
        "result": f"<{draft}\n\nNotes:\n<{notes}\n{draft}>>",
        "draft": draft,
    }
    assert result["1006"] == result[ran]


def test_an_optional_input_may_be_left_out() -> None:
    model = FakeModel(lambda request: "ok")
    result = run_sync(graph_of(imported("reflect.yml")), {"text": "a", "lang": "b"}, model=model)
    assert result["1005"] == "ok"


def test_system_prompts_keep_their_variables() -> None:
    made = imported("reflect.yml")
    assert data_of(made, "1002")["system"] == (
        'You translate into {{ nodes["1001"].output.lang }}.'
    )
    assert data_of(made, "1007")["system"] == 'You edit {{ nodes["1001"].output.lang }} texts.'


def test_carriage_returns_and_a_byte_order_mark_change_nothing() -> None:
    plain, other = imported("reflect.yml"), imported("../hostile/bom_and_crlf.yml")
    assert other.document == plain.document
    assert dict(other.report) == {
        **plain.report,
        "source_sha256": other.report["source_sha256"],
    }


def test_the_answer_of_the_export_route_is_recognised_and_runs() -> None:
    made = imported("wrapped_export.json")
    assert run_sync(graph_of(made), {"who": "Ada"}).output == {"text": "Hello Ada"}


def test_an_iteration_is_a_loop_that_gets_what_it_reads_outside() -> None:
    made = imported("batch.yml")
    (loop,) = data_of(made, "2003")["graph"]["nodes"]
    assert loop["type"] == "loop"
    assert loop["data"]["parallel"] == 4
    assert loop["data"]["onItemError"] == "skip"
    blurb = next(n for n in loop["data"]["body"]["nodes"] if n["id"] == "2005")
    assert blurb["data"]["prompt"] == "One sentence on: {{ item }}"
    assert data_of(made, "2003-outer")["fields"]["v1"] == (
        '{{ nodes["2001"].output.tone | default("dry") }}'
    )
    assert outcomes(made)["2099"] == "dropped"
    assert "splitlines" in data_of(made, "2002")["code"]


def test_a_workflow_with_its_code_as_node_types_runs() -> None:
    made = imported("batch.yml", write_code=True)
    registry = registry_with(made.code)
    model = FakeModel(
        lambda request: (
            ValueError("no") if "bad" in request.prompt else request.prompt.split(": ")[1]
        )
    )
    result = run_sync(
        graph_of(made), {"titles": " one \n\nbad\ntwo"}, model=model, registry=registry
    )
    assert result["2002"] == {"lines": ["one", "bad", "two"]}
    assert result.output == {"page": "# dry\n- one\n- two\n"}


def test_code_that_nobody_asked_for_is_not_written() -> None:
    assert imported("batch.yml").code == ""


def test_a_chat_app_begins_with_a_message_and_chooses_among_classes() -> None:
    made = imported("chat_router.yml")
    types = {n["id"]: n["type"] for n in made.document["nodes"]}
    assert types["3001"] == "chat_start"
    assert (types["3002"], types["3002-choice"]) == ("llm", "switch")
    assert outcomes(made)["question-classifier"] == "changed"
    assert data_of(made, "3002-choice")["cases"] == ["1", "2", "3"]
    fetch = data_of(made, "3003")
    assert fetch["headers"] == {"Accept": "application/json"}
    assert fetch["params"] == {"q": '{{ nodes["3001"].message }}'}
    assert data_of(made, "3004")["text"] == (
        'I found: {{ nodes["3003"].output | string }} (status {{ nodes["3003"].status }})'
    )
    assert outcomes(made)["Soothe"] == "changed"
    assert data_of(made, "3005-chat")["memory"]["maxTurns"] == 20
    lost = {each["text"] for each in made.report["lost"]}
    assert {"conversation.mood", "mood"} <= lost
    assert "Earlier: calm" in data_of(made, "3005-chat")["system"]


def test_secrets_of_the_environment_are_named_and_not_copied() -> None:
    made = imported("code_tool_knowledge.yml")
    assert ("secret", "API_KEY") in {(each["what"], each["name"]) for each in made.report["setup"]}
    assert "REGION" in json.dumps(made.report["lost"])
    assert data_of(made, "4005")["system"] == 'Use only:\n{{ nodes["4004"].output.context }}'
    assert {d.code for d in findings_of(made)} == {"placeholder"}
    assert {"placeholder"} <= SETUP_CODES


def test_an_app_without_a_graph_is_a_message_and_an_agent() -> None:
    made = imported("agent_app_without_graph.yml")
    types = {n["type"]: n["id"] for n in made.document["nodes"]}
    assert set(types) == {"chat_start", "agent", "placeholder"}
    entry = types["chat_start"]
    assert data_of(made, types["agent"])["systemPrompt"] == (
        f'You help with {{{{ nodes["{entry}"].variables.topic }}}}.'
    )
    assert [each["text"] for each in made.report["lost"]] == ["current_time"]
