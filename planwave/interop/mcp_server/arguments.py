"""The arguments of the tools, with the descriptions that models read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planwave.errors import InputError
from planwave.service.flows.flow_tools import ANY_VALUE, read_texts
from planwave.validation import describe_error

WAIT_S: Final = 50.0
"""How long a call waits unless it says otherwise: many clients give up after 60 s."""
MAX_ID_CHARS: Final = 255
_MAX_WAIT_S: Final = 3_600.0
_Arguments = TypeVar("_Arguments", bound=BaseModel)


class _ToolArguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


def _wait(default: float, until: str) -> Any:
    return Field(
        default,
        ge=0,
        le=_MAX_WAIT_S,
        description=f"Seconds to wait {until}; after them the call returns the present status.",
    )


def _text(description: str, longest: int = MAX_ID_CHARS) -> Any:
    return Field(min_length=1, max_length=longest, description=description)


def _optional(description: str, longest: int = MAX_ID_CHARS) -> Any:
    return Field(None, min_length=1, max_length=longest, description=description)


class PlanArguments(_ToolArguments):
    """The arguments of ``plan``."""

    goal: str = Field(min_length=1, description="The goal, in plain words.")
    provider: str | None = _optional("The provider that plans; left out: the default one.")
    model: str | None = _optional("A model of that provider.")
    answers: dict[str, str] = Field(
        default={},
        description="Answers to `questions` of an earlier plan of the goal, by question; left out: the assumed ones.",
    )


class RunArguments(_ToolArguments):
    """The arguments of ``run``: one of ``goal``, ``plan_id`` and ``flow``."""

    goal: str | None = Field(
        None, min_length=1, description="A goal, in plain words: it is planned, then run."
    )
    plan_id: str | None = _optional("A stored plan, as `plan` returns it.")
    flow: str | None = _optional("A stored flow, by its name or its id.")
    revision: int | None = Field(
        None, ge=1, description="A revision of the flow; left out: the live one."
    )
    provider: str | None = _optional("With `goal`: the provider that plans.")
    model: str | None = _optional("With `goal`: a model of that provider.")
    inputs: dict[str, Any] | None = Field(
        None,
        description="The values of the entry nodes: {node id: {handle: value}}; "
        '{"output": value} where there is one entry node.',
    )
    wait_s: float = _wait(WAIT_S, "until the execution ends or waits for a person")
    on_disconnect: Literal["continue", "cancel"] = Field(
        "cancel",
        description="What becomes of the execution if an HTTP client closes the connection of "
        "this call, which is how it cancels the call.",
    )
    idempotency_key: str | None = _optional(
        "The same key again returns the same execution, and starts nothing."
    )


class StatusArguments(_ToolArguments):
    """The arguments of ``status``."""

    execution_id: str = _text("The id of an execution, as `run` returns it.")


class ResultArguments(_ToolArguments):
    """The arguments of ``result``."""

    execution_id: str = _text("The id of an execution, as `run` returns it.")
    node: str | None = _optional("Only the result of this node, by its id or path.", 1_000)
    wait_s: float = _wait(0, "until the execution ends or waits for a person")


class AnswerArguments(_ToolArguments):
    """The arguments of ``answer``: ``decision`` for a request with actions, else ``answer``."""

    execution_id: str = _text("The execution that waits.")
    request_id: str | None = _optional(
        "The request; may be left out where there is one open request."
    )
    decision: str | None = _optional("One of the actions of the request, such as `approve`.")
    note: str | None = Field(None, description="A note to the decision.")
    value: Any = Field(None, description="What replaces the proposed value, where it is editable.")
    form: dict[str, Any] | None = Field(
        None, description="The fields of the request's form, where it has one."
    )
    answer: Any = Field(None, description="The answer to a request that has no actions: any JSON.")
    wait_s: float = _wait(WAIT_S, "until the execution ends or waits again")

    def as_answer(self) -> Any:
        """Return the answer in the form of the service; a value that is null counts as given."""
        if self.decision is None:
            return self.answer
        fields = ("decision", "note", "value", "form")
        return {name: getattr(self, name) for name in fields if name in self.model_fields_set}


def read_arguments(model: type[_Arguments], arguments: Mapping[str, Any]) -> _Arguments:
    """Return the validated arguments of a call.

    Raises:
        InputError: ``invalid-arguments``; the message lists everything that is wrong.
    """
    try:
        return model.model_validate(read_texts(schema_of(model), arguments))
    except ValidationError as error:
        reasons = [
            describe_error(".".join(map(str, each["loc"])) or "the arguments", {**each})
            for each in error.errors()
        ]
        names = ", ".join(model.model_fields)
        raise InputError(
            "; ".join(reasons), code="invalid-arguments", hint=f"the arguments are {names}"
        ) from error


@lru_cache(maxsize=16)
def schema_of(model: type[BaseModel]) -> Mapping[str, Any]:
    """Return the JSON Schema of the arguments, in the short form that models read best."""
    schema = model.model_json_schema()
    properties = {name: _plain(each) for name, each in schema["properties"].items()}
    return {
        "type": "object",
        "properties": properties,
        "required": schema.get("required", []),
        "additionalProperties": False,
    }


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an argument without its title, and without null where it may be absent."""
    plain = {name: value for name, value in schema.items() if name != "title"}
    if "default" in plain and plain["default"] is None:
        del plain["default"]
    options = cast("list[dict[str, Any]]", plain.pop("anyOf", []))
    for option in options:
        if option != {"type": "null"}:
            plain |= option
    return plain if "type" in plain or "enum" in plain else {**ANY_VALUE, **plain}
