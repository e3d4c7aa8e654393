"""From the samples of a run to one table: planwave beside its targets, the floor and the peers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

Json = dict[str, Any]
Span = list[float]
"""Seconds: wall, CPU."""
WALL, CPU = 0, 1
NONE = "n/a"
SIZES = ("100", "1000", "10000", "100000")


class Missing(Exception):
    """A peer has no figure here; the text says why."""


class Figure(NamedTuple):
    """The number that is judged, and how it is shown with what belongs to it."""

    value: float
    shown: str


class Samples:
    """What was measured of one peer, over all repetitions."""

    def __init__(self, records: Iterable[Json]) -> None:
        self._records: dict[str, list[Json]] = {}
        for record in records:
            self._records.setdefault(record["key"], []).append(record)

    def records(self, key: str) -> list[Json]:
        found = self._records.get(key, [])
        good = [r for r in found if "rounds" in r or "starts" in r]
        if not good:
            raise Missing(_why(found))
        return good

    def rounds(self, key: str) -> list[Json]:
        return [one for record in self.records(key) for one in record["rounds"]]

    def nodes(self, key: str) -> Any:
        return self.records(key)[0]["nodes"]


def _why(found: list[Json]) -> str:
    for record in found:
        if "timeout" in record:
            return f"> {record['timeout']:g} s"
        if "error" in record:
            return "error"
    return NONE


def _ratio(rounds: list[Json], kind: int, over: str = "run", under: str = "raw") -> float:
    """The median over pairs that were taken right after each other."""
    return median(r[over][kind] / r[under][kind] for r in rounds)


# -- figures ---------------------------------------------------------------------------------------


def to_floor(key: str) -> Callable[[Samples], Figure]:
    """Time over the floor's: CPU, and wall in parentheses."""

    def figure(samples: Samples) -> Figure:
        rounds = samples.rounds(key)
        cpu, wall = _ratio(rounds, CPU), _ratio(rounds, WALL)
        return Figure(cpu, f"{cpu:.2f} ({wall:.2f})")

    return figure


def new_graph(samples: Samples) -> Figure:
    """Build, check and run, a node: wall, and CPU in parentheses."""
    rounds, nodes = samples.rounds("w1:layered"), samples.nodes("w1:layered")
    wall, cpu = (median(r["build"][k] + r["run"][k] for r in rounds) / nodes for k in (WALL, CPU))
    return Figure(wall * 1e6, f"{wall * 1e6:,.0f} ({cpu * 1e6:,.0f})")


def makespan(key: str) -> Callable[[Samples], Figure]:
    """Wall over the critical path, the graphs of the cell together."""

    def figure(samples: Samples) -> Figure:
        ratios = [
            sum(r["run"][WALL] for r in record["rounds"])
            / sum(r["limit"] for r in record["rounds"])
            for record in samples.records(key)
        ]
        return Figure(median(ratios), f"{median(ratios):.3f}")

    return figure


def crowd_wall(samples: Samples) -> Figure:
    value = median(r["run"][WALL] / r["limit"] for r in samples.rounds("w3"))
    return Figure(value, f"{value:.2f}")


def crowd_cpu(samples: Samples) -> Figure:
    value = median(r["run"][CPU] for r in samples.rounds("w3")) / samples.nodes("w3") * 1e6
    return Figure(value, f"{value:,.0f}")


def durable(part: str) -> Callable[[Samples], Figure]:
    """Nodes a second as a share of the durable floor's; the rate itself in parentheses."""

    def figure(samples: Samples) -> Figure:
        rounds = samples.rounds("w4")
        share = _ratio(rounds, WALL, f"{part}_raw", part)
        rate = samples.nodes("w4")[part] / median(r[part][WALL] for r in rounds)
        return Figure(share, f"{share:.2f} ({rate:,.0f}/s)")

    return figure


def durable_floor(part: str) -> Callable[[Samples], Figure]:
    def figure(samples: Samples) -> Figure:
        rate = samples.nodes("w4")[part] / median(
            r[f"{part}_raw"][WALL] for r in samples.rounds("w4")
        )
        return Figure(rate, f"1.00 ({rate:,.0f}/s)")

    return figure


def _cost_us(samples: Samples, size: str, part: str) -> float:
    key = f"w5:{size}"
    return median(r[part][CPU] for r in samples.rounds(key)) / samples.nodes(key) * 1e6


def at_size(size: str) -> Callable[[Samples], Figure]:
    """CPU a node: run, and build in parentheses."""

    def figure(samples: Samples) -> Figure:
        run, build = (_cost_us(samples, size, part) for part in ("run", "build"))
        return Figure(run, f"{run:,.1f} ({build:,.1f})")

    return figure


def growth(samples: Samples) -> Figure:
    """The dearest size over the cheapest, of run; of build and run together in parentheses."""
    run = [_cost_us(samples, size, "run") for size in SIZES]
    both = [r + _cost_us(samples, size, "build") for r, size in zip(run, SIZES, strict=True)]
    value = max(run) / min(run)
    return Figure(value, f"{value:.2f} ({max(both) / min(both):.2f})")


def loop_cost(samples: Samples) -> Figure:
    """CPU an item over that of the floor's loop; wall in parentheses."""
    rounds, items = samples.rounds("w7"), samples.records("w7")[0]["items"]
    cpu, wall = (median(r["run"][k] - r["raw"][k] for r in rounds) / items for k in (CPU, WALL))
    return Figure(cpu * 1e6, f"{cpu * 1e6:,.0f} ({wall * 1e6:,.0f})")


def shared_rate(samples: Samples) -> Figure:
    """Nodes a second over a database as a share of those over a directory; the rate itself in parentheses."""
    rounds = samples.rounds("w11")
    share = _ratio(rounds, WALL, "embedded", "run")
    rate = samples.nodes("w11") / median(r["run"][WALL] for r in rounds)
    return Figure(share, f"{share:.2f} ({rate:,.0f}/s)")


def shared_cpu(samples: Samples) -> Figure:
    """CPU a node, that of the database's server included; that over a directory in parentheses."""
    rounds, nodes = samples.rounds("w11"), samples.nodes("w11")
    value = median(r["run"][CPU] + r["server_cpu"] for r in rounds) / nodes * 1e6
    embedded = median(r["embedded"][CPU] for r in rounds) / nodes * 1e6
    return Figure(value, f"{value:,.0f} ({embedded:,.0f})")


def start(name: str) -> Callable[[Samples], Figure]:
    """Wall, and CPU in parentheses."""

    def figure(samples: Samples) -> Figure:
        spans = [s for record in samples.records("startup") for s in record["starts"][name]]
        wall, cpu = (median(s[kind] for s in spans) for kind in (WALL, CPU))
        return Figure(wall, f"{wall:.3f} ({cpu:.3f})")

    return figure


# -- the table -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One line; ``floor`` is what stands under raw asyncio where its figure is not its own."""

    label: str
    figure: Callable[[Samples], Figure]
    target: float | None = None
    at_least: bool = False
    floor: str | Callable[[Samples], Figure] | None = None

    def target_text(self) -> str:
        if self.target is None:
            return ""
        return f"{'≥' if self.at_least else '≤'} {self.target:g}"

    def verdict(self, samples: Samples) -> str:
        if self.target is None:
            return ""
        try:
            value = self.figure(samples).value
        except Missing:
            return ""
        met = value >= self.target if self.at_least else value <= self.target
        return "met" if met else "**not met**"


ROWS = (
    Row("W1 chain of 1,000, CPU ÷ raw (wall)", to_floor("w1:chain"), 6, floor="1"),
    Row("W1 fan-out of 1,000, CPU ÷ raw (wall)", to_floor("w1:fanout"), 5, floor="1"),
    Row("W1 20 layers of 50, CPU ÷ raw (wall)", to_floor("w1:layered"), 6, floor="1"),
    Row("W1b build + check + run, wall µs/node (CPU)", new_graph, 80),
    Row("W2 plans of 30, makespan ÷ critical path", makespan("w2:plan30"), 1.02),
    Row("W2 layers of 100, makespan ÷ critical path", makespan("w2:layered100"), 1.02),
    Row("W2 layers of 1,000, makespan ÷ critical path", makespan("w2:layered1000"), 1.02),
    Row("W3 200 executions at once, wall ÷ ideal", crowd_wall, 3.2),
    Row("W3 200 executions at once, CPU µs/node", crowd_cpu, 125),
    Row(
        "W4 durable, one at a time, share of raw SQLite FULL (nodes/s)",
        durable("seq"),
        0.6,
        at_least=True,
        floor=durable_floor("seq"),
    ),
    Row(
        "W4 durable, 50 at once, share of raw SQLite FULL (nodes/s)",
        durable("con"),
        0.2,  # 0.3 where the floor is below 20,000 nodes/s
        at_least=True,
        floor=durable_floor("con"),
    ),
    *(Row(f"W5 {int(s):,} nodes, run CPU µs/node (build)", at_size(s)) for s in SIZES),
    Row("W5 dearest ÷ cheapest size, run (build + run)", growth, 1.5),
    Row("W6 10,000 tokens to the caller, CPU ÷ raw (wall)", to_floor("w6"), 2.5, floor="1"),
    Row("W7 loop over 1,000 items, CPU µs/item over raw (wall)", loop_cost, 300, floor="0"),
    Row("W8 agent turn with a tool call, CPU ÷ pydantic-ai (wall)", to_floor("w8:memory"), 0.9),
    Row("W8 the same, each step on disk, CPU ÷ pydantic-ai (wall)", to_floor("w8:durable"), 1.3),
    Row("W11 PostgreSQL, share of embedded (nodes/s)", shared_rate, 0.25, at_least=True),
    Row("W11 PostgreSQL, CPU µs/node with its server (embedded)", shared_cpu, 250),
    Row("import planwave, wall s (CPU)", start("import"), 0.15),
    Row("planwave --help, wall s (CPU)", start("--help"), 0.5),
    Row("planwave ls, wall s (CPU)", start("ls"), 0.6),
    Row("planwave show, wall s (CPU)", start("show"), 0.6),
)


def markdown(results: Json) -> str:
    """Give the table of a run, with what it was measured on."""
    peers: dict[str, list[Json]] = {}
    for record in results["records"]:
        peers.setdefault(record["peer"], []).append(record)
    samples = {peer: Samples(records) for peer, records in peers.items()}
    others = [peer for peer in samples if peer not in ("planwave", "raw")]
    lines = [
        _line(["", "planwave", "target", "", "raw asyncio", *others]),
        _line(["---", "--:", "--:", "---", *["--:"] * (len(others) + 1)]),
    ]
    own = samples.get("planwave", Samples([]))
    for row in ROWS:
        found = [_cell(row.figure, samples[peer]) for peer in others]
        shown = [_cell(row.figure, own), row.target_text(), row.verdict(own), _floor(row, samples)]
        if any(text != NONE for text in (shown[0], *found)):
            lines.append(_line([row.label, *shown, *found]))
    return "\n".join([*lines, "", _provenance(results)])


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(figure: Callable[[Samples], Figure], samples: Samples) -> str:
    try:
        return figure(samples).shown
    except Missing as missing:
        return str(missing)


def _floor(row: Row, samples: dict[str, Samples]) -> str:
    """The floor's figure: fixed, measured beside planwave, or measured by itself."""
    if isinstance(row.floor, str):
        return row.floor
    if row.floor is not None:
        return _cell(row.floor, samples.get("planwave", Samples([])))
    return _cell(row.figure, samples.get("raw", Samples([])))


def _provenance(results: Json) -> str:
    machine = results["machine"]
    versions = ", ".join(sorted({r["version"] for r in results["records"] if "version" in r}))
    loads = [r["load"] for r in results["records"]]
    return (
        f"{results['date']}, `{results['command']}`: {machine['cores']} cores ({machine['cpu']}), "
        f"Python {machine['python']}; load average {min(loads):.1f} to {max(loads):.1f}, "
        f"median {median(loads):.1f}. {versions}."
    )
