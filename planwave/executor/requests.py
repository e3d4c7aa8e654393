"""The open requests of an execution: the questions of its waiting nodes, with their timeouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from planwave.errors import Conflict, Gone, PlanwaveError
from planwave.events.types import NodeWaiting, NodeWaitingData
from planwave.executor.state import Attempt
from planwave.graph.model import Json
from planwave.graph.protocols import Suspension

ANSWERED: Final = "answered"
OWN_PATH: Final = ""
"""The path of the requests for approval of the plan or a change of it, and for a higher budget: no node makes them."""


class PendingRequest(NamedTuple):
    """A request that can be answered.

    Attributes:
        path: Path of the waiting node; ``OWN_PATH`` for one of the execution itself.
        attempt_number: Number of the waiting attempt.
        suspension: The request itself, with its state and timeout.
        since: Time of the request, in the format of event times.
        is_interrupted: The driver made the request: a person decides how to proceed with an
            interrupted attempt that must not simply be repeated.
        attempt: The waiting attempt; None in a nested run that its node has not opened again yet.
    """

    path: str
    attempt_number: int | None
    suspension: Suspension
    since: str
    is_interrupted: bool = False
    attempt: Attempt | None = None

    def as_event_data(self, request_id: str) -> NodeWaitingData:
        """Return the data of its ``node.waiting``."""
        suspension = self.suspension
        data: NodeWaitingData = {"request_id": request_id, "request": suspension.request}
        if suspension.state is not None:
            data["state"] = suspension.state
        if suspension.timeout_s is not None:
            data["timeout_s"] = suspension.timeout_s
            data["timeout_answer"] = suspension.timeout_answer
        if self.is_interrupted:
            data["interrupted"] = True
        return data


class PendingRequests:
    """The open requests, in the order they were made; each is answered once. A node has one at most.

    Attributes:
        by_id: The open requests; public because the driver reads them in every turn.
    """

    __slots__ = ("_by_path", "_claimed", "_closed", "by_id")

    def __init__(self) -> None:
        self.by_id: dict[str, PendingRequest] = {}
        self._by_path: dict[str, str] = {}
        self._claimed: set[str] = set()
        self._closed: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self.by_id)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self.by_id

    def __iter__(self) -> Iterator[tuple[str, PendingRequest]]:
        return iter(self.by_id.items())

    def add(self, request_id: str, request: PendingRequest) -> None:
        """Add an open request."""
        self.by_id[request_id] = request
        self._by_path[request.path] = request_id

    def claim(self, request_id: str) -> bool:
        """Take a request for answering; False if it is not open or already claimed."""
        if request_id not in self.by_id or request_id in self._claimed:
            return False
        self._claimed.add(request_id)
        return True

    def release(self, request_id: str) -> None:
        """Let a request be claimed again, as its answer could not be taken."""
        self._claimed.discard(request_id)

    def close(self, request_id: str, by: str = ANSWERED) -> PendingRequest | None:
        """Close a request and return it; None if it is not open. ``by`` names the reason."""
        return self._close(request_id, by)

    def id_at(self, path: str) -> str | None:
        """Return the id of the open request of a node, or None."""
        return self._by_path.get(path)

    def cancel(self, path: str) -> PendingRequest | None:
        """Close and return the request of a node that no longer waits, if it has one."""
        request_id = self._by_path.get(path)
        return None if request_id is None else self._close(request_id, "cancelled")

    def refusal_error(self, request_id: str) -> PlanwaveError:
        """Return the error for a request that cannot be answered."""
        by = ANSWERED if request_id in self.by_id else self._closed.get(request_id)
        if by == ANSWERED:
            return Conflict(f"request {request_id!r} was answered already", code="request-answered")
        return Gone(
            f"request {request_id!r} was closed before the answer came", code="request-closed"
        )

    def _close(self, request_id: str, by: str) -> PendingRequest | None:
        request = self.by_id.pop(request_id, None)
        if request is not None:
            self._closed[request_id] = by
            self._by_path.pop(request.path, None)
        return request


def own_request(request: Json, since: str) -> PendingRequest:
    """Return a request that the execution itself makes, and no node."""
    return PendingRequest(OWN_PATH, None, Suspension(request), since)


def request_from_event(event: NodeWaiting, attempt: Attempt | None = None) -> PendingRequest:
    """Return the request of a stored ``node.waiting`` event."""
    data = event.data
    suspension = Suspension(
        data.get("request"), data.get("state"), data.get("timeout_s"), data.get("timeout_answer")
    )
    path, is_interrupted = event.path or "", bool(data.get("interrupted"))
    return PendingRequest(path, event.attempt, suspension, event.at, is_interrupted, attempt)
