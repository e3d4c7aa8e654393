"""Counters and histograms that cost nearly nothing until somebody asks for them.

Everything happens in one event loop, so a count is one addition to a dictionary: no locks and no
label objects. What Prometheus is told is made when it asks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

OTHER: Final = "other"
"""Stands for every label value past the bound of its :class:`Names`."""

Labels = tuple[str, ...]


class Names:
    """The values one label may have: the first so many that came, all others are ``other``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def of(self, name: str) -> str:
        """Give the label value for a name."""
        if name in self._known:
            return name
        if len(self._known) >= self._most:
            return OTHER
        self._known.add(name)
        return name


class Tally:
    """One number of a counter; it never falls."""

    __slots__ = ("amount",)

    def __init__(self) -> None:
        self.amount = 0.0


class Counts:
    """A counter: one :class:`JoinCounter` for each combination of label values."""

    def __init__(self, name: str, meaning: str, *labels: str) -> None:
        self._head = (name, meaning)
        self._labels = labels
        self.by: dict[Labels, Tally] = {} if labels else {(): Tally()}

    def of(self, labels: Labels = ()) -> Tally:
        """Give the tally of some label values, to be kept where it is needed often."""
        tally = self.by.get(labels)
        if tally is None:
            tally = self.by[labels] = Tally()
        return tally

    def add(self, labels: Labels = (), amount: float = 1.0) -> None:
        """Count something; ``labels`` in the order of the names."""
        self.of(labels).amount += amount

    def family(self) -> Metric:
        """Give what Prometheus is told."""
        name, meaning = self._head
        family = CounterMetricFamily(name, meaning, labels=self._labels)
        for labels, tally in self.by.items():
            family.add_metric(labels, tally.amount)
        return family


class Spread:
    """How values are spread over buckets; ``sizes`` has one more entry than ``bounds``."""

    __slots__ = ("bounds", "sizes", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.sizes = [0] * (len(bounds) + 1)
        self.total = 0.0

    def note(self, value: float) -> None:
        """Take in one value."""
        self.sizes[bisect_left(self.bounds, value)] += 1
        self.total += value


class Spreads:
    """A histogram: one :class:`Spread` for each combination of label values."""

    def __init__(self, name: str, meaning: str, bounds: Sequence[float], *labels: str) -> None:
        self._head = (name, meaning)
        self._bounds = tuple(bounds)
        self._labels = labels
        self.by: dict[Labels, Spread] = {} if labels else {(): Spread(self._bounds)}

    def of(self, labels: Labels = ()) -> Spread:
        """Give the spread of some label values, to be kept where it is needed often."""
        spread = self.by.get(labels)
        if spread is None:
            spread = self.by[labels] = Spread(self._bounds)
        return spread

    def family(self) -> Metric:
        """Give what Prometheus is told."""
        name, meaning = self._head
        family = HistogramMetricFamily(name, meaning, labels=self._labels)
        for labels, spread in self.by.items():
            family.add_metric(labels, buckets_of(self._bounds, spread.sizes), spread.total)
        return family


def buckets_of(bounds: Sequence[float], sizes: Sequence[int]) -> list[tuple[str, float]]:
    """Give Prometheus' buckets, each holding all smaller ones."""
    names = [*map(str, bounds), "+Inf"]
    return list(zip(names, accumulate(sizes), strict=True))


def gauge(name: str, meaning: str, value: float) -> Metric:
    """Give a number as it is right now."""
    return GaugeMetricFamily(name, meaning, value=value)
