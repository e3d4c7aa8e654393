"""``planwave diff``: two executions beside each other. Reading only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

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
from planwave.cli.lookup import find_execution
from planwave.cli.options import ImportOption, JsonFlag, StorageOption, command_context

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Queries
    from planwave.cli.console import CommandConsole

_ID_HELP: Final = "by its id, a unique part of its id, or: last."
_CHANGES: Final = {"changed": "differ", "only_a": "only in A", "only_b": "only in B"}
_COLUMN: Final = 24
_PATH_WIDTH: Final = 40
_VALUE_WIDTH: Final = 200
_SIDES: Final = (("- ", "red"), ("+ ", "green"))
_LINE_STYLES: Final = {"-": "red", "+": "green", "@": "cyan"}

_Document = Mapping[str, Any]


def diff(
    typer_ctx: typer.Context,
    a: Annotated[
        str,
        typer.Argument(metavar="A", help=f"An execution, {_ID_HELP}", show_default=False),
    ],
    b: Annotated[
        str,
        typer.Argument(metavar="B", help=f"Another one, {_ID_HELP}", show_default=False),
    ],
    json: JsonFlag = False,
    storage: StorageOption = None,
    node_modules: ImportOption = None,
) -> None:
    """Compare two executions: status, time, tokens, cost, and the result of each step.

    For example:

    * `planwave diff 09a2fd last`
    * `planwave diff 09a2fd 41c07e --json`
    """
    ctx = command_context(typer_ctx, json, storage, node_modules)
    console = ctx.console()

    async def read(queries: Queries) -> dict[str, Any]:
        return await queries.diff(
            await find_execution(queries, a), await find_execution(queries, b)
        )

    difference = ctx.read(read)
    if console.json:
        console.result(difference)
    else:
        show_difference(console, difference)


def show_difference(console: CommandConsole, difference: _Document) -> None:
    """Write two executions side by side, then each step that is not the same in both."""
    console.lines(_totals(console, difference))
    console.line()
    counts = json_object(difference.get("counts"))
    parts = [f"{counts[name]} {words}" for name, words in _CHANGES.items() if counts.get(name)]
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
    shown = [short[each] for each in ids]
    width = max(_COLUMN, *(len(each) + 2 for each in shown))
    rows: list[tuple[str, Sequence[tuple[str, str]]]] = [
        ("", [("A", "bold"), ("B", "bold")]),
        ("Execution", [(each, "cyan") for each in shown]),
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
        yield Text(f"  the graph has another {', '.join(map(str, node['written']))}", "dim")
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
    return tokens_text(usage.get("input_tokens") or 0, usage.get("output_tokens") or 0)


def _cost(usage: _Document) -> str:
    cost = usage.get("cost_usd")
    if cost is None:
        return "price unknown" if usage.get("calls") else money(0)
    return money(cost)
