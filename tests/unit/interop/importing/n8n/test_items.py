"""Steps that join, keep and collect items give what n8n gives for one item, and are lost for more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planwave.executor.options import RunOptions
from planwave.interop.importing.importer import Imported
from tests.support.conformance.converted_runs import ConvertedGraph, RuleModels, run_converted
from tests.support.interop.imports import findings_of, outcomes
from tests.support.interop.n8n import CHAIN, codes, imported, node, workflow
from tests.support.outbound.fake_network import PUBLIC, FakeNetwork, response

_START = node("Start", "manualTrigger")
_HOST = "a.example.com"
_GET = node("Get", "httpRequest", {"url": f"https://{_HOST}"}, version=4.2)


def _set(step: str, **fields: Any) -> dict[str, Any]:
    given = [{"name": k, "value": v, "type": "any"} for k, v in fields.items()]
    return node(step, "set", {"assignments": {"assignments": given}}, version=3.4)


def _raw(step: str, written: Any, *, include: bool = False) -> dict[str, Any]:
    parameters = {"mode": "raw", "jsonOutput": written, "includeOtherFields": include}
    return node(step, "set", parameters, version=3.4)


async def _run(made: Imported, *answers: bytes) -> Any:
    net = FakeNetwork({_HOST: [PUBLIC]}, *answers)
    graph = {name: made.document[name] for name in ("nodes", "edges")}
    assert not findings_of(made)
    return await run_converted(
        ConvertedGraph(graph, RunOptions()), RuleModels(lambda request, _: request.prompt), outbound=net.client()
    )  # fmt: skip


def _json(value: Any) -> bytes:
    return response(json.dumps(value).encode(), kind="application/json")


def _merging(parameters: dict[str, Any], *more: Any, ways: str = "") -> Imported:
    merge = node("Join", "merge", parameters, version=3)
    return imported(
        workflow(
            _START, _set("A", a=1, x="a", o={"p": 1}), _set("B", b=2, x="b", o={"q": 2}), merge, *more,
            ways=f"Start > A, Start > B, B > Join@1, A > Join{ways}",
        )
    )  # fmt: skip


_BOTH = {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({"mode": "combine", "combineBy": "combineByPosition"}, {**_BOTH, "x": "b", "o": {"q": 2}}),
        ({"mode": "combine", "combineBy": "combineAll"}, {**_BOTH, "x": "b", "o": {"q": 2}}),
        ({"mode": "combine", "combinationMode": "multiplex"}, {**_BOTH, "x": "b", "o": {"q": 2}}),
        (
            {"mode": "combine", "combineBy": "combineByPosition", "options": {"clashHandling": {"values": {"resolveClash": "preferInput1"}}}},
            {**_BOTH, "x": "a", "o": {"p": 1}},
        ),
        ({"mode": "chooseBranch"}, {"a": 1, "x": "a", "o": {"p": 1}}),
        ({"mode": "chooseBranch", "useDataOfInput": "2"}, {"b": 2, "x": "b", "o": {"q": 2}}),
        ({"mode": "chooseBranch", "useDataOfInput": 2}, {"b": 2, "x": "b", "o": {"q": 2}}),
        ({"mode": "chooseBranch", "output": "empty"}, {}),
    ],
)  # fmt: skip
async def test_inputs_of_one_item_each_are_joined(parameters: dict[str, Any], found: Any) -> None:
    made = _merging(parameters)
    assert outcomes(made)["Join"] in ("mapped", "changed")
    assert (await _run(made)).outputs["Join"]["output"] == found


@pytest.mark.parametrize(
    "parameters",
    [
        {}, {"mode": "append"}, {"mode": "combine"}, {"mode": "combine", "combineBy": "combineByFields"},
        {"mode": "combineBySql"}, {"mode": "chooseBranch", "useDataOfInput": 3},
        {"mode": "combine", "combineBy": "combineAll", "options": {"clashHandling": {"values": {"resolveClash": "addSuffix"}}}},
        {"mode": "combine", "combineBy": "combineAll", "options": {"clashHandling": {"values": {"overrideEmpty": True}}}},
    ],
)  # fmt: skip
def test_what_gives_several_items_is_lost(parameters: dict[str, Any]) -> None:
    made = _merging(parameters, _set("After", n=1), ways=", Join > After")
    assert outcomes(made)["Join"] == "placeholder"


async def test_inputs_of_several_forms_are_joined_as_n8n_has_them() -> None:
    merge = node("Join", "merge", {"mode": "combine", "combineBy": "combineByPosition"}, version=3)
    made = imported(
        workflow(
            _START, _set("A", a=1), node("Ask", f"{CHAIN}chainLlm", {"promptType": "define", "text": "Hi"}, version=1.7),
            node("Model", f"{CHAIN}lmChatOpenAi", {"model": "gpt-4o-mini"}), merge, _set("After", t="={{ $json.text }}"),
            ways="Start > A, Start > Ask, Model >ai_languageModel> Ask, A > Join, Ask > Join@1, Join > After",
        )
    )  # fmt: skip
    run = await _run(made)
    assert run.outputs["Join"]["output"] == {"a": 1, "text": "Hi"}
    assert run.outputs["After"]["output"] == {"t": "Hi"}


async def test_the_items_of_all_inputs_are_aggregated() -> None:
    collect = node("All", "aggregate", {"aggregate": "aggregateAllItemData"})
    made = _merging({}, collect, ways=", Join > All")
    rows = [{"a": 1, "x": "a", "o": {"p": 1}}, {"b": 2, "x": "b", "o": {"q": 2}}]
    assert (await _run(made)).outputs["All"]["output"] == {"data": rows}


def test_no_field_is_read_of_the_items_of_all_inputs() -> None:
    collect = node("All", "aggregate", {"aggregate": "aggregateAllItemData"})
    after = _set("After", n="={{ $('Join').item.json.a }}")
    made = _merging({}, collect, after, ways=", Join > All, All > After")
    assert outcomes(made)["After"] == "placeholder"


async def test_alternatives_are_appended_as_the_one_that_is_taken() -> None:
    choose = {
        "conditions": {
            "conditions": [{"leftValue": "={{ $json.n }}", "rightValue": 1, "operator": {"type": "number", "operation": "gt"}}],
        }
    }  # fmt: skip
    made = imported(
        workflow(
            _START, _set("Data", n=2), node("If", "if", choose, version=2.2), _set("A", v="a"), _set("B", v="b"),
            node("Join", "merge", {}, version=3), _set("After", v="={{ $json.v }}"),
            ways="Start > Data, Data > If, If > A, If:1 > B, A > Join, B > Join@1, Join > After",
        )
    )  # fmt: skip
    assert outcomes(made)["Join"] == "mapped"
    assert (await _run(made)).outputs["After"]["output"] == {"v": "a"}


@pytest.mark.parametrize(
    ("given", "answer", "found"),
    [
        ({}, [{"n": 1}, {"n": 2}], {"n": 1}), ({"keep": "lastItems"}, [{"n": 1}, {"n": 2}], {"n": 2}),
        ({"maxItems": 1}, {"n": 3}, {"n": 3}), ({"maxItems": 5}, {"n": 3}, {"n": 3}),
    ],
)  # fmt: skip
async def test_one_item_is_kept(given: dict[str, Any], answer: Any, found: Any) -> None:
    limit = node("One", "limit", given, version=1)
    made = imported(workflow(_START, _GET, limit, ways="Start > Get, Get > One"))
    assert (await _run(made, _json(answer))).outputs["One"]["output"] == found


async def test_several_items_that_are_kept_fail() -> None:
    limit = node("Some", "limit", {"maxItems": 5}, version=1)
    made = imported(workflow(_START, _GET, limit, ways="Start > Get, Get > Some"))
    assert "import-many-items" in codes(made, "Get")
    assert (await _run(made, _json([{"n": 1}, {"n": 2}]))).statuses[-1] == "failed"


@pytest.mark.parametrize(
    "given", [{"maxItems": "={{ $json.n }}"}, {"maxItems": 0}, {"maxItems": True}]
)
def test_a_number_of_items_that_is_not_known_is_lost(given: dict[str, Any]) -> None:
    made = imported(workflow(_START, node("Some", "limit", given, version=1), ways="Start > Some"))
    assert outcomes(made)["Some"] == "placeholder"


def test_the_items_of_a_loop_are_not_limited_one_by_one() -> None:
    made = imported(
        workflow(
            _START, _set("Data", rows=[1, 2]), node("Split", "splitOut", {"fieldToSplitOut": "rows"}),
            node("Some", "limit", {}, version=1), node("All", "aggregate", {"aggregate": "aggregateAllItemData"}),
            ways="Start > Data, Data > Split, Split > Some, Some > All",
        )
    )  # fmt: skip
    assert "placeholder" in outcomes(made).values()


async def test_a_step_that_stops_fails_with_its_message() -> None:
    stop = node("Stop", "stopAndError", {"errorMessage": "=No {{ $json.what }} found"}, version=1)
    made = imported(
        workflow(_START, _set("Data", what="row"), stop, ways="Start > Data, Data > Stop")
    )
    run = await _run(made)
    assert run.statuses[-1] == "failed"
    assert "No row found" in str([each.error for each in run.state.nodes.values()])


async def test_a_template_of_html_is_filled_in() -> None:
    page = node("Page", "html", {"html": "<p style='a{b}'>{{ $json.t }}</p>"}, version=1.2)
    after = _set("After", page="={{ $json.html }}")
    made = imported(
        workflow(
            _START, _set("Data", t="x"), page, after, ways="Start > Data, Data > Page, Page > After"
        )
    )
    assert (await _run(made)).outputs["After"]["output"] == {"page": "<p style='a{b}'>x</p>"}


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ('{"a": 2, "t": "={{ 1 }}", "n": null, "l": [true, {"m": 1.5}]}', {"a": 2, "b": 3, "t": "={{ 1 }}", "n": None, "l": [True, {"m": 1.5}]}),
        ("={{ {c: $json.a + 1} }}", {"a": 1, "b": 3, "c": 2}),
        ('={"a": "{{ $json.b }}", "d": [1]}', {"a": "3", "b": 3, "d": [1]}),
    ],
)  # fmt: skip
async def test_json_is_joined_to_the_other_fields(written: Any, found: Any) -> None:
    made = imported(
        workflow(
            _START,
            _set("Data", a=1, b=3),
            _raw("Set", written, include=True),
            ways="Start > Data, Data > Set",
        )
    )
    assert (await _run(made)).outputs["Set"]["output"] == found


async def test_an_older_step_for_lists_splits_them() -> None:
    made = imported(
        workflow(
            _START, _set("Data", rows=[{"n": 1}, {"n": 2}]), node("Split", "itemLists", {"fieldToSplitOut": "rows"}),
            _set("Double", n="={{ $json.n * 2 }}"), node("All", "aggregate", {"aggregate": "aggregateAllItemData"}),
            ways="Start > Data, Data > Split, Split > Double, Double > All",
        )
    )  # fmt: skip
    assert (await _run(made)).outputs["All"]["output"] == {"data": [{"n": 2}, {"n": 4}]}


def _split(
    options: dict[str, Any], *, aggregates: bool = False, rows: Any = (1, {"n": 2}), **more: Any
) -> Imported:
    split = node("Split", "splitOut", {"fieldToSplitOut": "rows", "options": options, **more})
    copy = [] if aggregates else [_set("Copy", all="={{ $json }}")]
    ways = "Start > Data, Data > Split, " + (
        "Split > All" if aggregates else "Split > Copy, Copy > All"
    )
    collect = node("All", "aggregate", {"aggregate": "aggregateAllItemData"})
    return imported(
        workflow(_START, _set("Data", rows=list(rows)), split, *copy, collect, ways=ways)
    )


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, [{"rows": 1}, {"n": 2}]), ({"destinationFieldName": "row"}, [{"row": 1}, {"row": {"n": 2}}]),
        ({"includeBinary": True}, [{"rows": 1}, {"n": 2}]), ({"destinationFieldName": ""}, [{"rows": 1}, {"n": 2}]),
    ],
)  # fmt: skip
async def test_each_item_of_a_list_has_its_name(options: dict[str, Any], found: Any) -> None:
    run = await _run(_split(options))
    assert run.outputs["All"]["output"] == {"data": [{"all": item} for item in found]}


async def test_a_list_of_objects_is_aggregated_and_another_one_fails() -> None:
    rows = [{"n": 1}, {"n": 2}]
    run = await _run(_split({}, aggregates=True, rows=rows))
    assert run.outputs["All"]["output"] == {"data": rows}
    assert (await _run(_split({}, aggregates=True))).statuses[-1] == "failed"


@pytest.mark.parametrize(
    "more",
    [
        {"options": {"destinationFieldName": "a.b"}}, {"options": {"disableDotNotation": True}},
        {"options": {}, "include": "allOtherFields"}, {"options": {}, "fieldToSplitOut": "$binary"},
        {"options": {}, "fieldToSplitOut": "a[0]"}, {"options": {}, "fieldToSplitOut": "a, b"},
    ],
)  # fmt: skip
def test_other_ways_to_split_a_list_are_lost(more: dict[str, Any]) -> None:
    assert outcomes(_split(**more))["Split"] == "placeholder"


_ITEMS = [
    {"n": 1, "o": {"p q": 1}},
    {"m": 2},
    {"n": None, "o": 5},
    {"n": False, "o": {"p q": 2}},
    {"n": 0, "o": {}},
]


@pytest.mark.parametrize(
    ("field", "options", "found"),
    [
        ({"fieldToAggregate": "n"}, {}, {"n": [1, False, 0]}),
        ({"fieldToAggregate": "n"}, {"keepMissing": True}, {"n": [1, None, None, False, 0]}),
        ({"fieldToAggregate": "o['p q']"}, {"includeBinaries": True}, {"p q": [1, 2]}),
        ({"fieldToAggregate": "['o']", "renameField": True, "outputFieldName": "all"}, {}, {"all": [{"p q": 1}, 5, {"p q": 2}, {}]}),
    ],
)  # fmt: skip
async def test_values_that_are_missing_are_not_aggregated(
    field: Any, options: dict[str, Any], found: Any
) -> None:
    given = {"fieldsToAggregate": {"fieldToAggregate": [field]}, "options": options}
    made = imported(
        workflow(_START, _GET, node("All", "aggregate", given), ways="Start > Get, Get > All")
    )
    assert (await _run(made, _json(_ITEMS))).outputs["All"]["output"] == found


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("={{ $json.x }}", {}),
        ("a[0]", {}),
        ("", {}),
        ("n", {"mergeLists": True}),
        ("o.p", {"keepMissing": True}),
    ],
)
def test_other_values_of_items_are_lost(name: str, options: dict[str, Any]) -> None:
    given = {
        "fieldsToAggregate": {"fieldToAggregate": [{"fieldToAggregate": name}]},
        "options": options,
    }
    made = imported(workflow(_START, node("All", "aggregate", given), ways="Start > All"))
    assert outcomes(made)["All"] == "placeholder"


async def test_a_list_in_a_field_with_spaces_is_split() -> None:
    split = node("Split", "splitOut", {"fieldToSplitOut": "o['a b']"})
    copy, collect = (
        _set("Copy", all="={{ $json }}"),
        node("All", "aggregate", {"aggregate": "aggregateAllItemData"}),
    )
    data = _raw("Data", '{"o": {"a b": [1]}}')
    ways = "Start > Data, Data > Split, Split > Copy, Copy > All"
    run = await _run(imported(workflow(_START, data, split, copy, collect, ways=ways)))
    assert run.outputs["All"]["output"] == {"data": [{"all": {"a b": 1}}]}
