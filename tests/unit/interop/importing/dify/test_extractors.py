"""Steps in which a model chooses or extracts: they run, and what was chosen can be read."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.interop.importing.importer import Imported, import_text
from planwave.testing import FakeModel, run_sync
from tests.support.interop.dify_apps import app, chain, edge, graph_of, start, step

MODEL = {"provider": "openai", "name": "gpt-4o-mini"}


def classifier() -> Imported:
    classes = [{"id": "1", "name": "Orders"}, {"id": "x9", "name": 'All "else"'}]
    fields = {"classes": classes, "query_variable_selector": ["s", "v"], "model": MODEL,
              "instruction": "Mind {{#s.v#}}"}  # fmt: skip
    ends = [
        step(name, "end", outputs=[
            {"variable": name, "value_selector": ["q", "class_name"]},
            {"variable": "id", "value_selector": ["q", "class_id"]},
        ])
        for name in ("a", "b")
    ]  # fmt: skip
    steps = [start("v"), step("q", "question-classifier", **fields), *ends]
    return import_text(app(steps, [edge("s", "q"), edge("q", "a", "1"), edge("q", "b", "x9")]))


@pytest.mark.parametrize("class_id", ["{#", '{{ nodes["s"].output.v }}', "{% if x %}"])
def test_the_id_of_a_class_is_no_template(class_id: str) -> None:
    classes = [{"id": class_id, "name": "Odd"}]
    fields = {"classes": classes, "query_variable_selector": ["s", "v"], "model": MODEL}
    steps = [start("v"), step("q", "question-classifier", **fields), step("e", "end", outputs=[])]
    made = import_text(app(steps, [edge("s", "q"), edge("q", "e", class_id)]))
    model = FakeModel(class_id)
    run_sync(graph_of(made), {"v": "text"}, model=model)
    assert f"\n{class_id}: Odd\n" in str(model.requests[0].system)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("1", {"a": "Orders", "id": "1"}),
        (" 'x9'.\n", {"b": 'All "else"', "id": "x9"}),
        ("no idea", {"a": "Orders", "id": "1"}),
    ],
)
def test_a_classifier_goes_the_way_that_the_model_names(reply: str, expected: Any) -> None:
    made = classifier()
    assert made.report["summary"]["placeholder"] == 0
    model = FakeModel(reply)
    assert run_sync(graph_of(made), {"v": "text"}, model=model).output == expected
    assert model.requests[0].prompt == "text"
    assert '1: Orders\nx9: All "else"\nAlso note: Mind text' in str(model.requests[0].system)


def test_an_extractor_gives_its_parameters_and_what_is_empty_for_others() -> None:
    parameters = [
        {"name": "city", "type": "string", "required": True, "description": "Where"},
        {"name": "days", "type": "number", "required": False},
        {"name": "tags", "type": "array[string]", "required": False},
        {"name": "kind", "type": "select", "options": ["a", "b"], "required": False},
    ]
    fields = {"parameters": parameters, "query": ["s", "v"], "model": MODEL, "instruction": ""}
    names = ["city", "days", "tags", "kind", "__is_success"]
    outputs = [{"variable": name, "value_selector": ["p", name]} for name in names]
    steps = [
        start("v"),
        step("p", "parameter-extractor", **fields),
        step("e", "end", outputs=outputs),
    ]
    made = import_text(app(steps, chain("s", "p", "e")))
    assert made.report["summary"]["placeholder"] == 0
    result = run_sync(graph_of(made), {"v": "text"}, model=FakeModel('{"city": "Oslo"}'))
    assert result.output == {"city": "Oslo", "days": 0, "tags": [], "kind": "", "__is_success": 1}


def test_a_parameter_of_an_unknown_type_makes_the_step_a_placeholder() -> None:
    fields = {"parameters": [{"name": "f", "type": "file"}], "query": ["s", "v"], "model": MODEL}
    steps = [start("v"), step("p", "parameter-extractor", **fields)]
    made = import_text(app(steps, chain("s", "p")))
    assert made.document["nodes"][1]["type"] == "placeholder"
