"""Classification of database and disk errors: the request, a transient failure, or a fatal one.

Errors of PostgreSQL are told by SQLSTATE (psycopg's ``sqlstate``), so that psycopg is not imported for SQLite.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

from sqlalchemy.exc import DBAPIError

from planwave.errors import PlanwaveError, StoreError, reason_of
from planwave.storage.records import DISK_FULL, READ_ONLY, STORE_BUSY, STORE_UNREACHABLE

_ROW_ERRORS: Final = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)
_BUSY_CODES: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_BY_SQLSTATE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "08": STORE_UNREACHABLE,  # connection exception
        "25": STORE_UNREACHABLE,  # a standby, or a transaction that stood still for too long
        "40": STORE_BUSY,  # serialization failure, deadlock
        "53": STORE_BUSY,  # out of connections, memory
        "55": STORE_BUSY,  # a lock was not given in time
        "57": STORE_UNREACHABLE,  # shutdown, crash, starting up
        "58": STORE_UNREACHABLE,  # I/O error of the server
        "53100": DISK_FULL,
    }
)
"""The code of a failure by SQLSTATE, or by its class (PostgreSQL documentation, appendix A)."""
_OF_CONTENT: Final = ("22", "23", "54")
"""Data exception, integrity constraint, program limit: the only classes that the content of a write can cause."""
_NO_PRIVILEGE: Final = "42501"
_CONFLICTS: Final = ("40", "55P03")
"""Transactions that wait for each other, or a lock that another one holds for too long."""
_UNIQUE_VIOLATION: Final = "23505"
_HINTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        DISK_FULL: "the disk is full; free some space, then try again",
        STORE_BUSY: "another program holds the database; close it",
        STORE_UNREACHABLE: "see whether the database server runs and can be reached",
    }
)
_HINTS_OF_SERVER: Final[Mapping[str, str]] = MappingProxyType(
    {
        "53": "the database server has no room for another connection, or no memory; try again in a moment",
        **dict.fromkeys(
            ("40", "55"),
            "another transaction holds a lock of what this one changes, as pg_stat_activity shows; try again",
        ),
    }
)
"""The hints of busy servers, by the class of the SQLSTATE."""
DuplicateKind = Literal["duplicate-execution", "duplicate-seq", "duplicate"]


def cause_of(error: BaseException) -> BaseException:
    """Return the error of the driver that SQLAlchemy wrapped."""
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def is_store_failure(error: BaseException) -> bool:
    """Return whether the database or the disk failed, for every write; neither the content of one nor a lock."""
    cause = cause_of(error)
    if hasattr(cause, "sqlstate"):
        return _transient_code(cause) is not None and not is_conflict(cause)
    if isinstance(cause, _ROW_ERRORS):
        return False
    return isinstance(cause, sqlite3.Error | OSError | MemoryError)


def is_conflict(error: BaseException) -> bool:
    """Return whether a write waited for another transaction for too long: repeated later, it can succeed."""
    state = getattr(cause_of(error), "sqlstate", None)
    return isinstance(state, str) and state.startswith(_CONFLICTS)


def is_recoverable(error: BaseException) -> bool:
    """Return whether nothing was lost and the write can be retried later.

    After a full disk it can: SQLite drops the transaction and reuses its space in the WAL. After a
    disk error it cannot: after a failed fsync the content of the disk is unknown. A server of PostgreSQL knows
    its disk better: it restarts from its log, and the write can be retried.
    """
    return _transient_code(error) is not None


def as_transient(error: BaseException) -> StoreError | None:
    """Return the error of a write that can be retried later, or None if it cannot."""
    code = _transient_code(error)
    if code is None:
        return None
    message = f"the store cannot write now: {reason_of(error).strip()}"
    return StoreError(message, code=code, hint=_hint(error, code))


def is_fatal(error: BaseException) -> bool:
    """Return whether a failed file write means that further writes are unsafe."""
    return isinstance(error, OSError) and error.errno == errno.EIO


def to_store_error(error: BaseException) -> StoreError | PlanwaveError:
    """Return the error to raise to the caller."""
    if isinstance(error, PlanwaveError):
        return error
    if (transient := as_transient(error)) is not None:
        return transient
    if (kind := _duplicate_kind(error)) == "duplicate-execution":
        return StoreError("an execution of that id is stored", code=kind)
    if kind is not None:
        return StoreError(f"the store already holds this: {error}", code=kind)
    if is_store_failure(error) or not is_of_content(error):
        message = f"the store cannot write: {reason_of(error).strip()}"
        return StoreError(message, code="store-failed", hint=no_privilege_hint(error))
    return StoreError(f"this cannot be stored: {error}", code="not-storable")


def unreadable(error: BaseException) -> StoreError:
    """Return the error for a query that failed."""
    cause = cause_of(error)
    if (code := _transient_code(cause)) == STORE_UNREACHABLE:
        message = f"the store cannot be read now: {reason_of(cause).strip()}"
        return StoreError(message, code=code, hint=_HINTS[code])
    message = f"the store cannot be read: {cause}"
    return StoreError(message, code="store-unreadable", hint=no_privilege_hint(cause))


def no_answer(seconds: float) -> StoreError:
    """Return the error of a server that has not answered for so long."""
    message = f"the database server has given no answer for {seconds:.0f} s"
    return StoreError(message, code=STORE_UNREACHABLE, hint=_HINTS[STORE_UNREACHABLE])


def no_privilege_hint(error: BaseException) -> str | None:
    """Return what to do where the role of a database lacks a privilege; None for other errors."""
    if getattr(error, "sqlstate", None) != _NO_PRIVILEGE:
        return None
    return "make the role in database_url the owner of the database and its tables, or grant it ALL on them"


def is_of_content(error: BaseException) -> bool:
    """Return whether the content of a write may have caused an error that is not of the whole store."""
    state = getattr(error, "sqlstate", None)
    return state is None or state.startswith(_OF_CONTENT)


def _hint(error: BaseException, code: str) -> str:
    if code == STORE_BUSY and (state := getattr(error, "sqlstate", None)):
        return _HINTS_OF_SERVER[state[:2]]
    return _HINTS[code]


def store_read_only(cause: BaseException) -> StoreError:
    """Return the error for a write after the disk failed."""
    return StoreError(
        f"the store is read-only until restart, because a write failed: {reason_of(cause)}",
        code=READ_ONLY,
        hint="check the disk, then start this process again",
    )


def _duplicate_kind(error: BaseException) -> DuplicateKind | None:
    """Return what a row exists under already; None for other errors."""
    fact: Any = error
    if isinstance(error, sqlite3.IntegrityError):
        place = str(error)
    elif getattr(error, "sqlstate", None) == _UNIQUE_VIOLATION:
        place = fact.diag.constraint_name or ""
    else:
        return None
    if "executions.execution_id" in place or place == "executions_execution_id_key":
        return "duplicate-execution"
    if "batches.execution" in place or place == "batches_in_order":
        return "duplicate-seq"
    return "duplicate"


def _transient_code(error: BaseException) -> str | None:
    """Return the code of a failure that passes; None for others."""
    if hasattr(error, "sqlstate"):
        state: str | None = getattr(error, "sqlstate", None)
        if state is None:
            # Of the client: a connection that was lost or not made in time, or a value that the protocol does not have.
            kinds = (each.__name__ for each in type(error).__mro__)
            return STORE_UNREACHABLE if "OperationalError" in kinds else None
        return _BY_SQLSTATE.get(state) or _BY_SQLSTATE.get(state[:2])
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DISK_FULL
    match getattr(error, "sqlite_errorcode", None):
        case sqlite3.SQLITE_IOERR_SHMSIZE:
            # No space for the shared memory index of the WAL, which is never synced.
            return DISK_FULL
        case int(code) if code & 0xFF == sqlite3.SQLITE_FULL:
            return DISK_FULL
        case int(code) if code & 0xFF in _BUSY_CODES:
            return STORE_BUSY
        case _:
            return None
