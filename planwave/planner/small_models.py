"""Ask a small local model for a plan, in a form in which it cannot write an illegal one.

Two things make models of one or two billion parameters plan: a *positional* schema, where step k
can only name steps before it, so that cycles and unknown ids cannot be written at all; and one
example plan of the same kind of goal, chosen by the words they share. Every string and list in the
schema is bounded, because without bounds small models loop. Examples are abstract on purpose: their
words leak into plans.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from planwave import prompts
from planwave.errors import InputError
from planwave.planner.capabilities import DEFAULT_TYPE
from planwave.prompts.render import small_planner_prompt
from planwave.providers.protocols import ModelRequest

STEP_KEYS = ("n1", "n2", "n3", "n4", "final")
"""At most five: on two cores a step takes about twenty seconds, and a sixth adds little."""
REQUIRED_STEPS = ("n1", "n2", "n3", "final")
"""Always written; an example's own steps are required too, or small models stop too early."""
MAX_TOKENS = 1_200
"""Above what a reply can hold that uses every bound of the schema to the full in English."""

_MAX_TITLE_CHARS = 90
_MAX_NAME_CHARS = 70
_MAX_TASK_CHARS = 240
_CUT_MARGIN = 8
"""A text this close to its bound was cut: the model takes whole words, and ends, or writes a stray
character, where none fits any more."""
_MAX_PROMPT_GOAL_BYTES = 2_300
"""A token is a byte or more, so that prompt, goal and reply fit the model's context (4,096 tokens)
in any script; in English it is about 500 tokens, half a minute of reading on slow cores."""
_MAX_GOAL_BYTES = 12_000
"""Every step reads the whole goal beside its inputs: about 2,500 tokens of English."""
_MAX_ID_CHARS = 48
_WORD = re.compile(r"[^\W\d_]{2,}")
_NO_OPTION = (
    r"(?!(?:or|and|vs|versus|oder|und|two|three|four|five|six|several|some|different|which|what|any|"
    r"all|for|to|in|on|with|by|of|then|choose|pick|select|recommend|say|decide|tell|explain|give|"
    r"name)\b)"
)
_OPTION = (
    r"(?:(?:an?|the|eine?|einen) )?"
    rf"{_NO_OPTION}[^\W_][\w.+#/'-]{{0,40}}(?: {_NO_OPTION}[^\W_][\w.+#/'-]{{0,40}}){{0,2}}"
)
_MORE = rf"(?:, {_OPTION})"
_LAST = rf",? (?:or|oder) {_OPTION}"
_NAMED_OPTIONS = re.compile(
    rf"\b{_OPTION}{_MORE}{{1,8}}{_LAST}"
    rf"|\b{_OPTION} (?:vs\.?|versus) {_OPTION}"
    rf"|(?:\b(?:between|among|from|of|compare|zwischen|aus)|:) {_OPTION}{_MORE}{{0,8}}"
    rf"(?:{_LAST}|,? (?:and|und) {_OPTION})"
    r"|(?:\b(?:choose|pick|select|recommend|take|better|best|use|either|wähle)\b[,:]?|,) "
    rf"{_OPTION}{_LAST}",
    re.IGNORECASE,
)
"""Goals that name what to choose from, as "Rust, Go or Zig"."""
_REFERENCE = re.compile(r"\bn([1-4])\b")
_SEPARATORS = re.compile(r"[^a-z0-9]+")


class Example(NamedTuple):
    """One kind of goal: words that mark it, a goal of that kind, and its plan."""

    kind: str
    words: frozenset[str]
    goal: str
    plan: Mapping[str, Any]


def small_request(
    goal: str, *, provider: str, model: str, catalogue_types: Sequence[str] = (DEFAULT_TYPE,)
) -> ModelRequest:
    """Return the request for a plan by a small model.

    Args:
        goal: The user's words; a long goal is shown with its middle left out.
        provider: The provider of the model.
        model: See ``provider``.
        catalogue_types: Node types a step may have, the default first; one type is not asked for.

    Raises:
        InputError: The goal is longer than the model's steps can read (``context-too-long``).
    """
    size = len(goal.encode())
    if size > _MAX_GOAL_BYTES:
        raise InputError(
            f"the goal is {size} bytes long; {provider}/{model} can read {_MAX_GOAL_BYTES} "
            "beside what its steps are given",
            code="context-too-long",
            hint="shorten the goal, or choose a larger model",
        )
    example = closest_example(goal)
    system, beginning, rest = small_planner_prompt(
        _goal_in_prompt(goal), example.goal, json.dumps(example.plan, ensure_ascii=False)
    )
    return ModelRequest(
        provider=provider,
        model=model,
        prompt=beginning + rest,
        system=system,
        temperature=0.0,
        max_tokens=MAX_TOKENS,
        schema=positional_schema(catalogue_types, required=tuple(example.plan)),
        schema_name="plan",
        fixed_chars=len(beginning),
    )


def closest_example(goal: str) -> Example:
    """Return the example that shares most words with the goal; earlier words weigh more.

    Where options are to be found first, a goal that names them takes the comparison: otherwise small
    models name others, and lose the user's.
    """
    words = _WORD.findall(goal.lower())
    weights = {word: 1.0 / (2 + place) for place, word in reversed(list(enumerate(words)))}

    def overlap(example: Example) -> float:
        return sum(weight for word, weight in weights.items() if word in example.words)

    closest = max(_examples(), key=overlap)
    if closest.kind == "choose" and _NAMED_OPTIONS.search(goal):
        return next(example for example in _examples() if example.kind == "compare")
    return closest


def positional_schema(
    catalogue_types: Sequence[str] = (DEFAULT_TYPE,), required: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the JSON Schema of a reply: ``{title, n1: {name, depends_on, task}, … final: {…}}``.

    ``depends_on`` of a step is an enum of the steps before it; ``final`` comes after all.

    Args:
        catalogue_types: Node types a step may have.
        required: Steps that must be written besides ``REQUIRED_STEPS``.
    """
    properties: dict[str, Any] = {"title": _text(_MAX_TITLE_CHARS)}
    for place, step in enumerate(STEP_KEYS):
        properties[step] = _step_schema(STEP_KEYS[:place], catalogue_types)
    must = {"title", *REQUIRED_STEPS, *required}
    return _object(properties, required=[name for name in properties if name in must])


def read_small_reply(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return a positional reply in the general reply shape.

    Args:
        reply: Fits ``positional_schema``.

    Returns:
        ``{"title", "nodes": [{"id", "name", "description", "type"}], "edges": [{"source",
        "target", "channel": "flow"}]}``; ids are made from names. The final step reads the results
        of all others. No step depends on a step that is missing.
    """
    written_title, _ = reply["title"], reply["final"]
    plan = read_steps(reply)
    title = _whole_words(written_title, _MAX_TITLE_CHARS) or plan["nodes"][-1]["name"]
    return {"title": title, **plan}


def read_steps(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return the nodes and edges of the steps that a positional reply has so far.

    Args:
        reply: See ``read_small_reply``; steps at the end may be missing. A further step adds
            nodes and edges at the end of the lists.
    """
    steps = {step: reply[step] for step in STEP_KEYS if step in reply}
    ids = _ids(steps)
    nodes = [
        {
            "id": ids[step],
            "name": _name(step, written),
            "description": _task(step, steps),
            "type": written.get("type", DEFAULT_TYPE),
        }
        for step, written in steps.items()
    ]
    edges = [
        {"source": ids[source], "target": ids[step], "channel": "flow"}
        for step, sources in _sources(steps).items()
        for source in sources
    ]
    return {"nodes": nodes, "edges": edges}


def _step_schema(before: Sequence[str], catalogue_types: Sequence[str]) -> dict[str, Any]:
    depends_on: dict[str, Any] = {"const": []}
    if before:
        item = {"type": "string", "enum": list(before)}
        depends_on = {"type": "array", "items": item, "maxItems": len(before)}
    properties: dict[str, Any] = {"name": _text(_MAX_NAME_CHARS), "depends_on": depends_on}
    if len(catalogue_types) > 1:
        properties["type"] = {"type": "string", "enum": list(catalogue_types)}
    properties["task"] = _text(_MAX_TASK_CHARS)
    return _object(properties, required=tuple(properties))


def _object(properties: dict[str, Any], required: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _text(chars: int) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": chars}


def _sources(steps: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the steps whose results each step reads; the final step reads all of them.

    Small models tend to name only the step before it, whose result has lost what the answer needs:
    one name is chosen, but the list of names is two steps back.
    """
    sources = {
        step: [s for s in dict.fromkeys(written["depends_on"]) if s in steps]
        for step, written in steps.items()
    }
    if "final" in sources:
        sources["final"] = [step for step in steps if step != "final"]
    return sources


def _ids(steps: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return an id for each step, made from its name and unique within the plan."""
    ids: dict[str, str] = {}
    for step, written in steps.items():
        stem = _SEPARATORS.sub("_", written["name"].lower())[:_MAX_ID_CHARS].strip("_")
        free = (name for name in _candidates(stem or _fallback_name(step)))
        ids[step] = next(name for name in free if name not in ids.values())
    return ids


def _candidates(stem: str) -> Iterator[str]:
    yield stem
    for number in range(2, len(STEP_KEYS) + 2):
        yield f"{stem}_{number}"


def _fallback_name(step: str) -> str:
    return "final" if step == "final" else f"step_{step[1:]}"


def _name(step: str, written: Mapping[str, Any]) -> str:
    return _whole_words(written["name"], _MAX_NAME_CHARS) or _fallback_name(step)


def _task(step: str, steps: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a step's task, with step keys such as ``n2`` replaced by step names."""

    def named(match: re.Match[str]) -> str:
        key = match.group()
        return f'"{_name(key, steps[key])}"' if key in steps else key

    task = _whole_words(steps[step]["task"], _MAX_TASK_CHARS)
    return _REFERENCE.sub(named, task) or _name(step, steps[step])


def _whole_words(text: str, limit: int) -> str:
    """Return the text on one line; a text that reached its bound loses its last, broken word."""
    line = "".join(char for char in " ".join(text.split()) if char.isprintable()).strip()
    if len(text) > limit - _CUT_MARGIN and " " in line and not line.endswith((".", "!", "?")):
        line = line.rsplit(" ", 1)[0].rstrip(" ,;:-") + " …"
    return line


def _goal_in_prompt(goal: str) -> str:
    """Return the goal for the prompt: bounded, and without the model's control tokens."""
    plain = goal.replace("<|", "< |").strip().encode()
    if len(plain) <= _MAX_PROMPT_GOAL_BYTES:
        return plain.decode()
    half = _MAX_PROMPT_GOAL_BYTES // 2
    start, end = (part.decode(errors="ignore") for part in (plain[:half], plain[-half:]))
    return f"{start}\n[…]\n{end}"


@cache
def _examples() -> tuple[Example, ...]:
    text = resources.files(prompts).joinpath("templates", "planner_small.json").read_text("utf-8")
    return tuple(
        Example(kind, frozenset(entry["words"].split()), entry["goal"], entry["plan"])
        for kind, entry in json.loads(text).items()
    )
