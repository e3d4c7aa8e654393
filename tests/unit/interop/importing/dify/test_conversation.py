"""Variables of the conversation: values that nothing sets are constants, those that nothing reads may be set."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.interop.importing.dify.conversation import use_in
from planwave.interop.importing.importer import Imported, import_text
from planwave.testing import run_sync
from tests.support.interop.dify_apps import app, chain, data_of, graph_of, start, step

VARIABLES = [
    {"name": "mood", "value": "calm", "value_type": "string"},
    {"name": "log", "value": [], "value_type": "array[string]"},
]


def imported(*steps: dict[str, Any]) -> Imported:
    ids = [each["id"] for each in steps]
    nodes = [start("v"), *steps]
    return import_text(
        app(nodes, chain("s", *ids), mode="advanced-chat", conversation_variables=VARIABLES)
    )


def assigns(operation: str, name: str = "mood", value: Any = "x", **more: Any) -> dict[str, Any]:
    selector = ["conversation", name]
    item = {"variable_selector": selector, "operation": operation, "input_type": "constant"}
    return step("w", "assigner", items=[{**item, "value": value, **more}])


READER = step("r", "answer", answer="It is {{#conversation.mood#}}.")


def test_a_variable_that_no_step_sets_has_its_first_value_in_every_run() -> None:
    made = imported(READER)
    assert made.report["summary"]["changed"] == 0
    assert not made.report["lost"]
    result = run_sync(graph_of(made), inputs={"s": {"message": "m", "variables": {"v": "x"}}})
    assert result.output == "It is calm."


@pytest.mark.parametrize("operation", ["over-write", "set", "clear"])
def test_a_variable_that_no_step_reads_may_be_set(operation: str) -> None:
    made = imported(assigns(operation), step("r", "answer", answer="Done"))
    assert made.report["summary"]["placeholder"] == 0
    expected = "{{ none }}" if operation == "clear" else '{{ "x" }}'
    assert data_of(made, "w") == {"fields": {"mood": expected}}
    assert not made.report["lost"]


def test_the_older_form_of_an_assigner_counts_alike() -> None:
    old = step(
        "w", "assigner", assigned_variable_selector=["conversation", "mood"], write_mode="over-write",
        input_variable_selector=["sys", "query"],
    )  # fmt: skip
    made = imported(old, step("r", "answer", answer="Done"))
    assert data_of(made, "w") == {"fields": {"mood": '{{ nodes["s"].message }}'}}
    assert imported(old, READER).document["nodes"][1]["type"] == "placeholder"


@pytest.mark.parametrize(
    "steps",
    [
        (assigns("over-write"), READER),
        (assigns("append", "log"), step("r", "answer", answer="Done")),
        (
            assigns("over-write"),
            step("r", "llm", vision={"configs": {"x": ["conversation", "mood"]}}),
        ),
        (
            assigns("over-write", value=["conversation", "mood"], input_type="variable"),
            step("r", "answer", answer=""),
        ),
    ],
)
def test_a_variable_that_is_set_and_read_outlives_a_run_and_is_lost(steps: Any) -> None:
    made = imported(*steps)
    assert made.report["nodes"][1]["outcome"] == "placeholder"
    assert made.report["lost"]


def test_reads_are_found_wherever_they_stand() -> None:
    graph = {
        "nodes": [
            {"data": {"type": "llm", "a": [{"b": "x {{#conversation.one#}}"}, ["conversation", "two", "f"]]}},
            {"data": {"type": "if-else", "variable_selector": ["conversation", "three"]}},
            {"data": {"type": "assigner", "variable_selector": ["conversation", "four"], "items": [3]}},
            "no node",
        ]
    }  # fmt: skip
    use = use_in(graph)
    assert (set(use.read), set(use.written)) == ({"one", "two", "three"}, {"four"})
