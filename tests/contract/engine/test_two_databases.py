"""What a graph does is the same on both databases: the same events of each node, in the same order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import InputError
from planwave.interop.importing.importer import import_text
from planwave.jsonio import dumps_exact
from planwave.storage.postgres.store import PostgresStore
from planwave.storage.sql.store import Store
from planwave.storage.sqlite.store import SqliteStore
from tests.support.conformance.converted_runs import ConvertedGraph, RuleModels, run_converted
from tests.support.interop.imports import OWN

_VARIES = re.compile(
    r'"[0-9a-f]{8}-[0-9a-f-]{27}"|"\d{4}-\d\d-\d\dT[^"]*"|"(duration_s|queued_s)":[0-9.e-]+'
)
"""Ids, times and durations in JSON."""


def graphs() -> dict[str, dict[str, Any]]:
    """Return the graphs that are imported as a whole from the files of other programs."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(OWN.rglob("*")):
        if not path.is_file() or path.parent.name == "hostile":
            continue
        try:
            imported = import_text(path.read_bytes())
        except InputError:
            continue
        if not imported.report["summary"]["placeholder"]:
            document = imported.document
            name = f"{path.parent.name}/{path.name}"
            found[name] = {"nodes": document["nodes"], "edges": document["edges"]}
    return found


GRAPHS = graphs()
APPROVE = {"decision": "approve"}


async def seen(graph: dict[str, Any], store: Store) -> dict[str, list[str]]:
    """Run a graph; return what its events say, by node."""
    models = RuleModels(lambda request, count: f"reply {count}")
    try:
        run = await run_converted(ConvertedGraph(graph, answers=[APPROVE] * 3), models, store=store)
    finally:
        await store.close()
    assert run.events or run.refusal_codes
    by_node: dict[str, list[str]] = {}
    for event in run.events:
        said = _VARIES.sub("…", dumps_exact([event.type, event.attempt, event.data]))
        by_node.setdefault(event.path or "", []).append(said)
    return by_node


def test_there_are_graphs_to_run() -> None:
    assert len(GRAPHS) >= 8


@pytest.mark.parametrize("name", GRAPHS)
async def test_the_events_of_each_node_are_the_same(
    name: str, tmp_path: Path, database_url: str
) -> None:
    here = await seen(GRAPHS[name], SqliteStore.open(tmp_path))
    assert await seen(GRAPHS[name], PostgresStore.open(database_url)) == here
