"""Finding flows by what people call them."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import InputError, NotFound
from planwave.service.service import Service
from tests.support.graph.builders import make_graph, text_node
from tests.support.service.dependencies import dependencies


def text(content: str) -> dict[str, Any]:
    return make_graph(text_node("a", content)).to_document()


async def test_a_flow_is_found_by_id_by_name_and_by_the_start_of_its_id() -> None:
    async with Service(dependencies()) as service:
        made = await service.create_flow("Täglich", graph=text("x"))
        await service.create_flow("täglich", graph=text("x"))
        for name in (made.flow_id, "Täglich", made.flow_id[:-1]):
            assert await service.find_flow(name) == made.flow_id
        with pytest.raises(NotFound):
            await service.find_flow(made.flow_id[:-1], by_start=False)
        for name in ("", "Tägli", "nobody"):
            with pytest.raises(NotFound):
                await service.find_flow(name)


async def test_a_name_that_several_have_is_refused_with_their_ids() -> None:
    async with Service(dependencies()) as service:
        made = [(await service.create_flow("Same", graph=text("x"))).flow_id for _ in range(6)]
        with pytest.raises(InputError, match="6 flows go by 'Same'") as refused:
            await service.find_flow("Same")
        assert refused.value.code == "ambiguous-flow"
        assert refused.value.hint == f"name one of them: {', '.join(made[:1:-1])}, …"
        with pytest.raises(InputError):
            await service.find_flow(made[0][:3])


async def test_a_name_comes_before_the_start_of_an_id() -> None:
    async with Service(dependencies()) as service:
        first = await service.create_flow("x", graph=text("x"))
        named = await service.create_flow(first.flow_id[:6], graph=text("x"))
        assert await service.find_flow(first.flow_id[:6]) == named.flow_id


async def test_a_version_is_found_by_its_start() -> None:
    async with Service(dependencies()) as service:
        made = await service.create_flow("x", graph=text("0"))
        for number in range(1, 18):  # more than there are first digits
            await service.update_flow(made.flow_id, graph=text(str(number)))
        assert await service.find_version(made.flow_id, made.version) == made.version
        assert await service.find_version(made.flow_id, made.version[:20].upper()) == made.version
        with pytest.raises(InputError) as refused:
            await service.find_version(made.flow_id, "")
        assert refused.value.code == "ambiguous-version"
        with pytest.raises(NotFound, match="has no version 'x'"):
            await service.find_version(made.flow_id, "x")


async def test_more_flows_than_a_page_are_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planwave.service.flows.flow_queries._PAGE", 2)
    async with Service(dependencies()) as service:
        made = [(await service.create_flow(f"flow {n}", graph=text("x"))) for n in range(5)]
        for each in made:
            assert await service.find_flow(each.name) == each.flow_id
            assert await service.find_flow(each.flow_id[:-1]) == each.flow_id
