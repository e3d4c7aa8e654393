"""Conversion of problem responses to the exceptions that the same call raises in-process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, Final, cast

from planwave.errors import (
    Conflict,
    Forbidden,
    Gone,
    InputError,
    LimitExceeded,
    NotFound,
    PlanwaveError,
    PreconditionFailed,
    PreconditionRequired,
    ProviderError,
    StoreError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)

_CLASS_OF_STATUS: Final[Mapping[int, type[PlanwaveError]]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    412: PreconditionFailed,
    413: LimitExceeded,
    428: PreconditionRequired,
    429: TooManyRequests,
    502: ProviderError,
    503: StoreError,
}
_DEFAULT_ATTRIBUTES: Final[Mapping[str, Any]] = {
    "retry_after_s": 0.0,
    "limit": "",
    "value": 0.0,
    "met": 0.0,
    "provider": "",
    "model": None,
    "current": "",
    "request_id": None,
}
"""Attributes of exceptions besides code, message and hint, with their defaults."""


def error_from_problem(status: int, problem: Mapping[str, Any]) -> PlanwaveError:
    """Return the exception for a problem.

    Args:
        status: The HTTP status.
        problem: ``{"code", "detail", "hint"?, "issues"?, …}``; all fields are optional.
    """
    code = problem.get("code")
    kind = _CLASS_OF_CODE.get(code) if isinstance(code, str) else None
    kind = kind or _CLASS_OF_STATUS.get(status) or (InputError if status < 500 else PlanwaveError)
    error = kind.__new__(kind)
    message = str(problem.get("detail") or f"the service responded with status {status}")
    hint = problem.get("hint")
    PlanwaveError.__init__(
        error,
        message,
        code=code if isinstance(code, str) else None,
        hint=hint if isinstance(hint, str) else None,
    )
    error.status_hint = status
    for name, missing in _DEFAULT_ATTRIBUTES.items():
        setattr(error, name, problem.get(name, missing))
    error.__dict__["diagnostics"] = tuple(
        _SentDiagnostic(issue) for issue in _objects(problem, "issues")
    )
    error.__dict__["attempts"] = _objects(problem, "attempts")
    return error


def unexpected_response(what: str) -> PlanwaveError:
    """Return the exception for a response that no planwave service sends."""
    return PlanwaveError(
        f"the response was {what}",
        code="not-planwave",
        hint="check that planwave is at this address, without a proxy that changes responses",
    )


def unreachable(url: str, error: Exception) -> Unreachable:
    """Return the exception for a service that does not respond."""
    reason = str(error) or type(error).__name__
    return Unreachable(f"no planwave service responds at {url}: {reason}")


_DEFAULT_DIAGNOSTIC: Final[Mapping[str, Any]] = {
    "code": "",
    "severity": "error",
    "message": "",
    "pointer": "",
    "node": None,
    "edge": None,
    "path": None,
    "hint": None,
    "fix": None,
}


class _SentDiagnostic(SimpleNamespace):
    """A diagnostic as the service sent it."""

    def __init__(self, issue: Mapping[str, Any]) -> None:
        fields = {**_DEFAULT_DIAGNOSTIC, **issue}
        super().__init__(**{name: fields[name] for name in fields if name.isidentifier()})
        self._issue = dict(issue)

    def as_json(self) -> dict[str, Any]:
        return dict(self._issue)


def _objects(problem: Mapping[str, Any], name: str) -> tuple[dict[str, Any], ...]:
    value = problem.get(name)
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return tuple(cast("dict[str, Any]", item) for item in items if isinstance(item, dict))


def _all_subclasses(kind: type[PlanwaveError]) -> Iterator[type[PlanwaveError]]:
    for inner in kind.__subclasses__():
        yield inner
        yield from _all_subclasses(inner)


_CLASS_OF_CODE: Final = {
    kind.code: kind for kind in _all_subclasses(PlanwaveError) if "code" in vars(kind)
}
