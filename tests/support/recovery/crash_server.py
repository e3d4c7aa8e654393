"""The HTTP service as a process that ends at a point: ``crash_server(directory, point)``.

The process runs ``main DIRECTORY [POINT [NOTIFIED]]``; see ``crash_points``. Plans are those of
``PlannerByGoal``, and every planning is noted in ``<directory>/../planned.log`` before it is
answered.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from planwave.api.app import create_app
from planwave.api.server import serve
from planwave.graph.plan import Plan
from planwave.outbound.client import OutboundClient, OutboundLimits
from planwave.service.service import Service
from planwave.setting_tables import NotificationSettings
from planwave.settings import Settings
from planwave.storage.sqlite.store import SqliteStore
from tests.support.paths import ROOT
from tests.support.processes.forked_process import ForkedProcess
from tests.support.recovery.crash_points import CrashPoint, crash_at
from tests.support.server.running_server import NO_RATE_LIMITS, PlannerByGoal
from tests.support.server.server_process import RELEASE_FILE, ServerProcess
from tests.support.service.dependencies import dependencies
from tests.support.triggers.hook_sender import SECRETS

PROGRAM = """
import sys
from tests.support.recovery.crash_server import main
sys.exit(main(*sys.argv[1:]))
"""
PLANNING_LOG = "planned.log"


class LoggingPlanner(PlannerByGoal):
    """A planner that leaves a trace of what it was paid for."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._log = log

    async def create_plan(self, prompt: str, *args: Any, **options: Any) -> Plan:
        await self.record_request(prompt)
        return await super().create_plan(prompt, *args, **options)

    async def record_request(self, prompt: str) -> None:
        with self._log.open("a") as log:
            log.write(prompt + "\n")


@contextmanager
def crash_server(
    directory: Path, point: str | None = None, *, notified: str | None = None
) -> Iterator[ServerProcess]:
    """Start a server over ``directory/storage``, and leave none behind.

    Args:
        directory: Holds the storage directory, and files of the test.
        point: Where it ends.
        notified: ``host:port`` that is notified of executions.
    """
    more = ([] if point is None else [point]) if notified is None else [point or "", notified]
    with ForkedProcess("-c", PROGRAM, str(directory / "storage"), *more, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            # What begins with the service may reach the point before it listens.
            assert line or point is not None, "the server ended before it listened"
            url = json.loads(line)["url"] if line else ""
            yield ServerProcess(process, url, directory / RELEASE_FILE)
        finally:
            process.kill()


def planned_goals(directory: Path) -> list[str]:
    """Give the goals that were planned, in order."""
    log = directory / PLANNING_LOG
    return log.read_text("utf-8").splitlines() if log.exists() else []


def main(directory: str, point: str | None = None, notified: str | None = None) -> int:
    """Serve until a signal or the point; give the exit code."""
    place, deadly_point = Path(directory), CrashPoint.parse(point or None)
    planner = LoggingPlanner(place.parent / PLANNING_LOG)
    planner.record_request = crash_at(planner, deadly_point).record_request
    parts = dependencies(
        store=crash_at(SqliteStore.open(place), deadly_point),
        directory=place,
        limits=NO_RATE_LIMITS,
        planner=planner,
        secrets=SECRETS,
        **({} if notified is None else _notifying(notified)),
    )

    def report_url(url: str) -> None:
        os.write(1, json.dumps({"url": url}).encode() + b"\n")

    settings = Settings(port=0, storage_dir=place, limits=NO_RATE_LIMITS)
    return asyncio.run(serve(settings, create_app(settings, lambda _: Service(parts)), report_url))


def _notifying(address: str) -> dict[str, Any]:
    """Return the parts of a service that notifies an address on loopback."""
    table = NotificationSettings(url=f"http://{address}/", secrets=["main"])
    client = OutboundClient([address], OutboundLimits(redirects=0))
    return {"notifier": client, "notification_tables": {"here": table}}
