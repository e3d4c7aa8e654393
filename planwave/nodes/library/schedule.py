"""``schedule``: begin at certain times."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal

from pydantic import Field

from planwave.cron import read_schedule
from planwave.errors import InputError
from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, Json, Port
from planwave.graph.protocols import FlowContext
from planwave.nodes.authoring.data_fields import NO_SOCKET
from planwave.nodes.authoring.node_type import NodeData, NodeFinding, NodeType
from planwave.nodes.checking.node_view import NodeView


class ScheduleData(NodeData):
    """When it begins: a cron expression or an interval."""

    cron: str | None = Field(
        None,
        max_length=200,
        description="Five fields: minute, hour, day of month, month, day of week; or @daily and the like.",
        json_schema_extra=NO_SOCKET,
    )
    every_s: float | None = Field(
        None,
        ge=10,
        le=366 * 86_400,
        description="In place of cron: seconds between two times.",
        json_schema_extra=NO_SOCKET,
    )
    timezone: str = Field(
        "UTC",
        max_length=100,
        description="The time zone of cron, such as Europe/Berlin.",
        json_schema_extra=NO_SOCKET,
    )
    overlap: Literal["skip", "queue", "cancel_previous"] = Field(
        "skip",
        description="What happens at a time at which the run before has not ended.",
        json_schema_extra=NO_SOCKET,
    )


class ScheduleNode(NodeType):
    """Outputs the time for which the run was started.

    That is ``{"slot" (UTC), "scheduled_at" (in the time zone), "timezone", "missed"}``; ``missed`` is how
    many times before it started nothing. A run that no schedule started has no ``slot``.
    """

    node_type = "schedule"
    purpose = "Begin at certain times: a cron expression, or an interval."
    summary = "Begin at certain times."
    Data = ScheduleData
    fails_permanently = True
    inputs: tuple[Port, ...] = ()
    outputs = (Port(DEFAULT_SOURCE_HANDLE, "json"),)
    entry = expects_input = True
    planned = False

    async def run(self, data: ScheduleData, inputs: Inputs, context: FlowContext) -> Json:
        return {"slot": None, "scheduled_at": None, "timezone": data.timezone, "missed": 0}

    def check(self, data: ScheduleData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is None:
            return
        try:
            read_schedule(data.cron, data.every_s, data.timezone, datetime.now(UTC))
        except InputError as error:
            yield NodeFinding(error.code, error.message, "/data", error.hint)
