"""Steps of Python as node types of a module: they run there as in Dify, or stay placeholders."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.checking.checker import read_and_check
from planwave.interop.importing.importer import Imported, import_text
from planwave.settings import Limits
from planwave.testing import run_sync
from tests.support.interop.dify_apps import (
    app,
    chain,
    graph_of,
    open_graph_of,
    registry_with,
    start,
    step,
)


def coded(*codes: str, outputs: Any = None, **data: Any) -> Imported:
    fields = {
        "code_language": "python3",
        "outputs": outputs or {"x": {"type": "string"}},
        "variables": [{"variable": "v", "value_selector": ["s", "v"]}],
        **data,
    }
    steps = [step(f"c{i}", "code", code=code, **fields) for i, code in enumerate(codes)]
    outs = [
        {"variable": each["id"], "value_selector": [each["id"], *list(fields["outputs"])[:1]]}
        for each in steps
    ]
    ids = [each["id"] for each in steps]
    made = [start("v"), *steps, step("e", "end", outputs=outs)]
    return import_text(app(made, chain("s", *ids, "e")), write_code=True)


def run(made: Imported, value: Any) -> Any:
    assert made.report["summary"]["placeholder"] == 0, made.report
    return run_sync(open_graph_of(made), {"v": value}, registry=registry_with(made.code)).output


def test_steps_have_their_own_names_and_keep_their_texts() -> None:
    first = "import math\nLINE = '''a\n  b'''\ndef helper(v):\n    return v + LINE\n\ndef main(v):\n    return {'x': helper(v)}"
    second = 'def helper(v):\n\treturn str(len(v))\ndef main(v: str) -> dict:\n\treturn {\'x\': f"""{helper(\nv)}\n!"""}\n'
    made = coded(first, second)
    assert run(made, "q") == {"c0": "qa\n  b", "c1": "1\n!"}
    assert made.report["nodes"][1]["outcome"] == "changed"


@pytest.mark.parametrize(
    ("kind", "value", "is_right"),
    [
        ("string", "a", True),
        ("string", 1, False),
        ("number", 1.5, True),
        ("array[string]", ["a"], True),
        ("array[string]", [1], False),
        ("array[object]", [{"a": None}], True),
        ("object", {"a": [1]}, True),
        ("boolean", True, True),
        ("any", [1, "a"], True),
    ],
)
def test_results_have_to_be_of_the_declared_type(kind: str, value: Any, is_right: bool) -> None:
    made = coded("def main(v):\n    return {'x': v}", outputs={"x": {"type": kind}})
    result = run_sync(
        open_graph_of(made), {"v": value}, registry=registry_with(made.code), check=False
    )
    assert (result.status == "completed") is is_right


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("def main(:", "cannot be read"),
        ("x = 1", "no function main"),
        ("n = 0\ndef main(v):\n    global n\n    return {'x': ''}", "global variables"),
        ("from math import *\ndef main(v):\n    return {'x': ''}", "only a module may import"),
        ("from __future__ import annotations\ndef main(v):\n    return {'x': ''}", "only a module may import"),
        ("KEY = 'sk-test0123456789abcdef'\ndef main(v):\n    return {'x': KEY}", "secret"),
    ],
)  # fmt: skip
def test_code_that_would_mean_something_else_stays_a_placeholder(code: str, why: str) -> None:
    made = coded(code)
    assert made.document["nodes"][1]["type"] == "placeholder"
    assert why in made.report["nodes"][1]["notes"][-1]["message"]
    assert made.code == ""
    assert "sk-test" not in str(made)


def test_javascript_stays_a_placeholder() -> None:
    made = coded("function main() { return {} }", code_language="javascript")
    assert made.document["nodes"][1]["type"] == "placeholder"


def test_titles_and_ids_cannot_break_out_of_the_module() -> None:
    title = 'A """ b\' \\ {x}\n'
    code = step(
        'i"d{}',
        "code",
        code="def main():\n    return {'x': ''}",
        outputs={'o"{}': {"type": "string"}},
    )
    code["data"]["title"] = title
    made = import_text(app([start("v"), code], chain("s", 'i"d{}')), write_code=True)
    registry = registry_with(made.code)
    assert registry.type_info(made.document["nodes"][1]["type"]) is not None


def test_a_default_value_is_an_object_of_the_outputs() -> None:
    made = coded(
        "def main(v):\n    return {'x': 1 / 0}", error_strategy="default-value",
        default_value=[{"key": "x", "type": "string", "value": "none"}],
    )  # fmt: skip
    assert run(made, "") == {"c0": "none"}


def test_a_step_of_code_may_begin_a_body_to_which_no_edge_leads() -> None:
    """Older files name the first step of an iteration and draw no edge to it."""
    steps = [
        start("v"),
        step("i", "iteration", iterator_selector=["s", "v"], output_selector=["c", "x"], start_node_id="c"),
        step(
            "c", "code", "i", code="def main(a):\n    return {'x': a}", outputs={"x": {"type": "string"}},
            variables=[{"variable": "a", "value_selector": ["i", "item"]}],
        ),
    ]  # fmt: skip
    made = import_text(app(steps, chain("s", "i")), write_code=True)
    registry = registry_with(made.code)
    _, findings = read_and_check(graph_of(made), registry, Limits())
    assert [each.code for each in findings if each.severity == "error"] == []
    graph = graph_of(made)
    graph["nodes"][0]["data"].pop("schema", None)
    assert run_sync(graph, {"v": ["p", "q"]}, registry=registry).output == ["p", "q"]
