"""Which flow a client means by the name of a model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planwave.interop.openai.errors import ModelNotFound
from planwave.interop.openai.published_models import PublishedModels
from planwave.service.service import Service
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.graph.builders import make_graph, text_node
from tests.support.service.dependencies import dependencies


async def test_a_model_that_is_named_like_the_id_of_another_flow_is_found() -> None:
    store = MemoryStore()
    graph = make_graph(text_node("a"))
    async with Service(dependencies(graph, store=store)) as service:
        hidden = await service.flows.create("A", graph=graph.to_document())
        named = await service.flows.create(hidden.plan_id, graph=graph.to_document())
        models = PublishedModels(service, lambda _: True)
        with pytest.raises(ModelNotFound):
            await models.get(hidden.plan_id)
        record = await service.plans.get(named.plan_id)
        published = replace(record, published=("model",), edits=record.edits + 1)
        assert await store.revisions.save(published, after=record.edits)
        assert (await models.get(hidden.plan_id)).flow == await service.plans.get(named.plan_id)
        assert [each.id for each in await models.all()][1:] == [hidden.plan_id]
