from __future__ import annotations

from typing import get_args

import pytest

from planwave.shapes.common import ExecutionStatus
from planwave.storage.records import is_interrupted


@pytest.mark.parametrize("status", get_args(ExecutionStatus))
def test_execution_that_runs_without_an_owner_was_interrupted(status: ExecutionStatus) -> None:
    assert is_interrupted(status, is_owned=False) == (status in ("starting", "executing"))
    assert not is_interrupted(status, is_owned=True)
