from dataclasses import replace
from typing import Any

from planwave.cli.plan_view import forecast_lines, show_plan
from planwave.graph.model import Node
from tests.fakes.service import make_graph, make_plan, text_node
from tests.fakes.terminal import plain_console, terminal_console, visible_lines, console_output
from tests.fakes.wires import make_edge

FORECAST: dict[str, Any] = {
    "waves": 2, "nodes": 3, "critical_path": ["a", "c"], "calls": 3,
    "tokens": {"low": 1000, "high": 2500}, "cost_usd": {"low": 0.01, "high": 0.25}, "effects": [],
}  # fmt: skip


def agent(node_id: str, **data: Any) -> Node:
    return Node(node_id, "agent", node_id.upper(), f"Do {node_id}.", data)


GRAPH = make_graph(
    agent("a", provider="openai", model="gpt"), agent("b", provider="own", model="one"), agent("c"),
    text_node("tool"),
    edges=[("a", "c"), ("b", "c"), make_edge("tool", "c", channel="link", target_handle="tools")],
)  # fmt: skip


def test_a_plan_shows_waves_what_each_step_waits_for_and_who_else_than_the_author_runs_it() -> None:
    screen = plain_console()
    show_plan(screen, replace(make_plan(GRAPH), provider="openai", model="gpt", forecast=FORECAST))
    assert console_output(screen).splitlines() == [
        "A title  planned by openai/gpt",
        "",
        "Wave 1, 2 at the same time",
        "  a     A  agent",
        "        Do a.",
        "  b     B  agent (own/one)",
        "        Do b.",
        "",
        "Wave 2",
        "  c     C  agent  ← a, b",
        "        Do c.",
        "",
        "On demand, used by other steps",
        "  tool  text",
        "",
        "Forecast  3 steps in 2 waves · 3 model calls · 1,000 to 2,500 tokens · $0.0100 to $0.25",
        "Longest   a → c",
    ]


def test_fixes_and_warnings_are_told() -> None:
    screen = plain_console()
    warning = {"severity": "warning", "message": "odd but legal", "code": "x"}
    show_plan(screen, replace(make_plan(GRAPH), fixes=["removed a fence"], diagnostics=[warning]))
    assert "Fixed     removed a fence" in console_output(screen)
    assert "Warning   odd but legal" in console_output(screen)


def test_a_terminal_cuts_long_descriptions_instead_of_wrapping() -> None:
    screen = terminal_console(width=40)
    node = Node("a", "agent", "A", "words " * 100)
    show_plan(screen, make_plan(make_graph(node)))
    assert all(len(line) <= 40 for line in visible_lines(screen))
    assert any(line.endswith("…") for line in visible_lines(screen))


def lines_of(**changes: Any) -> list[str]:
    return [line.plain for line in forecast_lines(plain_console(), {**FORECAST, **changes})]


def test_a_forecast_says_free_unknown_or_a_range() -> None:
    assert lines_of(cost_usd={"low": 0, "high": 0})[0].endswith("tokens · free")
    assert lines_of(cost_usd=None)[0].endswith("price unknown")
    assert lines_of(cost_usd={"low": 0.5, "high": 0.5})[0].endswith("· $0.50")


def test_a_forecast_without_calls_names_no_tokens_and_no_price() -> None:
    assert lines_of(calls=0, cost_usd=None, critical_path=["a"]) == [
        "Forecast  3 steps in 2 waves · 0 model calls"
    ]


def test_a_forecast_says_where_it_may_be_more() -> None:
    assert "· at least 3 model calls ·" in lines_of(at_least=True)[0]


def test_a_forecast_warns_of_steps_that_change_the_world() -> None:
    lines = lines_of(effects=[{"node": "mail", "type": "send", "effect": "once"}])
    assert lines[-1] == "Changes   mail (once)"


def test_a_plan_without_a_forecast_shows_none() -> None:
    assert list(forecast_lines(plain_console(), {})) == []
