"""The store on PostgreSQL, which several processes may write."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from planwave.errors import InputError

if TYPE_CHECKING:
    from planwave.storage.audit import AuditFiles


def require_driver() -> None:
    """Check that the driver of PostgreSQL is installed, which is an extra.

    Raises:
        InputError: ``postgres-unavailable``.
    """
    if find_spec("psycopg") is None:
        raise InputError(
            "the driver of PostgreSQL is not installed",
            code="postgres-unavailable",
            hint="pip install 'planwave[postgres]'",
        )


def open_audit_files(url: str) -> AuditFiles:
    """Return the files of the audit log of a database.

    Raises:
        InputError: ``postgres-unavailable``.
    """
    require_driver()
    # Lazy: test_a_directory_needs_nothing_of_postgresql
    from planwave.storage.postgres.audit import PostgresAuditFiles

    return PostgresAuditFiles(url)
