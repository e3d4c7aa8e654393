"""``wait``: pass the input on after some seconds or at a given time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from pydantic import Field

from planwave.errors import PermanentError
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Json
from planwave.graph.protocols import FlowContext, Suspension
from planwave.nodes.authoring.node_type import (
    NodeData,
    NodeFinding,
    ResumableType,
    pass_through,
    template,
)
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.services import MAX_WAIT_S, NodeServices, utc_now

_CONTINUE = "continue"


class WaitData(NodeData):
    """How long, or until when (ISO 8601; UTC where it names no zone); one of the two."""

    seconds: float | None = Field(
        None, ge=0, le=MAX_WAIT_S, description="How long it waits, in seconds."
    )
    until: str | None = template(None, description="Until when it waits: ISO 8601, UTC.")


class Wait(ResumableType):
    """Passes its input on when the time has come.

    The node waits as a request of the kind ``timer``, which is answered when the time has come. It
    holds neither slot nor task meanwhile and survives restarts. A caller ends the wait early with the
    answer ``{"decision": "continue"}``.

    Args:
        now: Returns the UTC time where the services of a run do not.
    """

    node_type = "wait"
    purpose = (
        "Go on later, only where the goal asks for it: after data.seconds, or at the time data.until "
        "(ISO 8601, UTC)."
    )
    summary = "Go on after a while or at a time."
    Data = WaitData
    plan_fields = ("seconds", "until")
    fails_permanently = True

    def __init__(self, now: Callable[[], datetime] = utc_now) -> None:
        super().__init__()
        self._now = now

    async def run(
        self, data: WaitData, inputs: Inputs, context: FlowContext
    ) -> DataValue | Suspension:
        for finding in _check_times(
            data
        ):  # values of wires and templates were not checked before the run
            raise PermanentError(finding.message, code="invalid-data", hint=finding.hint)
        services = context.services
        now = services.now() if isinstance(services, NodeServices) else self._now()
        end = now + timedelta(seconds=data.seconds or 0.0)
        if data.until is not None:
            end = _parse_time(data.until)
        time_left_s = (end - now).total_seconds()
        if time_left_s <= 0:
            return pass_through(inputs)
        if time_left_s > MAX_WAIT_S:
            raise PermanentError(
                f"data.until is {data.until!r}, more than {MAX_WAIT_S / 86_400:g} days from now",
                code="invalid-data",
                hint="choose an earlier time",
            )
        until = end.isoformat(timespec="seconds")
        request: dict[str, Json] = {
            "kind": "timer",
            "message": f"Waits until {until}.",
            "until": until,
            "actions": [_CONTINUE],
        }
        return Suspension(request, None, time_left_s, {"decision": _CONTINUE, "note": ""})

    async def on_answer(
        self, data: WaitData, inputs: Inputs, context: FlowContext, state: Json, answer: Json
    ) -> DataValue:
        """Pass the input on after the time has come or the wait was ended early."""
        return pass_through(inputs)

    def check(self, data: WaitData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is None or any(map(view.is_wired, ("seconds", "until"))):
            return
        is_template = data.until is not None and bool(view.references)
        yield from _check_times(data, has_time=not is_template)


def _check_times(data: WaitData, *, has_time: bool = True) -> Iterable[NodeFinding]:
    """Yield errors of the times; ``has_time`` is False while ``until`` is an unresolved template."""
    if (data.seconds is None) == (data.until is None):
        wrong = "neither" if data.until is None else "both"
        yield NodeFinding(
            "invalid-data",
            f"a wait needs data.seconds or data.until; there is {wrong}",
            hint="write how many seconds to wait, or the time to wait for",
        )
    elif data.until is not None and has_time:
        try:
            _parse_time(data.until)
        except PermanentError as error:
            yield NodeFinding("invalid-data", error.message, "/data/until", error.hint)


def _parse_time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text.strip())
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise PermanentError(
            f"data.until is {text!r}, which is no time in ISO 8601",
            code="invalid-data",
            hint="write it like 2030-01-31T09:00:00Z",
        ) from error
