"""Methods of the client with async methods for changes of plans, and for their revisions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from planwave.client import requests
from planwave.client.requests import RequestSpec

if TYPE_CHECKING:
    from planwave.shapes.plans import (
        PlanResponse,
        RevisionDiffResponse,
        RevisionResponse,
        RevisionsResponse,
    )


class AsyncRevisionMethods(ABC):
    """The methods for changes of plans."""

    @abstractmethod
    async def _send(self, call: RequestSpec) -> Any: ...

    async def edit_plan(
        self,
        plan_id: str,
        operations: Sequence[Mapping[str, Any]],
        *,
        if_match: str,
        author: Literal["person", "api"] = "api",
        note: str = "",
    ) -> PlanResponse:
        """Apply operations to a plan, all or none; the result is a new revision.

        Args:
            plan_id: The plan.
            operations: For example ``{"op": "update_node", "id": "a", "set": {"data": {…}}}``; see
                docs/api.md.
            if_match: The hash that the plan must have; ``*`` for any.
            author: The author of the revision.
            note: A note on the revision.

        Raises:
            PreconditionFailed: The plan has the hash ``error.current``; nothing was changed.
            InvalidOperation: An operation cannot be applied; nothing was changed.
        """
        body = {"operations": list(operations), "author": author, "note": note}
        return await self._send(
            requests.patch("api", "plans", plan_id, body=body, if_match=if_match)
        )

    async def refine_plan(
        self,
        plan_id: str,
        request: str,
        *,
        provider: str | None = None,
        model: str | None = None,
        dry_run: bool = False,
        timeout_s: float | None = None,
    ) -> PlanResponse:
        """Have a model write the change of a plan; return the plan, as it is, with the ``proposal``.

        Args:
            plan_id: The plan.
            request: What is to be different, in words.
            provider: Who writes it; by default the provider of the service.
            model: A model of that provider.
            dry_run: Whether the proposal is not stored, so that it cannot be accepted.
            timeout_s: Time limit of the response; None for that of the client.
        """
        body = {"request": request, "provider": provider, "model": model, "dry_run": dry_run}
        call = requests.post("api", "plans", plan_id, "refine", body=body)
        return await self._send(call._replace(timeout_s=timeout_s))

    async def accept_proposal(
        self,
        plan_id: str,
        accept: str,
        *,
        if_match: str,
        author: Literal["person", "api"] = "api",
    ) -> PlanResponse:
        """Make the proposal of a plan its newest revision; return the plan.

        Args:
            plan_id: The plan.
            accept: The ``hash`` of the proposal.
            if_match: The hash that the plan must have; ``*`` for any.
            author: The author of the revision.
        """
        body = {"accept": accept, "author": author}
        path = ("api", "plans", plan_id, "refine")
        return await self._send(requests.post(*path, body=body, if_match=if_match))

    async def plan_revisions(
        self, plan_id: str, *, cursor: str | None = None, limit: int | None = None
    ) -> RevisionsResponse:
        """Return one page of revisions, newest first: ``{"revisions": […], "next_cursor"}``."""
        path = ("api", "plans", plan_id, "revisions")
        return await self._send(requests.get(*path, cursor=cursor, limit=limit))

    async def plan_revision(self, plan_id: str, revision: int) -> RevisionResponse:
        """Return one revision of a plan, with its graph."""
        return await self._send(requests.get("api", "plans", plan_id, "revisions", str(revision)))

    async def diff_revisions(
        self, plan_id: str, revision: int, to: int | None = None
    ) -> RevisionDiffResponse:
        """Return the differences between a revision and another one, by default the current one."""
        path = ("api", "plans", plan_id, "revisions", str(revision), "diff")
        return await self._send(requests.get(*path, to=to))

    async def restore_revision(
        self,
        plan_id: str,
        revision: int,
        *,
        if_match: str,
        author: Literal["person", "api"] = "api",
        note: str = "",
        idempotency_key: str | None = None,
    ) -> PlanResponse:
        """Restore the title and graph of a revision of a plan, as a new revision.

        Arguments and errors are those of ``edit_plan``.
        """
        path = ("api", "plans", plan_id, "revisions", str(revision), "restore")
        body = {"author": author, "note": note}
        return await self._send(
            requests.post(*path, body=body, key=idempotency_key, if_match=if_match)
        )

    async def promote(
        self,
        execution_id: str,
        *,
        if_match: str | None = None,
        author: Literal["person", "api"] = "api",
        note: str = "",
    ) -> PlanResponse:
        """Make the graph of an execution, such as a fork, the newest revision of its plan; return the plan.

        ``if_match`` is the hash the plan must have, ``*`` for any, None for that of the revision it was forked from.
        """
        body = {"author": author, "note": note}
        path = ("api", "executions", execution_id, "promote")
        return await self._send(requests.post(*path, body=body, if_match=if_match))

    async def approve_revision(self, plan_id: str, revision: int, *, if_match: str) -> PlanResponse:
        """Approve a revision of a plan, for all callers of the flow; return the plan.

        Args:
            plan_id: The plan.
            revision: The number of the revision.
            if_match: The hash of the revision, for which the approval holds; ``*`` for any.
        """
        path = ("api", "plans", plan_id, "revisions", str(revision), "approve")
        return await self._send(requests.post(*path, if_match=if_match))
