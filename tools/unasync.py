"""Write ``sync_*.py`` of ``planwave/client`` from ``async_*.py``: the same code without async.

Usage: ``python tools/unasync.py`` (or ``make generate``).
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).resolve().parent.parent / "planwave" / "client"
MODULES = ("client", "methods", "revisions")
HEADER = "# Generated from {} by tools/unasync.py; do not edit. Run: make generate\n"
REPLACEMENTS = (
    (r"\bwith async methods", "with blocking methods"),
    (r"\basync_(?=client|methods|revisions)", "sync_"),
    (r"\ban async context manager", "a context manager"),
    (r"\basync (?=def|for|with)|\bawait ", ""),
    (r"\basyncio\b", "time"),
    (r"\b__a(enter|exit)__", r"__\1__"),
    (r"\ba(read|close|closing|iter_bytes)\b", r"\1"),
    (r"\bAsync(?=[A-Z])", ""),
)


def source_of(module: str) -> Path:
    """Return the file with the async code of a module."""
    return CLIENT / f"async_{module}.py"


def target_of(module: str) -> Path:
    """Return the file with the blocking code of a module."""
    return CLIENT / f"sync_{module}.py"


def synchronous(module: str) -> str:
    """Return the blocking code of a module, formatted."""
    code, target = source_of(module).read_text("utf-8"), target_of(module)
    for pattern, replacement in REPLACEMENTS:
        code = re.sub(pattern, replacement, code)
    fix = ("check", "--fix-only", "--unsafe-fixes", "--quiet", "--select", "I,UP028")
    for command in (fix, ("format",)):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(target), "-"]
        code = subprocess.run(ruff, input=code, capture_output=True, text=True, check=True).stdout
    return HEADER.format(source_of(module).name) + code


if __name__ == "__main__":
    for name in MODULES:
        target_of(name).write_text(synchronous(name), "utf-8")
