"""Views of triggers: what is listened for, and what came last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from rich.text import Text

from planwave.cli.console import CommandConsole, Line
from planwave.cli.formatting import local_time, truncate

_NAME_CHARS = 60
_NOTE_CHARS = 200


def trigger_lines(console: CommandConsole, triggers: Sequence[Mapping[str, Any]]) -> Iterable[Line]:
    """Return the lines of a list of triggers, each with its last deliveries."""
    ids = console.short_ids(each["trigger_id"] for each in triggers)
    for trigger in triggers:
        yield _trigger_line(trigger, ids[trigger["trigger_id"]])
        if trigger["problem"]:
            yield Text.assemble("    ", (f"starts nothing: {trigger['problem']}", "red"))
        for name, value in trigger["details"].items():
            shown = ", ".join(map(str, _items(value)))
            yield Text.assemble("    ", (f"{name}: ", "dim"), truncate(shown, _NOTE_CHARS))
        for delivery in trigger["deliveries"]:
            yield _delivery_line(delivery)


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _trigger_line(trigger: Mapping[str, Any], shown_id: str) -> Line:
    state = "enabled" if trigger["enabled"] else "disabled"
    return Text.assemble(
        (shown_id, "cyan"),
        f"  {trigger['kind']:<10} ",
        (f"{state:<9} ", "dim"),
        truncate(trigger["flow"], _NAME_CHARS),
        (f" / {trigger['node_id']}", "dim"),
    )


def _delivery_line(delivery: Mapping[str, Any]) -> Line:
    note = f"  {truncate(delivery['note'], _NOTE_CHARS)}" if delivery["note"] else ""
    return Text.assemble(
        f"    {local_time(delivery['received_at'])}  ",
        (f"{delivery['outcome'] or 'under way':<10}", "dim"),
        (delivery["execution_id"] or "", "cyan"),
        (note, "dim"),
    )
