import json
from datetime import UTC, datetime, timedelta

import pytest
from rich.cells import cell_len

from planwave.cli.formatting import (
    STATUS_STYLES,
    clean,
    clock_time,
    counted,
    duration,
    error_text,
    json_object,
    json_text,
    money,
    number_range,
    one_line,
    short_ids,
    status_reason,
    status_style,
    tail,
    tokens_text,
    truncate,
)

NODE_STATUSES = [
    "pending",
    "running",
    "retrying",
    "waiting",
    "completed",
    "failed",
    "skipped",
    "blocked",
    "cancelled",
    "linked",
    "not_reached",
]


@pytest.mark.parametrize("status", NODE_STATUSES)
def test_every_node_status_has_unicode_and_ascii_sign(status: str) -> None:
    look = STATUS_STYLES[status]
    assert len(look.glyph) == 1
    assert look.ascii.isascii()


def test_unknown_status_has_a_sign() -> None:
    assert status_style("never-heard-of").glyph == "?"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (185, "3 min 05 s"),
        (7800, "2 h 10 min"),
        (47 * 3600, "47 h 00 min"),
        (51 * 3600, "2 days 3 h"),
        (7 * 86_400, "7 days"),
    ],
)
def test_duration_format(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize(
    ("usd", "shown"),
    [(0, "$0"), (0.00001, "under $0.0001"), (0.0123, "$0.0123"), (1.5, "$1.50")],
)
def test_money_format(usd: float, shown: str) -> None:
    assert money(usd) == shown


def test_number_and_range_format() -> None:
    assert (counted(1, "node"), counted(1200, "token")) == ("1 node", "1,200 tokens")
    assert (number_range(5, 5.2), number_range(1000, 2000)) == ("5", "1,000 to 2,000")


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b[2J",
        "\x1b]0;owned\x07",
        "\x9b31m",
        "a\rb",
        "\u202egnp.exe",
        "\u2066x",
        "\ud800",
        "\x7f",
    ],
)
def test_terminal_control_text_is_removed(hostile: str) -> None:
    shown = clean(f"left{hostile}right")
    assert not any(ord(c) < 32 or 0x7F <= ord(c) <= 0x9F or c in "\u202e\u2066" for c in shown)
    shown.encode("utf-8")
    assert shown.startswith("left")
    assert shown.endswith("right")


def test_line_breaks_are_kept_in_text_and_removed_in_lines() -> None:
    assert clean("a\n\tb") == "a\n\tb"
    assert one_line(" a\n\t b\x1b ") == "a b"


@pytest.mark.parametrize("width", [0, 1, 2, 5, 10, 79])
@pytest.mark.parametrize(
    "text", ["", "short", "日本語の長い文章です" * 30, "x" * 5000, "a\nb " * 99]
)
def test_truncated_text_fits_its_width(text: str, width: int) -> None:
    assert cell_len(tail(text, width)) <= width
    assert cell_len(truncate(text, width)) <= width


def test_tail_keeps_the_end_and_truncate_the_start() -> None:
    text = "one two three four five six seven"
    assert tail(text, 12) == "…e six seven"
    assert truncate(text, 12) == "one two thr…"
    assert truncate("short", 12) == tail("short", 12) == "short"


def test_stored_error_forms_become_text() -> None:
    assert error_text({"code": "c", "message": "m"}) == "m"
    assert error_text({"code": "c"}) == "c"
    assert error_text("plain") == "plain"
    assert error_text(None) == ""
    assert json_object([1]) == {}


def test_json_keeps_letters_and_escapes_control_characters() -> None:
    value = {"a": "Gezeiten 潮 \x9b31m \x7f \u202e \ud800 \x1b[2J\n\t"}
    text = json_text(value)
    assert "Gezeiten 潮 \\u009b31m \\u007f \\u202e \\ud800 \\u001b[2J\\n\\t" in text
    assert json.loads(text) == value
    assert json_text(value, ascii_only=True).isascii()


def test_status_reason_of_every_status() -> None:
    assert status_reason("failed", {"error": {"message": "no"}, "handled": True}) == "no (handled)"
    assert status_reason("retrying", {"error": {"message": "busy"}, "delay_s": 3}) == (
        "busy; tries again in 3.0 s"
    )
    assert status_reason("retrying", {"error": {"message": "busy"}}) == "busy"
    assert status_reason("blocked", {"cause": {"node": "a", "error": {}}}) == "because a failed"
    assert status_reason("skipped", {"reason": "not chosen"}) == "not chosen"
    assert status_reason("cancelled", {"cause": "stopped"}) == "stopped"
    assert status_reason("waiting", {}) == "for an answer"
    assert status_reason("waiting", {"request": {"prompt": "Go?"}}) == "for an answer: Go?"
    asked = {"request_id": "r9", "request": {"prompt": "Go?"}}
    assert status_reason("waiting", asked) == "for an answer to r9: Go?"
    timer = {"request_id": "r9", "request": {"kind": "timer", "until": "soon"}}
    assert status_reason("waiting", timer) == "until soon"
    assert status_reason("reused", {"reused": {"execution_id": "x0"}}) == "from x0"
    assert status_reason("completed", {"reason": None, "cause": None, "error": None}) == ""


def test_short_ids_are_as_long_as_needed_to_differ() -> None:
    first, second, third = "0190-aaaa1209a2fd", "0190-aaaa3309a2fd", "0190-bbbb00000001"
    assert short_ids([first, third]) == {first: "09a2fd", third: "000001"}
    assert short_ids([first, second]) == {first: "209a2fd", second: "309a2fd"}
    assert short_ids([first, first]) == {first: "09a2fd"}
    assert short_ids([]) == {}


def test_tokens_are_told_by_direction() -> None:
    usage = {"input_tokens": 1439, "output_tokens": 821}
    assert tokens_text(usage) == "1,439 in, 821 out"
    cached = {**usage, "cache_read_tokens": 1024}
    assert tokens_text(cached) == "1,439 in (of which 1,024 from the cache), 821 out"


def test_clock_times_have_a_date_if_not_today() -> None:
    now = datetime.now(UTC)
    local = now.astimezone()
    assert clock_time(now.isoformat()) == f"{local:%H:%M:%S}"
    later = local + timedelta(days=2)
    assert clock_time(later.isoformat()) == f"{later:%Y-%m-%d %H:%M:%S}"
    assert clock_time("noon") == "noon"
