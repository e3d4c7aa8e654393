"""What a run shares with its retries and forks."""

from __future__ import annotations

import planwave

TEXT = {"nodes": [{"id": "t", "type": "text", "data": {"text": "{{ goal }}"}}], "edges": []}


def test_forks_and_retries_share_the_store_and_the_node_types_of_their_run() -> None:
    store = planwave.MemoryStore()
    run = planwave.run_sync(TEXT, goal="x", store=store).run
    fork = run.fork(rerun=["t"])
    assert fork.environment is run.environment
    assert fork.environment.store is store
    result = fork.wait()
    assert (result.text, result.execution_id == run.execution_id) == ("x", False)
    assert {each.execution_id for each in planwave.executions(store)} == {
        run.execution_id,
        result.execution_id,
    }
