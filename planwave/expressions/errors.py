"""Error codes of templates, and constructors of the errors that several modules raise."""

from __future__ import annotations

from planwave.errors import TemplateError

SYNTAX = "template-syntax"
UNDEFINED = "template-undefined"
FORBIDDEN = "template-forbidden"
TOO_LARGE = "template-too-large"
TIMEOUT = "template-timeout"
MEMORY = "template-memory"
CRASHED = "template-crashed"
FAILED = "template-error"
UNAVAILABLE = "template-unavailable"

LITERAL_HINT = 'to write literal braces use {{ "{{" }} or {% raw %}…{% endraw %}'
NUMBER_HINT = "pass a number, or give a default: | int(0), | float(0)"

HINTS = {
    SYNTAX: LITERAL_HINT,
    UNDEFINED: 'correct the path, or add | default("…")',
    FORBIDDEN: "templates read values and write text, with the filters and functions of MiniJinja",
    TIMEOUT: "loop over less, or prepare the value in a step of its own",
    TOO_LARGE: "write less, or raise the limit template_output_bytes",
}
"""Hints by code for errors that the render worker reports."""


def syntax_error(message: str, hint: str | None = LITERAL_HINT) -> TemplateError:
    """Return the error of a template that cannot be parsed."""
    return TemplateError(message, code=SYNTAX, hint=hint)


def too_large(what: str, limit: int, actual: int, setting: str) -> TemplateError:
    """Return the error of a template, request or result that exceeds its limit in bytes."""
    return TemplateError(
        f"{what} is longer than {setting} allows: limit {limit}, met {actual}",
        code=TOO_LARGE,
        hint=f"shorten it or raise the limit {setting}",
    )


def at_field(error: TemplateError, name: str) -> TemplateError:
    """Return the same error with the name of its field at the start of the message."""
    return TemplateError(
        f"{name}: {error.message}" if name else error.message,
        code=error.code,
        hint=error.hint,
        retryable=error.retryable,
    )


def byte_length(text: str, limit: int) -> int:
    """Return the UTF-8 length of a text, exact only if needed to compare it with ``limit``.

    The text is not encoded if its number of characters decides.
    """
    if len(text) > limit or len(text) * 4 <= limit:
        return len(text)
    return len(text.encode("utf-8", "surrogatepass"))
