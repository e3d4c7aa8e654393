from pathlib import Path

import httpx2
import pytest

from tests.support.server.raw_http import raw_connection
from tests.support.server.running_server import RunningServer, running_server

TOKEN = "the service's token"


@pytest.fixture(scope="module")
def locked():
    with running_server(token=TOKEN) as running:
        yield running


async def test_a_browser_trades_the_token_for_a_cookie_and_gives_it_back(
    locked: RunningServer,
) -> None:
    own = {"origin": locked.base_url}
    async with httpx2.AsyncClient(base_url=locked.base_url, headers=own) as browser:
        assert (await browser.get("/api/plans")).status_code == 401
        opened = await browser.post("/api/session", json={"token": TOKEN})
        assert (opened.status_code, opened.content) == (204, b"")
        kept = dict(browser.cookies)
        assert (await browser.get("/api/plans")).status_code == 200
        assert (await browser.post("/api/check", json={"graph": {}})).status_code == 200
        assert (await browser.delete("/api/session")).status_code == 204
        assert not browser.cookies
        browser.cookies.update(kept)
        assert (await browser.get("/api/plans")).status_code == 401


async def test_no_script_and_no_other_site_has_the_cookie(locked: RunningServer) -> None:
    for more, secure in (((), False), (("X-Forwarded-Proto: https",), True)):
        body = f'{{"token": "{TOKEN}"}}'.encode()
        async with raw_connection(locked) as raw:
            await raw.send(
                "POST", "/api/session", "Content-Type: application/json",
                f"Content-Length: {len(body)}", *more, body=body,
            )  # fmt: skip
            cookie = (await raw.read_response()).headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert "Path=/" in cookie
        assert ("Secure" in cookie) is secure
        assert TOKEN not in cookie


async def test_a_cookie_from_a_foreign_page_is_refused(locked: RunningServer) -> None:
    async with httpx2.AsyncClient(base_url=locked.base_url) as browser:
        await browser.post("/api/session", json={"token": TOKEN})
        for headers in ({"origin": "https://evil.example"}, {}):
            answer = await browser.post("/api/check", json={"graph": {}}, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


@pytest.mark.parametrize("body", [{"token": "wrong"}, {"token": ""}])
async def test_a_wrong_token_opens_nothing(locked: RunningServer, body: dict[str, str]) -> None:
    answer = httpx2.post(f"{locked.base_url}/api/session", json=body)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


async def test_what_was_sent_is_not_told_back(locked: RunningServer) -> None:
    answer = httpx2.post(f"{locked.base_url}/api/session", json={"token": ["sesame"]})
    assert answer.status_code == 422
    assert "sesame" not in answer.text


async def test_where_no_token_is_needed_there_is_nothing_to_open(server: RunningServer) -> None:
    answer = httpx2.post(f"{server.base_url}/api/session", json={"token": "any"})
    assert answer.status_code == 204
    assert "set-cookie" not in answer.headers


def test_a_session_closed_over_http_is_closed_after_a_restart(tmp_path: Path) -> None:
    with running_server(token=TOKEN, directory=tmp_path) as first:
        own = {"origin": first.base_url}
        with httpx2.Client(base_url=first.base_url, headers=own) as browser:
            browser.post("/api/session", json={"token": TOKEN})
            kept = dict(browser.cookies)
            assert browser.delete("/api/session").status_code == 204
    with running_server(token=TOKEN, directory=tmp_path) as second:
        own = {"origin": second.base_url}
        with httpx2.Client(base_url=second.base_url, headers=own, cookies=kept) as browser:
            assert browser.get("/api/plans").status_code == 401
