"""What calls of models used, and its sums by day, flow or model."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import Connection, case, func, literal, select

from planwave.events.usage import UsageTotal
from planwave.storage.execution_facts import Spend
from planwave.storage.sql.execution_facts import add_spend
from planwave.storage.sql.readers import Read, Write
from planwave.storage.sql.schema import plans, spend

SpendGrouping = Literal["day", "flow", "model"]


class SpendSum(NamedTuple):
    """What was spent in one group.

    Attributes:
        key: The day, the id of the flow, or ``provider/model``; empty for all that is of no flow.
        name: The name of the flow; None for other groups, and for a flow that has none any more.
        cost_usd: The known part; None where no price was known.
        unpriced: Calls without a known price.
        planning_cost_usd, planning_tokens: The part of planning.
        subjects: Executions, and plans that were written.
    """

    key: str
    name: str | None
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    unpriced: int
    planning_cost_usd: float | None
    planning_tokens: int
    subjects: int


_IS_PLANNING: Final = spend.c.kind == "planning"
_SUMS: Final = (
    func.sum(spend.c.calls),
    func.sum(spend.c.input_tokens),
    func.sum(spend.c.output_tokens),
    func.sum(spend.c.cost_usd),
    func.sum(spend.c.unpriced),
    func.sum(case((_IS_PLANNING, spend.c.cost_usd))),
    func.sum(case((_IS_PLANNING, spend.c.input_tokens + spend.c.output_tokens), else_=0)),
    func.count(spend.c.subject.distinct()),
)
_NO_NAME: Final = literal(None)


class SqlSpend:
    """What calls of models used.

    Args:
        read: Runs a query beside the writer.
        write: Commits a change, which is durable on return where there is a disk.
    """

    def __init__(self, read: Read, write: Write) -> None:
        self._read = read
        self._write = write

    async def add(self, entries: Sequence[Spend]) -> None:
        """Store what was spent, in place of what was stored of the same subject, day and model."""
        await self._write(lambda connection: add_spend(connection, entries))

    async def planning(self, plan_ids: Collection[str]) -> dict[str, UsageTotal]:
        """Return what the calls used that wrote plans, by plan; plans that no model wrote are left out."""
        if not plan_ids:
            return {}
        statement = (
            select(
                spend.c.subject,
                func.sum(spend.c.calls),
                func.sum(spend.c.input_tokens),
                func.sum(spend.c.output_tokens),
                func.sum(spend.c.cost_usd),
            )
            .where(spend.c.subject.in_(plan_ids), _IS_PLANNING)
            .group_by(spend.c.subject)
        )

        def read(connection: Connection) -> dict[str, UsageTotal]:
            return {own: UsageTotal(*sums) for own, *sums in connection.execute(statement)}

        return await self._read(read)

    async def sums(
        self, by: SpendGrouping | None, since: str, until: str, limit: int
    ) -> list[SpendSum]:
        """Return the sums of the days from ``since`` to ``until``, both included.

        Args:
            by: Days come newest first, others by their tokens; None for one sum of all, none where nothing was spent.
            since: ``2026-01-31``, UTC.
            until: See ``since``.
            limit: The most groups.
        """

        def read(connection: Connection) -> list[SpendSum]:
            return [SpendSum(*row) for row in connection.execute(_select(by, since, until, limit))]

        return await self._read(read)


def _select(by: SpendGrouping | None, since: str, until: str, limit: int) -> Any:
    source: Any = spend
    most: Any = func.sum(spend.c.input_tokens + spend.c.output_tokens).desc()
    key: Any
    name: Any = _NO_NAME
    match by:
        case None:
            key = literal("")
        case "day":
            key, most = spend.c.day, spend.c.day.desc()
        case "model":
            key = spend.c.provider + "/" + spend.c.model
        case "flow":
            source = spend.outerjoin(plans, plans.c.plan_id == spend.c.plan_id)
            key = case((plans.c.name.is_not(None), spend.c.plan_id), else_="")
            name = func.max(plans.c.name)
    statement = (
        select(key, name, *_SUMS)
        .select_from(source)
        .where(spend.c.day >= since, spend.c.day <= until)
        .limit(limit)
    )
    if by is None:
        return statement.having(func.count() > 0)
    return statement.group_by(key).order_by(most, key)
