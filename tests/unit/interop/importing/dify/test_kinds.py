"""Steps without a model: answers, ends, aggregators, and those that have no counterpart."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.interop.importing.importer import import_text
from planwave.testing import run_sync
from tests.support.interop.dify_apps import app, chain, data_of, edge, open_graph_of, start, step


def template(step_id: str, text: str) -> dict[str, Any]:
    return step(step_id, "template-transform", template=text, variables=[])


def output(name: str, *selector: str) -> dict[str, Any]:
    return {"variable": name, "value_selector": list(selector)}


@pytest.mark.parametrize(("value", "expected"), [("x", "A"), ("y", "B")])
def test_an_aggregator_gives_the_first_value_that_is_there(value: str, expected: str) -> None:
    condition = {"comparison_operator": "is", "value": "x", "variable_selector": ["s", "v"]}
    group = {
        "group_name": "g",
        "output_type": "string",
        "variables": [["a", "output"], ["b", "output"]],
    }
    steps = [
        start("v"),
        step("if", "if-else", cases=[{"case_id": "t", "logical_operator": "and", "conditions": [condition]}]),
        template("a", "A"), template("b", "B"),
        step("j", "template-transform", template="", variables=[]),
        step("c", "variable-aggregator", output_type="string", variables=group["variables"]),
        step("d", "variable-assigner", advanced_settings={"group_enabled": True, "groups": [group]}),
        step("e", "end", outputs=[output("c", "c", "output"), output("d", "d", "g", "output"), output("a", "a", "output")]),
    ]  # fmt: skip
    edges = [
        *chain("s", "if"), edge("if", "a", "t"), edge("if", "b", "false"), edge("a", "j"), edge("b", "j"),
        *chain("j", "c", "d", "e"),
    ]  # fmt: skip
    made = import_text(app(steps, edges))
    assert made.report["summary"] == {"mapped": 8, "changed": 0, "placeholder": 0, "dropped": 0}
    result = run_sync(open_graph_of(made), {"v": value}).output
    assert result == {"c": expected, "d": expected, "a": "A" if expected == "A" else None}


def test_the_last_answer_is_the_result_and_others_are_messages() -> None:
    steps = [
        step("s", "start", variables=[]),
        step("a", "answer", answer="One: {{#sys.query#}}"),
        step("b", "answer", answer="Two {{ literal }}"),
    ]
    made = import_text(app(steps, chain("s", "a", "b"), mode="advanced-chat"))
    assert [n["type"] for n in made.document["nodes"]] == ["chat_start", "send_message", "text"]
    assert made.report["nodes"][1]["outcome"] == "changed"
    assert run_sync(open_graph_of(made), "hi").text == "Two {{ literal }}"


def test_steps_beside_the_end_do_not_add_to_the_result() -> None:
    steps = [start("v"), template("side", "x"), step("e", "end", outputs=[output("o", "s", "v")])]
    made = import_text(app(steps, [edge("s", "side"), edge("s", "e")]))
    assert run_sync(open_graph_of(made), {"v": 1}).output == {"o": 1}


def test_several_ends_say_that_their_results_stay_apart() -> None:
    ends = [step(each, "end", outputs=[output(each, "s", "v")]) for each in ("y", "z")]
    made = import_text(app([start("v"), *ends], [edge("s", "y"), edge("s", "z")]))
    assert [n["outcome"] for n in made.report["nodes"]] == ["mapped", "changed", "changed"]
    assert run_sync(open_graph_of(made), {"v": 1}).output == {"y": {"y": 1}, "z": {"z": 1}}


def test_steps_that_nothing_leads_to_are_left_out_as_they_are_never_run_there() -> None:
    steps = [start("v"), template("a", "A"), template("x", "X"), template("y", "Y")]
    made = import_text(app(steps, [edge("s", "a"), edge("x", "y"), edge("y", "a")]))
    outcome = [n["outcome"] for n in made.report["nodes"]]
    assert outcome == ["mapped", "mapped", "dropped", "dropped"]
    assert [e["outcome"] for e in made.report["edges"]] == ["mapped", "dropped", "dropped"]
    assert run_sync(open_graph_of(made), {"v": 1}).output == "A"


def test_an_edge_that_closes_a_cycle_makes_its_ends_placeholders() -> None:
    steps = [start("v"), template("a", "A"), template("b", "B"), template("c", "C")]
    made = import_text(app(steps, [*chain("s", "a", "b", "c"), edge("b", "a")]))
    outcome = {n["source_name"]: n["outcome"] for n in made.report["nodes"]}
    assert outcome == {
        "Step s": "mapped", "Step a": "placeholder", "Step b": "placeholder", "Step c": "mapped"
    }  # fmt: skip
    assert "Step a → Step b → Step a" in made.report["lost"][0]["text"]


@pytest.mark.parametrize(
    "kind",
    ["tool", "code", "assigner", "knowledge-retrieval", "document-extractor",
     "human-input", "trigger-webhook", "new-in-2030"],
)  # fmt: skip
def test_a_step_without_counterpart_keeps_its_place_and_its_settings(kind: str) -> None:
    steps = [
        start("v"),
        step("x", kind, setting={"a": 1}),
        step("e", "end", outputs=[output("o", "x", "text")]),
    ]
    made = import_text(app(steps, chain("s", "x", "e")))
    data = data_of(made, "x")
    assert data["kind"] == kind
    assert data["parameters"] == {"setting": {"a": 1}}
    note, *_ = made.report["nodes"][1]["notes"]
    assert note["code"] == "import-placeholder"
    assert len(made.document["edges"]) == 2


def test_variables_of_the_environment_are_replaced_by_their_values() -> None:
    variables = [
        {"name": "REGION", "value": "eu {{ x }}", "value_type": "string"},
        {"name": "N", "value": 5, "value_type": "number"},
    ]
    steps = [
        step("s", "start", variables=[]),
        step("a", "answer", answer="{{#env.REGION#}} {{#env.N#}}"),
    ]
    made = import_text(
        app(steps, chain("s", "a"), mode="advanced-chat", environment_variables=variables)
    )
    assert run_sync(open_graph_of(made), "hi").text == "eu {{ x }} 5"
    assert made.report["nodes"][1]["outcome"] == "changed"
    gone = import_text(
        app([*steps[:1], step("a", "answer", answer="{{#env.GONE#}}")], chain("s", "a"))
    )
    assert gone.document["nodes"][1]["type"] == "placeholder"


def test_features_of_an_app_are_named() -> None:
    features = {
        "opening_statement": "Hi", "sensitive_word_avoidance": {"enabled": True},
        "suggested_questions": [], "text_to_speech": {"enabled": False},
    }  # fmt: skip
    made = import_text(app([start("v")], features=features))
    assert [note["pointer"] for note in made.report["notes"]] == [
        "/workflow/features/opening_statement",
        "/workflow/features/sensitive_word_avoidance",
    ]


def test_inputs_of_a_workflow_are_declared() -> None:
    variables = [
        {"variable": "t", "type": "paragraph", "required": True, "label": "Text", "max_length": 10},
        {
            "variable": "k",
            "type": "select",
            "options": ["a", "b"],
            "default": "a",
            "required": True,
        },
        {"variable": "n", "type": "number", "default": "3"},
        {"variable": "c", "type": "checkbox"},
        {"variable": "f", "type": "file"},
    ]
    made = import_text(app([step("s", "start", variables=variables)]))
    assert data_of(made, "s") == {
        "initialInput": {"k": "a", "n": 3, "c": False, "f": None},
        "schema": {
            "type": "object",
            "properties": {
                "t": {"type": "string", "title": "Text", "maxLength": 10},
                "k": {"type": "string", "enum": ["a", "b"]},
                "n": {"type": "number"},
                "c": {"type": "boolean"},
                "f": {"type": "object"},
            },
            "required": ["t"],
        },
    }
    assert made.report["nodes"][0]["outcome"] == "changed"
