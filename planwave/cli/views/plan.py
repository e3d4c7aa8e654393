"""A plan on the terminal: finished, with waves and forecast, or while a model writes it."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rich.live import Live
from rich.text import Text

from planwave.cli.backends.backend import PlanUpdate
from planwave.cli.console import CommandConsole, Line
from planwave.cli.formatting import (
    ID_WIDTH,
    counted,
    duration,
    json_object,
    money,
    number_range,
    one_line,
    plan_progress_text,
    step_name,
    tail,
    truncate,
)
from planwave.cli.questions import answer_option
from planwave.events.budget import amount_text, over_budget
from planwave.graph.model import FLOW, LINK, Graph, Node
from planwave.graph.plan import Plan
from planwave.graph.shape import measure

_MODELS_SHOWN: Final = 4

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from planwave.shapes.plans import PlanQuestion


def show_plan(
    console: CommandConsole,
    plan: Plan,
    facts: Iterable[Line] = (),
    budget: Mapping[str, float] | None = None,
    *,
    has_answer_option: bool = False,
) -> None:
    """Write a plan: title, facts, assumed answers, waves with their nodes, forecast, fixes and warnings.

    With the limits of a ``budget``, the forecast says whether it may exceed them. With
    ``has_answer_option`` each assumed answer names the option of the command that changes it.
    """
    author = _author(plan.provider, plan.model)
    console.line(
        Text.assemble(
            (one_line(plan.title), "bold"), (f"  planned by {author}" if author else "", "dim")
        )
    )
    console.texts(facts)
    console.texts(question_lines(plan.questions, with_flags=has_answer_option))
    console.lines(wave_lines(console, plan.graph, author))
    console.line()
    console.texts(forecast_lines(console, plan.forecast))
    if over := over_budget(plan.forecast, budget or {}):
        named = ", ".join(amount_text(name, most) for name, most in over.items())
        text = f"Budget    the run may need more than {named}; it asks before it uses more"
        console.text(Text(text, style="yellow"))
    for example in plan.examples:
        named = f"{one_line(str(example['title']))}  {example['plan_id']}"
        console.text(Text(f"After     {named}", style="dim"))
    for fix in plan.fixes:
        console.text(Text(f"Fixed     {one_line(fix)}", style="yellow"))
    for diagnostic in plan.diagnostics:
        if diagnostic.get("severity") == "warning":
            console.text(
                Text(f"Warning   {one_line(str(diagnostic.get('message')))}", style="yellow")
            )


def question_lines(
    questions: Iterable[PlanQuestion], *, with_flags: bool = False
) -> Iterable[Text]:
    """Yield the lines of what a plan assumes or was told.

    Args:
        questions: Those of the plan.
        with_flags: Whether to name the option that changes an assumed answer, as a shell reads it.
    """
    for each in questions:
        head = ("Assumed   ", "bold yellow") if each["assumed"] else ("Answered  ", "bold")
        yield Text.assemble(
            head, one_line(each["question"]), " ", (one_line(each["answer"]), "bold")
        )
        if with_flags and each["assumed"]:
            flag = shlex.quote(answer_option(each["question"]))
            yield Text(f"          to change it: --answer {flag}", style="dim")


def inputs_text(inputs: Mapping[str, Any] | None) -> str:
    """Return the inputs of a plan in one line, from their JSON Schema: the name and the type of each."""
    inputs_schema = inputs or {"properties": {}, "required": []}
    return ", ".join(
        f"{name}{_type_text(schema)}{'' if name in inputs_schema['required'] else ' (optional)'}"
        for name, schema in inputs_schema["properties"].items()
    )


def _type_text(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    return f": {kind}" if isinstance(kind, str) else ""


def wave_lines(console: CommandConsole, graph: Graph, author: str = "") -> Iterable[Text]:
    """Yield the lines of a graph, wave by wave; name a node's model if it is not the author's."""
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
                console, graph.by_id[node_id], sources.get(node_id, []), width, author
            )
    links = _sources(graph, LINK)
    on_demand = [node for node in graph.nodes if node.id not in seen]
    if on_demand:
        yield Text()
        yield Text.assemble(("On demand", "bold cyan"), (", used by other steps", "dim"))
        for node in on_demand:
            yield from _node_lines(console, node, links.get(node.id, []), width, author)


REST: Final = "The rest"
"""The head of the forecast of a run that is under way: of the steps that have not begun."""


def forecast_lines(
    console: CommandConsole, forecast: Mapping[str, Any], head: str = "Forecast"
) -> Iterable[Text]:
    """Yield the forecast of a plan, or of the rest of a run: size and cost, critical path, side effects."""
    if not forecast:
        return
    nodes, waves = _number(forecast, "nodes"), _number(forecast, "waves")
    parts = [f"{counted(nodes, 'step')} in {counted(waves, 'wave')}"]
    calls = _number(forecast, "calls")
    is_unknown = bool(forecast.get("at_least")) and not calls
    least = "at least " if forecast.get("at_least") else ""
    known = f"{least}{counted(calls, 'model call')}"
    parts.append("model calls not known before it runs" if is_unknown else known)
    tokens = json_object(forecast.get("tokens"))
    if tokens and calls:
        servers = [one_line(str(each)) for each in forecast.get("uncounted_tools") or ()]
        without = f" without the tools of {', '.join(servers)}" if servers else ""
        parts.append(f"{_range_of(tokens)} tokens{without}")
    parts.append("" if is_unknown else _cost(forecast))
    dot = f" {console.symbol('·', '-')} "
    yield Text.assemble((f"{head:<10}", "bold"), dot.join(part for part in parts if part))
    if (models := models_line(forecast.get("models") or ())) is not None:
        yield models
    path = [str(step) for step in forecast.get("critical_path") or ()]
    if len(path) > 1:
        arrow = f" {console.symbol('→', '->')} "
        yield Text.assemble(("Longest   ", "bold"), (arrow.join(map(one_line, path)), "dim"))
    effects = forecast.get("effects") or ()
    if effects:
        named = ", ".join(f"{e.get('node')} ({e.get('effect')})" for e in effects)
        yield Text.assemble(("Changes   ", "bold yellow"), one_line(named))


def models_line(models: Iterable[Mapping[str, Any]]) -> Text | None:
    """Return the line that names the models that steps call; None where none does."""
    listed = list(models)
    if not listed:
        return None
    named = [_model_text(each, counts=len(listed) > 1) for each in listed[:_MODELS_SHOWN]]
    if (more := len(listed) - _MODELS_SHOWN) > 0:
        named.append(f"and {more} more")
    return Text.assemble(("Model     ", "bold"), one_line(", ".join(named)))


def _model_text(model: Mapping[str, Any], *, counts: bool) -> str:
    notes = [counted(_number(model, "calls"), "call")] if counts else []
    notes += [str(model["reason"])] if model.get("reason") else []
    text = f"{model.get('provider')} {model.get('model')}"
    return f"{text} ({', '.join(notes)})" if notes else text


def _node_lines(
    console: CommandConsole, node: Node, sources: list[str], width: int, author: str
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
        line.append(f"  {console.symbol('←', '<-')} {one_line(named)}", style="dim")
    yield line
    if node.description:
        yield Text(f"  {'':<{width}}  {one_line(node.description)}", style="dim italic")


def _author(provider: Any, model: Any) -> str:
    return one_line("/".join(str(part) for part in (provider, model) if part))


def _sources(graph: Graph, channel: str) -> dict[str, list[str]]:
    sources: dict[str, list[str]] = {}
    for edge in graph.edges:
        if edge.channel == channel:
            sources.setdefault(edge.target, []).append(edge.source)
    return sources


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


_STRING: Final = r'"\s*:\s*"((?:[^"\\]|\\.)*)"'
_TITLE: Final = re.compile(rf'"title{_STRING}')
_NAME: Final = re.compile(rf'"name{_STRING}')
_SCANNED_CHARS: Final = 64 * 1024
"""Far more than a plan has; an endless reply is not searched again for each new piece."""
_TAIL_CHARS: Final = 600


class PlanDraft:
    """An unfinished plan, as far as the planner has reported it.

    The plan of a capable model is reported node by node. The reply of a small model has another
    form and is first reported as text only; title and names are then extracted from that text.
    """

    def __init__(self, author: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.author = author
        self.title = ""
        self.steps: list[str] = []
        self.text = ""
        self.thinking = ""
        self.problem = ""
        self._has_node_events = False
        self._clock = clock
        self._began = clock()

    @property
    def elapsed(self) -> float:
        """Seconds since planning began."""
        return self._clock() - self._began

    def apply(self, update: PlanUpdate) -> list[str]:
        """Apply one progress report; return the plain lines that describe it."""
        match update.kind:
            case "delta":
                self._delta(str(update.data.get("text", "")), update.data.get("reasoning"))
                return []
            case "title":
                self.title = one_line(str(update.data.get("title", "")))
            case "node":
                if not self._has_node_events:
                    self._has_node_events, self.steps = True, []
                self.steps.append(step_name(update.data))
                return [f"step {len(self.steps)}: {self.steps[-1]}"]
            case "repair":
                self.title, self.steps, self.text, self._has_node_events = "", [], "", False
                self.problem = plan_progress_text(update.kind, update.data) or ""
            case _:
                pass
        words = plan_progress_text(update.kind, update.data)
        return [] if words is None else [words]

    def _delta(self, text: str, reasoning: object) -> None:
        if reasoning:
            self.thinking = (self.thinking + text)[-_TAIL_CHARS:]
            return
        self.thinking = ""
        self.text += text
        if self._has_node_events or '"' not in text or len(self.text) > _SCANNED_CHARS:
            return
        title = _TITLE.search(self.text)
        if title:
            self.title = one_line(title[1])
        self.steps = [one_line(name) for name in _NAME.findall(self.text)]


@contextmanager
def live_draft(
    console: CommandConsole, draft: PlanDraft
) -> Generator[Callable[[PlanUpdate], None]]:
    """Show a plan while it is written; yield the callback for the planner's progress reports."""
    if not console.live:
        console.line(f"planning with {draft.author}")

        def tell(update: PlanUpdate) -> None:
            console.lines(f"[{draft.elapsed:7.1f}s] {line}" for line in draft.apply(update))

        yield tell
        return
    with Live(
        _DraftView(console, draft), console=console.out, refresh_per_second=10, transient=True
    ):

        def show(update: PlanUpdate) -> None:
            draft.apply(update)

        yield show


class _DraftView:
    """The live area of the screen: the planner's name, the steps so far, the end of the text."""

    def __init__(self, console: CommandConsole, draft: PlanDraft) -> None:
        self._console = console
        self._draft = draft

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for row in self.rows(options.max_width, console.size.height):
            row.no_wrap, row.overflow = True, "ellipsis"
            yield row

    def rows(self, width: int, height: int) -> list[Text]:
        """Return the rows to draw; the first steps are left out if ``height`` is too small."""
        draft = self._draft
        head = Text.assemble(
            (f"{self._console.spinner(draft.elapsed, '*')} ", "cyan"),
            ("Planning", "bold"),
            (f" with {one_line(draft.author)}  {duration(draft.elapsed)}", "dim"),
        )
        rows = [head]
        if draft.problem:
            rows.append(Text(f"  {truncate(draft.problem, width - 3)}", style="yellow"))
        if draft.title:
            rows.append(Text(f"  {truncate(draft.title, width - 3)}", style="bold"))
        room = max(height - len(rows) - 2, 0)
        hidden = max(len(draft.steps) - room, 0)
        for number, step in enumerate(draft.steps[hidden:], start=hidden + 1):
            rows.append(Text(f"  {number:>2}. {truncate(step, width - 8)}"))
        saying = draft.thinking or draft.text
        rows.append(Text(f"  {tail(saying, width - 4)}", style="dim"))
        return rows
