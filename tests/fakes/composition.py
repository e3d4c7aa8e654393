"""What the command line is composed of, without a disk, a network or a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from planwave.cli.options import Composition
from planwave.service.history import History
from planwave.service.service import Service
from planwave.settings import Settings
from planwave.storage.memory import MemoryStore
from tests.fakes.planning import FakeProviders, library
from tests.fakes.service import rooms


class Embedded:
    """An embedded model that is there, or is missing until it is fetched."""

    def __init__(self, missing: str | None = None) -> None:
        self.missing = missing

    def missing_model(self) -> str | None:
        return self.missing


async def _listen(settings: Settings, told: Callable[[str], object]) -> int:
    told(f"http://{settings.host}:{settings.port}")
    return 0


def composed(
    *,
    model_dir: Path = Path("models"),
    providers: Any = None,
    embedded: Embedded | None = None,
    service: Callable[[Settings], Service] | None = None,
    history: Callable[[Settings], History] | None = None,
    serve: Callable[[Settings, Callable[[str], object]], Any] | None = None,
    **settings: Any,
) -> Composition:
    """Compose fakes; every service and history starts empty unless given."""
    return Composition(
        settings=lambda: Settings(model_dir=model_dir, **settings),
        service=service or (lambda _: Service(rooms())),
        history=history or (lambda _: History(MemoryStore(), None)),
        catalogue=lambda _: library(),
        providers=lambda _: (providers or FakeProviders(), embedded or Embedded()),
        serve=serve or _listen,
    )
