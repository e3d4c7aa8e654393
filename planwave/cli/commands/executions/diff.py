"""``planwave diff``: two executions beside each other, or two revisions of a plan. Reading only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from planwave.cli import completion
from planwave.cli.context import CommandContext
from planwave.cli.formatting import (
    clean,
    counted,
    duration,
    error_text,
    json_object,
    json_text,
    money,
    one_line,
    status_style,
    status_text,
    tokens_text,
    truncate,
)
from planwave.cli.lookup import find_execution, find_plan
from planwave.cli.options import shared_options
from planwave.cli.views.revisions import show_revision_difference
from planwave.errors import InputError

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Queries
    from planwave.cli.console import CommandConsole

_ID_HELP: Final = "by its id, its start or end, or: last; or PLAN@N, a revision of a plan."
_REVISION: Final = re.compile(r"(.*)@([1-9][0-9]{0,8})", re.DOTALL)
_CHANGES: Final = {"changed": "differ", "only_a": "only in A", "only_b": "only in B"}
_COLUMN: Final = 24
_PATH_WIDTH: Final = 40
_VALUE_WIDTH: Final = 200
_SIDES: Final = (("- ", "red"), ("+ ", "green"))
_LINE_STYLES: Final = {"-": "red", "+": "green", "@": "cyan"}

_Document = Mapping[str, Any]

FirstArgument = Annotated[
    str,
    typer.Argument(
        metavar="A",
        autocompletion=completion.executions,
        help=f"An execution, {_ID_HELP}",
        show_default=False,
    ),
]
SecondArgument = Annotated[
    str,
    typer.Argument(
        metavar="B",
        autocompletion=completion.executions,
        help=f"Another one, {_ID_HELP}",
        show_default=False,
    ),
]


@shared_options(over_http=True)
def diff(
    ctx: CommandContext,
    a: FirstArgument,
    b: SecondArgument,
) -> None:
    """Compare two executions: status, time, tokens, cost, and the result of each step.

    Or compare two revisions of a plan: the steps and edges that were added, removed and changed.
    A plan without @N is its current revision.

    For example:

    * `planwave diff 09a2fd last`
    * `planwave diff 09a2fd 41c07e --json`
    * `planwave diff 3f0c1a@1 3f0c1a@3`
    """
    console = ctx.console()

    is_of_revisions = bool(_REVISION.fullmatch(a) or _REVISION.fullmatch(b))

    async def read(queries: Queries) -> Mapping[str, Any]:
        if is_of_revisions:
            return await _diff_revisions(queries, a, b)
        first, second = [await find_execution(queries, name) for name in (a, b)]
        if first == second:
            raise InputError(
                f"{a!r} and {b!r} are one execution, {first}", code="usage", hint="name another one"
            )
        return await queries.executions.diff(first, second)

    difference = ctx.read(read)
    if console.json:
        console.result(difference)
    elif is_of_revisions:
        show_revision_difference(console, difference)
    else:
        show_difference(console, difference)


async def _diff_revisions(queries: Queries, a: str, b: str) -> Mapping[str, Any]:
    """Compare two revisions of one plan; a name without a number is the current one.

    Raises:
        InputError: ``usage``: the names are of two plans.
        NotFound: There is no such plan, or it has no such revision.
    """
    (plan_a, first), (plan_b, second) = [
        (await find_plan(queries, name), number) for name, number in map(_split, (a, b))
    ]
    if plan_a != plan_b:
        raise InputError(
            f"{a!r} and {b!r} are revisions of two plans",
            code="usage",
            hint="name two revisions of one plan, as in: planwave diff PLAN@1 PLAN@3",
        )
    if first is None:
        first = (await queries.revisions.list(plan_a, limit=1))[0].revision
    return await queries.revisions.diff(plan_a, first, second)


def _split(name: str) -> tuple[str, int | None]:
    """Return the plan that a name names, and the number of its revision."""
    match = _REVISION.fullmatch(name)
    return (name, None) if match is None else (match[1], int(match[2]))


def show_difference(console: CommandConsole, difference: _Document) -> None:
    """Write two executions side by side, then each step that is not the same in both."""
    console.lines(_totals(console, difference))
    console.line()
    counts = json_object(difference.get("counts"))
    parts = [f"{counts[name]} {words}" for name, words in _CHANGES.items() if counts.get(name)]
    parts = ["1 differs" if part == "1 differ" else part for part in parts]
    same = counts.get("same", 0)
    console.text(f"{counted(same, 'step')} the same" + "".join(f", {part}" for part in parts))
    for node in map(json_object, difference.get("nodes") or ()):
        console.line()
        console.line(_headline(console, node))
        console.lines(_details(node))
    if difference.get("left_off"):
        console.line()
        console.text(f"{counted(difference['left_off'], 'more step')} that differ")


def _totals(console: CommandConsole, difference: _Document) -> Iterator[Text]:
    ids = [str(difference.get(side) or "") for side in ("a", "b")]
    short = console.short_ids(ids)
    labels = [short[each] for each in ids]
    width = max(_COLUMN, *(len(each) + 2 for each in labels))
    rows: list[tuple[str, Sequence[tuple[str, str]]]] = [
        ("", [("A", "bold"), ("B", "bold")]),
        ("Execution", [(each, "cyan") for each in labels]),
        ("Status", [_status(console, status) for status in difference.get("status") or ()]),
        ("Time", [(_time(seconds), "") for seconds in difference.get("duration_s") or ()]),
        ("Tokens", [(_tokens(json_object(used)), "") for used in difference.get("usage") or ()]),
        ("Cost", [(_cost(json_object(used)), "") for used in difference.get("usage") or ()]),
    ]
    for name, cells in rows:
        line = Text(f"{name:<11}")
        for words, style in cells:
            line.append(f"{words:<{width}}", style)
        line.rstrip()
        yield line


def _headline(console: CommandConsole, node: _Document) -> Text:
    """Return the first line of a step: its path, then status, time and tokens on both sides."""
    arrow = f" {console.symbol('→', '->')} "
    line = Text.assemble((truncate(str(node.get("path")), _PATH_WIDTH), "bold cyan"), "  ")
    sides = [_status(console, each) for each in node.get("status") or ()]
    for at, (words, style) in enumerate(dict.fromkeys(sides)):
        line.append(arrow if at else "").append(words, style)
    times = dict.fromkeys(_time(seconds) for seconds in node.get("duration_s") or ())
    tokens = dict.fromkeys(_tokens(json_object(used)) for used in node.get("usage") or ())
    line.append(f"  {arrow.join(times)}  tokens {arrow.join(tokens)}", "dim")
    return line


def _details(node: _Document) -> Iterator[Text]:
    """Yield the differences of a step, line by line."""
    if node.get("written"):
        yield Text(f"  changed in the graph: {', '.join(map(str, node['written']))}", "dim")
    for error, (sign, style) in zip(node.get("error") or (), _SIDES, strict=False):
        if error is not None:
            yield Text(f"  {sign}{truncate(error_text(error), _VALUE_WIDTH)}", style)
    if node.get("result"):
        for line in str(node["result"]).split("\n"):
            yield Text(f"  {clean(line)}", _LINE_STYLES.get(line[:1], ""))
        return
    for handle, sides in json_object(node.get("outputs")).items():
        for output, (sign, style) in zip(sides, _SIDES, strict=False):
            if output is not None:
                yield Text(f"  {sign}{one_line(handle)}: {_value(json_object(output))}", style)


def _value(output: _Document) -> str:
    value = output.get("preview", output.get("value"))
    return truncate(value if isinstance(value, str) else json_text(value), _VALUE_WIDTH)


def _status(console: CommandConsole, status: Any) -> tuple[str, str]:
    if status is None:
        return console.symbol("·", "-"), "dim"
    return f"{console.glyph(str(status))} {status_text(str(status))}", status_style(
        str(status)
    ).style


def _time(seconds: Any) -> str:
    return duration(float(seconds)) if isinstance(seconds, int | float) else "-"


def _tokens(usage: _Document) -> str:
    return tokens_text(usage)


def _cost(usage: _Document) -> str:
    cost = usage.get("cost_usd")
    if cost is None:
        return "price unknown" if usage.get("calls") else money(0)
    return money(cost)
