"""The statements for what is known of executions beside their events: facts, labels, and what was spent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sqlalchemy import (
    Connection,
    LargeBinary,
    Table,
    Text,
    bindparam,
    delete,
    select,
    update,
)

from planwave.storage.event_codec import storable_text
from planwave.storage.execution_facts import ExecutionFacts, Spend
from planwave.storage.records import NO_LABELS
from planwave.storage.search_signatures import merge_signatures, signature_of
from planwave.storage.sql.dialects import upsert
from planwave.storage.sql.lists import labels_from_row
from planwave.storage.sql.schema import (
    execution_labels,
    execution_search,
    executions,
    search_signatures,
    spend,
)

_SET_SUMS: Final = (
    update(executions)
    .where(executions.c.execution_id == bindparam("of"))
    .values(
        tokens=bindparam("sum_tokens"),
        cost_usd=bindparam("sum_cost"),
        duration_s=bindparam("seconds"),
        outcome=bindparam("became"),
    )
)


_LABEL_WORDS: Final = select(executions.c.execution_id, execution_labels.c.search).join(
    execution_labels, execution_labels.c.execution == executions.c.key
)


def save_facts(connection: Connection, facts: Mapping[str, ExecutionFacts]) -> None:
    """Store the facts of executions, in place of those before; what was spent stays of deleted ones too."""
    if not facts:
        return
    connection.execute(
        _SET_SUMS,
        [
            {
                "of": own,
                "sum_tokens": each.tokens,
                "sum_cost": each.cost_usd,
                "seconds": each.duration_s,
                "became": each.outcome,
            }
            for own, each in facts.items()
        ],
    )
    texts = {own: each.text for own, each in facts.items() if each.text}
    _put(connection, execution_search, "search", Text(), texts)
    signatures = {own: each.signature for own, each in facts.items()}
    for own, words in connection.execute(_LABEL_WORDS.where(executions.c.execution_id.in_(facts))):
        signatures[own] = merge_signatures(signatures[own], signature_of(words))
    _put(connection, search_signatures, "signature", LargeBinary(), signatures)
    add_spend(connection, (entry for each in facts.values() for entry in each.spend))


def _put(
    connection: Connection, table: Table, column: str, kind: Any, values: Mapping[str, Any]
) -> None:
    """Insert or replace the rows of executions in a table with one column; deleted ones get none."""
    if not values:
        return
    new = upsert(connection, table).from_select(
        ["execution", column],
        select(executions.c.key, bindparam("given", type_=kind)).where(
            executions.c.execution_id == bindparam("of")
        ),
    )
    statement = new.on_conflict_do_update(
        index_elements=["execution"], set_={column: new.excluded[column]}
    )
    connection.execute(statement, [{"of": own, "given": each} for own, each in values.items()])


def add_spend(connection: Connection, entries: Iterable[Spend]) -> None:
    """Store what was spent, in place of what was stored of the same subject, day and model."""
    rows = [
        {
            "subject": each.subject,
            "day": each.day,
            "provider": each.provider,
            "model": each.model,
            "kind": each.kind,
            "plan_id": each.plan_id,
            "calls": each.usage.calls,
            "input_tokens": int(each.usage.input_tokens),
            "output_tokens": int(each.usage.output_tokens),
            "cost_usd": each.usage.cost_usd,
            "unpriced": each.unpriced,
        }
        for each in entries
    ]
    if not rows:
        return
    new = upsert(connection, spend)
    replaced = {column.name: column for column in new.excluded if not column.primary_key}
    keys = [column.name for column in spend.primary_key]
    connection.execute(new.on_conflict_do_update(index_elements=keys, set_=replaced), rows)


def save_labels(connection: Connection, execution_id: str, changes: Mapping[str, Any]) -> bool:
    """Change some fields of the ``ExecutionLabels`` of an execution; return whether there is such an execution."""
    found = connection.execute(
        select(executions.c.key, execution_labels)
        .outerjoin(execution_labels, execution_labels.c.execution == executions.c.key)
        .where(executions.c.execution_id == execution_id)
        .with_for_update(of=executions)
    ).first()
    if found is None:
        return False
    before = labels_from_row(found.name, found.tags, found.note, found.starred)
    labels = before._replace(**changes)
    if labels == NO_LABELS:
        own = execution_labels.c.execution == found.key
        connection.execute(delete(execution_labels).where(own))
        return True
    search = storable_text("\n".join((labels.name or "", *labels.tags, labels.note))).casefold()
    row = {
        "execution": found.key,
        "name": None if labels.name is None else storable_text(labels.name),
        "tags": storable_text("".join(f"\n{tag}" for tag in labels.tags) + "\n"),
        "note": storable_text(labels.note),
        "starred": int(labels.starred),
        "search": search,
    }
    new = upsert(connection, execution_labels).values(row)
    replaced = {column.name: column for column in new.excluded if not column.primary_key}
    connection.execute(new.on_conflict_do_update(index_elements=["execution"], set_=replaced))
    _widen_signature(connection, found.key, search)
    return True


def _widen_signature(connection: Connection, key: int, words: str) -> None:
    """Have a search look for these words in an execution too, if it has a signature."""
    own = search_signatures.c.execution == key
    before = connection.execute(select(search_signatures.c.signature).where(own)).scalar()
    if before is not None:
        wider = merge_signatures(before, signature_of(words))
        connection.execute(update(search_signatures).where(own).values(signature=wider))
