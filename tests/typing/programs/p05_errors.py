"""A failure has its cause, what completed, and a retry."""

from __future__ import annotations

import json

import planwave

known: dict[str, int] = {}


@planwave.node
def parse(input: str) -> int:
    """Read a number."""
    return known[input] if input in known else int(json.loads(input))


g = planwave.GraphBuilder()
start = g.node("start", id="s")
number = g.node(parse, input=start)
try:
    planwave.run_sync(g, "nope")
except planwave.ExecutionFailed as error:
    assert isinstance(error.__cause__, json.JSONDecodeError)  # noqa: PT017
    failed: planwave.RunResult = error.result
    assert failed["s"] == "nope"
    assert [each.path for each in failed.failures] == ["parse"]
    known["nope"] = 3
    assert failed.run.retry().wait()[number] == 3
else:
    raise AssertionError("it did not fail")
