"""What the library's nodes find in ``context.services``."""

from __future__ import annotations

from dataclasses import dataclass

from planwave.errors import InputError, NodeError
from planwave.graph.capabilities import FlowContext
from planwave.providers.api import Models, Providers


@dataclass(frozen=True)
class NodeServices:
    """Services of one execution.

    Attributes:
        models: Calls language models.
        providers: Knows which there are.
        goal: The goal of the plan, "" without one.
        default_provider: Provider of nodes that name none; None for the catalogue's default.
        default_model: Model of nodes that name none and use the default provider.
    """

    models: Models
    providers: Providers
    goal: str = ""
    default_provider: str | None = None
    default_model: str | None = None

    def model_for(self, provider: str | None, model: str | None) -> tuple[str, str]:
        """Give the provider and model that a node's data mean.

        Raises:
            NodeError: No such provider or model here; the code says which.
        """
        wanted = wanted_model(provider, model, self.default_provider, self.default_model)
        try:
            return self.providers.resolve(*wanted)
        except InputError as error:
            raise NodeError(error.message, code=error.code, hint=error.hint) from error


def wanted_model(
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


def services_of(context: FlowContext) -> NodeServices:
    """Give the node services of a run.

    Raises:
        NodeError: The run was started without them (code ``no-models``).
    """
    services = context.services
    if isinstance(services, NodeServices):
        return services
    raise NodeError(
        "this run has no access to language models",
        code="no-models",
        hint="start it through the service, or pass services=NodeServices(models, providers)",
    )
