from __future__ import annotations

from tools.unasync import SOURCE, TARGET, synchronous


def test_generated_client_is_current() -> None:
    code = synchronous(SOURCE.read_text("utf-8"))
    assert TARGET.read_text("utf-8") == code, "bring it up to date: make generate"
