"""From what a model wrote to a checked graph, or every reason why not.

extract → strict JSON → shape → graph document → ``read_and_check``. Nothing is dropped, closed or
guessed on the way but what is listed in ``fixes``. From the shape on, what is wrong in one place does
not keep the rest from being looked at, so that a model is told everything at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from planwave.errors import GraphInvalid
from planwave.graph.capabilities import Catalogue
from planwave.graph.check import read_and_check
from planwave.graph.diagnostics import Diagnostic, errors_in, sorted_by_location
from planwave.graph.json_values import is_storable_text
from planwave.graph.model import Graph, Json
from planwave.graph.read import parse_strict_json
from planwave.planner.document import ModelDefaults, build_graph
from planwave.planner.extract import extract_document
from planwave.planner.wire import ReplyPlan, parse_reply
from planwave.planner.withheld import redact_forbidden
from planwave.providers.api import Providers
from planwave.settings import Limits

Translate = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Turns another reply shape (that of small models) into the general one."""


class ParseContext(NamedTuple):
    """What replies are read against.

    ``node_types`` are the only ones a plan may use, the default first; ``max_nodes`` bounds it below
    what the limits allow.
    """

    catalogue: Catalogue
    providers: Providers
    defaults: ModelDefaults
    limits: Limits | None = None
    translate: Translate | None = None
    node_types: Sequence[str] | None = None
    max_nodes: int | None = None


@dataclass(frozen=True, slots=True)
class ParseResult:
    """What became of one reply.

    Attributes:
        reply: The reply as it may be kept and shown: forbidden values are withheld, and
            characters that no store takes are replaced.
        graph: The checked graph; None where there are errors.
        title: The plan's own title, "" where it has none.
        diagnostics: Every finding by its place; errors where ``graph`` is None.
        fixes: What was changed, one sentence each.
    """

    reply: str
    graph: Graph | None = None
    title: str = ""
    diagnostics: Sequence[Diagnostic] = ()
    fixes: Sequence[str] = ()


def read_reply(reply: str, context: ParseContext, finish_reason: str = "stop") -> ParseResult:
    """Read one reply.

    Args:
        reply: What the model wrote.
        reader: What it may name, and the limits.
        finish_reason: ``length`` where the model was cut off: never a plan, however it looks.
    """
    shown = _storable(reply)
    if fault := _too_long(reply, context.limits):
        return ParseResult(shown, diagnostics=[fault])
    found = extract_document(reply, finish_reason)
    if found.error is not None:
        return ParseResult(shown, diagnostics=[found.error], fixes=found.fixes)
    depth = None if context.limits is None else context.limits.json_depth
    try:
        value = parse_strict_json(found.text, max_depth=depth)
    except GraphInvalid as invalid:
        return ParseResult(shown, diagnostics=invalid.diagnostics, fixes=found.fixes)
    value, kept, forbidden = redact_forbidden(value)
    if forbidden:
        shown = json.dumps(kept, ensure_ascii=False)
    plan, faults = _parse_plan(value, context.translate)
    if plan is None:
        return ParseResult(shown, diagnostics=[*forbidden, *faults], fixes=found.fixes)
    reading = _build_and_check(plan, context, [*forbidden, *faults])
    return replace(reading, reply=shown, fixes=(*found.fixes, *reading.fixes))


def _storable(reply: str) -> str:
    """Give a reply in characters that can be kept and sent back: no NUL, no half surrogates."""
    if is_storable_text(reply):
        return reply
    return reply.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _too_long(reply: str, limits: Limits | None) -> Diagnostic | None:
    if limits is None or len(reply) * 4 <= limits.plan_bytes:
        return None
    size = len(reply.encode("utf-8", "surrogatepass"))
    if size <= limits.plan_bytes:
        return None
    return _limit_exceeded("plan_bytes", limits.plan_bytes, f"{size} bytes or more", "")


def _limit_exceeded(limit: str, value: int, actual: str, pointer: str) -> Diagnostic:
    message = f"limit {limit} of a model's plan is {value}, met {actual}"
    hint = f"write a smaller plan, or raise PLANWAVE_LIMIT_{limit.upper()}"
    return Diagnostic("limit-exceeded", "error", message, pointer, hint=hint)


def _parse_plan(value: Json, translate: Translate | None) -> tuple[ReplyPlan | None, list[Diagnostic]]:
    if translate is not None and isinstance(value, dict) and "nodes" not in value:
        try:
            value = translate(cast("dict[str, Any]", value))
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            # Servers that take no schema let such models write anything at all.
            message = f"the reply does not have the steps asked for: {error!r}"
            return None, [Diagnostic("invalid-field", "error", message)]
    return parse_reply(value)


def _build_and_check(plan: ReplyPlan, context: ParseContext, known: Sequence[Diagnostic]) -> ParseResult:
    """Make the graph and check it; all that is wrong is told at once."""
    draft = build_graph(plan, context.catalogue, context.providers, context.defaults, context.node_types)
    findings = [*known, *draft.diagnostics, *_too_many_nodes(draft.nodes, context)]
    graph, found = read_and_check(draft.document, context.catalogue, context.limits)
    fixes = [*draft.fixes, *(f"{d.message}: {d.fix}" for d in found if d.fix)]
    findings = sorted_by_location([*findings, *(d for d in found if not d.fix)])
    kept = None if errors_in(findings) else graph
    return ParseResult("", kept, (plan.title or "").strip(), findings, fixes)


def _too_many_nodes(nodes: int, context: ParseContext) -> list[Diagnostic]:
    if context.max_nodes is not None and nodes > context.max_nodes:
        message = f"this plan may have {context.max_nodes} nodes, it has {nodes}"
        hint = "write a smaller plan"
        return [Diagnostic("limit-exceeded", "error", message, "/nodes", hint=hint)]
    if context.limits is None or nodes <= context.limits.plan_nodes:
        return []
    return [_limit_exceeded("plan_nodes", context.limits.plan_nodes, str(nodes), "/nodes")]
