"""Options that several commands share, and what one invocation was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from planwave.cli.screen import Screen

if TYPE_CHECKING:
    from planwave.graph.capabilities import Catalogue
    from planwave.providers.api import Providers
    from planwave.service.history import History
    from planwave.service.service import Service
    from planwave.settings import Settings

_EVERYWHERE = "Options of every command"

JsonFlag = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Write exactly one JSON object to stdout, at the end; progress goes to stderr.",
        rich_help_panel=_EVERYWHERE,
    ),
]
StorageOption = Annotated[
    Path | None,
    typer.Option(
        "--storage",
        metavar="DIR",
        help="Where plans, executions and JSON results are kept. [default: ./storage]",
        rich_help_panel=_EVERYWHERE,
    ),
]
ProviderOption = Annotated[
    str | None,
    typer.Option(
        "--provider",
        metavar="NAME",
        help="openai, anthropic, local, or one from planwave.toml. [default: the first there is]",
        rich_help_panel=_EVERYWHERE,
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="A model of that provider. [default: the provider's own]",
        rich_help_panel=_EVERYWHERE,
    ),
]


class EmbeddedModel(Protocol):
    """What commands ask of the embedded model before anything needs it."""

    def missing_model(self) -> str | None:
        """Give the model whose fetching would make it usable, None where that is not it."""
        ...


@dataclass(frozen=True)
class Composition:
    """How ``main`` puts rooms together; the command line only asks for the result.

    Attributes:
        settings: Reads ``planwave.toml`` and the environment.
        service: Opens the service; it owns the storage directory while it is open.
        history: Opens what is kept for reading only, also while another process writes.
        catalogue: Gives the node types, checked against the providers there are.
        providers: Gives the provider catalogue and the embedded model behind it.
    """

    settings: Callable[[], Settings]
    service: Callable[[Settings], Service]
    history: Callable[[Settings], History]
    catalogue: Callable[[Settings], Catalogue]
    providers: Callable[[Settings], tuple[Providers, EmbeddedModel]]


@dataclass
class Invocation:
    """One call of ``planwave``: what was composed, and the options given before the command."""

    composition: Composition
    json: bool = False
    storage: Path | None = None
    provider: str | None = None
    model: str | None = None

    def screen(self) -> Screen:
        """Give where this invocation writes."""
        return Screen(json=self.json)

    def settings(self) -> Settings:
        """Read the settings and lay the options of this invocation over them.

        Raises:
            InputError: A setting is unusable.
            UnknownModel: No embedded model has the name asked for; nothing is to be fetched.
        """
        settings = self.composition.settings()
        changes: dict[str, object] = {}
        if self.storage is not None:
            changes["storage_dir"] = self.storage
        if self.provider is not None:
            changes |= {"provider": self.provider, "model": self.model}
            if self.provider == "local" and self.model is not None:
                changes["local_model"] = _embedded(self.model)
        elif self.model is not None:
            changes["model"] = self.model
        return settings.model_copy(update=changes) if changes else settings


def _embedded(model: str) -> str:
    from planwave.providers.local_catalogue import is_path, model_file

    return model if is_path(model) else model_file(model).name


def invocation(
    ctx: typer.Context,
    *,
    json: bool = False,
    storage: Path | None = None,
    provider: str | None = None,
    model: str | None = None,
) -> Invocation:
    """Give the invocation with a command's own options laid over those given before it."""
    asked: Invocation = ctx.obj
    asked.json = asked.json or json
    asked.storage = storage or asked.storage
    asked.provider = provider or asked.provider
    asked.model = model or asked.model
    return asked
