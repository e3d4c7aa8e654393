"""``planwave label``, the filters of ``ls``, and ``spend``: alone and through a service."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planwave.cli.backends.lock_owner import lock_owner
from planwave.client import Client
from planwave.events.usage import UsageTotal
from planwave.storage.execution_facts import Spend
from planwave.storage.lock import DirectoryLock
from planwave.storage.sqlite.memory import MemoryStore
from planwave.storage.sqlite.store import SqliteStore
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke, invoke_json
from tests.support.server.running_server import running_server

TOKEN = "hush-hush-hush"
SPENT = Spend("run", "gone", "2026-01-02", None, "openai", "gpt-4o", UsageTotal(2, 10, 20, 0.5), 0)


@pytest.fixture(scope="module", params=["alone", "served"])
def storage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A storage directory that nobody holds, or a service that says where it is; both have spent something."""
    directory = tmp_path_factory.mktemp("storage")
    if request.param == "alone":
        asyncio.run(spent(SqliteStore.open(directory), closes=True))
        yield directory
        return
    store = MemoryStore()
    asyncio.run(spent(store))
    with running_server(directory=directory, token=TOKEN, store=store) as running:
        lock = DirectoryLock(directory)
        lock.write_owner({"pid": os.getpid(), "url": running.base_url, "token": TOKEN})
        yield directory
        lock.release()


async def spent(store: Any, *, closes: bool = False) -> None:
    await store.spend.add([SPENT])
    if closes:
        await store.close()


@pytest.fixture(autouse=True)
def working_directory(storage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PLANWAVE_STORAGE_DIR", str(storage))


def executed(text: str) -> str:
    """Run a graph that says a text; return the id of its execution."""
    graph = {"nodes": [{"id": "a", "type": "text", "data": {"text": text}}], "edges": []}
    return invoke_json("exec", "-", stdin=json.dumps(graph))["execution_id"]


def listed(*options: str) -> list[str]:
    return [each["execution_id"] for each in invoke_json("ls", *options)["executions"]]


def test_labels_are_set_kept_and_found() -> None:
    tram, boat = executed("a tram in Lisbon"), executed("a boat in Porto")
    labels = {"name": "Tram ride", "tags": ["travel", "b"], "note": "", "starred": True}
    named = ("--name", " Tram  ride ", "--tag", "travel", "--tag", "b", "--star")
    assert invoke_json("label", tram, *named) == labels
    assert invoke_json("label", tram, "--note", "why") == {**labels, "note": "why"}
    assert listed("--search", "boat porto") == [boat]
    assert listed("--search", "tram") == listed("--tag", "travel") == listed("--starred") == [tram]
    assert boat in listed("--no-starred")
    assert listed("--since", "2099-01-01") == listed("--until", "2020-01-01") == []
    assert {tram, boat} <= {*listed("--since", "2020-01-01", "--until", "2099-01-01")}
    shown = next(e for e in invoke_json("ls")["executions"] if e["execution_id"] == tram)
    assert {name: shown[name] for name in labels} == {**labels, "note": "why"}
    assert "Tram ride" in invoke("ls", "--tag", "travel").stdout
    assert "Plans" not in invoke("ls", "--tag", "nobody").stdout
    assert "No such execution" in invoke("ls", "--tag", "nobody").stdout
    cleared = invoke_json("label", tram, "--name", "", "--tag", "", "--no-star")
    assert cleared == {"name": None, "tags": [], "note": "why", "starred": False}
    assert listed("--tag", "travel") == []


def test_a_label_needs_a_change_and_an_execution() -> None:
    assert invoke_json("label", "last", code=2)["error"]["code"] == "usage"
    unknown = "019a0000-0000-7000-8000-0000000000ff"
    assert invoke_json("label", unknown, "--star", code=2)["error"]["code"] == "not-found"
    assert invoke_json("ls", "--since", "soon", code=2)["error"]["code"] == "invalid-time"


def test_what_lists_show_is_what_the_api_shows(storage: Path) -> None:
    executed("the same")
    owner = lock_owner(storage)
    if owner is None or owner.url is None:
        return
    with Client(owner.url, token=TOKEN) as client:
        of_api = client.executions(limit=1)["executions"][0]
    of_command = invoke_json("ls", "--limit", "1")["executions"][0]
    assert of_command == {name: value for name, value in of_api.items() if name != "planning"}


def test_spend_is_summed_by_day_flow_and_model() -> None:
    days = ("--since", "2026-01-01", "--until", "2026-01-31")
    for by, key in (("day", "2026-01-02"), ("model", "openai/gpt-4o"), ("flow", "")):
        report = invoke_json("spend", "--by", by, *days)
        assert (report["by"], [each["key"] for each in report["groups"]]) == (by, [key])
        assert (report["total"]["calls"], report["total"]["cost_usd"]) == (2, 0.5)
    text = invoke("spend", "--by", "model", *days).stdout
    assert "openai/gpt-4o" in text
    assert "$0.5000" in text
    assert "30 tokens" in text
    assert "no flow" in invoke("spend", "--by", "flow", *days).stdout
    assert invoke_json("spend", "--since", "soon", code=2)["error"]["code"] == "invalid-time"
