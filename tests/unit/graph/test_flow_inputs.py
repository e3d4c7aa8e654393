"""The inputs of a flow by name: which there are, what they hold in a run, and who reads them."""

from __future__ import annotations

from typing import Any

import pytest

import planwave
from planwave import testing
from planwave.errors import GraphInvalid, InputError
from planwave.graph.flow_inputs import flow_inputs_of
from planwave.graph.reading.documents import read_graph
from planwave.service.plans.documents import check_source
from planwave.settings import Limits
from tests.support.llm.fake_providers import library_registry

FIELDS = {"city": {"type": "string", "default": "Lisbon"}, "days": {"type": "integer"}}


def start(node_id: str = "s", fields: Any = FIELDS, **data: Any) -> dict[str, Any]:
    schema = None if fields is None else {"type": "object", "properties": fields}
    own = {**({} if schema is None else {"schema": schema}), **data}
    return {"id": node_id, "type": "start", "data": own}


def agent(node_id: str, task: str, **data: Any) -> dict[str, Any]:
    return {"id": node_id, "type": "agent", "description": task, "data": data}


def edge(source: str, target: str) -> dict[str, Any]:
    return {"source": source, "target": target, "data": {"channel": "flow"}}


def graph(*nodes: Any, edges: Any = ()) -> dict[str, Any]:
    return {"nodes": list(nodes), "edges": list(edges)}


def names_of(*nodes: Any) -> tuple[str, ...]:
    return flow_inputs_of(read_graph(graph(*nodes))[0], library_registry()).names


async def prompts(
    document: Any, inputs: Any = None, *, goal: str = ""
) -> tuple[planwave.RunResult, list[str]]:
    model = testing.FakeModel(lambda request: "done")
    run = await testing.run(document, model=model, inputs=inputs or {}, goal=goal)
    return run, [request.prompt for request in model.requests]


def test_the_names_are_the_fields_of_entries_or_input_for_an_entry_without_any() -> None:
    assert names_of(agent("a", "Do it")) == ()
    assert names_of(start(), agent("a", "x")) == ("city", "days")
    assert names_of(start(fields=None), agent("a", "x")) == ("input",)
    assert names_of(start(), start("t", {"who": {}})) == ("city", "days", "who")
    assert names_of(start(fields=None), start("t", None)) == ()


async def test_the_model_gets_the_task_and_the_goal_with_the_inputs_in_place_of_their_names() -> (
    None
):
    document = graph(start(), agent("a", "Find food in {{ city }} for {{ days }} days"))
    run, (prompt,) = await prompts(
        document, {"city": "Porto", "days": 3}, goal="Plan a trip to {{ city }}"
    )
    assert "Find food in Porto for 3 days" in prompt
    assert "Plan a trip to Porto" in prompt
    assert "{{" not in prompt
    assert "start" not in prompt  # nothing leads from the start into the agent
    assert run.text == "done"  # what the start holds is no result


async def test_defaults_stand_for_what_a_run_is_not_given() -> None:
    document = graph(start(initialInput={"days": 2}), agent("a", "{{ city }}, {{ days }}"))
    for inputs, task in [
        ({}, "Lisbon, 2"),
        ({"city": "Porto"}, "Porto, 2"),
        ({"s": {"output": {"days": 5}}}, "Lisbon, 5"),
    ]:
        _, (prompt,) = await prompts(document, inputs)
        assert task in prompt


async def test_the_start_gives_the_same_values_along_its_edges() -> None:
    document = graph(
        start(initialInput={"days": 2}),
        {"id": "t", "type": "text", "data": {"text": "{{ input.city }}, {{ days }}, {{ city }}"}},
        edges=[edge("s", "t")],
    )
    for inputs, text in [({}, "Lisbon, 2, Lisbon"), ({"city": "Porto"}, "Porto, 2, Porto")]:
        run, _ = await prompts(document, inputs)
        assert run.text == text


async def test_a_variable_of_a_nearer_graph_wins_over_an_input_of_the_flow() -> None:
    body = graph({"id": "t", "type": "text", "data": {"text": "{{ item }} in {{ city }}"}})
    document = graph(
        start("s", {"item": {"default": "far"}, "city": {"default": "Rome"}}),
        {"id": "l", "type": "loop", "data": {"items": ["near"], "body": body}},
    )
    run, _ = await prompts(document)
    assert run.text == '["near in Rome"]'


async def test_input_is_what_a_flow_without_fields_is_given() -> None:
    document = graph(
        start(fields=None),
        agent("a", "Get from Zurich to {{ input }}"),
        agent("b", "And back from {{ input }}"),
        edges=[edge("s", "a"), edge("a", "b")],
    )
    _, (first, second) = await prompts(document, {"s": {"output": "Rome"}})
    assert "Get from Zurich to Rome" in first
    assert "And back from Rome" in second


async def test_tasks_inside_of_nodes_name_the_inputs_of_the_flow_around_them() -> None:
    body = graph(agent("a", "Describe the food of {{ city }}"))
    document = graph(start(), {"id": "l", "type": "loop", "data": {"items": ["x"], "body": body}})
    _, (prompt,) = await prompts(document, {"city": "Porto"})
    assert "the food of Porto" in prompt


async def test_a_graph_inside_of_a_node_has_inputs_of_its_own() -> None:
    inner = graph(start("i", {"city": {"default": "Faro"}}), agent("a", "Food of {{ city }}"))
    document = graph(start(), {"id": "n", "type": "inner", "data": {"graph": inner}})
    _, (prompt,) = await prompts(document, {"city": "Porto"})
    assert "Food of Faro" in prompt


async def test_an_input_without_a_value_is_refused_before_the_run() -> None:
    document = graph(start(), agent("a", "For {{ days }} days"))
    with pytest.raises(InputError, match="the task of node 'a' names an input without a value"):
        await prompts(document)
    with pytest.raises(InputError, match="the goal names an input without a value"):
        await prompts(graph(start(), agent("a", "x")), goal="For {{ days }} days")


async def test_a_goal_is_plain_text_where_nothing_declares_an_input() -> None:
    _, (prompt,) = await prompts(graph(agent("a", "Do it")), goal="Explain {{ city }} {% if %}")
    assert "Explain {{ city }} {% if %}" in prompt
    with pytest.raises(GraphInvalid, match="'town' is no input of this flow") as caught:
        await prompts(graph(start(), agent("a", "Do it")), goal="Explain {{ town }}")
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.pointer) == ("template-undefined", "/goal")


@pytest.mark.parametrize(
    ("fields", "goal", "code"),
    [
        (FIELDS, "Explain {{ town }}", "template-undefined"),
        (FIELDS, "Explain {{ city", "template-syntax"),
        (FIELDS, "{% if city %}{% endif %}", "template-forbidden"),
        (FIELDS, "Explain {{ city }}", None),
        (None, "Explain {{ town }} {% if %}", None),
    ],
)
async def test_the_check_of_a_plan_finds_in_its_goal_what_its_run_refuses(
    fields: Any, goal: str, code: str | None
) -> None:
    nodes = graph(start("s", fields), agent("a", "Do it")) if fields else graph(agent("a", "Do it"))
    report = check_source({**nodes, "user_prompt": goal}, library_registry(), Limits())
    errors = [each for each in report.diagnostics if each.severity == "error"]
    assert [(each.code, each.pointer) for each in errors] == (
        [] if code is None else [(code, "/user_prompt")]
    )
    if code is None:
        await prompts(nodes, goal=goal)
        return
    with pytest.raises(GraphInvalid) as caught:
        await prompts(nodes, goal=goal)
    assert [each.message for each in caught.value.diagnostics] == [each.message for each in errors]


async def test_what_an_input_holds_is_no_template() -> None:
    _, (prompt,) = await prompts(
        graph(start(), agent("a", "In {{ city }}")), {"city": "{{ days }}"}
    )
    assert "In {{ days }}" in prompt


@pytest.mark.parametrize("task", ["{{ input }}", "{{ item }}", "{% if x %}{% endif %}", "{{ city"])
def test_other_braces_are_errors_of_the_check_at_every_depth(task: str) -> None:
    body = graph(agent("a", task))
    document = graph(
        agent("a", task), {"id": "l", "type": "loop", "data": {"items": ["x"], "body": body}}
    )
    with pytest.raises(GraphInvalid) as caught:
        planwave.build(document)
    found = {each.pointer: each for each in caught.value.diagnostics if each.severity == "error"}
    assert {*found} == {"/nodes/0/description", "/nodes/1/data/body/nodes/0/description"}
    assert all(each.code.startswith("template-") and each.hint for each in found.values())


async def test_a_fork_with_another_input_runs_what_names_it_and_nothing_else() -> None:
    document = graph(
        start(initialInput={"days": 2}),
        agent("food", "Food of {{ city }}"),
        agent("pack", "Pack for {{ days }} days"),
        agent("plan", "Put it together"),
        edges=[edge("food", "plan"), edge("pack", "plan")],
    )
    model = testing.FakeModel(lambda request: "done")
    store = planwave.MemoryStore()
    for inputs in ({}, {"city": "Lisbon"}):  # by its defaults, and by what it is given
        model.requests.clear()
        run = testing.run(
            document, model=model, inputs=inputs, goal="Go to {{ city }}", store=store
        )
        await run
        fork = run.fork(changes={"s": {"outputs": {"output": {"city": "Porto"}}}})
        await fork
        first, again = model.requests[:3], [each.prompt for each in model.requests[3:]]
        assert len(first) == 3
        assert all("Go to Porto" in prompt for prompt in again)  # the goal is read by all
        assert any("Food of Porto" in prompt for prompt in again)


async def test_a_task_that_names_no_changed_input_is_not_paid_for_again() -> None:
    document = graph(
        start(initialInput={"days": 2}),
        agent("food", "Food of {{ city }}"),
        agent("pack", "Pack for {{ days }} days"),
    )
    model = testing.FakeModel(lambda request: "done")
    run = testing.run(document, model=model, store=planwave.MemoryStore())
    await run
    await run.fork(changes={"s": {"outputs": {"output": {"city": "Porto", "days": 2}}}})
    assert len(model.requests) == 3
    assert "Food of Porto" in model.requests[-1].prompt
