"""What the caller of a flow asks of the agent that answers it: tools of its own, and a form of the answer.

A call of such a tool is not made here. It ends the agent; the caller makes the call, and comes back with
its result in the conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from planwave.errors import PermanentError
from planwave.graph.model import Json
from planwave.nodes.authoring.node_type import NodeData
from planwave.nodes.conversation import Conversation
from planwave.providers.protocols import ModelRequest, ToolCall, ToolSpec

if TYPE_CHECKING:
    from planwave.settings import Limits


def _usable_schema(schema: dict[str, Json]) -> dict[str, Json]:
    # Lazy: test_importing_the_node_library_loads_no_sdk
    from planwave.nodes.json_schema import check_schema

    for error in check_schema(schema):
        where = f" at {error.pointer}" if error.pointer else ""
        raise ValueError(f"no usable JSON Schema{where}: {error.message}")
    return schema


class CallerTool(NodeData):
    """A tool that the caller has."""

    name: str = Field(pattern="^[A-Za-z0-9_-]{1,64}$")
    description: str = ""
    parameters: dict[str, Json] = Field(default={"type": "object", "properties": {}})


class CallerOptions(NodeData):
    """What the caller asks; the agent's own data come first. Other fields are not for the agent."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore")

    messages: Conversation | None = None
    tools: list[CallerTool] = Field([], max_length=128)
    must_call: bool = Field(False, description="Each reply of the model is a call of a tool.")
    output_schema: Annotated[dict[str, Json], AfterValidator(_usable_schema)] | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = (
        None
    )
    max_tokens: int | None = Field(None, ge=1)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as a model is offered them."""
        # Lazy: test_the_schema_library_is_loaded_only_for_forms
        from planwave.nodes.agents.server_schemas import sound_schema

        return tuple(
            ToolSpec(each.name, each.description, sound_schema(each.parameters))
            for each in self.tools
        )

    def applied_to(self, request: ModelRequest, limits: Limits | None) -> ModelRequest:
        """Return a request with the settings that it leaves open; a limit of the operator holds."""
        most = self.max_tokens
        if most is not None and limits is not None:
            most = min(most, limits.call_tokens)
        return replace(
            request,
            temperature=self.temperature if request.temperature is None else request.temperature,
            max_tokens=request.max_tokens or most,
            reasoning_effort=request.reasoning_effort or self.reasoning_effort,
        )


NO_OPTIONS: Final = CallerOptions.model_validate({})


def check_names(own: Iterable[ToolSpec], of_caller: Iterable[ToolSpec]) -> None:
    """Check that no tool of the caller has the name of one of the agent's.

    Raises:
        PermanentError: ``duplicate-tool``.
    """
    names = {each.name for each in own}
    for each in of_caller:
        if each.name in names:
            raise PermanentError(
                f"the caller brings a tool {each.name!r}, and the agent has one of this name",
                code="duplicate-tool",
                hint="rename one of them",
            )


def calls_of_caller(
    calls: Sequence[ToolCall], of_caller: Iterable[ToolSpec]
) -> tuple[ToolCall, ...]:
    """Return those calls that the caller is to make."""
    names = {each.name for each in of_caller}
    return tuple(call for call in calls if call.name in names)
