"""The result of an execution: the last nodes' texts, a line of totals, and requests that wait for an answer."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from planwave.cli.console import CommandConsole
from planwave.cli.errors import hint_with_command
from planwave.cli.formatting import (
    DID_NOT_RUN,
    DURATION_WIDTH,
    ID_WIDTH,
    INTERRUPTED,
    PARTIAL,
    STATUS_WIDTH,
    asker_of,
    awaited,
    clean,
    counted,
    duration,
    error_text,
    interrupted_text,
    json_object,
    money,
    one_line,
    shown_status,
    status_reason,
    status_style,
    status_text,
    tokens_text,
    truncate,
)
from planwave.cli.views.plan import REST, forecast_lines
from planwave.errors import NESTED_FAILED
from planwave.events.budget import used_text
from planwave.events.logs.call_lines import question_text, recorded_lines
from planwave.events.paths import ancestor_paths, path_prefix
from planwave.events.request_text import (
    TIMEOUT,
    answer_text,
    is_budget_request,
    is_change_request,
    is_timer,
)
from planwave.events.types import WAITING, pause_kind
from planwave.expressions.json_text import to_text
from planwave.principals import Principal

if TYPE_CHECKING:
    from planwave.cli.console import CommandConsole
    from planwave.cli.context import CommandContext

Document = Mapping[str, Any]

_FAILURES_SHOWN: Final = 20
"""A longer list of nodes that failed alike would not help the user."""
_TRACEBACKS_SHOWN: Final = 3
_EXCERPT: Final = 60
"""Characters that are shown of what a node had written."""


def show_result(console: CommandConsole, document: Document, path: Path | None) -> None:
    """Write the result of an execution; with ``--json`` only its document."""
    if console.json:
        console.result({**document, "document_path": None if path is None else str(path)})
        return
    results = final_results(document)
    for name, text in results:
        console.line()
        if len(results) > 1:
            console.line(Text(one_line(name), style="bold"))
        console.markdown(text)
    show_missing(console, document)
    show_failures(console, document)
    console.line()
    console.text(summary(console, document))
    if path is not None and path.is_file():
        console.verbatim(f"Stored in {path}")


def final_results(document: Document) -> list[tuple[str, str]]:
    """Return name and text of each node that the result comes from."""
    nodes = {_path(node): node for node in nodes_of(document)}
    return [
        (str(node.get("name") or node["id"]), str(node.get("result") or ""))
        for path in json_object(document.get("result")).get("nodes") or ()
        if (node := nodes.get(one_line(str(path)))) is not None
    ]


def show_missing(console: CommandConsole, document: Document) -> None:
    """Write each result that is missing of a partial outcome, with the step that failed."""
    missing = [json_object(each) for each in document.get("missing") or ()]
    if missing:
        console.line()
    names = {_path(node): str(node.get("name") or node["id"]) for node in nodes_of(document)}
    for each in missing[:_FAILURES_SHOWN]:
        status, origin = str(each.get("status")), json_object(each.get("cause")).get("node")
        why = f"because {names.get(origin, origin)} failed" if origin else "it did not run"
        why = "it failed" if origin == each.get("path") else why
        line = f" has no result: {one_line(why)}"
        head = f"{console.glyph(status)} {one_line(str(each.get('name')))}"
        console.text(Text.assemble((head, status_style(status).style), line))
    if (more := len(missing) - _FAILURES_SHOWN) > 0:
        console.text(Text(f"  … and {more:,} more", style="dim"))


def show_failures(console: CommandConsole, document: Document) -> None:
    """Write every failed node with its error; without failed nodes, the error of the execution.

    A node that failed because of a nested node is left out; the nested node is written instead.
    """
    failed = _root_failures(document)
    why = error_text(document.get("error"))
    if failed or why:
        console.line()
    if why and not failed:
        console.text(Text(f"{console.glyph('failed')} {one_line(why)}", style="red"))
    for number, node in enumerate(failed[:_FAILURES_SHOWN]):
        show_failure(console, node, with_traceback=number < _TRACEBACKS_SHOWN)
    if (more := len(failed) - _FAILURES_SHOWN) > 0:
        console.text(Text(f"  … and {more:,} more", style="dim"))


def _root_failures(document: Document) -> list[Mapping[str, Any]]:
    failed = [node for node in nodes_of(document) if node.get("status") == "failed"]
    around = {each for path in map(_path, failed) for each in ancestor_paths(path)}
    return [
        node
        for node in failed
        if _path(node) not in around
        or json_object(node.get("error_detail")).get("code") != NESTED_FAILED
    ]


def show_failure(
    console: CommandConsole, node: Mapping[str, Any], *, with_traceback: bool = True
) -> None:
    """Write a node that did not complete, with its reason, its hint and its traceback."""
    status = str(node.get("status"))
    name = _path(node) if _is_nested(node) else one_line(str(node.get("name") or node["id"]))
    why = one_line(status_reason(status, node)) or status_text(status)
    style = "yellow" if node.get("handled") else status_style(status).style
    console.text(Text.assemble((f"{console.glyph(status)} {name}: ", style), why))
    error = json_object(node.get("error_detail"))
    if hint := hint_with_command(error.get("code"), error.get("hint")):
        console.text(Text(f"  {console.symbol('→', '->')} {one_line(hint)}", style="dim"))
    if with_traceback:
        console.texts(traceback_lines(node))


def traceback_lines(facts: Mapping[str, Any]) -> Iterator[Text]:
    """Yield the lines of the traceback of a failure, indented; none where it has none."""
    for line in clean(str(facts.get("traceback") or "")).splitlines():
        yield Text(f"    {line}", style="dim")


def node_lines(console: CommandConsole, document: Document) -> list[Text]:
    """Return a line for each node (status, time, path, name, reason) and for each answer."""
    lines: list[Text] = []
    nodes = sorted(nodes_of(document), key=_nested_order(document))
    by_path = {str(node.get("path")): node for node in nodes}
    asking = {
        each.get("path"): {name: each.get(name) for name in ("request_id", "request")}
        for each in map(json_object, document.get("requests") or ())
    }
    width = min(ID_WIDTH, max((len(_path(node)) for node in nodes), default=0))
    for node in nodes:
        if (question := question_text(node, by_path)) is not None:
            lines.append(Text(f"      {one_line(question)}", style="dim"))
            continue
        status, path = _node_status(node), _path(node)
        if document.get("interrupted") and status in _AT_WORK:
            status = INTERRUPTED
        took = None if status in DID_NOT_RUN else node.get("execution_time")
        seconds = duration(float(took)) if isinstance(took, int | float) else ""
        line = Text.assemble(
            "  ",
            (
                f"{console.glyph(status)} {status_text(status):<{STATUS_WIDTH}} ",
                status_style(status).style,
            ),
            (f"{seconds:>{DURATION_WIDTH}}  ", "dim"),
            (f"{truncate(path, width):<{width}}", "cyan"),
        )
        name = one_line(str(node.get("name") or ""))
        if name not in ("", path, node["id"]):
            line.append(f"  {name}")
        if why := status_reason(status, {**node, **asking.get(path, {})}):
            line.append(f"  {one_line(why)}", style="dim")
        lines.append(line)
        if text := streamed_text(node):
            words = f"had written {counted(len(text), 'character')}, which nothing gets"
            lines.append(Text(f"      {words}: {truncate(one_line(text), _EXCERPT)}", style="dim"))
        for call, facts in recorded_lines(node):
            lines.append(Text(f"      {one_line(call)}", style="dim"))
            lines += traceback_lines(facts)
        lines += [_answer_line(answer) for answer in map(json_object, node.get("answers") or ())]
    return lines


def _nested_order(document: Document) -> Callable[[Mapping[str, Any]], list[int]]:
    """Return a key that puts the nodes of each nested run below the node that opened it."""
    first: dict[str, int] = {}
    for place, node in enumerate(nodes_of(document)):
        for level in _levels(node):
            first.setdefault(level, place)
    return lambda node: [first[level] for level in _levels(node)]


def _levels(node: Mapping[str, Any]) -> list[str]:
    """Return the runs and nodes that contain a node, outermost first, and the node itself."""
    path = _path(node)
    return [part for each in (*ancestor_paths(path), path) for part in (path_prefix(each), each)]


def _node_status(node: Mapping[str, Any]) -> str:
    """Return the status to show; a node with a result and no attempt was given it."""
    was_given = node.get("attempts") == 0 and not node.get("reused")
    return shown_status(str(node.get("status")), {**node, "given": was_given})


def _answer_line(answer: Mapping[str, Any]) -> Text:
    who = Principal.from_json(answer.get("answered_by"))
    by = "its time limit" if answer.get("by") == TIMEOUT else one_line(str(who or "a person"))
    return Text(
        f"      answered by {by}: {one_line(answer_text(answer.get('answer')))}", style="dim"
    )


def summary(console: CommandConsole, document: Document) -> Text:
    """Return a line of totals: status, completed nodes without nested ones, time, tokens, cost."""
    status = INTERRUPTED if document.get("interrupted") else str(document.get("status"))
    words = status_text(status)
    if document.get("outcome") == PARTIAL:
        status, words = PARTIAL, f"{words}, partial result"
    steps = [node for node in nodes_of(document) if not _is_nested(node)]
    # Linked nodes are made on demand and never run; those not reached are no part of this run.
    nodes = [node for node in steps if node.get("status") not in ("linked", "not_reached")]
    done = sum(node.get("status") == "completed" for node in nodes)
    parts = [f"{done} of {counted(len(nodes), 'step')} completed"]
    if reused := sum(bool(node.get("reused")) for node in nodes):
        parts[0] += f", {reused} of them reused"
    if skipped := sum(node.get("status") == "skipped" for node in nodes):
        parts[0] += f", {skipped} skipped"
    seconds = document.get("execution_time") or _seconds(document)
    if isinstance(seconds, int | float):
        parts.append(duration(float(seconds)))
    parts += _usage(json_object(document.get("usage")))
    if any(streamed_text(node) and not _calls(node) for node in steps):
        parts.append("price of what was cut off unknown")
    parts += _budget(json_object(document.get("budget")))
    dot = f" {console.symbol('·', '-')} "
    return Text.assemble(
        (f"{console.glyph(status)} {words}", f"bold {status_style(status).style}"),
        f"{dot}{dot.join(parts)}",
    )


def nodes_of(document: Document) -> list[Mapping[str, Any]]:
    """Return the nodes of a document."""
    return [node for node in map(json_object, document.get("nodes") or ()) if node.get("id")]


def _path(node: Mapping[str, Any]) -> str:
    return one_line(str(node.get("path") or node["id"]))


def streamed_text(node: Mapping[str, Any]) -> str:
    """Return what a node had written when it was cancelled or failed, "" where that is nothing."""
    streamed = json_object(node.get("streamed"))
    return str(streamed.get("text") or streamed.get("reasoning") or "")


def _calls(node: Mapping[str, Any]) -> int:
    return int(json_object(node.get("usage")).get("calls") or 0)


def _usage(usage: Mapping[str, Any]) -> list[str]:
    parts: list[str] = []
    if usage.get("input_tokens") or usage.get("output_tokens"):
        parts.append(f"tokens {tokens_text(usage)}")
        cost = usage.get("cost_usd")
        parts.append("price unknown" if cost is None else "free" if cost == 0 else money(cost))
    return parts


def _budget(budget: Mapping[str, Any]) -> list[str]:
    """Return what was used of a budget that has been nearly used up."""
    if not budget.get("warned"):
        return []
    return [f"budget {used_text(json_object(budget['limits']), json_object(budget['used']))}"]


def _seconds(document: Document) -> float | None:
    started, completed = document.get("started_at"), document.get("completed_at")
    if not (isinstance(started, str) and isinstance(completed, str)):
        return None
    try:
        return (datetime.fromisoformat(completed) - datetime.fromisoformat(started)).total_seconds()
    except ValueError:
        return None


def _is_nested(node: Mapping[str, Any]) -> bool:
    return "/" in str(node.get("path") or "")


_AT_WORK: Final = ("executing", "retrying")
"""Of nodes whose work was cut off in an interrupted execution."""
_VALUE_LINES: Final = 12
_VALUE_CHARS: Final = 2_000
"""A longer value would push the answer command off the screen; an inline prompt shows more."""


def show_next(ctx: CommandContext, console: CommandConsole, document: Mapping[str, Any]) -> None:
    """Write the commands that continue an execution: its answers, its retry, or that resume it."""
    show_waiting(ctx, console, document)
    if document.get("interrupted"):
        again = ctx.command_hint(f"resume {document.get('execution_id')}")
        console.verbatim(interrupted_text(again))
    if document.get("status") == "failed" and _root_failures(document):
        again = ctx.command_hint(f"retry {document.get('execution_id')}")
        console.verbatim(f"Run what failed again with: {again}")
    if document.get("status") not in ("completed", "cancelled"):
        _show_unknown_types(ctx, console, document)


def _show_unknown_types(
    ctx: CommandContext, console: CommandConsole, document: Mapping[str, Any]
) -> None:
    """Write that the commands need a module, where steps have types that nothing here imports."""
    settings = ctx.settings()
    if ctx.service_url is not None or settings.node_modules or ctx.running_service(settings):
        return  # they are looked up elsewhere, or were found
    own = (node for node in nodes_of(document) if not _is_nested(node))
    types = {str(node["type"]) for node in own if node.get("type")}
    catalogue = ctx.factories.catalogue(settings)
    if unknown := sorted(name for name in types if catalogue.type_info(name) is None):
        names = one_line(", ".join(unknown))
        console.verbatim(
            f"Add the module that has the types of its steps ({names}): --import MODULE"
        )


def show_waiting(ctx: CommandContext, console: CommandConsole, document: Mapping[str, Any]) -> None:
    """Write the open requests of a paused execution, and the commands that answer or resume it."""
    if document.get("status") != "paused":
        return
    execution_id = str(document.get("execution_id"))
    requests = [json_object(each) for each in document.get("requests") or ()]
    for request in requests:
        awaits = awaited(request.get("request_id"), request.get("request"))
        asker = asker_of(request.get("path"), request.get("request"))
        sentence = f"{asker}: waiting {awaits}"
        console.text(Text(f"{console.glyph('waiting')} {one_line(sentence)}", style="yellow"))
        fields = json_object(request.get("request"))
        for line in _value_lines(fields.get("value")):
            console.text(Text(f"    {one_line(line)}".rstrip(), style="dim"))
        if is_change_request(fields):
            console.texts(forecast_lines(console, json_object(fields.get("forecast")), REST))
        way = "continue now with" if is_timer(fields) else "answer with"
        command = answer_command(ctx, execution_id, request.get("request_id"), fields)
        console.verbatim(f"  {way}: {command}{_other_decisions(fields)}")
    has_timer = any(is_timer(each.get("request")) for each in requests)
    if has_timer and ctx.running_service(ctx.settings()) is None:
        console.verbatim(
            f"The timer continues by itself while a server runs: {ctx.command_hint('serve')}"
        )
    if not requests or pause_kind({"reason": document.get("reason")}) != WAITING:
        reason = one_line(str(document.get("reason") or "paused"))
        again = ctx.command_hint(f"resume {execution_id}")
        console.verbatim(f"The execution is {reason}; resume it with: {again}")


def answer_command(
    ctx: CommandContext, execution_id: str, request_id: object, request: object
) -> str:
    """Return the command that answers a request, with its first decision if it has decisions."""
    words = f"answer {execution_id} {request_id}"
    if decisions := _decisions(request):
        words += f" --decision {decisions[0]}"
    if is_budget_request(request):
        limits = json.dumps(json_object(request).get("proposed"))
        words += f" --value {shlex.quote(limits)}"
    return ctx.command_hint(words)


def _other_decisions(request: object) -> str:
    others = _decisions(request)[1:]
    return f"   (or {', '.join(others)})" if others else ""


def _decisions(request: object) -> list[str]:
    """Return the decisions of a request, quoted for the shell."""
    return [shlex.quote(one_line(str(each))) for each in json_object(request).get("actions") or ()]


def _value_lines(value: Any) -> Iterator[str]:
    """Yield the first lines of the value that a request is about."""
    if value is None or value == "":
        return
    text = to_text(value)
    lines = text[:_VALUE_CHARS].splitlines()
    yield from lines[:_VALUE_LINES]
    if len(text) > _VALUE_CHARS or len(lines) > _VALUE_LINES:
        yield "…"
