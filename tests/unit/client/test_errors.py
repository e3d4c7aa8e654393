from __future__ import annotations

import pytest

from planwave.client.errors import error_from_problem
from planwave.errors import (
    Conflict,
    GraphInvalid,
    InputError,
    LimitExceeded,
    PlanInvalid,
    PlanwaveError,
    QueueFull,
    ShuttingDown,
    StoreError,
    TooManyRequests,
    UnavailableProvider,
)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (422, "graph-invalid", GraphInvalid),
        (422, "plan-invalid", PlanInvalid),
        (422, "unavailable-provider", UnavailableProvider),
        (429, "queue-full", QueueFull),
        (503, "server-draining", ShuttingDown),
        (409, "already-started", Conflict),
        (413, "limit-exceeded", LimitExceeded),
        (429, "too-many-requests", TooManyRequests),
        (503, "disk-full", StoreError),
        (422, "unknown-input-node", InputError),
        (500, "internal-error", PlanwaveError),
    ],
)
def test_problem_becomes_its_exception(status: int, code: str, kind: type[PlanwaveError]) -> None:
    error = error_from_problem(status, {"code": code, "detail": "so it is", "hint": "do that"})
    assert type(error) is kind
    assert error.as_json() == {"code": code, "message": "so it is", "hint": "do that"}
    assert error.status_hint == status


def test_response_without_problem_becomes_an_error() -> None:
    error = error_from_problem(502, {})
    assert error.message == "the service responded with status 502"


def test_problem_fields_are_kept() -> None:
    busy = error_from_problem(429, {"code": "queue-full", "detail": "full", "retry_after_s": 7})
    assert isinstance(busy, QueueFull)
    assert busy.retry_after_s == 7
    limit = {"code": "limit-exceeded", "detail": "d", "limit": "nodes", "value": 2, "met": 3}
    passed = error_from_problem(413, limit)
    assert isinstance(passed, LimitExceeded)
    assert (passed.limit, passed.value, passed.met) == ("nodes", 2, 3)


def test_graph_issues_become_diagnostics() -> None:
    issue = {"code": "flow-cycle", "message": "round", "pointer": "/edges/1", "path": ["a", "b"]}
    error = error_from_problem(422, {"code": "graph-invalid", "detail": "round", "issues": [issue]})
    assert isinstance(error, GraphInvalid)
    (found,) = error.diagnostics
    assert (found.severity, found.path, found.as_json()) == ("error", ["a", "b"], issue)
