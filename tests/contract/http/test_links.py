"""Links over HTTP: what each shows, when it opens nothing, and that nobody else learns its key."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from planwave.api.link_pages.pages import NOTICES
from planwave.graph.model import Graph, Node
from planwave.service.links import digest_of
from planwave.settings import Limits, Settings
from planwave.storage.audit import AuditLog, read_entries
from planwave.storage.links import LinkRecord
from planwave.storage.sqlite.store import SqliteStore
from tests.support.graph.builders import make_graph, text_node
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.server.running_server import NO_RATE_LIMITS
from tests.support.service.dependencies import dependencies

OPERATOR = "the operator's secret token"
BEARER = {"authorization": f"Bearer {OPERATOR}"}
CANARY = "canary-4711"
OWN_FORM = {"origin": "http://127.0.0.1"}
"""What a browser sends with the form over plain HTTP: ``Sec-Fetch-Site`` only where the connection is trustworthy."""
GOOD = "# Three days\n\nGo **there**."
ASKS = make_graph(
    Node("s", "start", "S"),
    text_node("secret", f"{CANARY} prompt"),
    text_node("letter", GOOD),
    Node(
        "q",
        "approval",
        "Check",
        data={"prompt": "Send *it*?", "timeoutS": 3_600, "timeoutAction": "reject"},
    ),
    edges=[("s", "secret"), ("secret", "letter"), ("letter", "q")],
)


@dataclass
class Clock:
    """A clock that a test sets."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __call__(self) -> datetime:
        return self.now

    def skip(self, **much: float) -> None:
        self.now += timedelta(**much)


@dataclass
class Asked:
    """An execution that waits, and a link that answers."""

    client: InProcessClient
    clock: Clock
    execution_id: str
    request_id: str
    link: dict[str, Any]

    @property
    def path(self) -> str:
        return f"/links/{self.link['key']}"

    async def send(self, decision: str = "approve", **more: str) -> httpx2.Response:
        """Send the form of the page, as a browser does."""
        fields = {"request_id": self.request_id, "decision": decision, **more}
        return await self.client.post(self.path, data=fields, headers=OWN_FORM)

    async def is_open(self) -> bool:
        path = f"/api/executions/{self.execution_id}/requests"
        return bool((await self.client.get(path, headers=BEARER)).json()["requests"])


@asynccontextmanager
async def service(clock: Clock | None = None, **more: Any) -> AsyncGenerator[InProcessClient]:
    chosen = {name: more[name] for name in ("public_url", "limits") if name in more}
    parts = dependencies(**more, **({"now": clock} if clock else {}))
    async with in_process_client(parts, token=SecretStr(OPERATOR), **chosen) as client:
        yield client


async def run(client: InProcessClient, graph: Graph = ASKS) -> str:
    """Run a graph until it ends or waits."""
    body = {"graph": graph.to_document(), "start": True}
    made = await client.post("/api/execute", json=body, headers=BEARER)
    assert made.status_code == 202, made.text
    execution_id = made.json()["execution_id"]
    await client.service.executions.wait(execution_id)
    return execution_id


async def link_to(client: InProcessClient, execution_id: str, **body: Any) -> dict[str, Any]:
    path = f"/api/executions/{execution_id}/links"
    made = await client.post(path, json=body, headers=BEARER)
    assert made.status_code == 201, made.text
    return made.json()


@asynccontextmanager
async def asked(graph: Graph = ASKS, **more: Any) -> AsyncGenerator[Asked]:
    clock = Clock()
    async with service(clock, **more) as client:
        execution_id = await run(client, graph)
        path = f"/api/executions/{execution_id}/requests"
        (request,) = (await client.get(path, headers=BEARER)).json()["requests"]
        request_id = request["request_id"]
        link = await link_to(client, execution_id, kind="request", request_id=request_id)
        yield Asked(client, clock, execution_id, request_id, link)


def words(answer: httpx2.Response) -> str:
    """Return the text of a page, without its style and its tags."""
    body = answer.text[answer.text.index("<body>") :]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


def assert_says(answer: httpx2.Response, code: str, status: int = 410) -> None:
    assert answer.status_code == status, answer.text
    assert f'data-code="{code}"' in answer.text
    assert NOTICES[code].title in words(answer)
    assert "<form" not in answer.text


def assert_keeps_secret(answer: httpx2.Response) -> None:
    """Check what keeps the key and the page to the one who has it."""
    headers = answer.headers
    assert headers["referrer-policy"] == "strict-origin"  # else ``Origin: null``
    assert headers["cache-control"] == "no-store"
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert "noindex" in headers["x-robots-tag"]
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "script-src" not in policy
    assert "unsafe" not in policy
    assert "<script" not in answer.text


# -- a link that shows something -------------------------------------------------------------------


async def test_a_link_to_a_result_shows_it_and_no_prompt_and_no_neighbour() -> None:
    async with service() as client:
        other = await run(client, make_graph(text_node("n", "the neighbour")))
        graph = make_graph(
            Node("s", "start", "S"), text_node("hidden", f"{CANARY} step"),
            text_node("letter", GOOD), edges=[("s", "hidden"), ("hidden", "letter")],
        )  # fmt: skip
        body = {"graph": graph.to_document(), "start": True, "inputs": {"s": {"output": CANARY}}}
        made = await client.post("/api/execute", json=body, headers=BEARER)
        assert made.status_code == 202, made.text
        execution_id = made.json()["execution_id"]
        await client.service.executions.wait(execution_id)
        link = await link_to(client, execution_id)
        page = await client.get(f"/links/{link['key']}")
        assert page.status_code == 200
        assert_keeps_secret(page)
        assert '<h2 dir="auto">Three days</h2>' in page.text
        assert "<strong>there</strong>" in page.text
        assert CANARY not in page.text
        for hidden in ("neighbour", other, execution_id, "hidden"):
            assert hidden not in page.text


async def test_a_link_to_a_run_shows_its_steps_too() -> None:
    async with asked() as on:
        link = await link_to(on.client, on.execution_id, kind="run")
        page = await on.client.get(f"/links/{link['key']}")
        assert [each in words(page) for each in ("secret", "letter", "Check", "waiting")] == [
            True
        ] * 4
        assert "There is no result yet" in words(page)
        assert "Send" not in words(page)  # what the step asks is no result
        assert "<form" not in page.text


async def test_a_link_to_a_run_shows_no_input() -> None:
    graph = make_graph(
        Node("s", "start", "S"), text_node("given", "x"), text_node("letter", GOOD),
        edges=[("s", "given"), ("given", "letter")],
    )  # fmt: skip
    async with service() as client:
        inputs = {"s": {"output": CANARY}, "given": {"output": f"{CANARY} too"}}
        body = {"graph": graph.to_document(), "start": True, "inputs": inputs}
        made = await client.post("/api/execute", json=body, headers=BEARER)
        assert made.status_code == 202, made.text
        execution_id = made.json()["execution_id"]
        await client.service.executions.wait(execution_id)
        link = await link_to(client, execution_id, kind="run")
        page = await client.get(f"/links/{link['key']}")
        assert "given" in words(page)
        assert page.text.count("What it delivered") == 1
        assert CANARY not in page.text


@pytest.mark.parametrize("kind", ["result", "run"])
@pytest.mark.parametrize(
    ("nodes", "edges", "given"),
    [
        ([Node("s", "start", "S")], [], "s"),
        ([Node("u", "user_input", "U")], [], "u"),
        ([Node("c", "chat_start", "C"), text_node("a", GOOD)], [], "c"),
        ([Node("s", "start", "S"), text_node("a", GOOD)], [("s", "a")], "a"),
    ],
)
async def test_what_was_given_is_no_result_either(
    kind: str, nodes: list[Node], edges: list[tuple[str, str]], given: str
) -> None:
    graph = make_graph(*nodes, edges=edges)
    handle = "message" if given == "c" else "output"
    async with service() as client:
        body = {"graph": graph.to_document(), "start": True, "inputs": {given: {handle: CANARY}}}
        made = await client.post("/api/execute", json=body, headers=BEARER)
        assert made.status_code == 202, made.text
        execution_id = made.json()["execution_id"]
        await client.service.executions.wait(execution_id)
        result = await client.get(f"/api/executions/{execution_id}/result", headers=BEARER)
        assert CANARY in result.text
        link = await link_to(client, execution_id, kind=kind)
        page = await client.get(f"/links/{link['key']}")
        assert page.status_code == 200
        assert CANARY not in page.text


@pytest.mark.parametrize(
    ("goal", "title", "shown"),
    [
        (f"{CANARY} and much more", f"{CANARY} and…", "first to last"),
        (f"{CANARY}  and\nmore", f"{CANARY.upper()} and", "first to last"),
        (f"{CANARY}", f"{CANARY}, in short", "first to last"),
        (f"A plan about {CANARY}", "A plan", "first to last"),
        (f"Write of {CANARY}", "A letter", "A letter"),
        ("", "A letter", "A letter"),
    ],
)
async def test_the_title_tells_nothing_of_the_goal(goal: str, title: str, shown: str) -> None:
    graph = make_graph(text_node("first", "x"), text_node("last", "y"), edges=[("first", "last")])
    document = {**graph.to_document(), "title": title, "user_prompt": goal}
    async with service() as client:
        made = await client.post(
            "/api/execute", json={"graph": document, "start": True}, headers=BEARER
        )
        execution_id = made.json()["execution_id"]
        await client.service.executions.wait(execution_id)
        link = await link_to(client, execution_id)
        page = await client.get(f"/links/{link['key']}")
        assert f"<title>{shown}</title>" in page.text
        path = f"/api/executions/{execution_id}"
        await client.patch(path, json={"name": "As people call it"}, headers=BEARER)
        page = await client.get(f"/links/{link['key']}")
        assert "<title>As people call it</title>" in page.text


async def test_a_flow_is_called_by_its_name_and_a_chat_never_by_its_title() -> None:
    chat = make_graph(Node("c", "chat_start", "C"), text_node("a", GOOD), edges=[("c", "a")])
    async with service() as client:
        flow = {"name": "trip", "graph": make_graph(text_node("a", GOOD)).to_document()}
        saved = (await client.post("/api/flows", json=flow, headers=BEARER)).json()
        bodies: list[tuple[dict[str, Any], str]] = [
            ({"flow": saved["plan_id"]}, "trip"),
            ({"graph": {**chat.to_document(), "title": CANARY}}, "C to a"),
        ]
        for body, shown in bodies:
            inputs = {"c": {"message": "hello"}} if "graph" in body else {}
            sent = {**body, "start": True, "inputs": inputs}
            made = await client.post("/api/execute", json=sent, headers=BEARER)
            assert made.status_code == 202, made.text
            execution_id = made.json()["execution_id"]
            await client.service.executions.wait(execution_id)
            link = await link_to(client, execution_id)
            assert f"<title>{shown}</title>" in (await client.get(f"/links/{link['key']}")).text


async def test_a_link_that_shows_something_answers_nothing() -> None:
    async with asked() as on:
        link = await link_to(on.client, on.execution_id, kind="run")
        fields = {"request_id": on.request_id, "decision": "approve"}
        answer = await on.client.post(f"/links/{link['key']}", data=fields, headers=OWN_FORM)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
        assert await on.is_open()


async def test_markdown_of_a_result_brings_no_html_and_loads_nothing() -> None:
    text = (
        "<img src=x onerror=alert(1)> ![far](https://evil.example/x.png) ![near](data:image/png;base64,AA==) "
        "[out](https://evil.example) [js](javascript:alert(1))\n\n| a |\n|---|\n| b |\n\n\u0633\u0644\n"
    )
    async with service() as client:
        link = await link_to(client, await run(client, make_graph(text_node("a", text))))
        page = (await client.get(f"/links/{link['key']}")).text
        assert "<img src=x" not in page
        assert (
            '<a href="https://evil.example/x.png" rel="noreferrer noopener nofollow">far</a>'
            in page
        )
        assert '<img src="data:image/png;base64,AA==" alt="near">' in page
        assert '<a href="https://evil.example" rel="noreferrer noopener nofollow">out</a>' in page
        assert 'href="javascript:' not in page
        assert '<div class="wide" tabindex="0"><table>' in page
        assert '<p dir="auto">\u0633\u0644</p>' in page


# -- a link that answers ---------------------------------------------------------------------------


async def test_get_and_head_and_previews_decide_nothing() -> None:
    async with asked() as on:
        previews = (
            {},
            {"user-agent": "Slackbot-LinkExpanding 1.0"},
            {"sec-fetch-site": "cross-site"},
        )
        for headers in previews:
            page = await on.client.get(on.path, headers=headers)
            assert page.status_code == 200
            assert_keeps_secret(page)
            head = await on.client.head(on.path, headers=headers)
            assert (head.status_code, head.content) == (200, b"")
        for parameter in ("?decision=approve", f"?request_id={on.request_id}&decision=approve"):
            await on.client.get(on.path + parameter)
        assert await on.is_open()


async def test_the_page_shows_just_the_request() -> None:
    async with asked() as on:
        page = await on.client.get(on.path)
        assert "<em>it</em>?" in page.text
        shown = words(page)
        for part in ("Check", "What goes on", "Three days", "Approve", "Reject", "Until"):
            assert part in shown
        assert CANARY not in page.text
        assert on.execution_id not in page.text


async def test_post_decides_once_and_the_answer_names_the_link() -> None:
    async with asked() as on:
        answer = await on.send("approve", note="fine")
        assert "Recorded: Approve" in words(answer)
        assert answer.status_code == 200
        assert_keeps_secret(answer)
        await on.client.service.executions.wait(on.execution_id)
        assert_says(await on.send("reject"), "link-used")
        assert_says(await on.client.get(on.path), "link-used")
        answered = await on.client.get("/api/requests?status=answered", headers=BEARER)
        (only,) = answered.json()["requests"]
        assert only["answered"]["answer"] == {"decision": "approve", "note": "fine"}
        assert only["answered"]["answered_by"] == {
            "kind": "link", "id": on.link["link_id"], "by": {"kind": "operator"},
        }  # fmt: skip


async def test_of_two_answers_at_once_one_counts() -> None:
    async with asked() as on:
        async with asyncio.TaskGroup() as sending:
            sent = [sending.create_task(on.send(each)) for each in ("approve", "reject")]
        assert sorted(each.result().status_code for each in sent) == [200, 410]


async def test_an_answer_that_does_not_fit_is_shown_again_and_the_link_stays() -> None:
    form = {
        "type": "object",
        "properties": {"audience": {"type": "string"}, "copies": {"type": "integer"}},
        "required": ["audience"],
    }
    graph = make_graph(Node("q", "approval", "Q", data={"prompt": "Print?", "form": form}))
    async with asked(graph) as on:
        again = await on.send(**{"form.audience": "all <b>", "form.copies": "many"})
        assert again.status_code == 422
        assert 'value="all &lt;b&gt;"' in again.text
        assert 'aria-invalid="true" value="many"' in again.text
        assert 'not of type "integer"' in words(again)
        assert await on.is_open()
        good = await on.send(**{"form.audience": "all", "form.copies": "3"})
        assert good.status_code == 200
        answered = await on.client.get("/api/requests?status=answered", headers=BEARER)
        (only,) = answered.json()["requests"]
        assert only["answered"]["answer"]["form"] == {"audience": "all", "copies": 3}


async def test_an_unknown_decision_and_the_edit_of_a_plan_are_no_answers() -> None:
    async with service() as client:
        body = {"graph": make_graph(text_node("a", "x")).to_document(), "require_approval": True}
        made = await client.post("/api/execute", json={**body, "start": True}, headers=BEARER)
        execution_id = made.json()["execution_id"]
        await client.service.executions.wait(execution_id)
        path = f"/api/executions/{execution_id}/requests"
        (request,) = (await client.get(path, headers=BEARER)).json()["requests"]
        request_id = request["request_id"]
        link = await link_to(client, execution_id, kind="request", request_id=request_id)
        page = await client.get(f"/links/{link['key']}")
        assert ["Approve" in page.text, "Reject" in page.text, "Edit" in page.text] == [
            True,
            True,
            False,
        ]
        for decision in ("edit", "nonsense", ""):
            fields = {"request_id": request_id, "decision": decision}
            refused = await client.post(f"/links/{link['key']}", data=fields, headers=OWN_FORM)
            assert (refused.status_code, 'role="alert"' in refused.text) == (422, True)
        fields = {"request_id": request_id, "decision": "approve"}
        taken = await client.post(f"/links/{link['key']}", data=fields, headers=OWN_FORM)
        assert taken.status_code == 200
        await client.service.executions.wait(execution_id)


# -- when it opens nothing -------------------------------------------------------------------------


async def both(on: Asked, code: str) -> None:
    """Check that the page and the answer to its form say the same, and that nothing is decided."""
    assert_says(await on.client.get(on.path), code)
    assert_says(refused := await on.send(), code)
    assert_keeps_secret(refused)


async def test_expired() -> None:
    async with asked() as on:
        short = await link_to(
            on.client, on.execution_id, kind="request", request_id=on.request_id, expires_in_s=60
        )
        on.link = short
        on.clock.skip(seconds=61)
        await both(on, "link-expired")
        assert await on.is_open()


async def test_a_result_expired() -> None:
    async with asked() as on:
        link = await link_to(on.client, on.execution_id, expires_in_s=60)
        on.clock.skip(seconds=61)
        assert_says(await on.client.get(f"/links/{link['key']}"), "link-expired")


async def test_answered_elsewhere() -> None:
    async with asked() as on:
        path = f"/api/executions/{on.execution_id}/requests/{on.request_id}"
        done = await on.client.post(path, json={"decision": "approve"}, headers=BEARER)
        assert done.status_code == 200
        await both(on, "request-answered")


async def test_deadline_passed_before_anything_has_noticed() -> None:
    async with asked() as on:
        assert on.link["expires_at"] == await deadline_of(on)  # never longer than its request
        on.clock.skip(hours=1, seconds=1)
        await both(on, "request-expired")


async def deadline_of(on: Asked) -> str:
    requests = (await on.client.get("/api/requests", headers=BEARER)).json()["requests"]
    return requests[0]["deadline"]


async def test_time_was_over_and_the_run_went_on() -> None:
    data = {"prompt": "?", "timeoutS": 0.3, "timeoutAction": "reject"}
    graph = make_graph(Node("q", "approval", "Q", data=data))
    async with service() as client:
        execution_id = await run(client, graph)
        path = f"/api/executions/{execution_id}/requests"
        (request,) = (await client.get(path, headers=BEARER)).json()["requests"]
        asking = {"kind": "request", "request_id": request["request_id"]}
        link = await link_to(client, execution_id, **asking)
        async with asyncio.timeout(10):
            async for event in client.service.executions.watch(execution_id):
                if event.type == "execution.completed":
                    break
        assert_says(await client.get(f"/links/{link['key']}"), "request-expired")


async def test_the_run_was_cancelled() -> None:
    async with asked() as on:
        await on.client.post(f"/api/executions/{on.execution_id}/cancel", json={}, headers=BEARER)
        await both(on, "request-closed")


async def test_the_execution_was_deleted() -> None:
    async with asked() as on:
        shown = await link_to(on.client, on.execution_id)
        path = f"/api/executions/{on.execution_id}"
        await on.client.post(f"{path}/cancel", json={}, headers=BEARER)
        await on.client.service.executions.wait(on.execution_id)
        assert (await on.client.delete(path, headers=BEARER)).status_code == 204
        await both(on, "execution-deleted")
        assert_says(await on.client.get(f"/links/{shown['key']}"), "execution-deleted")
        listed = (await on.client.get("/api/links", headers=BEARER)).json()["links"]
        assert listed == []


async def test_revoked() -> None:
    async with asked() as on:
        path = f"/api/links/{on.link['link_id']}"
        assert (await on.client.delete(path, headers=BEARER)).status_code == 204
        assert (await on.client.delete(path, headers=BEARER)).status_code == 404
        await both(on, "link-revoked")
        assert await on.is_open()


async def test_revoked_while_its_answer_is_sent() -> None:
    async with asked() as on:
        form = f"request_id={on.request_id}&decision=approve".encode()

        async def trickle() -> AsyncGenerator[bytes]:
            yield form[:10]
            path = f"/api/links/{on.link['link_id']}"
            assert (await on.client.delete(path, headers=BEARER)).status_code == 204
            yield form[10:]

        headers = {**OWN_FORM, "content-type": "application/x-www-form-urlencoded"}
        assert_says(
            await on.client.post(on.path, content=trickle(), headers=headers), "link-revoked"
        )
        assert await on.is_open()


@pytest.mark.parametrize(
    ("expires_at", "ended", "code"),
    [
        ("2020-01-01T00:00:00.000000+00:00", None, "link-expired"),  # nothing is read for it
        ("2999-01-01T00:00:00.000000+00:00", None, "execution-deleted"),
        ("2020-01-01T00:00:00.000000+00:00", "deleted", "execution-deleted"),
    ],
)
async def test_what_a_link_itself_says_counts_first(expires_at: str, ended: Any, code: str) -> None:
    gone, at = "019a0000-0000-7000-8000-00000000000f", "2020-01-01T00:00:00.000000+00:00"
    async with service() as client:
        link = LinkRecord("l", digest_of("a" * 22), "run", gone, at, expires_at, ended=ended)
        await client.service.links._store.links.create(link)
        assert_says(await client.get(f"/links/{'a' * 22}"), code)


async def test_a_link_to_a_deleted_execution_opens_nothing_while_its_events_are_left() -> None:
    async with asked() as on:
        link = await link_to(on.client, on.execution_id)
        await on.client.service.links._store.links.end(link["link_id"], "deleted")
        assert_says(await on.client.get(f"/links/{link['key']}"), "execution-deleted")


async def test_the_form_of_another_request_decides_nothing() -> None:
    async with asked() as on:
        assert_says(await on.send(request_id="r1"), "link-of-another-request")
        assert await on.is_open()
        assert (await on.client.get(on.path)).status_code == 200


async def test_unknown_keys_are_404_and_share_a_rate_that_costs_no_link_its_own() -> None:
    async with asked(limits=Limits(requests_burst=50, requests_per_s=0.001)) as on:
        key = on.link["key"]
        for wrong in ("a" * 22, key[:-1], f"{key}x", "%00", "x" * 500):
            assert_says(await on.client.get(f"/links/{wrong}"), "unknown-link", 404)
        statuses = [(await on.client.get(f"/links/{'b' * 22}")).status_code for _ in range(60)]
        assert (statuses[0], statuses[-1]) == (404, 429)
        assert_says(limited := await on.client.get(f"/links/{'b' * 22}"), "too-many-requests", 429)
        assert int(limited.headers["retry-after"]) > 0
        assert (await on.client.get(on.path)).status_code == 200
        opened = [(await on.client.get(on.path)).status_code for _ in range(60)]
        assert opened[-1] == 429


# -- who may send the form -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (OWN_FORM, 200),
        ({"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"}, 200),
        ({}, 200),
        ({"origin": "null"}, 403),
        ({"origin": "null", "sec-fetch-site": "same-origin"}, 403),
        ({"origin": "null", "sec-fetch-site": "cross-site"}, 403),
        ({"origin": "https://evil.example", "sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
    ],
)
async def test_pages_of_other_sites_send_no_form(headers: dict[str, str], status: int) -> None:
    async with asked() as on:
        fields = {"request_id": on.request_id, "decision": "approve"}
        answer = await on.client.post(on.path, data=fields, headers=headers)
        assert answer.status_code == status
        assert await on.is_open() == (status == 403)


async def test_what_no_route_has_seen_answers_as_a_page_too() -> None:
    limits = NO_RATE_LIMITS.model_copy(update={"body_bytes": 2_000})
    async with asked(limits=limits) as on:
        get, post = on.client.get, on.client.post
        large = {"request_id": on.request_id, "decision": "approve", "note": "x" * 4_000}
        for answer, code, status in (
            (await get(f"{on.path}/"), "not-found", 404),
            (await get("/links/"), "not-found", 404),
            (await get(on.path, headers={"host": "evil.example"}), "forbidden", 403),
            (
                await post(on.path, data=large, headers={"origin": "https://e.example"}),
                "forbidden",
                403,
            ),
            (await post(on.path, data=large, headers=OWN_FORM), "limit-exceeded", 413),
            (await on.client.put(on.path, json={}), "method-not-allowed", 405),
        ):
            assert_says(answer, code, status)
            assert_keeps_secret(answer)
        assert (await on.client.put(on.path, json={})).headers["allow"] == "GET, HEAD, POST"
        assert await on.is_open()
        elsewhere = await get("/api/links/", headers=BEARER)
        assert elsewhere.headers["content-type"] == "application/problem+json"


async def test_an_answer_with_too_many_fields_is_not_called_too_large() -> None:
    async with asked() as on:
        form = {"request_id": on.request_id, **{f"x{number}": "" for number in range(1_000)}}
        answer = await on.client.post(on.path, data=form, headers=OWN_FORM)
        assert_says(answer, "invalid-body", 422)
        assert "cannot be read" in words(answer)
        assert await on.is_open()


async def test_the_usual_port_of_a_public_url_is_no_part_of_its_links() -> None:
    public = Settings(public_url="https://planwave.example.com:443/").public_url
    async with asked(public_url=public) as on:
        assert on.link["url"] == f"https://planwave.example.com{on.path}"
        headers = {"host": "planwave.example.com", "origin": "https://planwave.example.com"}
        fields = {"request_id": on.request_id, "decision": "approve"}
        assert (await on.client.post(on.path, data=fields, headers=headers)).status_code == 200


async def test_public_url_is_where_links_begin_and_where_pages_may_come_from() -> None:
    public = "https://Planwave.example.com:8443/wave"
    async with asked(public_url=public) as on:
        assert on.link["url"] == f"{public}{on.path}"
        headers = {"host": "planwave.example.com:8443"}
        assert (await on.client.get(on.path, headers=headers)).status_code == 200
        assert (await on.client.get(on.path, headers={"host": "evil.example"})).status_code == 403
        headers |= {"origin": public.lower().removesuffix("/wave")}
        fields = {"request_id": on.request_id, "decision": "approve"}
        assert (await on.client.post(on.path, data=fields, headers=headers)).status_code == 200


async def test_without_public_url_links_begin_as_they_were_asked_for() -> None:
    async with service() as client:
        link = await link_to(client, await run(client, make_graph(text_node("a", "x"))))
        assert link["url"] == f"http://127.0.0.1/links/{link['key']}"


# -- the operator ----------------------------------------------------------------------------------


async def test_links_are_listed_without_their_keys_and_pages_go_on() -> None:
    async with asked() as on:
        made = [await link_to(on.client, on.execution_id, kind="run") for _ in range(2)]
        path = f"/api/links?execution_id={on.execution_id}"
        first = (await on.client.get(f"{path}&limit=2", headers=BEARER)).json()
        rest = await on.client.get(f"{path}&cursor={first['next_cursor']}", headers=BEARER)
        listed = [*first["links"], *rest.json()["links"]]
        wanted = [made[1], made[0], on.link]
        assert [each["link_id"] for each in listed] == [each["link_id"] for each in wanted]
        assert not any({"key", "url", "digest"} & set(each) for each in listed)
        assert (await on.client.get("/api/links?execution_id=x", headers=BEARER)).json()[
            "links"
        ] == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"kind": "request"}, 422, "invalid-link"),
        ({"kind": "result", "request_id": "r1"}, 422, "invalid-link"),
        ({"kind": "request", "request_id": "r1"}, 404, "not-found"),
        ({"expires_in_s": 91 * 86_400}, 422, "invalid-link"),
        ({"expires_in_s": 0}, 422, "invalid-body"),
        ({"kind": "all"}, 422, "invalid-body"),
    ],
)
async def test_what_is_no_link_is_refused(body: dict[str, Any], status: int, code: str) -> None:
    async with asked() as on:
        path = f"/api/executions/{on.execution_id}/links"
        refused = await on.client.post(path, json=body, headers=BEARER)
        assert (refused.status_code, refused.json()["code"]) == (status, code)


async def test_an_execution_has_so_many_links_at_once() -> None:
    async with asked(limits=NO_RATE_LIMITS.model_copy(update={"links": 2})) as on:
        second = await link_to(on.client, on.execution_id)
        path = f"/api/executions/{on.execution_id}/links"
        refused = await on.client.post(path, json={}, headers=BEARER)
        assert (refused.status_code, refused.json()["limit"]) == (413, "links")
        await on.client.delete(f"/api/links/{second['link_id']}", headers=BEARER)
        await link_to(on.client, on.execution_id)


async def test_a_key_is_128_bits_and_is_nowhere_but_in_its_address(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("DEBUG"):
        store = SqliteStore.open(tmp_path / "stored")
        async with asked(store=store, audit=AuditLog(tmp_path)) as on:
            key, link_id = on.link["key"], on.link["link_id"]
            assert re.fullmatch("[A-Za-z0-9_-]{22}", key)
            assert (await on.client.get(on.path)).status_code == 200
            assert (await on.send()).status_code == 200
            assert_says(await on.send(), "link-used")
            await on.client.get("/links/" + key[:-1] + "_")
            await on.client.service.executions.wait(on.execution_id)
    with closing(sqlite3.connect(tmp_path / "stored" / "planwave.db")) as database:
        stored = "\n".join(database.iterdump())
    assert digest_of(key) in stored
    lines = list(read_entries(tmp_path))
    audit = b"".join(each.read_bytes() for each in (tmp_path / "audit").iterdir()).decode()
    of_service = [each for each in caplog.records if not each.name.startswith("httpx2")]
    logged = "\n".join(f"{each.getMessage()} {vars(each)}" for each in of_service)
    assert "/links/{key}" in logged
    for text in (stored, logged, audit):
        assert key not in text
        assert key[:-1] not in text
    by_action = {each["action"]: each for each in lines}
    assert by_action["link.created"]["ids"]["link_id"] == link_id
    answered = [each for each in lines if each["action"] == "request.answered"]
    assert [each["status"] for each in answered] == [200, 410]
    assert answered[0]["principal"]["kind"] == "link"
    assert answered[0]["ids"] == {
        "link_id": link_id, "execution_id": on.execution_id, "request_id": on.request_id,
    }  # fmt: skip


async def test_while_the_service_goes_down_nothing_is_decided() -> None:
    async with asked() as on:
        on.client.service.close_streams()
        assert_says(await on.send(), "server-draining", 503)
        assert await on.is_open()


def test_pages_of_links_are_loaded_when_one_is_opened() -> None:
    """``GET /healthz`` and the start of a service read no Markdown."""
    code = (
        "import sys, planwave.api.app; "
        "print([each for each in sys.modules if 'link_pages' in each or 'markdown_it' in each])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
