"""The records of chats, their messages and remembered turns, and the port ``ChatStore``.

The contract suite ``tests/contract/stores`` runs over all implementations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from planwave.principals import Principal
from planwave.storage.records import PageCursor

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
    config: Mapping[str, Any] | None = None
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
    status: str | None = None
    cursor: int = 0
    usage: Mapping[str, Any] | None = None
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
    status: str
    cursor: int
    usage: Mapping[str, Any] | None = None


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


class ChatStore(Protocol):
    """Chats, their messages, and remembered turns. Writes are durable on return."""

    async def create(self, chat: ChatRecord) -> bool:
        """Store a new chat; return False if there is one of this id."""
        ...

    async def get(self, chat_id: str) -> ChatRecord | None: ...
    async def page(
        self, *, text: str | None = None, before: PageCursor | None = None, limit: int = 50
    ) -> Sequence[ChatRecord]:
        """Return chats, newest first; ``text`` is searched in the title."""
        ...

    async def count(self, account: str | None = None) -> int:
        """Return the number of chats, or of those that an account has opened."""
        ...

    async def update(
        self, chat_id: str, at: str, *, title: str | None = None, head: str | None = None
    ) -> ChatRecord | None:
        """Change the title or the head of a chat; return it as it is then, None without one."""
        ...

    async def delete(self, chat_id: str) -> bool:
        """Delete a chat with its messages; return whether there was one of this id."""
        ...

    async def add(self, messages: Sequence[MessageRecord], *, title: str = "") -> bool:
        """Store new messages of one chat in one commit; the last one becomes its head.

        ``title`` is used where the chat has none. Returns False, and stores nothing, if there is no
        such chat, or a message of one of these ids.
        """
        ...

    async def message(self, message_id: str) -> MessageRecord | None: ...
    async def messages(self, chat_id: str) -> Sequence[MessageRecord]:
        """Return the messages of a chat in the order in which they were added."""
        ...

    async def siblings(self, message: MessageRecord) -> Sequence[str]:
        """Return the ids of the messages with the parent and the role of one, in their order."""
        ...

    async def statuses(self, chat_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the status of the newest reply of each chat; chats without one are left out."""
        ...

    async def open_messages(self) -> Sequence[MessageRecord]:
        """Return the replies of all chats that have not ended, oldest first."""
        ...

    async def project(self, message_id: str, projected: Projected, at: str) -> bool:
        """Store the blocks and the status of a reply; return whether they were new.

        A reply that has ended stays as it is; so does one that shows later events already.
        """
        ...

    async def request_cancel(self, message_id: str) -> bool:
        """Note that a reply is to be cancelled; return whether it has not ended."""
        ...

    async def remember(self, turn: Turn) -> None:
        """Store a turn, or what is new of it; one that is complete stays as it is."""
        ...

    async def turns(self, key: str, *, limit: int, without: str = "") -> Sequence[Turn]:
        """Return the last turns under a key, oldest first; not those of one execution."""
        ...
