"""list-operator steps: filtered, ordered and cut lists are those that Dify makes."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.interop.importing.dify.list_steps import FILTERS
from planwave.interop.importing.importer import Imported, import_text
from planwave.testing import run_sync
from tests.support.interop.dify_apps import app, chain, graph_of, start, step

TEXTS = ["ab", "bc", "", "b", "Ab", "é"]
NUMBERS = [3, 1, 2, 2.5]
OFF: dict[str, Any] = {"enabled": False}


def imported(var_type: str, **data: Any) -> Imported:
    fields = {"variable": ["s", "v"], "filter_by": OFF, "order_by": OFF, "limit": OFF, **data}
    made = step("l", "list-operator", var_type=var_type, **fields)
    outputs = [
        {"variable": name, "value_selector": ["l", name]}
        for name in ("result", "first_record", "last_record")
    ]
    steps = [start("v", w="b"), made, step("e", "end", outputs=outputs)]
    return import_text(app(steps, chain("s", "l", "e")))


def result_of(made: Imported, value: Any) -> Any:
    graph = graph_of(made)
    graph["nodes"][0]["data"].pop("schema", None)
    return run_sync(graph, {"v": value}).output


def by(operator: str, value: str) -> dict[str, Any]:
    return {"enabled": True, "conditions": [{"comparison_operator": operator, "value": value}]}


@pytest.mark.parametrize(
    ("var_type", "operator", "value", "expected"),
    [
        ("array[string]", "start with", "a", ["ab"]),
        ("array[string]", "end with", "{{#s.w#}}", ["ab", "b", "Ab"]),
        ("array[string]", "is", "b", ["b"]),
        ("array[string]", "is not", "b", ["ab", "bc", "", "Ab", "é"]),
        ("array[string]", "in", "xbcx", ["bc", "", "b"]),
        ("array[string]", "not in", "xbcx", ["ab", "Ab", "é"]),
        ("array[string]", "empty", "", [""]),
        ("array[string]", "not empty", "", ["ab", "bc", "b", "Ab", "é"]),
        ("array[number]", "=", "2", [2]),
        ("array[number]", "≠", "2.0", [3, 1, 2.5]),
        ("array[number]", "<", "2", [1]),
        ("array[number]", "≤", "2", [1, 2]),
        ("array[number]", ">", "2", [3, 2.5]),
        ("array[number]", "≥", "2.5", [3, 2.5]),
    ],
)
def test_every_operator_gives_the_items_of_dify(
    var_type: str, operator: str, value: str, expected: list[Any]
) -> None:
    made = imported(var_type, filter_by=by(operator, value))
    assert made.report["nodes"][1]["outcome"] == "mapped"
    items = TEXTS if var_type == "array[string]" else NUMBERS
    first, last = expected[0], expected[-1]
    assert result_of(made, items) == {
        "result": expected, "first_record": first, "last_record": last,
    }  # fmt: skip
    assert result_of(made, []) == {"result": [], "first_record": None, "last_record": None}


def test_every_operator_of_the_table_is_tried() -> None:
    tried = {
        mark.args[1][i][1]
        for mark in test_every_operator_gives_the_items_of_dify.pytestmark  # type: ignore[attr-defined]
        for i in range(len(mark.args[1]))
    }
    assert tried == {name for table in FILTERS.values() for name in table}


@pytest.mark.parametrize(
    ("var_type", "data", "expected"),
    [
        ("array[string]", {"order_by": {"enabled": True, "value": "asc"}}, sorted(TEXTS)),
        ("array[string]", {"order_by": {"enabled": True, "value": "desc"}}, sorted(TEXTS, reverse=True)),
        ("array[number]", {"order_by": {"enabled": True, "value": "desc"}}, [3, 2.5, 2, 1]),
        ("array[number]", {"limit": {"enabled": True, "size": 2}}, [3, 1]),
        (
            "array[number]",
            {
                "filter_by": by(">", "1"), "order_by": {"enabled": True, "value": "asc"},
                "limit": {"enabled": True, "size": 2},
            },
            [2, 2.5],
        ),
    ],
)  # fmt: skip
def test_lists_are_ordered_and_cut_as_there(var_type: str, data: Any, expected: list[Any]) -> None:
    items = TEXTS if var_type == "array[string]" else NUMBERS
    assert result_of(imported(var_type, **data), items)["result"] == expected


@pytest.mark.parametrize(
    ("var_type", "data"),
    [
        ("array[string]", {"filter_by": by("contains", "a")}),
        ("array[string]", {"filter_by": by("odd", "a")}),
        ("array[number]", {"filter_by": by(">", "many")}),
        ("array[number]", {"filter_by": by(">", "nan")}),
        ("array[object]", {}),
        ("array[file]", {}),
        ("array[string]", {"order_by": {"enabled": True, "value": "odd"}}),
        ("array[string]", {"limit": {"enabled": True, "size": "x"}}),
        ("array[string]", {"extract_by": {"enabled": True, "serial": "1"}}),
        ("array[string]", {"variable": ["gone", "x"]}),
    ],
)
def test_what_has_no_counterpart_makes_the_step_a_placeholder(var_type: str, data: Any) -> None:
    assert imported(var_type, **data).report["nodes"][1]["outcome"] == "placeholder"


@pytest.mark.parametrize(("kind", "handle"), [("image", "images"), ("document", "files")])
def test_files_of_a_chat_are_told_by_their_type(kind: str, handle: str) -> None:
    condition = {"key": "type", "comparison_operator": "in", "value": [kind]}
    made = step(
        "l", "list-operator", variable=["sys", "files"], var_type="array[file]",
        filter_by={"enabled": True, "conditions": [condition]}, limit={"enabled": True, "size": 1},
    )  # fmt: skip
    chat = import_text(app([start(), made], chain("s", "l"), mode="advanced-chat"))
    expression = f'{{{{ (nodes["s"].{handle})[:1] }}}}'
    assert chat.document["nodes"][1].get("data") == {"expression": expression}
