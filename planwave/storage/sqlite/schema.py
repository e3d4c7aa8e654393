"""The tables and their indexes."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import Final

from sqlalchemy import (
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

DELETED: Final = "deleted"
"""The status of a hidden execution; it has no texts and no plan, and its id is replaced."""

SCHEMA_HASH: Final = "52b34ed022791b8b52b5abe8fc26c97fda00f9cf1ad44a220c4172f0affe7203"
"""The hash of the tables and indexes below, as ``hash_of`` gives it; a changed table needs a new one.

Stated here, because to compute it takes some milliseconds of each start. Tables are created only where
the two agree.
"""

_TOKEN: Final = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+|[^\w\s]""", re.DOTALL
)

metadata = MetaData()

schema_hash = Table("schema_hash", metadata, Column("hash", Text, primary_key=True))
"""One row: the ``SCHEMA_HASH`` of the planwave that wrote the database."""

plans = Table(
    "plans",
    metadata,
    Column("plan_id", Text, primary_key=True),
    Column("created_at", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("user_prompt", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("search", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("edits", Integer, nullable=False, server_default=text("0")),
    Column("author", Text),
    Column("note", Text, nullable=False, server_default=text("''")),
    Column("updated_at", Text),
    Column("edited_by", Text),
    Column("name", Text),
    Column("name_key", Text),
    Column("description", Text, nullable=False, server_default=text("''")),
    Column("published", Text, nullable=False, server_default=text("''")),
    Column("sound_revision", Integer),
    Column("approved_revision", Integer),
    Column("approvals", Text, nullable=False, server_default=text("'{}'")),
    Index("plans_by_age", "created_at", "plan_id"),
    Index("flows_by_age", "created_at", "plan_id", sqlite_where=text("name IS NOT NULL")),
    Index("plans_by_name", "name_key", unique=True, sqlite_where=text("name_key IS NOT NULL")),
)
"""Every stored graph in its newest revision; one with a name is a flow. ``name_key`` is the name without
regard to case. ``published`` has the names of what a flow is published as, each between spaces; ``approvals`` is JSON,
``{hash: {"at", "by"}}``."""

revisions = Table(
    "revisions",
    metadata,
    Column("plan_id", Text, ForeignKey("plans.plan_id"), primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("hash", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("node_count", Integer, nullable=False),
    Column("error_count", Integer, nullable=False),
    Column("document", Text, nullable=False),
    Column("created_by", Text),
)
"""The revisions of plans before the newest one, which is in ``plans``."""

triggers = Table(
    "triggers",
    metadata,
    Column("trigger_id", Text, primary_key=True),
    Column("plan_id", Text, ForeignKey("plans.plan_id"), nullable=False),
    Column("node_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("revision", Integer),
    Column("enabled", Integer, nullable=False),
    Column("position", Text, nullable=False),
    Column("created_by", Text),
    Index("triggers_by_entry", "plan_id", "node_id", unique=True),
    Index("triggers_by_age", "created_at", "trigger_id"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("trigger_id", Text, ForeignKey("triggers.trigger_id"), nullable=False),
    Column("key", Text, nullable=False),
    Column("received_at", Text, nullable=False),
    Column("execution_id", Text, nullable=False),
    Column("outcome", Text),
    Column("note", Text, nullable=False),
    Column("reply", Text),
    Column("holder", Text, nullable=False),
    Index("deliveries_once", "trigger_id", "key", unique=True),
    Index("deliveries_by_age", "trigger_id", "received_at"),
)
"""What triggers received. The unique index is what keeps a delivery, or a slot of a schedule, from
being processed twice. ``holder`` is the opening of the store that works, or worked, on it."""

notification_targets = Table(
    "notification_targets",
    metadata,
    Column("target_id", Text, primary_key=True),
    Column("plan_id", Text, ForeignKey("plans.plan_id"), nullable=False),
    Column("url", Text, nullable=False),
    Column("secrets", Text, nullable=False),
    Column("events", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Index("notification_targets_by_flow", "plan_id"),
)
"""The targets of flows; those of the operator are settings. ``secrets`` and ``events`` are JSON."""

notifications = Table(
    "notifications",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("notification_id", Text, nullable=False, unique=True),
    Column("target_id", Text, nullable=False),
    Column("execution_id", Text, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("event", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("since", Text, nullable=False),
    Column("next_at", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("error", Text, nullable=False),
    Column("body", Text),
    Index("notifications_once", "target_id", "execution_id", "seq", unique=True),
    Index("notifications_due", "status", "next_at"),
    Index("notifications_by_age", "created_at", "notification_id"),
)
"""The outbox: a row is written by the commit that stores its event. No reference to
``notification_targets``: the operator's targets are not stored."""
access_tokens = Table(
    "access_tokens",
    metadata,
    Column("token_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("digest", Text, nullable=False, unique=True),
    Column("scopes", Text, nullable=False),
    Column("flows", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("requests_per_minute", Integer),
    Column("executions_per_minute", Integer),
    Column("expires_at", Text),
    Column("created_by", Text),
    Column("last_used_at", Text),
)

chats = Table(
    "chats",
    metadata,
    Column("chat_id", Text, primary_key=True),
    Column("created_at", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("plan_id", Text),
    Column("plan_revision", Integer),
    Column("node_id", Text),
    Column("config", Text),
    Column("head", Text),
    Column("revision", Integer, nullable=False),
    Column("search", Text, nullable=False),
    Column("created_by", Text),
    Index("chats_by_age", "created_at", "chat_id"),
)
"""``plan_id`` refers to no plan: a chat is read after its flow was deleted.
``plan_revision`` is pinned; ``revision`` counts the changes of the chat."""

chat_messages = Table(
    "chat_messages",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("message_id", Text, nullable=False),
    Column("chat_id", Text, ForeignKey("chats.chat_id"), nullable=False),
    Column("parent_id", Text),
    Column("role", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("execution_id", Text),
    Column("status", Text),
    Column("cursor", Integer, nullable=False),
    Column("is_cancelled", Integer, nullable=False),
    Column("blocks", Text, nullable=False),
    Column("usage", Text, nullable=False),
    Column("seed", Text, nullable=False),
    Index("chat_messages_by_name", "message_id", unique=True),
    Index("chat_messages_in_order", "chat_id", "id"),
    Index(
        "chat_messages_open",
        "id",
        sqlite_where=text("status IN ('starting', 'executing', 'paused')"),
    ),
)

chat_turns = Table(
    "chat_turns",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", Text, nullable=False),
    Column("execution_id", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("messages", Text, nullable=False),
    Column("is_complete", Integer, nullable=False),
    Index("chat_turns_once", "key", "execution_id", "path", unique=True),
    Index("chat_turns_in_order", "key", "id"),
)
"""What ``chat`` nodes with a memory remember, over executions."""

approved_tools = Table(
    "approved_tools",
    metadata,
    Column("server", Text, primary_key=True),
    Column("tool", Text, primary_key=True),
    Column("fingerprint", Text, nullable=False),
)
"""How the tools of MCP servers were described when a person last approved a call of each."""

executions = Table(
    "executions",
    metadata,
    Column("key", Integer, primary_key=True),
    Column("execution_id", Text, nullable=False, unique=True),
    Column("plan_id", Text),
    Column("status", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("started_at", Text),
    Column("completed_at", Text),
    Column("document_seq", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("queued", Integer, nullable=False, server_default=text("0")),
    Column("revision", Integer),
    Column("flow", Text),
    Column("created_by", Text),
    Column("parent_id", Text),
    Index("executions_by_age", "created_at", "execution_id"),
    Index("executions_by_status", "status", "created_at", "execution_id"),
    Index("executions_by_plan", "plan_id", "created_at", "execution_id"),
)
"""``last_seq`` is not here: it is the greatest ``last`` of ``batches``. ``created_by`` is a
principal as JSON, ``parent_id`` the execution that one is a fork of."""

execution_texts = Table(
    "execution_texts",
    metadata,
    Column("execution", Integer, ForeignKey("executions.key"), primary_key=True),
    Column("title", Text, nullable=False),
    Column("user_prompt", Text, nullable=False),
    Column("search", Text, nullable=False),
)
"""Apart from ``executions``, whose rows are rewritten with every change of status."""

batches = Table(
    "batches",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("execution", Integer, ForeignKey("executions.key"), nullable=False),
    Column("first", Integer, nullable=False),
    Column("last", Integer, nullable=False),
    Column("events", Text, nullable=False),
    Index("batches_in_order", "execution", "first", unique=True),
)
"""Events as they were appended: one row for each batch, ``rows.EncodedBatch`` says how.

A batch is written, read and made durable as one, and a row for each event would cost more than all
else that is done to keep it. A rowid table on purpose: long rows cost four times as much in a
WITHOUT ROWID table."""

answered_requests = Table(
    "answered_requests",
    metadata,
    Column("execution", Integer, ForeignKey("executions.key"), primary_key=True),
    Column("answer", Integer, primary_key=True),
    Column("request", Integer, nullable=False),
    Column("at", Text, nullable=False),
    Index("answered_requests_by_age", "at"),
)
"""Which events answer a request to a person; ``answer`` and ``request`` are their ``seq``."""

calls = Table(
    "calls",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("path", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    Column("request_hash", Text, primary_key=True),
    Column("reply", Text, nullable=False),
)

artifact_uses = Table(
    "artifact_uses",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("execution", Integer, ForeignKey("executions.key"), primary_key=True),
    Index("artifact_uses_by_execution", "execution"),
)
"""Which executions refer to a value in a file of its own; several may share one."""

answers = Table(
    "answers",
    metadata,
    Column("key", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("holder", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("status", Integer),
    Column("body", Text),
    Column("created_at", Text, nullable=False),
    Index("answers_by_age", "created_at"),
)
"""Requests under their idempotency keys. ``holder`` is the opening of the store that works, or
worked, on it: of another one than the present it is dead, for one process writes at a time."""


def create_tables(connection: Connection) -> None:
    """Make the tables and indexes of a new database.

    ``metadata.create_all`` would write the same SQL for each database, which takes longer than running
    it does.

    Raises:
        RuntimeError: ``SCHEMA_HASH`` is not theirs: a bug in planwave.
    """
    for statement in _statements(metadata):
        connection.exec_driver_sql(statement)
    if (computed := hash_of(connection)) != SCHEMA_HASH:
        raise RuntimeError(
            f"the tables were changed: SCHEMA_HASH in {__name__} is to be {computed!r}"
        )


def hash_of(connection: Connection) -> str:
    """Return the hash of all tables and indexes of a database; white space and comments do not count."""
    rows = connection.exec_driver_sql(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name"
    )
    tokens = (_TOKEN.findall(sql) for sql in rows.scalars())
    sql = "\n".join(" ".join(t for t in each if not t.startswith(("--", "/*"))) for each in tokens)
    return hashlib.sha256(sql.encode()).hexdigest()


@cache
def _statements(tables: MetaData) -> tuple[str, ...]:
    dialect = sqlite.dialect()
    return tuple(
        str(each.compile(dialect=dialect))
        for table in tables.sorted_tables
        for each in (CreateTable(table), *map(CreateIndex, table.indexes))
    )
