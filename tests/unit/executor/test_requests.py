"""Open requests: found by their nodes, closed once."""

from __future__ import annotations

from planwave.executor.requests import PendingRequest, PendingRequests
from planwave.graph.protocols import Suspension


def asked(path: str) -> PendingRequest:
    return PendingRequest(path, 1, Suspension("?"), "2026-01-01T00:00:00+00:00")


def test_a_request_is_closed_by_its_node_or_its_id() -> None:
    requests = PendingRequests()
    for path in "ab":
        requests.add(f"of {path}", asked(path))
    assert requests.cancel("a") == asked("a")
    assert requests.cancel("a") is None
    assert "of a" not in requests
    assert requests.refusal_error("of a").code == "request-closed"
    assert requests.close("of b") == asked("b")
    assert requests.cancel("b") is None


def test_a_node_that_was_answered_may_ask_again() -> None:
    requests = PendingRequests()
    requests.add("first", asked("a"))
    assert requests.close("first") == asked("a")
    requests.add("second", asked("a"))
    assert requests.close("first") is None
    assert requests.refusal_error("first").code == "request-answered"
    assert requests.cancel("a") == asked("a")
    assert not requests
