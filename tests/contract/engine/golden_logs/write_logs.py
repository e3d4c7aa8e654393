"""Write the golden event logs: ``python -m tests.contract.engine.golden_logs.write_logs [NAME …]``.

Run it only if executions are meant to be logged differently from now on, never to make a change of the
code pass: check what changes in each file, and explain it in the commit.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from planwave.storage.sql.store import Store
from planwave.storage.sqlite.memory import MemoryStore
from tests.contract.engine.golden_logs.scenarios import SCENARIOS
from tests.contract.engine.golden_logs.stage import Stage, outliving, written
from tests.support.virtual_loop import VirtualLoop, VirtualNetworkLoop

LOGS = Path(__file__).parent / "logs"


def log_of(
    name: str,
    make_store: Callable[[], Store] = MemoryStore,
    loop: type[VirtualLoop] = VirtualNetworkLoop,
) -> str:
    """Run a scenario; return the content of its golden file: a JSON object per execution."""

    async def run() -> str:
        store = make_store()
        stage, known = Stage(outliving(store)), dict[str, str]()
        events_of_run = await SCENARIOS[name](stage)
        stored = [await stage.store.events(each) for each in stage.execution_ids]
        await type(store).close(store)
        documents = [
            written(list(events), known)
            for events in [*stored, *([events_of_run] if events_of_run else [])]
        ]
        return "".join(_lines(each) for each in documents)

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(run())


def _lines(documents: dict[str, Any]) -> str:
    """Write each event and each log line of an execution on its own line."""
    parts: list[str] = []
    for name, value in documents.items():
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
