from __future__ import annotations

from planwave.errors import LimitExceeded
from planwave.graph.diagnostics import limit_exceeded


def test_a_passed_limit_is_told_to_the_last_digit() -> None:
    told = "limit plan_bytes is 1048576, met 1048577"
    assert told in LimitExceeded("plan_bytes", 1_048_576, 1_048_577).message
    assert told in limit_exceeded("plan_bytes", 1_048_576, 1_048_577, "the document").message
    assert "is 0.5, met 0.75" in LimitExceeded("wait_s", 0.5, 0.75).message
