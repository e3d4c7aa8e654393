"""Why a target of notifications gets nothing."""

from __future__ import annotations

from base64 import b64encode

import pytest
from pydantic import SecretStr

from planwave.nodes.secrets import Secret
from planwave.service.notifications.targets import operator_targets, problem_of
from planwave.settings import NotificationSettings

KEY = "whsec_" + b64encode(bytes(24)).decode()


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://example.com/hook", None),
        ("ftp://example.com/hook", "only http:// and https:// are allowed"),
        ("example.com", "only http:// and https:// are allowed"),
        ("https://user:word@example.com/", "it holds credentials"),
        ("https:///hook", "it has no host"),
        ("https://example.com/a b", "it has the character ' '"),
    ],
)
def test_url_that_cannot_be_used_is_a_problem(url: str, problem: str | None) -> None:
    (target,) = operator_targets({"ops": NotificationSettings(url=url, secrets=["key"])})
    found = problem_of(target, {"key": Secret("key", SecretStr(KEY), ())})
    assert found == problem if problem is None else problem in (found or "")
    assert "word" not in (found or "")
