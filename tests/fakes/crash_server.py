"""The HTTP service as a process that ends at a point: ``crash_server(directory, point)``.

As a program: ``python -m tests.fakes.crash_server DIRECTORY [POINT]``; see ``crash_points``. Plans are
those of ``PlansByGoal``, and every planning is noted in ``<directory>/../planned.log`` before it is
answered.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from planwave.api.server import serve
from planwave.graph.plan import Plan
from planwave.service.service import Service
from planwave.settings import Settings
from planwave.storage.sqlite import SqliteStore
from tests.fakes.command_line import ROOT, read_until, start
from tests.fakes.crash_points import CrashPoint, deadly
from tests.fakes.server import WIDE, PlansByGoal
from tests.fakes.service import rooms
from tests.fakes.serving_process import WOKEN, Server

MODULE = "tests.fakes.crash_server"
PLANNED = "planned.log"


class Planner(PlansByGoal):
    """A planner that leaves a trace of what it was paid for."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._log = log

    async def create_plan(self, prompt: str, *args: Any, **options: Any) -> Plan:
        await self.asked(prompt)
        return await super().create_plan(prompt, *args, **options)

    async def asked(self, prompt: str) -> None:
        with self._log.open("a") as log:
            log.write(prompt + "\n")


@contextmanager
def crash_server(directory: Path, point: str | None = None) -> Iterator[Server]:
    """Start a server over ``directory/storage``, and leave none behind."""
    more = [] if point is None else [point]
    command = [sys.executable, "-m", MODULE, str(directory / "storage"), *more]
    with start(*command[1:], command=command[:1], cwd=ROOT) as process:
        try:
            url = json.loads(read_until(process.stdout, "\n"))["url"]
            yield Server(process, url, directory / WOKEN)
        finally:
            process.kill()


def planned(directory: Path) -> list[str]:
    """Give the goals that were planned, in order."""
    log = directory / PLANNED
    return log.read_text("utf-8").splitlines() if log.exists() else []


def _main(directory: str, point: str | None = None) -> int:
    place, deadly_point = Path(directory), CrashPoint.read(point)
    planner = Planner(place.parent / PLANNED)
    planner.asked = deadly(planner, deadly_point).asked
    parts = rooms(
        store=deadly(SqliteStore.open(place), deadly_point),
        directory=place,
        limits=WIDE,
        planner=planner,
    )

    def told(url: str) -> None:
        os.write(1, json.dumps({"url": url}).encode() + b"\n")

    settings = Settings(port=0, storage_dir=place, limits=WIDE)
    return asyncio.run(serve(settings, lambda _: Service(parts), told))


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
