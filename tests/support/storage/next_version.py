"""A made-up next version of planwave: one schema version ahead, with a column and a form of events of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, text

from planwave.events import Event
from planwave.storage.event_codec import decode_events
from planwave.storage.postgres.migrations import Migration, schema_hash
from planwave.storage.postgres.store import PostgresStore
from planwave.storage.sql import queries

NEXT_SCHEMA: Final = 2
COLUMN: Final = "executions.colour"
UNUSED_INDEX: Final = "executions_by_plan"
"""What the next version does without."""
NEXT_PLANWAVE: Final = """
from planwave import bootstrap
from tests.support.storage.next_version import NextStore
bootstrap._postgres_store = lambda: NextStore
from planwave.main import main
main()
"""
"""The program of a process of the next version."""
_FORM: Final = "2:"
"""How the text of events in the new form begins, which is no JSON: a process of this version cannot read it."""


class NextStore(PostgresStore):
    """The store of the next version."""

    migrations = (
        Migration(
            schema_hash(),
            expand=("ALTER TABLE executions ADD COLUMN colour text NOT NULL DEFAULT 'blue'",),
            contract=(f"DROP INDEX {UNUSED_INDEX}",),
        ),
    )

    def _encode(self, execution_id: str, events: Sequence[Event]) -> Any:
        batch, artifacts = super()._encode(execution_id, events)
        if batch is not None and self.common_schema >= NEXT_SCHEMA:
            batch = batch._replace(text=_FORM + batch.text)
        return batch, artifacts

    def _load_events(
        self, connection: Connection, execution_id: str, after: int = 0, limit: int | None = None
    ) -> list[Event]:
        rows = [
            (first, events.removeprefix(_FORM))
            for first, events in queries.batches_after(connection, execution_id, after, limit)
        ]
        return decode_events(execution_id, rows, after, limit, self._artifact_reader(connection))

    async def colour(self, execution_id: str) -> str:
        """Return the new column of an execution."""
        query = text("SELECT colour FROM executions WHERE execution_id = :of")
        return await self._read(lambda c: c.execute(query, {"of": execution_id}).scalar_one())

    async def forms(self, execution_id: str) -> list[int]:
        """Return the versions in whose forms the batches of an execution are stored."""
        rows = await self._read(lambda c: list(queries.batches_after(c, execution_id, 0, None)))
        return [NEXT_SCHEMA if events.startswith(_FORM) else 1 for _, events in rows]
