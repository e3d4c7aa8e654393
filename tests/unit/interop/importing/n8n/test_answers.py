"""A request, or a workflow, hands on one item; a list of several never runs the next steps once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planwave.executor.options import RunOptions
from planwave.interop.importing.importer import Imported
from tests.support.conformance.converted_runs import ConvertedGraph, RuleModels, run_converted
from tests.support.interop.imports import findings_of, outcomes
from tests.support.interop.n8n import codes, imported, node, workflow
from tests.support.outbound.fake_network import PUBLIC, FakeNetwork, response

_HOST = "a.example.com"
_START = node("Start", "manualTrigger")
_ROWS = [{"n": 1}, {"n": 2}]


def _get(name: str = "Get", **fields: Any) -> dict[str, Any]:
    return node(name, "httpRequest", {"url": f"https://{_HOST}"}, version=4.2, **fields)


def _set(name: str, **fields: Any) -> dict[str, Any]:
    given = [{"name": k, "value": v, "type": "any"} for k, v in fields.items()]
    return node(name, "set", {"assignments": {"assignments": given}}, version=3.4)


async def _run(made: Imported, *answers: bytes) -> Any:
    net = FakeNetwork({_HOST: [PUBLIC]}, *answers)
    graph = {name: made.document[name] for name in ("nodes", "edges")}
    return await run_converted(
        ConvertedGraph(graph, RunOptions()), RuleModels(lambda *_: ""), outbound=net.client()
    )


def _json(value: Any) -> bytes:
    return response(json.dumps(value).encode(), kind="application/json")


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (_json({"n": 1}), {"n": 1, "data": None}), (_json([{"n": 2}]), {"n": 2, "data": None}),
        (_json({}), {"n": None, "data": None}), (_json(None), {"n": None, "data": None}),
        (response(b"<p>", kind="text/html"), {"n": None, "data": "<p>"}),
    ],
)  # fmt: skip
async def test_an_answer_is_the_item_of_the_next_steps(answer: bytes, found: Any) -> None:
    after = _set("After", n="={{ $json.n }}", data="={{ $('Get').item.json.data }}")
    made = imported(workflow(_START, _get(), after, ways="Start > Get, Get > After"))
    assert outcomes(made) == {"Start": "mapped", "Get": "changed", "After": "mapped"}
    run = await _run(made, answer)
    assert run.outputs["After"]["output"] == found


@pytest.mark.parametrize("answer", [_ROWS, [], [1], [[{"n": 1}]], 7, True])
async def test_a_list_of_several_items_fails(answer: Any) -> None:
    made = imported(workflow(_START, _get(), _set("After", n=1), ways="Start > Get, Get > After"))
    assert "import-many-items" in codes(made, "Get")
    run = await _run(made, _json(answer))
    assert run.statuses[-1] == "failed"
    assert "After" not in run.outputs


async def test_an_answer_that_no_step_reads_may_be_a_list() -> None:
    made = imported(workflow(_START, _get(), ways="Start > Get"))
    assert outcomes(made)["Get"] == "mapped"
    assert (await _run(made, _json(_ROWS))).outputs["Get"]["output"] == _ROWS


@pytest.mark.parametrize(
    ("answer", "found"),
    [(_ROWS, _ROWS), ({"n": 3}, [{"n": 3}]), ([], [])],
)
async def test_the_items_of_an_answer_are_taken_by_steps_that_take_items(
    answer: Any, found: Any
) -> None:
    collect = node("All", "aggregate", {"aggregate": "aggregateAllItemData"})
    made = imported(workflow(_START, _get(), collect, ways="Start > Get, Get > All"))
    assert outcomes(made)["Get"] == "mapped"
    run = await _run(made, _json(answer))
    assert run.outputs["All"]["output"] == {"data": found}

    each = node("Each", "splitInBatches", {}, version=3)
    ways = "Start > Get, Get > Each, Each:1 > Double, Double > Each, Each > All"
    made = imported(
        workflow(_START, _get(), each, _set("Double", n="={{ $json.n * 2 }}"), collect, ways=ways)
    )
    assert "placeholder" not in outcomes(made).values()
    run = await _run(made, _json(answer))
    assert run.outputs["All"]["output"] == {"data": [{"n": 2 * row["n"]} for row in found]}


async def test_errors_of_a_request_arrive_where_they_lead() -> None:
    made = imported(
        workflow(
            _START, _get(onError="continueErrorOutput"), _set("After", n="={{ $json.n }}"),
            _set("Failed", why="={{ $json.error }}"), ways="Start > Get, Get > After, Get:1 > Failed",
        )
    )  # fmt: skip
    assert not findings_of(made)
    failed = await _run(made, response(b"gone", status="404 Not Found"))
    assert "404" in failed.outputs["Failed"]["output"]["why"]
    assert "After" not in failed.outputs
    fine = await _run(made, _json({"n": 4}))
    assert fine.outputs["After"]["output"] == {"n": 4}
    assert "Failed" not in fine.outputs


def test_a_request_that_is_lost_keeps_its_errors() -> None:
    made = imported(
        workflow(
            _START, node("Get", "httpRequest", {"url": "none"}, version=4.2, onError="continueErrorOutput"),
            _set("After", n="={{ $json.n }}"), _set("Failed", why="={{ $json.error }}"),
            ways="Start > Get, Get > After, Get:1 > Failed",
        )
    )  # fmt: skip
    assert outcomes(made)["Get"] == "placeholder"
    assert {each.code for each in findings_of(made)} == {"placeholder"}


def test_a_result_is_not_read_where_only_errors_lead() -> None:
    made = imported(
        workflow(
            _START, _get(onError="continueErrorOutput"), _set("After", n=1),
            _set("Failed", n="={{ $('Get').item.json.n }}"), ways="Start > Get, Get > After, Get:1 > Failed",
        )
    )  # fmt: skip
    assert outcomes(made)["Failed"] == "placeholder"


def _with_flow(made: Imported, answer: Any) -> None:
    """Put a graph with an answer in place of the stored flow that a workflow runs."""
    answering = {"id": "answer", "type": "json", "data": {"value": answer}}
    (inner,) = (each for each in made.document["nodes"] if each["type"] == "inner")
    inner["data"] = {"graph": {"nodes": [answering], "edges": []}}


@pytest.mark.parametrize("given", [None, {"who": "Ada"}])
@pytest.mark.parametrize(
    ("answer", "found"), [({"n": 1}, {"n": 1}), ([{"n": 2}], {"n": 2}), (_ROWS, None), ([1], None)]
)
async def test_a_workflow_that_answers_with_several_items_fails(
    answer: Any, found: Any, given: Any
) -> None:
    inputs = {"mappingMode": "defineBelow", "value": given} if given else {}
    parameters = {"workflowId": {"value": "w", "cachedResultName": "Sub"}, "workflowInputs": inputs}
    call = node("Get", "executeWorkflow", parameters, version=1.2)
    after = _set("After", n="={{ $json.n }}")
    made = imported(workflow(_START, call, after, ways="Start > Get, Get > After"))
    assert "import-many-items" in codes(made, "Get")
    _with_flow(made, answer)
    run = await _run(made)
    assert run.outputs.get("After") == (None if found is None else {"output": found})
    assert run.statuses[-1] == ("failed" if found is None else "completed")


async def test_the_items_of_a_workflow_are_taken_by_steps_that_take_items() -> None:
    call = node("Get", "executeWorkflow", {"workflowId": {"cachedResultName": "Sub"}}, version=1.2)
    collect = node("All", "aggregate", {"aggregate": "aggregateAllItemData"})
    made = imported(workflow(_START, call, collect, ways="Start > Get, Get > All"))
    _with_flow(made, _ROWS)
    assert (await _run(made)).outputs["All"]["output"] == {"data": _ROWS}
