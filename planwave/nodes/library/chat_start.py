"""``chat_start``: begin with a message of a chat, and what was said before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, cast

from pydantic import Field, ValidationError

from planwave.errors import InputError, PermanentError
from planwave.expressions import copy_json
from planwave.expressions.json_text import to_text
from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DataValue, Json, Port
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.nodes.authoring.data_fields import NO_SOCKET
from planwave.nodes.authoring.node_type import NodeData, NodeType, template
from planwave.nodes.conversation import (
    Conversation,
    Files,
    Images,
    completed_ids,
    ids_in_run,
    user_message,
)
from planwave.nodes.library.chat import file_text
from planwave.validation import describe_error

_MAX_ERRORS: Final = 5
_SAME: Final = {"lastUserMessage": "message", "last_user_message": "message"}
"""Other names of fields in an object on ``output``."""
_COMPUTED: Final = frozenset(
    {"runtime_messages", "attachments", "include_user_tools", "variable_specs"}
)
"""Fields of what the node gives that say nothing new when an execution is given it."""


class ChatStartData(NodeData):
    """What the node gives when the execution brings nothing for it."""

    message: str = template("", description="The text of the message.")
    history: Conversation = Field([], description="What was said before.")
    files: Files = Field([], description="Its files.")
    images: Images = Field([], description="Its images.")
    variables: dict[str, Json] = Field({}, description="Any other values that come with it.")
    chat_id: str | None = Field(None, min_length=1, description="The chat that it belongs to.")
    thread_id: str | None = Field(None, min_length=1, description="The branch within the chat.")
    on_disconnect: Literal["continue", "cancel"] = Field(
        "continue",
        description="What becomes of the reply when the last client leaves that follows it.",
        json_schema_extra=NO_SOCKET,
    )


class ChatStart(NodeType):
    """Outputs a message of a chat: wire ``messages`` to those of an agent, which replies then.

    ``messages`` is the whole conversation, the message with its images and text files as its last part;
    ``history`` is what came before. An execution sets some of ``{"message", "history", "files",
    "images", "variables", "chatId", "threadId"}``; a text on ``output`` is the message, an object on it
    is all of these. ``output`` is ``{"message", "last_user_message", "runtime_messages", "attachments",
    "include_user_tools", "variables", "variable_specs", "chatId", "threadId"}``. ``chatId`` and
    ``threadId`` are new ids where none are set, the same for all of an execution.
    """

    node_type = "chat_start"
    purpose = "Begin with a message of a chat; wire messages to the messages of an agent."
    summary = "Begin with a message of a chat."
    Data = ChatStartData
    fails_permanently = True
    inputs: tuple[Port, ...] = ()
    outputs = (
        Port(DEFAULT_SOURCE_HANDLE, "json"),
        Port("message", "text"),
        Port("messages", "json"),
        Port("history", "json"),
        Port("files", "json"),
        Port("images", "json"),
        Port("variables", "json"),
        Port("chatId", "text"),
        Port("threadId", "text"),
    )
    entry = expects_input = True
    planned = False

    async def run(
        self, data: ChatStartData, inputs: Inputs, context: FlowContext
    ) -> ExecutionResult:
        own = await ids_in_run(data.chat_id, data.thread_id, context)
        try:
            values = _values_by_handle(data.model_copy(update=own))
        except InputError as error:
            raise PermanentError(error.message, code="invalid-data", hint=error.hint) from error
        types = {port.name: port.type for port in self.outputs}
        return ExecutionResult({name: DataValue(types[name], v) for name, v in values.items()})

    def adapt_inputs(self, values: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the node's outputs for an execution's inputs; see ``InputAdapter``.

        Raises:
            InputError: A field is unknown, has the wrong type, or has two different values.
        """
        data = _validated(_merge_fields(values))
        own = completed_ids(data.chat_id, data.thread_id)
        return _values_by_handle(data.model_copy(update=own))


def message_of(values: Mapping[str, Json]) -> dict[str, Json] | None:
    """Return the message of ``{"message", "files", "images"}`` for a model; None where it is empty.

    Raises:
        InputError: They cannot be shown to a model.
    """
    return _user_message(_validated(values))


def _merge_fields(values: Mapping[str, Json]) -> dict[str, Json]:
    """Return the fields, whether they were sent one by one or as one object."""
    fields = {name: value for name, value in values.items() if name != "messages"}
    if DEFAULT_SOURCE_HANDLE not in fields:
        return fields
    whole = fields.pop(DEFAULT_SOURCE_HANDLE)
    if not isinstance(whole, dict):
        whole = {"message": to_text(whole)}
    for name, value in cast("dict[str, Any]", whole).items():
        if name in _COMPUTED:
            continue
        own = _SAME.get(name, name)
        if fields.setdefault(own, value) != value:
            raise InputError(
                f"{own!r} is given twice, by itself and with 'output', and differs",
                hint=f"give {own!r} once",
            )
    return fields


def _validated(values: Mapping[str, Json]) -> ChatStartData:
    try:
        return ChatStartData.model_validate(values)
    except ValidationError as error:
        errors = error.errors(include_url=False)[:_MAX_ERRORS]
        reasons = (describe_error(".".join(map(str, each["loc"])), each) for each in errors)
        raise InputError(
            "; ".join(reasons),
            hint="a chat_start is given message, history, files, images, variables, chatId, "
            'threadId; a file is {"name", "mime", "url" or "data" (base64)}',
        ) from error


def _user_message(data: ChatStartData) -> dict[str, Json] | None:
    try:
        text = "\n\n".join(filter(None, [data.message, *map(file_text, data.files)]))
    except PermanentError as error:
        raise InputError(error.message, hint=error.hint) from error
    images = [image if isinstance(image, str) else image.as_url for image in data.images]
    return user_message(text, images).as_json() if text or images else None


def _values_by_handle(data: ChatStartData) -> dict[str, Json]:
    history: list[Json] = [message.as_json() for message in data.history]
    question = _user_message(data)
    new_messages: list[Json] = [] if question is None else [question]
    fields: dict[str, Json] = data.model_dump(
        by_alias=True, exclude_none=True, exclude={"on_disconnect", "history"}
    )
    messages: list[Json] = [*history, *new_messages]
    whole: dict[str, Json] = {
        "message": data.message,
        "last_user_message": data.message,
        "runtime_messages": messages,
        "attachments": [*fields["images"], *fields["files"]],  # pyright: ignore[reportGeneralTypeIssues]
        "include_user_tools": False,
        "variables": data.variables,
        "variable_specs": [],
        "chatId": data.chat_id,
        "threadId": data.thread_id,
    }
    values = {**fields, "messages": messages, "history": history}
    return {DEFAULT_SOURCE_HANDLE: copy_json(whole), **values}
