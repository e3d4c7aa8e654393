"""A directory is copied as a whole, or not at all; what is read from the copy is the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from planwave.errors import Conflict, StoreError
from planwave.events import Event
from planwave.providers.protocols import CallKey
from planwave.storage.audit import AuditLog, audit_files, read_entries, verify
from planwave.storage.chats import ChatRecord, MessageRecord
from planwave.storage.links import LinkRecord
from planwave.storage.postgres import copying
from planwave.storage.postgres.audit import PostgresAuditFiles
from planwave.storage.postgres.copying import copy_directory
from planwave.storage.postgres.store import PostgresStore
from planwave.storage.records import ExecutionRecord, PlanRecord
from planwave.storage.sql.store import Store
from planwave.storage.sqlite.store import SqliteStore
from planwave.storage.triggers import TriggerRecord
from tests.support.storage.postgres_server import PostgresServer

AT = "2026-01-01T00:00:00.000000Z"
LARGE = "x" * 5_000


def event(seq: int, kind: str, of: str, **data: Any) -> Event:
    is_node = kind.startswith("node.")
    return Event(of, seq, AT, kind, "a" if is_node else None, 1 if is_node else None, data)


@pytest.fixture
async def directory(tmp_path: Path) -> Path:
    async with SqliteStore.open(tmp_path / "data", artifact_bytes=1_000) as store:
        for number in range(3):
            plan = PlanRecord(
                f"p{number}", AT, "a goal\tand\\N more", "Titel \u00e4", "h", {"n": [1, None, "\0"]},
                name=f"flow {number}",
            )  # fmt: skip
            await store.save_plan(plan)
            own = f"x{number}"
            record = ExecutionRecord(own, plan.plan_id, "t", "g", "starting", AT, flow="f")
            outputs = {"output": {"type": "text", "value": LARGE}}
            await store.create_execution(
                record,
                [
                    event(1, "node.log", own, message="line\nline"),
                    event(2, "node.completed", own, outputs=outputs, duration_s=1),
                ],
            )
            await store.record(CallKey(own, "a", 1, 0, "h"), {"text": "said"})
        await store.claim("x0")
        await store.triggers.create(TriggerRecord("t", "p0", "n", "webhook", AT))
        await store.triggers.claim("t", "k", AT, expired=AT)
        await store.claim_idempotency_key("key", "d", AT, expired=AT)
        await store.chats.create(ChatRecord("c", AT, AT, "A chat"))
        message = MessageRecord("m", "c", "user", "person", AT, blocks=[{"text": "hi"}])
        await store.chats.add([message])
    return tmp_path / "data"


async def told(store: Store) -> Any:
    """Return all that a store tells of what it keeps."""
    executions = await store.executions()
    return [
        await store.plans(),
        executions,
        [await store.events(each.execution_id) for each in executions],
        await store.calls([each.execution_id for each in executions]),
        await store.triggers.page(),
        await store.triggers.deliveries(["t"]),
        await store.idempotency_record("key"),
        await store.chats.page(),
        await store.chats.messages("c"),
    ]


async def test_the_copy_tells_the_same_and_goes_on(directory: Path, database_url: str) -> None:
    copied = copy_directory(directory, database_url)
    assert (copied.rows["executions"], copied.artifacts, copied.audit_lines) == (3, 1, 0)
    async with (
        SqliteStore.open(directory, read_only=True) as before,
        PostgresStore.open(database_url) as after,
    ):
        assert await told(after) == await told(before)
        # What is new is numbered after what was copied.
        await after.create_execution(ExecutionRecord("new", None, "t", "g", "starting", AT), [])
        await after.chats.add([MessageRecord("m2", "c", "user", "person", AT, blocks=[])])
        assert [each.message_id for each in await after.chats.messages("c")] == ["m", "m2"]
        await after.append("x0", 2, [event(3, "node.log", "x0")])


async def test_a_database_that_keeps_something_stays_as_it_is(
    directory: Path, database_url: str
) -> None:
    async with PostgresStore.open(database_url) as store:
        await store.save_plan(PlanRecord("mine", AT, "g", "t", "h", {}))
        with pytest.raises(Conflict) as refused:
            copy_directory(directory, database_url)
        assert refused.value.code == "store-not-empty"
        assert [each.plan_id for each in await store.plans()] == ["mine"]


async def test_a_database_without_plans_may_keep_something_too(
    directory: Path, database_url: str
) -> None:
    async with PostgresStore.open(database_url) as store:
        await store.approved_tools.approve("a server", "a tool", "f")
    with pytest.raises(Conflict, match="in the table approved_tools") as refused:
        copy_directory(directory, database_url)
    assert refused.value.code == "store-not-empty"


async def test_a_directory_that_cannot_be_read_is_named_not_the_database(
    directory: Path, database_url: str
) -> None:
    (directory / "planwave.db").write_bytes(b"no database at all" * 500)
    with pytest.raises(StoreError, match=r"planwave\.db' cannot be opened") as refused:
        copy_directory(directory, database_url)
    assert refused.value.code == "store-unusable"


@pytest.mark.parametrize("table", ["plans", "batches", "chat_messages"])
async def test_a_copy_that_differs_is_not_kept(
    directory: Path, database_url: str, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    copy_table = copying._copy_table

    def losing_a_row(source: Any, raw: psycopg.Connection[Any], of: Any) -> int:
        count = copy_table(source, raw, of)
        if of.name == table:
            key = of.primary_key.columns[0].name
            raw.execute(f"DELETE FROM {table} WHERE {key} = (SELECT max({key}) FROM {table})")  # noqa: S608  # pyright: ignore
        return count

    monkeypatch.setattr(copying, "_copy_table", losing_a_row)
    with pytest.raises((StoreError, psycopg.Error)) as refused:
        copy_directory(directory, database_url)
    assert getattr(refused.value, "code", "") in ("copy-differs", "store-unusable")
    async with PostgresStore.open(database_url) as store:
        assert await store.plans() == []
        assert await store.executions() == []


async def is_empty(database_url: str) -> bool:
    async with PostgresStore.open(database_url) as store:
        return not (await store.plans() or await store.executions())


@pytest.mark.parametrize("is_there", [True, False])
async def test_nothing_is_copied_where_a_large_value_is_missing(
    directory: Path, database_url: str, is_there: bool
) -> None:
    (file,) = (directory / "artifacts").iterdir()
    content = file.read_bytes()
    file.write_text(json.dumps("another")) if is_there else file.unlink()
    with pytest.raises(StoreError, match=f"of the execution x0 .*{file.name}") as refused:
        copy_directory(directory, database_url)
    assert refused.value.code == "large-results-missing"
    assert await is_empty(database_url)
    file.write_bytes(content)
    assert copy_directory(directory, database_url).artifacts == 1


async def test_large_values_are_read_back(
    directory: Path, database_url: str, postgres: PostgresServer
) -> None:
    async with PostgresStore.open(database_url):
        pass  # the tables are there
    postgres.execute(
        "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN NEW.content = NEW.content || '\\x00'::bytea; RETURN NEW; END$$; "
        "CREATE TRIGGER spoil BEFORE INSERT ON artifacts FOR EACH ROW EXECUTE FUNCTION spoil()",
        database_url.rpartition("/")[2],
    )
    try:
        with pytest.raises(StoreError, match="artifacts") as refused:
            copy_directory(directory, database_url)
        assert refused.value.code == "copy-differs"
        assert await is_empty(database_url)
    finally:  # other tests use the database
        postgres.execute("DROP FUNCTION spoil CASCADE", database_url.rpartition("/")[2])


async def logged(log: AuditLog, *actions: str) -> None:
    for action in actions:
        await log.append({"action": action})
    await log.close()


async def test_the_audit_log_is_one_chain_over_both(directory: Path, database_url: str) -> None:
    await logged(AuditLog(directory), "login", "token.created")
    await logged(AuditLog(directory), "token.revoked")
    before = [each["action"] for each in read_entries(directory)]
    lines = sum(len(each.read_bytes().splitlines()) for each in audit_files(directory))
    assert copy_directory(directory, database_url).audit_lines == lines
    files = PostgresAuditFiles(database_url)
    try:
        await logged(AuditLog(files), "service.started")
        assert [each["action"] for each in read_entries(files)] == [*before, "service.started"]
        assert verify(files) == []
        *_, last_copied = audit_files(directory)
        files._rows("DELETE FROM audit_lines WHERE file = %s", (last_copied.name,))
        assert [str(each) for each in verify(files)], "the first line of the next one names it"
    finally:
        files.close()


async def test_a_changed_line_of_the_audit_log_is_a_changed_line_of_the_copy(
    directory: Path, database_url: str
) -> None:
    await logged(AuditLog(directory), "login", "token.created")
    (file,) = audit_files(directory)
    file.write_bytes(file.read_bytes().replace(b"login", b"lo\0\xffn") + b'{"cut')
    assert copy_directory(directory, database_url).audit_lines >= 3
    files = PostgresAuditFiles(database_url)
    try:
        assert [each.message for each in verify(files)] == ["the line was changed"]
    finally:
        files.close()


async def test_a_directory_that_is_in_use_or_empty_is_refused(
    directory: Path, database_url: str, tmp_path: Path
) -> None:
    async with SqliteStore.open(directory):
        with pytest.raises(StoreError) as refused:
            copy_directory(directory, database_url)
        assert refused.value.code == "storage-locked"
    with pytest.raises(StoreError) as refused:
        copy_directory(tmp_path / "nothing", database_url)
    assert refused.value.code == "store-unusable"
    assert not (tmp_path / "nothing").exists()


async def test_a_database_whose_executions_are_driven_is_refused(
    directory: Path, database_url: str, tmp_path: Path
) -> None:
    async with PostgresStore.open(database_url, directory=tmp_path / "driver"):
        with pytest.raises(StoreError) as refused:
            copy_directory(directory, database_url)
    assert refused.value.code == "storage-locked"
    assert copy_directory(directory, database_url).rows["executions"] == 3


async def add_keys(directory: Path, *keys: str) -> None:
    async with SqliteStore.open(directory) as store:
        for key in keys:
            await store.claim_idempotency_key(key, f"digest of {key}", AT, expired=AT)


async def test_keys_with_nul_are_found_in_the_copy(directory: Path, database_url: str) -> None:
    keys = ("", "\0", "a\0", "a\0\0b", "a\0c", "aa", "a\ufffdb", "b", "\uffff", "\U0001f30a")
    await add_keys(directory, *keys)
    assert copy_directory(directory, database_url).rows["answers"] == len(keys) + 1
    async with PostgresStore.open(database_url) as store:
        for key in keys:
            kept = await store.idempotency_record(key)
            assert kept is not None
            assert kept.digest == f"digest of {key}".replace("\0", "\ufffd")


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        (("a\0b", "a\ufffdb"), "a\\ufffdb"),
        (("z" + "".join(f"{n:x}" for n in range(7_000)),), "z01234"),
    ],
)
async def test_a_row_that_cannot_be_kept_is_named(
    directory: Path, database_url: str, keys: tuple[str, ...], named: str
) -> None:
    await add_keys(directory, *keys)
    with pytest.raises(StoreError, match="of the table answers cannot be stored") as refused:
        copy_directory(directory, database_url)
    assert refused.value.code == "not-storable"
    assert named in ascii(refused.value.message)
    async with PostgresStore.open(database_url) as store:
        assert await store.plans() == []


async def test_links_open_something_in_one_place(directory: Path, database_url: str) -> None:
    link = LinkRecord("l", "d", "result", "x0", AT, "2999-01-01T00:00:00.000000+00:00")
    ended = LinkRecord("m", "e", "result", "x0", AT, link.expires_at)
    async with SqliteStore.open(directory) as before:
        await before.links.create(link)
        await before.links.create(ended)
        await before.links.end("m", "used")
    copy_directory(directory, database_url)
    async with (
        SqliteStore.open(directory, read_only=True) as before,
        PostgresStore.open(database_url) as after,
    ):
        assert await before.links.by_digest("d") == link
        assert await after.links.by_digest("d") is None
        used = await after.links.by_digest("e")
        assert used is not None
        assert used.ended == "used"
