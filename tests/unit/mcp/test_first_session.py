"""The first use of a server in a process: the event loop goes on while the SDK is imported and its models are built."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.paths import ROOT

SCRIPT = """
import asyncio, json, sys, threading, time
from tests.support.mcp.servers import Marks, hostile_program, servers_of
from pathlib import Path

importers = set()

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mcp", "mcp_types"):
            importers.add(threading.current_thread() is threading.main_thread())

async def main():
    sys.meta_path.insert(0, Watch())
    before = time.thread_time(), time.process_time()
    table = hostile_program(Marks(Path(sys.argv[1])), "plain")
    async with servers_of(box=table).connection("box") as connection:
        tools = list(connection.listed.tools)
    own, all = time.thread_time() - before[0], time.process_time() - before[1]
    print(json.dumps({"tools": tools, "importers": [*importers], "own": own, "all": all}))

asyncio.run(main())
"""


def test_the_sdk_is_imported_and_its_models_are_built_in_a_thread(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "marks")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["tools"] == ["act"]
    assert found["importers"] == [False]
    assert found["own"] < 0.3 * found["all"]
