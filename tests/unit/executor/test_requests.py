"""Open requests: found by their nodes, closed once."""

from __future__ import annotations

from typing import Any

from planwave.executor.requests import PendingRequest, PendingRequests
from planwave.graph.protocols import Suspension


class Unread(dict[str, Any]):
    """What nobody looks through."""

    def items(self) -> Any:
        raise AssertionError("one request is looked for among all of them")

    values = __iter__ = items


def asked(path: str) -> PendingRequest:
    return PendingRequest(path, 1, Suspension("?"), "2026-01-01T00:00:00+00:00")


def test_however_many_are_open_that_of_one_node_is_found_at_once() -> None:
    requests = PendingRequests()
    requests.by_id = Unread()
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
