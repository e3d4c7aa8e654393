"""Plans of agiraph: tasks are agents, dependencies are edges, and drawn edges count for nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from planwave.interop.importing.importer import Imported, import_text
from tests.support.interop.damage import ODD_TEXTS, Damaged, damaged
from tests.support.interop.imports import OWN, assert_accounted_for, findings_of, outcomes

_PLAN = (OWN / "agiraph" / "plan_with_contracts.json").read_text("utf-8")


def _pointers(plan: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the pointer of each task, dependency and drawn edge of a plan."""
    tasks = [(i, task) for i, task in enumerate(_list(plan, "nodes")) if isinstance(task, dict)]
    needed = [
        f"/nodes/{i}/dependencies/{number}"
        for i, task in tasks
        for number, _ in enumerate(_list(task, "dependencies"))
    ]
    drawn = [f"/edges/{i}" for i, e in enumerate(_list(plan, "edges")) if isinstance(e, dict)]
    return {"nodes": [f"/nodes/{i}" for i, _ in tasks], "edges": needed + drawn}


def _list(document: Mapping[str, Any], name: str) -> list[Any]:
    value = document.get(name)
    return value if isinstance(value, list) else []


def _imported(plan: Mapping[str, Any]) -> Imported:
    imported = import_text(json.dumps(plan), "agiraph")
    assert_accounted_for(imported, **_pointers(plan))
    return imported


def _task(task_id: str, *dependencies: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": task_id,
        "name": task_id,
        "description": "Do.",
        "dependencies": [*dependencies],
    } | more


def test_a_plan_becomes_agents_and_the_edges_of_its_dependencies() -> None:
    imported = import_text(_PLAN)
    pointers = _pointers(json.loads(_PLAN))
    assert (len(pointers["nodes"]), len(pointers["edges"])) == (4, 5 + 4)
    assert_accounted_for(imported, **pointers)
    document, report = imported.document, imported.report
    assert report["kind"] == "agiraph"
    assert [node["type"] for node in document["nodes"]] == ["agent"] * 4
    assert [(edge["source"], edge["target"]) for edge in document["edges"]] == [
        ("node_0", "node_1"), ("node_0", "node_2"), ("node_1", "node_3"), ("node_2", "node_3")
    ]  # fmt: skip
    assert (document["title"], document["user_prompt"]) == (
        "Compare databases",
        "Compare three databases",
    )
    assert set(outcomes(imported).values()) == {"mapped"}
    assert {d.code for d in findings_of(imported)} <= {"unknown-provider", "unavailable-provider"}


def test_an_edge_that_was_drawn_and_never_read_is_reported() -> None:
    report = import_text(_PLAN).report
    (drawn,) = [e for e in report["edges"] if e["source"] == "/edges/4"]
    assert drawn["outcome"] == "dropped"
    assert drawn["notes"][0]["code"] == "import-ignored"
    assert "never read" in drawn["notes"][0]["message"]


def test_descriptions_say_what_a_task_reads_and_writes_also_by_its_old_contracts() -> None:
    nodes = {node["id"]: node for node in import_text(_PLAN).document["nodes"]}
    assert nodes["node_2"]["description"] == (
        "Judge Postgres.\nReads: the needs\nWrites: a paragraph"
    )
    assert nodes["node_1"]["description"] == (
        "Judge SQLite.\nReads: Needs: needs (the list of needs)\n"
        "Writes: Produces: verdict (a paragraph)"
    )


def test_waves_and_the_goal_in_every_task_are_said_of_the_plan_as_a_whole() -> None:
    report = import_text(_PLAN).report
    assert report["options"] == {"scheduling": "waves"}
    assert [note["pointer"] for note in report["notes"]] == ["", "/user_prompt"]


def test_what_the_operator_provides_is_listed_by_provider() -> None:
    setup = {each["name"]: each["used_by"] for each in import_text(_PLAN).report["setup"]}
    assert setup == {"openai": ["node_0", "node_2", "node_3"], "anthropic": ["node_1"]}


def test_results_of_a_stored_run_are_left_out() -> None:
    imported = _imported({"nodes": [_task("a", result="found", error=None, execution_time=2.5)]})
    (entry,) = imported.report["nodes"]
    assert [note["pointer"] for note in entry["notes"]] == [
        "/nodes/0/result", "/nodes/0/execution_time"
    ]  # fmt: skip
    assert entry["outcome"] == "mapped"
    assert "found" not in json.dumps(imported.document)


def test_a_task_cannot_run_without_a_result_that_it_needs() -> None:
    imported = _imported({"nodes": [_task("a"), _task("b", "a", "gone")]})
    assert outcomes(imported) == {"a": "mapped", "b": "placeholder"}
    (lost,) = imported.report["lost"]
    assert (lost["code"], lost["text"]) == ("import-dangling", "gone")
    assert lost["pointer"] == "/nodes/1/dependencies/1"


def test_of_two_tasks_with_one_id_the_second_cannot_run() -> None:
    imported = _imported({"nodes": [_task("a"), _task("a", name="again"), _task("b", "a")]})
    assert outcomes(imported) == {"a": "mapped", "again": "placeholder", "b": "mapped"}
    assert [(e["source"], e["target"]) for e in imported.document["edges"]] == [("a", "b")]


def test_tasks_that_wait_for_each_other_cannot_run() -> None:
    imported = _imported({"nodes": [_task("a", "c"), _task("b", "a"), _task("c", "b"), _task("d")]})
    assert [(n, o) for n, o in outcomes(imported).items() if o == "placeholder"]
    assert outcomes(imported)["d"] == "mapped"
    (lost, *_) = imported.report["lost"]
    assert lost["code"] == "import-cycle"
    assert lost["text"].count(" → ") == 3


def test_a_dependency_that_stands_twice_is_one_edge() -> None:
    imported = _imported({"nodes": [_task("a"), _task("b", "a", "a")]})
    assert len(imported.document["edges"]) == 1
    assert set(outcomes(imported).values()) == {"mapped"}


def test_five_hundred_tasks_are_converted() -> None:
    tasks = [_task(f"t{i}", *(f"t{j}" for j in (i - 9, i - 10) if j >= 0)) for i in range(500)]
    assert len(_imported({"title": "large", "nodes": tasks}).document["nodes"]) == 500


_IDS = st.sampled_from([f"t{i}" for i in range(6)]) | st.sampled_from(ODD_TEXTS)


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    tasks = [
        _task(
            task_id,
            *draw(st.lists(_IDS, max_size=3)),
            name=draw(st.sampled_from(ODD_TEXTS) | st.just(task_id)),
            description=draw(st.sampled_from([*ODD_TEXTS, "Do it."])),
            provider=draw(st.sampled_from(["openai", "", "else"])),
        )
        for task_id in draw(st.lists(_IDS, max_size=6))
    ]
    ends = st.fixed_dictionaries({"from": _IDS, "to": _IDS})
    return {"title": "T", "nodes": tasks, "edges": draw(st.lists(ends, max_size=4))}


@given(damaged(plans()))
def test_any_plan_is_accounted_for(case: Damaged) -> None:
    imported = import_text(json.dumps(case.document), "agiraph")
    assert_accounted_for(imported, **_pointers(case.document), secrets=case.secrets)
