"""Views of tools: a list by origin, or one tool with its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.text import Text

from planwave.cli.console import CommandConsole
from planwave.cli.formatting import json_text

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
