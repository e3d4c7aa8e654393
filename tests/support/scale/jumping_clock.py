"""A planwave whose wall clock is as far ahead as a file says."""

from __future__ import annotations

import datetime as datetime_module
import os
import sys
import time as time_module
from collections.abc import Callable
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Final, Self

from tests.support.scale.logging_nodes import RUN_LOG

JUMPING_PLANWAVE: Final = """
from tests.support.scale.jumping_clock import jump_when_asked
jump_when_asked()
from planwave.main import main
main()
"""
"""The program of such a process."""
_time: Final[Callable[[], float]] = time_module.time


def ahead_file(run_log: Path) -> Path:
    """Return the file with the number of seconds by which the clock is ahead."""
    return run_log.with_suffix(".ahead")


def _wrong_time() -> float:
    try:
        ahead_s = float(ahead_file(Path(os.environ[RUN_LOG])).read_text("utf-8"))
    except (FileNotFoundError, ValueError):  # it is being written
        ahead_s = 0.0
    return _time() + ahead_s


class _LikeDatetime(type):
    """Every time is one of the class, whoever made it."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, datetime)


class _WrongDatetime(datetime, metaclass=_LikeDatetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls.fromtimestamp(_wrong_time(), tz)


def jump_when_asked() -> None:
    """Let all of planwave read the wrong clock; the log of runs has the true time."""
    wrong: Any = _WrongDatetime
    time_module.time = _wrong_time
    datetime_module.datetime = wrong
    for name, module in list(sys.modules.items()):
        if name.startswith("planwave") and getattr(module, "datetime", None) is datetime:
            vars(module)["datetime"] = wrong
