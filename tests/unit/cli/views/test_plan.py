from dataclasses import replace
from typing import Any

from planwave.cli.views.plan import PlanDraft, forecast_lines, live_draft, models_line, show_plan
from planwave.graph.model import Node
from planwave.planner.progress import PlanProgress
from tests.support.cli.fake_console import (
    console_output,
    plain_console,
    terminal_console,
    visible_lines,
)
from tests.support.graph.builders import make_edge, make_graph, make_plan, text_node

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


def test_plan_shows_waves_dependencies_and_models() -> None:
    console = plain_console()
    show_plan(console, replace(make_plan(GRAPH), provider="openai", model="gpt", forecast=FORECAST))
    assert console_output(console).splitlines() == [
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


def test_plan_shows_fixes_and_warnings() -> None:
    console = plain_console()
    warning = {"severity": "warning", "message": "odd but legal", "code": "x"}
    show_plan(console, replace(make_plan(GRAPH), fixes=["removed a fence"], diagnostics=[warning]))
    assert "Fixed     removed a fence" in console_output(console)
    assert "Warning   odd but legal" in console_output(console)


def test_assumed_answers_stand_above_the_plan_with_the_option_that_changes_each() -> None:
    console = plain_console()
    assumed = {"question": "Who's it \x1b[2Jfor?", "answer": "all", "assumed": True, "options": []}
    told = {"question": "When?", "answer": "May", "assumed": False, "options": []}
    plan = replace(make_plan(GRAPH), questions=[assumed, told])
    show_plan(console, plan, has_answer_option=True)
    lines = console_output(console).splitlines()
    assert lines[1:5] == [
        "Assumed   Who's it [2Jfor? all",
        """          to change it: --answer 'Who'"'"'s it [2Jfor?=ANSWER'""",
        "Answered  When? May",
        "",
    ]
    console = plain_console()
    show_plan(console, plan)
    assert "--answer" not in console_output(console)


def test_plan_names_the_earlier_plans_that_it_was_written_after() -> None:
    console = plain_console()
    example = {"plan_id": "019a", "title": "Heat\x1b[2J pumps"}
    show_plan(console, replace(make_plan(GRAPH), examples=[example]))
    assert "After     Heat[2J pumps  019a" in console_output(console)


def test_terminal_cuts_long_descriptions() -> None:
    console = terminal_console(width=40)
    node = Node("a", "agent", "A", "words " * 100)
    show_plan(console, make_plan(make_graph(node)))
    assert all(len(line) <= 40 for line in visible_lines(console))
    assert any(line.endswith("…") for line in visible_lines(console))


def lines_of(**changes: Any) -> list[str]:
    return [line.plain for line in forecast_lines(plain_console(), {**FORECAST, **changes})]


def test_forecast_cost_is_free_unknown_or_a_range() -> None:
    assert lines_of(cost_usd={"low": 0, "high": 0})[0].endswith("tokens · free")
    assert lines_of(cost_usd=None)[0].endswith("price unknown")
    assert lines_of(cost_usd={"low": 0.5, "high": 0.5})[0].endswith("· $0.50")


def test_forecast_without_calls_has_no_tokens() -> None:
    assert lines_of(calls=0, cost_usd=None, critical_path=["a"]) == [
        "Forecast  3 steps in 2 waves · 0 model calls"
    ]


def test_forecast_marks_lower_bounds() -> None:
    assert "· at least 3 model calls ·" in lines_of(at_least=True)[0]


def test_forecast_of_nothing_known_beforehand_names_neither_a_number_nor_a_price() -> None:
    free = {"low": 0, "high": 0}
    assert lines_of(at_least=True, calls=0, cost_usd=free, critical_path=["a"]) == [
        "Forecast  3 steps in 2 waves · model calls not known before it runs"
    ]


def test_forecast_lists_side_effects() -> None:
    lines = lines_of(effects=[{"node": "mail", "type": "send", "effect": "once"}])
    assert lines[-1] == "Changes   mail (once)"


def test_missing_forecast_shows_nothing() -> None:
    assert list(forecast_lines(plain_console(), {})) == []


def delta(text: str, *, reasoning: bool = False) -> PlanProgress:
    return PlanProgress("delta", {"text": text, "reasoning": reasoning})


STORY = (
    delta("thinking hard", reasoning=True),
    delta('{"title": "My plan", "nodes": [{"na'),
    PlanProgress("title", {"title": "My plan"}),
    PlanProgress("node", {"id": "a", "name": "First\x1b[2J step"}),
    PlanProgress("node", {"id": "b"}),
    PlanProgress("edge", {"source": "a", "target": "b", "channel": "flow"}),
    PlanProgress("repair", {"attempt": 2, "diagnostics": [{}, {}]}),
    PlanProgress("title", {"title": "Better"}),
    PlanProgress("fix", {"fix": "took the plan out of its fence"}),
)


def test_draft_prints_lines_in_a_pipe() -> None:
    console = plain_console()
    with live_draft(console, PlanDraft("own/one", lambda: 7.0)) as tell:
        for each in STORY:
            tell(each)
    assert console_output(console).splitlines() == [
        "planning with own/one",
        "[    0.0s] title: My plan",
        "[    0.0s] step 1: First[2J step",
        "[    0.0s] step 2: b",
        "[    0.0s] the plan has 2 errors: asking for a better one",
        "[    0.0s] title: Better",
        "[    0.0s] fixed: took the plan out of its fence",
    ]


def test_draft_leaves_nothing_on_a_terminal() -> None:
    console = terminal_console()
    with live_draft(console, PlanDraft("own/one")) as tell:
        for each in STORY:
            tell(each)
    assert "Planning with own/one" in console_output(console)
    assert "the plan has 2 errors: asking for a better one" in console_output(console)
    assert visible_lines(console) == []


def test_draft_reads_steps_of_small_model_replies() -> None:
    draft = PlanDraft("local/small")
    for piece in ('{"title": "Tid', 'es", "n1": {"name": "Moo', 'n", "task": "x"}, "n2": {"na'):
        draft.apply(delta(piece))
    assert (draft.title, draft.steps) == ("Tides", ["Moon"])
    draft.apply(delta('me": "Sun"}'))
    assert draft.steps == ["Moon", "Sun"]
    draft.apply(PlanProgress("node", {"id": "n1", "name": "Moon"}))
    assert draft.steps == ["Moon"]


def test_draft_search_is_bounded() -> None:
    draft = PlanDraft("local/small")
    draft.apply(delta("x" * 100_000))
    draft.apply(delta('"name": "late"'))
    assert draft.steps == []


def test_draft_is_reset_by_a_repair() -> None:
    draft = PlanDraft("own/one")
    for each in STORY[:7]:
        draft.apply(each)
    assert (draft.title, draft.steps, draft.text) == ("", [], "")


def test_the_models_of_steps_are_one_line() -> None:
    local = {"provider": "local", "model": "small", "calls": 2, "reason": "no API key is set"}
    others = [{"provider": "openai", "model": f"m{n}", "calls": 1} for n in range(5)]

    def line(*models: dict[str, Any]) -> str | None:
        shown = models_line(models)
        return None if shown is None else shown.plain

    assert line() is None
    assert line(local) == "Model     local small (no API key is set)"
    assert line(others[0]) == "Model     openai m0"
    assert line(local, others[0]) == (
        "Model     local small (2 calls, no API key is set), openai m0 (1 call)"
    )
    assert line(*others) == (
        "Model     openai m0 (1 call), openai m1 (1 call), openai m2 (1 call), openai m3 (1 call), "
        "and 1 more"
    )
