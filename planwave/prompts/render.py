"""Render the prompt templates that lie beside this file.

Templates are planwave's own; what people and models wrote comes in as plain values, so a goal that
holds ``{{ }}`` is text like any other. Undefined names are errors.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, NamedTuple

from planwave.prompts.counted_replies import (
    CHOICE_GRAMMAR,
    LIST_GRAMMAR,
    NOTES_GRAMMAR,
    asks_for_list,
    counted_grammar,
    requested_count,
)

if TYPE_CHECKING:
    import jinja2

_CLOSING_CHOICE = re.compile(r"\band (?:then )?(?:choose|pick|recommend)\b", re.IGNORECASE)
_CHOICE = re.compile(r"\b(choose|pick|recommend|which)\b", re.IGNORECASE)
"""Words of goals that ask for a choice: small models list what there is, and forget to choose."""


class TypeCard(NamedTuple):
    """One node type as the planner's prompt shows it.

    ``inputs`` and ``outputs`` are handle names with their socket types, ``fields`` the ``data``
    fields with a word on each, ``effect`` what running it does to the world.
    """

    name: str
    purpose: str
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    fields: Sequence[str] = ()
    templates: Sequence[str] = ()
    effect: str = "none"


class ToolCard(NamedTuple):
    """A tool, or a server of tools, as the planner's prompt shows it.

    Attributes:
        name: Its name, in a field of the node's data.
        purpose: What it is for.
        effect: What its calls do to the world.
        node_type: The type of the node that gives it to agents.
    """

    name: str
    purpose: str
    effect: str = "none"
    node_type: str = "tool"


class ProviderCard(NamedTuple):
    """One available provider; ``models`` may be a selection."""

    name: str
    models: Sequence[str] = ()


class PlanExample(NamedTuple):
    """An earlier plan that worked, as the planner's prompt shows it: its goal and the names of its steps."""

    plan_id: str
    title: str
    goal: str
    steps: Sequence[str]


def planner_prompt(
    goal: str,
    types: Sequence[TypeCard],
    providers: Sequence[ProviderCard],
    *,
    provider: str,
    model: str,
    max_nodes: int | None = None,
    tools: Sequence[ToolCard] = (),
    answers: Mapping[str, str] | None = None,
    examples: Sequence[PlanExample] = (),
) -> tuple[str, str]:
    """Return the system and the user prompt for a plan.

    Args:
        goal: The user's words.
        types: The node types a plan may use; the first is the default.
        providers: The available providers.
        provider: Used by nodes that name none, with ``model``.
        model: See ``provider``.
        max_nodes: The most nodes a plan may have, None for no limit.
        tools: The tools that a plan may link to agents.
        answers: What a person answered to the questions of an earlier plan of the goal, by question.
        examples: Earlier plans of the same person.
    """
    system = _render(
        "planner_system.j2",
        types=types,
        providers=providers,
        provider=provider,
        model=model,
        max_nodes=max_nodes,
        tools=tools,
    )
    values: dict[str, object] = {"goal": goal, "answers": answers or {}, "examples": examples}
    return system, _render("planner_user.j2", **values)


def repair_prompt(
    request: str, reply: str, findings: Sequence[str], *, shorter: bool = False
) -> str:
    """Return the user prompt that sends a plan back with its errors.

    Args:
        request: The user prompt the faulty reply answered.
        reply: The faulty reply.
        findings: Every finding, one sentence each.
        shorter: Whether the reply was cut at its length limit, so that a shorter plan is needed.
    """
    return _render(
        "planner_repair.j2", request=request, reply=reply, findings=findings, shorter=shorter
    )


def revise_prompt(
    goal: str,
    plan: str,
    words: str,
    *,
    is_running: bool = False,
    has_ended: bool = False,
    used_ids: Collection[str] = (),
) -> str:
    """Return the user prompt for the change of a plan.

    Args:
        goal: The goal of the plan.
        plan: The plan as JSON text.
        words: What is to be different, in the words of a person.
        is_running: Whether the plan is being run, so that what has begun stays.
        has_ended: Whether the plan was run, and that run has ended.
        used_ids: The ids of steps that were dropped from the running plan.
    """
    return _render(
        "revision.j2",
        goal=goal,
        plan=plan,
        words=words,
        is_running=is_running,
        has_ended=has_ended,
        used_ids=sorted(used_ids),
    )


def small_planner_prompt(goal: str, example_goal: str, example_plan: str) -> tuple[str, str, str]:
    """Return the system prompt for a plan by a small model, and the user prompt in two parts.

    Only the second part has the goal; the first part is the same for all goals with this example.

    Args:
        goal: The user's words.
        example_goal: A goal of the same kind.
        example_plan: Its plan as JSON text, in the form asked for.
    """
    example = _render(
        "planner_small_example.j2", example_goal=example_goal, example_plan=example_plan
    )
    goal_prompt = _render("planner_small_goal.j2", goal=goal)
    return _render("planner_small_system.j2"), f"{example}\n", goal_prompt


def agent_prompt(goal: str, task: str, inputs: str) -> str:
    """Return the prompt of a planned step.

    Args:
        goal: What the whole plan is for; "" where it has none.
        task: What this step has to do.
        inputs: The ``From {name} ({id}):`` blocks of what earlier steps gave, "" for a first step.
    """
    return _render("agent_prompt.j2", goal=goal, task=task, inputs=inputs)


def small_agent_prompt(
    goal: str, task: str, inputs: str, *, is_last: bool = False
) -> tuple[str, str]:
    """Return the system and the user prompt of a planned step for a small model.

    It ends with an order and a count: small models repeat a task that stands last instead of doing
    it, and keep to a number of sentences better than to one of words. A last step is given the goal
    as its order and its task only as a note: planners give it a part of the goal at times ("summarise
    the best name"), and the answer then lacks the rest.

    Args:
        goal: What the whole plan is for; "" where it has none.
        task: What this step has to do.
        inputs: The ``From {name} ({id}):`` blocks of what earlier steps gave, "" for a first step.
        is_last: Whether the result is for people, not for other steps.
    """
    request = goal or task
    prompt = _render(
        "agent_small.j2",
        goal=goal,
        task=task,
        inputs=inputs,
        is_last=is_last,
        form=_form(request),
    )
    return _render("agent_small_system.j2"), prompt


def asks_for_choice(goal: str) -> bool:
    """Return whether a goal asks for one of several things."""
    return _CHOICE.search(goal) is not None


def _form(request: str) -> str:
    """Return the form of a last step's result as a prompt says it."""
    if (count := requested_count(request)) is not None:
        form = f"Exactly {count.text}."
    elif asks_for_list(request):
        form = "Six to fourteen lines, one thing each."
    else:
        form = "At most eight short sentences or lines."
    if _CLOSING_CHOICE.search(request):
        return (
            f'{form} The last line begins with "Recommendation:" and names the one choice and why.'
        )
    if asks_for_choice(request):
        return f"{form} The last line names the one choice and why."
    return form


def small_agent_grammar(goal: str, task: str, *, is_last: bool = False) -> str | None:
    """Return the grammar of a small model's reply; None where a last step is free in its form.

    Args:
        goal: See ``small_agent_prompt``.
        task: See ``small_agent_prompt``.
        is_last: See ``small_agent_prompt``.
    """
    if not is_last:
        return NOTES_GRAMMAR
    request = goal or task
    if (count := requested_count(request)) is not None:
        return counted_grammar(count, closing_line=asks_for_choice(request))
    if _CLOSING_CHOICE.search(request):
        return CHOICE_GRAMMAR
    return LIST_GRAMMAR if asks_for_list(request) else None


@cache
def template_hash(prefix: str) -> str:
    """Return a hash of the templates whose names begin so: another one after every change of them."""
    names = sorted(each.name for each in _folder().iterdir() if each.name.startswith(prefix))
    text = "".join(f"{name}\n{_source(name)}" for name in names)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _folder() -> Traversable:
    return resources.files("planwave.prompts") / "templates"


def _source(name: str) -> str:
    return _folder().joinpath(name).read_text("utf-8")


def _render(template: str, **values: Any) -> str:
    return _templates().get_template(template).render(values)


@cache
def _templates() -> jinja2.Environment:
    # Lazy: test_importing_the_prompts_does_not_load_jinja2
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _source(name)),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701  # prompts are plain text, never HTML
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
