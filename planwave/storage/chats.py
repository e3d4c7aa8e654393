"""The records of chats, their messages and remembered turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from planwave.principals import Principal

if TYPE_CHECKING:
    from planwave.shapes.chats import ChatConfig, ReplyUsage
    from planwave.shapes.common import ExecutionStatus

Role = Literal["user", "assistant"]
Origin = Literal["send", "edit", "retry", "continue"]
Block = dict[str, Any]
"""One block of a message as JSON; see docs/chat.md."""
ENDED: Final = frozenset({"completed", "failed", "cancelled"})
"""Statuses of replies that never change again."""


@dataclass(frozen=True, slots=True)
class ChatRecord:
    """A conversation.

    Attributes:
        plan_id: The flow that replies; None with a configuration.
        plan_revision: The revision of the flow; None for its live one.
        node_id: The entry node of the flow; None for the only one.
        config: The configuration that is turned into a graph; None with a flow.
        head: The last message of the branch that is shown.
        revision: Counts the changes of the chat and of its messages.
        created_by: Who opened it; None where an older planwave did.
    """

    chat_id: str
    created_at: str
    updated_at: str
    title: str = ""
    plan_id: str | None = None
    plan_revision: int | None = None
    node_id: str | None = None
    config: ChatConfig | None = None
    head: str | None = None
    revision: int = 1
    created_by: Principal | None = None


@dataclass(frozen=True, slots=True)
class MessageRecord:
    """One message of a chat.

    Attributes:
        parent_id: The message before it; None for the first.
        blocks: Its content; of a reply as far as it was projected from its execution.
        execution_id: Of a reply: its execution, which may not exist yet.
        status: Of a reply, that of its execution; None in messages of the user.
        cursor: The last event of the execution that ``blocks`` show.
        usage: Of a reply: its tokens and cost.
        seed: Of a reply that continues another one: the blocks of that one.
        is_cancelled: It was cancelled, perhaps before its execution existed.
    """

    message_id: str
    chat_id: str
    role: Role
    origin: Origin
    created_at: str
    parent_id: str | None = None
    blocks: Sequence[Block] = ()
    execution_id: str | None = None
    status: ExecutionStatus | None = None
    cursor: int = 0
    usage: ReplyUsage | None = None
    seed: Sequence[Block] = ()
    is_cancelled: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it changes any more."""
        return self.status is None or self.status in ENDED


@dataclass(frozen=True, slots=True)
class Projected:
    """The blocks and the status of a reply, from the events of its execution.

    Attributes:
        cursor: The last event that it shows.
    """

    blocks: Sequence[Block]
    status: ExecutionStatus
    cursor: int
    usage: ReplyUsage | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation that is remembered under a key over executions.

    Attributes:
        execution_id: The execution that it belongs to.
        path: The node that remembered it.
        messages: The message of the user, and once it is known the reply, as messages for a model.
        is_complete: Whether the reply is among them, or will never come.
    """

    key: str
    execution_id: str
    path: str
    at: str
    messages: Sequence[Mapping[str, Any]] = field(default_factory=tuple[Mapping[str, Any], ...])
    is_complete: bool = False
