from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError

from planwave.errors import PlanwaveError, SchemaTooNew
from planwave.storage.postgres.connection import Interruption, connect
from planwave.storage.postgres.migrations import MIGRATIONS, _changing, migrate
from planwave.storage.sql.schema import metadata, shared_metadata
from tests.support.storage.postgres_server import PostgresServer

SCHEMA_VERSION = len(MIGRATIONS) + 1


@pytest.fixture
def empty_database(postgres: PostgresServer) -> Iterator[str]:
    postgres.execute("CREATE DATABASE empty")
    yield postgres.url("empty").replace("postgresql:", "postgresql+psycopg:")
    postgres.execute("DROP DATABASE empty WITH (FORCE)")


def migrate_at(url: str) -> str:
    """Migrate a database; return the code of the error, or ""."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            migrate(connection)
    except PlanwaveError as error:
        return error.code
    finally:
        engine.dispose()
    return ""


def test_processes_that_start_together_make_the_tables_once(empty_database: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(migrate_at, [empty_database] * 4)) == {""}
    engine = create_engine(empty_database)
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT version FROM schema_version").scalars().all()
        tables = set(
            connection.exec_driver_sql(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            ).scalars()
        )
    engine.dispose()
    assert rows == [SCHEMA_VERSION]
    made = {*metadata.tables, *shared_metadata.tables} - {"schema_hash"}
    assert tables == {*made, "schema_version"}


def test_a_connection_that_is_lost_in_a_migration_is_the_error(postgres: PostgresServer) -> None:
    def lose(connection: Connection) -> None:
        with _changing(connection):
            connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")

    with postgres.new_database() as url, pytest.raises(DBAPIError, match="connection"):
        lose(connect(url, Interruption()))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (f"version = {SCHEMA_VERSION + 1}, oldest = {SCHEMA_VERSION + 1}", SchemaTooNew.code),
        ("hash = 'another'", "storage-of-another-build"),
    ],
)
def test_the_tables_of_another_planwave_stay_as_they_are(
    empty_database: str, change: str, code: str
) -> None:
    assert migrate_at(empty_database) == ""
    engine = create_engine(empty_database, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"UPDATE schema_version SET {change}")  # noqa: S608
    engine.dispose()
    assert migrate_at(empty_database) == code


def test_a_process_waits_while_another_one_migrates(postgres: PostgresServer) -> None:
    with postgres.new_database() as url, psycopg.connect(url) as other, ThreadPoolExecutor() as own:
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended('planwave schema', 0))")
        connection = connect(url, lock_timeout_ms=10)
        migrated = own.submit(migrate, connection)
        with pytest.raises(TimeoutError):
            migrated.result(0.2)
        other.rollback()
        migrated.result(30)
        connection.close()
        connection.engine.dispose()


def test_a_process_that_stands_still_in_a_migration_goes_on_with_it(
    postgres: PostgresServer,
) -> None:
    with postgres.new_database() as url:
        connection = connect(url, lock_timeout_ms=1_000)
        connection.exec_driver_sql("SET idle_in_transaction_session_timeout = 20")
        with _changing(connection):
            time.sleep(0.2)
            connection.exec_driver_sql("CREATE TABLE made (id int)")
        assert connection.exec_driver_sql("SELECT to_regclass('made')").scalar() == "made"
        connection.close()
        connection.engine.dispose()
