"""Find the one JSON document in a model's reply, or say exactly why there is none.

Only two things are taken away, because their meaning is certain: a leading ``<thinking>`` section,
and prose around exactly one fenced block. Nothing is ever closed, cut or guessed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from planwave.graph.diagnostics import Diagnostic

RETRY_WITHOUT_REPLY = frozenset({"provider-error-reply", "html-reply"})
"""Faults of the way, not of the plan: the model is asked again, without being shown the reply."""

_THINKING = re.compile(r"\s*<(think|thinking)>.*?</\1>\s*", re.DOTALL | re.IGNORECASE)
_HTML = re.compile(r"<(!doctype|html|head|body)\b", re.IGNORECASE)
_YAML = re.compile(r"(---|[A-Za-z_]+:)\s*(\n|$)")
_SCALAR = re.compile(r'null|true|false|-?\d[\d.eE+-]*+|"[^\n]*+')
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]"]|//|/\*|#', re.DOTALL)
_EXCERPT_CHARS = 200


class ExtractedDocument(NamedTuple):
    """The document's text and what was taken away to get it, or why there is none."""

    text: str
    fixes: tuple[str, ...] = ()
    error: Diagnostic | None = None


def extract_document(reply: str, finish_reason: str = "stop") -> ExtractedDocument:
    """Give the one JSON document a reply consists of.

    Args:
        reply: What the model wrote.
        finish_reason: ``length`` where it was cut off; faults of its end then say so.
    """
    fixes: list[str] = []
    text = reply.lstrip("\ufeff").strip()
    if thinking := _THINKING.match(text):
        fixes.append(f"dropped a <{thinking[1].lower()}> section before the plan")
        text = text[thinking.end() :]
    if not text.startswith(("{", "[")):
        blocks, outside, open_fence = _split_fences(text)
        if len(blocks) > 1:
            return ExtractedDocument("", error=_several_documents(len(blocks)))
        if open_fence:
            return ExtractedDocument("", error=_truncated(len(text), "inside a code fence", finish_reason))
        if blocks:
            text = blocks[0].strip()
            fixes.append(
                "took the plan out of its code fence"
                + (f" and dropped {len(outside)} characters of prose around it" if outside else "")
            )
    fault = _check_is_json(text, finish_reason) or _check_outline(text, finish_reason)
    if fault is None and finish_reason == "length":
        fault = _truncated(len(text), "where a document ends", finish_reason)
    return ExtractedDocument(text, tuple(fixes), fault)


def _split_fences(text: str) -> tuple[list[str], str, bool]:
    """Give the fenced blocks, the prose outside, and whether a fence is left open.

    Fences are looked for at line starts and line ends: no JSON string goes over a line's end, so a
    fence can never be part of a document.
    """
    blocks: list[str] = []
    outside: list[str] = []
    block: list[str] | None = None
    for line in text.split("\n"):
        if block is None:
            if line.lstrip().startswith("```"):
                block = []
            else:
                outside.append(line)
        elif line.rstrip().endswith("```"):
            block.append(line.rstrip()[:-3])
            blocks.append("\n".join(block))
            block = None
        else:
            block.append(line)
    return blocks, "\n".join(outside).strip(), block is not None


def _check_is_json(text: str, finish_reason: str) -> Diagnostic | None:
    """Say what stands in place of JSON, if something else does."""
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
