"""What a paused execution waits for, and the commands that let it go on."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from planwave.cli.wording import one_line, table
from planwave.events.course import asked as asked_for
from planwave.executor.past import WAITING

if TYPE_CHECKING:
    from planwave.cli.options import Invocation
    from planwave.cli.screen import Screen


def show_waiting(asked: Invocation, screen: Screen, document: Mapping[str, Any]) -> None:
    """Say of a paused execution what it waits for, and how it goes on; nothing of others."""
    if document.get("status") != "paused":
        return
    execution_id = str(document.get("execution_id"))
    requests = [table(each) for each in document.get("requests") or ()]
    for request in requests:
        said = f"{request.get('path')}: {asked_for(request.get('request'))}"
        screen.text(Text(f"{screen.glyph('waiting')} {one_line(said)}", style="yellow"))
        actions = [str(each) for each in table(request.get("request")).get("actions") or ()]
        words = f"answer {execution_id} {request.get('request_id')}"
        if actions:
            words += f" --decision {shlex.quote(one_line(actions[0]))}"
        others = f"   (or {', '.join(map(one_line, actions[1:]))})" if actions[1:] else ""
        screen.whole(f"  answer with: {asked.again(words)}{others}")
    if not requests or document.get("reason") != WAITING:
        reason = one_line(str(document.get("reason") or "paused"))
        again = asked.again(f"resume {execution_id}")
        screen.whole(f"It is {reason}; have it go on with: {again}")
