"""What can be asked about flows, without an event loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from planwave.client import calls
from planwave.client.answers import ExecutionCreated
from planwave.client.calls import RequestSpec
from planwave.client.flow_answers import FlowResponse, FlowsResponse, FlowVersionsResponse


class FlowMethods(ABC):
    """Flows of one service; :class:`Client` adds everything else."""

    @abstractmethod
    def _send(self, call: RequestSpec) -> Any: ...

    def create_flow(
        self,
        name: str,
        graph: Mapping[str, Any] | None = None,
        *,
        plan_id: str | None = None,
        description: str | None = None,
        idempotency_key: str | None = None,
    ) -> FlowResponse:
        """Save a graph, or that of a stored plan, under a name; it is stored when this returns.

        Args:
            name: What it is called; others may be called the same.
            graph: ``{"nodes", "edges"}``.
            plan_id: A stored plan, in place of a graph.
            description: What it is for; by default the goal of the plan.
            idempotency_key: The same key and arguments make one flow, however often.

        Raises:
            GraphInvalid: It can run nowhere; nothing is stored.
        """
        body = {"name": name, "graph": graph, "plan_id": plan_id, "description": description}
        return self._send(calls.post("api", "flows", body=body, key=idempotency_key))

    def flows(
        self, *, q: str | None = None, cursor: str | None = None, limit: int | None = None
    ) -> FlowsResponse:
        """Give one page of flows, newest first: ``{"flows": […], "next_cursor"}``."""
        return self._send(calls.get("api", "flows", q=q, cursor=cursor, limit=limit))

    def flow(self, flow_id: str, version: str | None = None) -> FlowResponse:
        """Give a flow as it is, or as it was in one of its versions."""
        return self._send(calls.get("api", "flows", flow_id, version=version))

    def flow_versions(
        self, flow_id: str, *, cursor: str | None = None, limit: int | None = None
    ) -> FlowVersionsResponse:
        """Give one page of a flow's versions, newest first: ``{"versions": […], "next_cursor"}``."""
        path = ("api", "flows", flow_id, "versions")
        return self._send(calls.get(*path, cursor=cursor, limit=limit))

    def update_flow(
        self,
        flow_id: str,
        *,
        name: str | None = None,
        graph: Mapping[str, Any] | None = None,
        plan_id: str | None = None,
        description: str | None = None,
        if_match: str | None = None,
    ) -> FlowResponse:
        """Change a flow; what is not given stays as it is.

        Args:
            flow_id: Which flow.
            name: What it is called from now on.
            graph: Its graph from now on; one it never had before is a new version.
            plan_id: A stored plan, in place of a graph.
            description: What it is for.
            if_match: The version it has to have at present.

        Raises:
            PreconditionFailed: It has another version by now; nothing was changed.
            GraphInvalid: The graph can run nowhere; nothing was changed.
        """
        body = {"name": name, "graph": graph, "plan_id": plan_id, "description": description}
        return self._send(calls.put("api", "flows", flow_id, body=body, if_match=if_match))

    def delete_flow(self, flow_id: str) -> None:
        """Remove a flow with all its versions; its executions stay."""
        self._send(calls.delete("api", "flows", flow_id))

    def execute_flow(
        self,
        flow_id: str,
        *,
        version: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        start: bool = True,
        idempotency_key: str | None = None,
    ) -> ExecutionCreated:
        """Execute a flow, or one of its versions.

        Args:
            flow_id: Which flow.
            version: Which of its versions; else the present one.
            inputs: ``{node_id: {handle: value}}``: nodes settled with these values;
                ``{handle: value}`` where there is one entry node.
            options: As in :meth:`Client.execute`.
            start: Queue it now; else :meth:`Client.start_command` does.
            idempotency_key: The same key and arguments make one execution, however often.
        """
        call = calls.execute_flow(flow_id, version, inputs, options, start, idempotency_key)
        return self._send(call)
