"""A reply of a chat on the terminal, while it is streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from planwave.cli.formatting import one_line, truncate

if TYPE_CHECKING:
    from planwave.cli.console import CommandConsole

_SHOWN_CHARS = 200


class ReplyView:
    """Writes the events of a reply: its text as it comes, one line for everything else.

    Args:
        console: The terminal.
        shows_reasoning: Whether reasoning is written too.
    """

    def __init__(self, console: CommandConsole, *, shows_reasoning: bool = True) -> None:
        self._console = console
        self._shows_reasoning = shows_reasoning
        self._lengths: dict[str, int] = {}
        self._block: str | None = None

    def show(self, event: dict[str, Any]) -> None:
        """Write an event; those that say nothing to people write nothing."""
        match event["event"]:
            case "RunContent":
                self._piece(event, event["content"])
            case "ReasoningStep" if self._shows_reasoning:
                self._piece(event, event["reasoningContent"])
            case "ToolCallStarted":
                tool = event["tool"]
                self._note(f"calls {tool['toolName']} {tool['toolArgs']}")
            case "ToolCallCompleted":
                self._note(f"{event['tool']['toolName']}: {event['tool']['toolResult']}")
            case "ToolCallFailed" | "MemberRunError" | "FlowNodeError" | "RunError":
                self._note(f"failed: {event['error']['message']}")
            case "MemberRunStarted":
                self._note(f"asks {event['memberName']}: {event['task']}")
            case "ApprovalResolved":
                self._note(str(event["state"]))
            case "StreamWarning":
                self._note(str(event["warning"]))
            case "RunCancelled":
                self._note("cancelled")
            case _:
                pass

    def close(self) -> None:
        """End the line that is open."""
        if self._block is not None:
            self._console.line()
            self._block = None

    def _piece(self, event: dict[str, Any], piece: str) -> None:
        """Write what is new of a text; what was written cannot be taken back."""
        block_id, offset = event["blockId"], event["offset"]
        known = self._lengths.get(block_id, 0)
        new = piece[max(known - offset, 0) :]
        self._lengths[block_id] = max(known, offset + len(piece))
        if not new:
            return
        if self._block != block_id:
            self.close()
            self._block = block_id
        self._console.prompt(new)

    def _note(self, text: str) -> None:
        self.close()
        self._console.line(Text(f"  {truncate(one_line(text), _SHOWN_CHARS)}", style="dim"))
