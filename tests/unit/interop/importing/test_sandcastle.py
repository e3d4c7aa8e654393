"""Workflows of Sandcastle: prompts with all that its engine adds to them, loops, approvals, and what is lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planwave
from planwave.graph.reading.yaml_text import parse_yaml
from planwave.interop.importing.importer import Imported, import_text
from planwave.interop.importing.sandcastle.settings import model_of
from planwave.providers.registry import _MODELS
from planwave.testing import FakeModel, use_model
from tests.support.interop.damage import ODD_TEXTS, Damaged, damaged
from tests.support.interop.imports import (
    OWN,
    REAL,
    assert_accounted_for,
    findings_of,
    outcomes,
)

_DIGEST, _REVIEW = (
    (OWN / "sandcastle" / f"{name}.yaml").read_text("utf-8")
    for name in ("city_digest", "offer_review")
)
_ADDED = "\n\nContext from previous steps:\n"


def _pointers(document: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the pointer of the input, each step and each dependency."""
    given = "/input_schema" if "input_schema" in document else ""
    steps = [(i, each) for i, each in enumerate(_list(document, "steps")) if isinstance(each, dict)]
    needed: list[str] = []
    for i, each in steps:
        needs = each.get("depends_on")
        count = 1 if isinstance(needs, str) else len(_list(each, "depends_on"))
        needed += [f"/steps/{i}/depends_on/{number}" for number in range(count)]
    return {"nodes": [given, *(f"/steps/{i}" for i, _ in steps)], "edges": needed}


def _list(document: Mapping[str, Any], name: str) -> list[Any]:
    value = document.get(name)
    return value if isinstance(value, list) else []


def _imported(*steps: Mapping[str, Any], **more: Any) -> Imported:
    document = {"name": "w", "steps": list(steps)} | more
    imported = import_text(json.dumps(document))
    assert_accounted_for(imported, **_pointers(document))
    return imported


def _step(step_id: str, prompt: str = "Do.", *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": step_id, "prompt": prompt, "depends_on": [*needs]} | more


def _data(imported: Imported, *path: str) -> dict[str, Any]:
    """Return the data of a node; further ids lead into the graphs of nodes."""
    graph: Any = imported.document
    data: dict[str, Any] = {}
    for node_id in path:
        (node,) = [each for each in graph["nodes"] if each["id"] == node_id]
        data = node.get("data", {})
        graph = data.get("graph") or data.get("body")
    return data


def _notes(imported: Imported, name: str) -> str:
    (entry,) = [each for each in imported.report["nodes"] if each["source_name"] == name]
    return " / ".join(note["message"] for note in entry["notes"])


async def _run(
    imported: Imported, given: Any, reply: Callable[[Any], Any], answers: Sequence[Any] = ()
) -> tuple[Any, list[str]]:
    """Run a workflow with a model, and return what it came to and the prompts in their order."""
    model = FakeModel(reply)
    with use_model(model):
        run = planwave.run({k: imported.document[k] for k in ("nodes", "edges")}, given)
        result = await run
        for answer in answers:
            (request,) = result.requests
            result = await result.run.answer(request.request_id, answer)
    return result.output, [request.prompt for request in model.requests]


# -- the files of this project ---------------------------------------------------------------------


def test_a_workflow_of_loops_becomes_agents_in_loops() -> None:
    imported = import_text(_DIGEST)
    assert_accounted_for(imported, **_pointers(parse_yaml(_DIGEST)))
    assert "placeholder" not in outcomes(imported).values()
    assert imported.document["title"] == "city-digest"
    assert {n["id"]: n["type"] for n in imported.document["nodes"]} == {
        "input": "start", "per-city": "inner", "topics": "agent", "per-topic": "inner", "digest": "agent"
    }  # fmt: skip
    loop = _data(imported, "per-city", "each")
    assert (loop["items"], loop["onItemError"]) == ("{{ run.cities }}", "null")
    assert _data(imported, "topics")["outputSchema"]["properties"]["found"]["type"] == "array"


async def test_a_workflow_of_loops_runs_as_its_prompts_say() -> None:
    def reply(request: Any) -> Any:
        if request.prompt.startswith("Name what"):
            return json.dumps({"found": [{"title": "Trams", "who": "Ada"}]})
        return json.dumps({"text": "more"}) if request.prompt.startswith("Tell") else "said"

    given = {"subject": "trams", "cities": ["Rome", "Oslo"]}
    output, prompts = await _run(import_text(_DIGEST), given, reply)
    assert output == "said"
    first, last = [p for p in prompts if p.startswith("Sum up")], prompts[-1]
    assert sorted(first) == [
        f"Sum up what the papers of {city} (number {i}) say about trams.\nWrite in a plain tone. "
        'Reply like {"headline": {input.subject}} or {nothing}.\n'
        for city, i in (("Oslo", 1), ("Rome", 0))
    ]
    topics = '{"found":[{"title":"Trams","who":"Ada"}]}'
    assert (
        f"Tell {{input.editor}} more about Trams, which Ada wrote.\n{_ADDED}[topics]: {topics}"
        in prompts
    )
    assert last == (
        f'Write one page from it.\n{_ADDED}[per-city]: ["said","said"]\n[per-topic]: [{{"text":"more"}}]'
    )


def test_what_a_workflow_does_beside_its_steps_is_listed_as_lost() -> None:
    report = import_text(_DIGEST).report
    assert {each["pointer"] for each in report["lost"]} == {
        "/steps/3/csv_output", "/steps/3/slo", "/on_complete"
    }  # fmt: skip
    assert {each["code"] for each in report["lost"]} == {"import-ignored"}
    assert any("sandbox" in note["message"] for note in report["notes"])


async def test_an_approval_shows_what_it_names_and_its_answer_goes_on() -> None:
    imported = import_text(_REVIEW)
    assert_accounted_for(imported, **_pointers(parse_yaml(_REVIEW)))
    gate = _data(imported, "gate")
    assert gate == {
        "prompt": "Send this {offer}?", "editable": True, "timeoutS": 7200, "timeoutAction": "reject"
    }  # fmt: skip
    replies = iter([json.dumps({"text": "An offer"}), "Dear Bo"])
    answer = {"decision": "approve", "note": "", "value": {"value": "A better offer"}}
    output, prompts = await _run(imported, {"customer": "Bo"}, lambda _: next(replies), [answer])
    assert output == "Dear Bo"
    assert prompts == [
        "Write an offer to Bo {{ and keep }} {% these %} braces {.",
        "Make a letter of it; the price is {steps.draft.output.price}."
        f'{_ADDED}[gate]: {{"value":"A better offer"}}',
    ]


# -- steps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "provider", "model"),
    [
        ("haiku", "anthropic", "claude-haiku-5-5"),
        ("", "anthropic", "claude-sonnet-5-5"),
        ("claude-opus-4-1", "anthropic", "claude-opus-4-1"),
        ("openai/codex-mini", "openai", "codex-mini"),
    ],
)
def test_models_are_named_as_their_providers_do(written: str, provider: str, model: str) -> None:
    assert model_of(written) == (provider, model)
    imported = _imported(_step("a", model=written))
    assert imported.report["setup"] == [{"what": "provider", "name": provider, "used_by": ["a"]}]


def test_short_names_are_of_models_that_planwave_knows() -> None:
    assert {model_of(name).name for name in ("haiku", "sonnet", "opus")} <= {*_MODELS["anthropic"]}


def test_retries_and_times_become_the_policy_of_the_agent() -> None:
    retry = {"max_attempts": 2, "backoff": "exponential", "on_failure": "skip"}
    imported = _imported(
        _step("a", retry=retry, timeout=20), _step("b", retry={"max_attempts": 40})
    )
    first, second = imported.document["nodes"][1:]
    assert first["policy"] == {
        "timeoutS": 20,
        "retry": {"attempts": 2, "backoffS": 2},
        "onError": "default",
        "default": {"handle": "output", "value": None},
    }
    assert second["policy"] == {"retry": {"attempts": 10, "backoffS": 2}}
    assert "10 times at most" in _notes(imported, "b")


def test_a_run_whose_failures_are_stored_apart_goes_on_after_them() -> None:
    imported = _imported(_step("a"), on_failure={"dead_letter": True})
    assert imported.document["nodes"][1]["policy"]["onError"] == "default"
    assert [each["pointer"] for each in imported.report["lost"]] == ["/on_failure"]


@pytest.mark.parametrize(
    ("prompt", "code"),
    [
        ("{date} {input.x}", "import-expression"),
        ("{run_id}", "import-expression"),
        ("{storage.a/b}", "import-expression"),
        ("{steps.later.output}", "import-expression"),
    ],
)
def test_a_step_that_reads_what_no_template_has_cannot_run(prompt: str, code: str) -> None:
    imported = _imported(_step("a", prompt), _step("later"))
    assert outcomes(imported)["a"] == "placeholder"
    (lost,) = imported.report["lost"]
    assert (lost["code"], lost["text"]) == (code, prompt.split(" ")[0])


@pytest.mark.parametrize(
    "prompt", ["{steps.gone.output}", "{steps.a}", "{input._item}", "{x}", "{}"]
)
async def test_braces_that_stand_for_nothing_stay(prompt: str) -> None:
    imported = _imported(_step("a", prompt))
    _, prompts = await _run(imported, {}, lambda _: "ok")
    assert prompts == [prompt]


async def test_a_list_in_a_text_is_gone_through_and_one_value_is_a_list_of_one() -> None:
    steps = (
        _step("list"),
        _step("each", "{input._item}!", "list", parallel_over="steps.list.output"),
    )
    imported = _imported(*steps)
    replies = {"Do.": '["x", 2]'}
    _, prompts = await _run(imported, {}, lambda request: replies.get(request.prompt, "ok"))
    texts = f'{_ADDED}[list]: ["x", 2]'
    assert sorted(prompts) == [f"2!{texts}", "Do.", f"x!{texts}"]
    _, prompts = await _run(imported, {}, lambda _: "plain")
    assert prompts[1].startswith("plain!")


@pytest.mark.parametrize(
    "more",
    [
        {"type": "http", "http_config": {"url": "http://x"}},
        {"type": "sub_workflow", "sub_workflow": {"workflow": "other"}},
        {"fallback": {"prompt": "Else"}},
        {"context_query": "news"},
        {"policies": ["no-mail"]},
        {"policies": [{"id": "p", "action": {"type": "block"}}]},
        {"output_schema": {"type": "array"}},
        {"prompt": " "},
    ],
)
def test_a_step_that_would_do_something_else_cannot_run(more: dict[str, Any]) -> None:
    assert outcomes(_imported(_step("a", **more)))["a"] == "placeholder"


@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        ({"enabled": False}, "placeholder"), ({"when": "input.x"}, "placeholder"),
        ({"seed/x": 3}, "changed"), ({"seed": None}, "mapped"), ({"description": "d"}, "mapped"),
    ],
)  # fmt: skip
def test_a_setting_that_is_not_known_is_said(more: dict[str, Any], outcome: str) -> None:
    assert outcomes(_imported(_step("a", **more)))["a"] == outcome


def test_a_policy_of_the_workflow_that_guards_its_steps_makes_them_placeholders() -> None:
    guards = {"id": "p", "trigger": {}, "action": {"type": "redact"}}
    imported = _imported(_step("a"), policies=[guards])
    assert outcomes(imported) == {"input": "mapped", "a": "placeholder"}
    logs = [{"id": "p", "action": {"type": "log"}}]
    assert outcomes(_imported(_step("a"), policies=logs))["a"] == "mapped"


def test_a_dependency_on_nothing_and_an_id_twice_cannot_run() -> None:
    imported = _imported(_step("a", "x", "gone"), _step("b"), _step("b", "y", "b"))
    assert [each["outcome"] for each in imported.report["nodes"]] == [
        "mapped", "placeholder", "mapped", "placeholder"
    ]  # fmt: skip


def test_steps_that_need_each_other_cannot_run() -> None:
    imported = _imported(_step("a", "x", "b"), _step("b", "x", "a"))
    assert {each["code"] for each in imported.report["lost"]} == {"import-cycle"}
    assert set(outcomes(imported).values()) == {"mapped", "placeholder"}


def test_a_loop_gets_the_outputs_of_steps_that_are_further_back() -> None:
    steps = [
        _step("a"), _step("a_"), _step("b", "{steps.a.output}", "a", "a_"),
        _step("c", "{steps.a.output} {steps.a_.output} {input.q}", "b", parallel_over="input.list"),
    ]  # fmt: skip
    imported = _imported(*steps)
    assert not [d for d in findings_of(imported) if d.code == "not-an-ancestor"]
    assert len(_data(imported, "c")["inputs"]) == 4


_TYPED: dict[str, dict[str, Any]] = {
    "b": {"type": "boolean", "default": True}, "f": {"type": "boolean", "default": False},
    "o": {"type": "object", "default": {"a": 1}}, "l": {"type": "array", "default": ["x"]},
    "n": {"type": "number", "default": 2.0}, "i": {"type": "integer", "default": 3},
    "s": {"type": "string", "default": "d"}, "q": {"type": "boolean"}, "z": {"type": "number"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, "True False 1 2.0 3 d {input.q} {input.z}"),
        (
            {"b": False, "f": True, "o": {"a": 7}, "n": 4.5, "i": 8, "s": "t", "q": True, "z": 1.0},
            "False True 7 4.5 8 t True 1.0",
        ),
        ({"q": False, "z": 5, "o": {}}, "True False {input.o.a} 2.0 3 d False 5"),
    ],
)
async def test_values_and_defaults_of_every_type_are_written_as_there(
    given: dict[str, Any], shown: str
) -> None:
    schema = {"type": "object", "properties": _TYPED}
    prompt = "{input.b} {input.f} {input.o.a} {input.n} {input.i} {input.s} {input.q} {input.z}"
    imported = _imported(_step("a", prompt), input_schema=schema)
    assert outcomes(imported)["a"] == "mapped"
    _, prompts = await _run(imported, given, lambda _: "ok")
    assert prompts == [shown]


async def test_a_default_may_be_the_list_that_a_step_runs_over() -> None:
    schema = {"type": "object", "properties": _TYPED}
    imported = _imported(_step("a", "{input._item}", parallel_over="input.l"), input_schema=schema)
    _, prompts = await _run(imported, {}, lambda _: "ok")
    assert prompts == ["x"]


def test_how_objects_and_lists_are_written_is_said_once() -> None:
    schema = {"type": "object", "properties": _TYPED}
    imported = _imported(_step("a", "{input.o} {input.l} {input.o}"), input_schema=schema)
    notes = [note["message"] for note in imported.report["nodes"][1]["notes"]]
    assert notes == ["objects and lists are written as JSON without spaces"]


def test_five_hundred_steps_are_converted() -> None:
    steps = [_step(f"s{i}", "{input.x}", *([f"s{i - 9}"] if i > 8 else [])) for i in range(499)]
    assert len(_imported(*steps).document["nodes"]) == 500


# -- files of others -------------------------------------------------------------------------------

_FILES = sorted((REAL / "sandcastle").glob("*.yaml")) if REAL.is_dir() else []


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_a_real_file_comes_over_whole(file: Path) -> None:
    text = file.read_text("utf-8")
    document = parse_yaml(text)
    expected = json.loads((REAL.parent / "expected.json").read_text("utf-8"))
    counts = expected[f"real/sandcastle/{file.name}"]
    imported, pointers = import_text(text), _pointers(document)
    assert (len(pointers["nodes"]) - 1, len(pointers["edges"])) == (
        counts["nodes"],
        counts["edges"],
    )
    assert_accounted_for(imported, **pointers)
    assert "placeholder" not in outcomes(imported).values()
    for step in document["steps"]:
        path = [step["id"]] if "parallel_over" not in step else [step["id"], "each", step["id"]]
        data = _data(imported, *path)
        for need in step.get("depends_on", ()):
            reads = need in data["userPrompt"] if step.get("type") != "approval" else True
            assert reads or f"step_{need.replace('-', '_')}" in data["userPrompt"]
        assert ("outputSchema" in data) >= ("output_schema" in step)
    loops = [step for step in document["steps"] if "parallel_over" in step]
    assert len([n for n in imported.document["nodes"] if n["type"] == "inner"]) == len(loops)


def _real(name: str) -> Imported:
    file = REAL / "sandcastle" / name
    if not file.is_file():
        pytest.skip("no ../shared/import/real")
    return import_text(file.read_text("utf-8"))


async def test_a_real_file_with_a_loop_runs_to_its_end() -> None:
    given = {"company_name": "Tea Ltd", "competitors": ["Pot Co", "Cup Inc"]}

    def reply(request: Any) -> str:
        if '"Cup Inc"' in request.prompt:
            raise ValueError("down")
        return f"<{request.prompt.splitlines()[0][:40]}>"

    output, prompts = await _run(_real("competitor_monitor.yaml"), given, reply)
    assert output.startswith("<")
    assert [p for p in prompts if '"Pot Co"' in p and "Tea Ltd" in p]
    assert any('["<' in p and ",null]" in p for p in prompts), prompts


async def test_a_real_file_with_an_approval_waits_and_runs_to_its_end() -> None:
    imported = _real("review_and_approve.yaml")
    gate = _data(imported, "review-gate")
    assert (gate["timeoutS"], gate["timeoutAction"], gate["editable"]) == (86_400, "reject", True)
    replies = iter(["A draft", "Published"])
    answer = {"decision": "approve", "note": "", "value": {"value": "A better draft"}}
    given = {"brief": "tea", "audience": "all"}
    output, prompts = await _run(imported, given, lambda _: next(replies), [answer])
    assert output == "Published"
    assert prompts[1].endswith(f'{_ADDED}[review-gate]: {{"value":"A better draft"}}')


# -- any workflow ----------------------------------------------------------------------------------

_IDS = st.sampled_from(["a", "b", "c-d", "c_d", "input", "run"]) | st.sampled_from(ODD_TEXTS)
_PATHS = st.sampled_from(
    ["input", "input.x", "input.x.0.y", "input._item", "input._item.k", "input._index", "steps.a.output",
     "steps.b.output.f.g", "steps.c-d.output.0", "steps.c_d.output", "run_id", "date", "x", "input.", "input.é"]
)  # fmt: skip


@st.composite
def workflows(draw: st.DrawFn) -> dict[str, Any]:
    parts = st.sampled_from(ODD_TEXTS) | _PATHS.map(lambda path: f"{{{path}}}")
    schema = {"type": "object", "properties": {"f": {"type": "string"}}, "required": ["f"]}
    steps = []
    for step_id in draw(st.lists(_IDS, max_size=6)):
        step: dict[str, Any] = {
            "id": step_id,
            "prompt": "".join(draw(st.lists(parts, max_size=5))),
            "depends_on": draw(st.lists(_IDS, max_size=3)),
        }
        more = {
            "parallel_over": draw(_PATHS), "output_schema": schema, "type": draw(st.sampled_from(["approval", "llm", "x"])),
            "retry": {"max_attempts": 2, "on_failure": "skip"}, "timeout": 5, "model": draw(st.sampled_from(ODD_TEXTS)),
            "approval_config": {"message": "m", "show_data": draw(_PATHS), "timeout_hours": 1},
            "policies": [{"id": "p", "action": {"type": "log"}}], "llm_config": {"system_prompt": "{input.x}"},
        }  # fmt: skip
        step |= {name: more[name] for name in draw(st.sets(st.sampled_from(sorted(more))))}
        steps.append(step)
    return {"name": "w", "input_schema": {"properties": {"x": schema}}, "steps": steps}


@given(damaged(workflows()))
def test_any_workflow_is_accounted_for(case: Damaged) -> None:
    imported = import_text(json.dumps(case.document), "sandcastle")
    assert_accounted_for(imported, **_pointers(case.document), secrets=case.secrets)
