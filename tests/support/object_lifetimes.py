"""What is still there of objects nobody needs any more, while nobody looks for cycles."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import pytest


@contextmanager
def uncollected(*kinds: type) -> Generator[WeakSet[Any]]:
    """Give those objects of some types that are made meanwhile and still exist."""
    made = WeakSet[Any]()

    def note(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
        init = kind.__init__

        def noted(self: Any, *given: Any, **named: Any) -> None:
            init(self, *given, **named)
            made.add(self)

        monkeypatch.setattr(kind, "__init__", noted)

    was_enabled = gc.isenabled()
    with pytest.MonkeyPatch.context() as monkeypatch:
        for kind in kinds:
            note(kind, monkeypatch)
        gc.disable()
        try:
            yield made
        finally:
            if was_enabled:
                gc.enable()
