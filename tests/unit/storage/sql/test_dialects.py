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
