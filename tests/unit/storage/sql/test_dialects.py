from __future__ import annotations

import subprocess
import sys
from pathlib import Path

STORES = """
import asyncio, sys
from planwave.storage.records import PlanRecord
from planwave.storage.sqlite.store import SqliteStore

async def main():
    async with SqliteStore.open(sys.argv[1]) as store:
        await store.save_plan(PlanRecord("p", "2026-01-01T00:00:00Z", "g", "t", "h", {}))
        print(len(await store.plans(text="T")))

asyncio.run(main())
print([each for each in ("psycopg", "sqlalchemy.dialects.postgresql") if each in sys.modules])
"""


def test_a_directory_needs_nothing_of_postgresql(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STORES, tmp_path], check=True, capture_output=True, text=True
    )
    assert done.stdout == "1\n[]\n"


def test_a_directory_needs_nothing_of_temporal(tmp_path: Path) -> None:
    """Nor does a database with one process: a service is composed, opened and left."""
    program = (
        "import asyncio, sys\n"
        "from planwave.bootstrap import open_service\n"
        "from planwave.settings import Settings\n"
        "async def main():\n"
        "    async with open_service(Settings(storage_dir=sys.argv[1])): pass\n"
        "asyncio.run(main())\n"
        "print([each for each in sys.modules if 'temporal' in each])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "new"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "[]\n"
