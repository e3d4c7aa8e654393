"""What request bodies of several features have in common; the others stand beside their routes."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
)
from pydantic_core import core_schema

from planwave.api.schemas.examples import GOAL
from planwave.executor.options import DEFAULT_REPLANS, MOST_REPLANS
from planwave.planner.questions import MAX_QUESTIONS

MAX_NOTE_CHARS: Final = 1_000


class RequestModel(BaseModel):
    """A request: unknown fields and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Documented:
    """Documents an object as a shape without checking it, so that its reader finds every fault at once."""

    def __init__(self, shape: Any) -> None:
        self._shape = shape

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        # The document shows the schema for JSON; bodies are read as Python objects.
        shape = handler.generate_schema(self._shape)
        return core_schema.json_or_python_schema(shape, handler(source))


class GoalModel(RequestModel):
    """A goal, and who plans for it."""

    prompt: str = Field(description="The goal, in your words.", examples=[GOAL])
    provider: str | None = Field(
        None, description="Who plans, and runs the steps the plan leaves open; else the default."
    )
    model: str | None = Field(None, description="A model of that provider.")
    answers: dict[str, str] = Field(
        default={},
        max_length=MAX_QUESTIONS,
        description="Answers to the `questions` of an earlier plan of the goal, by question; what is not "
        "answered is assumed.",
        examples=[{}],
    )


class BudgetModel(RequestModel):
    """Limits of what an execution may use, with everything inside it; null sets no limit."""

    usd: float | None = Field(
        default=None, gt=0, description="US dollars, as far as prices are known."
    )
    tokens: int | None = Field(default=None, ge=1, description="Tokens that models read and write.")
    calls: int | None = Field(default=None, ge=1, description="Calls of models.")
    wall_s: float | None = Field(
        default=None, gt=0, description="Seconds in which it is not paused."
    )


class ReplanModel(RequestModel):
    """Whether a model changes the plan of an execution, where a step of it fails, or asks for that."""

    on_failure: bool = Field(
        default=False,
        description="Have a model write a change after a failure that nothing handles.",
    )
    by_nodes: bool = Field(
        default=False,
        description="Let steps ask for a change: agents by the tool `change_plan`, others by the event `replan`.",
    )
    max: int = Field(
        default=DEFAULT_REPLANS,
        ge=1,
        le=MOST_REPLANS,
        description="Changes of an execution, at most.",
    )


class RunOptionsModel(RequestModel):
    """How to run; limits of the service hold in any case."""

    scheduling: Literal["eager", "waves"] = Field(
        default="eager", description="Start a node the moment it is ready, or wait for its wave."
    )
    on_failure: Literal["continue", "stop"] = Field(
        default="continue",
        description="Finish nodes that do not depend on a failed node, or cancel them.",
    )
    max_parallel: int | None = Field(
        default=None, ge=1, description="Nodes working at the same time."
    )
    run_to: list[str] = Field(
        default=[],
        description="Ids of nodes: only these and their dependencies run.",
        examples=[[]],
    )
    run_from: list[str] = Field(
        default=[],
        description="Ids of nodes: only these, later nodes and the dependencies of both run.",
        examples=[[]],
    )
    budget: BudgetModel | None = Field(
        default=None,
        description="What the execution may use. Once nothing can go on within it, the execution is "
        "paused with a request of the kind `budget`. Amounts that are left out are those of the "
        "service's limits `budget_usd` and `budget_tokens`.",
        examples=[{"usd": 0.5}],
    )
    replan: ReplanModel | None = Field(
        default=None,
        description="Where a step fails and nothing handles that, or asks for it, a model writes a change of the plan. "
        "Nothing starts meanwhile. A person is asked about a change that reaches anything new.",
        examples=[{"on_failure": True, "max": 2}],
    )


class AuthoredRequest(RequestModel):
    """Who makes a change, and why."""

    author: Literal["person", "api"] = Field(
        "api", description="Who makes the change: a person, or a program."
    )
    note: str = Field(
        "", max_length=MAX_NOTE_CHARS, description="Why; it is stored with the revision."
    )
