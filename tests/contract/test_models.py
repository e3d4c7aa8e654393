"""What every provider does under every fault: real SDKs against a real server on loopback.

``F31`` … are rows of the fault matrix.
"""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from email.utils import format_datetime

import pytest

from planwave.errors import ProviderError
from planwave.providers.api import CallScope, Delta, ModelReply
from planwave.settings import Limits, ProviderSettings
from tests.fakes.llm_server import Drops, Fails, Hangs, Says, Sends, Step, prompt_of, schema_of
from tests.fakes.model_rig import START, Rig, model_rig, until

EVERY = pytest.mark.parametrize("provider", ["openai", "anthropic", "box"])
SECRETS = ("canary", "Bearer", "x-api-key", "authorization")


async def fails(rig: Rig, provider: str, **more: object) -> ProviderError:
    """Make a call that has to fail; whatever it says holds no secret and names the provider."""
    with pytest.raises(ProviderError) as caught:
        await rig.ask(provider, **more)
    error = caught.value
    shown = json.dumps(error.as_json())
    assert not [secret for secret in SECRETS if secret.lower() in shown.lower()]
    assert error.provider == provider
    assert provider in error.message
    return error


@EVERY
async def test_a_reply_streams_in_pieces_and_ends_with_usage_and_price(provider: str) -> None:
    async with model_rig(Says("hello there", chunks=3, usage=(1000, 50))) as rig:
        reply = await rig.ask(provider, system="be brief", max_tokens=20)
    assert rig.text == reply.text == "hello there"
    assert len(rig.deltas) == 3
    assert (reply.finish_reason, reply.attempts, reply.recorded) == ("stop", 1, False)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (1000, 50)
    assert not reply.usage.estimated
    assert (reply.usage.cost_usd is None) == (provider == "box")
    body = rig.llm.requests[0].body
    assert prompt_of(body) == "be brief\nhi"
    assert body["stream"] is True
    limit = {"openai": "max_completion_tokens"}.get(provider, "max_tokens")
    assert body[limit] == 20


@EVERY
@pytest.mark.parametrize("kind", ["closed", "open"])
async def test_a_schema_gives_the_json_text_and_reaches_the_provider_as_written(
    provider: str, kind: str
) -> None:
    closed = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    opened = {
        "type": "object",
        "properties": {"data": {"type": "object"}, "s": {"type": "string", "maxLength": 9}},
    }
    schema = closed if kind == "closed" else opened
    async with model_rig(reply_to=lambda body: json.dumps({"a": 1})) as rig:
        reply = await rig.ask(provider, schema=schema, schema_name="plan")
        assert json.loads(reply.text) == {"a": 1} == json.loads(rig.text)
        assert reply.finish_reason == "stop"
        assert schema_of(rig.llm.requests[0].body) == schema


@EVERY
async def test_lone_surrogates_are_replaced_in_what_is_sent(provider: str) -> None:
    async with model_rig() as rig:
        await rig.ask(provider, prompt="a\ud800b", system="\udfff")
        assert prompt_of(rig.llm.requests[0].body) == "\ufffd\na\ufffdb"


async def test_reasoning_arrives_as_its_own_kind_and_is_not_part_of_the_text() -> None:
    async with model_rig(Says("42", reasoning="let me think")) as rig:
        reply = await rig.ask("box")
    assert rig.deltas[0] == Delta("let me think", "reasoning")
    assert reply.text == "42"


@EVERY
async def test_a_temperature_is_sent_only_to_models_that_take_one(provider: str) -> None:
    thinking = {"openai": "gpt-5.6-luna", "anthropic": "claude-opus-5-5", "box": "box-1"}
    async with model_rig() as rig:
        await rig.ask(provider, model=thinking[provider], temperature=0.2)
        assert ("temperature" in rig.llm.requests[0].body) == (provider == "box")


async def test_an_unknown_reasoning_effort_is_refused_before_any_call() -> None:
    async with model_rig() as rig:
        error = await fails(rig, "openai", reasoning_effort="turbo")
        assert (error.code, rig.llm.requests) == ("bad-request", [])


@EVERY
async def test_F31_a_rate_limit_waits_as_long_as_asked_and_slows_other_calls_too(
    provider: str,
) -> None:
    async with model_rig(Fails(429, "rate_limit_error", headers={"retry-after": "2"})) as rig:
        other_waited: list[float] = []

        async def other() -> None:
            await until(lambda: rig.time.slept)
            await rig.ask(provider, "other")
            other_waited.append(rig.time.now)

        async with asyncio.TaskGroup() as group:
            group.create_task(other())
            request = group.create_task(rig.ask(provider))
        assert request.result().attempts == 2
        assert rig.time.now - 1_000 >= 2
        assert other_waited[0] - 1_000 >= 2


@EVERY
@pytest.mark.parametrize("asked", ["86400", "date"])
async def test_F32_an_absurd_retry_after_is_capped_and_named_in_the_error(
    provider: str, asked: str
) -> None:
    late = format_datetime(START + timedelta(days=1), usegmt=True)
    header = {"retry-after": late if asked == "date" else asked}
    limited = Fails(429, "rate_limit_error", headers=header)
    async with model_rig(*[limited] * 3, limits=Limits(call_attempts=3)) as rig:
        error = await fails(rig, provider)
        assert (error.code, error.status, error.retryable) == ("rate-limited", 429, True)
        assert error.retry_after_s is not None
        assert error.retry_after_s > 80_000
        assert len(rig.llm.requests) == 3
        assert 100 <= rig.time.now - 1_000 <= 130
    assert "asked to wait" in error.message


@EVERY
@pytest.mark.parametrize("junk", ["-5", "soon", "nan", "1e999", ""])
async def test_F32_a_junk_retry_after_is_ignored(provider: str, junk: str) -> None:
    limited = Fails(429, "rate_limit_error", headers={"retry-after": junk})
    async with model_rig(limited) as rig:
        assert (await rig.ask(provider)).attempts == 2
        assert rig.time.slept == [0.5]


@EVERY
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, "insufficient_quota"),
        (429, "enforced_spend_limit_reached"),
        (402, "billing_error"),
    ],
)
async def test_F33_used_up_quota_is_never_retried(provider: str, status: int, kind: str) -> None:
    async with model_rig(Fails(status, kind)) as rig:
        error = await fails(rig, provider)
        assert (error.code, error.retryable, len(rig.llm.requests)) == ("quota-exhausted", False, 1)


@pytest.mark.parametrize("asked", ["0", "0.01"])
async def test_F32_a_server_that_asks_for_next_to_no_wait_is_still_not_hammered(asked: str) -> None:
    limited = Fails(429, "rate_limit_error", headers={"retry-after": asked})
    async with model_rig(limited, limited) as rig:
        assert (await rig.ask()).attempts == 3
        assert rig.time.now - 1_000 == pytest.approx(0.5 + 1.0)


@EVERY
@pytest.mark.parametrize("status", [408, 500, 502, 503, 529])
async def test_F34_three_failures_then_success_is_four_attempts_in_one_layer(
    provider: str, status: int
) -> None:
    async with model_rig(*[Fails(status, "api_error")] * 3, jitter=1.0) as rig:
        reply = await rig.ask(provider)
        assert (reply.attempts, len(rig.llm.requests)) == (4, 4)
        assert rig.time.slept == [1.0, 2.0, 4.0]


@EVERY
async def test_F34_a_lasting_overload_gives_up_after_the_attempts_of_the_limits(
    provider: str,
) -> None:
    overloaded = [Fails(529, "overloaded_error")] * 9
    async with model_rig(*overloaded, limits=Limits(call_attempts=2)) as rig:
        error = await fails(rig, provider)
        assert (error.code, error.retryable) == ("provider-overloaded", True)
        assert len(rig.llm.requests) == 2


@EVERY
@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, "invalid_request_error", "bad-request"),
        (401, "authentication_error", "provider-auth"),
        (403, "permission_error", "provider-auth"),
        (404, "not_found_error", "unknown-model"),
        (409, "conflict", "bad-request"),
        (413, "request_too_large", "context-too-long"),
        (422, "invalid_request_error", "bad-request"),
    ],
)
async def test_F36_other_client_errors_are_not_retried(
    provider: str, status: int, kind: str, code: str
) -> None:
    async with model_rig(Fails(status, kind, message="no: sk-canary-openai-0123456789")) as rig:
        error = await fails(rig, provider)
        assert (error.code, error.status, error.retryable) == (code, status, False)
        assert (len(rig.llm.requests), rig.time.slept) == (1, [])


@EVERY
async def test_a_redirect_is_neither_followed_nor_retried_and_the_error_says_so(
    provider: str,
) -> None:
    moved = Fails(307, "moved", headers={"location": "http://127.0.0.1:9/v1"})
    async with model_rig(moved) as rig:
        error = await fails(rig, provider)
        assert (error.code, error.retryable, len(rig.llm.requests)) == ("redirected", False, 1)
        assert error.hint is not None
        assert "address" in error.hint


async def test_F36_a_key_that_an_endpoint_says_back_is_not_in_the_error() -> None:
    keyed = ProviderSettings(api_key_env="BOX_KEY")
    said = Fails(401, "authentication_error", message="no such key: 7f3/plain+word")
    async with model_rig(said, box=keyed, environ={"BOX_KEY": "7f3/plain+word"}) as rig:
        error = await fails(rig, "box")
        assert rig.llm.requests[0].headers["authorization"] == "Bearer 7f3/plain+word"
        assert "plain" not in str(error.as_json())


@EVERY
async def test_F36_a_prompt_past_the_context_has_its_own_code(provider: str) -> None:
    kind = "invalid_request_error" if provider == "anthropic" else "context_length_exceeded"
    async with model_rig(Fails(400, kind, message="prompt is too long: 9 > 8")) as rig:
        assert (await fails(rig, provider)).code == "context-too-long"


@EVERY
async def test_F37_a_closed_port_is_retried_as_unreachable(provider: str) -> None:
    async with model_rig() as rig:
        server = rig.llm._server
        assert server is not None
        server.close()
        await server.wait_closed()
        error = await fails(rig, provider)
        assert (error.code, error.retryable) == ("provider-unreachable", True)
        assert len(rig.time.slept) == 3


@EVERY
async def test_F37_a_connection_that_closes_before_an_answer_is_retried(provider: str) -> None:
    async with model_rig(Drops()) as rig:
        assert (await rig.ask(provider)).attempts == 2


@EVERY
async def test_F38_a_server_that_never_answers_meets_the_first_byte_deadline(
    provider: str,
) -> None:
    async with model_rig(Hangs()) as rig:
        async with asyncio.TaskGroup() as group:
            call = group.create_task(fails(rig, provider))
            await until(lambda: rig.llm.requests)
            assert await rig.time.pass_deadline() == 60
        assert (call.result().code, call.result().retryable) == ("first-byte-timeout", True)
        assert len(rig.llm.requests) == 1


@EVERY
async def test_F39_a_trickle_meets_the_deadline_of_the_whole_call(provider: str) -> None:
    first, second = asyncio.Event(), asyncio.Event()
    async with model_rig(Says("abcdefgh", chunks=8, gates={4: first, 6: second})) as rig:
        async with asyncio.TaskGroup() as group:
            call = group.create_task(fails(rig, provider))
            await until(lambda: rig.deltas)
            rig.time.now += 290  # every gap is short enough, the sum is not
            first.set()
            assert await rig.time.pass_deadline() == 10
        assert call.result().code == "call-timeout"


@EVERY
async def test_F39_silence_in_the_middle_meets_the_gap_deadline(provider: str) -> None:
    async with model_rig(Says("abcdef", chunks=6, gates={4: asyncio.Event()})) as rig:
        async with asyncio.TaskGroup() as group:
            call = group.create_task(fails(rig, provider))
            await until(lambda: rig.deltas)
            assert await rig.time.pass_deadline() == 30
        assert call.result().code == "chunk-timeout"


@EVERY
@pytest.mark.parametrize("by", ["fin", "rst"])
async def test_F40_a_stream_cut_after_a_delta_fails_and_is_not_retried_here(
    provider: str, by: str
) -> None:
    gate = asyncio.Event()
    cut = Says("abcdef", chunks=6, cut_after=4, cut_by=by, gates={4: gate})  # type: ignore[arg-type]
    async with model_rig(cut) as rig:
        async with asyncio.TaskGroup() as group:
            call = group.create_task(fails(rig, provider))
            await until(lambda: rig.deltas)
            gate.set()
        assert (call.result().code, call.result().retryable) == ("stream-truncated", True)
        assert rig.text
        assert len(rig.llm.requests) == 1


@EVERY
@pytest.mark.parametrize("by", ["fin", "rst"])
async def test_F40_a_stream_cut_before_the_first_delta_is_tried_again(
    provider: str, by: str
) -> None:
    cut = Says("abcdef", cut_after=1, cut_by=by)  # type: ignore[arg-type]
    async with model_rig(cut, Says("whole")) as rig:
        reply = await rig.ask(provider)
        assert (reply.text, reply.attempts, rig.text) == ("whole", 2, "whole")


@EVERY
async def test_F41_a_stream_without_a_finish_reason_is_truncated(provider: str) -> None:
    async with model_rig(Says("half", finish=None)) as rig:
        error = await fails(rig, provider)
        assert (error.code, len(rig.llm.requests)) == ("stream-truncated", 1)


@EVERY
async def test_F41_a_missing_end_marker_is_a_cut_where_the_protocol_promises_one(
    provider: str,
) -> None:
    async with model_rig(Says("whole", end_marker=False)) as rig:
        if provider == "box":
            assert (await rig.ask(provider)).text == "whole"
        else:
            assert (await fails(rig, provider)).code == "stream-truncated"


@EVERY
async def test_F42_an_error_event_at_the_start_of_a_stream_is_retried_like_529(
    provider: str,
) -> None:
    async with model_rig(Says("x", error_after=1), Says("fine")) as rig:
        reply = await rig.ask(provider)
        assert (reply.text, reply.attempts) == ("fine", 2)


@EVERY
async def test_F42_an_error_event_after_a_delta_is_an_overload_the_node_may_retry(
    provider: str,
) -> None:
    async with model_rig(Says("abcdef", chunks=3, error_after=4)) as rig:
        error = await fails(rig, provider)
        assert (error.code, error.retryable) == ("provider-overloaded", True)
        assert len(rig.llm.requests) == 1


GARBAGE: dict[str, Step] = {
    "bad json": Says("x", insert={1: b"event: content_block_delta\ndata: {not json\n\n"}),
    "huge line": Says("x", insert={1: b": " + b"x" * 10_000_000}),
    "html": Sends(b"<html>hello</html>", "text/html"),
    "json": Sends(b'{"choices": []}', "application/json"),
}


@EVERY
@pytest.mark.parametrize("garbage", GARBAGE)
async def test_F43_garbage_is_an_error_and_not_retried_here(provider: str, garbage: str) -> None:
    async with model_rig(GARBAGE[garbage]) as rig:
        error = await fails(rig, provider)
        assert (error.code, error.retryable) == ("stream-garbage", True)
        assert len(rig.llm.requests) == 1


@EVERY
async def test_F43_comments_and_mixed_line_ends_are_legal(provider: str) -> None:
    legal = Says("whole", chunks=2, insert={1: b": a comment\r\n\r\n", 2: b":\n\n"})
    async with model_rig(legal) as rig:
        assert (await rig.ask(provider)).text == "whole"


@EVERY
async def test_F43_a_split_character_is_put_together_again(provider: str) -> None:
    async with model_rig(Says("grüße 你好 🎉", chunks=9)) as rig:
        assert (await rig.ask(provider)).text == "grüße 你好 🎉" == rig.text


@EVERY
@pytest.mark.parametrize(
    ("step", "code"),
    [
        (Says(None), "empty-reply"),
        (Says("   "), "empty-reply"),
        (Says("", finish="length"), "empty-reply"),
        (Says(None, refusal="I will not", finish="stop"), "refused"),
    ],
)
async def test_F44_a_reply_without_a_usable_text_has_its_own_code(
    provider: str, step: Says, code: str
) -> None:
    async with model_rig(step) as rig:
        assert (await fails(rig, provider)).code == code
        assert len(rig.llm.requests) == 1


@pytest.mark.parametrize("provider", ["openai", "box"])
async def test_F44_a_filtered_reply_is_not_a_reply_even_with_text(provider: str) -> None:
    async with model_rig(Says("abc", finish="content_filter")) as rig:
        assert (await fails(rig, provider)).code == "content-filtered"


@EVERY
async def test_F44_empty_choices_are_not_a_reply(provider: str) -> None:
    empty = Says("x", empty_choices=True)
    async with model_rig(*[empty] * 4) as rig:
        error = await fails(rig, provider)
        assert error.code in ("empty-reply", "stream-truncated")


@EVERY
async def test_F44_a_reply_that_ran_into_the_token_limit_says_so(provider: str) -> None:
    async with model_rig(Says("a long sto", finish="length")) as rig:
        reply = await rig.ask(provider)
        assert (reply.text, reply.finish_reason) == ("a long sto", "length")


@EVERY
@pytest.mark.parametrize("usage", [None, (-5, 7), (11, -7), (10**15, 7), (0, 0)])
async def test_F47_a_usage_that_cannot_be_true_is_estimated_and_marked(
    provider: str, usage: tuple[int, int] | None
) -> None:
    async with model_rig(Says("x" * 400, usage=usage)) as rig:
        reply = await rig.ask(provider, prompt="y" * 800)
        assert reply.usage.estimated
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (200, 100)


@EVERY
async def test_cancelling_a_call_closes_its_stream_and_frees_its_place(provider: str) -> None:
    never = asyncio.Event()
    one = ProviderSettings(max_concurrency=1)
    async with model_rig(Says("abcdef", chunks=2, gates={3: never}), box=one) as rig:
        call = asyncio.ensure_future(rig.ask(provider))  # noqa: TID251 - cancelled on purpose
        await until(lambda: rig.deltas)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await rig.ask(provider)).text == "ok"


async def test_a_provider_gets_no_more_calls_at_once_than_its_limit() -> None:
    door = asyncio.Event()

    async def held(body: dict[str, object]) -> str:
        await door.wait()
        return "ok"

    async with model_rig(reply_to=held, box=ProviderSettings(max_concurrency=2)) as rig:
        async with asyncio.TaskGroup() as group:
            for _ in range(6):
                group.create_task(rig.ask("box"))
            await until(lambda: rig.llm.open_now == 2)
            door.set()
        assert (rig.llm.most_open, len(rig.llm.requests)) == (2, 6)


@EVERY
async def test_the_idempotency_key_names_execution_path_and_ordinal(provider: str) -> None:
    async with model_rig() as rig:
        scope = CallScope("exec-1", "loop[2]/größe", 1)
        await rig.ask(provider, scope=scope)
        await rig.ask(provider, scope=scope)
        keys = [request.headers["idempotency-key"] for request in rig.llm.requests]
        assert keys == ["exec-1/loop[2]/gr%C3%B6%C3%9Fe/0", "exec-1/loop[2]/gr%C3%B6%C3%9Fe/1"]


async def test_keys_and_organisation_go_only_where_they_belong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with model_rig() as rig:
        await rig.ask("box")
        await rig.ask("openai")
        boxed, own = (request.headers for request in rig.llm.requests)
        assert "openai-organization" not in boxed
        assert "canary" not in json.dumps(boxed)
        assert own["openai-organization"] == "org-1"
        assert own["authorization"].endswith("canary-openai-0123456789")


async def test_connections_are_kept_and_used_again() -> None:
    async with model_rig() as rig:
        for _ in range(5):
            assert isinstance(await rig.ask("openai"), ModelReply)
        assert (rig.llm.connections, len(rig.llm.requests)) == (1, 5)
