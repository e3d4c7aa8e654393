"""A person's answer is written by name."""

from __future__ import annotations

from tempfile import TemporaryDirectory

import planwave

g = planwave.GraphBuilder()
ask = g.node("approval", prompt="Send it?", input=g.node("start"))
sums = g.node("text", text="Sent: {{ input }}", input=ask["approve"])
with TemporaryDirectory() as store:
    result = planwave.run_sync(g, "Dear Ann", store=store)
    assert result.status == "paused"
    for request in result.requests:
        result.run.answer(request.request_id, decision="approve", note="well")
    assert result.run.wait()[sums] == "Sent: Dear Ann"
