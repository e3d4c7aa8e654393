"""What every store promises of approved tools, whatever it is made of."""

from __future__ import annotations

from pathlib import Path

from planwave.storage.sql.store import Store
from planwave.storage.sqlite.store import SqliteStore


async def test_the_last_approval_counts(store: Store) -> None:
    tools = store.approved_tools
    assert await tools.fingerprint("box", "act") is None
    await tools.approve("box", "act", "f1")
    await tools.approve("box", "act", "f2")
    await tools.approve("other", "act", "f3")
    assert await tools.fingerprint("box", "act") == "f2"
    assert await tools.fingerprint("box", "look") is None
    assert await tools.fingerprint("other", "act") == "f3"


async def test_approvals_outlive_the_process(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    await store.approved_tools.approve("box", "act", "f1")
    await store.close()
    again = SqliteStore.open(tmp_path)
    assert await again.approved_tools.fingerprint("box", "act") == "f1"
    await again.close()
