"""How a database gets its tables, and how one of an older schema version is brought up to date."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from sqlalchemy import Column, Connection, Table, func, insert, or_, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateColumn

from planwave.errors import SchemaTooNew
from planwave.storage.event_codec import answers_of, stored_rows
from planwave.storage.files import artifact_digests
from planwave.storage.sqlite.appends import add_answers
from planwave.storage.sqlite.schema import (
    access_tokens,
    answered_requests,
    answers,
    approved_tools,
    artifact_uses,
    batches,
    chat_messages,
    chat_turns,
    chats,
    create_tables,
    deliveries,
    executions,
    flow_versions,
    flows,
    notification_targets,
    notifications,
    plan_revisions,
    plans,
    triggers,
)


def _batch_events(connection: Connection) -> None:
    """Up to version 1 there was a row for each event."""
    batches.create(connection)
    connection.exec_driver_sql(
        "INSERT INTO batches (execution, first, last, events) SELECT execution, seq, seq, "
        "'[[' || json_quote(at) || ',' || json_quote(type) || ',' || data || ',' || "
        "json_quote(path) || ',' || json_quote(attempt) || ']]' FROM events ORDER BY id"
    )
    connection.exec_driver_sql("DROP TABLE events")


def _index_lists(connection: Connection) -> None:
    """Up to version 2 there was no way to delete, no idempotency, and lists were short."""
    artifact_uses.create(connection)
    answers.create(connection)
    connection.exec_driver_sql("DROP INDEX executions_by_status")
    for index in executions.indexes:
        if index.name in ("executions_by_status", "executions_by_plan"):
            index.create(connection)
    found = connection.execute(
        select(batches.c.execution, batches.c.events).where(
            func.instr(batches.c.events, '"artifact":') > 0
        )
    )
    uses = {(digest, execution) for execution, text in found for digest in artifact_digests(text)}
    for digest, execution in sorted(uses):
        connection.execute(insert(artifact_uses).values(digest=digest, execution=execution))


def _note_queued(connection: Connection) -> None:
    """Up to version 3 a queued start did not outlive its process."""
    connection.exec_driver_sql(
        "ALTER TABLE executions ADD COLUMN queued INTEGER DEFAULT 0 NOT NULL"
    )


def _add_flows(connection: Connection) -> None:
    """Up to version 4 there were no flows."""
    flows.create(connection)
    flow_versions.create(connection)
    for column in ("plan_id", "flow_version"):
        connection.exec_driver_sql(f"ALTER TABLE executions ADD COLUMN {column} TEXT")
    for index in executions.indexes:
        if index.name == "executions_by_flow":
            index.create(connection)


def _add_revisions(connection: Connection) -> None:
    """Up to version 5 a plan could not be changed."""
    plan_revisions.create(connection)
    for column in (
        "edits INTEGER DEFAULT 0 NOT NULL",
        "author TEXT",
        "note TEXT DEFAULT '' NOT NULL",
        "updated_at TEXT",
    ):
        connection.exec_driver_sql(f"ALTER TABLE plans ADD COLUMN {column}")


def _index_answers(connection: Connection) -> None:
    """Up to version 6 answered requests could not be listed."""
    answered_requests.create(connection)
    found = connection.execute(
        select(batches.c.execution, batches.c.first, batches.c.events).where(
            or_(
                func.instr(batches.c.events, '"node.answered"') > 0,
                func.instr(batches.c.events, '"execution.resumed"') > 0,
            )
        )
    )
    raw: Any = connection.connection.driver_connection
    for execution, first, text in found.all():
        add_answers(raw, execution, answers_of(stored_rows(text), first))


def _add_triggers(connection: Connection) -> None:
    """Up to version 7 there were no triggers."""
    triggers.create(connection)
    deliveries.create(connection)


def _add_publishing(connection: Connection) -> None:
    """Up to version 8 flows could not be published; ``_add_flows`` makes the table as it is now."""
    columns = connection.exec_driver_sql("PRAGMA table_info(flows)").all()
    if any(column.name == "published" for column in columns):
        return
    connection.exec_driver_sql("ALTER TABLE flows ADD COLUMN published TEXT DEFAULT '' NOT NULL")


def _add_access_tokens(connection: Connection) -> None:
    """Up to version 9 only the operator had a token."""
    access_tokens.create(connection)


def _add_chats(connection: Connection) -> None:
    """Up to version 10 there were no chats."""
    for table in (chats, chat_messages, chat_turns):
        table.create(connection)


def _add_notifications(connection: Connection) -> None:
    """Up to version 11 nobody was notified of executions."""
    notification_targets.create(connection)
    notifications.create(connection)


_COLUMNS_OF_13: Final[tuple[Column[Any], ...]] = (
    executions.c.created_by,
    executions.c.parent_id,
    triggers.c.created_by,
    chats.c.created_by,
    plans.c.edited_by,
    plan_revisions.c.created_by,
    flows.c.updated_by,
    flow_versions.c.created_by,
    access_tokens.c.created_by,
    access_tokens.c.last_used_at,
)
_TABLES_OF_13: Final[tuple[Table, ...]] = (approved_tools,)


def _add_columns(connection: Connection) -> None:
    """Add what version 13 has besides; a table that an earlier step made has the columns already."""
    for column in _COLUMNS_OF_13:
        table = column.table.name
        found = connection.exec_driver_sql(f"PRAGMA table_info({table})")
        if column.name not in {row[1] for row in found}:
            definition = CreateColumn(column).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {definition}")
    for each in _TABLES_OF_13:
        each.create(connection, checkfirst=True)


MIGRATIONS: Final = (
    _batch_events, _index_lists, _note_queued, _add_flows, _add_revisions, _index_answers,
    _add_triggers, _add_publishing, _add_access_tokens, _add_chats,
    _add_notifications, _add_columns,
)  # fmt: skip
"""Step ``i`` takes a database from version ``i + 1`` to ``i + 2``."""

SCHEMA_VERSION: Final = len(MIGRATIONS) + 1


def version_of(connection: Connection) -> int:
    """Return the schema version of a database; 0 without tables.

    Raises:
        SchemaTooNew: A newer planwave wrote the database.
    """
    version = int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    if version > SCHEMA_VERSION:
        raise SchemaTooNew(
            f"the database has schema {version}, this planwave knows up to {SCHEMA_VERSION}",
            hint="use the planwave that wrote it, or a newer one",
        )
    return version


def migrate(connection: Connection) -> None:
    """Bring a database to the present schema in one transaction: wholly, or not at all.

    Raises:
        SchemaTooNew: A newer planwave wrote it.
    """
    version = version_of(connection)
    if version == SCHEMA_VERSION:
        return
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    try:
        if version == 0:
            create_tables(connection)
        else:
            for step in MIGRATIONS[version - 1 :]:
                step(connection)
        connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        with suppress(DBAPIError):  # a full disk may have undone it already
            connection.exec_driver_sql("ROLLBACK")
        raise
