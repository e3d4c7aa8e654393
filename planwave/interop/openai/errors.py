"""Errors in the form of the OpenAI API: ``{"error": {"message", "type", "param", "code"}}``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from planwave.errors import GraphInvalid, InputError, NotFound, PlanwaveError
from planwave.events import ExecutionState
from planwave.service.queries.caller_failures import failed_at_url_of_caller, partial_result

PREFIX: Final = "/v1/"
"""The beginning of the paths whose errors have this form."""
MODEL_NOT_FOUND: Final = "model_not_found"
_TYPES: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    429: "rate_limit_error",
}
_FAILED: Final = "execution-failed"
_UNPROCESSABLE: Final = 422
HAS_RUN: Final = _UNPROCESSABLE
"""The status of a request that has run and has no answer. No client repeats it: OpenAI's, Vercel's and LiteLLM
repeat 408, 409, 429 and 5xx, LangChain.js what is not in its list of 400 to 409 and 422."""
_INVALID: Final = 400
_FIRST_SERVER_ERROR: Final = 500
_INDEX: Final = re.compile(r"/(\d+)(?=/|$)")


class InvalidParameter(InputError):
    """A parameter of a request has a value that cannot be used; ``param`` is its name."""

    code = "invalid-parameter"
    status_hint = _INVALID

    def __init__(self, param: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.param = param


class ModelNotFound(NotFound):
    """No published flow has the name of the model."""

    code = "model-not-found"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the model {name!r} does not exist, or is not for this token",
            hint="GET /v1/models lists the models",
        )


def openai_error(error: PlanwaveError) -> tuple[int, dict[str, Any]]:
    """Return the status and the body of the response to a request that failed.

    OpenAI answers 400 to whatever is wrong with the fields of a body.
    """
    status = _INVALID if error.status_hint == _UNPROCESSABLE else error.status_hint
    default = "server_error" if status >= _FIRST_SERVER_ERROR else "invalid_request_error"
    message, param = error.message, None
    if isinstance(error, InvalidParameter):
        param = error.param
    elif isinstance(error, GraphInvalid) and error.diagnostics:
        message, param = error.diagnostics[0].message, _param(error.diagnostics[0].pointer)
    elif isinstance(error, ModelNotFound):
        param = "model"
    if error.hint:
        message = f"{message}; {error.hint}"
    code = MODEL_NOT_FOUND if isinstance(error, ModelNotFound) else error.code
    return status, error_body(message, _TYPES.get(status, default), code, param)


def error_body(message: str, kind: str, code: str | None, param: str | None) -> dict[str, Any]:
    """Return ``{"error": …}``."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def failure_status(state: ExecutionState) -> int:
    """Return the status for an execution that failed: 400 if a URL of the caller is the cause, else 422."""
    return _INVALID if failed_at_url_of_caller(state) else HAS_RUN


def with_outcome(
    failure: Mapping[str, Any], state: ExecutionState, *, shows_causes: bool
) -> Mapping[str, Any]:
    """Return a failure with what the execution delivered all the same and what is missing, if it did.

    Args:
        failure: ``{"message", "code"}``.
        state: That of the execution.
        shows_causes: Whether the client may see which nodes failed, and how.
    """
    parts = partial_result(state, shows_causes=shows_causes)
    if not parts:
        return failure
    message = f"{failure['message']}; delivered: {', '.join(parts['outputs'])}"
    if parts["missing"]:
        message += f"; missing: {', '.join(each['path'] for each in parts['missing'])}"
    return {**failure, "message": message, **parts}


def parts_of(failure: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a failure that ``with_outcome`` adds beside its message."""
    return {name: failure[name] for name in ("outcome", "outputs", "missing") if name in failure}


def failure_body(failure: Mapping[str, Any], status: int = HAS_RUN) -> dict[str, Any]:
    """Return ``{"error": …}`` for an execution that failed or was cancelled.

    Args:
        failure: ``{"message", "code"}``, the code may be None; and what ``with_outcome`` adds.
        status: The status of the response.
    """
    is_of_caller = status == _INVALID
    kind = "invalid_request_error" if is_of_caller else "server_error"
    param = "messages" if is_of_caller else None
    body = error_body(str(failure["message"]), kind, failure["code"] or _FAILED, param)
    body["error"] |= parts_of(failure)
    return body


def _param(pointer: str) -> str | None:
    """Return a JSON pointer as OpenAI writes it: ``messages[0].content``."""
    return _INDEX.sub(r"[\1]", pointer).removeprefix("/").replace("/", ".") or None
