"""Stored runs are listed, and looked at without running anything."""

from __future__ import annotations

from tempfile import TemporaryDirectory

import planwave

g = planwave.GraphBuilder()
ask = g.node("approval", prompt="Send it?", input=g.node("start"))
g.node("text", text="Sent: {{ input }}", input=ask["approve"])
with TemporaryDirectory() as store:
    planwave.run_sync(g, "Dear Ann", store=store, goal="Write to Ann")
    for item in planwave.executions(store, status="paused"):
        assert (item.title, item.status, item.interrupted) == ("Write to Ann", "paused", False)
    run = planwave.open(store, "last")
    (request,) = run.result().requests
    assert run.result().status == "paused"
    assert run.answer(request.request_id, decision="approve").wait().output == "Sent: Dear Ann"
    assert planwave.open(store, run.execution_id[-6:]).result().status == "completed"
