"""The ``planwave`` command as a process of its own, in an empty place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from tests.support.paths import ROOT

PLANWAVE_COMMAND = [sys.executable, "-c", "from planwave.main import main; main()"]


def isolated_directory(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty directory, with no provider but what a test configures."""
    for name in list(os.environ):
        if name.startswith(("PLANWAVE_", "OPENAI_", "ANTHROPIC_", "PYTHONUNBUFFERED", "COLUMNS")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(directory)
    monkeypatch.setenv("PLANWAVE_MODEL_DIR", str(directory / "models"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def start_command(
    *args: str, command: list[str] = PLANWAVE_COMMAND, cwd: Path | None = None
) -> subprocess.Popen[str]:
    """Start a command whose output can be read while it runs."""
    return subprocess.Popen(
        [*command, *args],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def read_until(stream: IO[str] | None, text: str) -> str:
    """Read lines until one holds the text; give all of them."""
    assert stream is not None
    seen = ""
    for line in stream:
        seen += line
        if text in line:
            return seen
    raise AssertionError(f"{text!r} never came; there was:\n{seen}")
