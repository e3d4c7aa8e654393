"""``planwave nodes``: the node types that commands know here, and where each comes from."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from planwave.cli.context import CommandContext
from planwave.cli.errors import hint_with_command
from planwave.cli.options import shared_options
from planwave.cli.views.node_type import show_node_type, show_node_types
from planwave.errors import NotFound
from planwave.graph.suggestions import LOAD_OWN_TYPE, closest_match
from planwave.nodes.authoring.node_type import INPUT

TypeArgument = Annotated[
    str | None,
    typer.Argument(metavar="TYPE", help="Show one type in full.", show_default=False),
]


@shared_options()
def nodes(ctx: CommandContext, node_type: TypeArgument = None) -> None:
    """List the node types that graphs may use, or show one: its ports, data fields and an example.

    For example:

    * `planwave nodes`
    * `planwave nodes agent`
    * `planwave --import my_nodes nodes` (with the types of your own module)
    """
    console, settings = ctx.console(), ctx.settings()
    registry = ctx.factories.catalog(settings)
    names = registry.names()
    if node_type is not None and node_type not in names:
        close = closest_match(node_type, names)
        suggestion = f"did you mean {close!r}?" if close else "planwave nodes lists all types;"
        hint = hint_with_command("unknown-node-type", f"{suggestion} {LOAD_OWN_TYPE}")
        raise NotFound(f"there is no node type {node_type!r}", hint=hint)
    shown = names if node_type is None else (node_type,)
    types: list[dict[str, Any]] = [
        {**registry.describe(name), "origin": registry.origin(name)._asdict()} for name in shown
    ]
    if console.json:
        brief = ("node_type", "purpose", "effect", "origin")
        listed = [{key: each[key] for key in brief} for each in types]
        console.result({"node_types": listed} if node_type is None else types[0])
    elif node_type is None:
        show_node_types(console, types)
    else:
        declared = getattr(registry.implementation(node_type), "inputs", (INPUT,))
        show_node_type(console, types[0], [port._asdict() for port in declared])
    served = ctx.running_service(settings)
    if served is not None:
        console.note(f"{served.title} has the types that it was started with")
