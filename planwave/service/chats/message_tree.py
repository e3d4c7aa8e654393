"""The tree of the messages of a chat: branches, siblings, and the conversation that a branch is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from planwave.storage.chats import Block, MessageRecord

CONTINUE_PROMPT: Final = (
    "Continue exactly where your last message ends. Repeat nothing, and do not comment on it."
)
"""What a model is told that continues its reply."""


class MessageTree:
    """The messages of one chat.

    Args:
        messages: All of them, in the order of creation.
    """

    def __init__(self, messages: Iterable[MessageRecord]) -> None:
        self.messages = list(messages)
        self._by_id = {each.message_id: each for each in self.messages}
        self._siblings: dict[tuple[str | None, str], list[str]] = {}
        for each in self.messages:
            self._siblings.setdefault((each.parent_id, each.role), []).append(each.message_id)

    def get(self, message_id: str | None) -> MessageRecord | None:
        """Return a message, or None."""
        return None if message_id is None else self._by_id.get(message_id)

    def siblings(self, message: MessageRecord) -> Sequence[str]:
        """Return the ids of the messages with the same parent and role, in the order of creation."""
        return self._siblings.get((message.parent_id, message.role), [message.message_id])

    def branch(self, message_id: str | None) -> list[MessageRecord]:
        """Return the messages from the first one to one of them."""
        messages: list[MessageRecord] = []
        while (message := self.get(message_id)) is not None:
            messages.append(message)
            message_id = message.parent_id
        return messages[::-1]


def text_of(blocks: Iterable[Block]) -> str:
    """Return the text of a message, its blocks as paragraphs."""
    texts = (block["text"] for block in blocks if block["type"] == "text")
    return "\n\n".join(filter(None, texts))


def seed_of(reply: MessageRecord) -> list[Block]:
    """Return the blocks with which another reply continues: without the errors at the end."""
    blocks = list(reply.blocks)
    while blocks and blocks[-1]["type"] == "error":
        blocks.pop()
    return blocks


def entry_values(branch: Sequence[MessageRecord], seed: Sequence[Block] = ()) -> dict[str, Any]:
    """Return what the entry node is given for a reply to the last message of a branch.

    Args:
        branch: The messages from the first one to the last one of the user.
        seed: The blocks of the reply that is continued.
    """
    last = branch[-1]
    history = [message for each in branch[:-1] if (message := turn_of(each)) is not None]
    values = {**_content(last), "chatId": last.chat_id, "threadId": branch[0].message_id}
    if beginning := text_of(seed):
        question = turn_of(last)
        answered = {"role": "assistant", "content": beginning}
        before = [*history, *([question] if question else []), answered]
        return {**values, "message": CONTINUE_PROMPT, "files": [], "images": [], "history": before}
    return {**values, "history": history}


def _content(message: MessageRecord) -> dict[str, Any]:
    return {
        "message": text_of(message.blocks),
        "images": [block["image"] for block in message.blocks if block["type"] == "image"],
        "files": [block["file"] for block in message.blocks if block["type"] == "file"],
    }


def turn_of(message: MessageRecord) -> Mapping[str, Any] | None:
    """Return a message as a turn of a conversation; None where it says nothing.

    Raises:
        InputError: Its attachments are none that a model can be shown.
    """
    if message.role == "assistant":
        text = text_of(message.blocks)
        return {"role": "assistant", "content": text} if text else None
    # Lazy: test_help_loads_no_heavy_library
    from planwave.nodes.library.chat_start import message_of

    return message_of(_content(message))
