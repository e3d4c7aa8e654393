"""Work measured in CPU seconds, of this thread or of a process, so that a busy machine changes nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def cpu_within(seconds: float) -> Iterator[None]:
    """Fail if the block used more CPU time; give bounds ten times what a quiet machine needs."""
    started = time.thread_time()
    yield
    used = time.thread_time() - started
    assert used < seconds, f"used {used:.2f} s of CPU, at most {seconds} s"


def cpu_of(pid: int) -> float | None:
    """Return the CPU seconds that a process has used so far; None if there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
