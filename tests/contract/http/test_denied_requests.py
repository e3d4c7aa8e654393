"""Why a request was not allowed is in the operator's log, and never in the answer."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from pydantic import SecretStr

from planwave.api.logging_config import ACCESS_LOG
from planwave.api.session_cookies import SESSION_COOKIE
from planwave.log_records import FIELDS
from planwave.service.service_log import ServiceLog
from tests.contract.http.test_access_matrix import OPERATOR, bearing, program
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies
from tests.support.triggers.hook_sender import (
    OTHER_SECRET,
    hook_flow,
    hook_service,
    listening,
    signed,
)

SAID = {"code": "unauthorized", "detail": "the bearer token is missing or wrong"}


def reasons(caplog: pytest.LogCaptureFixture, logger: str = ACCESS_LOG.name) -> list[Any]:
    found = [getattr(each, FIELDS).get("reason") for each in caplog.records if each.name == logger]
    caplog.clear()
    return found


async def denied(calls: InProcessClient, headers: dict[str, str]) -> dict[str, Any]:
    calls.headers.pop("authorization", None)
    answer = await calls.get("/api/plans", headers=headers)
    assert answer.status_code == 401
    problem = answer.json()
    return {name: problem[name] for name in SAID}


async def test_why_a_credential_was_refused_is_in_the_log_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, ACCESS_LOG.name)
    async with in_process_client(dependencies(), token=SecretStr(OPERATOR)) as calls:
        calls.headers.update(bearing(OPERATOR))
        ours = await program(calls, "ours")
        for each in (await calls.get_json("/api/tokens"))["tokens"]:
            await calls.delete(f"/api/tokens/{each['token_id']}")
        caplog.clear()
        cases = {
            "header-missing": {},
            "token-unknown": bearing("wrong"),
            "token-revoked": bearing(ours.all_scopes),
            "session-ended-or-unknown": {"cookie": f"{SESSION_COOKIE}=1.2.3"},
        }
        for reason, headers in cases.items():
            assert await denied(calls, headers) == SAID
            assert reasons(caplog) == [reason]
        assert await denied(calls, bearing("pw_unknown")) == SAID
        assert reasons(caplog) == ["token-unknown"]
        answer = await calls.get(
            "/api/plans", headers={**bearing(OPERATOR), "host": "evil.example"}
        )
        assert answer.status_code == 403
        assert "evil.example" in reasons(caplog)[0]


async def test_why_a_webhook_was_refused_is_in_the_log_and_with_its_trigger(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "planwave")
    async with hook_service() as calls:
        calls.service.observe(ServiceLog())
        hook = await listening(calls, hook_flow())
        shown = await calls.get_json(f"/api/triggers/{hook}")
        assert shown["last_rejection"] is None
        good = signed(json.dumps({}))
        answers: set[str] = set()
        for changes, reason in (
            ({"webhook-signature": ""}, "header-missing: webhook-signature"),
            ({"webhook-timestamp": "1"}, "timestamp-too-old"),
            (signed(json.dumps({}), secret=OTHER_SECRET), "signature-mismatch"),
        ):
            caplog.clear()
            answer = await calls.post(f"/hooks/{hook}", content="{}", headers={**good, **changes})
            body = answer.json()
            body.pop("request_id", None)
            answers.add(json.dumps([answer.status_code, body]))
            (line,) = [each for each in caplog.records if each.name == "planwave.trigger"]
            assert getattr(line, FIELDS)["reason"].startswith(reason)
            shown = await calls.get_json(f"/api/triggers/{hook}")
            assert shown["last_rejection"]["reason"].startswith(reason)
            assert reasons(caplog)[0].startswith(reason)
        assert len(answers) == 1
        assert "signature-mismatch" not in str(answers)


async def test_the_id_of_an_unknown_webhook_is_in_the_log_some_times_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "planwave.trigger")
    async with hook_service() as calls:
        for number in range(12):
            answer = await calls.post(f"/hooks/unknown-{number}", content="{}")
            assert answer.status_code == 404
            assert "unknown" not in answer.text
    said = reasons(caplog, "planwave.trigger")
    assert said == [
        f"no webhook that receives has the id 'unknown-{number}'" for number in range(10)
    ]


async def test_a_stranger_fills_the_log_of_requests_no_faster_than_a_few_lines_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, ACCESS_LOG.name)
    async with in_process_client(dependencies(), token=SecretStr(OPERATOR)) as calls:
        for _ in range(12):
            await denied(calls, bearing("wrong"))
        assert reasons(caplog) == ["token-unknown"] * 10
        assert (await calls.get("/api/flows")).status_code == 401
        assert reasons(caplog) == ["header-missing"], "each route has lines of its own"
