from planwave.cli.drafting import PlanDraft, live_draft
from planwave.planner.progress import PlanProgress
from tests.fakes.terminal import plain_console, terminal_console, visible_lines, console_output


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


def test_a_pipe_is_told_titles_steps_repairs_and_fixes_line_by_line() -> None:
    screen = plain_console()
    with live_draft(screen, PlanDraft("own/one", lambda: 7.0)) as tell:
        for each in STORY:
            tell(each)
    assert console_output(screen).splitlines() == [
        "planning with own/one",
        "[    0.0s] title: My plan",
        "[    0.0s] step 1: First[2J step",
        "[    0.0s] step 2: b",
        "[    0.0s] the plan has 2 faults: asking for a better one",
        "[    0.0s] title: Better",
        "[    0.0s] fixed: took the plan out of its fence",
    ]


def test_a_terminal_leaves_nothing_of_the_draft_behind() -> None:
    screen = terminal_console()
    with live_draft(screen, PlanDraft("own/one")) as tell:
        for each in STORY:
            tell(each)
    assert "Planning with own/one" in console_output(screen)
    assert "the plan has 2 faults: asking for a better one" in console_output(screen)
    assert visible_lines(screen) == []


def test_the_steps_of_a_small_models_form_are_picked_out_of_its_text() -> None:
    draft = PlanDraft("local/small")
    for piece in ('{"title": "Tid', 'es", "n1": {"name": "Moo', 'n", "task": "x"}, "n2": {"na'):
        draft.apply(delta(piece))
    assert (draft.title, draft.steps) == ("Tides", ["Moon"])
    draft.apply(delta('me": "Sun"}'))
    assert draft.steps == ["Moon", "Sun"]
    draft.apply(PlanProgress("node", {"id": "n1", "name": "Moon"}))
    assert draft.steps == ["Moon"]


def test_an_endless_reply_is_not_searched_for_ever() -> None:
    draft = PlanDraft("local/small")
    draft.apply(delta("x" * 100_000))
    draft.apply(delta('"name": "late"'))
    assert draft.steps == []


def test_a_repair_forgets_the_plan_before_it() -> None:
    draft = PlanDraft("own/one")
    for each in STORY[:7]:
        draft.apply(each)
    assert (draft.title, draft.steps, draft.text) == ("", [], "")
