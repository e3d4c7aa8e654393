"""Links: addresses that show one result or one run, or answer one request, to whoever has their key.

A key is 128 random bits, and only its digest is stored. A link shows nothing else, and what it shows is decided
here: never a goal, a prompt or an input. A link that answers ends with its answer, and never answers after the
deadline of its request.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from planwave.errors import (
    Conflict,
    Gone,
    InputError,
    InvalidAnswer,
    LimitExceeded,
    NotFound,
    StoreError,
)
from planwave.events.request_text import (
    EDIT,
    field_of,
    is_change_request,
    is_plan_approval,
    is_timer,
)
from planwave.graph.diagnostics import Diagnostic, short_repr
from planwave.graph.plan import title_of_steps
from planwave.graph.reading.documents import read_graph
from planwave.graph.result import main_output
from planwave.ids import new_id
from planwave.principals import acting_as, current_principal
from planwave.service.executions.answers import open_request
from planwave.service.queries.digest import asker_name, deadline_of
from planwave.service.streaming.stored_execution import load_record
from planwave.storage.links import LinkRecord

if TYPE_CHECKING:
    from planwave.events import ExecutionState, NodeState, OpenRequest
    from planwave.graph.model import Json
    from planwave.service.dependencies import ServiceDependencies
    from planwave.service.executions.execution_service import ExecutionService
    from planwave.shapes.triggers import LinkKind
    from planwave.storage.records import ExecutionRecord, PageCursor

_log = logging.getLogger(__name__)

KEY: Final = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)
KEY_BYTES: Final = 16
_LOOKUPS: Final = 4
"""Keys that are looked up at a time: wrong ones cost nothing but their place in this line."""
_DAY_S: Final = 86_400
USUAL_DAYS: Final = 7
"""How long a link that shows something is valid where nobody says so."""
MOST_DAYS: Final = 90
"""How long it is valid at most."""
KEPT: Final = timedelta(days=30)
"""How long an expired link can still say that it has expired."""
_CHAT_START: Final = "chat_start"
_INVALID: Final = "invalid-link"


class CreatedLink(NamedTuple):
    """A new link, and its key, which only this has."""

    record: LinkRecord
    key: str


class SharedStep(NamedTuple):
    """A step of a shared run, with what it delivered."""

    name: str
    status: str
    wave: int | None
    duration_s: float | None
    value: Json
    has_value: bool


class SharedRun(NamedTuple):
    """What a link shows: the result of an execution, and of a run its steps.

    Attributes:
        result: The name and the value of each of its last steps.
    """

    title: str
    status: str
    started_at: str | None
    completed_at: str | None
    result: Sequence[tuple[str, Json]]
    steps: Sequence[SharedStep]


class LinkedRequest(NamedTuple):
    """The request that a link answers.

    Attributes:
        title: The name or the title of its execution.
        asker: The name of the step that asks, or the title where the execution itself does.
        steps: Of a request for the approval of a plan: the names of its steps.
    """

    title: str
    asker: str
    request: OpenRequest
    deadline: datetime | None
    steps: Sequence[str]


class Links:
    """The links of a service."""

    def __init__(self, dependencies: ServiceDependencies, executions: ExecutionService) -> None:
        self._dependencies = dependencies
        self._store = dependencies.store
        self._executions = executions
        self._lookups = asyncio.Semaphore(_LOOKUPS)

    async def create(
        self,
        execution_id: str,
        kind: LinkKind,
        *,
        request_id: str | None = None,
        lifetime_s: float | None = None,
    ) -> CreatedLink:
        """Create a link; durable when this returns.

        Args:
            execution_id: What it is for.
            kind: ``result``, ``run``, or ``request``, which needs ``request_id``.
            request_id: An open request of the execution.
            lifetime_s: Seconds for which it is valid; of ``request`` no longer than the request is open.

        Raises:
            NotFound: There is no such execution or request.
            Conflict, Gone: ``request-answered``, ``request-closed``.
            InputError: ``invalid-link``.
            LimitExceeded: ``links``.
        """
        await load_record(self._store, execution_id)
        now = self._dependencies.now().astimezone(UTC)
        end = now + timedelta(seconds=self._lifetime(kind, lifetime_s))
        if (kind == "request") != (request_id is not None):
            message = "a link answers one request, and only one of the kind 'request' does"
            raise InputError(message, code=_INVALID, hint="name the request, or leave it out")
        if request_id is not None:
            state = await self._executions.state(execution_id)
            request = open_request(state, request_id)
            if is_timer(request.request):
                message = f"request {request_id!r} waits for a time, not for a person"
                raise InputError(message, code=_INVALID)
            end = min(end, deadline_of(request) or end)
        most, present = (
            self._dependencies.limits.links,
            await self._store.links.count(_timestamp(now), execution_id),
        )
        if present >= most:
            hint = "revoke some, or raise the limit links"
            raise LimitExceeded("links", most, present + 1, hint=hint)
        key = token_urlsafe(KEY_BYTES)
        record = LinkRecord(
            new_id(), digest_of(key), kind, execution_id, _timestamp(now), _timestamp(end),
            request_id, created_by=current_principal(),
        )  # fmt: skip
        await self._store.links.create(record)
        return CreatedLink(record, key)

    def _lifetime(self, kind: LinkKind, wanted_s: float | None) -> float:
        """Return the lifetime of a link in seconds.

        Raises:
            InputError: ``invalid-link``: it is longer than a link of this kind may live.
        """
        hours, is_shown = self._dependencies.limits.answer_link_hours, kind != "request"
        most_s = MOST_DAYS * _DAY_S if is_shown else hours * 3_600
        if wanted_s is None:
            return USUAL_DAYS * _DAY_S if is_shown else most_s
        if wanted_s > most_s:
            raising = "" if is_shown else ", or raise the limit answer_link_hours"
            raise InputError(
                f"a link of the kind {kind!r} is valid for {most_s:.12g} s at most",
                code=_INVALID,
                hint=f"ask for less{raising}",
            )
        return wanted_s

    async def page(
        self,
        execution_id: str | None = None,
        *,
        before: PageCursor | None = None,
        limit: int = 50,
    ) -> Sequence[LinkRecord]:
        """Return the links that still open something, newest first: all, or those to one execution."""
        now = self._dependencies.timestamp()
        return await self._store.links.page(
            now, execution_id=execution_id, before=before, limit=limit
        )

    async def revoke(self, link_id: str) -> None:
        """Revoke a link: from now on it opens nothing.

        Raises:
            NotFound: There is none of that id that still opens something.
        """
        if not await self._store.links.end(link_id, "revoked"):
            raise NotFound(f"there is no link {short_repr(link_id)}", hint="list the links")

    def url(self, key: str) -> str | None:
        """Return the address of a link; None where nobody has said where people reach the service."""
        base = self._dependencies.public_url
        return None if base is None else link_url(base, key)

    async def find(self, key: str) -> LinkRecord:
        """Return the link of a key, also after its end.

        Raises:
            NotFound: ``unknown-link``.
        """
        found = None
        if KEY.fullmatch(key):
            async with self._lookups:
                found = await self._store.links.by_digest(digest_of(key))
        if found is None:
            raise NotFound("there is no such link", code="unknown-link")
        return found

    async def run_of(self, link: LinkRecord) -> SharedRun:
        """Return what a link shows.

        Raises:
            Gone: ``link-expired``, ``link-revoked``, ``execution-deleted``.
        """
        _require_open(link)
        self._require_in_time(link)
        record, state = await self._state_of(link)
        names = _step_names(state)
        nodes = [state.nodes[each] for each in names if each in state.nodes]
        given = self._given_to(state)
        result = [each for each in state.result().values.items() if each[0] not in given]
        return SharedRun(
            _title_of(record, state),
            state.status,
            state.started_at,
            state.completed_at,
            [(names.get(node_id, node_id), value) for node_id, value in result],
            [_shared_step(node, names[node.path], is_given=node.path in given) for node in nodes]
            if link.kind == "run"
            else (),
        )

    def _given_to(self, state: ExecutionState) -> set[str]:
        """Return the steps whose value is an input: entry nodes, and those that were given one."""
        documents: Sequence[Mapping[str, Any]] = (state.graph or {}).get("nodes", ())
        infos = (
            (each["id"], self._dependencies.catalogue.type_info(each["type"])) for each in documents
        )
        return {
            *(state.inputs or ()),
            *(own for own, info in infos if info is not None and info.entry),
        }

    async def request_of(self, link: LinkRecord) -> LinkedRequest:
        """Return the request that a link answers, which is open.

        Raises:
            Gone: ``link-expired``, ``link-used``, ``link-revoked``, ``execution-deleted``; ``request-answered``,
                ``request-expired``, ``request-closed``: what became of the request meanwhile.
        """
        _require_open(link)
        record, state = await self._state_of(link)
        request_id = str(link.request_id)
        if state.closed_requests.get(request_id) == "timeout":
            raise _expired(request_id)
        try:
            request = open_request(state, request_id)
        except (Conflict, NotFound) as error:
            raise Gone(error.message, code=error.code) from error
        deadline = deadline_of(request)
        if deadline is not None and deadline <= self._dependencies.now():
            raise _expired(request_id)
        self._require_in_time(link)
        title = _title_of(record, state)
        asker = title if request.path is None else asker_name(state, request.path)
        return LinkedRequest(title, asker, request, deadline, _steps_of(state, request.request))

    async def answer(self, link: LinkRecord, request_id: str, answer: Json) -> None:
        """Answer the request of a link, once; the answer is durable when this returns, and the link has ended.

        Args:
            link: The link.
            request_id: The request that the answer is meant for.
            answer: As in ``ExecutionCommands.store_answer``.

        Raises:
            Gone: As ``request_of``; ``link-of-another-request``.
            InvalidAnswer: It is no answer to this request; the link stays.
            StoreError, ShuttingDown: The request stays open.
        """
        link = await self._latest(link)  # it may have ended while its answer was sent
        linked = await self.request_of(link)
        if request_id != link.request_id:
            message = f"the link answers {link.request_id!r}, not {short_repr(request_id)}"
            raise Gone(message, code="link-of-another-request")
        if is_plan_approval(linked.request.request) and field_of(answer, "decision") == EDIT:
            message = "a plan is not edited by a link"
            raise InvalidAnswer([Diagnostic("unknown-decision", "error", message, "/decision")])
        try:
            with acting_as(link.principal):
                await self._executions.answer(link.execution_id, request_id, answer)
        except (Conflict, NotFound) as error:
            latest = await self._latest(link)  # it was used, or the execution deleted, just now
            _require_open(latest)
            await self._state_of(latest)
            raise Gone(error.message, code=error.code) from error
        try:
            await self._store.links.end(link.link_id, "used")
        except StoreError as error:  # the request takes no second answer anyway
            _log.warning("link %s is not marked as used: %s", link.link_id, error)

    async def _latest(self, link: LinkRecord) -> LinkRecord:
        return await self._store.links.by_digest(link.digest) or link

    async def _state_of(self, link: LinkRecord) -> tuple[ExecutionRecord, ExecutionState]:
        """Return the execution of a link.

        Raises:
            Gone: ``execution-deleted``.
        """
        try:
            record = await self._executions.get(link.execution_id)
            return record, await self._executions.state(link.execution_id)
        except NotFound as error:
            raise _deleted() from error

    def _require_in_time(self, link: LinkRecord) -> None:
        if link.expires_at <= self._dependencies.timestamp():
            raise Gone("the link has expired", code="link-expired")


def link_url(base: str, key: str) -> str:
    """Return the address of a link below the address of the service."""
    return f"{base.rstrip('/')}/links/{key}"


def digest_of(key: str) -> str:
    """Return what is stored of a key."""
    return sha256(key.encode(errors="replace")).hexdigest()


def _require_open(link: LinkRecord) -> None:
    """Check that a link has not ended before its time.

    Raises:
        Gone: ``link-used``, ``link-revoked``, ``execution-deleted``.
    """
    match link.ended:
        case "used":
            raise Gone("the link has given its answer", code="link-used")
        case "revoked":
            raise Gone("the link was revoked", code="link-revoked")
        case "deleted":
            raise _deleted()
        case None:
            return


def _deleted() -> Gone:
    return Gone("the execution was deleted", code="execution-deleted")


def _title_of(record: ExecutionRecord, state: ExecutionState) -> str:
    """Return a title that says nothing of the goal, nor of what somebody wrote in a chat."""
    if name := record.labels.name or record.flow:
        return name
    documents: Sequence[Mapping[str, Any]] = (state.graph or {}).get("nodes", ())
    is_chat = any(each["type"] == _CHAT_START for each in documents)
    if not is_chat and not _tells_of(record.title, record.user_prompt):
        return record.title
    return title_of_steps(read_graph(state.graph)[0]) if state.graph else "A run"


def _tells_of(title: str, goal: str) -> bool:
    """Return whether a title is the beginning of a goal, or of the template that it was made of."""
    start = " ".join(title.partition("{")[0].split()).rstrip("…").rstrip().casefold()
    whole = " ".join(goal.split()).casefold()
    return whole.startswith(start) or bool(whole and start.startswith(whole))


def _expired(request_id: str) -> Gone:
    return Gone(f"the time for an answer to {request_id!r} is over", code="request-expired")


def _step_names(state: ExecutionState) -> dict[str, str]:
    """Return the name of each step of the plan, by its id."""
    documents: Sequence[Mapping[str, Any]] = (state.graph or {}).get("nodes", ())
    return {each["id"]: each.get("name") or each["id"] for each in documents}


def _steps_of(state: ExecutionState, request: Json) -> Sequence[str]:
    """Return the steps that a request is about: those of the plan to approve, or those that a change changes."""
    if is_plan_approval(request):
        return list(_step_names(state).values())
    if not is_change_request(request):
        return ()
    names, steps = _step_names(state), list[str]()
    for each in field_of(field_of(request, "difference"), "nodes"):
        step: Mapping[str, Any] = each.get("after") or each.get("before") or {}
        name, task = step.get("name") or names.get(each["id"], each["id"]), step.get("description")
        steps.append(f"{each['change']}: {name}{f' - {task}' if task else ''}")
    return steps


def _shared_step(node: NodeState, name: str, *, is_given: bool) -> SharedStep:
    delivered = None if is_given else node.delivered
    value = main_output(delivered).value if delivered else None
    return SharedStep(name, node.status, node.wave, node.duration_s, value, bool(delivered))


def _timestamp(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")
