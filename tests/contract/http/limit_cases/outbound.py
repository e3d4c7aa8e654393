"""Limits of requests to URLs."""

from __future__ import annotations

import asyncio

from planwave.bootstrap import open_notifier, outbound_limits
from planwave.outbound.client import OutboundClient
from planwave.settings import Limits, Settings
from tests.contract.http.limit_cases.registry import Refusal, case
from tests.support.outbound.fake_network import PUBLIC, FakeNetwork, redirect, response


class _SlowNetwork(FakeNetwork):
    """A network whose servers, or whose names, need some seconds."""

    def __init__(self, *, answer_s: float = 0, resolve_s: float = 0) -> None:
        super().__init__({"public.test": [PUBLIC]})
        self._answer_s, self._resolve_s = answer_s, resolve_s

    async def resolve(self, host: str, port: int) -> list[str]:
        await asyncio.sleep(self._resolve_s)
        return await super().resolve(host, port)

    async def connect_tcp(self, *args: object, **options: object) -> object:  # type: ignore[override]
        await asyncio.sleep(self._answer_s)
        return await super().connect_tcp(*args, **options)  # type: ignore[arg-type]


async def _request(limits: Limits, network: FakeNetwork) -> Refusal | None:
    client = OutboundClient(
        limits=outbound_limits(limits), resolver=network.resolve, connector=network
    )
    await client.request("GET", "http://public.test/")
    return None


@case(
    "fetch_s", 20, at=19, past=21, code="fetch-timeout", virtual=True, mentions=["20 s", "fetch_s"]
)
async def _(limits: Limits, amount: int) -> Refusal | None:
    return await _request(limits, _SlowNetwork(answer_s=amount))


@case(
    "fetch_connect_s", 5, at=4, past=6, code="fetch-timeout", virtual=True,
    mentions=["5 s", "fetch_connect_s"],
)  # fmt: skip
async def _(limits: Limits, amount: int) -> Refusal | None:
    return await _request(limits, _SlowNetwork(resolve_s=amount))


@case("notification_s", 20, at=19, past=21, code="fetch-timeout", virtual=True, mentions=["20 s"])
async def _(limits: Limits, amount: int) -> Refusal | None:
    network = _SlowNetwork(answer_s=amount)
    client = open_notifier(Settings(limits=limits))
    client._resolver, client._connector = network.resolve, network  # pyright: ignore
    await client.request("POST", "http://public.test/", content=b"{}")
    return None


@case("fetch_redirects", 2)
async def _(limits: Limits, amount: int) -> Refusal | None:
    answers = [redirect("/again")] * amount
    return await _request(limits, FakeNetwork({"public.test": [PUBLIC]}, *answers, response()))


@case("fetch_bytes", 1000)
async def _(limits: Limits, amount: int) -> Refusal | None:
    return await _request(limits, FakeNetwork({"public.test": [PUBLIC]}, response(b"x" * amount)))


@case("fetch_header_bytes", 1024)
async def _(limits: Limits, amount: int) -> Refusal | None:
    fixed = sum(map(len, ("content-type", "text/plain", "content-length", "2", "x")))
    answer = response(x="y" * (amount - fixed))
    return await _request(limits, FakeNetwork({"public.test": [PUBLIC]}, answer))
