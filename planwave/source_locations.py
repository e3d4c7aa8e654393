"""Source locations of exceptions and warnings: the line of a person's own code."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable, Coroutine
from functools import wraps
from inspect import currentframe, iscoroutine
from pathlib import Path
from traceback import FrameSummary, extract_tb
from typing import Any, Final, ParamSpec, TypeVar, cast

from planwave.errors import PlanwaveError

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_PLANWAVE: Final = str(Path(__file__).parent) + os.sep
_INSTALLED: Final = tuple(sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib"))
_STANDARD: Final = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib"))


def own_frame(error: BaseException) -> FrameSummary | None:
    """Return the innermost frame of a person's own code that an exception passed, or None.

    Without one, the innermost frame of an installed package. Frames of planwave and of the standard
    library never count.
    """
    frames = [
        frame
        for frame in extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<", _PLANWAVE)) and not _is_standard(frame.filename)
    ]
    own = [frame for frame in frames if not frame.filename.startswith(_INSTALLED)]
    return next(reversed(own or frames), None)


def callers_level() -> int:
    """Return the ``stacklevel`` at which a warning names the line that called planwave."""
    frame, level = currentframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(_PLANWAVE):
        frame, level = frame.f_back, level + 1
    return level


def show_hint(error: PlanwaveError) -> None:
    """Add the hint of an error to its traceback, unless a note holds it already."""
    notes: list[str] = getattr(error, "__notes__", [])
    if error.hint and not any(error.hint in note for note in notes):
        error.add_note(f"hint: {error.hint}")


def shortened(error: PlanwaveError) -> PlanwaveError:
    """Return an error without its traceback so far, with its hint; raise it ``from None``.

    Its message says what happened and where; the frames between, and those of a library that
    caused it, would bury the caller's line.
    """
    show_hint(error)
    return error.with_traceback(None)


def hides_inner_frames(function: Callable[P, R]) -> Callable[P, R]:
    """Let errors of planwave end the traceback at the call of a function; see :func:`shortened`."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            returned = function(*args, **kwargs)
        except PlanwaveError as error:
            raise shortened(error) from None
        if iscoroutine(returned):
            return cast("R", _awaited(returned))
        return returned

    return call


async def _awaited(returned: Coroutine[Any, Any, T]) -> T:
    try:
        return await returned
    except PlanwaveError as error:
        raise shortened(error) from None


def _is_standard(file: str) -> bool:
    # Installed packages are below the directory of the standard library.
    return file.startswith(_STANDARD) and not file.startswith(_INSTALLED)


def shown_path(file: str | None) -> str:
    """Return the path of a file, relative to the working directory if the file is below it."""
    path = Path(file or "?")
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
