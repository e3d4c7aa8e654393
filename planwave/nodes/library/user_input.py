"""``user_input``: what a person says to begin with, and what comes along with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic import Field, ValidationError

from planwave.errors import InputError
from planwave.expressions import copy_json
from planwave.expressions.json_text import to_text
from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DataValue, Json, Port
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.nodes.authoring.node_type import NodeData, NodeType, template
from planwave.nodes.conversation import Files, Images, completed_ids, ids_in_run
from planwave.validation import describe_error

_MAX_ERRORS: Final = 5


class UserInputData(NodeData):
    """What the node gives when the execution brings nothing for it."""

    message: str = template("", description="The text of the message.")
    files: Files = Field([], description="Its files.")
    images: Images = Field([], description="Its images.")
    extras: dict[str, Json] = Field({}, description="Any other values that come with it.")
    chat_id: str | None = Field(None, min_length=1, description="The chat that it belongs to.")
    thread_id: str | None = Field(None, min_length=1, description="The thread within the chat.")


class UserInput(NodeType):
    """Outputs a message and its attachments, each on its handle, and all of them on ``output``.

    An execution sets some of ``{"message", "files", "images", "extras", "chatId",
    "threadId"}``; a text on ``output`` is the message, an object on it is all of these. A file is
    ``{"name", "mime", "url" | "data"}``, its data base64; an image is a file or a URL. ``chatId`` and
    ``threadId`` are new ids where none are set, the same for all of an execution.
    """

    node_type = "user_input"
    purpose = "Begin with a person's message, its files and images; each has a handle of its own."
    summary = "Begin with a person's message and files."
    Data = UserInputData
    plan_fields = ("message",)
    fails_permanently = True
    inputs: tuple[Port, ...] = ()
    outputs = (
        Port(DEFAULT_SOURCE_HANDLE, "json"),
        Port("message", "text"),
        Port("files", "json"),
        Port("images", "json"),
        Port("extras", "json"),
        Port("chatId", "text"),
        Port("threadId", "text"),
    )
    entry = expects_input = True
    planned = False

    async def run(
        self, data: UserInputData, inputs: Inputs, context: FlowContext
    ) -> ExecutionResult:
        data = data.model_copy(update=await ids_in_run(data.chat_id, data.thread_id, context))
        types = {port.name: port.type for port in self.outputs}
        values = _values_by_handle(data)
        return ExecutionResult({name: DataValue(types[name], v) for name, v in values.items()})

    def adapt_inputs(self, values: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the node's outputs for an execution's inputs; see ``InputAdapter``.

        Raises:
            InputError: A field is unknown, has the wrong type, or has two different values.
        """
        try:
            data = UserInputData.model_validate(_merge_fields(values))
        except ValidationError as error:
            errors = error.errors(include_url=False)[:_MAX_ERRORS]
            reasons = (describe_error(".".join(map(str, each["loc"])), each) for each in errors)
            raise InputError(
                "; ".join(reasons),
                hint="a user_input is given message, files, images, extras, chatId, threadId; "
                'a file is {"name", "mime", "url" or "data" (base64)}',
            ) from error
        own = completed_ids(data.chat_id, data.thread_id)
        return _values_by_handle(data.model_copy(update=own))


def _merge_fields(values: Mapping[str, Json]) -> dict[str, Json]:
    """Return the fields, whether they were sent one by one or as one object."""
    fields = dict(values)
    if DEFAULT_SOURCE_HANDLE not in fields:
        return fields
    whole = fields.pop(DEFAULT_SOURCE_HANDLE)
    if not isinstance(whole, dict):
        whole = {"message": to_text(whole)}
    for name, value in cast("dict[str, Any]", whole).items():
        if fields.setdefault(name, value) != value:
            raise InputError(
                f"{name!r} is given twice, by itself and with 'output', and differs",
                hint=f"give {name!r} once",
            )
    return fields


def _values_by_handle(data: UserInputData) -> dict[str, Json]:
    whole: dict[str, Json] = data.model_dump(by_alias=True, exclude_none=True)
    return {DEFAULT_SOURCE_HANDLE: copy_json(whole), **whole}
