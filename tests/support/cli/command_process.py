"""The ``planwave`` command as a process of its own, in an empty place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from tests.support.paths import ROOT
from tests.support.processes.forked_process import ForkedProcess, run_forked

PLANWAVE = "from planwave.main import main; main()"


def isolated_directory(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty directory, with no provider but what a test configures, and download nothing."""
    for name in list(os.environ):
        if name.startswith(("PLANWAVE_", "OPENAI_", "ANTHROPIC_", "PYTHONUNBUFFERED", "COLUMNS")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(directory)
    monkeypatch.setenv("PLANWAVE_MODEL_DIR", str(directory / "models"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def start_command(*args: str, program: str = PLANWAVE, **options: Any) -> ForkedProcess:
    """Start a command whose output can be read while it runs; see ``ForkedProcess``."""
    return ForkedProcess("-c", program, *args, **options)


def run_command(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; see ``ForkedProcess``."""
    return run_forked("-c", PLANWAVE, *args, **options)


def start_console_script(*args: str, **options: Any) -> subprocess.Popen[str]:
    """Start the installed command as people do, in an interpreter that has imported nothing."""
    return subprocess.Popen(
        [Path(sys.executable).with_name("planwave"), *args],
        text=True, encoding="utf-8",
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )  # fmt: skip


def read_until(stream: IO[str] | None, text: str) -> str:
    """Read lines until one holds the text; give all of them."""
    assert stream is not None
    seen = ""
    for line in stream:
        seen += line
        if text in line:
            return seen
    raise AssertionError(f"{text!r} never came; there was:\n{seen}")
