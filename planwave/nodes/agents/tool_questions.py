"""What a person is asked about a call of a tool: whether it may act, and what became of it.

Each question is a nested run of one ``tool_approval`` node, so that it survives restarts, has its own
path and time limit, and other calls of the agent go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from planwave.errors import PermanentError
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, Graph, Json, Node
from planwave.graph.protocols import FlowContext
from planwave.nodes.agents.tool import Tool
from planwave.nodes.services import limits_of

_QUESTION_TYPE: Final = "tool_approval"
_MAX_DESCRIPTION_CHARS: Final = 500
_APPROVE, _REJECT = "approve", "reject"
_RUN_AGAIN, _GIVE_RESULT, _FAIL = "run_again", "give_result", "fail"


class Approved(NamedTuple):
    """A call may be made, with these arguments."""

    arguments: Mapping[str, Json]


class Rejected(NamedTuple):
    """A call must not be made; ``note`` is what the person wrote."""

    note: str


class GivenResult(NamedTuple):
    """A person gave the result of a call."""

    value: Json


class CallAbandoned(PermanentError):
    """A person let a call fail that was cut off."""

    code = "interrupted"


async def ask_approval(
    tool: Tool,
    call_id: str,
    key: str,
    arguments: Mapping[str, Json],
    context: FlowContext,
    *,
    has_changed: bool = False,
) -> Approved | Rejected:
    """Ask a person whether a call may be made; the answer may change its arguments.

    Args:
        tool: The tool.
        call_id: The id of the call.
        key: Name of the question, the same when the agent runs again.
        arguments: What the model calls it with.
        context: The context of the agent.
        has_changed: Whether its server describes the tool differently since a call was last approved.
    """
    # Lazy: test_the_schema_library_is_loaded_only_for_forms
    from planwave.nodes.json_schema import check_schema

    schema = dict(tool.parameters)
    answer = await _ask(
        tool,
        call_id,
        key,
        {
            "prompt": (f"{_changed_text(tool)} " if has_changed else "")
            + f"May the tool {tool.name} be called with these arguments?",
            "actions": [_APPROVE, _REJECT],
            "value": dict(arguments),
            "editable": True,
            **({} if check_schema(schema) else {"valueSchema": schema}),
        },
        context,
        unanswered=_REJECT,
    )
    if answer.get("decision") != _APPROVE:
        return Rejected(str(answer.get("note") or ""))
    changed = answer.get("value")
    return Approved(changed if isinstance(changed, dict) else arguments)


def _changed_text(tool: Tool) -> str:
    says = f" Its description is now: {tool.description[:_MAX_DESCRIPTION_CHARS]}"
    return (
        f"The server {tool.details.get('server')!r} has changed its tool {tool.details.get('tool')!r} (its "
        f"description, its schema or what it says the tool does) since a call of it was last approved."
        f"{says if tool.description else ''}"
    )


async def ask_repetition(
    tool: Tool,
    call_id: str,
    key: str,
    arguments: Mapping[str, Json],
    context: FlowContext,
    *,
    caller: str = "agent",
) -> Rejected | None:
    """Ask whether a tool may be called that an earlier run of the agent has called; None if it may.

    The arguments are as for ``ask_approval``; the answer cannot change those of the call. ``caller`` is
    the word for what makes the call.
    """
    answer = await _ask(
        tool,
        call_id,
        key,
        {
            "prompt": f"An earlier run of this {caller} has called the tool {tool.name}, which may act "
            "only once. May it be called now, with these arguments?",
            "actions": [_APPROVE, _REJECT],
            "value": dict(arguments),
            "editable": False,
            "executionId": context.run_id,
        },
        context,
        unanswered=_REJECT,
    )
    return None if answer.get("decision") == _APPROVE else Rejected(str(answer.get("note") or ""))


async def ask_after_interruption(
    tool: Tool, call_id: str, key: str, arguments: Mapping[str, Json], context: FlowContext
) -> GivenResult | None:
    """Ask what to do about a call that must not happen twice, and was cut off; None calls it again.

    Raises:
        CallAbandoned: The person lets it fail.
    """
    answer = await _ask(
        tool,
        call_id,
        key,
        {
            "kind": "interrupted",
            "prompt": f"A call of the tool {tool.name} was cut off while it ran. It may act only once, "
            "and nobody knows whether it did. Call it again, give its result, or let it fail?",
            "actions": [_RUN_AGAIN, _GIVE_RESULT, _FAIL],
            "value": dict(arguments),
            "editable": False,
            "executionId": context.run_id,
        },
        context,
    )
    match answer.get("decision"):
        case "give_result":
            return GivenResult(answer.get("value"))
        case "run_again":
            return None
        case _:
            raise CallAbandoned(
                f"a call of the tool {tool.name!r} was cut off, and a person let it fail"
            )


async def _ask(
    tool: Tool,
    call_id: str,
    key: str,
    question: Mapping[str, Json],
    context: FlowContext,
    unanswered: str | None = None,
) -> dict[str, Any]:
    about: dict[str, Json] = {
        "name": tool.name,
        "kind": tool.kind,
        "effect": tool.effect,
        "call_id": call_id,
        **tool.details,
    }
    data: dict[str, Json] = {**question, "tool": about}
    limits = limits_of(context)
    if limits is not None and unanswered is not None:
        data |= {"timeoutS": limits.approval_timeout_s, "timeoutAction": unanswered}
    graph = Graph((Node(tool.name, _QUESTION_TYPE, tool.name, data=data),), ())
    outputs = await context.runtime.run_graph(key, graph, {})
    return cast("dict[str, Any]", outputs[tool.name][DEFAULT_SOURCE_HANDLE].value)
