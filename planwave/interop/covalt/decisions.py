"""A person's decision about calls of tools, as Covalt's clients send it.

Whatever is not a refusal approves, one decision is for all calls that wait, and no decision within
``TIMEOUT_S`` is a refusal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast

from planwave.errors import Conflict, Gone, InputError, NotFound
from planwave.events.node_state import OpenRequest
from planwave.graph.model import Json
from planwave.service.service import Service

TIMEOUT_S: Final = 300
"""How long a person has for a decision."""
_REFUSALS: Final = frozenset(
    {"", "deny", "denied", "reject", "rejected", "cancel", "cancelled", "timeout"}
)
_APPROVE, _REJECT = "approve", "reject"


@dataclass(frozen=True, slots=True)
class ToolDecision:
    """The fields of ``respond_to_tool_decision``.

    Attributes:
        run_id: The execution.
        tool_call_id: The call that ``edited_args`` are for.
        selected_option: What the person chose; "" is a refusal.
        edited_args: Changed arguments, or None.
        cancelled: Whether the person left the question.
    """

    run_id: str
    tool_call_id: str | None = None
    selected_option: str = ""
    edited_args: Mapping[str, Json] | None = None
    cancelled: bool = False

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> ToolDecision:
        """Return the decision in a command of a client; null is as good as a missing field.

        Raises:
            InputError: A field has the wrong type, or ``run_id`` is missing.
        """
        types = {
            "run_id": str,
            "tool_call_id": str,
            "selected_option": str,
            "edited_args": Mapping,
            "cancelled": bool,
        }
        given = {name: fields[name] for name in types if fields.get(name) is not None}
        wrong = [name for name, value in given.items() if not isinstance(value, types[name])]
        wrong += [] if "run_id" in given else ["run_id"]
        if wrong:
            raise InputError(
                f"respond_to_tool_decision has no valid {', '.join(wrong)}",
                hint="run_id, tool_call_id and selected_option are texts, edited_args is an object, "
                "cancelled is true or false",
            )
        return cls(**given)

    @property
    def approves(self) -> bool:
        """Whether the calls may be made."""
        return not self.cancelled and self.selected_option.strip().lower() not in _REFUSALS


async def apply_decision(service: Service, decision: ToolDecision) -> int:
    """Answer all questions of an execution about calls of tools that are open.

    Returns:
        The number of calls that the decision was for.

    Raises:
        NotFound: There is no such execution, or no such call waits in it.
        InputError: The arguments of the call may not be changed, or do not fit; all questions stay open.
    """
    waiting = [each for each in await service.requests(decision.run_id) if _call_of(each)]
    edited = [each for each in waiting if _is_edited(each, decision)]
    if not waiting or (decision.edited_args is not None and decision.approves and not edited):
        call = "call of a tool" if not waiting else f"call {decision.tool_call_id!r}"
        raise NotFound(
            f"no {call} waits for a decision in execution {decision.run_id}",
            hint="follow the reply: ApprovalRequired has the calls that wait",
        )
    count = 0
    # The changed arguments come first: where they are refused, nothing has been decided.
    for request in [*edited, *(each for each in waiting if each not in edited)]:
        with suppress(Conflict, Gone):  # another window was faster, or the time was over
            await service.answer(
                decision.run_id, request.request_id, _answer(decision, is_edited=request in edited)
            )
            count += 1
    return count


async def await_decision(service: Service, run_id: str, decision: Awaitable[ToolDecision]) -> int:
    """Wait for a decision and apply it; refuse the calls where none comes within ``TIMEOUT_S``.

    Returns, Raises:
        As :func:`apply_decision`.
    """
    try:
        async with asyncio.timeout(TIMEOUT_S):
            decided = await decision
    except TimeoutError:
        decided = ToolDecision(run_id, selected_option="timeout")
    return await apply_decision(service, decided)


def _call_of(request: OpenRequest) -> str | None:
    """Return the id of the call that a request is about; None for any other request."""
    shown: Any = request.request
    if not isinstance(shown, dict):
        return None
    asked = cast("dict[str, Any]", shown)
    tool: Any = asked.get("tool")
    return tool.get("call_id") if tool and asked.get("actions") == [_APPROVE, _REJECT] else None


def _is_edited(request: OpenRequest, decision: ToolDecision) -> bool:
    if decision.edited_args is None or not decision.approves:
        return False
    return _call_of(request) == decision.tool_call_id


def _answer(decision: ToolDecision, *, is_edited: bool) -> dict[str, Json]:
    if not decision.approves:
        note = "nobody answered in time" if decision.selected_option == "timeout" else ""
        return {"decision": _REJECT, "note": note}
    changed: dict[str, Json] = {"value": dict(decision.edited_args or {})} if is_edited else {}
    return {"decision": _APPROVE, "note": "", **changed}
