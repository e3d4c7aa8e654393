"""Classification of database and disk errors: the request, a transient failure, or a fatal one."""

from __future__ import annotations

import errno
import sqlite3

from sqlalchemy.exc import DBAPIError

from planwave.errors import PlanwaveError, StoreError, reason_of
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
    """Return the error of the driver that SQLAlchemy wrapped."""
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def is_store_failure(error: BaseException) -> bool:
    """Return whether the database or the disk failed, not the content of a write."""
    cause = cause_of(error)
    if isinstance(cause, _ROW_ERRORS):
        return False
    return isinstance(cause, sqlite3.Error | OSError | MemoryError)


def is_recoverable(error: BaseException) -> bool:
    """Return whether nothing was lost and the write can be retried later.

    After a full disk it can: SQLite drops the transaction and reuses its space in the WAL. After a
    disk error it cannot: after a failed fsync the content of the disk is unknown.
    """
    return _primary_code(error) in _RECOVERABLE


def as_transient(error: BaseException) -> StoreError | None:
    """Return the error of a write that can be retried later, or None if it cannot."""
    code = _primary_code(error)
    if code not in _RECOVERABLE:
        return None
    name, hint = _RECOVERABLE[code]
    return StoreError(f"the store cannot write now: {reason_of(error)}", code=name, hint=hint)


def is_fatal(error: BaseException) -> bool:
    """Return whether a failed file write means that further writes are unsafe."""
    return isinstance(error, OSError) and error.errno == errno.EIO


def to_store_error(error: BaseException) -> StoreError | PlanwaveError:
    """Return the error to raise to the caller."""
    if isinstance(error, PlanwaveError):
        return error
    if (transient := as_transient(error)) is not None:
        return transient
    if isinstance(error, sqlite3.IntegrityError):
        if "executions.execution_id" in str(error):
            return StoreError("an execution of that id is stored", code="duplicate-execution")
        code = "duplicate-seq" if "batches.execution" in str(error) else "duplicate"
        return StoreError(f"the store already holds this: {error}", code=code)
    if is_store_failure(error):
        return StoreError(f"the store cannot write: {reason_of(error)}", code="store-failed")
    return StoreError(f"this cannot be stored: {error}", code="not-storable")


def unreadable(error: BaseException) -> StoreError:
    """Return the error for a query that failed."""
    return StoreError(f"the store cannot be read: {cause_of(error)}", code="store-unreadable")


def store_read_only(cause: BaseException) -> StoreError:
    """Return the error for a write after the disk failed."""
    return StoreError(
        f"the store is read-only until restart, because a write failed: {reason_of(cause)}",
        code=READ_ONLY,
        hint="check the disk, then start this process again",
    )


def _primary_code(error: BaseException) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:
        return (
            sqlite3.SQLITE_FULL
        )  # no space for the shared memory index of the WAL, which is never synced
    if isinstance(code, int):
        return code & 0xFF
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return sqlite3.SQLITE_FULL
    return None
