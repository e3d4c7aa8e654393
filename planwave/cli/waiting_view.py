"""What a paused execution waits for, and the commands that let it go on."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from planwave.cli.wording import one_line, json_object
from planwave.events.course import request_text as asked_for
from planwave.events.course import is_timer
from planwave.events.vocabulary import WAITING, pause_kind
from planwave.graph.values import to_text

if TYPE_CHECKING:
    from planwave.cli.options import CommandContext
    from planwave.cli.screen import CommandConsole


_VALUE_LINES: Final = 12
_VALUE_CHARS: Final = 2_000
"""More of a value only hides the command that answers; asked inline, a person sees more of it."""


def show_waiting(ctx: CommandContext, screen: CommandConsole, document: Mapping[str, Any]) -> None:
    """Say of a paused execution what it waits for, and how it goes on; nothing of others."""
    if document.get("status") != "paused":
        return
    execution_id = str(document.get("execution_id"))
    requests = [json_object(each) for each in document.get("requests") or ()]
    for request in requests:
        said = f"{request.get('path')}: {asked_for(request.get('request'))}"
        screen.text(Text(f"{screen.glyph('waiting')} {one_line(said)}", style="yellow"))
        fields = json_object(request.get("request"))
        for line in _value_lines(fields.get("value")):
            screen.text(Text(f"    {one_line(line)}".rstrip(), style="dim"))
        actions = [str(each) for each in fields.get("actions") or ()]
        words = f"answer {execution_id} {request.get('request_id')}"
        if actions:
            words += f" --decision {shlex.quote(one_line(actions[0]))}"
        others = [shlex.quote(one_line(each)) for each in actions[1:]]
        either = f"   (or {', '.join(others)})" if others else ""
        way = "have it go on at once" if is_timer(fields) else "answer"
        screen.verbatim(f"  {way} with: {ctx.command_hint(words)}{either}")
    if any(is_timer(each.get("request")) for each in requests):
        screen.verbatim(f"It goes on by itself then, while this runs: {ctx.command_hint('serve')}")
    if not requests or pause_kind({"reason": document.get("reason")}) != WAITING:
        reason = one_line(str(document.get("reason") or "paused"))
        again = ctx.command_hint(f"resume {execution_id}")
        screen.verbatim(f"It is {reason}; have it go on with: {again}")


def _value_lines(value: Any) -> Iterator[str]:
    """Give what a decision is about, as much as helps to remember it."""
    if value is None or value == "":
        return
    text = to_text(value)
    lines = text[:_VALUE_CHARS].splitlines()
    yield from lines[:_VALUE_LINES]
    if len(text) > _VALUE_CHARS or len(lines) > _VALUE_LINES:
        yield "…"
