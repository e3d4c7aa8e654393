from __future__ import annotations

from tools.gen_client_types import TARGET, types_module


def test_generated_types_are_current() -> None:
    assert TARGET.read_text("utf-8") == types_module(), "bring them up to date: make generate"
