"""Notes between the openings of one database: short texts that say what to read again.

A note is a hint, not a record. It may be lost, so who subscribes also reads at intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, Protocol

Channel = Literal[
    "events",
    "deltas",
    "watch",
    "commands",
    "outcomes",
    "tokens",
    "sessions",
    "flows",
    "chats",
    "pauses",
]
MOST_BYTES: Final = 7_800
"""The longest text of a note, in UTF-8; its sender splits what is longer."""
SEPARATOR: Final = "\x1e"
"""Stands between the notes of one message; no note has it. JSON never does."""


class Notices(Protocol):
    """What passes notes to the other openings of a database, in order for each channel.

    Attributes:
        on_reconnect: Called on the event loop after notes of others may have been missed.
    """

    on_reconnect: list[Callable[[], object]]

    async def open(self) -> None:
        """Begin to send and to receive; return when notes arrive, or when the server cannot be reached."""
        ...

    async def close(self) -> None:
        """Send what was published, for a second at most, then stop."""
        ...

    def publish(self, channel: Channel, text: str) -> None:
        """Send a text to all other openings; never waits and never fails.

        Called on the event loop, after what the note is about was committed. A text may have ``MOST_BYTES`` and no
        ``SEPARATOR`` and no NUL; another one is dropped, with a ``RuntimeWarning``.
        """
        ...

    def subscribe(self, channel: Channel, receive: Callable[[str], object]) -> None:
        """Call ``receive`` on the event loop with each text that another opening publishes."""
        ...


class NoNotices:
    """Satisfies ``Notices`` where no other process has the store open: nobody is there to notify."""

    def __init__(self) -> None:
        self.on_reconnect: list[Callable[[], object]] = []

    async def open(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""

    def publish(self, channel: Channel, text: str) -> None:
        """Do nothing."""

    def subscribe(self, channel: Channel, receive: Callable[[str], object]) -> None:
        """Do nothing."""


def events_note(execution_id: str, last_seq: int) -> str:
    """Return the note of the channel ``events``: an execution has stored events up to this one."""
    return f"{last_seq} {execution_id}"


def read_events_note(note: str) -> tuple[str, int]:
    """Return the execution and the number of its last event."""
    last_seq, _, execution_id = note.partition(" ")
    return execution_id, int(last_seq)
