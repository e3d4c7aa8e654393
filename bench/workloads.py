"""Seeded graphs and node bodies. Standard library only: imported in every peer's environment.

A ``Dag`` holds ``nodes`` in a topological order, ``deps[n]`` (the nodes that n reads) and, where
nodes sleep, ``latency[n]`` in seconds.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

Body = Callable[[str, list[Any]], Awaitable[Any]]
"""``(node, values of its dependencies in the order of deps) -> value``; the same for every peer."""


@dataclass
class Dag:
    name: str
    nodes: list[str]
    deps: dict[str, tuple[str, ...]]
    latency: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.succ: dict[str, list[str]] = {n: [] for n in self.nodes}
        for node in self.nodes:
            for dep in self.deps[node]:
                self.succ[dep].append(node)
        self.sources = [n for n in self.nodes if not self.deps[n]]
        self.sinks = [n for n in self.nodes if not self.succ[n]]

    def __len__(self) -> int:
        return len(self.nodes)

    def levels(self) -> list[list[str]]:
        level: dict[str, int] = {}
        for node in self.nodes:
            level[node] = 1 + max((level[d] for d in self.deps[node]), default=-1)
        found: list[list[str]] = [[] for _ in range(1 + max(level.values()))]
        for node in self.nodes:
            found[level[node]].append(node)
        return found

    @property
    def depth(self) -> int:
        return len(self.levels())

    def critical_path_s(self) -> float:
        """The least possible makespan with no limit on concurrency."""
        end: dict[str, float] = {}
        for node in self.nodes:
            start = max((end[d] for d in self.deps[node]), default=0.0)
            end[node] = start + self.latency[node]
        return max(end.values())

    def barriers_s(self) -> float:
        """The least possible makespan with a barrier after each level."""
        return sum(max(self.latency[n] for n in level) for level in self.levels())


# -- shapes ----------------------------------------------------------------------------------------


def chain(length: int) -> Dag:
    nodes = [f"n{i}" for i in range(length)]
    return Dag(
        f"chain{length}", nodes, {n: tuple(nodes[max(i - 1, 0) : i]) for i, n in enumerate(nodes)}
    )


def fan_out(width: int) -> Dag:
    """One source, ``width`` nodes, one sink."""
    middle = [f"n{i}" for i in range(1, width + 1)]
    last = f"n{width + 1}"
    deps = {"n0": (), **{m: ("n0",) for m in middle}, last: tuple(middle)}
    return Dag(f"fanout{width}", ["n0", *middle, last], deps)


def layered(layers: int, width: int, reads: int = 3, seed: int = 1) -> Dag:
    """Each node of a layer reads ``reads`` distinct nodes of the layer before."""
    rng = random.Random(seed)
    deps: dict[str, tuple[str, ...]] = {}
    before: list[str] = []
    for layer in range(layers):
        here = [f"n{layer * width + i}" for i in range(width)]
        for node in here:
            deps[node] = tuple(rng.sample(before, min(reads, len(before))))
        before = here
    return Dag(f"layered{layers}x{width}", list(deps), deps)


def plan(size: int = 30, depth: int = 6, seed: int = 1) -> Dag:
    """What a planner writes: few levels of uneven width and one sink.

    A node reads one to three nodes of any earlier level, at least one of the level just before, so
    that branches have different lengths and a barrier costs something.
    """
    rng = random.Random(seed)
    sizes = [1] * (depth - 1)
    for _ in range(size - depth):
        sizes[rng.randrange(depth - 1)] += 1
    deps: dict[str, tuple[str, ...]] = {}
    levels: list[list[str]] = []
    for width in sizes:
        here: list[str] = []
        for _ in range(width):
            node = f"n{len(deps)}"
            deps[node] = _some_earlier(rng, levels) if levels else ()
            here.append(node)
        levels.append(here)
    read = {d for ds in deps.values() for d in ds}
    deps[f"n{len(deps)}"] = tuple(n for n in deps if n not in read)
    return Dag(f"plan{size}d{depth}s{seed}", list(deps), deps)


def _some_earlier(rng: random.Random, levels: list[list[str]]) -> tuple[str, ...]:
    first = rng.choice(levels[-1])
    others = [node for level in levels for node in level if node != first]
    return (first, *rng.sample(others, min(len(others), rng.choice([0, 0, 1, 2]))))


def _log_normal(dag: Dag, seed: int, median_s: float = 0.050, sigma: float = 0.8) -> Dag:
    rng = random.Random(1000 + seed)
    dag.latency = {n: rng.lognormvariate(math.log(median_s), sigma) for n in dag.nodes}
    return dag


# -- bodies ----------------------------------------------------------------------------------------


async def no_op(name: str, inputs: list[Any]) -> int:
    return 1


def sleeper(dag: Dag) -> Body:
    async def body(name: str, inputs: list[Any]) -> int:
        await asyncio.sleep(dag.latency[name])
        return 1

    return body


TEXT = "The quick brown fox jumps over the lazy dog. " * 23
"""1,035 characters, about one short answer of a model."""


async def text_1k(name: str, inputs: list[Any]) -> str:
    return TEXT


AGENT_MODEL = "gpt-4o-mini"
AGENT_PROMPT = "What is 1 + 2?"


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


# -- what the cells run ----------------------------------------------------------------------------


def w1(kind: str) -> Dag:
    return {
        "chain": lambda: chain(1000),
        "fanout": lambda: fan_out(1000),
        "layered": lambda: layered(20, 50),
    }[kind]()


def w2(kind: str) -> list[Dag]:
    return {
        "plan30": lambda: [_log_normal(plan(30, 4 + seed, seed), seed) for seed in (1, 2, 3)],
        "layered100": lambda: [_log_normal(layered(10, 10, seed=seed), seed) for seed in (1, 2)],
        "layered1000": lambda: [_log_normal(layered(20, 50), seed=1)],
    }[kind]()


def w3() -> Dag:
    dag = plan(30, 6, seed=2)
    dag.latency = dict.fromkeys(dag.nodes, 0.050)
    return dag


def w4() -> Dag:
    return plan(30, 6, seed=2)


def w5(size: int) -> Dag:
    return layered(max(size // 50, 1), 50)
