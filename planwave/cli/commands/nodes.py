"""``planwave nodes``: the node types that commands know here, and where each comes from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from planwave.cli import completion
from planwave.cli.console import CommandConsole, Line
from planwave.cli.context import CommandContext
from planwave.cli.errors import hint_with_command
from planwave.cli.formatting import json_text
from planwave.cli.options import shared_options
from planwave.errors import NotFound
from planwave.graph.suggestions import LOAD_OWN_TYPE, closest_match

if TYPE_CHECKING:
    from planwave.settings import Settings

TypeArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="TYPE",
        autocompletion=completion.node_types,
        help="Show one type in full.",
        show_default=False,
    ),
]


@shared_options(over_http=True)
def nodes(ctx: CommandContext, node_type: TypeArgument = None) -> None:
    """List the node types that graphs may use, or show one: its ports, data fields and an example.

    For example:

    * `planwave nodes`
    * `planwave nodes agent`
    * `planwave --import my_nodes nodes` (with the types of your own module)
    """
    console, settings = ctx.console(), ctx.settings()
    types = _types_of_service(ctx, settings) if ctx.service_url else _types_here(ctx, settings)
    if node_type is not None and node_type not in types:
        close = closest_match(node_type, list(types))
        suggestion = f"did you mean {close!r}?" if close else "planwave nodes lists all types;"
        hint = hint_with_command("unknown-node-type", f"{suggestion} {LOAD_OWN_TYPE}")
        raise NotFound(f"there is no node type {node_type!r}", hint=hint)
    if console.json:
        brief = ("node_type", "purpose", "effect", "origin")
        listed = [{key: each[key] for key in brief} for each in types.values()]
        console.result({"node_types": listed} if node_type is None else types[node_type])
    elif node_type is None:
        show_node_types(console, list(types.values()))
    else:
        show_node_type(console, types[node_type])
    served = ctx.running_service(settings)
    if served is not None and ctx.service_url is None:
        console.note(f"{served.title} has the types that it was started with")


def _types_here(ctx: CommandContext, settings: Settings) -> dict[str, dict[str, Any]]:
    registry = ctx.factories.catalogue(settings)
    return {
        name: {**registry.describe(name), "origin": registry.origin(name)._asdict()}
        for name in registry.names()
    }


def _types_of_service(ctx: CommandContext, settings: Settings) -> dict[str, dict[str, Any]]:
    """Return the node types of the service that the user names, which does not tell their origin."""
    types = ctx.call_service(settings, lambda client: client.node_types())["node_types"]
    origin = {"kind": "service", "name": ctx.service_url, "file": None}
    return {each["node_type"]: {**each, "origin": origin} for each in types}


_ORIGIN_ORDER = ("service", "module", "package", "library")
_EFFECT_WIDTH = len("effect")


def show_node_types(console: CommandConsole, types: Sequence[Mapping[str, Any]]) -> None:
    """Write a line for each type, grouped by origin, those of the operator first."""
    width = max(len(each["node_type"]) for each in types)
    for origin, members in groupby(sorted(types, key=_origin_key), key=_origin_key):
        console.line(Text(f"{origin[1]}", style="bold"))
        for each in members:
            console.line(
                Text.assemble(
                    (f"  {each['node_type']:<{width}}  ", "cyan"),
                    (f"{each['effect']:<{_EFFECT_WIDTH}}  ", "dim"),
                    each["purpose"],
                )
            )
        console.line()
    console.text("The second column is the effect of a type. One in full: planwave nodes TYPE")


def show_node_type(console: CommandConsole, about: Mapping[str, Any]) -> None:
    """Write one type, as JSON with its origin: its purpose, ports, data fields and example."""
    fields = about["schema"].get("properties", {})
    inputs = [
        each for each in about["inputs"] if each["channel"] != "flow" or each["name"] not in fields
    ]
    console.text(Text.assemble((about["node_type"], "bold cyan"), f"  {about['purpose']}"))
    console.verbatim(f"From      {_origin_text(about['origin'])}")
    console.text(f"Effect    {about['effect']}")
    _show_rows(console, "Inputs", map(_port_row, inputs))
    _show_rows(console, "Outputs", map(_port_row, about["outputs"]))
    title = "Data" if len(inputs) == len(about["inputs"]) else "Data (an edge may replace a value)"
    _show_rows(console, title, _field_rows(about["schema"]))
    if about["example"]:
        console.line()
        console.line(Text("Example", style="bold"))
        console.verbatim(json_text(about["example"]))


def _origin_key(about: Mapping[str, Any]) -> tuple[int, str]:
    return _ORIGIN_ORDER.index(about["origin"]["kind"]), _origin_text(about["origin"])


def _origin_text(origin: Mapping[str, Any]) -> str:
    match origin["kind"]:
        case "library":
            return "planwave"
        case "package":
            return f"package {origin['name']}"
        case "service":
            return f"the service at {origin['name']}"
        case _:
            return f"module {origin['name']}" + (
                f" ({_near(origin['file'])})" if origin["file"] else ""
            )


def _near(file: str) -> str:
    """Return the path of a file, relative to the working directory if the file is below it."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _show_rows(console: CommandConsole, title: str, rows: Iterable[tuple[str, str, str]]) -> None:
    table = list(rows)
    if not table:
        return
    console.line()
    console.line(Text(title, style="bold"))
    first, second = (max(len(row[i]) for row in table) for i in (0, 1))
    console.lines(_row_line(row, first, second) for row in table)


def _row_line(row: tuple[str, str, str], first: int, second: int) -> Line:
    name, kind, note = row
    line = Text.assemble((f"  {name:<{first}}", "cyan"), f"  {kind:<{second}}  ", (note, "dim"))
    line.rstrip()
    return line


def _port_row(port: Mapping[str, Any]) -> tuple[str, str, str]:
    notes = [name for name in ("required", "multiple") if port[name]]
    if port["channel"] != "flow":
        notes.insert(0, port["channel"])
    if port.get("schema"):
        # Lazy: test_help_loads_no_heavy_library
        from planwave.json_types import schema_text

        notes.append(schema_text(port["schema"]))
    return port["name"], port["type"], ", ".join(notes)


def _field_rows(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        notes = ["required"] if name in required else []
        if field.get("default") is not None:
            notes.append(f"default {json.dumps(field['default'], ensure_ascii=False)}")
        if "sameAs" in field:
            notes.append(f"another name of {field['sameAs']}")
        if field.get("template"):
            notes.append("may hold {{ … }}")
        if "description" in field:
            notes.append(field["description"])
        yield name, _kind_of(field), "; ".join(notes)


def _kind_of(schema: Mapping[str, Any]) -> str:
    """Return the type of a JSON Schema in a few words."""
    if choices := schema.get("anyOf", schema.get("oneOf")):
        return " or ".join(dict.fromkeys(_kind_of(each) for each in choices))
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "enum" in schema or "const" in schema:
        return " or ".join(json.dumps(each) for each in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_kind_of(schema.get('items', {}))}"
    return {"string": "text", None: "any"}.get(schema.get("type"), str(schema.get("type")))
