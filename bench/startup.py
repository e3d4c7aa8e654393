"""How long ``import planwave`` and the commands typed most take, each time in a fresh process."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

TIMES = 7
_IMPORT = "import time; t = time.perf_counter(); import planwave; print(time.perf_counter() - t)"
_ONE_EXECUTION = """
import asyncio, pathlib, sys, planwave
from planwave.storage.sqlite.store import SqliteStore

async def main():
    store = SqliteStore.open(pathlib.Path(sys.argv[1]))
    nodes = [{"id": "start", "type": "start"}, {"id": "end", "type": "end"}]
    edges = [{"source": "start", "target": "end", "data": {"channel": "flow"}}]
    await planwave.run({"nodes": nodes, "edges": edges}, "Hello", store=store)
    await store.close()

asyncio.run(main())
"""


def measure(times: int = TIMES) -> dict[str, Any]:
    """Give the seconds of each start, wall and CPU, over a store that holds one execution."""
    with tempfile.TemporaryDirectory(prefix="bench-startup-") as storage:
        _output("-c", _ONE_EXECUTION, storage)
        commands = {
            "--help": ["--help"],
            "ls": ["ls", "--storage", storage],
            "show": ["show", "last", "--storage", storage],
        }
        found = {"import": [_import_s() for _ in range(times)]}
        for name, arguments in commands.items():
            found[name] = [_command_s(arguments) for _ in range(times)]
    return {"starts": found}


def _output(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], check=True, capture_output=True, text=True, cwd=os.sep
    )
    return done.stdout


def _import_s() -> list[float]:
    """What the import adds to a bare interpreter."""
    before = _children_cpu_s()
    wall = float(_output("-c", _IMPORT))
    return [wall, _children_cpu_s() - before]


def _command_s(arguments: list[str]) -> list[float]:
    """The whole command, from the shell's view."""
    before, start = _children_cpu_s(), time.perf_counter()
    _output("-c", "from planwave.main import main; main()", *arguments)
    return [time.perf_counter() - start, _children_cpu_s() - before]


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
