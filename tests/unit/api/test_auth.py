import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.requests import HTTPConnection

from planwave.api.auth import Authenticator
from planwave.api.session_cookies import FILE_NAME, SESSION_COOKIE, SESSION_S
from planwave.errors import Forbidden, StoreError, TooManyRequests, Unauthorized
from planwave.settings import Limits, Settings

TOKEN = "tök€n"


def access(token: str | None = TOKEN, now: Any = lambda: 1_000.0, **limits: Any) -> Authenticator:
    secret = None if token is None else SecretStr(token)
    return Authenticator(Settings(token=secret, limits=Limits(**limits)), now)


def request(method: str | None = "GET", **headers: bytes | str) -> HTTPConnection:
    given = [
        (name.replace("_", "-").encode(), value if isinstance(value, bytes) else value.encode())
        for name, value in headers.items()
    ]
    scope: dict[str, Any] = {"type": "http", "headers": given}
    return HTTPConnection({**scope, "method": method} if method else {**scope, "type": "websocket"})


def bearing(token: bytes | str) -> HTTPConnection:
    raw = token if isinstance(token, bytes) else token.encode()
    return request(authorization=b"Bearer " + raw)


def with_cookie(value: str, method: str | None = "GET", **headers: str) -> HTTPConnection:
    return request(method, cookie=f"{SESSION_COOKIE}={value}", **headers)


async def test_a_closed_session_stays_closed_over_a_restart(tmp_path: Path) -> None:
    ours = access()
    ours.sessions.open(tmp_path)
    left, other = session(ours), session(ours)
    ours.sessions.revoke(with_cookie(left))
    await ours.sessions.store()
    again = access()
    again.sessions.open(tmp_path)
    with pytest.raises(Unauthorized):
        again.check(with_cookie(left))
    assert again.check(with_cookie(other)) == "owner"
    assert TOKEN not in (tmp_path / FILE_NAME).read_text()


async def test_a_closed_session_is_forgotten_once_its_time_is_over(tmp_path: Path) -> None:
    time = [1_000.0]
    ours = access(now=lambda: time[0])
    ours.sessions.open(tmp_path)
    ours.sessions.revoke(with_cookie(session(ours)))
    time[0] += SESSION_S + 1
    late = session(ours)
    ours.sessions.revoke(with_cookie(late))
    await ours.sessions.store()
    assert list(json.loads((tmp_path / FILE_NAME).read_bytes())) == [late.rpartition(".")[0]]


async def test_a_session_is_closed_where_that_cannot_be_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ours = access()
    ours.sessions.open(tmp_path / "gone")
    cookie = session(ours)
    ours.sessions.revoke(with_cookie(cookie))
    await ours.sessions.store()
    with pytest.raises(Unauthorized):
        ours.check(with_cookie(cookie))
    assert "until a restart" in caplog.text


@pytest.mark.parametrize("content", ["", "[]", '{"a": null}', '{"a": "b"}'])
def test_closed_sessions_that_cannot_be_read_stop_the_start(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE_NAME).write_text(content)
    with pytest.raises(StoreError) as caught:
        access().sessions.open(tmp_path)
    assert caught.value.code == "store-unreadable"
    assert FILE_NAME in caught.value.message


@pytest.mark.parametrize(
    "value", [b"Bearer " + TOKEN.encode(), b"bearer   " + TOKEN.encode() + b" "]
)
def test_the_token_lets_in_whatever_its_letters(value: bytes) -> None:
    assert access().check(request(authorization=value)) == "owner"


@pytest.mark.parametrize(
    "value",
    [
        b"", b"Bearer", b"Bearer ", b"Bearer null", b"Bearer t\xf6ken", b"Bearer \xff\xfe\x00",
        b"Basic " + TOKEN.encode(), TOKEN.encode(), b"Bearer " + TOKEN.encode() + b"x",
    ],
)  # fmt: skip
def test_anything_else_does_not(value: bytes) -> None:
    with pytest.raises(Unauthorized):
        access().check(request(authorization=value))


def test_nothing_does_not_either() -> None:
    with pytest.raises(Unauthorized):
        access().check(request())


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer ", "Bearer null", "Bearer None"])
def test_an_empty_token_is_matched_by_nothing(given: str) -> None:
    with pytest.raises(Unauthorized):
        access("").check(request(authorization=given))
    with pytest.raises(Unauthorized):
        access("").issue_session_cookie("")


def test_without_a_token_everybody_is_let_in_and_gets_no_cookie() -> None:
    open_to_all = access(None)
    assert open_to_all.check(request()) == "local"
    assert open_to_all.check(bearing("anything")) == "local"
    assert open_to_all.issue_session_cookie("anything") is None


def session(of: Authenticator) -> str:
    cookie = of.issue_session_cookie(TOKEN)
    assert cookie is not None
    return cookie


def test_a_session_stands_for_the_token_without_holding_it() -> None:
    ours = access()
    cookie = session(ours)
    assert TOKEN not in cookie
    assert cookie != session(ours)
    assert ours.check(with_cookie(cookie)) == "owner"
    assert access().check(with_cookie(cookie)) == "owner"  # a restart ends no session


def test_a_session_ends_with_its_time_its_token_and_its_close() -> None:
    ours = access()
    cookie = session(ours)
    late = access(now=lambda: 1_000.0 + SESSION_S)
    for each in (late, access("another")):
        with pytest.raises(Unauthorized):
            each.check(with_cookie(cookie))
    other = session(ours)
    ours.sessions.revoke(with_cookie(cookie))
    with pytest.raises(Unauthorized):
        ours.check(with_cookie(cookie))
    assert ours.check(with_cookie(other)) == "owner"


@pytest.mark.parametrize(
    "forged", ["", ".", "..", "9999999999.x.y", "9999999999..", "é.é.é", "x" * 5_000]
)
def test_a_made_up_session_lets_nobody_in(forged: str) -> None:
    ours = access()
    with pytest.raises(Unauthorized):
        ours.check(request(cookie=f"{SESSION_COOKIE}={forged}"))
    ours.sessions.revoke(request(cookie=f"{SESSION_COOKIE}={forged}"))


def test_a_longer_life_cannot_be_written_into_a_session() -> None:
    ours = access()
    until, _, rest = session(ours).partition(".")
    with pytest.raises(Unauthorized):
        ours.check(with_cookie(f"{int(until) + 1}.{rest}"))


@pytest.mark.parametrize("guess", ["", "tok", TOKEN + " ", "\ud800"])
def test_only_the_token_opens_a_session(guess: str) -> None:
    with pytest.raises(Unauthorized):
        access().issue_session_cookie(guess)


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {}),
        ("GET", {"sec_fetch_site": "same-origin"}),
        ("GET", {"sec_fetch_site": "none"}),
        ("POST", {"origin": "http://127.0.0.1"}),
        (None, {"origin": "http://127.0.0.1"}),
    ],
)
def test_a_cookie_is_taken_from_our_own_pages(method: str | None, headers: dict[str, str]) -> None:
    ours = access()
    assert ours.check(with_cookie(session(ours), method, **headers)) == "owner"


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("POST", {}),
        ("DELETE", {}),
        (None, {}),
        ("GET", {"sec_fetch_site": "cross-site"}),
        ("GET", {"sec_fetch_site": "same-site"}),
        ("POST", {"sec_fetch_site": "same-origin"}),
    ],
)
def test_a_cookie_that_comes_from_nowhere_known_is_not_taken(
    method: str | None, headers: dict[str, str]
) -> None:
    ours = access()
    with pytest.raises(Forbidden):
        ours.check(with_cookie(session(ours), method, **headers))


def test_a_wrong_token_is_not_made_good_by_a_cookie() -> None:
    ours = access()
    with pytest.raises(Unauthorized):
        ours.check(with_cookie(session(ours), authorization="Bearer wrong"))


def test_requests_are_counted_and_guesses_apart_from_them() -> None:
    ours = access(requests_per_s=0.001, requests_burst=2)
    for _ in range(2):
        with pytest.raises(Unauthorized):
            ours.check(request())
    for guess in (lambda: ours.check(request()), lambda: ours.issue_session_cookie("no")):
        with pytest.raises(TooManyRequests):
            guess()
    for _ in range(2):
        ours.check(bearing(TOKEN))
    with pytest.raises(TooManyRequests) as refused:
        ours.check(bearing(TOKEN))
    raised = "PLANWAVE_LIMIT_REQUESTS_PER_S and PLANWAVE_LIMIT_REQUESTS_BURST"
    assert raised in (refused.value.hint or "")


def test_executions_are_counted_by_the_minute() -> None:
    ours = access(executions_per_minute=2)
    for _ in range(2):
        ours.check_execution_rate("owner")
    with pytest.raises(TooManyRequests, match="executions") as refused:
        ours.check_execution_rate("owner")
    assert 29 < refused.value.retry_after_s <= 30
    assert refused.value.hint == (
        "try again in 30 s, or raise PLANWAVE_LIMIT_EXECUTIONS_PER_MINUTE"
    )
