"""``chat``: build the conversation for a model call."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from typing import Annotated, Any, Final, NamedTuple, cast

from pydantic import Field

from planwave.errors import PermanentError
from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_TARGET_HANDLE, DataValue, Json, Port
from planwave.graph.protocols import FlowContext, NodeEvent
from planwave.nodes.authoring.data_fields import HIDDEN_FROM_PLANNER
from planwave.nodes.authoring.node_type import NodeData, NodeType, template, validate_data
from planwave.nodes.conversation import (
    ChatMessage,
    Files,
    Images,
    UserFile,
    check_calls,
    user_message,
)
from planwave.nodes.library.user_input import UserInputData
from planwave.nodes.services import memory_of

_MEMORY: Final = "memory"
"""Name of the once value with the turns before."""
_TEXT_TYPES: Final = (
    "application/json",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/javascript",
)
"""What is text besides ``text/*`` and what ends in ``+json`` or ``+xml``."""
_USER_FIELDS: Final = frozenset(field.alias for field in UserInputData.model_fields.values())

Messages = Annotated[list[ChatMessage], Field(json_schema_extra=HIDDEN_FROM_PLANNER)]


class ChatMemoryData(NodeData):
    """Where earlier turns are kept, and how many of them come back."""

    key: str = Field(
        min_length=1, max_length=500, description="The conversation, such as {{ input.chatId }}."
    )
    max_turns: int = Field(20, ge=1, le=1_000, description="The most turns that come back.")
    max_tokens: int | None = Field(None, ge=1, description="The most tokens that come back.")


class ChatData(NodeData):
    """What the conversation is made of; each part may be wired."""

    system: str | None = template(None, description="The system text, at the beginning.")
    message: str | None = template(None, description="The user's message; without it, the input.")
    history_messages: Messages = Field([], description="What was said before.")
    messages: Messages = Field([], description="What was said before, in place of that.")
    messages_append_mode: bool = Field(
        False,
        description="Whether messages follow the history instead of replacing it.",
        json_schema_extra=HIDDEN_FROM_PLANNER,
    )
    custom_messages: Messages = Field([], description="More messages, after the history.")
    memory: ChatMemoryData | None = Field(
        None,
        title="Memory",
        description="Keeps the turns under a key over executions, and puts those before first.",
        json_schema_extra={**HIDDEN_FROM_PLANNER, "template": True},
    )
    max_input_tokens: int | None = Field(
        None,
        ge=1,
        description="The longest conversation, in tokens; the oldest turns are left out.",
        json_schema_extra=HIDDEN_FROM_PLANNER,
    )
    files: Files = Field(
        [], description="Files of the user's message.", json_schema_extra=HIDDEN_FROM_PLANNER
    )
    images: Images = Field(
        [], description="Images of the user's message.", json_schema_extra=HIDDEN_FROM_PLANNER
    )


class Window(NamedTuple):
    """The part of a conversation that fits into ``maxInputTokens``.

    Attributes:
        messages: System messages, then the newest whole turns.
        dropped: Number of messages left out.
        tokens: Estimated number of tokens of ``messages``.
    """

    messages: list[ChatMessage]
    dropped: int
    tokens: int


class Chat(NodeType):
    """Outputs the messages for a model in this order: system, history, custom messages, user message.

    ``messages`` replace ``historyMessages``, or follow them with ``messagesAppendMode``. The user message
    is ``message``, or else the input; the ``output`` of a ``user_input`` includes files and images. Text
    files are quoted, other files only named. Above ``maxInputTokens`` the oldest turns are left out (a
    turn is a user message with all messages up to the next one); system messages and the last turn
    are always kept.

    With ``memory`` the user message is kept under ``key`` in the store, with what the execution says in
    the end. Later executions get the turns of that key before the history: the last ``maxTurns`` that
    fit into ``maxTokens``.
    """

    node_type = "chat"
    purpose = (
        "Build the conversation for an agent or llm: system text, history, the user's message; "
        "wire messages to their messages."
    )
    summary = "Build a conversation for a model."
    Data = ChatData
    plan_fields = ("system", "message")
    outputs = (Port("messages", "json"),)
    planned = False

    async def run(
        self, data: ChatData, inputs: Inputs, context: FlowContext
    ) -> AsyncGenerator[NodeEvent | DataValue]:
        def log_event(message: str, level: str = "warning") -> NodeEvent:
            log = {"message": message, "level": level}
            return NodeEvent(context.node_id, self.node_type, "log", context.run_id, log)

        user = _user_input(data, inputs)
        for file in user.files:
            if not _is_text(file):
                yield log_event(f"the model gets the name of file {file.name!r}, not its content")
        earlier = [] if data.memory is None else await _recall(data.memory, user, context)
        window = fit_window(_conversation(data, user, earlier), data.max_input_tokens)
        if window.dropped:
            message = f"{window.dropped} of the oldest messages were left out to fit maxInputTokens"
            yield log_event(message, "info")
        if data.max_input_tokens is not None and window.tokens > data.max_input_tokens:
            yield log_event(
                f"the last turn and the system messages alone are about {window.tokens} tokens, "
                f"more than maxInputTokens ({data.max_input_tokens})"
            )
        yield DataValue("json", [message.as_json() for message in window.messages])


def fit_window(messages: Iterable[ChatMessage], max_tokens: int | None) -> Window:
    """Return the newest turns that fit, after the system messages; the last turn is always kept."""
    system: list[ChatMessage] = []
    turns: list[list[ChatMessage]] = []
    for message in messages:
        if message.role == "system":
            system.append(message)
        elif message.role == "user" or not turns:
            turns.append([message])
        else:
            turns[-1].append(message)
    tokens = _count_tokens(system)
    newest: list[list[ChatMessage]] = []
    for turn in reversed(turns):
        size = _count_tokens(turn)
        if newest and max_tokens is not None and tokens + size > max_tokens:
            break
        newest.append(turn)
        tokens += size
    dropped = sum(map(len, turns)) - sum(map(len, newest))
    return Window([*system, *(m for turn in reversed(newest) for m in turn)], dropped, tokens)


def _count_tokens(messages: Iterable[ChatMessage]) -> int:
    return sum(message.tokens for message in messages)


def _user_input(data: ChatData, inputs: Inputs) -> UserInputData:
    """Return the user's message with files and images, from the data or else from the input."""
    arrived = inputs.all(DEFAULT_TARGET_HANDLE)
    value = arrived[0].value if len(arrived) == 1 else None
    if isinstance(value, dict) and "message" in value and value.keys() <= _USER_FIELDS:
        whole = cast("UserInputData", validate_data(UserInputData, cast("dict[str, Any]", value)))
    else:
        text = inputs.text(DEFAULT_TARGET_HANDLE)
        whole = UserInputData.model_validate({"message": text})
    own: dict[str, Any] = {
        "message": data.message,
        "files": data.files or None,
        "images": data.images or None,
    }
    return whole.model_copy(update={name: v for name, v in own.items() if v is not None})


async def _recall(
    memory: ChatMemoryData, user: UserInputData, context: FlowContext
) -> list[ChatMessage]:
    """Return the turns before, and keep this one; the same when the node runs again."""
    store = memory_of(context)
    (question,) = _conversation(ChatData.model_validate({}), user)[-1:] or (None,)

    async def recall() -> Json:
        turns = await store.recall(memory.key, context.run_id, max_turns=memory.max_turns)
        if question is not None:
            await store.remember(memory.key, context.run_id, context.path, question.as_json())
        return cast("Json", [message for turn in turns for message in turn])

    recalled = cast("list[dict[str, Any]]", await context.runtime.once(_MEMORY, recall))
    messages = [ChatMessage.model_validate(each) for each in recalled]
    if memory.max_tokens is None:
        return messages
    window = fit_window(messages, memory.max_tokens)
    return window.messages if window.tokens <= memory.max_tokens else []


def _conversation(
    data: ChatData, user: UserInputData, earlier: Iterable[ChatMessage] = ()
) -> list[ChatMessage]:
    history = data.history_messages
    if data.messages:
        history = [*history, *data.messages] if data.messages_append_mode else data.messages
    messages = [*earlier, *history, *data.custom_messages]
    if data.system:
        messages.insert(0, ChatMessage(role="system", content=data.system))
    text = "\n\n".join(filter(None, [user.message, *map(file_text, user.files)]))
    images = [image if isinstance(image, str) else image.as_url for image in user.images]
    question = [user_message(text, images)] if text or images else []
    try:
        return check_calls([*messages, *question])
    except ValueError as error:
        raise PermanentError(
            f"the conversation is not valid: {error}", code="invalid-data"
        ) from error


def _is_text(file: UserFile) -> bool:
    kind = file.mime.lower()
    textual = kind.startswith("text/") or kind.endswith(("+json", "+xml")) or kind in _TEXT_TYPES
    return textual and file.content is not None


def file_text(file: UserFile) -> str:
    """Return a file as text for the model.

    Raises:
        NodeError: Its type is text, but its content is not UTF-8 text.
    """
    content = file.content
    if content is None or not _is_text(file):
        where = f": {file.url}" if file.url else ""
        return f"[File {file.name} ({file.mime}){where}]"
    try:
        return f"File {file.name}:\n{content.decode('utf-8')}"
    except UnicodeDecodeError as error:
        raise PermanentError(
            f"file {file.name!r} is sent as {file.mime} and is not text in UTF-8",
            code="invalid-data",
            hint="send it with its own mime type, or as UTF-8",
        ) from error
