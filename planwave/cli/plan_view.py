"""A plan on the screen: its waves, what each step waits for, and what it will take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.text import Text

from planwave.cli.screen import Line, CommandConsole
from planwave.cli.wording import ID_WIDTH, counted, truncate, money, one_line, number_range, json_object
from planwave.graph.model import FLOW, LINK, Graph, Node
from planwave.graph.plan import Plan
from planwave.graph.shape import measure


def show_plan(screen: CommandConsole, plan: Plan, facts: Iterable[Line] = ()) -> None:
    """Write a plan: title, facts about it, waves with their nodes, forecast, what was fixed."""
    author = _author(plan.provider, plan.model)
    screen.line(
        Text.assemble(
            (one_line(plan.title), "bold"), (f"  planned by {author}" if author else "", "dim")
        )
    )
    screen.texts(facts)
    screen.lines(wave_lines(screen, plan.graph, author))
    screen.line()
    screen.texts(forecast_lines(screen, plan.forecast))
    for fix in plan.fixes:
        screen.text(Text(f"Fixed     {one_line(fix)}", style="yellow"))
    for found in plan.diagnostics:
        if found.get("severity") == "warning":
            screen.text(Text(f"Warning   {one_line(str(found.get('message')))}", style="yellow"))


def wave_lines(screen: CommandConsole, graph: Graph, author: str = "") -> Iterable[Text]:
    """Give the lines that show a graph wave by wave; only other models than the author's are named."""
    form = measure(graph)
    width = min(ID_WIDTH, max((len(node.id) for node in graph.nodes), default=0))
    sources = _sources(graph, FLOW)
    seen: set[str] = set()
    for number, wave in enumerate(form.waves, start=1):
        seen.update(wave)
        together = f", {len(wave)} at the same time" if len(wave) > 1 else ""
        yield Text()
        yield Text.assemble((f"Wave {number}", "bold cyan"), (together, "dim"))
        for node_id in wave:
            yield from _node_lines(
                screen, graph.by_id[node_id], sources.get(node_id, []), width, author
            )
    links = _sources(graph, LINK)
    on_demand = [node for node in graph.nodes if node.id not in seen]
    if on_demand:
        yield Text()
        yield Text.assemble(("On demand", "bold cyan"), (", used by other steps", "dim"))
        for node in on_demand:
            yield from _node_lines(screen, node, links.get(node.id, []), width, author)


def forecast_lines(screen: CommandConsole, forecast: Mapping[str, Any]) -> Iterable[Text]:
    """Give one line of what a plan will take, and its critical path."""
    if not forecast:
        return
    nodes, waves = _number(forecast, "nodes"), _number(forecast, "waves")
    parts = [f"{counted(nodes, 'step')} in {counted(waves, 'wave')}"]
    least = "at least " if forecast.get("at_least") else ""
    parts.append(f"{least}{counted(_number(forecast, 'calls'), 'model call')}")
    tokens = json_object(forecast.get("tokens"))
    if tokens and _number(forecast, "calls"):
        parts.append(f"{_range_of(tokens)} tokens")
    parts.append(_cost(forecast))
    dot = f" {screen.symbol('·', '-')} "
    yield Text.assemble(("Forecast  ", "bold"), dot.join(part for part in parts if part))
    path = [str(step) for step in forecast.get("critical_path") or ()]
    if len(path) > 1:
        arrow = f" {screen.symbol('→', '->')} "
        yield Text.assemble(("Longest   ", "bold"), (arrow.join(map(one_line, path)), "dim"))
    effects = forecast.get("effects") or ()
    if effects:
        named = ", ".join(f"{e.get('node')} ({e.get('effect')})" for e in effects)
        yield Text.assemble(("Changes   ", "bold yellow"), one_line(named))


def _node_lines(
    screen: CommandConsole, node: Node, sources: list[str], width: int, author: str
) -> Iterable[Text]:
    name = one_line(node.name)
    line = Text.assemble("  ", (f"{truncate(node.id, width):<{width}}", "cyan"))
    if name and name != node.id:
        line.append(f"  {name}")
    model = _author(node.data.get("provider"), node.data.get("model"))
    line.append(f"  {node.type}", style="dim")
    if model and model != author:
        line.append(f" ({model})", style="dim")
    if sources:
        named = ", ".join(dict.fromkeys(sources))
        line.append(f"  {screen.symbol('←', '<-')} {one_line(named)}", style="dim")
    yield line
    if node.description:
        yield Text(f"  {'':<{width}}  {one_line(node.description)}", style="dim italic")


def _author(provider: Any, model: Any) -> str:
    return one_line("/".join(str(part) for part in (provider, model) if part))


def _sources(graph: Graph, channel: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for edge in graph.edges:
        if edge.channel == channel:
            found.setdefault(edge.target, []).append(edge.source)
    return found


def _number(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else 0


def _range_of(values: Mapping[str, Any]) -> str:
    return number_range(values.get("low") or 0, values.get("high") or 0)


def _cost(forecast: Mapping[str, Any]) -> str:
    cost = json_object(forecast.get("cost_usd"))
    if not cost:
        return "price unknown" if _number(forecast, "calls") else ""
    low, high = float(cost.get("low") or 0), float(cost.get("high") or 0)
    if high == 0:
        return "free"
    return money(high) if money(low) == money(high) else f"{money(low)} to {money(high)}"
