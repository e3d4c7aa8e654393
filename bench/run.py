"""Measures planwave beside raw asyncio and its peers and prints one table; see README.md.

Every cell of every peer runs in a process of its own (``worker.py``), peers in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import environments
import report
import startup

HERE = Path(__file__).resolve().parent
CELLS = {
    "w1": ("chain", "fanout", "layered"),
    "w2": ("plan30", "layered100", "layered1000"),
    "w3": ("",),
    "w4": ("",),
    "w5": report.SIZES,
    "w6": ("",),
    "w7": ("",),
    "w8": ("memory", "durable"),
    "w11": ("",),
    "startup": ("",),
}
QUICK_PEERS = ("planwave", "raw")


@dataclass(frozen=True)
class Effort:
    """How long to measure: rounds and seconds in a process, and the seconds it may take at all."""

    rounds: int
    budget_s: float
    limit_s: float


def measure(peer: str, python: Path, cell: str, kind: str, effort: Effort) -> dict[str, Any]:
    """Run one cell of one peer in a process of its own."""
    command = [str(python), str(HERE / "worker.py"), peer, cell, kind]
    command += ["--rounds", str(effort.rounds), "--budget", str(effort.budget_s)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        output, complaint = process.communicate(timeout=effort.limit_s)
    except subprocess.TimeoutExpired:
        return {"timeout": effort.limit_s}
    finally:
        _end(process)
    try:
        return json.loads(output)
    except ValueError:
        return {"error": complaint.decode(errors="replace")[-300:] or f"{process.returncode=}"}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and whatever it left running in its own group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def records(
    cells: list[str], pythons: dict[str, Path], reps: int, effort: Effort
) -> Iterator[dict[str, Any]]:
    """Measure everything, peers in turn; what failed once is not tried again."""
    given_up: set[tuple[str, str]] = set()
    for rep in range(reps):
        for cell in cells:
            for kind in CELLS[cell]:
                for peer, python in pythons.items():
                    key = f"{cell}:{kind}" if kind else cell
                    # A size that took too long rules out the larger ones too.
                    place = (peer, cell if cell == "w5" else key)
                    if place in given_up or (cell == "startup" and peer != "planwave"):
                        continue
                    load = round(os.getloadavg()[0], 2)
                    if cell == "startup":
                        found = startup.measure(times=min(effort.rounds, startup.TIMES))
                    else:
                        found = measure(peer, python, cell, kind, effort)
                    if not ("rounds" in found or "starts" in found):
                        given_up.add(place)
                    _tell(rep, key, peer, load, found)
                    yield {"peer": peer, "key": key, "rep": rep, "load": load} | found


def _tell(rep: int, key: str, peer: str, load: float, found: dict[str, Any]) -> None:
    note = "ok"
    if "timeout" in found:
        note = f"stopped after {found['timeout']:g} s"
    elif "skip" in found or "error" in found:
        note = found.get("skip") or f"ERROR {found['error']}"
    print(f"{rep + 1} {key:16} {peer:16} load {load:5.2f}  {note}", file=sys.stderr, flush=True)


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [s for s in info.read_text().splitlines() if s.startswith("model name")]
        cpu = names[0].partition(":")[2].strip() if names else cpu
    return {
        "cores": os.cpu_count(),
        "cpu": cpu,
        "python": platform.python_version(),
        "system": platform.platform(),
    }


def found_pythons(peers: list[str], venvs: Path) -> dict[str, Path]:
    """Give the interpreter of each peer that can be measured; say how to get the others."""
    found: dict[str, Path] = {}
    for peer in peers:
        python = environments.python_of(peer, venvs)
        if python is None:
            print(
                f"{peer}: skipped, no environment at {venvs / peer}; "
                f"make it with: python bench/run.py --setup --peers {peer}",
                file=sys.stderr,
            )
        else:
            found[peer] = python
    return found


def run(args: argparse.Namespace) -> None:
    """Measure, keep the samples as JSON, print the table."""
    now = datetime.now(UTC)
    effort = (
        Effort(rounds=3, budget_s=1.0, limit_s=args.limit)
        if args.quick
        else Effort(rounds=20, budget_s=2.5, limit_s=args.limit)
    )
    pythons = found_pythons(args.peers, args.venvs)
    results = {
        "date": now.isoformat(timespec="seconds"),
        "command": " ".join(["python bench/run.py", *sys.argv[1:]]),
        "machine": machine(),
        "load_before": os.getloadavg(),
        "records": list(records(args.cells, pythons, args.reps, effort)),
        "load_after": os.getloadavg(),
    }
    path = args.out / f"{now:%Y-%m-%d-%H%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    print(report.markdown(results))
    print(f"\nsamples: {os.path.relpath(path)}")


def _names(known: tuple[str, ...]) -> Any:
    def read(text: str) -> list[str]:
        names = text.split(",")
        if unknown := set(names) - set(known):
            raise argparse.ArgumentTypeError(
                f"unknown: {', '.join(sorted(unknown))}; there are: {', '.join(known)}"
            )
        return names

    return read


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="planwave and raw only, one repetition"
    )
    parser.add_argument("--cells", type=_names(tuple(CELLS)), default=list(CELLS), metavar="W1,…")
    parser.add_argument("--peers", type=_names(environments.PEERS), metavar="NAME,…")
    parser.add_argument("--reps", type=int, help="processes for each cell and peer (3; quick: 1)")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a process may take (60)")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="where the JSON goes")
    parser.add_argument(
        "--venvs",
        type=Path,
        default=Path(os.environ.get("VENVS", HERE / "venvs")),
        help="the peers' environments (VENVS, bench/venvs)",
    )
    parser.add_argument("--setup", action="store_true", help="make those environments, then stop")
    parser.add_argument("--markdown", type=Path, metavar="JSON", help="the table of an earlier run")
    args = parser.parse_args()
    args.peers = args.peers or list(QUICK_PEERS if args.quick else environments.PEERS)
    args.reps = args.reps or (1 if args.quick else 3)
    return args


def main() -> None:
    args = options()
    if args.markdown:
        print(report.markdown(json.loads(args.markdown.read_text("utf-8"))))
    elif args.setup:
        for peer in args.peers:
            environments.make(peer, args.venvs)
    else:
        run(args)


if __name__ == "__main__":
    main()
