from __future__ import annotations

from planwave import errors
from planwave.errors import LimitExceeded, NodeTimeout, PlanwaveError
from planwave.graph.diagnostics import limit_exceeded


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
        "Conflict", "Forbidden", "Gone", "GraphInvalid", "InputError", "InvalidTransition",
        "LimitExceeded", "NotFound", "PermanentError", "PreconditionFailed", "ProviderError",
        "ResultNotJson", "SchemaTooNew", "TemplateError", "Unauthorized", "UnavailableProvider",
        "UnknownModel", "UnknownProvider",
    }  # fmt: skip


def test_the_timeout_of_a_node_is_a_timeout_error() -> None:
    error = NodeTimeout("too slow", hint="raise timeoutS")
    assert isinstance(error, TimeoutError)
    assert (str(error), error.message, error.code, error.retryable) == (
        "too slow", "too slow", "node-timeout", True,
    )  # fmt: skip
