"""Bounds on work, measured in CPU seconds of this thread, so that a busy machine changes nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def cpu_within(seconds: float) -> Iterator[None]:
    """Fail if the block used more CPU time; give bounds ten times what a quiet machine needs."""
    started = time.thread_time()
    yield
    used = time.thread_time() - started
    assert used < seconds, f"used {used:.2f} s of CPU, at most {seconds} s"
