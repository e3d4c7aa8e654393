"""``planwave migrate``: what it does to a database, what it says, and what ``--check`` only says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from planwave.storage.postgres import upgrade as module
from planwave.storage.postgres.migrations import MIGRATIONS
from planwave.storage.postgres.store import PostgresStore
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke
from tests.support.storage.next_version import NextStore
from tests.support.storage.postgres_server import PostgresServer


@pytest.fixture
def url(postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    isolated_directory(tmp_path, monkeypatch)
    postgres.execute("CREATE DATABASE upgraded")
    monkeypatch.setenv("PLANWAVE_DATABASE_URL", postgres.url("upgraded"))
    yield postgres.url("upgraded")
    postgres.execute("DROP DATABASE upgraded WITH (FORCE)")


def run(*arguments: str) -> tuple[int, str]:
    done = invoke("migrate", *arguments)
    return done.exit_code, done.stdout


def as_next_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command be that of the next version."""
    migrations = NextStore.migrations

    def given(function: Any) -> Any:
        return lambda *arguments: function(*arguments, migrations)

    monkeypatch.setattr(module, "MIGRATIONS", migrations)
    for name in ("migrate", "contract", "is_current"):
        monkeypatch.setattr(module, name, given(getattr(module, name)))


def test_tables_are_made_once_and_a_check_only_says_so(url: str) -> None:
    assert run("--check") == (
        1,
        "✓ Tables are to be made in PostgreSQL database upgraded on 127.0.0.1\n",
    )
    with psycopg.connect(url) as raw:
        assert raw.execute("SELECT to_regclass('schema_version')").fetchone() == (None,)
    code, output = run()
    assert (code, "Made the tables of schema 1" in output) == (0, True)
    for arguments in ((), ("--check",)):
        code, output = run(*arguments)
        assert (code, "Schema 1 is up to date" in output) == (0, True)
    assert json.loads(run("--json")[1]) == {
        "version_before": 1,
        "version": len(MIGRATIONS) + 1,
        "oldest_before": 1,
        "oldest": 1,
        "older_processes": 0,
        "changed": False,
    }


async def test_an_upgrade_adds_at_once_and_removes_when_no_older_process_is_alive(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with PostgresStore.open(url):
        as_next_version(monkeypatch)
        assert "are to be brought from schema 1 to 2" in run("--check")[1]
        code, output = run()
        assert (code, "Brought the tables from schema 1 to 2" in output) == (0, True)
        waiting = invoke("migrate", "--check")
        assert (waiting.exit_code, "Schema 2 is up to date" in waiting.stdout) == (0, True)
        assert "an older planwave that are alive: 1" in waiting.stderr
    code, output = run("--check")
    assert (code, "To be removed" in output) == (1, True)
    assert "Removed what only schemas before 2 used" in run()[1]
    assert json.loads(run("--json")[1])["oldest"] == 2
    monkeypatch.undo()


def test_a_directory_is_not_migrated_by_the_command(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLANWAVE_DATABASE_URL")
    refused = invoke("migrate")
    assert refused.exit_code == 2
    assert "a directory needs no such command" in refused.output
