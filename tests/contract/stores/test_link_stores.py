"""What every store promises of links, whatever it is made of."""

from __future__ import annotations

from dataclasses import replace

from planwave.principals import Principal
from planwave.storage.links import LinkRecord
from planwave.storage.records import PageCursor
from planwave.storage.sql.store import Store
from tests.contract.stores.test_stores import create_ended

AT = "2026-01-01T00:00:00.000000+00:00"
NOW = "2026-01-02T00:00:00.000000+00:00"
LATER = "2026-01-03T00:00:00.000000+00:00"
BY = Principal("session", "s1")
RESULT = LinkRecord("l1", "d1", "result", "e1", AT, LATER, created_by=BY)
REQUEST = LinkRecord("l2", "d2", "request", "e1", NOW, LATER, "r7", "ops \U0001f30a")


async def test_links_are_found_by_the_digest_of_their_key(store: Store) -> None:
    assert await store.links.create(RESULT)
    assert await store.links.create(REQUEST)
    assert await store.links.by_digest("d1") == RESULT
    assert await store.links.by_digest("d2") == REQUEST
    assert await store.links.by_digest("d3") is None


async def test_a_second_link_of_a_key_changes_nothing(store: Store) -> None:
    await store.links.create(REQUEST)
    await store.links.end("l2", "revoked")
    assert not await store.links.create(replace(REQUEST, link_id="l3"))
    assert await store.links.by_digest("d2") == replace(REQUEST, ended="revoked")


async def test_lists_have_what_still_opens_something_newest_first(store: Store) -> None:
    other = replace(RESULT, link_id="l3", digest="d3", execution_id="e2")
    expired = replace(RESULT, link_id="l4", digest="d4", expires_at=NOW)
    ended = replace(RESULT, link_id="l5", digest="d5")
    for each in (RESULT, REQUEST, other, expired, ended):
        await store.links.create(each)
    await store.links.end("l5", "used")
    assert list(await store.links.page(NOW)) == [REQUEST, other, RESULT]
    assert list(await store.links.page(NOW, execution_id="e1")) == [REQUEST, RESULT]
    assert list(await store.links.page(NOW, limit=1)) == [REQUEST]
    after = PageCursor(REQUEST.created_at, REQUEST.link_id)
    assert list(await store.links.page(NOW, before=after, limit=1)) == [other]
    assert await store.links.count(NOW, "e1") == 1  # the one in a notification does not count


async def test_a_link_ends_once(store: Store) -> None:
    await store.links.create(RESULT)
    assert await store.links.end("l1", "revoked")
    assert not await store.links.end("l1", "used")
    assert not await store.links.end("nobody", "used")
    assert await store.links.by_digest("d1") == replace(RESULT, ended="revoked")


async def test_links_of_a_deleted_execution_say_so(store: Store) -> None:
    await create_ended(store, "e1")
    await store.links.create(RESULT)
    await store.links.create(replace(REQUEST, execution_id="e2"))
    await store.delete_execution("e1")
    assert await store.links.by_digest("d1") == replace(RESULT, ended="deleted")
    assert (await store.links.by_digest("d2")) == replace(REQUEST, execution_id="e2")


async def test_only_what_expired_before_a_time_is_deleted(store: Store) -> None:
    await store.links.create(replace(RESULT, expires_at=AT))
    await store.links.create(REQUEST)
    await store.links.delete_expired(AT)
    assert await store.links.by_digest("d1") is not None
    await store.links.delete_expired(NOW)
    assert await store.links.by_digest("d1") is None
    assert await store.links.by_digest("d2") == REQUEST
