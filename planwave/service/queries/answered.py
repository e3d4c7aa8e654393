"""The requests to people that were answered, in all executions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from planwave.events import Event, OpenRequest
from planwave.events.request_text import PERSON
from planwave.principals import PrincipalDocument
from planwave.service.queries.digest import PendingRequest
from planwave.storage.records import AnsweredRequest, ExecutionRecord

if TYPE_CHECKING:
    from planwave.shapes.executions import AnswerResponse
    from planwave.shapes.executions import PendingRequest as PendingRequestResponse
    from planwave.storage.sql.store import Store


AnswerPlace: TypeAlias = tuple[str, str, int]
"""A position in the list: see ``AnsweredRequest``."""


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """A request with its answer.

    Attributes:
        place: Its place in the list.
        request: The request, as it was while it was open.
        by: ``person``, or ``timeout`` where nobody answered in time.
        answer: The answer.
        answered_by: The principal that answered; None where nobody did, or an older planwave.
    """

    place: AnsweredRequest
    request: PendingRequest
    by: Literal["person", "timeout"]
    answer: Any
    answered_by: PrincipalDocument | None = None

    def as_json(self) -> PendingRequestResponse:
        """Return the request and its answer as JSON."""
        answered: AnswerResponse = {
            "at": self.place.at,
            "by": self.by,
            "answered_by": self.answered_by,
            "answer": self.answer,
        }
        return {**self.request.as_json(), "answered": answered}


@dataclass(frozen=True, slots=True)
class AnswersPage:
    """One page of the answers, newest first.

    Attributes:
        answers: Those on the page.
        total: How many there are in all.
        last: The place of the last one, where more follow; else None.
    """

    answers: list[GivenAnswer]
    total: int
    last: AnswerPlace | None


class AnsweredRequests:
    """Reads the answered requests of a store; three events of each, however long its execution is."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, before: AnswerPlace | None, size: int) -> AnswersPage:
        """Return the page after a place."""
        places = await self._store.answered_requests(before=before, limit=size + 1)
        answers = [await self._read(place) for place in places[:size]]
        last = places[size - 1][:3] if len(places) > size else None
        total = await self._store.count_answered_requests()
        return AnswersPage([each for each in answers if each is not None], total, last)

    async def _read(self, place: AnsweredRequest) -> GivenAnswer | None:
        """Return an answer; None if its execution was deleted meanwhile."""
        record = await self._store.execution(place.execution_id)
        question = await self._event(place.execution_id, place.request)
        answered = await self._event(place.execution_id, place.answer)
        if record is None or question is None or answered is None:
            return None
        request = OpenRequest(
            question.data["request_id"],
            question.path,
            question.data.get("request"),
            question.at,
            question.data.get("timeout_s"),
        )
        by = answered.data.get("by") or PERSON
        name = await self._name_of(record, question.path)
        pending = PendingRequest.of(record, request, name)
        content = answered.data.get("answer"), answered.data.get("answered_by")
        return GivenAnswer(place, pending, by, *content)

    async def _name_of(self, record: ExecutionRecord, path: str | None) -> str:
        """Return the name of the node that asked, or the title of the plan."""
        if path is None:
            return record.title
        created = await self._event(record.execution_id, 1)
        graph: Mapping[str, Any] = (created and created.data.get("graph")) or {}
        names = (each.get("name") for each in graph.get("nodes", ()) if each["id"] == path)
        return next(names, None) or path.rpartition("/")[2]

    async def _event(self, execution_id: str, seq: int) -> Event | None:
        return next(iter(await self._store.events(execution_id, after=seq - 1, limit=1)), None)
