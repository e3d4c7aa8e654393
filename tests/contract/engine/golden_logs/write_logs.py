"""Writes the golden event logs anew: ``python -m tests.contract.engine.golden_logs.write_logs [NAME …]``.

To be run where an execution is to be told differently from now on, never to make a change of the
code pass: look at what changes in each file, and say in the commit why that is right.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from tests.contract.engine.golden_logs.scenarios import SCENARIOS
from tests.contract.engine.golden_logs.stage import Stage, written
from tests.support.virtual_loop import VirtualNetworkLoop

LOGS = Path(__file__).parent / "logs"


def log_of(name: str) -> str:
    """Run a scenario; give the content of its golden file: a JSON object an execution."""

    async def run() -> str:
        stage, known = Stage(), dict[str, str]()
        given = await SCENARIOS[name](stage)
        stored = [await stage.store.events(each) for each in stage.told]
        told = [written(list(events), known) for events in [*stored, *([given] if given else [])]]
        return "".join(_lines(each) for each in told)

    with asyncio.Runner(loop_factory=VirtualNetworkLoop) as runner:
        return runner.run(run())


def _lines(told: dict[str, Any]) -> str:
    """Give what is told of an execution with each event and each line of a log on its own line."""
    parts: list[str] = []
    for name, value in told.items():
        is_list = isinstance(value, list)
        items = value if is_list else [value]
        lines = ",\n".join(
            f"  {json.dumps(each, ensure_ascii=False, sort_keys=True)}" for each in items
        )
        parts.append(f' "{name}": [\n{lines}\n ]' if is_list else f' "{name}":\n{lines}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(names: list[str]) -> None:
    """Write the files of some scenarios, or of all."""
    LOGS.mkdir(exist_ok=True)
    for name in names or SCENARIOS:
        (LOGS / f"{name}.json").write_text(log_of(name), "utf-8")
    if not names:
        for left in {path.stem for path in LOGS.glob("*.json")} - SCENARIOS.keys():
            (LOGS / f"{left}.json").unlink()


if __name__ == "__main__":
    main(sys.argv[1:])
