from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from planwave import errors
from planwave.errors import LimitExceeded, NodeError, NodeTimeout, PlanwaveError, reason_of
from planwave.graph.diagnostics import limit_exceeded
from tests.support.paths import ROOT

SURFACE_WORDS = re.compile(
    r"planwave (answer|check|delete|exec|flow|fork|ls|plan|prune|resume|retry|run|show|watch)\b"
    r"|(^| )--[a-z]|/api/|/requests"
)
"""The words of one surface: commands and options of the command line, paths of HTTP."""
FOR_ALL_SURFACES = [
    path
    for package in ("service", "executor", "storage", "events", "errors.py")
    for path in (
        [ROOT / "planwave" / package]
        if package.endswith(".py")
        else (ROOT / "planwave" / package).rglob("*.py")
    )
    if path.name != "ownership.py"  # its errors are for who starts a command or the service
]


def test_a_passed_limit_is_told_to_the_last_digit() -> None:
    told = "limit plan_bytes is 1048576, met 1048577"
    assert told in LimitExceeded("plan_bytes", 1_048_576, 1_048_577).message
    assert told in limit_exceeded("plan_bytes", 1_048_576, 1_048_577, "the document").message
    assert "is 0.5, met 0.75" in LimitExceeded("wait_s", 0.5, 0.75).message


def test_errors_that_another_attempt_cannot_change_are_permanent() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    permanent = {
        kind.__name__ for kind in kinds if issubclass(kind, PlanwaveError) and not kind.retryable
    }
    assert permanent == {
        "Conflict", "Forbidden", "Gone", "GraphInvalid", "InputError", "InvalidAnswer",
        "InvalidChanges", "InvalidInputs", "InvalidOperation", "InvalidTransition",
        "LimitExceeded", "NotFound", "PermanentError", "PreconditionFailed", "PreconditionRequired", "ProviderError",
        "ResultNotJson", "SchemaTooNew", "TemplateError", "Unauthorized", "UnavailableProvider",
        "UnknownModel", "UnknownProvider",
    }  # fmt: skip


def test_the_document_of_an_error_is_text_whatever_a_node_raised() -> None:
    wrong: dict[str, Any] = {"message": None, "code": 404, "hint": ["wait"]}
    assert NodeError(**wrong).as_json() == {"code": "404", "message": "", "hint": "['wait']"}


def test_the_timeout_of_a_node_is_a_timeout_error() -> None:
    error = NodeTimeout("too slow", hint="raise timeoutS")
    assert isinstance(error, TimeoutError)
    assert (str(error), error.message, error.code, error.retryable) == (
        "too slow", "too slow", "node-timeout", True,
    )  # fmt: skip


@pytest.mark.parametrize("path", FOR_ALL_SURFACES, ids=lambda path: str(path.relative_to(ROOT)))
def test_hints_below_the_surfaces_are_not_in_the_words_of_one(path: Path) -> None:
    hints = [
        part.value
        for call in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(call, ast.Call)
        for keyword in call.keywords
        if keyword.arg == "hint"
        for part in ast.walk(keyword.value)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    assert [hint for hint in hints if SURFACE_WORDS.search(hint)] == []


def test_reason_of_a_system_error_has_no_number() -> None:
    denied = PermissionError(13, "Permission denied", "planwave.toml")
    assert reason_of(denied) == "Permission denied: 'planwave.toml'"
    assert reason_of(OSError(28, "No space left on device")) == "No space left on device"
    assert reason_of(OSError("odd")) == "odd"
    assert reason_of(ValueError("odd")) == "odd"
