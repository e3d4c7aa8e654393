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


def lists_exactly(count: int) -> Check:
    """Return a check that an answer is a list of so many different items."""
    return lambda answer: len(items(answer)) == count


def makes_points(count: int) -> Check:
    """Return a check that an answer has so many items, or as many sentences in one paragraph."""

    def check(answer: str) -> bool:
        points = items(answer)
        if len(points) == 1:
            points = [p for p in re.split(r"(?<=[.!?])\s+", points[0]) if p]
        return len(points) == count

    return check


def lists_and_chooses(count: int) -> Check:
    """Return a check that an answer has so many items at least and names one of them as chosen."""

    def check(answer: str) -> bool:
        listed = [
            re.split(r"[:(\u2013\u2014]| - ", each)[0].strip(' *".') for each in items(answer)
        ]
        chosen = [line for line in answer.casefold().splitlines() if re.search(CHOSEN, line)]
        named = [each for each in listed[:count] if any(each in line for line in chosen)]
        return len(listed) >= count and bool(named)

    return check


def tells_palindromes(answer: str) -> bool:
    """Run the function of an answer, in a process of its own, on words of both kinds."""
    code = re.search(r"```(?:python)?\n(.*?)```", answer, re.DOTALL)
    source = code[1] if code else answer
    name = re.search(r"def (\w+)\(", source)
    assert name, "no function"
    calls = f"assert {name[1]}('level') and {name[1]}('a') and not {name[1]}('python')"
    run = [sys.executable, "-I", "-c", f"{source}\n{calls}"]
    return subprocess.run(run, capture_output=True, timeout=30, check=False).returncode == 0


GOALS: dict[str, Check] = {
    "Compare Postgres, Redis and SQLite for storing user sessions and recommend one": all_of(
        names(3, "Postgres|Redis|SQLite"),
        has(f"{CHOSEN}[^.]*(Postgres|Redis|SQLite)|(Postgres|Redis|SQLite)[^.]*{CHOSEN}"),
    ),
    "List five exercises that can be done at a desk": lists_exactly(5),
    "Write a short welcome email to Mira, a new colleague in the support team": all_of(
        has(r"\b(dear|hi|hello|hey|welcome),? mira\b", "welcome", "team"),
        has("(regards|sincerely|cheers|best|wishes|warmly|yours)"),
        lambda answer: not re.search("my application|considering me", answer, re.IGNORECASE),
    ),
    "Explain how vaccines train the immune system": has(
        "immun", "antibod|cell|antigen", "recogni|remember|memor|future"
    ),
    "Plan a weekend trip to Vienna for two people": all_of(
        names(2, "morning|noon|afternoon|evening|night|Saturday|Sunday|day 1|day 2"),
        names(
            3,
            "Schönbrunn|Hofburg|Belvedere|Prater|Opera|Stephen|Ringstra|Albertina|Naschmarkt"
            "|museum|coffee|concert|palace|cathedral",
        ),
    ),
    "Make a checklist for moving to a new flat": lambda answer: len(items(answer)) >= 4,
    "Summarise in three points why sleep matters for learning": all_of(
        has("sleep.*(memor|learn|concentrat)"), makes_points(3)
    ),
    "Suggest five names for a small bakery and pick the best one": lists_and_chooses(5),
    "Write a Python function that checks whether a word is a palindrome": tells_palindromes,
    "What are the pros and cons of working from home?": all_of(
        names(2, r"flexib|commut|sav|\bpros\b|advantage|productiv|comfort|cost|balance"),
        names(2, r"isolat|distract|lack|lonel|\bcons\b|disadvantage|interact|boundar|overwork"),
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


@pytest.mark.parametrize("goal", GOALS)
def test_answer_is_whole_and_holds_what_the_goal_asks_for(goal: str, tmp_path: Path) -> None:
    stored = run_goal(goal, tmp_path)
    assert_nothing_is_cut(stored, tmp_path)
    answer = stored["nodes"][-1]["result"]
    assert GOALS[goal](answer), answer
