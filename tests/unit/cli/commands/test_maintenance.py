from __future__ import annotations

import asyncio
import json
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from planwave.cli.app import app
from planwave.errors import StoreError
from planwave.events import Event
from planwave.principals import Principal, acting_as
from planwave.service.service import Service
from planwave.settings import Settings
from planwave.storage.audit import AuditLog, audit_files, read_entries
from planwave.storage.files import ARTIFACT_DIR
from planwave.storage.records import ExecutionRecord
from planwave.storage.sqlite.store import SqliteStore
from tests.support.cli.fake_factories import fake_factories
from tests.support.service.dependencies import dependencies

LARGE = "x" * 2_000


def service(settings: Settings) -> Service:
    where = settings.storage_dir
    return Service(dependencies(store=SqliteStore.open(where), directory=where))


def planwave(*args: str, storage: Path, **more: Any) -> Result:
    obj = fake_factories(service=service, **more)
    return CliRunner().invoke(app, [*args, "--storage", str(storage)], obj=obj)


def store_ended(directory: Path, **days_ago: int) -> None:
    """Store executions that ended so many days ago, each with a large result."""

    async def fill() -> None:
        store = SqliteStore.open(directory, artifact_bytes=1_000)
        for name, days in days_ago.items():
            at = (datetime.now(UTC) - timedelta(days=days)).isoformat()
            outputs = {"output": {"type": "text", "value": LARGE + name}}
            record = ExecutionRecord(name, None, "t", "g", "starting", at)
            given = {"outputs": outputs, "duration_s": 1.0}
            kinds: list[tuple[str, dict[str, Any]]] = [
                ("execution.created", {}),
                ("node.completed", given),
                ("execution.completed", {}),
            ]
            events = [
                Event(name, n, at, kind, "a" if data else None, None, data)
                for n, (kind, data) in enumerate(kinds, 1)
            ]
            await store.create_execution(record, events)
        await store.close()

    asyncio.run(fill())


def stored_executions(directory: Path) -> set[str]:
    async def read() -> set[str]:
        store = SqliteStore.open(directory, read_only=True)
        try:
            return {record.execution_id for record in await store.executions()}
        finally:
            await store.close()

    return asyncio.run(read())


def test_prune_removes_older_executions(tmp_path: Path) -> None:
    store_ended(tmp_path, old=31, young=29)
    done = planwave("prune", "--older-than", "30", storage=tmp_path)
    assert (done.exit_code, stored_executions(tmp_path)) == (0, {"young"})
    assert f"Removed 1 execution that ended more than 30 days ago from {tmp_path}" in done.stdout
    assert len(list((tmp_path / ARTIFACT_DIR).iterdir())) == 1


def test_prune_uses_retention_setting(tmp_path: Path) -> None:
    store_ended(tmp_path, old=31, young=29)
    done = planwave("prune", "--json", storage=tmp_path, retention_days=30)
    assert json.loads(done.stdout)["removed"] == 1
    assert stored_executions(tmp_path) == {"young"}


def test_prune_without_age_removes_nothing(tmp_path: Path) -> None:
    store_ended(tmp_path, old=3_000)
    done = planwave("prune", storage=tmp_path)
    assert (done.exit_code, stored_executions(tmp_path)) == (2, {"old"})
    assert f"planwave prune --storage {tmp_path} --older-than 90" in done.stderr


def test_prune_creates_no_storage(tmp_path: Path) -> None:
    done = planwave("prune", "--older-than", "1", storage=tmp_path / "none")
    assert (done.exit_code, list(tmp_path.iterdir())) == (0, [])


def test_prune_beside_a_server_names_the_retention_setting(tmp_path: Path) -> None:
    store_ended(tmp_path, old=31)
    holder = SqliteStore.open(tmp_path)
    try:
        done = planwave("prune", "--older-than", "30", storage=tmp_path)
    finally:
        asyncio.run(holder.close())
    assert (done.exit_code, stored_executions(tmp_path)) == (1, {"old"})
    assert "is locked by pid" in done.stderr
    assert "PLANWAVE_RETENTION_DAYS by itself" in done.stderr


def test_other_store_error_is_reported(tmp_path: Path) -> None:
    def broken(_: Settings) -> Service:
        raise StoreError("no disk", hint="buy one")

    args = ["prune", "--older-than", "1", "--storage", str(tmp_path)]
    done = CliRunner().invoke(app, args, obj=fake_factories(service=broken))
    assert (done.exit_code, "buy one" in done.stderr) == (1, True)


@pytest.mark.parametrize("name", ["all.tar", "all.tgz"])
def test_backup_beside_a_server_has_everything(tmp_path: Path, name: str) -> None:
    store_ended(tmp_path / "storage", one=1, two=2)
    holder = SqliteStore.open(tmp_path / "storage")
    try:
        done = planwave("backup", str(tmp_path / name), storage=tmp_path / "storage")
    finally:
        asyncio.run(holder.close())
    assert done.exit_code == 0, done.output
    assert "2 executions, 0 plans and 0 flows" in done.stdout
    (tmp_path / "again").mkdir()
    with tarfile.open(tmp_path / name) as tar:
        tar.extractall(tmp_path / "again", filter="data")
    assert stored_executions(tmp_path / "again") == {"one", "two"}


def test_backup_reports_damaged_results(tmp_path: Path) -> None:
    store_ended(tmp_path / "storage", one=1)
    (artifact,) = (tmp_path / "storage" / ARTIFACT_DIR).iterdir()
    artifact.unlink()
    done = planwave("backup", str(tmp_path / "a.tar"), "--json", storage=tmp_path / "storage")
    assert (done.exit_code, json.loads(done.stdout)["damaged"]) == (1, [artifact.stem])
    assert "1 large result could not be backed up" in done.stderr
    assert artifact.name in done.stderr


def test_backup_of_missing_storage_is_rejected(tmp_path: Path) -> None:
    done = planwave("backup", str(tmp_path / "a.tar"), storage=tmp_path / "storage")
    assert (done.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "nothing is stored" in done.stderr


def store_lines(directory: Path) -> None:
    async def write() -> None:
        log = AuditLog(directory)
        with acting_as(Principal("token", "t1", "crm\x1b[2J")):
            await log.record("token.created", {"token_id": "t2"}, status=201)
        await log.record("execution.created", {"new_execution_id": "e1"}, status=202)
        await log.close()

    asyncio.run(write())


def test_audit_lists_who_did_what(tmp_path: Path) -> None:
    store_lines(tmp_path)
    shown = planwave("audit", storage=tmp_path).stdout
    assert "token.created" in shown
    assert "crm" in shown
    assert "\x1b[2J" not in shown
    assert "local user" in shown
    for options, actions in (
        (("--action", "token."), ["token.created"]),
        (("--id", "e1"), ["execution.created"]),
        (("--id", "t1"), ["token.created"]),
        (("--limit", "1"), ["execution.created"]),
    ):
        found = json.loads(planwave("audit", *options, "--json", storage=tmp_path).stdout)
        assert [each["action"] for each in found["entries"]] == actions


def test_audit_verify_names_the_file_and_the_line(tmp_path: Path) -> None:
    store_lines(tmp_path)
    done = planwave("audit", "verify", storage=tmp_path)
    assert (done.exit_code, "whole: 1 file" in done.stdout) == (0, True)
    path = audit_files(tmp_path)[0]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1].replace(b"201", b"200") + b"".join(lines[2:]))
    done = planwave("audit", "verify", storage=tmp_path)
    assert done.exit_code == 1
    assert f"audit/{path.name}:2: the line was changed" in done.stdout.replace("\n", "")


def test_command_without_a_running_service_has_a_line(tmp_path: Path) -> None:
    def audited(settings: Settings) -> Service:
        where = settings.storage_dir
        store = SqliteStore.open(where)
        return Service(dependencies(store=store, directory=where, audit=AuditLog(where)))

    obj = fake_factories(service=audited)
    done = CliRunner().invoke(app, ["tokens", "--storage", str(tmp_path)], obj=obj)
    assert done.exit_code == 0, done.output
    entry = next(read_entries(tmp_path))
    assert entry["action"] == "command.started"
    assert entry["command"].endswith("tokens")
    assert entry["principal"] == {"kind": "local"}
