"""The store on PostgreSQL, which several processes may write."""

from __future__ import annotations

from importlib.util import find_spec

from planwave.errors import InputError


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
