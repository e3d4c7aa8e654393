"""Lists of plans and executions: newest first, filtered, in pages.

The SQL of each combination of filters is compiled once and cached, because SQLAlchemy needs as long to
build a statement as SQLite to run it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, cast

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Double,
    FromClause,
    Integer,
    LargeBinary,
    Text,
    and_,
    bindparam,
    func,
    or_,
    select,
    tuple_,
)
from sqlalchemy.engine.default import DefaultDialect

from planwave.principals import OPERATOR, Principal
from planwave.storage.errors import unknown_cursor
from planwave.storage.event_codec import ACTIVE_STATUSES, OPEN_STATUSES, storable_text
from planwave.storage.records import (
    COUNTED_MATCHES,
    NEWEST_FIRST,
    NO_LABELS,
    AnsweredRequest,
    Approval,
    ExecutionFilters,
    ExecutionLabels,
    ExecutionRecord,
    ExecutionSort,
    PageCursor,
    PlanRecord,
    StoredLoad,
)
from planwave.storage.search_signatures import TESTS, tests_of
from planwave.storage.sql.dialects import NAMED_PARAMETERS, database_bytes, position_of
from planwave.storage.sql.schema import (
    DELETED,
    answered_requests,
    batches,
    execution_labels,
    execution_search,
    execution_texts,
    executions,
    plans,
    search_signatures,
)

LAST_SEQ: Final[ColumnElement[int]] = func.coalesce(
    select(batches.c.last)
    .where(batches.c.execution == executions.c.key)
    .order_by(batches.c.first.desc())
    .limit(1)
    .correlate(executions)
    .scalar_subquery(),
    0,
)


class ListQuery:
    """A list of rows of one kind.

    Args:
        columns: The selected columns.
        source: The table or join.
        created: The column of the creation time, by which the list is sorted, then by ``own_id``.
        own_id: The column of the id.
        choices: The filters by name, each a condition with a parameter of its name.
        orders: What else the list can be sorted by, before these two; never null.
    """

    def __init__(
        self,
        columns: Sequence[ColumnElement[Any]],
        source: FromClause,
        created: Column[str],
        own_id: Column[str],
        choices: Mapping[str, ColumnElement[bool]],
        orders: Mapping[str, ColumnElement[Any]] = MappingProxyType({}),
    ) -> None:
        self._columns = columns
        self._source = source
        self._created = created
        self._own_id = own_id
        self._filters = {**choices, "own_id": own_id == query_parameter("own_id")}
        self._orders = orders
        self._sql = lru_cache(maxsize=None)(self._compile)

    def one(self, connection: Connection, own_id: str) -> Sequence[Any] | None:
        """Return the row with this id, or None."""
        return next(iter(self._rows(connection, {"own_id": own_id}, 1)), None)

    def page(
        self,
        connection: Connection,
        filters: Mapping[str, str | None],
        before: str | PageCursor | None,
        limit: int,
        sort: ExecutionSort = NEWEST_FIRST,
    ) -> Sequence[Any]:
        """Return one page of the list; filters that are None do not apply.

        Raises:
            NotFound: ``before`` is an unknown id.
        """
        chosen: dict[str, Any] = {
            name: value for name, value in filters.items() if value is not None
        }
        if isinstance(before, str):
            seen = connection.execute(select(self._created).where(self._own_id == before)).first()
            if seen is None:
                raise unknown_cursor(before)
            before = PageCursor(seen[0], before)
        if before is not None:
            chosen["seen_at"], chosen["seen_id"] = before[:2]
            if sort.by in self._orders:
                chosen["seen_value"] = before.value
        return self._rows(connection, chosen, max(limit, 0), sort)

    def _rows(
        self,
        connection: Connection,
        chosen: Mapping[str, Any],
        limit: int,
        sort: ExecutionSort = NEWEST_FIRST,
    ) -> Sequence[Any]:
        sql, values = self._sql(
            frozenset(chosen), sort, cast("type[DefaultDialect]", type(connection.dialect))
        )
        parameters = storable_values(chosen)
        return connection.exec_driver_sql(sql, {**values, **parameters, "most": limit}).fetchall()

    def _compile(
        self, chosen: frozenset[str], sort: ExecutionSort, dialect: type[DefaultDialect]
    ) -> tuple[str, dict[str, Any]]:
        conditions = [self._filters[name] for name in sorted(chosen) if name in self._filters]
        order: list[ColumnElement[Any]] = [self._created, self._own_id]
        seen = [query_parameter("seen_at"), query_parameter("seen_id")]
        if (first := self._orders.get(sort.by)) is not None:
            order.insert(0, first)
            seen.insert(0, bindparam("seen_value", type_=first.type))
        if "seen_at" in chosen:
            place, after = tuple_(*order), tuple_(*seen)
            conditions.append(place < after if sort.descending else place > after)
        statement = (
            select(*self._columns)
            .select_from(self._source)
            .where(*conditions)
            .order_by(*(each.desc() if sort.descending else each.asc() for each in order))
            .limit(bindparam("most", type_=Integer))
        )
        compiled = statement.compile(dialect=dialect(paramstyle=NAMED_PARAMETERS[dialect.name]))
        return str(compiled), dict(compiled.params)


def query_parameter(name: str) -> ColumnElement[str]:
    """Stand for what a choice is given."""
    return bindparam(name, type_=Text)


def storable_values(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return what choices are given, as every database can hold it."""
    return {
        name: storable_text(value) if isinstance(value, str) else value
        for name, value in chosen.items()
    }


def contains(column: Column[str]) -> ColumnElement[bool]:
    """Choose by ``text``, as ``search_text`` gives it."""
    return position_of(column, query_parameter("text")) > 0


PLANS: Final = ListQuery(
    [
        plans.c.plan_id,
        plans.c.created_at,
        plans.c.user_prompt,
        plans.c.title,
        plans.c.hash,
        plans.c.document,
        plans.c.edits,
        plans.c.author,
        plans.c.note,
        plans.c.updated_at,
        plans.c.name,
        plans.c.description,
        plans.c.sound_revision,
        plans.c.approved_revision,
        plans.c.approvals,
        plans.c.published,
        plans.c.edited_by,
    ],
    plans,
    plans.c.created_at,
    plans.c.plan_id,
    {
        "text": contains(plans.c.search),
        "named": plans.c.name.is_not(None),
        "unnamed": plans.c.name.is_(None),
        "name_key": plans.c.name_key == query_parameter("name_key"),
        "published": position_of(plans.c.published, query_parameter("published")) > 0,
    },
)
_EXECUTION: Final = (
    executions.c.execution_id,
    executions.c.plan_id,
    execution_texts.c.title,
    execution_texts.c.user_prompt,
    executions.c.status,
    executions.c.created_at,
    executions.c.started_at,
    executions.c.completed_at,
    LAST_SEQ,
    executions.c.document_seq,
    executions.c.epoch,
    executions.c.queued,
    executions.c.revision,
    executions.c.flow,
    executions.c.created_by,
    executions.c.parent_id,
    executions.c.needs,
    executions.c.tokens,
    executions.c.cost_usd,
    executions.c.duration_s,
    executions.c.outcome,
    execution_labels.c.name,
    execution_labels.c.tags,
    execution_labels.c.note,
    execution_labels.c.starred,
)
_WITH_TEXTS: Final = executions.join(
    execution_texts, execution_texts.c.execution == executions.c.key
).outerjoin(execution_labels, execution_labels.c.execution == executions.c.key)

SEARCHED_WORDS: Final = 8
"""Words of a search; those after them are not looked for."""
NEAREST: Final = 2_000
"""So many executions are looked at one by one before all signatures are read: common words fill a page with them."""


def _own(column: Column[Any]) -> ColumnElement[Any]:
    """Return a column of the execution's row in a table that has one for some executions; else null.

    Not a join: the row is read only where the conditions before it leave the answer open.
    """
    own = select(column).where(column.table.c.execution == executions.c.key)
    return own.correlate(executions).scalar_subquery()


def _has_words(count: int, *, is_near: bool = False) -> ColumnElement[bool]:
    """Choose executions with some words: those whose signature has the parts of all of them are searched.

    One that was never projected has no signature. The candidates are found by one scan of the signatures, or with
    ``is_near`` by a look at that of each execution, which is dearer for all and cheaper for the first ones.
    """
    tests = (
        position_of(
            bindparam(f"bytes{number}_{test}", type_=LargeBinary),
            func.substr(
                search_signatures.c.signature,
                bindparam(f"at{number}_{test}", type_=Integer),
                1,
            ),
        )
        > 0
        for number in range(count)
        for test in range(TESTS)
    )
    candidates = select(search_signatures.c.execution).where(*tests)
    own = search_signatures.c.execution == executions.c.key
    is_candidate = (
        candidates.where(own).correlate(executions).exists()
        if is_near
        else executions.c.key.in_(candidates)
    )
    searched = (
        execution_texts.c.search,
        executions.c.execution_id,
        execution_labels.c.search,
        _own(execution_search.c.search),
    )
    return and_(
        or_(executions.c.tokens.is_(None), is_candidate),
        *(
            or_(
                *(
                    func.coalesce(position_of(text, query_parameter(f"word{number}")), 0) > 0
                    for text in searched
                )
            )
            for number in range(count)
        ),
    )


def _word_choices(text: str | None) -> dict[str, Any]:
    """Return the parameters of the words of a search."""
    words = (search_text(text) or "").split()[:SEARCHED_WORDS]
    chosen: dict[str, Any] = {f"words{len(words)}": "words"} if words else {}
    for number, word in enumerate(words):
        chosen[f"word{number}"] = word
        for test, (position, some_bytes) in enumerate(tests_of(word)):
            chosen[f"at{number}_{test}"], chosen[f"bytes{number}_{test}"] = position, some_bytes
    return chosen


def execution_choices(filters: ExecutionFilters) -> dict[str, Any]:
    """Return the parameters of the filters of a list of executions."""
    starred, tag = filters.get("starred"), filters.get("tag")
    chosen: dict[str, Any] = {
        **{name: filters.get(name) for name in ("since", "until", "plan_id")},
        "as_flow": "flow" if filters.get("as_flow") else None,
        "tag": None if tag is None else f"\n{tag}\n",
        "starred": "starred" if starred else None,
        "unstarred": "unstarred" if starred is False else None,
    }
    return {**chosen, **_word_choices(filters.get("text"))}


_EXECUTION_FILTERS: Final = {
    "status": executions.c.status == query_parameter("status"),
    "since": executions.c.created_at >= query_parameter("since"),
    "until": executions.c.created_at < query_parameter("until"),
    "plan_id": executions.c.plan_id == query_parameter("plan_id"),
    "as_flow": executions.c.flow.is_not(None),
    "tag": position_of(execution_labels.c.tags, query_parameter("tag")) > 0,
    "starred": execution_labels.c.starred == 1,
    "unstarred": func.coalesce(execution_labels.c.starred, 0) == 0,
    **{f"words{count}": _has_words(count) for count in range(1, SEARCHED_WORDS + 1)},
    **{f"near{count}": _has_words(count, is_near=True) for count in range(1, SEARCHED_WORDS + 1)},
    "near_from": executions.c.created_at >= query_parameter("near_from"),
}
_OF_EXECUTIONS: Final = frozenset({"status", "since", "until", "plan_id", "as_flow"})
"""Filters for which the table of executions is enough."""
EXECUTIONS: Final = ListQuery(
    _EXECUTION,
    _WITH_TEXTS,
    executions.c.created_at,
    executions.c.execution_id,
    _EXECUTION_FILTERS,
    {
        "duration": func.coalesce(executions.c.duration_s, -1.0, type_=Double),
        "cost": func.coalesce(executions.c.cost_usd, -1.0, type_=Double),
        "tokens": func.coalesce(executions.c.tokens, -1, type_=Integer),
        "name": func.lower(func.coalesce(execution_labels.c.name, execution_texts.c.title)),
    },
)

_NEAR_FROM: Final = (
    select(executions.c.created_at)
    .where(executions.c.created_at <= query_parameter("newest"))
    .order_by(executions.c.created_at.desc())
    .limit(1)
    .offset(bindparam("skipped", type_=Integer))
)
_LAST_MOMENT: Final = "9999"


def executions_page(
    connection: Connection,
    filters: Mapping[str, Any],
    before: str | PageCursor | None,
    limit: int,
    sort: ExecutionSort = NEWEST_FIRST,
) -> Sequence[Any]:
    """Return one page of executions; see ``ListQuery.page``."""
    if sort == NEWEST_FIRST and not isinstance(before, str):
        newest = _LAST_MOMENT if before is None else before.created_at
        near = _nearest(connection, filters, newest)
        if near is not None:
            rows = EXECUTIONS.page(connection, near, before, limit)
            if len(rows) >= limit:
                return rows
    return EXECUTIONS.page(connection, filters, before, limit, sort)


def _nearest(
    connection: Connection, filters: Mapping[str, Any], newest: str
) -> dict[str, Any] | None:
    """Return the filters of a search among the ``NEAREST`` only; None without words, or where there are no more."""
    words = next((name for name, each in filters.items() if each == "words"), None)
    if words is None:
        return None
    place = {"newest": newest, "skipped": NEAREST}
    bound = connection.execute(_NEAR_FROM, place).scalar()
    if bound is None:
        return None
    others = {name: each for name, each in filters.items() if name != words}
    return {**others, words.replace("words", "near"): "near", "near_from": bound}


OPEN_EXECUTIONS: Final = (
    select(*_EXECUTION)
    .select_from(_WITH_TEXTS)
    .where(
        executions.c.status.in_((*ACTIVE_STATUSES, "starting")),  # has an index
        or_(executions.c.status != "starting", executions.c.queued == 1),
    )
    .order_by(executions.c.created_at, executions.c.execution_id)
)
"""Rows like those of ``EXECUTIONS``: the executions to recover at a start, oldest first."""


def count_open(connection: Connection, account: str, *only: ColumnElement[bool]) -> int:
    """Count the executions of an account that have not ended; ``only`` those that meet conditions."""
    statement = (
        select(executions.c.created_by, func.count())
        .where(executions.c.status.in_(OPEN_STATUSES), *only)
        .group_by(executions.c.created_by)
    )
    counts = ((Principal.from_text(text), n) for text, n in connection.execute(statement))
    return sum(n for principal, n in counts if (principal or OPERATOR).account == account)


def count_forks(connection: Connection, execution_id: str) -> int:
    """Count the forks of an execution that are not deleted."""
    statement = (
        select(func.count())
        .select_from(executions)
        .where(executions.c.parent_id == execution_id, executions.c.status != DELETED)
    )
    return connection.execute(statement).scalar_one()


def count_by_status(connection: Connection, filters: Mapping[str, Any]) -> dict[str, int]:
    """Count executions; without words and labels an index has all that is needed.

    Of those with some words, no more than ``COUNTED_MATCHES`` are counted.
    """
    near = _nearest(connection, filters, _LAST_MOMENT)
    counts = {} if near is None else _counts(connection, near)
    if sum(counts.values()) < COUNTED_MATCHES:
        counts = _counts(connection, filters)
    return {status: count for status, count in counts.items() if status != DELETED}


def _counts(connection: Connection, filters: Mapping[str, Any]) -> dict[str, int]:
    chosen = storable_values({name: each for name, each in filters.items() if each is not None})
    matches = (
        select(executions.c.status)
        .select_from(executions if chosen.keys() <= _OF_EXECUTIONS else _WITH_TEXTS)
        .where(*(_EXECUTION_FILTERS[name] for name in chosen if name in _EXECUTION_FILTERS))
    )
    if "word0" in chosen:
        newest = executions.c.created_at.desc(), executions.c.execution_id.desc()
        matches = matches.order_by(*newest).limit(COUNTED_MATCHES)
    counted = matches.subquery()
    statement = select(counted.c.status, func.count()).group_by(counted.c.status)
    return {status: count for status, count in connection.execute(statement, chosen)}


_WAITING: Final = select(func.count(), func.min(executions.c.created_at)).where(
    executions.c.status == "starting", executions.c.queued == 1
)


def stored_load(connection: Connection) -> StoredLoad:
    """Return the size of the database, and how many executions wait to begin for how long."""
    waiting, oldest = connection.execute(_WAITING).one()
    return StoredLoad(database_bytes(connection), waiting, oldest)


_ANSWER_PLACE: Final = (
    answered_requests.c.at,
    executions.c.execution_id,
    answered_requests.c.answer,
)


def answered_page(
    connection: Connection, before: tuple[str, str, int] | None, limit: int
) -> list[AnsweredRequest]:
    """Return one page of the answered requests, the newest answer first."""
    statement = (
        select(*_ANSWER_PLACE, answered_requests.c.request)
        .join(executions, executions.c.key == answered_requests.c.execution)
        .order_by(*(column.desc() for column in _ANSWER_PLACE))
        .limit(max(limit, 0))
    )
    if before is not None:
        # The first condition has an index.
        statement = statement.where(
            answered_requests.c.at <= before[0], tuple_(*_ANSWER_PLACE) < tuple_(*before)
        )
    return [AnsweredRequest(*row) for row in connection.execute(statement)]


def count_answered(connection: Connection) -> int:
    """Return how many requests were answered."""
    return connection.execute(select(func.count()).select_from(answered_requests)).scalar_one()


def search_text(text: str | None) -> str | None:
    """Return the form of a text that matches ``event_codec.search_key``; None for an empty text."""
    return storable_text(text).casefold() if text else None


def plan_from_row(row: Any, *, needs_approval: bool) -> PlanRecord:
    """Return the plan of a row; ``needs_approval`` as in ``PlanRecord``."""
    *fields, published, edited_by = row
    plan_id, created_at, user_prompt, title, digest, document, *facts, approvals = fields
    edits, author, note, updated_at, name, description, sound, approved = facts
    return PlanRecord(
        plan_id,
        created_at,
        user_prompt,
        title,
        digest,
        json.loads(document),
        edits,
        author,
        note,
        updated_at,
        Principal.from_text(edited_by),
        name,
        description,
        tuple(published.split()),
        sound,
        approvals_from_text(approvals),
        approved,
        needs_approval,
    )


def approvals_from_text(text: str) -> dict[str, Approval]:
    """Return the approvals of a plan, by hash, as ``approvals_text`` writes them."""
    documents: dict[str, Any] = json.loads(text)
    return {digest: Approval.from_json(each) for digest, each in documents.items()}


def approvals_text(approvals: Mapping[str, Approval]) -> str:
    """Return the approvals of a plan as they are stored."""
    return json.dumps({digest: each.as_json() for digest, each in approvals.items()})


def execution_from_row(row: Any) -> ExecutionRecord:
    """Return the execution of a row."""
    *facts, tokens, cost_usd, duration_s, outcome, name, tags, note, starred = row
    *fields, queued, revision, flow, created_by, parent_id, needs = facts
    return ExecutionRecord(
        *fields,
        queued=bool(queued),
        revision=revision,
        flow=flow,
        created_by=Principal.from_text(created_by),
        parent_id=parent_id,
        needs=needs,
        tokens=tokens,
        cost_usd=cost_usd,
        duration_s=duration_s,
        outcome=outcome,
        labels=labels_from_row(name, tags, note, starred),
    )


def labels_from_row(
    name: str | None, tags: str | None, note: str | None, starred: int | None
) -> ExecutionLabels:
    """Return the labels of the columns of ``execution_labels``; all are null where there is no row."""
    if tags is None:
        return NO_LABELS
    return ExecutionLabels(name, tuple(tags.split("\n")[1:-1]), note or "", bool(starred))


def executions_behind(
    connection: Connection, execution_ids: Sequence[str]
) -> Iterator[ExecutionRecord]:
    """Yield those of some executions whose JSON document is older than their events."""
    rows = (EXECUTIONS.one(connection, each) for each in execution_ids)
    for row in rows:
        if row is not None and (record := execution_from_row(row)).is_behind:
            yield record
