"""Iterations and loops: they run as there, also with what their steps read outside."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planwave.interop.importing.importer import Imported, import_text
from planwave.testing import FakeModel, run_sync
from tests.support.interop.dify_apps import app, chain, data_of, edge, open_graph_of, start, step


def template(
    step_id: str, text: str, parent: str | None = None, **names: list[str]
) -> dict[str, Any]:
    variables = [{"variable": name, "value_selector": value} for name, value in names.items()]
    return step(step_id, "template-transform", parent, template=text, variables=variables)


def end(**outputs: list[str]) -> dict[str, Any]:
    named = [{"variable": name, "value_selector": value} for name, value in outputs.items()]
    return step("end", "end", outputs=named)


def run(made: Imported, **inputs: Any) -> Any:
    assert made.report["summary"]["placeholder"] == 0, made.report
    return run_sync(open_graph_of(made), inputs).output


def iteration(*inside: dict[str, Any], edges: list[dict[str, Any]], **data: Any) -> Imported:
    fields = {"iterator_selector": ["s", "list"], "start_node_id": "b", **data}
    steps = [
        start("list", "tone"),
        step("i", "iteration", **fields),
        step("b", "iteration-start", "i"),
    ]
    return import_text(
        app([*steps, *inside, end(all=["i", "output"])], [*chain("s", "i", "end"), *edges])
    )


def test_an_iteration_runs_its_steps_for_each_item() -> None:
    made = iteration(
        template("t", "{{ n }}: {{ x }}", "i", x=["i", "item"], n=["i", "index"]),
        edges=chain("b", "t"), output_selector=["t", "output"],
    )  # fmt: skip
    assert run(made, list=["a", "b"]) == {"all": ["0: a", "1: b"]}
    assert data_of(made, "i")["parallel"] == 1


def test_a_branch_inside_may_lead_around_the_output() -> None:
    cases = [{"case_id": "true", "logical_operator": "and", "conditions": [
        {"comparison_operator": "is", "value": "a", "variable_selector": ["i", "item"]}]}]  # fmt: skip
    made = iteration(
        step("if", "if-else", "i", cases=cases),
        template("t", "{{ x }} {{ t }}", "i", x=["i", "item"], t=["s", "tone"]),
        edges=[edge("b", "if"), edge("if", "t", "true")], output_selector=["t", "output"],
    )  # fmt: skip
    assert run(made, list=["a", "b"], tone="dry") == {"all": ["a dry", None]}


@pytest.mark.parametrize(
    ("flatten", "expected"), [(True, ["a", "b", "c"]), (False, [["a", "b"], ["c"]])]
)
def test_lists_of_lists_are_joined_as_there(flatten: bool, expected: Any) -> None:
    inner = step(
        "j",
        "iteration",
        "i",
        iterator_selector=["i", "item"],
        start_node_id="c",
        output_selector=["t", "output"],
    )
    made = iteration(
        inner, step("c", "iteration-start", "j"), template("t", "{{ x }}", "j", x=["j", "item"]),
        edges=[edge("b", "j"), edge("c", "t")], output_selector=["j", "output"], flatten_output=flatten,
    )  # fmt: skip
    assert run(made, list=[["a", "b"], ["c"]]) == {"all": expected}


def test_an_iteration_that_cannot_be_carried_over_takes_its_steps_along() -> None:
    made = iteration(
        template("t", "x", "i"), edges=chain("b", "t"), output_selector=["gone", "output"]
    )
    outcome = {n["source_name"]: (n["outcome"], n["target"]) for n in made.report["nodes"]}
    assert outcome["Step i"][0] == outcome["Step t"][0] == "placeholder"
    assert outcome["Step t"][1] == ["i"]


def loop(*inside: dict[str, Any], edges: list[dict[str, Any]], **data: Any) -> Imported:
    variables = [
        {"label": "n", "var_type": "number", "value_type": "constant", "value": "1"},
        {"label": "text", "var_type": "string", "value_type": "variable", "value": ["s", "first"]},
    ]
    fields: dict[str, Any] = {
        "loop_variables": variables, "loop_count": 5, "start_node_id": "b", "logical_operator": "and",
        "break_conditions": [{"comparison_operator": "≥", "value": "8", "varType": "number",
                              "variable_selector": ["l", "n"]}],
    }  # fmt: skip
    steps = [
        start("first", "tone"),
        step("l", "loop", **fields | data),
        step("b", "loop-start", "l"),
    ]
    outputs = end(n=["l", "n"], text=["l", "text"], rounds=["l", "loop_round"])
    return import_text(app([*steps, *inside, outputs], [*chain("s", "l", "end"), *edges]))


def assign(step_id: str, *items: dict[str, Any]) -> dict[str, Any]:
    return step(step_id, "assigner", "l", items=list(items), version="2")


def item(name: str, operation: str, value: Any, kind: str = "constant") -> dict[str, Any]:
    return {
        "variable_selector": ["l", name], "operation": operation, "value": value, "input_type": kind
    }  # fmt: skip


def test_a_loop_runs_until_its_condition_holds() -> None:
    made = loop(
        template("t", "{{ a }}{{ tone }}", "l", a=["l", "text"], tone=["s", "tone"]),
        assign("x", item("n", "*=", 2), item("text", "over-write", ["t", "output"], "variable")),
        edges=chain("b", "t", "x"),
    )
    assert run(made, first="a", tone="!") == {"n": 8, "text": "a!!!", "rounds": 3}


def test_a_loop_ends_after_its_count() -> None:
    made = loop(assign("x", item("n", "+=", 1)), edges=chain("b", "x"))
    assert run(made, first="a") == {"n": 6, "text": "a", "rounds": 5}


def test_a_step_after_an_assignment_reads_the_new_value() -> None:
    made = loop(
        assign("x", item("n", "+=", 1)),
        template("t", "{{ a }}", "l", a=["l", "n"]),
        assign("y", item("text", "over-write", ["t", "output"], "variable")),
        edges=chain("b", "x", "t", "y"), loop_count=1,
    )  # fmt: skip
    assert run(made, first="") == {"n": 2, "text": "2", "rounds": 1}


@pytest.mark.parametrize(
    ("inside", "edges"),
    [
        ([assign("x", item("n", "+=", 1)), template("t", "{{ a }}", "l", a=["l", "n"])],
         [edge("b", "x"), edge("b", "t")]),
        ([step("x", "loop-end", "l")], chain("b", "x")),
        ([assign("x", item("n", "odd", 1))], chain("b", "x")),
    ],
)  # fmt: skip
def test_a_loop_whose_rounds_cannot_be_told_is_a_placeholder(inside: Any, edges: Any) -> None:
    made = loop(*inside, edges=edges)
    kinds = {n["source_kind"]: n["outcome"] for n in made.report["nodes"]}
    assert "placeholder" in {kinds["loop"], kinds.get("assigner")}


def test_models_inside_see_what_stands_outside() -> None:
    prompt = [
        {"role": "system", "text": "Be {{#s.tone#}}"},
        {"role": "user", "text": "{{#i.item#}}"},
    ]
    model = {"provider": "openai", "name": "gpt-4o-mini"}
    made = iteration(
        step("m", "llm", "i", prompt_template=prompt, model=model),
        edges=chain("b", "m"), output_selector=["m", "text"],
    )  # fmt: skip
    fake = FakeModel(lambda request: f"{request.system}|{request.prompt}")
    result = run_sync(open_graph_of(made), {"list": ["a"], "tone": "kind"}, model=fake)
    assert result.output == {"all": ["Be kind|a"]}
    assert json.dumps(made.document).count("outer.v1") == 1
