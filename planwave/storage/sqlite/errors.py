"""Whose fault a database error is, and whether the disk can still be trusted after it."""

from __future__ import annotations

import errno
import sqlite3

from sqlalchemy.exc import DBAPIError

from planwave.errors import PlanwaveError, StoreError
from planwave.storage.records import DISK_FULL, READ_ONLY, STORE_BUSY

_ROW_ERRORS = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)

_RECOVERABLE = {
    sqlite3.SQLITE_FULL: (DISK_FULL, "the disk is full; free some space, then try again"),
    sqlite3.SQLITE_BUSY: (STORE_BUSY, "another program holds the database; close it"),
    sqlite3.SQLITE_LOCKED: (STORE_BUSY, "another program holds the database; close it"),
}


def cause_of(error: BaseException) -> BaseException:
    """Give the driver's own error behind one of SQLAlchemy's."""
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def is_store_failure(error: BaseException) -> bool:
    """Say whether database or disk failed, not the content of one write among others."""
    cause = cause_of(error)
    if isinstance(cause, _ROW_ERRORS):
        return False
    return isinstance(cause, sqlite3.Error | OSError | MemoryError)


def is_recoverable(error: BaseException) -> bool:
    """Say whether nothing was lost and the same write may be tried again later.

    A full disk is: SQLite drops the transaction and reuses its space in the log. An error of the
    disk itself is not: after a failed fsync nobody knows what is on disk.
    """
    return _primary_code(error) in _RECOVERABLE


def as_transient(error: BaseException) -> StoreError | None:
    """Give the error for a write that may be tried again later; None for one that may not."""
    code = _primary_code(error)
    if code not in _RECOVERABLE:
        return None
    name, hint = _RECOVERABLE[code]
    return StoreError(f"the store cannot write now: {error}", code=name, hint=hint)


def is_fatal(error: BaseException) -> bool:
    """Say whether a file that could not be written means that no write can be trusted any more."""
    return isinstance(error, OSError) and error.errno == errno.EIO


def to_store_error(error: BaseException) -> StoreError | PlanwaveError:
    """Give the error to tell a caller."""
    if isinstance(error, PlanwaveError):
        return error
    if (trouble := as_transient(error)) is not None:
        return trouble
    if isinstance(error, sqlite3.IntegrityError):
        if "executions.execution_id" in str(error):
            return StoreError("an execution of that id is stored", code="duplicate-execution")
        code = "duplicate-seq" if "batches.execution" in str(error) else "duplicate"
        return StoreError(f"the store already holds this: {error}", code=code)
    if is_store_failure(error):
        return StoreError(f"the store cannot write: {error}", code="store-failed")
    return StoreError(f"this cannot be stored: {error}", code="not-storable")


def store_read_only(cause: BaseException) -> StoreError:
    """Give the error for a write after the disk failed."""
    return StoreError(
        f"the store is read-only until restart, because a write failed: {cause}",
        code=READ_ONLY,
        hint="check the disk, then start planwave again",
    )


def _primary_code(error: BaseException) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:
        return sqlite3.SQLITE_FULL  # no room for the index of the log, which is never synced
    if isinstance(code, int):
        return code & 0xFF
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return sqlite3.SQLITE_FULL
    return None
