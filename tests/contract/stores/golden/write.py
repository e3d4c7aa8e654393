"""Writes ``stored.sql``, ``stored.json`` and ``artifacts/``: ``python -m tests.contract.stores.golden.write``.

The database as SQL; what was read from it, one record a line; and its large values. It has records of every
kind, with executions in every state. Until the first release the files are written again when the tables
change; from then on they stay, and the next version gets its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from planwave.events import Event, fold
from planwave.events.usage import UsageTotal
from planwave.graph.model import Graph, Node
from planwave.providers.protocols import CallKey
from planwave.service.service import Service
from planwave.storage.access_tokens import AccessTokenRecord
from planwave.storage.chats import ChatRecord, MessageRecord, Projected, Turn
from planwave.storage.execution_facts import Spend, facts_of
from planwave.storage.links import LinkRecord
from planwave.storage.notifications import NotificationTarget
from planwave.storage.records import ExecutionRecord, InputSet, PlanRecord, PlanRevision
from planwave.storage.sqlite import connection, migrations
from planwave.storage.sqlite.store import SqliteStore
from planwave.storage.triggers import TriggerRecord
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.nodes.held_nodes import FailingNode, HeldNode
from tests.support.service.dependencies import FixedPlanner, dependencies

FOLDER: Final = Path(__file__).parent
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
    of = {field: value for field, value in more.items() if field in ("plan_id", "revision", "flow")}
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
    return ExecutionRecord(
        name, more.pop("plan_id", None), "t", "g", "starting", AT, **more
    ), events


async def fill(store: SqliteStore, directory: Path) -> None:
    """Keep plans and executions of every kind."""
    held, planner = HeldNode(), FixedPlanner(make_plan(COMPLETES))
    service = Service(
        dependencies(planner=planner, types=[held, FailingNode()], store=store, directory=directory)
    )
    await service.__aenter__()

    async def run(number: int, graph: Graph, goal: str) -> str:
        planner.plan = make_plan(graph, PLAN_ID.format(number))
        plan = await service.plans.create(goal)
        return (await service.executions.execute(plan.plan_id)).execution_id

    await service.executions.wait(await run(1, COMPLETES, "Übersicht"))
    await service.executions.wait(await run(2, FAILS, "it fails"))
    await run(3, STANDS, "it stands")
    await held.started.wait()
    await store.create_execution(*by_hand("paused", "paused"))
    await store.create_execution(*by_hand("starting", "starting"))
    await store.create_execution(*by_hand("queued", "starting", queued=True))
    await fill_flows(store)
    await fill_revisions(store)
    await fill_triggers(store)
    await fill_access_tokens(store)
    await fill_links(store)
    await store.approved_tools.approve("server", "tool", "fingerprint")
    await fill_chats(store)
    await fill_notifications(store)
    await store.record(CALL, {"text": "paid for", "usage": {"input_tokens": 1}})
    await store.claim_idempotency_key("key", "digest", AT, expired="")
    await store.store_response("key", 201, "{}")


async def fill_flows(store: SqliteStore) -> None:
    """Keep a published flow of two revisions, and an execution of the older one."""
    older = {**COMPLETES.to_document(), "diagnostics": [], "revision": 1}
    first = PlanRecord(
        FLOW_ID, AT, "", "Täglich", "older", older, name="Täglich", description="Grüße \U0001f30a"
    )
    await store.save_plan(first)
    newer = {**FAILS.to_document(), "diagnostics": [], "revision": 2}
    second = replace(
        first, hash="newer", document=newer, edits=1, author="api", updated_at=LATER,
        published=("model", "tool"), sound_revision=2,
    )  # fmt: skip
    before = PlanRevision(FLOW_ID, 1, "older", "Täglich", "api", "", AT, 3, 0, older)
    await store.revisions.save(second, before, after=0)
    of = {"plan_id": FLOW_ID, "revision": 1, "flow": "Täglich"}
    await store.create_execution(*by_hand("of a flow", "starting", **of))


async def fill_revisions(store: SqliteStore) -> None:
    """Change a plan twice: its graph, and then only where a node is drawn."""
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
    hook = TriggerRecord(TRIGGER_ID, FLOW_ID, "a", "webhook", AT, position="later")
    await store.triggers.create(hook)
    other = replace(
        hook, trigger_id="other", node_id="b", created_at=LATER, revision=1, enabled=False
    )
    await store.triggers.create(other)
    await store.triggers.claim(TRIGGER_ID, "under way", AT, expired="")
    await store.triggers.claim(TRIGGER_ID, "settled", LATER, expired="")
    await store.triggers.settle(
        TRIGGER_ID, "settled", "answered", note="Grüße", reply='{"status":202}'
    )


async def fill_access_tokens(store: SqliteStore) -> None:
    """Keep a token with all fields, and one with the required ones."""
    whole = AccessTokenRecord("t1", "Grüße", "d1", ("chat",), (FLOW_ID,), AT, 1, 2, LATER)
    await store.access_tokens.create(whole)
    inputs = InputSet(FLOW_ID, "Grüße", {"city": "\U0001f30a", "days": 2}, AT, LATER)
    await store.input_sets.save(inputs, inputs.name, most=9)
    await store.access_tokens.create(
        AccessTokenRecord("t2", "n", "d2", ("run",), (FLOW_ID,), LATER)
    )


async def fill_links(store: SqliteStore) -> None:
    """Keep a link of each kind that still opens something, with all fields and with the required ones."""
    own = ("request", "paused", AT, "9" + LATER[1:], "r4", "Grüße")
    await store.links.create(LinkRecord("l1", "d1", *own))
    await store.links.create(LinkRecord("l2", "d2", "result", "paused", LATER, "9" + LATER[1:]))


async def fill_chats(store: SqliteStore) -> None:
    """Keep a chat with a flow and one with a configuration, their messages, and a remembered turn."""
    text = [{"type": "text", "text": "Grüße \U0001f30a"}]
    await store.chats.create(ChatRecord("of flow", AT, AT, "", FLOW_ID, 1, "a"))
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


async def fill_notifications(store: SqliteStore) -> None:
    """Keep a target of the flow, a message that is due and one that nobody accepted."""
    events = ("execution.cancelled", "execution.waiting")
    target = NotificationTarget("target", "https://ö.example/x", ("main",), events, FLOW_ID, AT)
    await store.notifications.create_target(target)
    of = {"plan_id": FLOW_ID, "revision": 1, "flow": "Täglich"}
    record, asked = by_hand("notified", "paused", **of)
    await store.create_execution(record, asked)
    answer = {"request_id": "r4", "answer": "both"}
    answered = Event("notified", len(asked) + 1, LATER, "node.answered", "first", 1, answer)
    end = Event("notified", len(asked) + 2, LATER, "execution.cancelled", None, None, {})
    await store.append("notified", 1, [answered, end])
    events = [*asked, answered, end]
    facts = facts_of(events, fold(events), record)
    await store.set_document_seqs({"notified": end.seq}, {"notified": facts})
    labels = {"name": "Grüße", "tags": ("a", "b c"), "note": "\U0001f30a", "starred": True}
    await store.label_execution("notified", labels)
    await store.spend.add([Spend("run", "gone", AT[:10], None, "p", "m", UsageTotal(1, 2, 3), 1)])
    for each in await store.notifications.page():
        if each.event == "execution.waiting":
            dead = replace(each, status="dead", attempts=9, error="Grüße", body="{}")
            await store.notifications.update(dead)


async def read(store: SqliteStore) -> dict[str, Any]:
    """Return everything, as JSON; each value of the result has a list of records."""
    plans, executions = await store.plans(), await store.executions()
    chats = await store.chats.page()
    triggers = await store.triggers.page()
    deliveries = await store.triggers.deliveries([each.trigger_id for each in triggers])
    events = [await store.events(each.execution_id) for each in executions]
    received: dict[str, Sequence[Any]] = {
        "plans": plans,
        "revisions": [
            await store.revisions.get(plan.plan_id, each.revision)
            for plan in plans
            for each in await store.revisions.page(plan.plan_id)
        ],
        "input_sets": await store.input_sets.all(FLOW_ID),
        "executions": executions,
        "events": [event for batch in events for event in batch],
        "triggers": triggers,
        "deliveries": [each for batch in deliveries.values() for each in batch],
        "notification_targets": await store.notifications.targets(),
        "notifications": await store.notifications.page(),
        "access_tokens": await store.access_tokens.all(),
        "links": await store.links.page(AT),
        "approved_tools": [await store.approved_tools.fingerprint("server", "tool")],
        "chats": chats,
        "messages": [each for chat in chats for each in await store.chats.messages(chat.chat_id)],
        "turns": await store.chats.turns("k", limit=9),
        "calls": [await store.recorded(CALL)],
        "spend": await store.spend.sums("day", "2026-01-01", "2026-12-31", 9),
        "answered_requests": await store.answered_requests(),
        "idempotency": [await store.idempotency_record("key")],
    }
    return json.loads(json.dumps(received, default=asdict))


async def main() -> None:
    """Write the files."""
    directory = Path(tempfile.mkdtemp())
    store = SqliteStore.open(directory, artifact_bytes=1_000)
    await fill(store, directory)
    with closing(sqlite3.connect(directory / connection.DATABASE_NAME)) as raw:
        dump = [*raw.iterdump(), f"PRAGMA user_version = {migrations.SCHEMA_VERSION};"]
    (FOLDER / "stored.sql").write_text("\n".join(dump) + "\n", "utf-8")
    lists = (
        f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, records)) + "\n]"
        for name, records in (await read(store)).items()
    )
    (FOLDER / "stored.json").write_text("{" + ",\n".join(lists) + "}\n", "utf-8")
    shutil.rmtree(FOLDER / "artifacts")
    shutil.copytree(directory / "artifacts", FOLDER / "artifacts")
    shutil.rmtree(directory)
    os._exit(0)  # what runs is left as a crash would leave it


if __name__ == "__main__":
    asyncio.run(main())
