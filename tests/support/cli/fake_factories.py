"""What the command line is composed of, without a disk, a network or a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from planwave.cli.context import Factories
from planwave.config.files import LoadedSettings
from planwave.mcp.servers import McpServers
from planwave.service.queries.history import History
from planwave.service.service import Service
from planwave.settings import Settings
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.llm.fake_providers import FakeProviders, library_registry
from tests.support.service.dependencies import dependencies


class FakeEmbeddedModel:
    """An embedded model that is there, or is missing until it is fetched."""

    def __init__(self, missing: str | None = None) -> None:
        self.missing = missing

    def required_download(self) -> str | None:
        return self.missing


async def _listen(settings: Settings, report_url: Callable[[str], object], role: str) -> int:
    report_url(f"http://{settings.host}:{settings.port}")
    return 0


def fake_factories(
    *,
    model_dir: Path = Path("models"),
    providers: Any = None,
    embedded: FakeEmbeddedModel | None = None,
    service: Callable[[Settings], Service] | None = None,
    history: Callable[[Settings], History] | None = None,
    serve: Callable[[Settings, Callable[[str], object], str], Any] | None = None,
    has_web_ui: bool = True,
    **settings: Any,
) -> Factories:
    """Compose fakes; every service and history starts empty unless given."""
    return Factories(
        settings=lambda _=None: LoadedSettings(Settings(model_dir=model_dir, **settings)),
        service=service or (lambda _: Service(dependencies())),
        history=history or (lambda _: History(MemoryStore(), None)),
        catalogue=lambda _: library_registry(),
        providers=lambda _: (providers or FakeProviders(), embedded or FakeEmbeddedModel()),
        serve=serve or _listen,
        mcp_servers=lambda settings: McpServers(settings.mcp, settings.limits),
        has_web_ui=lambda: has_web_ui,
        command_server=lambda settings, is_wanted: None,
    )
