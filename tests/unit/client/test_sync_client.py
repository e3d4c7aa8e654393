from __future__ import annotations

import pytest

from tools.unasync import MODULES, synchronous, target_of


@pytest.mark.parametrize("module", MODULES)
def test_generated_client_is_current(module: str) -> None:
    assert target_of(module).read_text("utf-8") == synchronous(module), (
        "bring it up to date: make generate"
    )
