"""Views of notifications: what is notified, and what nobody accepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.text import Text

from planwave.cli.console import CommandConsole, Line
from planwave.cli.formatting import local_time, truncate

_URL_CHARS = 100
_ERROR_CHARS = 200


def target_lines(console: CommandConsole, targets: Sequence[Mapping[str, Any]]) -> Iterable[Line]:
    """Return the lines of a list of targets."""
    ids = console.short_ids(each["target_id"] for each in targets)
    for target in targets:
        of = target["flow"] or "all executions"
        yield Text.assemble(
            (ids[target["target_id"]], "cyan"),
            f"  {truncate(target['url'], _URL_CHARS)}  ",
            (f"{truncate(of, _URL_CHARS)}: {', '.join(target['events'])}", "dim"),
        )
        if target["problem"]:
            yield Text.assemble("    ", (f"gets nothing: {target['problem']}", "red"))


def dead_letter_lines(
    console: CommandConsole, notifications: Sequence[Mapping[str, Any]]
) -> Iterable[Line]:
    """Return the lines of a list of notifications that nobody accepted."""
    ids = console.short_ids(each["notification_id"] for each in notifications)
    for each in notifications:
        yield Text.assemble(
            (ids[each["notification_id"]], "cyan"),
            f"  {local_time(each['created_at'])}  {each['event']:<10} ",
            (each["execution_id"], "cyan"),
        )
        yield Text.assemble("    ", (truncate(each["error"], _ERROR_CHARS), "red"))
