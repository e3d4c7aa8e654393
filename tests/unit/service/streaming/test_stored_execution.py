"""Stored executions as they are read from a store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from planwave.errors import NotFound
from planwave.service.service import Service
from planwave.service.streaming.stored_execution import load_events, load_record, load_state
from planwave.storage.memory import MemoryStore
from tests.support.graph.builders import make_graph, text_node
from tests.support.service.dependencies import dependencies


async def test_stored_execution_is_loaded_with_events_and_state() -> None:
    store = MemoryStore()
    async with Service(dependencies(make_graph(text_node("a")), store=store)) as service:
        execution_id = (
            await service.execute((await service.create_plan("x")).plan_id)
        ).execution_id
        await service.wait(execution_id)
        record = await load_record(store, execution_id)
        events = await load_events(store, execution_id)
        assert (record.status, record.last_seq) == ("completed", events[-1].seq)
        assert await load_events(store, execution_id, after=1, limit=1) == events[1:2]
        assert (await load_state(store, execution_id)).status == "completed"


@pytest.mark.parametrize("load", [load_record, load_events, load_state])
async def test_an_unknown_execution_is_not_found(load: Callable[..., Awaitable[object]]) -> None:
    with pytest.raises(NotFound, match="there is no execution 'ghost'"):
        await load(MemoryStore(), "ghost")
