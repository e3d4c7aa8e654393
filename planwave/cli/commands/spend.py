"""``planwave spend``: what calls of models used, by day, flow or model. Read only."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from planwave.cli.context import CommandContext
from planwave.cli.options import SinceOption, UntilOption, shared_options

if TYPE_CHECKING:
    from planwave.client import AsyncClient
    from planwave.service.service import Service
    from planwave.shapes.spend import SpendAmounts, SpendResponse

_NO_FLOW = "no flow"


class Grouping(StrEnum):
    """What the sums are of."""

    DAY = "day"
    FLOW = "flow"
    MODEL = "model"


@shared_options(over_http=True)
def spend(
    ctx: CommandContext,
    by: Annotated[
        Grouping, typer.Option("--by", metavar="GROUP", help=f"By {', '.join(Grouping)}.")
    ] = Grouping.DAY,
    since: SinceOption = None,
    until: UntilOption = None,
) -> None:
    """Show what calls of models used, the planning of goals included; of the last 30 days by default.

    For example:

    * `planwave spend`
    * `planwave spend --by model --since 2026-01-01`
    """

    async def read() -> SpendResponse:
        async with ctx.backend(ctx.settings()) as backend:
            report = backend.choose(_locally, _remotely)
            return await report(by.value, since, until)

    report = asyncio.run(read())
    console = ctx.console()
    if console.json:
        console.result(report)
        return
    rows: list[tuple[str, SpendAmounts]] = [
        (each["name"] or each["key"] or _NO_FLOW, each) for each in report["groups"]
    ]
    rows.append((f"{report['since']} to {report['until']}", report["total"]))
    width = max(len(name) for name, _ in rows)
    console.lines(Text(f"{name:<{width}}  {_amounts(each)}") for name, each in rows)
    if (warning := report["warning"]) is not None:
        console.note(
            f"${warning['cost_usd']:.2f} spent on {warning['day']}, more than {warning['warn_usd']:g}"
        )


def _amounts(each: SpendAmounts) -> str:
    tokens = each["input_tokens"] + each["output_tokens"]
    cost = "-" if each["cost_usd"] is None else f"${each['cost_usd']:.4f}"
    more = f", {each['unpriced_calls']} calls without a price" if each["unpriced_calls"] else ""
    return f"{cost:>10}  {tokens:>10,} tokens  {each['runs']:>5} runs{more}"


def _locally(service: Service) -> Any:
    return service.spending.report


def _remotely(client: AsyncClient) -> Any:
    return client.spend
