"""Which provider and model a node uses: the ones in its data, the defaults, and those tried next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Self, TypeVar

from pydantic import Field, model_validator

from planwave.nodes.authoring.data_fields import HIDDEN_FROM_PLANNER
from planwave.nodes.authoring.node_type import NodeData

MAX_FALLBACK: Final = 10

ProviderName = Annotated[
    str | None,
    Field(min_length=1, description="The service that runs the model; without one, the default."),
]
ModelName = Annotated[
    str | None, Field(min_length=1, description="The model; without one, the provider's default.")
]


class ModelChoice(NodeData):
    """A provider, a model, or both; what is left out is chosen as for the node itself."""

    provider: ProviderName = None
    model: ModelName = None

    @model_validator(mode="after")
    def _check_named(self) -> Self:
        if self.provider is None and self.model is None:
            raise ValueError("name a provider, a model, or both")
        return self


Fallback = Annotated[
    list[ModelChoice] | None,
    Field(
        max_length=MAX_FALLBACK,
        description="The models to call, in this order, where a call has failed for good.",
        json_schema_extra=HIDDEN_FROM_PLANNER,
    ),
]


DataT = TypeVar("DataT", bound=NodeData)


def with_each_model(data: DataT, fallback: Sequence[ModelChoice] | None) -> list[DataT]:
    """Return the data of a node, then a copy of them for each model to call in its place."""
    return [
        data,
        *(
            data.model_copy(update={"provider": each.provider, "model": each.model})
            for each in fallback or ()
        ),
    ]


def named_model(provider: str | None, model: str | None) -> tuple[str | None, str | None]:
    """Return a provider and a model; ``model`` alone may name both, as in ``openai:gpt-5``."""
    if provider is None and model is not None and ":" in model:
        provider, _, model = model.partition(":")
    return provider, model


def with_default_model(
    provider: str | None,
    model: str | None,
    default_provider: str | None,
    default_model: str | None,
) -> tuple[str | None, str | None]:
    """Fill in defaults; the default model belongs to the default provider alone."""
    if provider is None:
        provider = default_provider
    if model is None and provider == default_provider:
        model = default_model
    return provider, model
