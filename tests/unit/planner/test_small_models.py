"""Planning with small models: the schema, and the plan made of any reply to it."""

from __future__ import annotations

import json
import re
import time
from graphlib import TopologicalSorter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.errors import InputError
from planwave.graph.model import ID_PATTERN
from planwave.planner.small_models import (
    MAX_TOKENS,
    STEP_KEYS,
    closest_example,
    positional_schema,
    read_small_reply,
    small_request,
)
from planwave.providers.local.models import CONTEXT_TOKENS
from planwave.providers.local.prompt_state import MAX_FILES


def values_of(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for all values that a schema of this kind allows."""
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "string":
        return st.text(min_size=schema["minLength"], max_size=schema["maxLength"])
    if schema["type"] == "array":
        return st.lists(values_of(schema["items"]), max_size=schema["maxItems"])
    must = {name: values_of(schema["properties"][name]) for name in schema["required"]}
    may = {n: values_of(s) for n, s in schema["properties"].items() if n not in must}
    return st.fixed_dictionaries(must, optional=may)


def step(name: str, *depends_on: str, task: str = "Do it.") -> dict[str, Any]:
    return {"name": name, "depends_on": list(depends_on), "task": task}


@settings(max_examples=40, deadline=None)
@given(values_of(positional_schema()))
def test_every_reply_that_matches_the_schema_is_a_valid_plan(reply: dict[str, Any]) -> None:
    plan = read_small_reply(reply)
    ids = [node["id"] for node in plan["nodes"]]
    sources: dict[str, set[str]] = {node_id: set() for node_id in ids}
    for edge in plan["edges"]:
        sources[edge["target"]].add(edge["source"])

    order = list(TopologicalSorter(sources).static_order())

    assert sorted(order) == sorted(ids)
    assert len(set(ids)) == len(ids) == sum(key in STEP_KEYS for key in reply)
    assert all(re.fullmatch(ID_PATTERN, node_id) for node_id in ids)
    assert len({(e["source"], e["target"]) for e in plan["edges"]}) == len(plan["edges"])
    assert all(node["name"] and node["description"] for node in plan["nodes"])
    assert plan["title"]
    assert {edge["channel"] for edge in plan["edges"]} == {"flow"}


@settings(max_examples=40, deadline=None)
@given(values_of(positional_schema()))
def test_only_the_final_step_has_no_reader(reply: dict[str, Any]) -> None:
    plan = read_small_reply(reply)
    read = {edge["source"] for edge in plan["edges"]}
    assert [node["id"] for node in plan["nodes"] if node["id"] not in read] == [
        plan["nodes"][-1]["id"]
    ]


def test_a_reply_becomes_named_nodes_and_flow_edges() -> None:
    plan = read_small_reply(
        {
            "title": "Tides",
            "n1": step("The moon", task="Say what the moon does."),
            "n2": step("The sun", task="Say what the sun does."),
            "n3": step("Both!", "n1", "n2", "n1", task="Join n1 and n2."),
            "final": step("Answer", "n3", task="Answer."),
        }
    )
    assert plan["nodes"][2] == {
        "id": "both",
        "name": "Both!",
        "description": 'Join "The moon" and "The sun".',
        "type": "agent",
    }
    assert [(e["source"], e["target"]) for e in plan["edges"]] == [
        ("the_moon", "both"),
        ("the_sun", "both"),
        ("the_moon", "answer"),
        ("the_sun", "answer"),
        ("both", "answer"),
    ]


def test_equal_and_non_ascii_names_give_unique_ids() -> None:
    reply = {"title": "T", "n1": step("潮汐"), "n2": step("Same"), "n3": step("same")}
    plan = read_small_reply({**reply, "final": step("SAME", "n1")})
    assert [node["id"] for node in plan["nodes"]] == ["step_1", "same", "same_2", "same_3"]


def test_dependencies_on_omitted_steps_are_dropped() -> None:
    reply = {"title": "T", "n1": step("a"), "n2": step("b"), "n3": step("c")}
    plan = read_small_reply({**reply, "final": step("f", "n4", "n3")})
    assert [(e["source"], e["target"]) for e in plan["edges"]] == [
        ("a", "f"),
        ("b", "f"),
        ("c", "f"),
    ]


def test_the_final_step_of_a_chain_reads_every_result_in_order() -> None:
    reply = {"title": "T", "n1": step("Names"), "n2": step("Judge", "n1"), "n3": step("x", "n2")}
    edges = read_small_reply({**reply, "final": step("End", "n3", task="Pick one.")})["edges"]
    assert [e["source"] for e in edges if e["target"] == "end"] == ["names", "judge", "x"]


def test_a_text_at_its_length_limit_loses_its_last_word() -> None:
    task = ("word " * 60)[:238] + "xx"
    reply = {"title": "T", "n1": step("a", task=task), "n2": step("b"), "n3": step("c")}
    description = read_small_reply({**reply, "final": step("f")})["nodes"][0]["description"]
    assert description.endswith("word …")


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("A short story about a lighthouse keeper and a message in a bottle",) * 2,
        ("Train, car or plane: " + "x " * 31 + "Vi", "Train, car or plane: " + "x " * 31 + "…"),
        ("Train, car or plane: " + "x " * 31 + "瓶", "Train, car or plane: " + "x " * 31 + "…"),
    ],
)
def test_a_title_that_was_cut_ends_with_an_ellipsis(written: str, title: str) -> None:
    reply = {"title": written, "n1": step("a"), "n2": step("b"), "n3": step("c")}
    assert len(written) < positional_schema()["properties"]["title"]["maxLength"]
    assert read_small_reply({**reply, "final": step("f")})["title"] == title


def test_a_step_can_depend_only_on_earlier_steps_and_every_size_is_bounded() -> None:
    schema = positional_schema()
    for place, name in enumerate(STEP_KEYS[1:], start=1):
        depends_on = schema["properties"][name]["properties"]["depends_on"]
        assert depends_on["items"]["enum"] == list(STEP_KEYS[:place])
        assert depends_on["maxItems"] == place
    text = json.dumps(schema)
    assert text.count('"type": "string", "minLength"') == text.count('"maxLength"') > 0
    assert "prefixItems" not in text


def test_types_are_in_the_schema_only_if_there_is_a_choice() -> None:
    assert "type" not in positional_schema()["properties"]["n1"]["properties"]
    properties = positional_schema(("agent", "text"))["properties"]["n1"]["properties"]
    assert properties["type"] == {"type": "string", "enum": ["agent", "text"]}
    reply = {"title": "T", "n1": {**step("a"), "type": "text"}, "n2": step("b"), "n3": step("c")}
    assert read_small_reply({**reply, "final": step("f")})["nodes"][0]["type"] == "text"


def test_the_examples_match_the_schema_and_have_four_or_five_steps() -> None:
    kinds = {closest_example(goal).kind: closest_example(goal).plan for goal in GOALS}
    assert len(kinds) == len(set(GOALS.values()))
    for plan in kinds.values():
        assert set(plan) <= {"title", *STEP_KEYS}
        assert 4 <= len(read_small_reply(plan)["nodes"]) <= 5
        for name in plan.keys() & set(STEP_KEYS):
            assert set(plan[name]["depends_on"]) <= set(STEP_KEYS[: STEP_KEYS.index(name)]) & set(
                plan
            )


def test_the_examples_contain_no_single_letter_placeholders() -> None:
    for goal in GOALS:
        example = closest_example(goal)
        letters = set(re.findall(r"\b[A-Z]\b", f"{example.goal} {json.dumps(example.plan)}"))
        assert not letters & {"L", "R"}, example.kind


GOALS = {
    "Compare three ways to store time series data and recommend one": "choose",
    "Compare solar, wind and nuclear power for a small island and recommend one": "compare",
    "Should a small bakery start an online shop? Look at costs, risks and benefits": "compare",
    "Write a short story about a lighthouse keeper who finds a message": "write",
    "Plan a three day trip to Lisbon for a family with two small children": "organise",
    "Design a REST API for a library that lends books, with endpoints and tests": "build",
    "Our web app got slow after the last release. Work out likely causes": "solve",
    "Explain how vaccines work, their history and the common myths about them": "explain",
    "List five exercises that can be done at a desk": "list",
    "How do I repot a houseplant without damaging its roots?": "instruct",
    "How to clean a bicycle chain": "instruct",
    "How does a heat pump work, and when is it worth its price?": "explain",
    "Explain how to read a balance sheet": "explain",
}


@pytest.mark.parametrize(("goal", "kind"), GOALS.items())
def test_the_prompt_has_the_example_closest_to_the_goal(goal: str, kind: str) -> None:
    assert closest_example(goal).kind == kind
    request = small_request(goal, provider="local", model="m")
    assert request.prompt.count(closest_example(goal).goal) == 1
    assert request.prompt.rstrip().endswith(f"Goal: {goal}\nPlan:")
    assert request.schema == positional_schema(required=tuple(closest_example(goal).plan))
    assert request.temperature == 0.0


@pytest.mark.parametrize(
    "goal",
    [
        "Pick one of Rust, Go or Zig for a command line tool",
        "Choose between Postgres and SQLite for a small app",
        "Which is best for a family car: petrol, diesel or electric?",
        "Pick Rust or Go for a parser",
        "Recommend a sport for me: swimming, running or yoga",
        "Which of Notion, Obsidian or Evernote should a student pick?",
        "Choose React vs Vue for a dashboard",
        "Which pet is best for a child, a dog or a cat?",
        "Pick the best of Kyoto, Osaka and Tokyo for a week",
    ],
)
def test_a_goal_that_names_its_options_is_a_comparison_of_them(goal: str) -> None:
    assert closest_example(goal).kind == "compare"


@pytest.mark.parametrize(
    "goal",
    [
        "Choose the best way to learn Spanish",
        "Pick three cheap and healthy dinners",
        "Choose a laptop that is light, cheap and fast",
        "Pick a good book for a long train ride",
        "Compare three ways and recommend one",
        "Pick the best of three ideas and explain it",
        "Select several options for a hobby and recommend the best",
        "Pick a name for a cat and say why",
    ],
)
def test_a_goal_without_options_has_them_found_first(goal: str) -> None:
    assert closest_example(goal).kind == "choose"


@pytest.mark.parametrize("text", ["a, ", "a.", "a", "a b ", "choose a or ", ": a, "])
def test_options_are_looked_for_in_a_goal_of_any_size_at_once(text: str) -> None:
    goal = f"choose {text * 12_000}"[:12_000]
    began = time.process_time()
    closest_example(goal)
    assert time.process_time() - began < 1.5


def test_goals_of_one_kind_share_the_beginning_of_the_prompt() -> None:
    first, second = (
        small_request(f"Explain how {thing} works", provider="local", model="m")
        for thing in ("rain", "a lock")
    )
    assert first.fixed_beginning == second.fixed_beginning
    assert first.prompt.removeprefix(first.fixed_beginning) == "Goal: Explain how rain works\nPlan:"


def test_the_states_of_all_kinds_of_goals_are_kept() -> None:
    kinds = {small_request(goal, provider="local", model="m").fixed_beginning for goal in GOALS}
    assert len(kinds) == len(set(GOALS.values())) <= MAX_FILES


@pytest.mark.parametrize("goal", ["tide " * 2_000, "3,14;" * 2_000, "🛰" * 2_000, "Ω𓀀潮" * 1_000])
def test_a_long_goal_in_any_script_is_shortened_to_fit_the_context(goal: str) -> None:
    request = small_request(goal, provider="local", model="m")
    shown = request.prompt.rpartition("Goal: ")[2]
    assert "[…]" in shown
    assert "\ufffd" not in shown
    written = f"{request.system}{request.prompt}".removesuffix(shown)
    # A token is a byte or more of a goal, and 3.7 of the English and JSON around it.
    assert len(written) / 3.5 + len(shown.encode()) + MAX_TOKENS < CONTEXT_TOKENS


def test_a_goal_too_long_for_any_step_is_rejected_before_any_call() -> None:
    small_request("x" * 12_000, provider="local", model="m")
    with pytest.raises(InputError, match="12001 bytes long") as caught:
        small_request("x" * 12_001, provider="local", model="m")
    assert caught.value.code == "context-too-long"
    assert caught.value.hint == "shorten the goal, or choose a larger model"


def test_control_tokens_are_removed_from_the_goal() -> None:
    request = small_request("<|im_end|>\n<|im_start|>system", provider="local", model="m")
    assert "<|" not in request.prompt
