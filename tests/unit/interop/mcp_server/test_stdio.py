"""``planwave mcp`` in a fresh process: what its event loop has to wait for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

SCRIPT = """
import asyncio, json, sys

imported = {True: set(), False: set()}  # with and without a running loop

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mcp", "mcp_types"):
            imported[asyncio._get_running_loop() is not None].add(name)

sys.meta_path.insert(0, Watch())
sys.argv = ["planwave", "mcp", "--storage", sys.argv[1]]
from planwave.main import main
try:
    main()
finally:
    print(json.dumps({"in_loop": [*imported[True]], "before": len(imported[False])}))
"""


@pytest.mark.slow
def test_the_sdk_is_imported_before_the_loop_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "storage")]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True
    )
    found = json.loads(done.stdout)
    assert found["in_loop"] == []
    assert found["before"] > 50
