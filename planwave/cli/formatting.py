"""How the command line formats statuses, ids, times, durations and amounts, and makes text safe to print."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from rich.cells import cell_len

from planwave.events.request_text import end_of_timer, is_about_running, is_timer, request_text
from planwave.expressions.json_text import to_text

if TYPE_CHECKING:
    from planwave.shapes.executions import WaitsForResponse

_UNSAFE_CHARACTERS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters (a model's reply must not move the cursor or rename the window), direction
overrides (must not reorder what is read), lone surrogates (cannot be written)."""


class StatusStyle(NamedTuple):
    """How a node status looks: a glyph, the same in ASCII, and a Rich style."""

    glyph: str
    ascii: str
    style: str


STATUS_STYLES: Final[dict[str, StatusStyle]] = {
    "pending": StatusStyle("·", ".", "dim"),
    "starting": StatusStyle("·", ".", "dim"),
    "draft": StatusStyle("·", ".", "dim"),
    "running": StatusStyle("●", ">", "cyan"),
    "executing": StatusStyle("●", ">", "cyan"),
    "retrying": StatusStyle("↻", "~", "yellow"),
    "waiting": StatusStyle("◷", "?", "yellow"),
    "paused": StatusStyle("◷", "?", "yellow"),
    "completed": StatusStyle("✓", "+", "green"),
    "reused": StatusStyle("✓", "+", "green"),
    "given": StatusStyle("✓", "+", "green"),
    "changed": StatusStyle("✓", "+", "green"),
    "failed": StatusStyle("✗", "x", "red"),
    "partial": StatusStyle("◐", "%", "red"),
    "skipped": StatusStyle("→", "-", "dim"),
    "blocked": StatusStyle("⊘", "!", "red"),
    "cancelled": StatusStyle("■", "#", "yellow"),
    "interrupted": StatusStyle("⊘", "!", "yellow"),
    "linked": StatusStyle("∞", "&", "dim"),
    "not_reached": StatusStyle("·", ".", "dim"),
}
INTERRUPTED: Final = "interrupted"
"""The status to show of an execution that nobody runs, though its stored status says so."""
PARTIAL: Final = "partial"
"""The status to show of an execution that failed and delivered results all the same."""
DID_NOT_RUN: Final = ("reused", "given", "changed")
"""What is shown as the status of a completed node that got its result without a run."""
_UNKNOWN_STYLE: Final = StatusStyle("?", "?", "dim")
_CAPABILITIES: Final = {"local": "a local model"}
STATUS_WIDTH: Final = max(map(len, STATUS_STYLES))
EXECUTION_STATUS_WIDTH: Final = len(INTERRUPTED)
DURATION_WIDTH: Final = len("59 min 59 s")
ID_WIDTH: Final = 28
"""Width of an id that is followed by other columns; longer ids are cut."""


def status_style(status: str) -> StatusStyle:
    """Return the style of a status; a neutral style for an unknown status."""
    return STATUS_STYLES.get(status, _UNKNOWN_STYLE)


def interrupted_text(again: str) -> str:
    """Return the sentence about an execution that nobody runs; ``again`` is the command that continues it."""
    return f"Nobody runs this execution any more; continue with: {again}"


def waits_for_text(waits_for: WaitsForResponse) -> str:
    """Return why no process runs an execution: only some can."""
    name = waits_for["capability"]
    what = _CAPABILITIES.get(name, f"the capability {name}")
    lacks = "" if waits_for["processes"] else "; there is none now"
    return f"waits for a worker that has {what}{lacks}"


def shown_status(status: str, facts: Mapping[str, Any]) -> str:
    """Return the status to show for a node; a node that completed without a run has its own.

    Args:
        status: The status of the node.
        facts: The data of the node's event, or the node in an execution's document.
    """
    if status == "completed":
        return next((each for each in DID_NOT_RUN if facts.get(each)), status)
    return status


def status_text(status: str) -> str:
    """Return a status with spaces between its words."""
    return status.replace("_", " ")


def json_object(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a JSON object, else an empty object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def error_text(error: Any) -> str:
    """Return the message of a stored error, an object or a text; empty for None."""
    fields = json_object(error)
    if fields:
        return str(fields.get("message") or fields.get("code") or "")
    return "" if error is None else str(error)


def status_reason(status: str, facts: Mapping[str, Any]) -> str:
    """Return one line on why a node failed, retries, waits or did not run; empty without a reason.

    Args:
        status: The status of the node.
        facts: The data of the node's event, or the node in an execution's document: error, reason,
            cause, reused, request and its id.
    """
    message = error_text(facts.get("error"))
    match status:
        case "failed":
            return f"{message} (handled)" if facts.get("handled") else message
        case "retrying":
            wait = facts.get("delay_s")
            return message if wait is None else f"{message}; tries again in {duration(float(wait))}"
        case "blocked":
            return f"because {json_object(facts.get('cause')).get('node')} failed"
        case "cancelled":
            return to_text(facts.get("cause"))
        case "reused":
            return f"from {json_object(facts.get('reused')).get('execution_id')}"
        case "waiting":
            return awaited(facts.get("request_id"), facts.get("request"))
        case _:
            return str(facts.get("reason") or "")


PLAN_ASKER: Final = "the plan"
RUN_ASKER: Final = "the run"
"""What asks a question that no step asks."""


def asker_of(path: str | None, request: Any) -> str:
    """Return the source of a request: the path of its node, or the run or the plan."""
    return path or (RUN_ASKER if is_about_running(request) else PLAN_ASKER)


def awaited(request_id: Any, request: Any) -> str:
    """Return what a node waits for, to follow the word "waiting": a time, or an answer."""
    if is_timer(request):
        return f"until {clock_time(end_of_timer(request))}"
    name = "" if request_id is None else f" to {request_id}"
    return f"for an answer{name}" + ("" if request is None else f": {request_text(request)}")


def clean(text: str) -> str:
    """Remove unsafe control characters from text; line breaks and tabs stay."""
    return _UNSAFE_CHARACTERS.sub("", text)


def one_line(text: str) -> str:
    """Return text as one line, without unsafe control characters."""
    return " ".join(clean(text).split())


def json_text(value: Any, *, ascii_only: bool = False) -> str:
    """Return indented JSON; characters that are unsafe on a terminal are escaped."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=2)
    return _UNSAFE_CHARACTERS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def tail(text: str, width: int) -> str:
    """Return the end of a text as one line of at most ``width`` terminal cells."""
    line = one_line(text[-4 * max(width, 1) :])
    if cell_len(line) <= width:
        return line
    if width < 2:
        return ""
    while cell_len(line) > width - 1:
        line = line[max(1, (cell_len(line) - width + 1) // 2) :]
    return "…" + line


def truncate(text: str, width: int) -> str:
    """Return the start of a text as one line of at most ``width`` terminal cells."""
    line = one_line(text[: 4 * max(width, 1)])
    if cell_len(line) <= width:
        return line
    if width < 2:
        return ""
    while cell_len(line) > width - 1:
        line = line[: -max(1, (cell_len(line) - width + 1) // 2)]
    return line.rstrip() + "…"


def duration(seconds: float) -> str:
    """Return a duration as text: ``0.4 s``, ``12 s``, ``3 min 05 s``, ``2 h 10 min``, ``7 days``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 48 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    days, hours = divmod(round(whole / 3600), 24)
    return f"{days} days {hours} h" if hours else f"{days} days"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 node``, ``2 nodes``, ``1,200 tokens``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def money(usd: float) -> str:
    """Return an amount of US dollars with two decimals, or four if it is below 10 cents."""
    if usd < 0.0001:
        return "under $0.0001" if usd > 0 else "$0"
    return f"${usd:.2f}" if usd >= 0.1 else f"${usd:.4f}"


def tokens_text(usage: Mapping[str, Any]) -> str:
    """Return the tokens of a usage: ``1,439 in (of which 1,024 from the cache), 821 out (of which 9 reasoning)``."""
    cached = usage.get("cache_read_tokens") or 0
    from_cache = f" (of which {cached:,} from the cache)" if cached else ""
    thought = usage.get("reasoning_tokens") or 0
    of_reasoning = f" (of which {thought:,} reasoning)" if thought else ""
    tokens_in, tokens_out = usage.get("input_tokens") or 0, usage.get("output_tokens") or 0
    return f"{tokens_in:,} in{from_cache}, {tokens_out:,} out{of_reasoning}"


def number_range(low: float, high: float) -> str:
    """Return a range of whole numbers; one number if both ends round to the same."""
    low_text, high_text = f"{round(low):,}", f"{round(high):,}"
    return low_text if low_text == high_text else f"{low_text} to {high_text}"


def plan_progress_text(kind: str, data: Mapping[str, Any]) -> str | None:
    """Return a line on one progress report of the planner; None for a report that needs no line."""
    match kind:
        case "title":
            return f"title: {one_line(str(data.get('title', '')))}"
        case "node":
            return f"step: {step_name(data)}"
        case "repair":
            errors = counted(len(data.get("diagnostics") or ()), "error")
            return f"the plan has {errors}: asking for a better one"
        case "fix":
            return f"fixed: {one_line(str(data.get('fix', '')))}"
        case _:
            return None


def step_name(data: Mapping[str, Any]) -> str:
    """Return the name of a step in a plan that is being written; its id without a name."""
    return one_line(str(data.get("name") or data.get("id")))


SHORT_ID: Final = 6
"""Characters of an id that a list shows at least; ids differ in their ends, which are random."""
_GOAL_CHARS = 400


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Return the end of each id, long enough that no two of these ids have the same end."""
    all_ids = set(ids)
    longest = max(map(len, all_ids), default=0)
    length = SHORT_ID
    while length < longest and len({each[-length:] for each in all_ids}) < len(all_ids):
        length += 1
    return {each: each[-length:] for each in all_ids}


def facts_lines(facts: Mapping[str, Any]) -> Iterable[str]:
    """Yield a line for each fact that has a value."""
    for name, value in facts.items():
        if value:
            yield f"{name:<9} {truncate(str(value), _GOAL_CHARS)}"


def parse_time(text: str) -> datetime:
    """Parse a stored time; a time without a zone is UTC."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def clock_time(text: str, now: datetime | None = None) -> str:
    """Return a moment as local time to the second, with the date unless it is today's."""
    try:
        moment = parse_time(text).astimezone()
    except ValueError:  # not a time, but what a node says instead
        return one_line(text)
    today = (now or datetime.now(UTC)).astimezone().date()
    return moment.strftime("%H:%M:%S" if moment.date() == today else "%Y-%m-%d %H:%M:%S")


def local_times(texts: Iterable[str | None]) -> list[str]:
    """Return stored times in the local time zone; with seconds where two of them would be equal."""
    written = list(texts)
    times = [local_time(text) for text in written]
    if len(set(times)) == len(times):
        return times
    return [local_time(text, seconds=True) for text in written]


def local_time(text: str | None, *, seconds: bool = False) -> str:
    """Return a stored time in the local time zone; ``not yet`` without a time."""
    if not text:
        return "not yet"
    return parse_time(text).astimezone().strftime("%Y-%m-%d %H:%M" + ":%S" * seconds)
