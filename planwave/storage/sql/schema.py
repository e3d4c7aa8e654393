"""The tables and their indexes."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import Final

from sqlalchemy import (
    Column,
    Connection,
    DateTime,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    text,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from planwave.storage.sql.dialects import KEY, TEXT

DELETED: Final = "deleted"
"""The status of a hidden execution; it has no texts and no plan, and its id is replaced."""

SCHEMA_HASH: Final = "a7bedac3e31d94cfd1477dce4cf761b5adb09050e6f714e78aa0972f8ee6e7c0"
"""The hash of the tables and indexes below, as ``hash_of`` gives it; a changed table needs a new one.

Stated here, because to compute it takes some milliseconds of each start. Tables are created only where
the two agree.
"""

_TOKEN: Final = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+|[^\w\s]""", re.DOTALL
)

metadata = MetaData()

schema_hash = Table("schema_hash", metadata, Column("hash", TEXT, primary_key=True))
"""One row: the ``SCHEMA_HASH`` of the planwave that wrote the database."""

plans = Table(
    "plans",
    metadata,
    Column("plan_id", TEXT, primary_key=True),
    Column("created_at", TEXT, nullable=False),
    Column("title", TEXT, nullable=False),
    Column("user_prompt", TEXT, nullable=False),
    Column("hash", TEXT, nullable=False),
    Column("search", TEXT, nullable=False),
    Column("document", TEXT, nullable=False),
    Column("edits", Integer, nullable=False, server_default=text("0")),
    Column("author", TEXT),
    Column("note", TEXT, nullable=False, server_default=text("''")),
    Column("updated_at", TEXT),
    Column("edited_by", TEXT),
    Column("name", TEXT),
    Column("name_key", TEXT),
    Column("description", TEXT, nullable=False, server_default=text("''")),
    Column("published", TEXT, nullable=False, server_default=text("''")),
    Column("sound_revision", Integer),
    Column("approved_revision", Integer),
    Column("approvals", TEXT, nullable=False, server_default=text("'{}'")),
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
    Column("plan_id", TEXT, ForeignKey("plans.plan_id"), primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("hash", TEXT, nullable=False),
    Column("title", TEXT, nullable=False),
    Column("author", TEXT, nullable=False),
    Column("note", TEXT, nullable=False),
    Column("created_at", TEXT, nullable=False),
    Column("node_count", Integer, nullable=False),
    Column("error_count", Integer, nullable=False),
    Column("document", TEXT, nullable=False),
    Column("created_by", TEXT),
)
"""The revisions of plans before the newest one, which is in ``plans``."""

input_sets = Table(
    "input_sets",
    metadata,
    Column("plan_id", TEXT, ForeignKey("plans.plan_id"), primary_key=True),
    Column("name", TEXT, primary_key=True),
    Column("inputs", TEXT, nullable=False),
    Column("created_at", TEXT, nullable=False),
    Column("updated_at", TEXT, nullable=False),
    Column("created_by", TEXT),
)
"""Inputs of flows that were saved under a name. ``inputs`` is JSON, in the form in which an execution is given them."""

triggers = Table(
    "triggers",
    metadata,
    Column("trigger_id", TEXT, primary_key=True),
    Column("plan_id", TEXT, ForeignKey("plans.plan_id"), nullable=False),
    Column("node_id", TEXT, nullable=False),
    Column("kind", TEXT, nullable=False),
    Column("created_at", TEXT, nullable=False),
    Column("revision", Integer),
    Column("enabled", Integer, nullable=False),
    Column("position", TEXT, nullable=False),
    Column("created_by", TEXT),
    Index("triggers_by_entry", "plan_id", "node_id", unique=True),
    Index("triggers_by_age", "created_at", "trigger_id"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", KEY, primary_key=True),
    Column("trigger_id", TEXT, ForeignKey("triggers.trigger_id"), nullable=False),
    Column("key", TEXT, nullable=False),
    Column("received_at", TEXT, nullable=False),
    Column("execution_id", TEXT, nullable=False),
    Column("outcome", TEXT),
    Column("note", TEXT, nullable=False),
    Column("reply", TEXT),
    Column("holder", TEXT, nullable=False),
    Index("deliveries_once", "trigger_id", "key", unique=True),
    Index("deliveries_by_age", "trigger_id", "received_at"),
)
"""What triggers received. The unique index is what keeps a delivery, or a slot of a schedule, from
being processed twice. ``holder`` is the opening of the store that works, or worked, on it."""

notification_targets = Table(
    "notification_targets",
    metadata,
    Column("target_id", TEXT, primary_key=True),
    Column("plan_id", TEXT, ForeignKey("plans.plan_id"), nullable=False),
    Column("url", TEXT, nullable=False),
    Column("secrets", TEXT, nullable=False),
    Column("events", TEXT, nullable=False),
    Column("created_at", TEXT, nullable=False),
    Index("notification_targets_by_flow", "plan_id"),
)
"""The targets of flows; those of the operator are settings. ``secrets`` and ``events`` are JSON."""

notifications = Table(
    "notifications",
    metadata,
    Column("id", KEY, primary_key=True),
    Column("notification_id", TEXT, nullable=False, unique=True),
    Column("target_id", TEXT, nullable=False),
    Column("execution_id", TEXT, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("event", TEXT, nullable=False),
    Column("created_at", TEXT, nullable=False),
    Column("since", TEXT, nullable=False),
    Column("next_at", TEXT, nullable=False),
    Column("status", TEXT, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("error", TEXT, nullable=False),
    Column("body", TEXT),
    Index("notifications_once", "target_id", "execution_id", "seq", unique=True),
    Index("notifications_due", "status", "next_at"),
    Index("notifications_by_age", "created_at", "notification_id"),
)
"""The outbox: a row is written by the commit that stores its event. No reference to
``notification_targets``: the operator's targets are not stored."""
access_tokens = Table(
    "access_tokens",
    metadata,
    Column("token_id", TEXT, primary_key=True),
    Column("name", TEXT, nullable=False),
    Column("digest", TEXT, nullable=False, unique=True),
    Column("scopes", TEXT, nullable=False),
    Column("flows", TEXT, nullable=False),
    Column("created_at", TEXT, nullable=False),
    Column("requests_per_minute", Integer),
    Column("executions_per_minute", Integer),
    Column("expires_at", TEXT),
    Column("created_by", TEXT),
    Column("last_used_at", TEXT),
)

links = Table(
    "links",
    metadata,
    Column("link_id", TEXT, primary_key=True),
    Column("digest", TEXT, nullable=False, unique=True),
    Column("kind", TEXT, nullable=False),
    Column("execution_id", TEXT, nullable=False),
    Column("created_at", TEXT, nullable=False),
    Column("expires_at", TEXT, nullable=False),
    Column("request_id", TEXT),
    Column("target", TEXT),
    Column("created_by", TEXT),
    Column("ended", TEXT),
    Index("links_by_age", "created_at", "link_id"),
    Index("links_by_execution", "execution_id"),
)
"""Links to executions. ``execution_id`` refers to no execution: for some time a link says that it was deleted."""

chats = Table(
    "chats",
    metadata,
    Column("chat_id", TEXT, primary_key=True),
    Column("created_at", TEXT, nullable=False),
    Column("updated_at", TEXT, nullable=False),
    Column("title", TEXT, nullable=False),
    Column("plan_id", TEXT),
    Column("plan_revision", Integer),
    Column("node_id", TEXT),
    Column("config", TEXT),
    Column("head", TEXT),
    Column("revision", Integer, nullable=False),
    Column("search", TEXT, nullable=False),
    Column("created_by", TEXT),
    Index("chats_by_age", "created_at", "chat_id"),
)
"""``plan_id`` refers to no plan: a chat is read after its flow was deleted.
``plan_revision`` is pinned; ``revision`` counts the changes of the chat."""

chat_messages = Table(
    "chat_messages",
    metadata,
    Column("id", KEY, primary_key=True),
    Column("message_id", TEXT, nullable=False),
    Column("chat_id", TEXT, ForeignKey("chats.chat_id"), nullable=False),
    Column("parent_id", TEXT),
    Column("role", TEXT, nullable=False),
    Column("origin", TEXT, nullable=False),
    Column("created_at", TEXT, nullable=False),
    Column("execution_id", TEXT),
    Column("status", TEXT),
    Column("cursor", Integer, nullable=False),
    Column("is_cancelled", Integer, nullable=False),
    Column("blocks", TEXT, nullable=False),
    Column("usage", TEXT, nullable=False),
    Column("seed", TEXT, nullable=False),
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
    Column("id", KEY, primary_key=True),
    Column("key", TEXT, nullable=False),
    Column("execution_id", TEXT, nullable=False),
    Column("path", TEXT, nullable=False),
    Column("at", TEXT, nullable=False),
    Column("messages", TEXT, nullable=False),
    Column("is_complete", Integer, nullable=False),
    Index("chat_turns_once", "key", "execution_id", "path", unique=True),
    Index("chat_turns_in_order", "key", "id"),
)
"""What ``chat`` nodes with a memory remember, over executions."""

approved_tools = Table(
    "approved_tools",
    metadata,
    Column("server", TEXT, primary_key=True),
    Column("tool", TEXT, primary_key=True),
    Column("fingerprint", TEXT, nullable=False),
)
"""How the tools of MCP servers were described when a person last approved a call of each."""

executions = Table(
    "executions",
    metadata,
    Column("key", KEY, primary_key=True),
    Column("execution_id", TEXT, nullable=False, unique=True),
    Column("plan_id", TEXT),
    Column("status", TEXT, nullable=False),
    Column("created_at", TEXT, nullable=False),
    Column("started_at", TEXT),
    Column("completed_at", TEXT),
    Column("document_seq", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("queued", Integer, nullable=False, server_default=text("0")),
    Column("revision", Integer),
    Column("flow", TEXT),
    Column("created_by", TEXT),
    Column("parent_id", TEXT),
    Column("needs", TEXT),
    Column("tokens", Integer),
    Column("cost_usd", Double),
    Column("duration_s", Double),
    Column("outcome", TEXT),
    Index("executions_by_age", "created_at", "execution_id"),
    Index("executions_by_status", "status", "created_at", "execution_id"),
    Index("executions_by_plan", "plan_id", "created_at", "execution_id"),
)
"""``last_seq`` is not here: it is the greatest ``last`` of ``batches``. ``created_by`` is a
principal as JSON, ``parent_id`` the execution that one is a fork of, ``needs`` the capability without which no process
can drive it. ``tokens``, ``cost_usd``, ``duration_s`` and ``outcome`` are known from its first pause, or its end, on; see
``execution_facts``."""

execution_texts = Table(
    "execution_texts",
    metadata,
    Column("execution", KEY, ForeignKey("executions.key"), primary_key=True),
    Column("title", TEXT, nullable=False),
    Column("user_prompt", TEXT, nullable=False),
    Column("search", TEXT, nullable=False),
)
"""Apart from ``executions``, whose rows are rewritten with every change of status."""

execution_labels = Table(
    "execution_labels",
    metadata,
    Column("execution", KEY, ForeignKey("executions.key"), primary_key=True),
    Column("name", TEXT),
    Column("tags", TEXT, nullable=False),
    Column("note", TEXT, nullable=False),
    Column("starred", Integer, nullable=False),
    Column("search", TEXT, nullable=False),
)
"""What people call their executions; of those that somebody has labelled only. Each of the ``tags`` stands between line
ends. ``search`` has name, tags and note, folded."""

execution_search = Table(
    "execution_search",
    metadata,
    Column("execution", KEY, ForeignKey("executions.key"), primary_key=True),
    Column("search", TEXT, nullable=False),
)
"""What is searched of an execution beside title and goal: the words of its result and its steps, folded and bounded."""

search_signatures = Table(
    "search_signatures",
    metadata,
    Column("execution", KEY, ForeignKey("executions.key"), primary_key=True),
    Column("signature", LargeBinary, nullable=False),
)
"""See ``planwave.storage.search_signatures``; apart from the texts, which a search need not read then."""

spend = Table(
    "spend",
    metadata,
    Column("subject", TEXT, primary_key=True),
    Column("day", TEXT, primary_key=True),
    Column("provider", TEXT, primary_key=True),
    Column("model", TEXT, primary_key=True),
    Column("kind", TEXT, nullable=False),
    Column("plan_id", TEXT),
    Column("calls", Integer, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("cost_usd", Double),
    Column("unpriced", Integer, nullable=False),
    Index("spend_by_day", "day"),
)
"""What calls of models used, by the execution or the plan that they were made for. It stays when these are deleted: it
was paid. ``cost_usd`` is the known part; ``unpriced`` calls have no known price."""

batches = Table(
    "batches",
    metadata,
    Column("id", KEY, primary_key=True),
    Column("execution", KEY, ForeignKey("executions.key"), nullable=False),
    Column("first", Integer, nullable=False),
    Column("last", Integer, nullable=False),
    Column("events", TEXT, nullable=False),
    Index("batches_in_order", "execution", "first", unique=True),
)
"""Events as they were appended: one row for each batch, ``event_codec.EncodedBatch`` says how.

A batch is written, read and made durable as one, and a row for each event would cost more than all
else that is done to keep it. A rowid table on purpose: long rows cost four times as much in a
WITHOUT ROWID table."""

answered_requests = Table(
    "answered_requests",
    metadata,
    Column("execution", KEY, ForeignKey("executions.key"), primary_key=True),
    Column("answer", Integer, primary_key=True),
    Column("request", Integer, nullable=False),
    Column("at", TEXT, nullable=False),
    Index("answered_requests_by_age", "at"),
)
"""Which events answer a request to a person; ``answer`` and ``request`` are their ``seq``."""

calls = Table(
    "calls",
    metadata,
    Column("execution_id", TEXT, primary_key=True),
    Column("path", TEXT, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    Column("request_hash", TEXT, primary_key=True),
    Column("reply", TEXT, nullable=False),
)

artifact_uses = Table(
    "artifact_uses",
    metadata,
    Column("digest", TEXT, primary_key=True),
    Column("execution", KEY, ForeignKey("executions.key"), primary_key=True),
    Index("artifact_uses_by_execution", "execution"),
)
"""Which executions refer to a value in a file of its own; several may share one."""

answers = Table(
    "answers",
    metadata,
    Column("key", TEXT, primary_key=True),
    Column("digest", TEXT, nullable=False),
    Column("holder", TEXT, nullable=False),
    Column("subject", TEXT, nullable=False),
    Column("status", Integer),
    Column("body", TEXT),
    Column("created_at", TEXT, nullable=False),
    Index("answers_by_age", "created_at"),
)
"""Requests under their idempotency keys. ``holder`` is the opening of the store that works, or
worked, on it: of a directory another one than the present is dead, for one process writes at a time; of a database
``holders`` says it."""


shared_metadata = MetaData()
"""The further tables of databases that several processes write."""

holders = Table(
    "holders",
    shared_metadata,
    Column("holder_id", TEXT, primary_key=True),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("started_at", DateTime(timezone=True), nullable=False),
    Column("version", TEXT, nullable=False),
    Column("schema_version", Integer, nullable=False),
    Column("capabilities", TEXT, nullable=False, server_default=text("''")),
)
"""The openings of the store, each with the schema version that it knows, and with what its process can do that
others may not, separated by commas. One that has not said for some time that it is alive has expired: what it
claimed is free. Times are those of the server."""

artifacts = Table(
    "artifacts",
    shared_metadata,
    Column("digest", TEXT, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
"""Values that are too large to be stored with their events, as ``artifact_uses`` says of which."""

owners = Table(
    "owners",
    shared_metadata,
    Column("execution_id", TEXT, primary_key=True),
    Column("holder_id", TEXT, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("takeovers", Integer, nullable=False),
    Index("owners_by_holder", "holder_id"),
)
"""Which opening drives an execution just now. ``takeovers`` is how often another one took it over since it last
came to rest."""

submissions = Table(
    "submissions",
    shared_metadata,
    Column("execution_id", TEXT, primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")),
    Index("submissions_by_age", "at"),
)
"""The outbox to the carrier: what makes an execution go on writes a row in the same commit, which is deleted
once the carrier knows it."""

commands = Table(
    "commands",
    shared_metadata,
    Column("id", KEY, primary_key=True),
    Column("execution_id", TEXT, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")),
    Column("command", TEXT, nullable=False),
    Column("outcome", TEXT),
    Column("begun_by", TEXT),
    Index("commands_open", "execution_id", "id", sqlite_where=text("outcome IS NULL")),
    Index("commands_by_age", "at"),
)
"""Commands for executions that another opening drives, and what came of each; both are JSON. ``begun_by`` is the
opening that began to carry it out: it may have done so, and ended before it could say."""

followers = Table(
    "followers",
    shared_metadata,
    Column("execution_id", TEXT, primary_key=True),
    Column("holder_id", TEXT, primary_key=True),
    Index("followers_by_holder", "holder_id"),
)
"""Which openings have clients of an execution that is cancelled when the last client leaves."""

closed_sessions = Table(
    "closed_sessions",
    shared_metadata,
    Column("claims", TEXT, primary_key=True),
    Column("ends_at", Double, nullable=False),
)
"""Sessions of browsers that were closed before their end; ``ends_at`` is seconds since the epoch."""

audit_lines = Table(
    "audit_lines",
    shared_metadata,
    Column("file", TEXT, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("line", TEXT, nullable=False),
)
"""The audit logs of processes that share the database: the lines of files, which only get more."""

provider_shares = Table(
    "provider_shares",
    shared_metadata,
    Column("provider", TEXT, primary_key=True),
    Column("holder_id", TEXT, primary_key=True),
    Column("demand", Integer, nullable=False),
    Column("concurrency", Integer, nullable=False),
    Column("per_minute", Integer),
    Column("expires_at", DateTime(timezone=True), nullable=False),
)
"""What each opening may use of the limits of a provider. ``demand`` is the calls that it has or that wait."""

secret_keys = Table(
    "secret_keys",
    shared_metadata,
    Column("name", TEXT, primary_key=True),
    Column("key", LargeBinary, nullable=False),
)
"""Random bytes that all processes sign with."""


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
