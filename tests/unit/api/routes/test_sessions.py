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


async def test_session_cookie_is_issued_and_revoked(
    locked: RunningServer,
) -> None:
    own = {"origin": locked.base_url}
    async with httpx2.AsyncClient(base_url=locked.base_url, headers=own) as browser:
        assert (await browser.get("/api/plans")).status_code == 401
        opened = await browser.post("/api/session", json={"token": TOKEN})
        assert (opened.status_code, opened.content) == (204, b"")
        stored = dict(browser.cookies)
        assert (await browser.get("/api/plans")).status_code == 200
        assert (await browser.post("/api/check", json={"graph": {}})).status_code == 200
        assert (await browser.delete("/api/session")).status_code == 204
        assert not browser.cookies
        browser.cookies.update(stored)
        assert (await browser.get("/api/plans")).status_code == 401


async def test_session_cookie_is_http_only_strict_and_secure_behind_https(
    locked: RunningServer,
) -> None:
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


@pytest.mark.parametrize("body", [{"token": "wrong"}, {"token": ""}])
async def test_wrong_token_opens_no_session(locked: RunningServer, body: dict[str, str]) -> None:
    answer = httpx2.post(f"{locked.base_url}/api/session", json=body)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


async def test_invalid_body_is_not_echoed(locked: RunningServer) -> None:
    answer = httpx2.post(f"{locked.base_url}/api/session", json={"token": ["sesame"]})
    assert answer.status_code == 422
    assert "sesame" not in answer.text


async def test_session_without_configured_token_sets_no_cookie(server: RunningServer) -> None:
    answer = httpx2.post(f"{server.base_url}/api/session", json={"token": "any"})
    assert answer.status_code == 204
    assert "set-cookie" not in answer.headers


def test_closed_session_stays_closed_after_restart(tmp_path: Path) -> None:
    with running_server(token=TOKEN, directory=tmp_path) as first:
        own = {"origin": first.base_url}
        with httpx2.Client(base_url=first.base_url, headers=own) as browser:
            browser.post("/api/session", json={"token": TOKEN})
            stored = dict(browser.cookies)
            assert browser.delete("/api/session").status_code == 204
    with running_server(token=TOKEN, directory=tmp_path) as second:
        own = {"origin": second.base_url}
        with httpx2.Client(base_url=second.base_url, headers=own, cookies=stored) as browser:
            assert browser.get("/api/plans").status_code == 401
