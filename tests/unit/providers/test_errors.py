from __future__ import annotations

from planwave.providers import errors
from planwave.providers.errors import classify, is_request_error, provider_error


def test_every_code_has_message_and_hint() -> None:
    for code in errors._SENTENCES:
        error = provider_error(code, provider="box", model="m-1")
        assert error.code == code
        assert "box (m-1)" in error.message
        assert error.hint
    assert errors._HINTS.keys() == errors._SENTENCES.keys()


def test_only_errors_that_another_model_would_raise_too_are_request_errors() -> None:
    raised = [provider_error(code, provider="box", model="m") for code in errors._SENTENCES]
    assert {error.code for error in raised if is_request_error(error)} == {
        "bad-request", "content-filtered", "refused",
    }  # fmt: skip


def test_provider_message_is_one_line_without_keys() -> None:
    detail = "Incorrect API key\nprovided: sk-abc***xyz1. Bearer abc.def " + "x" * 900
    message = provider_error("provider-auth", provider="p", model=None, detail=detail).message
    assert "sk-abc" not in message
    assert "abc.def" not in message
    assert "\n" not in message
    assert message.count("[hidden]") == 2
    assert len(message) < 500


def test_key_of_the_call_is_hidden() -> None:
    from pydantic_ai.exceptions import ModelHTTPError

    body = {"error": {"message": "no such key: 7f3/plain+word"}}
    error = ModelHTTPError(401, "m", body)
    found = classify(error, provider="p", model="m", secret="7f3/plain+word")
    assert found is not None
    assert found.error.message.endswith(": no such key: [hidden]")


def test_other_exception_is_not_classified() -> None:
    assert classify(ZeroDivisionError(), provider="p", model="m") is None


def test_cyclic_cause_chain_ends() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert classify(first, provider="p", model="m") is None


def test_nested_quota_code_is_found() -> None:
    from pydantic_ai.exceptions import ModelHTTPError

    body = {"error": {"details": {"reason": "enforced_spend_limit_reached"}}}
    found = classify(ModelHTTPError(429, "m", body), provider="p", model="m")
    assert found is not None
    assert (found.error.code, found.retry) == ("quota-exhausted", False)


def test_context_size_error_of_embedded_server_is_classified() -> None:
    from pydantic_ai.exceptions import ModelHTTPError

    body = {
        "code": 400,
        "message": "request (9031 tokens) exceeds the available context size (4096 tokens)",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 9031,
        "n_ctx": 4096,
    }
    found = classify(ModelHTTPError(400, "m", body), provider="p", model="m")
    assert found is not None
    assert (found.error.code, found.retry) == ("context-too-long", False)
    assert found.error.message.startswith("the prompt is too long for p (m) (HTTP 400): request (9")


def test_stream_error_without_status_is_retried() -> None:
    from pydantic_ai.exceptions import ModelAPIError

    found = classify(ModelAPIError("m", "odd", in_stream=True), provider="p", model="m")
    assert found is not None
    assert (found.error.code, found.retry) == ("provider-error", True)


def test_sdk_usage_error_is_a_bad_request() -> None:
    from pydantic_ai.exceptions import UserError

    found = classify(UserError("no such thing"), provider="p", model="m")
    assert found is not None
    assert (found.error.code, found.retry) == ("bad-request", False)
    assert "no such thing" in found.error.message
