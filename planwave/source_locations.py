"""Source locations of exceptions and warnings: the line of a person's own code, and the way there."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import wraps
from inspect import currentframe, iscoroutine
from itertools import dropwhile
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException, extract_tb
from typing import Any, Final, ParamSpec, TypeVar, cast

from planwave.errors import ExecutionFailed, PlanwaveError

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
E = TypeVar("E", bound=BaseException)

_PLANWAVE: Final = str(Path(__file__).parent) + os.sep
_INSTALLED: Final = tuple(sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib"))
_STANDARD: Final = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib"))

_MAX_FRAMES: Final = 25
"""Frames of each exception in a traceback: the innermost ones."""
_MAX_TRACEBACK_CHARS: Final = 8_000
_MAX_SEARCHED_CHARS: Final = 64_000
"""How much of the begin and of the end of a traceback is searched for secrets, before it is cut."""


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
    """Return an error without its traceback so far, with its hint; raise it from ``cause_of``.

    Its message says what happened and where; the frames between, and those of a library that
    caused it, would bury the caller's line.
    """
    show_hint(error)
    return error.with_traceback(None)


def cause_of(error: PlanwaveError) -> BaseException | None:
    """Return the cause that a caller sees of an error: what the nodes of a failed run raised."""
    return error.__cause__ if isinstance(error, ExecutionFailed) else None


def trimmed(error: E) -> E:
    """Return an exception without the frames of planwave that called the person's code."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename.startswith(_PLANWAVE):
        frame = frame.tb_next
    return error.with_traceback(frame or error.__traceback__)


def traceback_of(error: BaseException, redact: Callable[[str], str]) -> str:
    """Return the traceback of an exception of a node as text, for the operator.

    It has the innermost frames of each exception that led to this one, without those of planwave, and
    shows no directories above the working directory and the installed packages. A long one keeps its
    begin and its end.

    Args:
        error: What the node raised.
        redact: Takes secrets out of a text.

    Returns:
        The text; "" for an error of planwave, whose message says what happened and where.
    """
    if _is_planned(error):
        return ""
    summary = TracebackException.from_exception(error, lookup_lines=False)
    for each in _each_exception(summary):
        each.stack = StackSummary.from_list(_shown_frames(each.stack))
    text = "".join(summary.format()).rstrip()
    text = redact(_shortened_text(text, _MAX_SEARCHED_CHARS))
    return _shortened_text(text, _MAX_TRACEBACK_CHARS).encode("utf-8", "backslashreplace").decode()


def _is_planned(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_planned, cast("BaseExceptionGroup", error).exceptions))
    return isinstance(error, PlanwaveError)


def _each_exception(summary: TracebackException) -> Iterator[TracebackException]:
    """Yield the exceptions of a traceback: what led to each, and those of groups."""
    pending: list[TracebackException | None] = [summary]
    while pending:
        each = pending.pop()
        if each is not None:
            yield each
            pending += [each.__cause__, each.__context__, *(each.exceptions or ())]


def _shown_frames(stack: Sequence[FrameSummary]) -> list[FrameSummary]:
    """Return the frames of a traceback that say something, with shown paths.

    What the standard library did before it called a person's function, such as to start a thread, does not.
    """
    others = [frame for frame in stack if not frame.filename.startswith(_PLANWAVE)]
    from_own = list(dropwhile(lambda frame: _is_standard(frame.filename), others))
    frames = (from_own or others)[-_MAX_FRAMES:]
    for frame in frames:
        _ = frame.line  # read while the path is that of the file
        frame.filename = _portable_path(frame.filename)
    return frames


def _portable_path(file: str) -> str:
    """Return the path of a file below the working directory or where packages are, else its name."""
    path = Path(file)
    if file.startswith("<") or not path.is_absolute():
        return file
    for root in (str(Path.cwd()), *_INSTALLED, *_STANDARD):
        if path.is_relative_to(root):
            return str(path.relative_to(root))
    return path.name


def _shortened_text(text: str, most: int) -> str:
    """Return a text of at most so many characters and a note: its begin and its end."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"


def hides_inner_frames(function: Callable[P, R]) -> Callable[P, R]:
    """Let errors of planwave end the traceback at the call of a function; see ``shortened``."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            returned = function(*args, **kwargs)
        except PlanwaveError as error:
            raise shortened(error) from cause_of(error)
        if iscoroutine(returned):
            return cast("R", _awaited(returned))
        return returned

    return call


async def _awaited(returned: Coroutine[Any, Any, T]) -> T:
    try:
        return await returned
    except PlanwaveError as error:
        raise shortened(error) from cause_of(error)


def _is_standard(file: str) -> bool:
    # Installed packages are below the directory of the standard library.
    return file.startswith(_STANDARD) and not file.startswith(_INSTALLED)


def shown_path(file: str | None) -> str:
    """Return the path of a file, relative to the working directory if the file is below it."""
    path = Path(file or "?")
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
