"""``planwave tools``: the tools that agents may be given here, and where each comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any

import typer
from rich.text import Text

from planwave.cli import completion
from planwave.cli.console import CommandConsole
from planwave.cli.context import CommandContext
from planwave.cli.formatting import json_text
from planwave.cli.options import shared_options
from planwave.errors import NotFound
from planwave.graph.suggestions import closest_match

_LOAD_OWN_TOOL = "your own: declare it with @planwave.tool(), and load its module with --import"

NameArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME",
        autocompletion=completion.tools,
        help="Show one tool in full.",
        show_default=False,
    ),
]


@shared_options(over_http=True)
def tools(ctx: CommandContext, name: NameArgument = None) -> None:
    """List the tools that `tool` and `toolset` steps may name, or show one with its arguments.

    For example:

    * `planwave --import shop_tools tools` (with the tools of your own module)
    * `planwave --import shop_tools tools look_up_order`
    """
    console, settings = ctx.console(), ctx.settings()
    if ctx.service_url is None:
        documents = ctx.factories.catalogue(settings).describe_tools()
    else:
        documents = ctx.call_service(settings, lambda client: client.tools())["tools"]
    if name is None:
        if console.json:
            console.result({"tools": documents})
        elif documents:
            show_tools(console, documents)
        else:
            console.text(f"There are no tools here; {_LOAD_OWN_TOOL}")
    else:
        about = next((each for each in documents if each["name"] == name), None)
        if about is None:
            close = closest_match(name, [each["name"] for each in documents])
            suggestion = f"did you mean {close!r}?" if close else "planwave tools lists all;"
            raise NotFound(f"there is no tool {name!r}", hint=f"{suggestion} {_LOAD_OWN_TOOL}")
        if console.json:
            console.result(about)
        else:
            show_tool(console, about)
    served = ctx.running_service(settings)
    if served is not None and ctx.service_url is None:
        console.note(f"{served.title} has the tools that it was started with")


_EFFECT_WIDTH = len("effect")


def show_tools(console: CommandConsole, tools: Sequence[Mapping[str, Any]]) -> None:
    """Write a line for each tool, grouped by origin."""
    width = max(len(each["name"]) for each in tools)
    for origin, members in groupby(sorted(tools, key=_origin_text), key=_origin_text):
        console.line(Text(origin, style="bold"))
        for each in members:
            console.line(
                Text.assemble(
                    (f"  {each['name']:<{width}}  ", "cyan"),
                    (f"{each['effect']:<{_EFFECT_WIDTH}}  ", "dim"),
                    " ".join(each["description"].split()),
                )
            )
        console.line()
    console.text("The second column is the effect of a call. One in full: planwave tools NAME")


def show_tool(console: CommandConsole, about: Mapping[str, Any]) -> None:
    """Write one tool: what models read about it, its origin, effect, approval and arguments."""
    console.text(Text.assemble((about["name"], "bold cyan"), f"  {about['description']}"))
    console.verbatim(f"From      {_origin_text(about)}")
    console.text(f"Effect    {about['effect']}")
    console.text(f"Approval  {about['approval']}")
    if about["timeout_s"] is not None:
        console.text(f"Time      {about['timeout_s']:g} s")
    console.line()
    console.line(Text("Arguments", style="bold"))
    console.verbatim(json_text(about["parameters"]))


def _origin_text(about: Mapping[str, Any]) -> str:
    return f"{about['origin']['kind']} {about['origin']['name']}"
