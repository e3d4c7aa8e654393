"""Errors for stored executions that cannot be read: a ``Conflict``, never a crash."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from planwave.errors import Conflict, InvalidTransition, PlanwaveError

UNREADABLE: Final = "unreadable"
_OF_DATA: Final = (
    ArithmeticError, InvalidTransition, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
"""Errors that reading code raises when stored data has a form that planwave never writes."""
_JSON: Final = (dict, list, str, int, float, type(None))


@contextmanager
def guard_stored(execution_id: str) -> Generator[None]:
    """Turn errors of code that reads a stored execution into a ``Conflict``.

    The stored data may be damaged, or changed from outside. An error that no data can cause is a bug
    of planwave or of a node type. It is a ``Conflict`` too, so that it stops this execution alone, but
    the message calls it a bug.

    Raises:
        Conflict: ``unreadable``: planwave did not store the data in this form, or the code that reads
            them has a bug.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, PlanwaveError) and not isinstance(error, InvalidTransition):
            raise
        why = f"{type(error).__name__}: {error}"
        if _is_of_data(error):
            raise unreadable_error(execution_id, why) from error
        raise Conflict(
            f"execution {execution_id} cannot be read because of a bug: {why} ({_place_of(error)})",
            code=UNREADABLE,
            hint="please report it; what is stored stays as it is, and another version may read it",
        ) from error


def _is_of_data(error: Exception) -> bool:
    """Return whether stored data may have caused an error."""
    if isinstance(error, AttributeError):  # of text in place of an object, say
        return isinstance(error.obj, _JSON)
    return isinstance(error, _OF_DATA)


def _place_of(error: Exception) -> str:
    """Return the function and the line that raised an error."""
    frame: Any = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    if frame is None:
        return "nowhere"
    code = frame.tb_frame.f_code
    module = str(frame.tb_frame.f_globals.get("__name__"))
    return f"{module}.{code.co_qualname}, line {frame.tb_lineno}"


def unreadable_error(execution_id: str, why: str) -> Conflict:
    """Return the error for stored data that were changed or removed from outside."""
    return Conflict(
        f"what is stored of execution {execution_id} cannot be read: {why}",
        code=UNREADABLE,
        hint="it was changed from outside: restore it from a backup, or delete it (DELETE "
        "/api/executions/ID, or `planwave prune` in time); one that has not ended is cancelled first",
    )
