"""docs/scale-out.md: other processes read what a service keeps in PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from planwave.graph.model import Node
from planwave.service.service import Service
from planwave.storage.postgres.store import PostgresStore
from tests.scale.test_workers_fail import ANOTHER_LEASE_S, ENDS_FIRST_S, TARGET_S
from tests.support.cli.command_process import isolated_directory, run_command
from tests.support.cli.doc_page import blocks
from tests.support.cli.in_process_command import invoke
from tests.support.graph.builders import make_graph, make_plan
from tests.support.paths import ROOT
from tests.support.scale.role_process import processes
from tests.support.service.dependencies import dependencies
from tests.support.storage.postgres_server import PostgresServer

PAGE = (ROOT / "docs/scale-out.md").read_text("utf-8")
GRAPH = {"nodes": [{"id": "a", "type": "text", "data": {"text": "one"}}], "edges": []}


def test_the_program_lists_the_executions_of_a_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PLANWAVE_DATABASE_URL", database_url)
    Path("graph.json").write_text(json.dumps(GRAPH), "utf-8")
    stored = json.loads(invoke("exec", "graph.json", "--json").stdout)
    (program,) = (
        each["text"] for each in blocks(PAGE) if each["text"].startswith("import planwave")
    )
    body = "\n".join(f"    {line}" for line in program.splitlines() if line != "import planwave")
    source = f"import asyncio, planwave\n\nasync def main():\n{body}\n\nasyncio.run(main())\n"
    done = subprocess.run(
        [sys.executable, "-c", source.replace("postgresql://…", database_url)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ},
    )
    assert done.stdout == f"{stored['execution_id']} completed\n"


def test_the_fault_matrix_asserts_the_limits_of_a_takeover_that_the_page_states() -> None:
    limits = [TARGET_S, TARGET_S + ENDS_FIRST_S, TARGET_S + ANOTHER_LEASE_S]
    (stated,) = (each for each in PAGE.split("\n\n") if each.startswith("With a lease of 2 s"))
    assert re.findall(r"within\s(\d+) s", stated) == [f"{each:.0f}" for each in limits]


def test_the_check_of_the_tables_says_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PLANWAVE_DATABASE_URL", database_url)
    (shown,) = (each["text"] for each in blocks(PAGE) if "planwave migrate --check" in each["text"])
    command, expected = shown.splitlines()
    done = invoke(*command.split()[2:])
    where = f"PostgreSQL database {database_url.rpartition('/')[2]} on 127.0.0.1"
    assert done.stdout.strip() == expected.replace(
        "PostgreSQL database planwave on db.internal", where
    )


async def test_what_had_not_ended_goes_on_from_a_restored_dump(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: PostgresServer
) -> None:
    monkeypatch.chdir(tmp_path)
    (shown,) = (each["text"] for each in blocks(PAGE) if "pg_dump" in each["text"])
    graph = make_graph(Node("ask", "approval", "Ask", data={"prompt": "Send it?"}))
    with postgres.new_database() as url:
        async with Service(dependencies(store=PostgresStore.open(url))) as first:
            asked = await first.executions.execute(make_plan(graph))
            assert (await first.executions.wait(asked.execution_id)).status == "paused"
            for command in shown.splitlines():
                name = url.rpartition("/")[2]
                await asyncio.to_thread(
                    postgres.run_client,
                    *command.split()[1:-1],
                    (name if command.endswith(" planwave") else command.split()[-1]),
                )
            events = await first.executions.events(asked.execution_id)
    restored = PostgresStore.open(postgres.url("planwave_restored"))
    async with Service(dependencies(store=restored)) as second:
        assert await second.executions.events(asked.execution_id) == events
        await second.recover()
        (request,) = await second.executions.requests(asked.execution_id)
        await second.executions.answer(
            asked.execution_id, request.request_id, {"decision": "approve"}
        )
        assert (await second.executions.wait(asked.execution_id)).status == "completed"
    postgres.execute("DROP DATABASE planwave_restored WITH (FORCE)")


async def test_three_processes_run_what_the_page_shows(
    tmp_path: Path, database_url: str, temporal_address: str, task_queue: str
) -> None:
    (shown,) = (each["text"] for each in blocks(PAGE) if "planwave worker --port" in each["text"])
    (command,) = (each["text"] for each in blocks(PAGE) if each["text"].startswith("planwave exec"))
    exported, *roles = shown.splitlines()
    assert "PLANWAVE_CARRIER=temporal" in exported
    temporal = {"address": temporal_address, "task_queue": task_queue}
    environment = {
        "PLANWAVE_DATABASE_URL": database_url,
        "PLANWAVE_CARRIER": "temporal",
        "PLANWAVE_TEMPORAL": json.dumps(temporal),
    }
    with processes(tmp_path) as group:
        for role in roles:
            program, name, *_ = role.split()
            assert program == "planwave"
            group.start(name, "--port", "0", **environment)
        served, *workers = group.all
        assert [each.name.split("-")[0] for each in workers] == ["worker", "worker"]
        (tmp_path / "graph.json").write_text(json.dumps(GRAPH), "utf-8")
        options = command.replace("http://127.0.0.1:8000", served.url).split()[1:]
        done = await asyncio.to_thread(run_command, *options, "--json", cwd=tmp_path)
        assert json.loads(done.stdout)["status"] == "completed", done.stderr
        assert any("completed" in each.log() for each in workers)
        for each in workers:
            assert await asyncio.to_thread(each.terminate) == 0
