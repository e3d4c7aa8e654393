"""Steps of n8n in any combination: items, cycles, joins, helpers, and what is lost by name."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.executor.options import RunOptions
from planwave.interop.importing.importer import Imported, import_text
from tests.support.conformance.converted_runs import ConvertedGraph, RuleModels, run_converted
from tests.support.interop.damage import ODD_TEXTS, Damaged, damaged
from tests.support.interop.imports import assert_accounted_for, findings_of, outcomes
from tests.support.interop.n8n import (
    CHAIN,
    by_name,
    codes,
    imported,
    node,
    pointers,
    workflow,
)

_START = node("Start", "manualTrigger")


def _set(step: str, **fields: Any) -> dict[str, Any]:
    given = [{"name": k, "value": v, "type": "any"} for k, v in fields.items()]
    return node(step, "set", {"assignments": {"assignments": given}}, version=3.4)


def _data(**fields: Any) -> dict[str, Any]:
    return node("Data", "set", {"mode": "raw", "jsonOutput": json.dumps(fields)}, version=3.4)


def _if(name: str, left: str, right: Any, operation: str = "equals", kind: str = "string") -> Any:
    comparison = {
        "leftValue": left,
        "rightValue": right,
        "operator": {"type": kind, "operation": operation},
    }
    conditions = {"conditions": [comparison], "combinator": "and", "options": {}}
    return node(name, "if", {"conditions": conditions}, version=2.2)


async def _run(made: Imported) -> dict[str, Any]:
    graph = {name: made.document[name] for name in ("nodes", "edges")}
    run = await run_converted(
        ConvertedGraph(graph, RunOptions()), RuleModels(lambda request, count: request.prompt)
    )
    assert not run.refusal_codes, run.refusal_codes
    assert run.statuses[-1] == "completed", [each.error for each in run.state.nodes.values()]
    names = {each["id"]: each["name"] for each in made.document["nodes"]}
    return {
        names[key]: each["output"]
        for key, each in run.outputs.items()
        if "output" in each and key in names
    }


# Items


async def test_what_follows_a_split_is_a_loop_up_to_the_aggregate() -> None:
    made = imported(
        workflow(
            _START,
            _data(rows=[1, {"n": 2}]),
            node("Split", "splitOut", {"fieldToSplitOut": "rows", "options": {}}, version=1),
            _set("Double", value="={{ $json.rows ?? $json.n }}", all="={{ $('Data').item.json.rows.length }}"),
            node("All", "aggregate", {"aggregate": "aggregateAllItemData", "options": {}}),
            _set("End", found="={{ $json.data }}"),
            ways="Start > Data, Data > Split, Split > Double, Double > All, All > End",
        )
    )  # fmt: skip
    assert "placeholder" not in outcomes(made).values()
    assert not findings_of(made)
    found = (await _run(made))["End"]["found"]
    assert found == [{"value": 1, "all": 2}, {"value": 2, "all": 2}]


async def test_a_field_of_each_item_is_aggregated() -> None:
    fields = {
        "fieldToAggregate": [
            {"fieldToAggregate": "n", "renameField": True, "outputFieldName": "ns"}
        ]
    }
    made = imported(
        workflow(
            _START,
            _data(rows=[{"n": 1}, {"n": 2}]),
            node("Split", "splitOut", {"fieldToSplitOut": "rows"}),
            node("All", "aggregate", {"fieldsToAggregate": fields}),
            ways="Start > Data, Data > Split, Split > All",
        )
    )  # fmt: skip
    assert "placeholder" not in outcomes(made).values()
    assert (await _run(made))["All"] == {"ns": [1, 2]}


@pytest.mark.parametrize(
    ("given", "arriving", "alone", "kept"),
    [
        ({"a.b": 1, "a.c": "={{ $json.x }}"}, {"x": 2}, {"a": {"b": 1, "c": 2}}, {"x": 2, "a": {"b": 1, "c": 2}}),
        ({"a.b.c": True, "d": "t"}, {"a": {"e": 1, "b": {"f": 2}}}, {"a": {"b": {"c": True}}, "d": "t"},
         {"a": {"e": 1, "b": {"f": 2, "c": True}}, "d": "t"}),
        ({"a.b": 1}, {"a": "text"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a.b": 1}, {"a": [7]}, {"a": {"b": 1}}, {"a": [7]}),
        ({"a.b": 1, "a": 2}, {"a": {"c": 1}}, {"a": 2}, {"a": 2}),
        ({"=a": 1}, {"b": 0}, {"a": 1}, {"a": 1, "b": 0}),
        ({"m['a-b']": 1, 'm["c d"].e': 2}, {}, {"m": {"a-b": 1, "c d": {"e": 2}}}, {"m": {"a-b": 1, "c d": {"e": 2}}}),
        ({"a.b": "={{ $json.a.b + 1 }}"}, {"a": {"b": 1}}, {"a": {"b": 2}}, {"a": {"b": 2}}),
    ],
)  # fmt: skip
async def test_names_with_dots_set_fields_of_objects(
    given: dict[str, Any], arriving: Any, alone: Any, kept: Any
) -> None:
    fields = [{"name": k, "value": v, "type": "any"} for k, v in given.items()]
    for keeps, found in ((False, alone), (True, kept)):
        parameters = {"assignments": {"assignments": fields}, "includeOtherFields": keeps}
        made = imported(
            workflow(
                _START, _data(**arriving), node("Set", "set", parameters, version=3.4),
                ways="Start > Data, Data > Set",
            )
        )  # fmt: skip
        assert "placeholder" not in outcomes(made).values()
        assert (await _run(made))["Set"] == found


@pytest.mark.parametrize("name", ["={{ $json.x }}", "a[0].b", "a.0", "a..b", ""])
def test_other_names_of_fields_are_lost(name: str) -> None:
    assert (
        outcomes(imported(workflow(_START, _set("Set", **{name: 1}), ways="Start > Set")))["Set"]
        == "placeholder"
    )


def test_a_field_inside_of_one_that_is_set_is_lost() -> None:
    made = imported(
        workflow(_START, _set("Set", **{"a": "={{ $json }}", "a.b": 1}), ways="Start > Set")
    )
    assert outcomes(made)["Set"] == "placeholder"


@pytest.mark.parametrize("version", [2, 3])
async def test_the_outputs_of_batches_depend_on_the_version(version: int) -> None:
    done, loop = (0, 1) if version == 3 else (1, 0)
    made = imported(
        workflow(
            _START,
            _data(rows=[{"n": 1}, {"n": 2}]),
            node("Split", "splitOut", {"fieldToSplitOut": "rows"}),
            node("Each", "splitInBatches", {"batchSize": 1}, version=version),
            _set("Next", n="={{ $json.n + 1 }}"),
            node("All", "aggregate", {"aggregate": "aggregateAllItemData"}),
            ways=f"Start > Data, Data > Split, Split > Each, Each:{loop} > Next, Next > Each, Each:{done} > All",
        )
    )  # fmt: skip
    assert "placeholder" not in outcomes(made).values()
    assert (await _run(made))["All"] == {"data": [{"n": 2}, {"n": 3}]}


async def test_alternatives_in_a_loop_give_one_result_for_each_item() -> None:
    made = imported(
        workflow(
            _START,
            _data(rows=[{"n": 1}, {"n": 5}]),
            node("Split", "splitOut", {"fieldToSplitOut": "rows"}),
            node("Each", "splitInBatches", {}, version=3),
            _if("Large", "={{ $json.n }}", 3, "gt", "number"),
            _set("Yes", size="large"),
            _set("No", size="small"),
            node("All", "aggregate", {"aggregate": "aggregateAllItemData"}),
            ways="Start > Data, Data > Split, Split > Each, Each:1 > Large, Large > Yes, Large:1 > No, "
            "Yes > Each, No > Each, Each > All",
        )
    )
    assert "placeholder" not in outcomes(made).values()
    assert (await _run(made))["All"] == {"data": [{"size": "small"}, {"size": "large"}]}


@pytest.mark.parametrize(
    ("ways", "lost"),
    [
        ("Each:1 > A, A > Each, Each > B", "B"),  # what follows runs once for each item
        ("Each:1 > A, A > Each, A > B, Each > All", "Each"),  # a way out of the loop
        ("Each:1 > A, A > Each, Data > A, Each > All", "Each"),  # a way into it
        ("Each:1 > A, Each > All", "Each"),  # no result
    ],
)
def test_loops_over_items_that_are_none_are_refused_by_name(ways: str, lost: str) -> None:
    made = imported(
        workflow(
            _START,
            _data(rows=[1]),
            node("Each", "splitInBatches", {}, version=3),
            _set("A", x=1),
            _set("B", x=1),
            node("All", "aggregate", {"aggregate": "aggregateAllItemData"}),
            ways=f"Start > Data, Data > Each, {ways}",
        )
    )
    assert outcomes(made)[lost] == "placeholder"
    assert codes(made, lost) & {"import-cycle", "import-many-items"}
    assert any(each.code == "placeholder" for each in findings_of(made))


def test_several_branches_that_all_arrive_are_no_single_run() -> None:
    made = imported(
        workflow(
            _START, _set("A", x=1), _set("B", x=1), _set("C", x=1), _set("After", x=1),
            node("Join", "merge", {}), _set("Joined", x=1),
            ways="Start > A, Start > B, A > C, B > C, A > Join, B > Join@1, Join > Joined",
        )
    )  # fmt: skip
    assert outcomes(made)["C"] == outcomes(made)["Join"] == "placeholder"
    assert codes(made, "C") == codes(made, "Join") == {"import-many-items"}


async def test_alternatives_arrive_as_one_value() -> None:
    made = imported(
        workflow(
            _START, _data(kind="b", n=4), _if("Is a", "={{ $json.kind }}", "a"), _set("A", v=1),
            node("Pass", "noOp"), _set("After", n="={{ $json.n }}", v="={{ $json.v }}"),
            ways="Start > Data, Data > Is a, Is a > A, Is a:1 > Pass, A > After, Pass > After",
        )
    )  # fmt: skip
    assert "placeholder" not in outcomes(made).values()
    assert (await _run(made))["After"] == {"n": 4, "v": None}


async def test_two_objects_are_joined_by_position() -> None:
    made = imported(
        workflow(
            _START, _set("A", a=1, x="a"), _set("B", b=2, x="b"),
            node("Join", "merge", {"mode": "combine", "combineBy": "combineByPosition"}),
            ways="Start > A, Start > B, B > Join@1, A > Join",
        )
    )  # fmt: skip
    assert outcomes(made)["Join"] == "changed"
    assert (await _run(made))["Join"] == {"a": 1, "b": 2, "x": "b"}


# Cycles


def _cycle(ways: str, *names: str) -> Imported:
    nodes = [_if(name, "={{ $json.x }}", "a") for name in names]
    return imported(
        workflow(_START, _set("In", x="a"), _set("Out", y="={{ $json.x }}"), *nodes, ways=ways)
    )


@pytest.mark.parametrize(
    "ways",
    [
        "Start > In, In > A, A > Out, A:1 > A",
        "Start > In, In > A, A > B, B:1 > A, B > Out",
        "Start > In, In > A, A > B, A:1 > Out, B:1 > A, B > Out",
        "Start > In, In > A, A > B, B > B, B:1 > A",
        "Start > In, In > A, A > B, B > C, C > B, C:1 > A, A:1 > Out",
    ],
)
async def test_cycles_with_one_way_in_are_repeated(ways: str) -> None:
    made = _cycle(ways, "A", "B", "C")
    assert "placeholder" not in outcomes(made).values()
    assert not findings_of(made)
    kinds = {each["type"] for each in by_name(made).values()}
    assert "while" in kinds
    assert "import-cycle" in codes(made, "A")


def test_a_step_whose_errors_lead_back_to_it_is_lost() -> None:
    again = _set("A", x="={{ $json.x }}") | {"onError": "continueErrorOutput"}
    made = imported(workflow(_START, again, ways="Start > A, A:1 > A"))
    assert outcomes(made)["A"] == "placeholder"


@pytest.mark.parametrize(
    "ways",
    [
        "Start > In, In > A, In > B, A > B, B:1 > A, B > Out",  # two ways in
        "Start > In, In > A, A > B, A > Out, B > A",  # two directions at once
    ],
)
def test_other_cycles_are_refused_with_their_path(ways: str) -> None:
    made = _cycle(ways, "A", "B")
    lost = [each for each in made.report["lost"] if each["code"] == "import-cycle"]
    assert lost
    assert all("A → B → A" in each["text"] or "B → A → B" in each["text"] for each in lost)
    assert {"A", "B"} <= {name for name, each in outcomes(made).items() if each == "placeholder"}


# Steps that are switched off, and those that never run


async def test_a_step_that_is_switched_off_hands_on_what_arrives() -> None:
    made = imported(
        workflow(
            _START, _set("A", x=3), node("Off", "slack", disabled=True), _set("B", y="={{ $json.x }}"),
            ways="Start > A, A > Off, Off > B",
        )
    )  # fmt: skip
    assert outcomes(made)["Off"] == "dropped"
    assert (await _run(made))["B"] == {"y": 3}


def test_a_trigger_that_is_switched_off_begins_nothing() -> None:
    made = imported(
        workflow(
            _START, node("Hook", "webhook", disabled=True), _set("A", x=1), _set("B", x=1),
            ways="Start > A, Hook > B",
        )
    )  # fmt: skip
    assert outcomes(made) == {"Start": "mapped", "Hook": "dropped", "A": "mapped", "B": "dropped"}


# Conditions


_COMPARISONS = [
    ("string", "equals", "a", "a", True), ("string", "equals", "a", "b", False),
    ("string", "notEquals", "a", "b", True), ("string", "contains", "abc", "b", True),
    ("string", "notContains", "abc", "x", True), ("string", "startsWith", "abc", "ab", True),
    ("string", "endsWith", "abc", "bc", True), ("string", "notEndsWith", "abc", "bc", False),
    ("string", "empty", "", "", True), ("string", "notEmpty", "a", "", True), ("string", "exists", "a", "", True),
    ("string", "notExists", None, "", True), ("string", "contains", None, "b", False),
    ("number", "equals", 3, 3, True), ("number", "equals", 3, "3", True), ("number", "gt", 3, 2, True),
    ("number", "lt", 3, 2, False), ("number", "gte", 3, 3, True), ("number", "lte", 3, 3, True),
    ("number", "gt", None, 2, False), ("number", "notEquals", 3, 2, True),
    ("boolean", "true", True, "", True), ("boolean", "true", False, "", False),
    ("boolean", "false", False, "", True), ("boolean", "equals", True, "true", True),
    ("array", "contains", ["a", "b"], "b", True), ("array", "notContains", ["a"], "b", True),
    ("array", "lengthEquals", ["a"], 1, True), ("array", "lengthGt", ["a"], 1, False),
    ("array", "notEmpty", ["a"], "", True), ("array", "empty", [], "", True),
    ("number", "empty", 0, "", False), ("number", "notEmpty", 0, "", True), ("number", "empty", None, "", True),
    ("boolean", "empty", False, "", False), ("boolean", "notEmpty", None, "", False),
    ("number", "gt", 3, "={{ $json.v - 1 }}", True),
    ("object", "empty", {}, "", True), ("object", "notEmpty", {"a": 1}, "", True),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "operation", "left", "right", "holds"), _COMPARISONS)
async def test_conditions_choose_as_in_n8n(
    kind: str, operation: str, left: Any, right: Any, holds: bool
) -> None:
    made = imported(
        workflow(
            _START, _data(v=left), _if("Choose", "={{ $json.v }}", right, operation, kind),
            _set("Yes", x=1), _set("No", x=1),
            ways="Start > Data, Data > Choose, Choose > Yes, Choose:1 > No",
        )
    )  # fmt: skip
    assert "placeholder" not in outcomes(made).values()
    assert ("Yes" in await _run(made)) is holds


def test_a_comparison_of_two_numbers_that_are_texts_is_one_condition() -> None:
    made = imported(
        workflow(
            _START, _data(v=[1]), _if("Choose", "={{ $json.v.length }}", "x", "gt", "number"),
            ways="Start > Data, Data > Choose",
        )
    )  # fmt: skip
    assert not findings_of(made)


@pytest.mark.parametrize("url", ["", "example.com/x", "ftp://h.example/x", "5"])
def test_an_address_that_cannot_be_requested_is_lost(url: str) -> None:
    request = node("Ask", "n8n-nodes-base.httpRequest", {"url": url}, version=4.2)
    made = imported(workflow(_START, request, ways="Start > Ask"))
    assert outcomes(made)["Ask"] == "placeholder"
    assert {each.code for each in findings_of(made)} == {"placeholder"}


@pytest.mark.parametrize(
    "url",
    ["", "example.com", "https://", "https://{host}/x", "https://a.example.com/{x y}", "https://1.2.3/x",
     "https://a.example.com/#x", "https://u:p@a.example.com/"],
)  # fmt: skip
def test_an_address_that_no_tool_can_request_is_lost(url: str) -> None:
    agent = node("Agent", f"{CHAIN}agent", {"promptType": "define", "text": "x"})
    tool = node("Ask", f"{CHAIN}toolHttpRequest", {"url": url})
    ways = "Start > Agent, Model >ai_languageModel> Agent, Ask >ai_tool> Agent"
    made = imported(workflow(_START, agent, _model(), tool, ways=ways))
    assert outcomes(made)["Ask"] == "placeholder"


@pytest.mark.parametrize("text", ["[" * 50_000, '{"a": NaN}', "[" * 60 + "]" * 60])
def test_json_that_no_graph_holds_is_lost(text: str) -> None:
    body = {
        "url": "https://a.example.com",
        "method": "POST",
        "sendBody": True,
        "specifyBody": "json",
    }
    made = imported(
        workflow(
            _START, node("Ask", "httpRequest", {**body, "jsonBody": text}, version=4.2),
            node("Raw", "set", {"mode": "raw", "jsonOutput": text}, version=3.4),
            node("Reply", "respondToWebhook", {"respondWith": "json", "responseBody": text}),
            ways="Start > Ask, Ask > Raw, Raw > Reply",
        )
    )  # fmt: skip
    assert {outcomes(made)[name] for name in ("Ask", "Raw", "Reply")} == {"placeholder"}


def test_headers_that_are_not_for_a_graph_are_left_out() -> None:
    sent = [
        {"name": "Connection", "value": "keep-alive"},
        {"name": "X-Id", "value": "={{ $json.id }}"},
    ]
    answered = [{"name": "Cache-Control", "value": "no-store"}, {"name": "X-Id", "value": "7"}]
    request = {
        "url": "https://a.example.com",
        "sendHeaders": True,
        "headerParameters": {"parameters": sent},
    }
    reply = {
        "respondWith": "json",
        "responseBody": "{}",
        "options": {"responseHeaders": {"entries": answered}},
    }
    made = imported(
        workflow(
            _START, node("Ask", "httpRequest", request, version=4.2), node("Reply", "respondToWebhook", reply),
            ways="Start > Ask, Ask > Reply",
        )
    )  # fmt: skip
    assert outcomes(made) == {"Start": "mapped", "Ask": "changed", "Reply": "changed"}
    assert set(by_name(made)["Ask (request)"]["data"]["headers"]) == {"X-Id"}
    assert by_name(made)["Reply"]["data"]["headers"] == {"X-Id": "7"}


def test_a_condition_without_counterpart_is_lost() -> None:
    made = imported(
        workflow(_START, _if("Choose", "={{ $json.v }}", "^a", "regex"), ways="Start > Choose")
    )
    assert outcomes(made)["Choose"] == "placeholder"


# Models


def _model(name: str = "Model", kind: str = "lmChatOpenAi", **options: Any) -> dict[str, Any]:
    return node(name, f"{CHAIN}{kind}", {"model": "gpt-4o-mini", "options": options})


async def test_a_second_model_is_the_fallback_and_a_parser_the_schema() -> None:
    parser = {"schemaType": "fromJson", "jsonSchemaExample": '{"name": "Ada", "tags": ["a"]}'}
    made = imported(
        workflow(
            _START, node("Ask", f"{CHAIN}chainLlm", {"promptType": "define", "text": "Hi"}, version=1.7),
            _model(), _model("Other", "lmChatAnthropic"),
            node("Form", f"{CHAIN}outputParserStructured", parser, version=1.2),
            _set("After", name="={{ $json.output.name }}"),
            ways="Start > Ask, Ask > After, Model >ai_languageModel> Ask, Other >ai_languageModel> Ask@1, "
            "Form >ai_outputParser> Ask",
        )
    )  # fmt: skip
    assert "placeholder" not in outcomes(made).values()
    ask = by_name(made)["Ask"]
    assert ask["type"] == "agent"
    assert ask["data"]["fallback"] == [{"provider": "anthropic", "model": "gpt-4o-mini"}]
    assert set(ask["data"]["outputSchema"]["properties"]) == {"name", "tags"}
    assert by_name(made)["After"]["data"]["fields"] == {"name": "{{ input.name | default(none) }}"}


@pytest.mark.parametrize(
    ("parser", "schema"),
    [
        ({"jsonSchemaExample": '[{"n": 1}]'}, {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}}),
        ({"schemaType": "manual", "inputSchema": '{"type": "array", "items": {"type": "string"}}'}, {"type": "array", "items": {"type": "string"}}),
        ({"schemaType": "manual", "inputSchema": '{"type": ["string", null]}'}, {}),
        ({"schemaType": "manual", "inputSchema": '{"rows": {"type": "array"}}'}, {}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["chainLlm", "agent", "informationExtractor"])
def test_a_result_that_is_no_object_is_a_field_of_one(
    kind: str, parser: dict[str, Any], schema: dict[str, Any]
) -> None:
    given = {"promptType": "define", "text": "Hi"}
    ways = "Start > Ask, Ask > After, Model >ai_languageModel> Ask"
    helpers = [_model()]
    if kind == "informationExtractor":
        given |= {"schemaType": "fromJson", **parser}
    else:
        helpers.append(node("Form", f"{CHAIN}outputParserStructured", parser, version=1.2))
        ways += ", Form >ai_outputParser> Ask"
    ask = node("Ask", CHAIN + kind, given, version=1.7)
    made = imported(
        workflow(_START, ask, *helpers, _set("After", x="={{ $json.output }}"), ways=ways)
    )
    assert "placeholder" not in outcomes(made).values()
    assert outcomes(made)["Ask"] == "changed"
    assert by_name(made)["Ask"]["data"]["outputSchema"] == {
        "type": "object", "properties": {"result": schema}, "required": ["result"],
    }  # fmt: skip
    after = by_name(made)["After"]["data"]["fields"]["x"]
    assert after == "{{ input.result | default(none) }}"


def test_an_auto_fixing_parser_is_part_of_the_step_that_asks_again() -> None:
    made = imported(
        workflow(
            _START, node("Ask", f"{CHAIN}chainLlm", {"promptType": "define", "text": "Hi"}, version=1.7),
            _model(), _model("Other"), node("Fix", f"{CHAIN}outputParserAutofixing"),
            node("Form", f"{CHAIN}outputParserStructured", {"jsonSchemaExample": '{"a": 1}'}, version=1.2),
            _set("After", a="={{ $json.output.a }}"),
            ways="Start > Ask, Ask > After, Model >ai_languageModel> Ask, Other >ai_languageModel> Fix, "
            "Form >ai_outputParser> Fix, Fix >ai_outputParser> Ask",
        )
    )  # fmt: skip
    assert outcomes(made) == {
        "Start": "mapped", "Ask": "mapped", "Model": "mapped", "Other": "changed", "Fix": "changed",
        "Form": "changed", "After": "mapped",
    }  # fmt: skip
    assert set(by_name(made)["Ask"]["data"]["outputSchema"]["properties"]) == {"a"}


async def test_a_classifier_sends_what_arrives_on() -> None:
    categories = {"categories": [{"category": "praise"}, {"category": "complaint"}]}
    made = imported(
        workflow(
            _START, _data(text="complaint"),
            node("Sort", f"{CHAIN}textClassifier", {"inputText": "={{ $json.text }}", "categories": categories}),
            _model(), _set("Praise", t="={{ $json.text }}"), _set("Complaint", t="={{ $json.text }}"),
            ways="Start > Data, Data > Sort, Sort > Praise, Sort:1 > Complaint, Model >ai_languageModel> Sort",
        )
    )  # fmt: skip
    assert "placeholder" not in outcomes(made).values()
    graph = {name: made.document[name] for name in ("nodes", "edges")}
    run = await run_converted(
        ConvertedGraph(graph, RunOptions()), RuleModels(lambda request, count: "complaint")
    )
    assert run.outputs["Complaint"]["output"] == {"t": "complaint"}
    assert "Praise" not in run.outputs


def test_a_model_step_without_counterpart_of_its_helpers_is_lost() -> None:
    made = imported(
        workflow(
            _START, node("Agent", f"{CHAIN}agent", {"promptType": "define", "text": "x"}), _model(),
            node("Memory", f"{CHAIN}memoryPostgresChat"), node("Calc", f"{CHAIN}toolCalculator"),
            ways="Start > Agent, Model >ai_languageModel> Agent, Memory >ai_memory> Agent, Calc >ai_tool> Agent",
        )
    )  # fmt: skip
    assert outcomes(made) == {
        "Start": "mapped", "Agent": "placeholder", "Model": "mapped", "Memory": "placeholder",
        "Calc": "placeholder",
    }  # fmt: skip


async def test_older_steps_that_ask_openai_have_messages_in_a_prompt() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"content": "=Sum up {{ $json.x }}"}]
    old = {"resource": "chat", "prompt": {"messages": messages}, "options": {"maxTokens": 5}}
    made = imported(
        workflow(
            _START, _data(x="it"), node("Ask", "openAi", old, version=1), _set("After", t="={{ $json.message.content }}"),
            ways="Start > Data, Data > Ask, Ask > After",
        )
    )  # fmt: skip
    assert "placeholder" not in outcomes(made).values()
    assert by_name(made)["Ask"]["data"]["maxTokens"] == 5
    assert (await _run(made))["After"] == {"t": "Sum up it"}


@pytest.mark.parametrize(
    "given",
    [
        {"prompt": "x"},
        {"resource": "chat"},
        {"resource": "image", "prompt": "x"},
        {"resource": "text"},
    ],
)
def test_an_older_step_that_does_not_converse_is_lost(given: dict[str, Any]) -> None:
    made = imported(workflow(_START, node("Ask", "openAi", given, version=1), ways="Start > Ask"))
    assert outcomes(made)["Ask"] == "placeholder"


def test_errors_are_read_where_they_arrive() -> None:
    made = imported(
        workflow(
            _START,
            node("Get", "httpRequest", {"url": "https://a.example.com"}, version=4.2, onError="continueErrorOutput"),
            _set("Failed", why="={{ $json.error }}"),
            ways="Start > Get, Get:1 > Failed",
        )
    )  # fmt: skip
    assert not findings_of(made)
    assert by_name(made)["Get"]["policy"] == {"onError": "continue"}
    field = by_name(made)["Failed"]["data"]["fields"]["why"]
    assert field == '{{ nodes["Get"].error.message | default(none) }}'


def test_secrets_in_headers_are_named_and_not_copied() -> None:
    headers = {
        "parameters": [{"name": "Authorization", "value": "Bearer sk-abcdefghijkl1234567890"}]
    }
    document = workflow(
        _START,
        node("Get", "httpRequest", {"url": "https://a.example.com", "sendHeaders": True, "headerParameters": headers}, version=4.2),
        ways="Start > Get",
    )  # fmt: skip
    made = import_text(json.dumps(document))
    secrets = ["sk-abcdefghijkl1234567890"]
    assert_accounted_for(made, **pointers(document), secrets=secrets)
    assert {"what": "secret", "name": "get", "used_by": ["Get"]} in made.report["setup"]
    assert by_name(made)["Get"]["data"]["secretHeaders"] == {"Authorization": "Bearer {get}"}


# Anything


_KINDS: list[tuple[str, Any]] = [
    ("manualTrigger", {}), ("webhook", {"path": "x"}), ("scheduleTrigger", {"rule": {"interval": [{"field": "hours"}]}}),
    (f"{CHAIN}chatTrigger", {}), ("set", {"assignments": {"assignments": [{"name": "a", "value": "={{ $json.b }}"}]}}),
    ("set", {"mode": "raw", "jsonOutput": '{"a": "{{"}'}), ("noOp", {}), ("slack", {"text": "={{ $json.x }}"}),
    ("if", {"conditions": {"conditions": [{"leftValue": "={{ $json.a }}", "rightValue": 1, "operator": {"type": "number", "operation": "gt"}}]}}),
    ("switch", {"rules": {"values": [{"outputKey": "a b", "conditions": {}}, {"outputKey": "error"}]}}),
    ("splitOut", {"fieldToSplitOut": "rows"}), ("splitInBatches", {}), ("aggregate", {}), ("merge", {}),
    ("httpRequest", {"url": "=https://a.example.com/{{ $('N1').item.json.id }}", "sendBody": True}),
    ("wait", {"amount": 1}), ("respondToWebhook", {"respondWith": "json", "responseBody": "={{ $json }}"}),
    ("executeWorkflow", {"workflowId": "x"}), ("code", {"jsCode": "return 1"}),
    (f"{CHAIN}agent", {"promptType": "define", "text": "={{ $json.a }} {{ $('N2').first().json.b }}"}),
    (f"{CHAIN}chainLlm", {"promptType": "define", "text": "hi {{"}), (f"{CHAIN}openAi", {"messages": {"values": [{"content": "=x {{ $json }}"}]}}),
    (f"{CHAIN}textClassifier", {"inputText": "a", "categories": {"categories": [{"category": "x"}]}}),
    (f"{CHAIN}informationExtractor", {"text": "a"}), (f"{CHAIN}lmChatOpenAi", {}), (f"{CHAIN}memoryBufferWindow", {}),
    (f"{CHAIN}outputParserStructured", {"jsonSchemaExample": "{}"}), (f"{CHAIN}toolHttpRequest", {"url": "https://a.example.com/{q}"}),
    (f"{CHAIN}toolWorkflow", {"workflowId": "x"}), (f"{CHAIN}mcpClientTool", {}), (f"{CHAIN}vectorStorePinecone", {}),
    ("limit", {}), ("stopAndError", {"errorMessage": "=no {{ $json.a }}"}), ("html", {"html": "<p>{{ $json.a }}</p>"}),
    ("merge", {"mode": "combine", "combineBy": "combineByPosition"}), ("merge", {"mode": "chooseBranch"}),
    ("set", {"mode": "raw", "jsonOutput": "={{ {a: $json.b} }}", "includeOtherFields": True}),
    ("set", {"includeOtherFields": True, "assignments": {"assignments": [{"name": "a.b", "value": "={{ $('N1').item.json.c }}"}, {"name": "a.c", "value": 1}]}}),
    ("openAi", {"resource": "chat", "prompt": {"messages": [{"content": "={{ $json.a }}"}]}}), ("itemLists", {"fieldToSplitOut": "rows"}),
    (f"{CHAIN}openAi", {"resource": "image", "operation": "analyze", "imageUrls": "={{ $json.a }}"}), (f"{CHAIN}toolWikipedia", {}), (f"{CHAIN}outputParserAutofixing", {}),
    (f"{CHAIN}toolHttpRequest", {"url": "https://a.example.com", "method": "POST", "sendBody": True, "specifyBody": "json", "jsonBody": '{"a": "{b}", "c": [1]}'}),
    (f"{CHAIN}toolHttpRequest", {"url": "https://a.example.com", "sendQuery": True, "parametersQuery": {"values": [{"name": "q"}, {"name": "n", "value": "={{ 5 }}", "valueProvider": "fieldValue"}]}}),
    (f"{CHAIN}toolWorkflow", {"workflowId": "x", "workflowInputs": {"value": {"a": "={{ $fromAI('a', 'b', 'number') }}", "b": 1}}}),
    (f"{CHAIN}toolWorkflow", {"workflowId": "x", "fields": {"values": [{"name": "a", "stringValue": "b"}]}, "specifyInputSchema": True, "jsonSchemaExample": '{"q": 1}'}),
    ("stickyNote", {"content": "x"}), (f"{CHAIN}sentimentAnalysis", {}), (f"{CHAIN}chainSummarization", {}),
]  # fmt: skip
_LINKS = (
    "main",
    "main",
    "main",
    "main",
    "ai_languageModel",
    "ai_tool",
    "ai_memory",
    "ai_outputParser",
    "ai_embedding",
)


@st.composite
def _workflows(draw: st.DrawFn) -> dict[str, Any]:
    count = draw(st.integers(1, 9))
    nodes, connections = [], dict[str, Any]()
    for number in range(count):
        kind, parameters = draw(st.sampled_from(_KINDS))
        name = draw(st.sampled_from([f"N{number}"] * 6 + [*ODD_TEXTS]))
        extra = draw(
            st.sampled_from(
                [
                    {},
                    {},
                    {},
                    {"disabled": True},
                    {"onError": "continueErrorOutput"},
                    {"retryOnFail": True},
                ]
            )
        )
        version = draw(st.sampled_from([1, 2, 3, 4.2]))
        nodes.append(node(name, kind, json.loads(json.dumps(parameters)), version=version, **extra))
    names = [each["name"] for each in nodes] + ["Gone"]
    for _ in range(draw(st.integers(0, 14))):
        source, target = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        kind = draw(st.sampled_from(_LINKS))
        outputs = connections.setdefault(source, {}).setdefault(kind, [])
        output = draw(st.integers(0, 2))
        while len(outputs) <= output:
            outputs.append([])
        end = {"node": target, "type": kind, "index": draw(st.sampled_from([0, 0, 1]))}
        outputs[output].append(end)
    return {"name": "W", "nodes": nodes, "connections": connections}


@given(damaged(_workflows()))
def test_every_workflow_is_accounted_for(case: Damaged) -> None:
    made = import_text(json.dumps(case.document), "n8n")
    assert_accounted_for(made, **pointers(case.document), secrets=case.secrets)


def test_a_large_workflow_is_converted() -> None:
    rng = random.Random(1)  # noqa: S311 - a test
    kinds = [
        each for each in _KINDS if "." not in each[0] and each[0] not in ("merge", "stickyNote")
    ]
    nodes = [_START]
    for number in range(1, 500):
        kind, parameters = rng.choice(kinds[4:])
        nodes.append(node(f"N{number}", kind, parameters, version=3))
    names = [each["name"] for each in nodes]
    ways = ", ".join(
        f"{'Start' if n % 25 == 1 else a} > {b}"
        for n, (a, b) in enumerate(itertools.pairwise(names), 1)
    )
    document = workflow(*nodes, ways=ways)
    made = import_text(json.dumps(document), "n8n")
    assert_accounted_for(made, **pointers(document))
