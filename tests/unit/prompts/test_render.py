"""What the rendered prompts hold, and what they never do to the text they are given."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import jinja2
import pytest

from planwave.prompts import render
from planwave.prompts.counted_replies import CHOICE_GRAMMAR, LIST_GRAMMAR, NOTES_GRAMMAR
from planwave.prompts.render import (
    ProviderCard,
    TypeCard,
    agent_prompt,
    planner_prompt,
    repair_prompt,
    small_agent_grammar,
    small_agent_prompt,
    small_planner_prompt,
)

CARDS = [
    TypeCard("agent", "asks a model", ("input (text)",), ("output (text)",), ("userPrompt: text",)),
    TypeCard("if", "chooses a branch", ("input (any)",), ("false (any)",)),
]


def system_prompt(**changes: object) -> str:
    given: dict[str, object] = {"provider": "openai", "model": "m-1", "max_nodes": 50}
    providers = [ProviderCard("openai", ("m-1", "m-2")), ProviderCard("own")]
    system, _ = planner_prompt("g", CARDS, providers, **{**given, **changes})  # type: ignore[arg-type]
    return system


def test_system_prompt_lists_node_types_providers_models_and_the_limit() -> None:
    system = system_prompt()
    assert "- agent: asks a model" in system
    assert "in: input (text); out: output (text)" in system
    assert "data: userPrompt: text" in system
    assert "- if: chooses a branch" in system
    assert "- openai: m-1, m-2" in system
    assert "- own: any model it serves" in system
    assert "openai / m-1" in system
    assert "never more than 50" in system


def test_system_prompt_without_a_limit_names_none() -> None:
    assert "never more than" not in system_prompt(max_nodes=None)


def test_the_examples_in_the_system_prompt_are_acyclic_and_show_one_step_and_parallel_ones() -> (
    None
):
    examples = [json.loads(line) for line in re.findall(r'^\{"title".*\}$', system_prompt(), re.M)]
    assert [len(plan["steps"]) for plan in examples] == [1, 4, 5, 3, 4], "the last is a choice"
    for plan in examples[:4]:
        order = [step["id"] for step in plan["steps"]]
        assert len(set(order)) == len(order)
        for number, step in enumerate(plan["steps"]):
            assert set(step["depends_on"]) <= {*order[:number]}
        widths = [len(step["depends_on"]) for step in plan["steps"]]
        assert len(order) == 1 or max(widths) >= 2, "steps side by side"


@pytest.mark.parametrize("text", ["{{ 7 * 7 }}", "{% raw %}", "<b>&amp;</b>", "{# x #}", "naïve ✓"])
def test_values_are_plain_text_and_never_rendered_again(text: str) -> None:
    _, user = planner_prompt(text, CARDS, [], provider="p", model="m")
    assert user.endswith(text)
    assert text in agent_prompt(text, "task", "")
    assert text in agent_prompt("goal", text, text)
    assert text in repair_prompt("r", text, [text])
    assert "49" not in user


def test_agent_prompt_holds_goal_task_and_inputs_in_that_order() -> None:
    blocks = "From Study A (a):\none\n\nFrom Study B (b):\ntwo"
    prompt = agent_prompt("choose", "compare them", blocks)
    assert blocks in prompt
    assert prompt.index("choose") < prompt.index("compare them") < prompt.index(blocks)
    assert "\n\n\n" not in prompt


def test_the_prompt_of_an_agent_without_a_goal_speaks_of_none() -> None:
    for prompt in (
        agent_prompt("", "do it", "From A (a):\nfirst"),
        *small_agent_prompt("", "do it", "From A (a):\nfirst"),
        *small_agent_prompt("", "do it", "From A (a):\nfirst", is_last=True),
    ):
        assert "goal" not in prompt.lower()
        assert "towards" not in prompt


def test_agent_prompt_leaves_out_what_is_missing() -> None:
    prompt = agent_prompt("", "do it", "")
    assert "overall goal" not in prompt
    assert "earlier steps" not in prompt
    assert "do it" in prompt
    assert "\n\n\n" not in prompt


def test_a_small_models_prompt_ends_with_an_order_and_leaves_out_what_is_missing() -> None:
    system, prompt = small_agent_prompt("choose", "compare them", "From A (a):\nfirst")
    assert prompt.index("choose") < prompt.index("From A (a):") < prompt.index("compare them")
    assert prompt.rstrip().endswith("in exactly three short lines of plain text.")
    assert "expert" in system
    _, bare = small_agent_prompt("", "do it", "")
    assert bare.startswith("Task: do it")


def test_a_small_models_last_step_ends_with_the_whole_goal_and_an_order() -> None:
    _, prompt = small_agent_prompt("choose", "compare them", "From A (a):\nfirst", is_last=True)
    assert prompt.index("Last step: compare them") < prompt.index("From A (a):")
    assert prompt.index("From A (a):") < prompt.index("\nchoose\n\nGive the complete result itself")
    assert "in the form and number asked for" in prompt
    end = "At most eight short sentences or lines. The last line names the one choice and why."
    assert prompt.rstrip().endswith(end)
    assert "\n\n\n" not in prompt
    _, bare = small_agent_prompt("", "do it", "", is_last=True)
    assert bare.startswith("Task: do it\n\nGive the complete result itself")
    assert "oal" not in bare
    assert "notes" not in bare


@pytest.mark.parametrize(
    ("goal", "task", "chooses"),
    [
        ("name five and pick the best", "list them", True),
        ("Which is better?", "", True),
        ("", "recommend one", True),
        ("explain the best practices", "", False),
        ("explain vaccines", "choose words", False),
        ("recommended books", "", False),
    ],
)
def test_a_small_models_last_step_is_told_to_choose_where_the_goal_asks_for_it(
    goal: str, task: str, chooses: bool
) -> None:
    _, prompt = small_agent_prompt(goal, task, "", is_last=True)
    assert prompt.rstrip().endswith("names the one choice and why.") is chooses
    _, before = small_agent_prompt(goal, task, "")
    assert "the one choice" not in before


def test_a_comparison_that_is_to_end_with_a_choice_ends_with_a_recommendation() -> None:
    for goal in ("Compare two ways and recommend one", "weigh both, and then choose"):
        _, prompt = small_agent_prompt(goal, "judge", "", is_last=True)
        assert 'The last line begins with "Recommendation:"' in prompt
        assert small_agent_grammar(goal, "judge", is_last=True) == CHOICE_GRAMMAR
    assert small_agent_grammar("Choose a dog or a cat", "judge", is_last=True) is None


def test_a_small_models_last_step_is_told_the_number_of_lines_that_the_goal_asks_for() -> None:
    _, prompt = small_agent_prompt("Give me ten ideas", "list them", "", is_last=True)
    assert prompt.rstrip().endswith("no two alike. Exactly 10 numbered lines.")
    assert small_agent_grammar("Give me ten ideas", "list them", is_last=True) is not None
    assert small_agent_grammar("Give me an idea", "give me ten ideas", is_last=True) is None
    assert small_agent_grammar("", "give me ten ideas", is_last=True) is not None


@pytest.mark.parametrize(
    ("goal", "is_list"),
    [
        ("Make a checklist for a week of camping", True),
        ("please write me a packing list for the sea", True),
        ("Give me the list of what to buy", True),
        ("Explain what a linked list is", False),
        ("Make a list-making app", False),
        ("Write a letter", False),
    ],
)
def test_a_list_of_open_length_has_bounds(goal: str, is_list: bool) -> None:
    _, prompt = small_agent_prompt(goal, "write it", "", is_last=True)
    assert prompt.rstrip().endswith("Six to fourteen lines, one thing each.") is is_list
    assert (small_agent_grammar(goal, "write it", is_last=True) == LIST_GRAMMAR) is is_list


def test_notes_of_a_small_model_have_an_end() -> None:
    assert small_agent_grammar("Give me ten ideas", "name them") == NOTES_GRAMMAR


def test_a_long_goal_stands_only_once_in_the_prompt_of_a_small_model() -> None:
    _, prompt = small_agent_prompt("choose " * 50, "compare them", "", is_last=True)
    assert prompt.count("choose choose choose " * 10) == 1
    assert "Reach the goal above.\n\nGive the complete result itself" in prompt


def test_a_small_planners_goal_stands_last() -> None:
    system, beginning, rest = small_planner_prompt("the {{ goal }}", "another", '{"n1": {}}')
    assert rest == "Goal: the {{ goal }}\nPlan:"
    assert '{"n1": {}}' in beginning
    assert beginning.endswith("\n")
    assert "depends_on" in system


def test_repair_prompt_names_every_finding_and_keeps_the_request() -> None:
    prompt = repair_prompt("the request", "the reply", ["first fault", "second fault"])
    assert prompt.startswith("the request")
    assert "the reply" in prompt
    assert "for 2 reasons" in prompt
    assert "- first fault\n- second fault\n" in prompt
    assert "cut off" not in prompt
    assert "cut off" in repair_prompt("q", "r", ["f"], shorter=True)


def test_an_undefined_name_in_a_template_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        render._render("agent_prompt.j2", goal="g")


def test_importing_the_prompts_does_not_load_jinja2() -> None:
    code = "import sys, planwave.prompts.render; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
