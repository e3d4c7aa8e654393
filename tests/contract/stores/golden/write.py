"""Writes a golden database with the planwave that is imported: ``python write.py FOLDER``.

To be run once for each schema version, with the code of the last release that wrote it::

    git archive COMMIT planwave tests | tar -x -C /somewhere
    PYTHONPATH=/somewhere python tests/contract/stores/golden/write.py tests/contract/golden

It leaves ``v{version}.sql``, the database as SQL; ``v{version}.json``, what that planwave read from
it; and ``artifacts/``, its large values. Nothing here is ever changed once it is committed.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from planwave.events import Event
from planwave.graph.model import Graph, Node
from planwave.providers.protocols import CallKey
from planwave.service.service import Service
from planwave.storage.documents import build_document
from planwave.storage.records import ExecutionRecord
from planwave.storage.sqlite import connection, migrations
from planwave.storage.sqlite.store import SqliteStore
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.nodes.held_nodes import FailingNode, HeldNode
from tests.support.service.dependencies import FixedPlanner, dependencies

AT = "2026-01-02T03:04:05.000000Z"
LATER = "2026-01-02T03:04:06.000000Z"
FLOW_ID = "01900000-0000-7000-8000-0000000000f1"
TRIGGER_ID = "01900000-0000-7000-8000-0000000000a1"
PLAN_ID = "01900000-0000-7000-8000-00000000000{}"
LARGE = "x" * 2_000
CALL = CallKey("paid", "a", 1, 0, "hash")

COMPLETES = make_graph(
    text_node("a", 'Grüße, "quoted"\n and \U0001f30a'),
    text_node("large", LARGE),
    text_node("b", "{{ input }}"),
    edges=[("a", "b"), ("large", "b")],
)
FAILS = make_graph(
    Node("bad", "broken", "Bad"), text_node("after"), text_node("beside"), edges=[("bad", "after")]
)
STANDS = make_graph(
    text_node("first"),
    Node("held", "held", "Held"),
    text_node("last"),
    edges=[("first", "held"), ("held", "last")],
)


def by_hand(name: str, status: str, **more: Any) -> tuple[ExecutionRecord, list[Event]]:
    """Make an execution that nothing runs."""
    of = {field: value for field, value in more.items() if field.startswith("flow_")}
    kinds: list[tuple[str, str | None, dict[str, Any]]] = [
        (
            "execution.created",
            None,
            {"goal": "g\u0000\ud800", "title": "t", "graph": STANDS.to_document(), **of},
        )
    ]
    if status == "paused":
        request = {"kind": "question", "prompt": "Which one?"}
        kinds += [
            ("execution.started", None, {}),
            ("node.started", "first", {"inputs": {}}),
            ("node.waiting", "first", {"request_id": "r4", "request": request}),
            ("execution.paused", None, {"reason": "waiting for an answer"}),
        ]
    events = [
        Event(name, seq, AT, kind, path, 1 if path else None, data)
        for seq, (kind, path, data) in enumerate(kinds, 1)
    ]
    return ExecutionRecord(name, None, "t", "g", "starting", AT, **more), events


async def fill(store: SqliteStore, directory: Path) -> None:
    """Keep plans and executions of every kind."""
    held, planner = HeldNode(), FixedPlanner(make_plan(COMPLETES))
    service = Service(
        dependencies(planner=planner, types=[held, FailingNode()], store=store, directory=directory)
    )
    await service.__aenter__()

    async def run(number: int, graph: Graph, goal: str) -> str:
        planner.plan = make_plan(graph, PLAN_ID.format(number))
        plan = await service.create_plan(goal)
        return (await service.execute(plan.plan_id)).execution_id

    await service.wait(await run(1, COMPLETES, "Übersicht"))
    await service.wait(await run(2, FAILS, "it fails"))
    await run(3, STANDS, "it stands")
    await held.started.wait()
    await store.create_execution(*by_hand("paused", "paused"))
    await store.create_execution(*by_hand("starting", "starting"))
    if "queued" in {field.name for field in fields(ExecutionRecord)}:
        await store.create_execution(*by_hand("queued", "starting", queued=True))
    if hasattr(store, "flows"):
        await fill_flows(store)
    if hasattr(store, "revisions"):
        await fill_revisions(store)
    if hasattr(store, "triggers"):
        await fill_triggers(store)
    if hasattr(store, "access_tokens"):
        await fill_access_tokens(store)
    if hasattr(store, "chats"):
        await fill_chats(store)
    if hasattr(store, "notifications"):
        await fill_notifications(store)
    await store.record(CALL, {"text": "paid for", "usage": {"input_tokens": 1}})
    if hasattr(store, "remember"):
        await store.claim_idempotency_key("key", "digest", AT, expired="")
        await store.store_response("key", 201, "{}")


async def fill_flows(store: SqliteStore) -> None:
    """Keep a flow of two versions, and an execution of the older one."""
    from planwave.storage.records import FlowRecord

    first = FlowRecord(FLOW_ID, "Täglich", "Grüße \U0001f30a", "older", 1, AT, AT, 3)
    await store.flows.save(first, COMPLETES.to_document())
    second = replace(first, version="newer", revision=2, updated_at=LATER)
    await store.flows.save(second, FAILS.to_document(), after=1)
    if hasattr(store.flows, "publish"):
        await store.flows.publish(FLOW_ID, ("model", "tool"))
    of = {"plan_id": FLOW_ID, "flow_version": "older"}
    await store.create_execution(*by_hand("of a flow", "starting", **of))


async def fill_revisions(store: SqliteStore) -> None:
    """Change a plan twice: its graph, and then only where a node is drawn."""
    from planwave.storage.records import PlanRevision

    plan = await store.plan(PLAN_ID.format(2))
    assert plan is not None
    parts = {name: plan.document[name] for name in ("nodes", "edges", "diagnostics")}
    first = PlanRevision(
        plan.plan_id, 1, plan.hash, plan.title, "planner", "", AT, len(parts["nodes"]), 0, parts
    )
    document = {**plan.document, "nodes": plan.document["nodes"][:1], "edges": [], "revision": 2}
    second = replace(
        plan, title="Grüße", hash="newer", document=document, edits=1, author="person",
        note="shorter \U0001f30a", updated_at=LATER,
    )  # fmt: skip
    await store.revisions.save(second, first, after=0)
    node = {**document["nodes"][0], "ui": {"x": 1.5}}
    moved = replace(second, document={**document, "nodes": [node]}, edits=2)
    await store.revisions.save(moved, after=1)


async def fill_triggers(store: SqliteStore) -> None:
    """Keep two triggers of the flow: one that was used and is in use, and one that is disabled."""
    from planwave.storage.triggers import TriggerRecord

    hook = TriggerRecord(TRIGGER_ID, FLOW_ID, "a", "webhook", AT, position="later")
    await store.triggers.create(hook)
    other = replace(
        hook, trigger_id="other", node_id="b", created_at=LATER, version="older", enabled=False
    )
    await store.triggers.create(other)
    await store.triggers.claim(TRIGGER_ID, "under way", AT, expired="")
    await store.triggers.claim(TRIGGER_ID, "settled", LATER, expired="")
    await store.triggers.settle(
        TRIGGER_ID, "settled", "answered", note="Grüße", reply='{"status":202}'
    )


async def fill_access_tokens(store: SqliteStore) -> None:
    """Keep a token with all fields, and one with the required ones."""
    from planwave.storage.access_tokens import AccessTokenRecord

    whole = AccessTokenRecord("t1", "Grüße", "d1", ("chat",), (FLOW_ID,), AT, 1, 2, LATER)
    await store.access_tokens.create(whole)
    await store.access_tokens.create(AccessTokenRecord("t2", "n", "d2", ("run",), ("f",), LATER))


async def fill_chats(store: SqliteStore) -> None:
    """Keep a chat with a flow and one with a configuration, their messages, and a remembered turn."""
    from planwave.storage.chats import ChatRecord, MessageRecord, Projected, Turn

    text = [{"type": "text", "text": "Grüße \U0001f30a"}]
    await store.chats.create(ChatRecord("of flow", AT, AT, "", FLOW_ID, "older", "a"))
    asked = MessageRecord("asked", "of flow", "user", "send", AT, None, text)
    reply = MessageRecord(
        "reply", "of flow", "assistant", "send", AT, "asked", (), "x1", "starting"
    )
    await store.chats.add([asked, reply], title="Grüße")
    usage = {"totalTokens": 3, "costUsd": None}
    await store.chats.project("reply", Projected(text, "completed", 9, usage), LATER)
    again = replace(
        reply, message_id="again", origin="continue", execution_id="x2", created_at=LATER, seed=text
    )
    await store.chats.add([again])
    await store.chats.request_cancel("again")
    await store.chats.create(ChatRecord("plain", LATER, LATER, "t", config={"model": "m"}))
    await store.chats.remember(Turn("k", "x1", "chat", AT, [{"role": "user", "content": "Grüße"}]))


async def read_chats(store: SqliteStore) -> dict[str, Any]:
    """Give all chats, with their messages, and the remembered turn."""
    found = [asdict(each) for each in await store.chats.page()]
    for each in found:
        own = await store.chats.messages(each["chat_id"])
        each["messages"] = [asdict(message) for message in own]
    turns = await store.chats.turns("k", limit=9)
    return {"chats": found, "turns": [asdict(each) for each in turns]}


async def fill_notifications(store: SqliteStore) -> None:
    """Keep a target of the flow, a message that is due and one that nobody accepted."""
    from planwave.storage.notifications import NotificationTarget

    events = ("execution.cancelled", "execution.waiting")
    target = NotificationTarget("target", "https://ö.example/x", ("main",), events, FLOW_ID, AT)
    await store.notifications.create_target(target)
    of = {"plan_id": FLOW_ID, "flow_version": "older"}
    record, asked = by_hand("notified", "paused", **of)
    await store.create_execution(record, asked)
    end = Event("notified", len(asked) + 1, LATER, "execution.cancelled", None, None, {})
    await store.append("notified", 1, [end])
    await store.set_document_seqs({"notified": end.seq})
    for each in await store.notifications.page():
        if each.event == "execution.waiting":
            dead = replace(each, status="dead", attempts=9, error="Grüße", body="{}")
            await store.notifications.update(dead)


async def read_notifications(store: SqliteStore) -> dict[str, Any]:
    """Give all targets, and all notifications."""
    return {
        "notification_targets": [asdict(each) for each in await store.notifications.targets()],
        "notifications": [asdict(each) for each in await store.notifications.page()],
    }


async def read_triggers(store: SqliteStore) -> dict[str, Any]:
    """Give all triggers, with their deliveries."""
    found = [asdict(each) for each in await store.triggers.page()]
    for each in found:
        own = await store.triggers.deliveries([each["trigger_id"]])
        each["deliveries"] = [asdict(d) for d in own.get(each["trigger_id"], ())]
    return {"triggers": found}


async def read_revisions(store: SqliteStore) -> dict[str, Any]:
    """Give the revisions of all plans before the current ones."""
    found: list[dict[str, Any]] = []
    for plan in await store.plans():
        for each in await store.revisions.page(plan.plan_id):
            revision = await store.revisions.get(plan.plan_id, each.revision)
            assert revision is not None
            found.append(asdict(revision))
    return {"revisions": found}


async def read_flows(store: SqliteStore) -> dict[str, Any]:
    """Give all flows, with their versions."""
    found = [asdict(flow) for flow in await store.flows.page()]
    for flow in found:
        listed = await store.flows.versions(flow["plan_id"])
        versions = [await store.flows.version(flow["plan_id"], each.version) for each in listed]
        flow["versions"] = [asdict(each) for each in versions if each is not None]
    return {"flows": found}


async def read(store: SqliteStore) -> dict[str, Any]:
    """Give everything as this planwave reads it."""
    found: dict[str, Any] = {
        "plans": [asdict(plan) for plan in await store.plans()],
        "executions": [asdict(record) for record in await store.executions()],
        "call": await store.recorded(CALL),
        "events": {},
        "documents": {},
    }
    if hasattr(store, "flows"):
        found |= await read_flows(store)
    if hasattr(store, "revisions"):
        found |= await read_revisions(store)
    if hasattr(store, "triggers"):
        found |= await read_triggers(store)
    if hasattr(store, "access_tokens"):
        found["access_tokens"] = [asdict(each) for each in await store.access_tokens.all()]
    if hasattr(store, "chats"):
        found |= await read_chats(store)
    if hasattr(store, "notifications"):
        found |= await read_notifications(store)
    for record in await store.executions():
        events = await store.events(record.execution_id)
        found["events"][record.execution_id] = [event._asdict() for event in events]
        found["documents"][record.execution_id] = build_document(events, record)
    return found


async def main(folder: Path) -> None:
    """Write the files of one version."""
    directory = Path(tempfile.mkdtemp())
    store = SqliteStore.open(directory, artifact_bytes=1_000)
    await fill(store, directory)
    name = f"v{migrations.SCHEMA_VERSION}"
    with closing(sqlite3.connect(directory / connection.DATABASE_NAME)) as raw:
        dump = [*raw.iterdump(), f"PRAGMA user_version = {migrations.SCHEMA_VERSION};"]
    (folder / f"{name}.sql").write_text("\n".join(dump) + "\n", "utf-8")
    received = json.dumps(await read(store), indent=1, ensure_ascii=True, sort_keys=True)
    (folder / f"{name}.json").write_text(received + "\n", "utf-8")
    shutil.copytree(directory / "artifacts", folder / "artifacts", dirs_exist_ok=True)
    shutil.rmtree(directory)
    os._exit(0)  # what runs is left as a crash would leave it


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
