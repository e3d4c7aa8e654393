"""What agents did to the world: one line for each time that a tool acted, whichever process it was in."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

ACT_LOG = "ACT_LOG"
"""The environment variable with the path of the file of acts."""


class Act(NamedTuple):
    """One time that a tool acted.

    Attributes:
        tool: The tool, as a model calls it.
        item: What it acted on: an id that no other call of any execution has.
        text: Its other argument, which a person may change.
        key: The idempotency key; empty where the tool gets none.
    """

    tool: str
    item: str
    text: str
    key: str


def write_act(path: str | Path, act: Act) -> None:
    """Append an act; it is there once this returns, whatever becomes of the process."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, json.dumps(act).encode() + b"\n")
    finally:
        os.close(file)


def read_acts(path: Path) -> list[Act]:
    """Return all acts, in order."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [Act(*json.loads(line)) for line in lines]
