"""``planwave tools``: the tools that agents may be given here, and where each comes from."""

from __future__ import annotations

from typing import Annotated

import typer

from planwave.cli.context import CommandContext
from planwave.cli.options import shared_options
from planwave.cli.views.tools import show_tool, show_tools
from planwave.errors import NotFound
from planwave.graph.suggestions import closest_match

_LOAD_OWN_TOOL = "your own: declare it with @planwave.tool(), and load its module with --import"

NameArgument = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="Show one tool in full.", show_default=False),
]


@shared_options()
def tools(ctx: CommandContext, name: NameArgument = None) -> None:
    """List the tools that `tool` and `toolset` steps may name, or show one with its arguments.

    For example:

    * `planwave --import shop_tools tools` (with the tools of your own module)
    * `planwave --import shop_tools tools look_up_order`
    """
    console, settings = ctx.console(), ctx.settings()
    found = ctx.factories.catalog(settings).describe_tools()
    if name is None:
        if console.json:
            console.result({"tools": found})
        elif found:
            show_tools(console, found)
        else:
            console.text(f"There are no tools here; {_LOAD_OWN_TOOL}")
    else:
        about = next((each for each in found if each["name"] == name), None)
        if about is None:
            close = closest_match(name, [each["name"] for each in found])
            suggestion = f"did you mean {close!r}?" if close else "planwave tools lists all;"
            raise NotFound(f"there is no tool {name!r}", hint=f"{suggestion} {_LOAD_OWN_TOOL}")
        if console.json:
            console.result(about)
        else:
            show_tool(console, about)
    served = ctx.running_service(settings)
    if served is not None:
        console.note(f"{served.title} has the tools that it was started with")
