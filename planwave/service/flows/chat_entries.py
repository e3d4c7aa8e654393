"""How a message from outside enters a flow: the entry node that takes it, and what that is given.

A flow that can be talked to has one node of these types; the first type that it has is used:

``chat_start``
    takes the message with its images, what was said before, and the caller's options (``variables``).
``user_input``
    takes the message with its images; ``extras`` are the caller's options, with what was said before as
    ``messages``.
``start``
    takes the text of the last message, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from planwave.errors import InputError
from planwave.graph.diagnostics import short_repr
from planwave.graph.model import Json
from planwave.validation import describe_error

NOT_A_MODEL: Final = "not-a-model"
INVALID_CHAT: Final = "invalid-chat"
_CHAT_START, _USER_INPUT, _START = "chat_start", "user_input", "start"
_ENTRIES: Final = (_CHAT_START, _USER_INPUT, _START)
_OPTIONS: Final = "caller"
"""The field of an agent that takes the caller's options."""
_MAX_ERRORS: Final = 5
_REQUIRED: Final = frozenset({"tools", "outputSchema"})
"""Options without which the answer would not be what the caller can read; others are wishes."""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """A message from outside, in a conversation.

    Attributes:
        message: Its text; "" where the conversation ends with the result of a tool.
        images: The URLs of its images.
        history: The messages before it, in the form of ``nodes/conversation.py``.
        options: What the caller asks of the agent that answers; see ``nodes/agents/caller.py``.
    """

    message: str
    images: Sequence[str] = ()
    history: Sequence[Mapping[str, Any]] = ()
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])


class EntryNode(NamedTuple):
    """The node of a graph that is given the messages.

    Attributes:
        on_disconnect: What becomes of an answer when its last client leaves: ``continue`` or ``cancel``.
    """

    node_id: str
    node_type: str
    on_disconnect: str


def chat_entry(graph: Mapping[str, Any], name: str) -> EntryNode:
    """Return the node of a graph that takes the messages of a model's client.

    Args:
        graph: The document of the graph.
        name: The name of the flow.

    Raises:
        InputError: ``not-a-model``: there is no such node, or there are several.
    """
    for node_type in _ENTRIES:
        entries = _entries(graph, node_type)
        if len(entries) == 1:
            return entries[0]
        if entries:
            raise InputError(
                f"flow {name!r} has several nodes that take a message: {_ids(entries)}",
                code=NOT_A_MODEL,
                hint="keep one of them",
            )
    raise InputError(
        f"flow {name!r} has no node that takes a message",
        code=NOT_A_MODEL,
        hint=f"begin it with a node of the type {' or '.join(_ENTRIES)}",
    )


def chat_start_entry(graph: Mapping[str, Any], name: str, node_id: str | None) -> EntryNode:
    """Return the ``chat_start`` node of a graph that takes the messages of a chat.

    Args:
        graph: The document of the graph.
        name: The name of the flow.
        node_id: The node that is meant; None for the only one.

    Raises:
        InputError: ``invalid-chat``: there is no such node, or there are several.
    """
    entries = _entries(graph, _CHAT_START)
    chosen = [entry for entry in entries if node_id in (None, entry.node_id)]
    if len(chosen) == 1:
        return chosen[0]
    hint = f"node_id is one of {_ids(entries)}"
    if not entries:
        message = f"flow {name!r} has no node of the type {_CHAT_START!r}"
        hint = f"begin it with a {_CHAT_START} node"
    elif node_id is None:
        message = f"flow {name!r} has several {_CHAT_START} nodes"
    else:
        message = f"flow {name!r} has no {_CHAT_START} node {short_repr(node_id)}"
    raise InputError(message, code=INVALID_CHAT, hint=hint)


def _entries(graph: Mapping[str, Any], node_type: str) -> list[EntryNode]:
    nodes: Sequence[Mapping[str, Any]] = graph.get("nodes", ())
    entries: list[EntryNode] = []
    for node in nodes:
        if node["type"] == node_type:
            data: Mapping[str, Any] = node.get("data") or {}
            on_disconnect = str(data.get("onDisconnect") or "continue")
            entries.append(EntryNode(node["id"], node_type, on_disconnect))
    return entries


def _ids(entries: Sequence[EntryNode]) -> str:
    return ", ".join(repr(entry.node_id) for entry in entries)


def chat_inputs(graph: Mapping[str, Any], name: str, turn: ChatTurn) -> dict[str, dict[str, Json]]:
    """Return the inputs of an execution that a message starts.

    Raises:
        InputError: ``not-a-model``; ``unsupported-by-flow``: the flow cannot take what the turn has;
            ``invalid-conversation``: no flow could.
    """
    entry = chat_entry(graph, name)
    required = sorted(_REQUIRED.intersection(turn.options))
    if required and (entry.node_type == _START or not _takes_options(graph)):
        names = ", ".join(required)
        raise _unsupported(
            f"flow {name!r} takes no {names} of its caller",
            f"wire its entry node to the socket {_OPTIONS!r} of the agent that answers",
        )
    if entry.node_type != _START:
        _check_turn(turn)
    history: list[Json] = [dict(message) for message in turn.history]
    images: list[Json] = list(turn.images)
    match entry.node_type:
        case "chat_start":
            values: dict[str, Json] = {"history": history, "variables": dict(turn.options)}
        case "user_input":
            values = {"extras": {"messages": history, **turn.options}}
        case _:
            if images or not turn.message:
                raise _unsupported(f"flow {name!r} takes a text", "end with a message that has one")
            return {entry.node_id: {"output": turn.message}}
    return {entry.node_id: {"message": turn.message, "images": images, **values}}


def _check_turn(turn: ChatTurn) -> None:
    """Check the conversation and the options, which a node would refuse only when it runs.

    Raises:
        InputError: ``invalid-conversation``.
    """
    # Lazy: test_help_loads_no_heavy_library
    from planwave.nodes.agents.caller import CallerOptions

    try:
        CallerOptions.model_validate({"messages": [*turn.history], **turn.options})
    except ValidationError as error:
        errors = error.errors(include_url=False)[:_MAX_ERRORS]
        reasons = [describe_error(".".join(map(str, each["loc"])), {**each}) for each in errors]
        raise InputError("; ".join(reasons), code="invalid-conversation") from error
    is_answered = bool(turn.history) and turn.history[-1]["role"] == "tool"
    if not (turn.message.strip() or turn.images or is_answered):
        raise InputError("the last message is empty", code="invalid-conversation")


def _takes_options(graph: Mapping[str, Any]) -> bool:
    wired = any(edge.get("targetHandle") == _OPTIONS for edge in graph.get("edges", ()))
    written = any(_OPTIONS in (node.get("data") or {}) for node in graph.get("nodes", ()))
    return wired or written


def _unsupported(message: str, hint: str) -> InputError:
    return InputError(message, code="unsupported-by-flow", hint=hint)
