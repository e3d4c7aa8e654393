"""``model``: a configured language model, linked to the nodes that are to ask it."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AliasChoices, Field

from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, LINK, Port
from planwave.graph.protocols import FlowContext
from planwave.nodes.authoring.data_fields import FIELD_PORT_SIDE
from planwave.nodes.authoring.field_wires import FieldBundle
from planwave.nodes.authoring.node_type import LinkType, NodeData
from planwave.nodes.model_choice import Fallback, ModelName, ProviderName
from planwave.nodes.services import services_of

_MODEL_TYPE: Final = "model"
MODEL_SOCKET: Final = Port(_MODEL_TYPE, _MODEL_TYPE, channel=LINK, side=FIELD_PORT_SIDE)
"""Where types that ask a model take a linked one. It brings all that is set in it and beats what is
written in their data; data that flow into ``model`` are the model's name, as for any field."""

Temperature = Annotated[
    float | None, Field(ge=0, le=2, description="How freely the model words its reply: 0 to 2.")
]
Effort = Annotated[
    Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None,
    Field(description="How much the model reasons before it replies, where it can."),
]
MaxTokens = Annotated[int | None, Field(ge=1, description="The longest reply, in tokens.")]


class ModelData(NodeData):
    """A model and its parameters; the nodes that use it decide about parameters left out."""

    provider: ProviderName = None
    model: ModelName = None
    temperature: Temperature = None
    reasoning_effort: Effort = None
    max_tokens: MaxTokens = None
    fallback: Fallback = None


class Model(LinkType):
    """Makes the choice of a model and its settings a node, for any number of nodes to share."""

    node_type = "model"
    purpose = "Hold a model and its settings; link it into 'model' of the nodes that are to ask it."
    summary = "Hold a model and its settings for other steps."
    Data = ModelData
    inputs = ()
    outputs = (Port(DEFAULT_SOURCE_HANDLE, _MODEL_TYPE, channel=LINK),)
    calls_model = True

    async def make(self, data: ModelData, inputs: Inputs, context: FlowContext) -> FieldBundle:
        provider, model = services_of(context).model_for(data.provider, data.model)
        settings = data.model_dump(by_alias=True, exclude_none=True)
        return FieldBundle(_MODEL_TYPE, settings | {"provider": provider, "model": model})


class ClientData(ModelData):
    """A model under the names that other tools have for it, too."""

    provider: ProviderName = Field(
        None,
        validation_alias=AliasChoices("provider", "engine"),
        serialization_alias="provider",
    )
    model: ModelName = Field(
        None,
        validation_alias=AliasChoices("model", "model_name"),
        serialization_alias="model",
    )


class ClientModel(Model):
    """The same under the name that graphs from elsewhere use."""

    node_type = "client"
    purpose = "The same as model: a model and its settings, linked into 'model' of other nodes."
    summary = "Hold a model for other steps; the same as model."
    Data = ClientData
