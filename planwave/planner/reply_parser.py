"""Read a model's reply: find the JSON document in it, check its shape, build the graph and check that.

Only what is certain is removed from the text: reasoning (``reply_text.py``), prose around exactly one
fenced block, and the tags of a call. Nothing is closed, cut or guessed; every change is
listed in ``fixes``. An error in one place does not keep the rest from being checked, so that the
model gets all errors at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from planwave.errors import GraphInvalid
from planwave.graph.checking.checker import read_and_check
from planwave.graph.diagnostics import Diagnostic, errors_in, sorted_by_location
from planwave.graph.json_values import is_storable_text
from planwave.graph.model import Graph, Json
from planwave.graph.protocols import NodeTypes
from planwave.graph.reading.strict_json import parse_strict_json
from planwave.planner.capabilities import NO_RULES, PlanRules
from planwave.planner.forbidden_fields import redact_forbidden
from planwave.planner.graph_builder import ModelDefaults, build_graph
from planwave.planner.plan_check import PlanCheck
from planwave.planner.questions import NO_ANSWERS, read_questions
from planwave.planner.repeated_join import repeated_join
from planwave.planner.reply_schema import ReplyPlan, parse_reply, refusal
from planwave.providers.protocols import Providers
from planwave.providers.reply_text import fenced_blocks, json_text, split_reasoning
from planwave.settings import Limits

if TYPE_CHECKING:
    from planwave.shapes.plans import PlanQuestion

RETRY_WITHOUT_REPLY = frozenset({"provider-error-reply", "html-reply"})
"""Findings about the way, not about the plan: the model is asked again, without being shown the reply."""

_HTML = re.compile(r"<(!doctype|html|head|body)\b", re.IGNORECASE)
_YAML = re.compile(r"(---|[A-Za-z_]+:)\s*(\n|$)")
_REFUSAL = re.compile(
    r"\b(I|we)\s?(['\u2019]m|am|are)? (can['\u2019]?t|cannot|can not|won['\u2019]t|will not|would rather not|"
    r"unable|not able|not comfortable|must decline|refuse|decline)\b|^(I['\u2019]m )?sorry\b",
    re.IGNORECASE,
)
"""A refusal in prose: such a reply holds no plan."""
_SCALAR = re.compile(r'null|true|false|-?\d[\d.eE+-]*+|"[^\n]*+')
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]"]|//|/\*|#', re.DOTALL)
_EXCERPT_CHARS = 200


class ExtractedDocument(NamedTuple):
    """The document's text and what was taken away to get it, or why there is none."""

    text: str
    fixes: tuple[str, ...] = ()
    error: Diagnostic | None = None


def extract_document(reply: str, finish_reason: str = "stop") -> ExtractedDocument:
    """Return the one JSON document of a reply.

    Args:
        reply: What the model wrote.
        finish_reason: ``length`` where it was cut off; findings about its end then say so.
    """
    fixes: list[str] = []
    if reply.startswith("\ufeff"):
        fixes.append("dropped a byte order mark before the plan")
    text, reasoning = split_reasoning(reply.lstrip("\ufeff").strip())
    text = text.strip()
    if reasoning:
        fixes.append(f"dropped {len(reasoning)} characters of reasoning around the plan")
    if not text.startswith(("{", "[")):
        fenced = fenced_blocks(text)
        if len(fenced.blocks) > 1:
            return ExtractedDocument("", error=_several_documents(len(fenced.blocks)))
        if fenced.is_open:
            return ExtractedDocument(
                "", error=_truncated(len(text), "inside a code fence", finish_reason)
            )
        if fenced.blocks:
            outside = len(fenced.outside)
            fixes.append(
                "took the plan out of its code fence"
                + (f" and dropped {outside} characters of prose around it" if outside else "")
            )
        elif json_text(text) != text:
            fixes.append("took the plan out of the tags of a call")
        text = json_text(text)
    finding = _check_is_json(text, finish_reason) or _check_outline(text, finish_reason)
    if finding is None and finish_reason == "length":
        finding = _truncated(len(text), "where a document ends", finish_reason)
    return ExtractedDocument(text, tuple(fixes), finding)


def _check_is_json(text: str, finish_reason: str) -> Diagnostic | None:
    """Return an error if the reply is HTML, YAML or a scalar instead of a JSON object."""
    if text.startswith(("{", "[")) or _SCALAR.fullmatch(text):
        return None
    if not text:
        if finish_reason == "length":
            return _truncated(0, "before the plan began", finish_reason)
        return _error("empty-reply", "the model answered with nothing", "answer with the plan")
    if _HTML.match(text):
        return _error("html-reply", f"the reply is HTML, not a plan: {text[:_EXCERPT_CHARS]!r}")
    return _not_json(text)


def _not_json(text: str) -> Diagnostic:
    if "{" not in text and _REFUSAL.search(text[:_EXCERPT_CHARS]):
        return refusal(text)
    if text.startswith(("//", "/*", "#")):
        message = "the reply begins with a comment; comments are not JSON"
    elif _YAML.match(text):
        message = "the reply is YAML; only JSON is read"
    elif "{" in text:
        message = f"the reply has text around the plan, beginning with {text[:60]!r}"
    else:
        message = f"the reply holds no JSON: {text[:_EXCERPT_CHARS]!r}"
    return _error("invalid-json", message, "answer with one JSON object and nothing else")


def _check_outline(text: str, finish_reason: str) -> Diagnostic | None:
    """Find what a parser would only call a syntax error: a cut, a second document, a comment."""
    if not text.startswith("{"):
        return None
    depth = 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "{" | "[":
                depth += 1
            case "}" | "]":
                depth -= 1
                if depth == 0:
                    return _trailing_data(text, token.end())
            case '"':
                return _truncated(len(text), "inside a string", finish_reason)
            case "//" | "/*" | "#":
                at = token.start()
                return _error(
                    "invalid-json", f"a comment at character {at}; comments are not JSON", "drop it"
                )
            case _:
                continue
    return _truncated(len(text), f"with {depth} brackets open", finish_reason)


def _trailing_data(text: str, end: int) -> Diagnostic | None:
    rest = text[end:].lstrip()
    if not rest:
        return None
    at = len(text) - len(rest)
    return _error(
        "trailing-data",
        f"trailing data after the document at character {at}: {rest[:60]!r}",
        "answer with exactly one JSON object",
    )


def _several_documents(count: int) -> Diagnostic:
    return _error(
        "several-documents", f"the reply holds {count} fenced blocks", "answer with exactly one"
    )


def _truncated(at: int, where: str, finish_reason: str) -> Diagnostic:
    if finish_reason == "length":
        why = "the model reached its output limit (finish_reason length)"
        hint = "write a shorter plan, or give the planner's model more output tokens"
    else:
        why = f"finish_reason {finish_reason}"
        hint = "write the whole plan"
    return _error("truncated-reply", f"the plan ends at character {at} {where}: {why}", hint)


def _error(code: str, message: str, hint: str | None = None) -> Diagnostic:
    return Diagnostic(code, "error", message, hint=hint)


class Reading(Protocol):
    """What was read of a reply, and what is wrong with it."""

    @property
    def reply(self) -> str: ...
    @property
    def diagnostics(self) -> Sequence[Diagnostic]: ...


Translate = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Turns another reply shape (that of small models) into the general one."""


class ParseContext(NamedTuple):
    """The node types, providers and limits that replies are checked against.

    ``node_types`` are the only ones a plan may use, the default first; ``max_nodes`` bounds it below
    what the limits allow; ``rules`` say what its nodes may have; ``answers`` are those
    of a person, by question.
    """

    catalogue: NodeTypes
    providers: Providers
    defaults: ModelDefaults
    limits: Limits | None = None
    translate: Translate | None = None
    node_types: Sequence[str] | None = None
    max_nodes: int | None = None
    rules: PlanRules = NO_RULES
    answers: Mapping[str, str] = NO_ANSWERS


@dataclass(frozen=True, slots=True)
class ParseResult:
    """The result of reading one reply.

    Attributes:
        reply: The reply as it may be kept and shown: forbidden values are withheld, and
            characters that no store takes are replaced.
        graph: The checked graph; None where there are errors.
        title: The plan's own title, "" where it has none.
        diagnostics: Every finding by its place; errors where ``graph`` is None.
        fixes: The changes made, one sentence each.
        questions: What the model asks, with the answers that it assumes.
    """

    reply: str
    graph: Graph | None = None
    title: str = ""
    diagnostics: Sequence[Diagnostic] = ()
    fixes: Sequence[str] = ()
    questions: Sequence[PlanQuestion] = ()


def read_reply(reply: str, context: ParseContext, finish_reason: str = "stop") -> ParseResult:
    """Read one reply.

    Args:
        reply: What the model wrote.
        context: The node types and providers that the plan may name, and the limits.
        finish_reason: ``length`` where the model was cut off: never a plan, however it looks.
    """
    document = read_document(reply, context.limits, finish_reason)
    if document.error is not None:
        return ParseResult(document.reply, diagnostics=document.findings, fixes=document.fixes)
    asked = read_questions(document.value, context.answers, may_ask=context.translate is None)
    plan, findings = _parse_plan(asked.rest, context.translate)
    findings = [*document.findings, *findings]
    if plan is None:
        return ParseResult(document.reply, diagnostics=findings, fixes=document.fixes)
    reading = _build_and_check(plan, context, findings)
    fixes = (*document.fixes, *asked.fixes, *reading.fixes)
    return replace(reading, reply=document.reply, fixes=fixes, questions=asked.questions)


class ReplyDocument(NamedTuple):
    """The JSON of a reply without what no reply may hold.

    Attributes:
        reply: The reply as it may be kept and shown; see ``ParseResult``.
        value: The document, if it is one.
        findings: What is wrong with it.
        fixes: What was taken away to get it.
        error: Why there is no document; None where there is one.
    """

    reply: str
    value: Json = None
    findings: Sequence[Diagnostic] = ()
    fixes: Sequence[str] = ()
    error: Diagnostic | None = None


def read_document(reply: str, limits: Limits | None, finish_reason: str = "stop") -> ReplyDocument:
    """Find the JSON document in a reply, and take out what no reply may hold."""
    safe_reply = _storable(reply)
    if finding := _too_long(reply, limits):
        return ReplyDocument(safe_reply, findings=[finding], error=finding)
    document = extract_document(reply, finish_reason)
    if document.error is not None:
        return ReplyDocument(
            safe_reply, findings=[document.error], fixes=document.fixes, error=document.error
        )
    depth = None if limits is None else limits.json_depth
    try:
        value = parse_strict_json(document.text, max_depth=depth)
    except GraphInvalid as invalid:
        findings: Sequence[Diagnostic] = invalid.diagnostics
        return ReplyDocument(safe_reply, findings=findings, fixes=document.fixes, error=findings[0])
    value, safe_value, forbidden = redact_forbidden(value)
    if forbidden:
        safe_reply = json.dumps(safe_value, ensure_ascii=False)
    return ReplyDocument(safe_reply, value, forbidden, document.fixes)


def _storable(reply: str) -> str:
    """Return a reply in storable characters: no NUL, no half surrogates."""
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
    hint = f"write a smaller plan, or raise the limit {limit}"
    return Diagnostic("limit-exceeded", "error", message, pointer, hint=hint)


def _parse_plan(
    value: Json, translate: Translate | None
) -> tuple[ReplyPlan | None, list[Diagnostic]]:
    positional = isinstance(value, dict) and not value.keys() & {"nodes", "steps"}
    if translate is not None and positional:
        try:
            value = translate(cast("dict[str, Any]", value))
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            # Servers that take no schema let such models write anything at all.
            message = f"the reply does not have the steps asked for: {error!r}"
            return None, [Diagnostic("invalid-field", "error", message)]
    return parse_reply(value)


def _build_and_check(
    plan: ReplyPlan, context: ParseContext, reply_findings: Sequence[Diagnostic]
) -> ParseResult:
    """Build the graph and check it; report all errors together."""
    draft = build_graph(
        plan, context.catalogue, context.providers, context.defaults, context.node_types
    )
    findings = [*reply_findings, *draft.diagnostics, *_too_many_nodes(draft.nodes, context)]
    graph, graph_findings = read_and_check(draft.document, context.catalogue, context.limits)
    if graph is not None and not errors_in([*findings, *graph_findings]):
        repeated = repeated_join(graph)
        if repeated is not None:
            document = repeated.without_step(draft.document)
            draft = draft._replace(document=document, fixes=[*draft.fixes, repeated.fix])
            graph, graph_findings = read_and_check(document, context.catalogue, context.limits)
    fixes = [*draft.fixes, *(f"{d.message}: {d.fix}" for d in graph_findings if d.fix)]
    findings += () if graph is None else PlanCheck(context.catalogue, context.rules).findings(graph)
    findings = sorted_by_location([*findings, *(d for d in graph_findings if not d.fix)])
    if errors_in(findings):  # they go back to the model, which knows its reply and not the graph
        findings = [replace(d, pointer=draft.reply_pointer(d.pointer)) for d in findings]
        graph = None
    return ParseResult("", graph, (plan.title or "").strip(), findings, fixes)


def _too_many_nodes(nodes: int, context: ParseContext) -> list[Diagnostic]:
    if context.max_nodes is not None and nodes > context.max_nodes:
        message = f"this plan may have {context.max_nodes} nodes, it has {nodes}"
        hint = "write a smaller plan"
        return [Diagnostic("limit-exceeded", "error", message, "/nodes", hint=hint)]
    if context.limits is None or nodes <= context.limits.plan_nodes:
        return []
    return [_limit_exceeded("plan_nodes", context.limits.plan_nodes, str(nodes), "/nodes")]
