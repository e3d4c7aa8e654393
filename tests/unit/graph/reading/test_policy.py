"""Policies are read strictly, every error with its pointer."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.model import DEFAULT_POLICY, Node, Policy, Retry
from planwave.graph.reading.policy import policy_limit_findings, read_policy
from planwave.settings import Limits


def test_every_field_is_read() -> None:
    document = {
        "join": "any",
        "retry": {"attempts": 10, "backoffS": 0, "on": ["rate-limited"], "notOn": ["A", "B"]},
        "timeoutS": 0.5,
        "onError": "default",
        "default": {"handle": "output", "value": None},
        "effect": "once",
    }
    policy, findings = read_policy(document, "/p")
    assert findings == []
    default = {"handle": "output", "value": None}
    assert policy == Policy(
        "any", Retry(10, 0, ("rate-limited",), ("A", "B")), 0.5, "default", default, "once"
    )


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"join": None, "retry": None, "timeoutS": None, "onError": None, "default": None},
        {"retry": {}},
        {"retry": {"attempts": None, "backoffS": None, "on": None, "notOn": None}},
        {"retry": {"on": [], "notOn": []}},
    ],
)
def test_missing_and_null_fields_have_their_defaults(document: dict[str, Any]) -> None:
    assert read_policy(document, "/p") == (DEFAULT_POLICY, [])


@pytest.mark.parametrize(
    ("document", "code", "pointer"),
    [
        ({"join": "some"}, "invalid-field", "/p/join"),
        ({"join": ["all"]}, "invalid-field", "/p/join"),
        ({"retry": 3}, "invalid-field", "/p/retry"),
        ({"retry": {"attempts": 0}}, "invalid-field", "/p/retry/attempts"),
        ({"retry": {"attempts": 2.0}}, "invalid-field", "/p/retry/attempts"),
        ({"retry": {"attempts": True}}, "invalid-field", "/p/retry/attempts"),
        ({"retry": {"backoffS": -0.1}}, "invalid-field", "/p/retry/backoffS"),
        ({"retry": {"backoffS": "1"}}, "invalid-field", "/p/retry/backoffS"),
        ({"retry": {"on": "TimeoutError"}}, "invalid-field", "/p/retry/on"),
        ({"retry": {"on": [""]}}, "invalid-field", "/p/retry/on"),
        ({"retry": {"notOn": ["a", 5]}}, "invalid-field", "/p/retry/notOn"),
        ({"retry": {"notOn": {}}}, "invalid-field", "/p/retry/notOn"),
        ({"retry": {"max": 1}}, "unknown-field", "/p/retry/max"),
        ({"timeoutS": 0}, "invalid-field", "/p/timeoutS"),
        ({"timeoutS": False}, "invalid-field", "/p/timeoutS"),
        ({"onError": "ignore"}, "invalid-field", "/p/onError"),
        ({"onError": "default"}, "missing-field", "/p/default"),
        ({"onError": "default", "default": 1}, "invalid-field", "/p/default"),
        ({"onError": "default", "default": {"value": 1}}, "missing-field", "/p/default/handle"),
        ({"onError": "default", "default": {"handle": "o"}}, "missing-field", "/p/default/value"),
        (
            {"onError": "default", "default": {"handle": "", "value": 1}},
            "invalid-field",
            "/p/default/handle",
        ),
        (
            {"onError": "default", "default": {"handle": 1, "value": 1}},
            "invalid-field",
            "/p/default/handle",
        ),
        ({"default": {"handle": "o", "value": 1}}, "invalid-field", "/p/default"),
        ({"effect": "maybe"}, "invalid-field", "/p/effect"),
        ({"a/b": 1}, "unknown-field", "/p/a~1b"),
    ],
)
def test_an_error_is_reported_with_code_and_pointer(
    document: dict[str, Any], code: str, pointer: str
) -> None:
    _, findings = read_policy(document, "/p")
    assert [(d.code, d.pointer) for d in findings] == [(code, pointer)]


def test_invalid_fields_get_their_defaults_and_valid_ones_are_used() -> None:
    good = {"join": "any", "timeoutS": 3, "onError": "default", "effect": "read"}
    default, retry = {"handle": "output", "value": 1}, {"attempts": 2, "backoffS": 4}
    policy, _ = read_policy(
        {**good, "default": {"value": 1}, "retry": {**retry, "attempts": 0}}, ""
    )
    assert policy == Policy("any", Retry(1, 4), 3, "default", None, "read")
    bad = {"join": 1, "timeoutS": "3", "onError": "drop", "effect": 1}
    policy, _ = read_policy({**bad, "default": default, "retry": {**retry, "backoffS": -1}}, "")
    assert policy == Policy(default=default, retry=Retry(2))


@pytest.mark.parametrize("unsure", [{"onError": "defualt"}, {"on_error": "default"}])
def test_a_default_is_accepted_if_on_error_may_be_misspelt(unsure: dict[str, str]) -> None:
    _, findings = read_policy({**unsure, "default": {"handle": "output", "value": 1}}, "")
    assert [d.pointer for d in findings] == [f"/{name}" for name in unsure]


def test_all_errors_are_reported_together() -> None:
    _, findings = read_policy({"join": 1, "timeoutS": -1, "effect": 2, "x": 3}, "")
    assert {d.pointer for d in findings} == {"/join", "/timeoutS", "/effect", "/x"}


def test_without_limits_large_values_are_accepted() -> None:
    document = {"timeoutS": 1e9, "retry": {"attempts": 5_000, "backoffS": 1e9}}
    policy, findings = read_policy(document, "/p")
    assert (policy.timeout_s, policy.retry, findings) == (1e9, Retry(5_000, 1e9), [])


LIMITS = Limits(policy_timeout_s=60, policy_attempts=3, policy_backoff_s=5)


@pytest.mark.parametrize(
    ("policy", "limit", "most", "met", "pointer"),
    [
        (Policy(timeout_s=60.5), "policy_timeout_s", "60", "60.5", "/policy/timeoutS"),
        (Policy(retry=Retry(4)), "policy_attempts", "3", "4", "/policy/retry/attempts"),
        (Policy(retry=Retry(2, 6)), "policy_backoff_s", "5", "6", "/policy/retry/backoffS"),
    ],
)
def test_a_value_over_a_limit_is_reported_with_limit_value_and_hint(
    policy: Policy, limit: str, most: str, met: str, pointer: str
) -> None:
    (finding,) = policy_limit_findings(Node("a", "t", "A", policy=policy), LIMITS)
    assert (finding.code, finding.severity, finding.pointer) == ("limit-exceeded", "error", pointer)
    assert f"limit {limit} is {most}, met {met}" in finding.message
    assert "'a'" in finding.message
    # These limits stand at their hard caps unless lowered: raising them is hardly ever a way out.
    assert finding.hint == f"use at most {most}"


@pytest.mark.parametrize("policy", [DEFAULT_POLICY, Policy(timeout_s=60, retry=Retry(3, 5))])
def test_a_value_at_its_limit_is_accepted(policy: Policy) -> None:
    assert policy_limit_findings(Node("a", "t", "A", policy=policy), LIMITS) == []


def test_the_default_limits_are_a_day_and_ten_attempts() -> None:
    limits = Limits()
    assert (limits.policy_timeout_s, limits.policy_attempts) == (24 * 3_600, 10)


@pytest.mark.parametrize(
    ("document", "message", "hint"),
    [
        ({"retry": 3}, "policy.retry is 3, must be an object", None),
        (
            {"retry": {"attempts": 0}},
            "policy.retry.attempts is 0, must be a whole number from 1 up",
            None,
        ),
        (
            {"retry": {"on": "OSError"}},
            "policy.retry.on is 'OSError', must be a list of error codes or exception names",
            "write ['OSError']",
        ),
        (
            {"retry": {"atempts": 3}},
            "policy.retry has the unknown field 'atempts'; known are attempts, backoffS, on, notOn",
            None,
        ),
        ({"timeoutS": "x"}, "policy.timeoutS is 'x', must be seconds above 0", None),
        ({"onError": "default"}, "policy.default is missing, but onError is 'default'", None),
    ],
)
def test_a_message_names_the_node_and_the_field(
    document: dict[str, Any], message: str, hint: str | None
) -> None:
    _, (finding,) = read_policy(document, "/p", "a")
    assert (finding.message, finding.hint) == (f"node 'a': {message}", hint)


@pytest.mark.parametrize(
    ("retry", "document"),
    [
        (Retry(), {"attempts": 1}),
        (Retry(3, 0.5, on=ConnectionError), {"attempts": 3, "backoffS": 0.5, "on": ["ConnectionError"]}),
        (Retry(2, on=["busy", OSError], not_on=["full"]), {"attempts": 2, "on": ["busy", "OSError"], "notOn": ["full"]}),
        (Retry(2, on="busy"), {"attempts": 2, "on": ["busy"]}),
    ],
)  # fmt: skip
def test_a_retry_is_read_back_from_its_document(retry: Retry, document: Any) -> None:
    assert retry.to_document() == document
    policy, findings = read_policy({"retry": document}, "")
    assert (policy.retry, findings) == (retry, [])


@pytest.mark.parametrize("wrong", [3, [3], [ValueError()], None])
def test_retries_name_error_codes_and_exception_classes(wrong: Any) -> None:
    assert Retry(on=["rate-limited", KeyError], not_on=ValueError).on == (
        "rate-limited",
        "KeyError",
    )
    for field in ("on", "not_on"):
        with pytest.raises(TypeError, match=r"error codes? .* exception class"):
            Retry(**{field: wrong})
