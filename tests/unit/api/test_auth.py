import hmac
import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.requests import HTTPConnection

from planwave.api.auth import Authenticator
from planwave.api.session_cookies import FILE_NAME, KEY_FILE_NAME, SESSION_COOKIE, SESSION_S
from planwave.errors import Forbidden, StoreError, TooManyRequests, Unauthorized
from planwave.principals import LOCAL, OPERATOR
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


async def test_closed_session_stays_closed_after_reopening(tmp_path: Path) -> None:
    ours = access()
    ours.sessions.open(tmp_path)
    left, other = session(ours), session(ours)
    ours.sessions.revoke(with_cookie(left))
    await ours.sessions.store()
    again = access()
    again.sessions.open(tmp_path)
    with pytest.raises(Unauthorized):
        again.check(with_cookie(left))
    assert again.check(with_cookie(other)).kind == "session"
    assert TOKEN not in (tmp_path / FILE_NAME).read_text()


def test_key_of_cookies_is_random_private_and_outlives_a_restart(tmp_path: Path) -> None:
    ours = access()
    ours.sessions.open(tmp_path)
    cookie = session(ours)
    key = tmp_path / KEY_FILE_NAME
    assert key.stat().st_mode & 0o777 == 0o600
    again = access()
    again.sessions.open(tmp_path)
    assert again.check(with_cookie(cookie)).kind == "session"
    changed = access("another token")
    changed.sessions.open(tmp_path)
    elsewhere, unstored = access(), access()
    (tmp_path / "elsewhere").mkdir()
    elsewhere.sessions.open(tmp_path / "elsewhere")
    for other in (changed, elsewhere, unstored):
        with pytest.raises(Unauthorized):
            other.check(with_cookie(cookie))
    assert len({(tmp_path / each / KEY_FILE_NAME).read_bytes() for each in (".", "elsewhere")}) == 2


def test_cookie_proves_no_guess_of_the_token(tmp_path: Path) -> None:
    ours = access()
    ours.sessions.open(tmp_path)
    claims, _, signature = session(ours).rpartition(".")
    for text in (b"", b"planwave session\0", b"planwave session"):
        for guess in (text + TOKEN.encode(), TOKEN.encode() + text):
            for key in (guess, sha256(guess).digest()):
                assert hmac.new(key, claims.encode(), "sha256").hexdigest() != signature


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_unreadable_key_stops_the_start(tmp_path: Path, content: bytes) -> None:
    (tmp_path / KEY_FILE_NAME).write_bytes(content)
    with pytest.raises(StoreError) as caught:
        access().sessions.open(tmp_path)
    assert caught.value.code == "store-unreadable"
    assert "log in again" in str(caught.value.hint)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Cross-Site", " same-site "])
@pytest.mark.parametrize("token", [None, TOKEN])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE", None])
def test_requests_of_other_sites_are_refused_and_not_counted(
    site: str, token: str | None, method: str | None
) -> None:
    ours = access(token, requests_burst=1, requests_per_s=0.001)
    bearer = f"Bearer {TOKEN}"
    for headers in (
        {},
        {"authorization": bearer},
        {"cookie": f"{SESSION_COOKIE}={session(access())}"},
    ):
        for mode in ("navigate", "no-cors", "cors"):
            with pytest.raises(Forbidden):
                ours.check(request(method, sec_fetch_site=site, sec_fetch_mode=mode, **headers))
    assert ours.check(request("GET", authorization=bearer))


@pytest.mark.parametrize(
    "headers",
    [
        {}, {"sec_fetch_site": "same-origin"}, {"sec_fetch_site": "none"},
        {"sec_fetch_site": "cross-site", "origin": "https://allowed.example"},
        {"sec_fetch_site": "same-site", "origin": "http://127.0.0.1"},
    ],
    ids=str,
)  # fmt: skip
def test_programs_own_pages_and_allowed_origins_are_let_in(headers: dict[str, str]) -> None:
    for method in ("GET", "POST", None):
        assert (
            access().check(request(method, authorization=f"Bearer {TOKEN}", **headers)) == OPERATOR
        )


async def test_expired_closed_sessions_are_removed(tmp_path: Path) -> None:
    time = [1_000.0]
    ours = access(now=lambda: time[0])
    ours.sessions.open(tmp_path)
    ours.sessions.revoke(with_cookie(session(ours)))
    time[0] += SESSION_S + 1
    late = session(ours)
    ours.sessions.revoke(with_cookie(late))
    await ours.sessions.store()
    assert list(json.loads((tmp_path / FILE_NAME).read_bytes())) == [late.rpartition(".")[0]]


async def test_session_is_closed_in_memory_when_store_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ours = access()
    gone = tmp_path / "gone"
    gone.mkdir()
    ours.sessions.open(gone)
    shutil.rmtree(gone)
    cookie = session(ours)
    ours.sessions.revoke(with_cookie(cookie))
    await ours.sessions.store()
    with pytest.raises(Unauthorized):
        ours.check(with_cookie(cookie))
    assert "until a restart" in caplog.text


@pytest.mark.parametrize("content", ["", "[]", '{"a": null}', '{"a": "b"}'])
def test_unreadable_session_file_stops_the_start(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE_NAME).write_text(content)
    with pytest.raises(StoreError) as caught:
        access().sessions.open(tmp_path)
    assert caught.value.code == "store-unreadable"
    assert FILE_NAME in caught.value.message


@pytest.mark.parametrize(
    "value", [b"Bearer " + TOKEN.encode(), b"bearer   " + TOKEN.encode() + b" "]
)
def test_token_is_accepted_with_any_characters(value: bytes) -> None:
    assert access().check(request(authorization=value)) == OPERATOR


@pytest.mark.parametrize(
    "value",
    [
        b"", b"Bearer", b"Bearer ", b"Bearer null", b"Bearer t\xf6ken", b"Bearer \xff\xfe\x00",
        b"Basic " + TOKEN.encode(), TOKEN.encode(), b"Bearer " + TOKEN.encode() + b"x",
    ],
)  # fmt: skip
def test_wrong_authorization_header_is_rejected(value: bytes) -> None:
    with pytest.raises(Unauthorized):
        access().check(request(authorization=value))


def test_missing_authorization_header_is_rejected() -> None:
    with pytest.raises(Unauthorized):
        access().check(request())


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer ", "Bearer null", "Bearer None"])
def test_empty_token_matches_nothing(given: str) -> None:
    with pytest.raises(Unauthorized):
        access("").check(request(authorization=given))
    with pytest.raises(Unauthorized):
        access("").issue_session_cookie("")


def test_without_token_every_request_is_accepted() -> None:
    open_to_all = access(None)
    assert open_to_all.check(request()) == LOCAL
    assert open_to_all.check(bearing("anything")) == LOCAL
    assert open_to_all.issue_session_cookie("anything") is None


def session(of: Authenticator) -> str:
    cookie = of.issue_session_cookie(TOKEN)
    assert cookie is not None
    return cookie


def test_session_does_not_contain_the_token() -> None:
    ours = access()
    cookie = session(ours)
    assert TOKEN not in cookie
    assert cookie != session(ours)
    shown = ours.check(with_cookie(cookie))
    assert shown.id is not None
    assert shown.id not in cookie
    assert shown != ours.check(with_cookie(session(ours)))
    assert ours.check(with_cookie(cookie)).kind == "session"


def test_session_ends_by_expiry_token_change_or_close() -> None:
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
    assert ours.check(with_cookie(other)).kind == "session"


@pytest.mark.parametrize(
    "forged", ["", ".", "..", "9999999999.x.y", "9999999999..", "é.é.é", "x" * 5_000]
)
def test_forged_session_is_rejected(forged: str) -> None:
    ours = access()
    with pytest.raises(Unauthorized):
        ours.check(request(cookie=f"{SESSION_COOKIE}={forged}"))
    ours.sessions.revoke(request(cookie=f"{SESSION_COOKIE}={forged}"))


def test_changed_expiry_invalidates_session() -> None:
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
def test_cookie_from_own_page_is_accepted(method: str | None, headers: dict[str, str]) -> None:
    ours = access()
    assert ours.check(with_cookie(session(ours), method, **headers)).kind == "session"


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
def test_cookie_from_unknown_page_is_rejected(method: str | None, headers: dict[str, str]) -> None:
    ours = access()
    with pytest.raises(Forbidden):
        ours.check(with_cookie(session(ours), method, **headers))


def test_wrong_token_with_valid_cookie_is_rejected() -> None:
    ours = access()
    with pytest.raises(Unauthorized):
        ours.check(with_cookie(session(ours), authorization="Bearer wrong"))


def test_failed_logins_and_requests_have_separate_rate_limits() -> None:
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


def test_executions_per_minute_are_limited() -> None:
    ours = access(executions_per_minute=2)
    for _ in range(2):
        ours.check_execution_rate("operator")
    with pytest.raises(TooManyRequests, match="executions") as refused:
        ours.check_execution_rate("operator")
    assert 29 < refused.value.retry_after_s <= 30
    assert refused.value.hint == (
        "try again in 30 s, or raise PLANWAVE_LIMIT_EXECUTIONS_PER_MINUTE"
    )
