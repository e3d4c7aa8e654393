"""Write ``planwave/client/sync_client.py`` from ``async_client.py``: the same code without async.

Usage: ``python tools/unasync.py`` (or ``make generate``).
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).resolve().parent.parent / "planwave" / "client"
SOURCE, TARGET = CLIENT / "async_client.py", CLIENT / "sync_client.py"
HEADER = "# Generated from async_client.py by tools/unasync.py; do not edit. Run: make generate\n"
REPLACEMENTS = (
    (r"\bwith async methods", "with blocking methods"),
    (r"\ban async context manager", "a context manager"),
    (r"\basync (?=def|for|with)|\bawait ", ""),
    (r"\basyncio\b", "time"),
    (r"\b__a(enter|exit)__", r"__\1__"),
    (r"\ba(read|close|closing|iter_bytes)\b", r"\1"),
    (r"\bAsync(?=[A-Z])", ""),
)


def synchronous(code: str) -> str:
    """Return async code as blocking code, formatted."""
    for pattern, replacement in REPLACEMENTS:
        code = re.sub(pattern, replacement, code)
    fix = ("check", "--fix-only", "--unsafe-fixes", "--quiet", "--select", "I,UP028")
    for command in (fix, ("format",)):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(TARGET), "-"]
        code = subprocess.run(ruff, input=code, capture_output=True, text=True, check=True).stdout
    return HEADER + code


if __name__ == "__main__":
    TARGET.write_text(synchronous(SOURCE.read_text("utf-8")), "utf-8")
