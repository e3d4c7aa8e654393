from __future__ import annotations

import errno
import sqlite3

import pytest
from sqlalchemy.exc import OperationalError

from planwave.errors import Conflict
from planwave.storage.records import STORE_STATUSES, TRANSIENT_CODES
from planwave.storage.sql.errors import (
    as_transient,
    cause_of,
    is_recoverable,
    is_store_failure,
    to_store_error,
)


def of_sqlite(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("it went wrong")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (of_sqlite(sqlite3.SQLITE_FULL), "disk-full"),
        (of_sqlite(sqlite3.SQLITE_IOERR_SHMSIZE), "disk-full"),
        (OSError(errno.ENOSPC, "No space left on device"), "disk-full"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "disk-full"),
        (of_sqlite(sqlite3.SQLITE_BUSY), "store-busy"),
        (of_sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT), "store-busy"),
        (of_sqlite(sqlite3.SQLITE_LOCKED), "store-busy"),
    ],
)
def test_transient_error_has_its_code(error: Exception, code: str) -> None:
    trouble = as_transient(error)
    assert trouble is not None
    assert trouble.code == code
    assert trouble.hint
    assert is_recoverable(error)
    assert code in TRANSIENT_CODES <= STORE_STATUSES
    assert to_store_error(error).code == code


@pytest.mark.parametrize(
    "error",
    [
        of_sqlite(sqlite3.SQLITE_IOERR_FSYNC),
        of_sqlite(sqlite3.SQLITE_IOERR_WRITE),
        of_sqlite(sqlite3.SQLITE_CORRUPT),
        of_sqlite(sqlite3.SQLITE_READONLY),
        OSError(errno.EIO, "Input/output error"),
        OSError(errno.ENOENT, "No such file or directory"),
        MemoryError(),
    ],
)
def test_permanent_error_is_a_store_failure(error: Exception) -> None:
    assert as_transient(error) is None
    assert not is_recoverable(error)
    assert is_store_failure(error)
    assert to_store_error(error).code == "store-failed"


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("22021", "not-storable"),
        ("23502", "not-storable"),
        ("54000", "not-storable"),
        ("42501", "store-failed"),
        ("42P01", "store-failed"),
        ("0A000", "store-failed"),
        ("XX001", "store-failed"),
        ("P0001", "store-failed"),
    ],
)
def test_only_what_a_value_can_cause_is_the_fault_of_a_request(state: str, code: str) -> None:
    error = type("OfServer", (Exception,), {"sqlstate": state})("it went wrong")
    assert to_store_error(error).code == code
    assert not is_store_failure(error), "other writes go on"


def test_planwave_error_is_passed_on() -> None:
    found = Conflict("wrong moment")
    assert to_store_error(found) is found
    assert not is_store_failure(found)


def test_driver_error_is_unwrapped() -> None:
    full = of_sqlite(sqlite3.SQLITE_FULL)
    assert cause_of(OperationalError("INSERT", {}, full)) is full
