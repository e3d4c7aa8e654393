"""An application in this process, and what it tells Prometheus."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families


@asynccontextmanager
async def asgi_client(app: FastAPI, **headers: str) -> AsyncIterator[httpx2.AsyncClient]:
    """Start an application and give a client for it, without a network between them."""
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", headers=headers
        ) as client,
    ):
        yield client


class MetricsScrape:
    """One answer of ``GET /metrics``."""

    def __init__(self, text: str) -> None:
        families = list(text_string_to_metric_families(text))
        self.types = {
            family.name + "_total" * (family.type == "counter"): family.type for family in families
        }
        self.monotonic = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in families
            if family.type in ("counter", "histogram")
            for sample in family.samples
        }
        self._samples = [sample for family in families for sample in family.samples]

    def value(self, name: str, **labels: str) -> float:
        """Give one sample; 0 where there is none of these labels."""
        found = [s.value for s in self._samples if (s.name, s.labels) == (name, labels)]
        return found[0] if found else 0.0

    def labels(self, name: str, label: str) -> set[str]:
        """Give all values one label of a sample has."""
        return {s.labels[label] for s in self._samples if s.name == name}


async def scrape_metrics(client: httpx2.AsyncClient) -> MetricsScrape:
    """Ask for all metrics."""
    answer = await client.get("/metrics")
    assert answer.status_code == 200, answer.text
    return MetricsScrape(answer.text)
