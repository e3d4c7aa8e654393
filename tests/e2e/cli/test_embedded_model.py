"""The main job for real: from a goal to a stored execution, by the embedded model."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from planwave.providers.local.models import LocalModelServers
from planwave.settings import Settings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

README_GOAL = "Compare three ways to store time series data and recommend one"
CHOSEN = "(recommend|choice|choose|best|prefer|stands out|pick|favou?rite)"
MARK = r"\s*(?:\d+[.)]|[-*•]|\[ ?\])\s+"
"""What an item of a list begins with: a number, a dash or a box."""

Check = Callable[[str], bool]


def items(answer: str) -> list[str]:
    """Return the items of a list, each once: its marked lines, or all lines where none is marked."""
    lines = answer.splitlines()
    marked = [line for line in lines if re.match(MARK, line)]
    texts = [re.sub(f"^({MARK})+", "", line).strip(" *.").casefold() for line in marked or lines]
    return list(dict.fromkeys(filter(None, texts)))


def has(*patterns: str) -> Check:
    """Return a check that an answer has a match of each pattern."""
    return lambda answer: all(re.search(p, answer, re.IGNORECASE | re.DOTALL) for p in patterns)


def names(count: int, words: str) -> Check:
    """Return a check that an answer has at least so many different ones of these words."""
    found = re.compile(words, re.IGNORECASE)
    return lambda answer: len({word.casefold() for word in found.findall(answer)}) >= count


def all_of(*checks: Check) -> Check:
    """Return a check that an answer passes each of these."""
    return lambda answer: all(check(answer) for check in checks)


def lists(least: int, most: int | None = None) -> Check:
    """Return a check that an answer is a list of so many different items; any number above by default."""
    return lambda answer: least <= len(items(answer)) <= (most or 1_000)


def sentences(answer: str) -> list[str]:
    """Return the sentences of an answer, without the marks of a list."""
    lines = (re.sub(f"^({MARK})+", "", line) for line in answer.splitlines())
    return [each for line in lines for each in re.split(r"(?<=[.!?])\s+", line.strip()) if each]


def is_for_children(answer: str) -> bool:
    """Return whether the sentences are short enough for a child: at most 18 words on average."""
    written = sentences(answer)
    return sum(len(each.split()) for each in written) <= 18 * len(written)


def chooses_one_of(choices: str) -> Check:
    """Return a check that a clause which recommends or chooses names exactly one of these words."""
    reason = r"\b(?:because|since|over|than|while|whereas|but|although|as|due to)\b"

    def chosen(clause: str) -> set[str]:
        is_choice = re.search(CHOSEN, clause, re.IGNORECASE)
        found = re.findall(choices, clause, re.IGNORECASE) if is_choice else []
        return {name.casefold() for name in found}

    def check(answer: str) -> bool:
        return any(
            len(chosen(clause)) == 1
            for sentence in sentences(answer)
            for end in (reason, f"{reason}|,")
            for clause in re.split(end, sentence, flags=re.IGNORECASE)
        )

    return check


GOALS: dict[str, Check] = {
    "Compare buying and leasing a car and recommend one for a young family": all_of(
        names(2, "buy|leas"), chooses_one_of("buy|leas")
    ),
    "How do I remove a red wine stain from a carpet?": all_of(
        has("blot|dab|absorb|press|soak"),
        names(2, "water|vinegar|soap|detergent|baking soda|salt|soda|peroxide|cloth|towel"),
        lambda answer: len(sentences(answer)) >= 3,
    ),
    "Plan a birthday party for a ten-year-old with eight guests": all_of(
        has("cake|food|snack|pizza|drink|meal", "game|activit|play|craft|treasure|movie|bowling"),
        names(2, r"invit|decorat|guest|gift|music|budget|schedul|\d ?(?:pm|am)|:\d\d|hour|venue"),
        lists(4),
    ),
    "Explain to a child why leaves change colour in autumn": all_of(
        has("green|chlorophyll", "yellow|orange|red", "sun|light|cold|cool|days|winter"),
        is_for_children,
    ),
    "What are the pros and cons of buying an electric car?": all_of(
        names(2, "emission|environment|quiet|cost|sav|cheap|fuel|maintenance|incentive|tax|torque"),
        names(2, "range|charg|price|expensive|upfront|battery|infrastructure|initial|higher"),
        has(r"\bcons?\b|disadvantage|drawback|however|\bbut\b|limited|lack|higher|expensive"),
    ),
    "Make a checklist for a week of camping with two children": all_of(
        lists(6),
        names(4, "tent|sleeping bag|food|water|first aid|cloth|torch|flashlight|stove|map|games"),
    ),
    "Write a short email to my landlord and ask him to repair the heating": all_of(
        has(r"\b(dear|hi|hello|good (?:morning|day))\b", "heat", "repair|fix"),
        has("(regards|sincerely|thank|cheers|best|wishes|warmly|yours)"),
        lambda answer: not re.search(r"dear tenant|as your landlord", answer, re.IGNORECASE),
    ),
    "Give me ten ideas for a rainy Sunday with kids": all_of(
        lists(10, 10), names(3, "game|bak|cook|draw|paint|movie|film|fort|read|book|craft|puzzle")
    ),
    "Choose one of a dog, a cat or a rabbit as a pet for a small flat": chooses_one_of(
        "dog|cat|rabbit"
    ),
    "Summarise the causes of the French Revolution in five sentences": all_of(
        names(
            3,
            "king|monarch|louis|tax|debt|financ|econom|bread|famine|food|enlighten|inequal|povert|wealth|religio",
        ),
        lambda answer: len(sentences(answer)) == 5,
    ),
}
"""Goals of different kinds, and what an answer has that holds what was asked for."""


def run_goal(goal: str, folder: Path) -> dict[str, Any]:
    """Run a goal without any key and return its stored document; skip where there is no model."""
    available, reason, way = LocalModelServers(Settings()).availability()
    if not available:
        pytest.skip(f"{reason}; {way}")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}
    }
    done = subprocess.run(
        [Path(sys.executable).with_name("planwave"), "run", goal, "--json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=850,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["status"] == "completed"
    stored = Path(folder, "storage", f"{shown['execution_id']}.json")
    return json.loads(stored.read_text("utf-8"))


def recorded_replies(stored: dict[str, Any], folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the recorded replies of each node, a continuation after the reply that it continues."""
    query = "SELECT path, reply FROM calls WHERE execution_id = ? ORDER BY path, attempt, ordinal"
    replies: dict[str, list[dict[str, Any]]] = {}
    with closing(sqlite3.connect(folder / "storage" / "planwave.db")) as database:
        for path, reply in database.execute(query, (stored["execution_id"],)):
            replies.setdefault(path, []).append(json.loads(reply))
    return replies


def assert_nothing_is_cut(stored: dict[str, Any], folder: Path) -> None:
    """Check the recorded finish reasons: each result is whole, and only cut replies were continued."""
    cut = [line for line in stored["execution_logs"] if "was cut at" in line]
    assert not cut, [node["result"] for node in stored["nodes"]]
    replies = recorded_replies(stored, folder)
    for node in stored["nodes"]:
        recorded = replies[node["path"]]
        reasons = [reply["finish_reason"] for reply in recorded]
        assert reasons in (["stop"], ["length", "stop"]), node["path"]
        assert node["result"] == "".join(reply["text"] for reply in recorded)
        assert node["result"].strip()


def test_goal_is_planned_and_run_without_any_key(tmp_path: Path) -> None:
    stored = run_goal(README_GOAL, tmp_path)
    assert stored["user_prompt"] == README_GOAL
    assert {node["provider"] for node in stored["nodes"]} == {"local"}
    assert all(node["status"] == "completed" and node["result"] for node in stored["nodes"])
    assert max(node["wave"] for node in stored["nodes"]) >= 2, "steps follow one another"
    assert any(len(node["dependencies"]) > 1 for node in stored["nodes"]), "results come together"
    prompts = [node["prompt"]["prompt"] for node in stored["nodes"] if node["dependencies"]]
    assert all("From " in prompt for prompt in prompts), "results are passed on in words"
    assert_nothing_is_cut(stored, tmp_path)
    assert re.search(CHOSEN, stored["nodes"][-1]["result"], re.IGNORECASE)


@pytest.mark.timeout(3_000)
def test_nine_of_ten_answers_are_whole_and_hold_what_the_goal_asks_for(tmp_path: Path) -> None:
    """A reply of this model may differ from run to run, since rounding depends on the calls beside it."""
    refused: dict[str, str] = {}
    for number, goal in enumerate(GOALS):
        folder = tmp_path / str(number)
        folder.mkdir()
        stored = run_goal(goal, folder)
        answer = stored["nodes"][-1]["result"]
        try:
            assert_nothing_is_cut(stored, folder)
        except AssertionError as error:
            refused[goal] = f"{error}"
        else:
            if not GOALS[goal](answer):
                refused[goal] = answer
    assert len(refused) <= 1, refused
