import json
from dataclasses import replace
from typing import Any

import pytest

from planwave.errors import GraphInvalid, UnavailableProvider, UnknownModel, UnknownProvider
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.reading.documents import read_graph
from planwave.graph.reading.strict_json import parse_strict_json
from planwave.jsonio import is_plain
from planwave.service.plans.documents import (
    check_source,
    plan_from_graph,
    plan_of,
    raise_for_graph,
    raise_for_run,
    record_of,
)
from planwave.settings import Limits
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.llm.fake_providers import library_registry

GRAPH = make_graph(text_node("a"), text_node("b"), edges=[("a", "b")])


def checked(document: Any, limits: Limits | None = None) -> Any:
    source = document if isinstance(document, (str, bytes)) else json.dumps(document)
    return check_source(source, library_registry(), limits or Limits())


def test_graph_and_plan_documents_are_equivalent() -> None:
    bare, plan = checked(GRAPH.to_document()), checked(make_plan(GRAPH).as_json())
    assert bare.graph == plan.graph == GRAPH
    assert bare.can_run
    assert plan.envelope["title"] == "A title"


@pytest.mark.parametrize(
    "source", ["", "{", "[]", "null", '{"nodes": NaN}', '{"nodes": [], "nodes": []}', b"\xff"]
)
def test_unreadable_source_has_diagnostics(source: str | bytes) -> None:
    report = checked(source)
    assert report.graph is None
    assert not report.can_run
    assert report.diagnostics


def test_unknown_field_is_rejected_in_graph_and_plan() -> None:
    for document in (GRAPH.to_document(), make_plan(GRAPH).as_json()):
        report = checked({**document, "surprise": 1})
        assert [found.code for found in report.diagnostics] == ["unknown-field"]


def test_limits_apply_inside_a_plan() -> None:
    report = checked(make_plan(GRAPH).as_json(), Limits(nodes=1))
    assert "limit-exceeded" in {found.code for found in report.diagnostics}


@pytest.mark.parametrize("around", [{}, {"title": "A title"}])
@pytest.mark.parametrize("most", [9, 10, 10_000])
def test_parsed_document_has_the_same_limits_as_a_text(around: Any, most: int) -> None:
    text = json.dumps(make_graph(text_node("a", "x" * 10)).to_document() | around)
    limits = Limits(string_bytes=most, plan_bytes=10_000)
    parsed = check_source(parse_strict_json(text), library_registry(), limits)
    assert parsed == checked(text, limits)
    assert parsed.can_run == (most > 9)
    too_long = check_source(parse_strict_json(text), library_registry(), Limits(plan_bytes=20))
    assert [found.code for found in too_long.diagnostics] == ["limit-exceeded"]


def test_document_has_the_configured_depth() -> None:
    document = make_graph(text_node("a")).to_document()
    document["nodes"][0]["data"]["text"] = [[[1]]]  # the document has 7 levels
    for allowed, codes in ((7, ["invalid-data"]), (6, ["limit-exceeded"])):
        report = check_source(document, library_registry(), Limits(json_depth=allowed))
        assert [found.code for found in report.diagnostics] == codes


def test_plan_round_trips_through_its_record() -> None:
    plan = make_plan(GRAPH)
    assert plan_of(record_of(plan)).as_json() == plan.as_json()


@pytest.mark.parametrize("odd", [1, 1e-7, 1e20])
@pytest.mark.parametrize("where", ["nowhere", "data", "ui", "edge", "forecast", "attempts"])
def test_record_knows_whether_it_is_plain(where: str, odd: float) -> None:
    document = GRAPH.to_document()
    node, edge = document["nodes"][0], document["edges"][0]
    places = {"data": node["data"], "ui": node.setdefault("ui", {}), "edge": edge["data"]}
    if where in places:
        places[where]["x"] = odd
    plan = replace(
        make_plan(read_graph(document)[0]),
        forecast={"x": odd if where == "forecast" else 1},
        attempts=[{"x": [odd if where == "attempts" else 1]}],
    )
    assert record_of(plan).plain == is_plain(record_of(plan).document)
    assert record_of(plan).plain == (where == "nowhere" or odd == 1)


def test_plan_without_title_gets_one() -> None:
    plan = plan_from_graph(
        checked(GRAPH.to_document()),
        plan_id="p",
        created_at="now",
        forecast=lambda *_: {"waves": 2},
    )
    assert (plan.title, plan.user_prompt, plan.forecast) == (
        "a to b",
        "",
        {"waves": 2},
    )


def diagnostic(code: str, severity: Any = "error") -> Diagnostic:
    return Diagnostic(code, severity, f"about {code}", hint="do this")


def test_provider_errors_stop_a_run_but_not_a_plan() -> None:
    raise_for_graph([diagnostic("unavailable-provider"), diagnostic("odd", "warning")])
    for code, error in (
        ("unavailable-provider", UnavailableProvider),
        ("unknown-provider", UnknownProvider),
        ("unknown-model", UnknownModel),
    ):
        with pytest.raises(error) as caught:
            raise_for_run([diagnostic(code)])
        assert caught.value.hint == "do this"


def test_graph_errors_take_precedence_over_provider_errors() -> None:
    findings = [diagnostic("unknown-provider"), diagnostic("flow-cycle")]
    with pytest.raises(GraphInvalid) as caught:
        raise_for_run(findings)
    assert caught.value.diagnostics == tuple(findings)


def test_warnings_stop_nothing() -> None:
    said = [diagnostic("odd", "warning"), diagnostic("fixed", "info")]
    raise_for_run(said)
    with pytest.raises(GraphInvalid) as caught:
        raise_for_run([*said, diagnostic("flow-cycle")])
    assert [each.severity for each in caught.value.diagnostics] == ["warning", "info", "error"]


def test_text_and_parsed_documents_have_the_same_limits() -> None:
    graph = {"nodes": [{"id": "a", "type": "text", "data": {"text": "x" * 200}}], "edges": []}
    size = len(json.dumps(graph, separators=(",", ":")))
    for most, can_run in ((size, True), (size - 1, False)):
        limits = Limits(plan_bytes=most)
        as_text = check_source(json.dumps(graph, separators=(",", ":")), library_registry(), limits)
        as_read = check_source(graph, library_registry(), limits)
        assert as_text == as_read
        assert as_read.can_run is can_run
    deep: Any = "x"
    for _ in range(5):
        deep = [deep]
    graph["nodes"][0]["data"] = {"text": "x", "extra": deep}
    limits = Limits(json_depth=6)
    assert [
        d.code for d in check_source(json.dumps(graph), library_registry(), limits).diagnostics
    ] == ["limit-exceeded"]
    assert "limit-exceeded" in [
        d.code for d in check_source(graph, library_registry(), limits).diagnostics
    ]
