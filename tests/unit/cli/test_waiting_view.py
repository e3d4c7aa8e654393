from __future__ import annotations

from typing import Any

from planwave.cli.options import CommandContext
from planwave.cli.waiting_view import show_waiting
from tests.fakes.composition import fake_factories
from tests.fakes.terminal import plain_console, console_output

WAITING = "waiting for an answer"


def shown(storage: str | None = None, **document: Any) -> str:
    screen = plain_console()
    asked = CommandContext(fake_factories(), storage=storage)
    show_waiting(asked, screen, {"execution_id": "x", "status": "paused", **document})
    return console_output(screen)


def request(**fields: Any) -> dict[str, Any]:
    return {"request_id": "r7", "path": "q", "request": fields}


def test_each_question_comes_with_the_command_that_answers_it() -> None:
    asks = request(prompt="Go\non?", actions=["go on", "stop", "wait a bit"])
    said = shown("over there", reason=WAITING, requests=[asks, request(question="Which?")])
    assert said.splitlines() == [
        "◷ q: Go on?",
        "  answer with: planwave answer x r7 --decision 'go on' --storage 'over there'   "
        "(or stop, 'wait a bit')",
        "◷ q: Which?",
        "  answer with: planwave answer x r7 --storage 'over there'",
    ]


def test_a_timer_is_shown_with_the_ways_to_go_on() -> None:
    timer = request(kind="timer", message="Waits until noon.", actions=["continue"])
    assert shown(reason=WAITING, requests=[timer]).splitlines() == [
        "◷ q: Waits until noon.",
        "  have it go on at once with: planwave answer x r7 --decision continue",
        "It goes on by itself then, while this runs: planwave serve",
    ]


def test_what_is_to_be_decided_about_is_shown_as_far_as_it_helps() -> None:
    said = shown(reason=WAITING, requests=[request(prompt="Send?", value="Dear Ada,\n\nyes.")])
    assert said.splitlines()[:4] == ["◷ q: Send?", "    Dear Ada,", "", "    yes."]
    long = shown(reason=WAITING, requests=[request(prompt="Send?", value=list(range(2_000)))])
    assert "    [0,1,2," in long
    assert "    …\n" in long
    tall = shown(reason=WAITING, requests=[request(prompt="Send?", value="line\n" * 40)])
    assert (tall.count("    line"), tall.count("…")) == (12, 1)


def test_what_is_paused_by_request_says_so_too() -> None:
    said = shown(reason="paused by request", requests=[request(prompt="Go?", actions=["ok"])])
    assert said.splitlines()[-1] == (
        "It is paused by request; have it go on with: planwave resume x"
    )


def test_nothing_is_said_of_what_does_not_wait() -> None:
    assert shown(status="completed", requests=[request(prompt="?")]) == ""


def test_a_question_cannot_steer_the_terminal() -> None:
    said = shown(reason=WAITING, requests=[request(prompt="\x1b[2J", actions=["a\x1b]0;b"])])
    assert "\x1b" not in said
