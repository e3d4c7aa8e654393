"""Read `GET /metrics` and look up single samples."""

from __future__ import annotations

import httpx2
from prometheus_client.parser import text_string_to_metric_families


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
