"""Open requests: found by their nodes, closed once."""

from __future__ import annotations

from planwave.executor.requests import PendingRequest, PendingRequests
from planwave.graph.protocols import Suspension


def pending(path: str) -> PendingRequest:
    return PendingRequest(path, 1, Suspension("?"), "2026-01-01T00:00:00+00:00")


def test_a_request_is_closed_by_its_node_or_its_id() -> None:
    requests = PendingRequests()
    for path in "ab":
        requests.add(f"of {path}", pending(path))
    assert requests.cancel("a") == pending("a")
    assert requests.cancel("a") is None
    assert "of a" not in requests
    assert requests.refusal_error("of a").code == "request-closed"
    assert requests.close("of b") == pending("b")
    assert requests.cancel("b") is None


def test_a_node_may_make_another_request_after_an_answer() -> None:
    requests = PendingRequests()
    requests.add("first", pending("a"))
    assert requests.close("first") == pending("a")
    requests.add("second", pending("a"))
    assert requests.close("first") is None
    assert requests.refusal_error("first").code == "request-answered"
    assert requests.cancel("a") == pending("a")
    assert not requests
