import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from planwave.cli.views.live_run import RunScreen, show_events
from planwave.cli.views.progress import RunProgress
from planwave.events import Event
from tests.support.cli.fake_console import (
    console_output,
    plain_console,
    terminal_console,
    visible_lines,
)
from tests.support.graph.builders import make_graph, text_node

GRAPH = make_graph(
    text_node("a", name="First"), text_node("slow", name="Slow one"), text_node("b", name="Second"),
    edges=[("a", "b")],
)  # fmt: skip
WAVES = [["a", "slow"], ["b"]]


def event(event_type: str, path: str | None = None, **data: Any) -> Event:
    attempt = 1 if path else None
    return Event("x", 1, "2026-01-01T00:00:00+00:00", event_type, path, attempt, data)


STORY = (
    event("execution.started", waves=2),
    event("wave.started", wave=1, nodes=["a", "slow"]),
    event("node.started", "a", wave=1),
    event("node.started", "slow", wave=1),
    event("node.delta", "slow", kind="text", text="words of the \x1b[2Jmodel", offset=0),
    event("node.completed", "a", outputs={}, duration_s=1.5),
    event("node.started", "b", wave=2),
    event("node.failed", "b", error={"message": "no luck"}, handled=False, duration_s=0.2),
    event("node.completed", "slow", outputs={}, duration_s=3),
    event("execution.failed", error={"message": "b failed"}, failures=["b"]),
)


async def stream_of(events: Sequence[Event]) -> AsyncIterator[Event]:
    for each in events:
        yield each


def frame_after(count: int, **size: int) -> tuple[RunScreen, RunProgress]:
    progress = RunProgress(GRAPH, WAVES)
    frame = RunScreen(terminal_console(**size), progress)
    for each in STORY[:count]:
        progress.apply(each)
    return frame, progress


def texts(frame: RunScreen, width: int = 80, height: int = 30) -> list[str]:
    return [row.plain for row in frame.rows(width, height)]


async def test_pipe_gets_one_line_per_event() -> None:
    console = plain_console(width=30)
    await show_events(console, RunProgress(GRAPH, WAVES, lambda: 5.0), stream_of(STORY))
    shown = console_output(console)
    assert "\x1b" not in shown
    assert shown.splitlines() == [
        "[    0.0s] running 3 steps in 2 waves",
        "[    0.0s] wave 1 of 2: a, slow",
        "[    0.0s] started    a  First",
        "[    0.0s] started    slow  Slow one",
        "[    0.0s] completed  a  First (1.5 s)",
        "[    0.0s] started    b  Second",
        "[    0.0s] failed     b  Second (0.2 s): no luck",
        "[    0.0s] completed  slow  Slow one (3.0 s)",
    ]


async def test_pipe_shows_no_start_of_a_reused_node() -> None:
    taken = {"reused": {"execution_id": "x0"}, "duration_s": 0.0}
    story = [
        event("node.started", "a"),
        event("node.started", "slow"),
        event("node.completed", "a", **taken),
        event("node.completed", "slow", duration_s=3.0),
    ]
    console = plain_console()
    progress = RunProgress(GRAPH, WAVES, lambda: 5.0, is_fork=True)
    await show_events(console, progress, stream_of(story))
    assert console_output(console).splitlines() == [
        "[    0.0s] reused     a  First: from x0",
        "[    0.0s] started    slow  Slow one",
        "[    0.0s] completed  slow  Slow one (3.0 s)",
    ]


async def test_pipe_shows_the_start_of_a_forked_node_that_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("planwave.cli.views.live_run._HOLD_S", 0.001)
    console, is_shown, shown = plain_console(), asyncio.Event(), list[str]()
    monkeypatch.setattr(console, "line", lambda line: (shown.append(line), is_shown.set()))

    async def events() -> AsyncIterator[Event]:
        yield event("node.started", "a")
        await is_shown.wait()

    progress = RunProgress(GRAPH, WAVES, lambda: 5.0, is_fork=True)
    await show_events(console, progress, events())
    assert shown[0] == "[    0.0s] started    a  First"


async def test_terminal_ends_with_every_wave_once() -> None:
    console = terminal_console()
    await show_events(console, RunProgress(GRAPH, WAVES), stream_of(STORY))
    assert visible_lines(console) == [
        "Wave 1 of 2",
        "  ✓ completed   First          1.5 s",
        "  ✓ completed   Slow one       3.0 s",
        "Wave 2 of 2",
        "  ✗ failed      Second         0.2 s  no luck",
    ]


async def test_messages_stay_above_the_screen() -> None:
    console = terminal_console()
    message = {"event_type": "message", "data": {"text": "Half way.", "extras": None}}
    first, *rest = STORY
    tells = first._replace(type="node.event", path="a", attempt=1, data=message)
    await show_events(console, RunProgress(GRAPH, WAVES), stream_of([first, tells, *rest]))
    assert visible_lines(console)[0] == "First: Half way."
    assert visible_lines(console)[1] == "Wave 1 of 2"


def test_screen_shows_status_times_and_last_text() -> None:
    frame, _ = frame_after(7)
    first, slow, second = (row for row in texts(frame) if row.startswith("  "))
    assert "completed" in first
    assert "1.5 s" in first
    assert "running" in slow
    assert slow.endswith("words of the [2Jmodel")
    assert "running" in second
    assert "1 of 3 steps ended" in texts(frame)[-1]
    assert "Ctrl-C" in texts(frame)[-1]


def test_pending_node_shows_its_dependency() -> None:
    frame, _ = frame_after(3)
    assert texts(frame)[-2].endswith("after First")


def test_rows_fit_the_terminal_width() -> None:
    progress = RunProgress(
        make_graph(text_node("a", name="日本語の名前" * 20), text_node("b", name="x" * 200)),
        [["a", "b"]],
    )
    frame = RunScreen(terminal_console(), progress)
    for node in progress.nodes.values():
        node.status, node.started, node.tail = "running", 0.0, "日本 words " * 100
    for row in frame.rows(70, 30)[:-1]:
        assert row.cell_len <= 70


def test_low_terminal_shows_running_nodes_first() -> None:
    nodes = [text_node(f"n{i}") for i in range(60)]
    progress = RunProgress(make_graph(*nodes), [[node.id for node in nodes]])
    for i in (5, 40):
        progress.apply(event("node.started", f"n{i}", wave=1))
    frame = RunScreen(terminal_console(height=10), progress)
    rows = texts(frame, height=10)
    assert len(rows) < 10
    assert [row.split()[2] for row in rows if "running" in row] == ["n5", "n40"]
    for node in progress.nodes.values():
        node.status = "running"
    rows = texts(frame, height=10)
    assert len(rows) < 10
    assert "more lines" in rows[-2]


def test_settled_waves_leave_the_screen() -> None:
    frame, progress = frame_after(8)
    frame.print_settled()
    assert texts(frame)[0] == "Wave 1 of 2"
    progress.apply(STORY[8])
    frame.print_settled()
    assert len(texts(frame)) == 1


async def test_event_display_can_be_interrupted_and_continued() -> None:
    for console in (plain_console(), terminal_console()):
        progress = RunProgress(GRAPH, WAVES)
        events = stream_of(STORY)
        seen = 0

        def is_third() -> bool:
            nonlocal seen
            seen += 1
            return seen == 6

        assert await show_events(console, progress, events, until=is_third)
        assert progress.nodes["a"].status == "completed"
        assert not await show_events(console, progress, events)
        assert progress.status == "failed"
    assert [line for line in visible_lines(console) if line.startswith("Wave")] == [
        "Wave 1 of 2", "Wave 2 of 2",
    ]  # fmt: skip


def test_paused_reason_is_shown_beside_totals() -> None:
    frame, progress = frame_after(3)
    progress.apply(event("execution.paused", reason="waiting for an answer"))
    assert "paused: waiting for an answer" in texts(frame)[-1]
