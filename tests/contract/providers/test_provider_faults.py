"""Rows F31 to F47 of the fault matrix: providers that fail in every way they can.

Real SDKs against a real server on loopback; time is virtual wherever it matters.
"""

from __future__ import annotations

import asyncio
import socket
from datetime import timedelta
from email.utils import format_datetime
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from planwave.errors import ProviderError
from planwave.events import Event
from planwave.graph.model import Graph, Node, Policy, Retry
from planwave.nodes.services import NodeServices
from planwave.providers.protocols import CallScope, Usage
from planwave.service.service import Service
from planwave.settings import Limits, ProviderSettings
from planwave.testing import forbid_model_calls
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.llm.client_harness import (
    START,
    LoopClock,
    ModelClientHarness,
    expect_provider_error,
    model_client_harness,
)
from tests.support.llm.fake_llm_server import (
    DroppedConnection,
    ErrorReply,
    NoReply,
    RawReply,
    ReplyStep,
    TextReply,
    prompt_of,
)
from tests.support.llm.fake_providers import FakeProviders
from tests.support.polling import until
from tests.support.service.dependencies import dependencies
from tests.support.virtual_loop import VirtualNetworkLoop, virtual_time

on_the_network = partial(virtual_time, loop=VirtualNetworkLoop)
EVERY = pytest.mark.parametrize("provider", ["openai", "anthropic", "box"])


def asking(node_id: str, prompt: str = "hi", **more: Any) -> Node:
    """Make a node that asks a model."""
    data = {"provider": "openai", "model": "gpt-4o-mini", "prompt": prompt}
    return Node(node_id, "llm", node_id, data=data, **more)


class _Unpaid(FakeProviders):
    """Providers that take no money, so that no budget is used up."""

    def price(self, provider: str, model: str, usage: Usage) -> float | None:
        return 0.0


async def run_of(harness: ModelClientHarness, graph: Graph) -> list[Event]:
    """Run a graph to its end with the models of a harness; give its events."""
    providers = _Unpaid()
    parts = dependencies(node_services=lambda goal: NodeServices(harness.client, providers, goal))
    async with Service(parts) as service:
        record = await service.executions.execute(make_plan(graph))
        await service.executions.wait(record.execution_id)
        return list(await service.executions.events(record.execution_id))


@EVERY
async def test_f31_rate_limit_waits_for_all_calls(
    provider: str,
) -> None:
    async with model_client_harness(
        ErrorReply(429, "rate_limit_error", headers={"retry-after": "2"})
    ) as harness:
        other_waited: list[float] = []

        async def other() -> None:
            await until(lambda: harness.time.slept)
            await harness.ask(provider, "other")
            other_waited.append(harness.time.now)

        async with asyncio.TaskGroup() as group:
            group.create_task(other())
            request = group.create_task(harness.ask(provider))
        assert request.result().attempts == 2
        assert harness.time.now - 1_000 >= 2
        assert other_waited[0] - 1_000 >= 2


@EVERY
@pytest.mark.parametrize("asked", ["86400", "date"])
async def test_f32_long_retry_after_is_capped_and_reported(provider: str, asked: str) -> None:
    late = format_datetime(START + timedelta(days=1), usegmt=True)
    header = {"retry-after": late if asked == "date" else asked}
    limited = ErrorReply(429, "rate_limit_error", headers=header)
    async with model_client_harness(*[limited] * 3, limits=Limits(call_attempts=3)) as harness:
        error = await expect_provider_error(harness, provider)
        assert (error.code, error.status, error.retryable) == ("rate-limited", 429, True)
        assert error.retry_after_s is not None
        assert error.retry_after_s > 80_000
        assert len(harness.llm.requests) == 3
        assert 100 <= harness.time.now - 1_000 <= 130
    assert "asked to wait" in error.message


@EVERY
@pytest.mark.parametrize(("time_left_s", "requests"), [(59, 1), (60, 2)])
async def test_f32_wait_never_exceeds_the_time_of_the_node(
    provider: str, time_left_s: float, requests: int
) -> None:
    limited = ErrorReply(429, "rate_limit_error", headers={"retry-after": "86400"})
    async with model_client_harness(limited, ErrorReply(400)) as harness:
        ends = harness.time.now + time_left_s
        scope = CallScope("e", "n", 1, time_left_s=lambda: ends - harness.time.now)
        error = await expect_provider_error(harness, provider, scope=scope)
        assert len(harness.llm.requests) == requests
        if requests == 1:
            assert (error.code, error.retry_after_s) == ("rate-limited", 86_400)
            assert "asked to wait 86400 s" in error.message
            other = await expect_provider_error(harness, provider, scope=scope)
            assert (other.code, other.retry_after_s) == ("rate-limited", 60)
            assert len(harness.llm.requests) == 1


@EVERY
@pytest.mark.parametrize("junk", ["-5", "soon", "nan", "1e999", ""])
async def test_f32_invalid_retry_after_is_ignored(provider: str, junk: str) -> None:
    limited = ErrorReply(429, "rate_limit_error", headers={"retry-after": junk})
    async with model_client_harness(limited) as harness:
        assert (await harness.ask(provider)).attempts == 2
        assert harness.time.slept == [0.5]


DRY = pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, "insufficient_quota"),
        (429, "enforced_spend_limit_reached"),
        (402, "billing_error"),
    ],
)


@EVERY
@DRY
async def test_f33_exhausted_quota_is_not_retried_and_probed(
    provider: str, status: int, kind: str
) -> None:
    dry = ErrorReply(status, kind)
    async with model_client_harness(
        dry, dry, ErrorReply(529), TextReply("paid"), TextReply("paid")
    ) as harness:

        async def refused(requests: int) -> ProviderError:
            error = await expect_provider_error(harness, provider)
            assert (error.code, error.retryable) == ("quota-exhausted", False)
            assert "top up the account" in (error.hint or "")
            assert (len(harness.llm.requests), harness.time.slept) == (requests, [])
            return error

        await refused(requests=1)
        received = await refused(requests=1)
        assert (received.retry_after_s, received.status) == (60, None)
        assert "it is tried again in 60 s" in received.message
        harness.time.now += 59
        await refused(requests=1)
        harness.time.now += 1
        await refused(requests=2)
        assert (await refused(requests=2)).retry_after_s == 120, "the probe failed: it waits longer"
        harness.time.now += 120
        reply = await harness.ask(provider)
        assert (reply.text, reply.attempts) == ("paid", 2), "no verdict on the account in a 529"
        assert (await harness.ask(provider)).text == "paid"


async def test_f33_another_key_is_another_account() -> None:
    keys = {"BOX_KEY": "first-key"}
    keyed = ProviderSettings(api_key_env="BOX_KEY")
    async with model_client_harness(
        ErrorReply(402, "billing_error"), box=keyed, environ=keys
    ) as harness:
        for _ in range(2):
            assert (await expect_provider_error(harness, "box")).code == "quota-exhausted"
        assert (await harness.ask("openai")).text == "ok"
        keys["BOX_KEY"] = "second-key"
        assert (await harness.ask("box")).text == "ok"
        keys["BOX_KEY"] = "first-key"
        assert (await expect_provider_error(harness, "box")).code == "quota-exhausted"
        assert len(harness.llm.requests) == 3


async def test_f33_exhausted_quota_fails_the_execution() -> None:
    dry = ErrorReply(429, "insufficient_quota")
    async with model_client_harness(reply_to=lambda _: dry) as harness:
        again = {"policy": Policy(retry=Retry(attempts=3))}
        events = await run_of(harness, make_graph(asking("a", **again), asking("b", **again)))
        errors = [event.data["error"]["code"] for event in events if event.type == "node.failed"]
        assert errors == ["quota-exhausted"] * 2
        assert events[-1].type == "execution.failed"
        assert 1 <= len(harness.llm.requests) <= 2, "the second may have been under way"


@pytest.mark.parametrize("asked", ["0", "0.01"])
async def test_f32_tiny_retry_after_is_raised_to_the_backoff(asked: str) -> None:
    limited = ErrorReply(429, "rate_limit_error", headers={"retry-after": asked})
    async with model_client_harness(limited, limited) as harness:
        assert (await harness.ask()).attempts == 3
        assert harness.time.now - 1_000 == pytest.approx(0.5 + 1.0)


@EVERY
@pytest.mark.parametrize("status", [408, 500, 502, 503, 529])
async def test_f34_three_failures_then_success_are_four_attempts(
    provider: str, status: int
) -> None:
    async with model_client_harness(*[ErrorReply(status, "api_error")] * 3, jitter=1.0) as harness:
        reply = await harness.ask(provider)
        assert (reply.attempts, len(harness.llm.requests)) == (4, 4)
        assert harness.time.slept == [1.0, 2.0, 4.0]


@EVERY
async def test_f34_lasting_overload_ends_after_the_attempt_limit(
    provider: str,
) -> None:
    overloaded = [ErrorReply(529, "overloaded_error")] * 9
    async with model_client_harness(*overloaded, limits=Limits(call_attempts=2)) as harness:
        error = await expect_provider_error(harness, provider)
        assert (error.code, error.retryable) == ("provider-overloaded", True)
        assert len(harness.llm.requests) == 2


@pytest.mark.slow
@on_the_network
async def test_f35_long_overload_opens_the_circuit_breaker() -> None:
    loop = asyncio.get_running_loop()
    sent: list[float] = []
    received: list[tuple[str, bool, float]] = []

    def answer(_: dict[str, object]) -> ReplyStep:
        sent.append(loop.time())
        return ErrorReply(529, "overloaded_error") if loop.time() < 600 else TextReply("ok")

    async with model_client_harness(reply_to=answer, time=LoopClock()) as harness:

        async def run(number: int) -> float:
            """A run whose node is tried again as soon as it failed."""
            while True:
                began = loop.time()
                try:
                    await harness.ask("box", scope=CallScope(f"run-{number}", "n", 1))
                except ProviderError as error:
                    received.append((error.code, error.retryable, loop.time() - began))
                    await asyncio.sleep(error.retry_after_s or 0)
                else:
                    return loop.time()

        async with asyncio.TaskGroup() as group:
            runs = [group.create_task(run(number)) for number in range(50)]

    first = [at for at in sent if at < 0.5]
    probes = [at for at in sent if 0.5 <= at < 600]
    most = ProviderSettings().max_concurrency + Limits().provider_failures - 1
    assert 5 <= len(first) <= most, (
        "what was under way when it opened, and one for each failure before that; no second try"
    )
    gaps = [later - earlier for earlier, later in pairwise([first[-1], *probes])]
    for number, gap in enumerate(gaps):
        assert gap >= min(60, 2**number) - 0.01
    assert len(probes) <= 6 + 600 / 60
    assert {error[:2] for error in received} == {("provider-overloaded", True)}
    assert max(waited for *_, waited in received) <= 61
    assert all(600 <= run.result() <= 725 for run in runs)


@pytest.mark.slow
@on_the_network
async def test_f35_retries_are_a_small_part_of_requests() -> None:
    loop = asyncio.get_running_loop()
    seen: set[str] = set()
    sent: list[tuple[float, bool]] = []

    def answer(body: dict[str, object]) -> ReplyStep:
        prompt = prompt_of(body)
        sent.append((loop.time(), prompt in seen))
        fails_first = int(prompt) % 3 == 0 and prompt not in seen
        seen.add(prompt)
        return ErrorReply(503) if fails_first else TextReply("ok")

    limits = Limits(provider_failures=50)
    time = LoopClock()
    async with (
        model_client_harness(reply_to=answer, limits=limits, time=time, jitter=0.0) as harness,
        asyncio.TaskGroup() as group,
    ):
        for number in range(150):
            group.create_task(harness.ask("box", str(number)))
    assert sum(again for _, again in sent) == 50
    for ends, _ in sent:
        window = [again for at, again in sent if ends - 9.99 <= at <= ends]
        assert sum(window) <= max(10, 0.1 * window.count(False))


@on_the_network
async def test_f35_closed_port_opens_the_circuit_with_its_reason() -> None:
    box = ProviderSettings(base_url="http://127.0.0.1:1/v1")
    limits = Limits(provider_wait_s=0, call_attempts=1)
    async with model_client_harness(box=box, limits=limits, time=LoopClock()) as harness:
        codes = [(await expect_provider_error(harness, "box")).code for _ in range(5)]
        error = await expect_provider_error(harness, "box")
        assert codes == ["provider-unreachable"] * 5
        assert (error.code, error.retry_after_s) == ("provider-overloaded", pytest.approx(1))
        assert "its last calls failed (provider-unreachable); it is tried again" in error.message


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
async def test_f36_client_errors_are_not_retried(
    provider: str, status: int, kind: str, code: str
) -> None:
    async with model_client_harness(
        ErrorReply(status, kind, message="no: sk-canary-openai-0123456789")
    ) as harness:
        error = await expect_provider_error(harness, provider)
        assert (error.code, error.status, error.retryable) == (code, status, False)
        assert (len(harness.llm.requests), harness.time.slept) == (1, [])


async def test_f36_echoed_key_is_not_in_the_error() -> None:
    keyed = ProviderSettings(api_key_env="BOX_KEY")
    output = ErrorReply(401, "authentication_error", message="no such key: 7f3/plain+word")
    async with model_client_harness(
        output, box=keyed, environ={"BOX_KEY": "7f3/plain+word"}
    ) as harness:
        error = await expect_provider_error(harness, "box")
        assert harness.llm.requests[0].headers["authorization"] == "Bearer 7f3/plain+word"
        assert "plain" not in str(error.as_json())


@EVERY
async def test_f36_context_overflow_has_its_own_code(provider: str) -> None:
    kind = "invalid_request_error" if provider == "anthropic" else "context_length_exceeded"
    async with model_client_harness(
        ErrorReply(400, kind, message="prompt is too long: 9 > 8")
    ) as harness:
        assert (await expect_provider_error(harness, provider)).code == "context-too-long"


@EVERY
async def test_f37_closed_port_is_retried_as_unreachable(provider: str) -> None:
    async with model_client_harness() as harness:
        server, port = harness.llm._server, harness.llm.port
        assert server is not None
        server.close()
        await server.wait_closed()
        with socket.socket() as taken:  # nobody else listens there meanwhile
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", port))
            error = await expect_provider_error(harness, provider)
        assert (error.code, error.retryable) == ("provider-unreachable", True)
        assert len(harness.time.slept) == 3


@EVERY
async def test_f37_dropped_connection_is_retried(provider: str) -> None:
    async with model_client_harness(DroppedConnection()) as harness:
        assert (await harness.ask(provider)).attempts == 2


@EVERY
async def test_f37_missing_tls_is_unreachable(
    provider: str,
) -> None:
    heard: list[bytes] = []

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1))
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, model_client_harness(urls=url) as harness:
        error = await expect_provider_error(harness, provider)
        assert (error.code, error.retryable) == ("provider-unreachable", True)
        assert len(heard) == 4


async def test_f37_unknown_host_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(host: object, *_: object, **__: object) -> None:
        assert host in ("nowhere.invalid", b"nowhere.invalid")
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async with model_client_harness(urls="http://nowhere.invalid") as harness:
        monkeypatch.setattr(socket, "getaddrinfo", unknown)
        with forbid_model_calls(allow=["nowhere.invalid"]):
            error = await expect_provider_error(harness, "box")
        monkeypatch.undo()
        assert (error.code, len(harness.time.slept)) == ("provider-unreachable", 3)


@EVERY
async def test_f38_silent_server_meets_the_first_byte_deadline(
    provider: str,
) -> None:
    async with model_client_harness(NoReply()) as harness:
        async with asyncio.TaskGroup() as group:
            call = group.create_task(expect_provider_error(harness, provider))
            await until(lambda: harness.llm.requests)
            assert await harness.time.pass_deadline() == 60
        assert (call.result().code, call.result().retryable) == ("first-byte-timeout", True)
        assert call.result().message.endswith("did not begin to answer within 60 s")
        assert len(harness.llm.requests) == 1


@EVERY
async def test_f39_slow_stream_meets_the_call_deadline(provider: str) -> None:
    first, second = asyncio.Event(), asyncio.Event()
    async with model_client_harness(
        TextReply("abcdefgh", chunks=8, gates={4: first, 6: second})
    ) as harness:
        async with asyncio.TaskGroup() as group:
            call = group.create_task(expect_provider_error(harness, provider))
            await until(lambda: harness.deltas)
            harness.time.now += 290  # every gap is short enough, the sum is not
            first.set()
            assert await harness.time.pass_deadline() == 10
        assert call.result().code == "call-timeout"
        assert call.result().message.endswith("took longer than 300 s")


@EVERY
async def test_f39_silent_stream_meets_the_gap_deadline(provider: str) -> None:
    async with model_client_harness(
        TextReply("abcdef", chunks=6, gates={4: asyncio.Event()})
    ) as harness:
        async with asyncio.TaskGroup() as group:
            call = group.create_task(expect_provider_error(harness, provider))
            await until(lambda: harness.deltas)
            assert await harness.time.pass_deadline() == 30
        assert call.result().code == "chunk-timeout"
        assert call.result().message.endswith("for longer than 30 s")


@EVERY
@pytest.mark.parametrize("by", ["fin", "rst"])
async def test_f40_stream_cut_after_a_delta_is_not_retried(provider: str, by: str) -> None:
    gate = asyncio.Event()
    cut = TextReply("abcdef", chunks=6, cut_after=4, cut_by=by, gates={4: gate})  # type: ignore[arg-type]
    async with model_client_harness(cut) as harness:
        async with asyncio.TaskGroup() as group:
            call = group.create_task(expect_provider_error(harness, provider))
            await until(lambda: harness.deltas)
            gate.set()
        assert (call.result().code, call.result().retryable) == ("stream-truncated", True)
        assert harness.text
        assert len(harness.llm.requests) == 1


@EVERY
@pytest.mark.parametrize("by", ["fin", "rst"])
async def test_f40_stream_cut_before_a_delta_is_retried(provider: str, by: str) -> None:
    cut = TextReply("abcdef", cut_after=1, cut_by=by)  # type: ignore[arg-type]
    async with model_client_harness(cut, TextReply("whole")) as harness:
        reply = await harness.ask(provider)
        assert (reply.text, reply.attempts, harness.text) == ("whole", 2, "whole")


async def test_f40_text_of_a_cut_stream_is_no_result() -> None:
    cut = TextReply("abcdef", chunks=6, cut_after=4)
    async with model_client_harness(cut) as harness:
        graph = make_graph(asking("a"), text_node("b", "{{ input }}"), edges=[("a", "b")])
        events = await run_of(harness, graph)
    by_node = {event.path: event for event in events if event.type.startswith("node.")}
    assert by_node["a"].type == "node.failed"
    assert by_node["a"].data["error"]["code"] == "stream-truncated"
    assert "outputs" not in by_node["a"].data
    assert by_node["b"].type == "node.blocked"
    assert events[-1].type == "execution.failed"


@EVERY
async def test_f41_stream_without_finish_reason_is_truncated(provider: str) -> None:
    async with model_client_harness(TextReply("half", finish=None)) as harness:
        error = await expect_provider_error(harness, provider)
        assert (error.code, len(harness.llm.requests)) == ("stream-truncated", 1)


@EVERY
async def test_f41_missing_end_marker_is_a_cut_where_required(
    provider: str,
) -> None:
    async with model_client_harness(TextReply("whole", end_marker=False)) as harness:
        if provider == "box":
            assert (await harness.ask(provider)).text == "whole"
        else:
            assert (await expect_provider_error(harness, provider)).code == "stream-truncated"


@EVERY
async def test_f42_error_event_before_a_delta_is_retried(
    provider: str,
) -> None:
    async with model_client_harness(TextReply("x", error_after=1), TextReply("fine")) as harness:
        reply = await harness.ask(provider)
        assert (reply.text, reply.attempts) == ("fine", 2)


@EVERY
async def test_f42_error_event_after_a_delta_is_a_retryable_error(
    provider: str,
) -> None:
    async with model_client_harness(TextReply("abcdef", chunks=3, error_after=4)) as harness:
        error = await expect_provider_error(harness, provider)
        assert (error.code, error.retryable) == ("provider-overloaded", True)
        assert len(harness.llm.requests) == 1


ODD = b'event: message_delta\ndata: {"type": "message_delta", "delta": {}, "usage": 5}\n\n'
GARBAGE: dict[str, ReplyStep] = {
    "bad json": TextReply("x", insert={1: b"event: content_block_delta\ndata: {not json\n\n"}),
    "bad bytes": TextReply("x", insert={1: b"event: content_block_delta\ndata: \xff\xfe\n\n"}),
    "no object": TextReply("x", insert={0: b"event: content_block_delta\ndata: [1, 2]\n\n"}),
    "odd object": TextReply("x", insert={1: ODD}),
    "huge line": TextReply("x", insert={1: b": " + b"x" * 10_000_000}),
    "html": RawReply(b"<html>hello</html>", "text/html"),
    "json": RawReply(b'{"choices": []}', "application/json"),
}


@EVERY
@pytest.mark.parametrize("garbage", GARBAGE)
async def test_f43_garbage_is_an_error(provider: str, garbage: str) -> None:
    async with model_client_harness(GARBAGE[garbage]) as harness:
        error = await expect_provider_error(harness, provider)
        assert (error.code, error.retryable) == ("stream-garbage", True)
        assert len(harness.llm.requests) == 1


@EVERY
async def test_f43_unterminated_lines_are_a_cut_stream(provider: str) -> None:
    unended = RawReply(b'data: {"choices": [], "type": "message_stop"}\ndata: [DONE]\n')
    async with model_client_harness(unended, limits=Limits(call_attempts=1)) as harness:
        assert (await expect_provider_error(harness, provider)).code == "stream-truncated"


@EVERY
async def test_f43_comments_and_mixed_line_ends_are_accepted(provider: str) -> None:
    legal = TextReply("whole", chunks=2, insert={1: b": a comment\r\n\r\n", 2: b":\n\n"})
    async with model_client_harness(legal) as harness:
        assert (await harness.ask(provider)).text == "whole"


@EVERY
async def test_f43_split_character_is_joined(provider: str) -> None:
    async with model_client_harness(
        TextReply("grüße 你好 🎉", chunks=3, split_characters=True)
    ) as harness:
        assert (await harness.ask(provider)).text == "grüße 你好 🎉" == harness.text


@EVERY
@pytest.mark.parametrize(
    ("step", "code"),
    [
        (TextReply(None), "empty-reply"),
        (TextReply("   "), "empty-reply"),
        (TextReply("", finish="length"), "empty-reply"),
        (TextReply(None, refusal="I will not", finish="stop"), "refused"),
    ],
)
async def test_f44_reply_without_text_has_its_own_code(
    provider: str, step: TextReply, code: str
) -> None:
    async with model_client_harness(step) as harness:
        assert (await expect_provider_error(harness, provider)).code == code
        assert len(harness.llm.requests) == 1


@pytest.mark.parametrize("provider", ["openai", "box"])
async def test_f44_filtered_reply_is_an_error(provider: str) -> None:
    async with model_client_harness(TextReply("abc", finish="content_filter")) as harness:
        assert (await expect_provider_error(harness, provider)).code == "content-filtered"


@EVERY
async def test_f44_empty_choices_are_an_error(provider: str) -> None:
    empty = TextReply("x", empty_choices=True)
    async with model_client_harness(*[empty] * 4) as harness:
        error = await expect_provider_error(harness, provider)
        # Of a stream that promises no end marker nobody can say that it was whole: it is tried again.
        is_cut = provider == "box"
        assert error.code == ("stream-truncated" if is_cut else "empty-reply")
        assert len(harness.llm.requests) == (4 if is_cut else 1)


@EVERY
async def test_f44_token_limit_is_the_finish_reason(provider: str) -> None:
    async with model_client_harness(TextReply("a long sto", finish="length")) as harness:
        reply = await harness.ask(provider)
        assert (reply.text, reply.finish_reason) == ("a long sto", "length")


@EVERY
@pytest.mark.parametrize("arguments", ['{"q": "x"}', '{"q": "x', "not JSON"])
async def test_f45_unrequested_tool_call_is_an_error(provider: str, arguments: str) -> None:
    """No node offers tools to a model yet, so any call of one is unasked, well formed or not."""
    called = TextReply("Let me look.", calls=[("search", arguments)], finish="tool_calls")
    async with model_client_harness(called) as harness:
        error = await expect_provider_error(harness, provider)
        assert (error.code, error.retryable) == ("unasked-tool-call", True)
        assert len(harness.llm.requests) == 1
        assert harness.text == "Let me look.", "the arguments are no text"


@EVERY
@pytest.mark.parametrize("cut", [True, False])
async def test_f45_structured_reply_is_returned_as_received(provider: str, cut: bool) -> None:
    """The one tool there is carries a reply asked for as JSON; who asked reads it strictly."""
    schema = {"type": "object", "properties": {"data": {"type": "object"}}}
    finish = "length" if cut else "stop"
    async with model_client_harness(TextReply('{"data": {"a', finish=finish)) as harness:
        reply = await harness.ask(provider, schema=schema)
        assert (reply.text, reply.finish_reason) == ('{"data": {"a', finish)


async def test_f46_endless_tool_calls_are_requested_once() -> None:
    """A node that offers no tools has no loop to bound, and none comes to be."""
    step = TextReply(None, calls=[("search", {"q": "x"})], finish="tool_calls")
    async with model_client_harness(reply_to=lambda _: step) as harness:
        events = await run_of(harness, make_graph(asking("a")))
        (failed,) = [event for event in events if event.type == "node.failed"]
        assert failed.data["error"]["code"] == "unasked-tool-call"
        assert not [event for event in events if event.type == "usage"]
        assert len(harness.llm.requests) == 1


@EVERY
@pytest.mark.parametrize("usage", [None, (-5, 7), (11, -7), (10**15, 7), (0, 0)])
async def test_f47_implausible_usage_is_estimated(
    provider: str, usage: tuple[int, int] | None
) -> None:
    async with model_client_harness(TextReply("x" * 400, usage=usage)) as harness:
        reply = await harness.ask(provider, prompt="y" * 800)
        assert reply.usage.estimated
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (200, 100)


async def test_f47_implausible_usage_of_an_execution_is_estimated() -> None:
    async with model_client_harness(TextReply("x" * 400, usage=(-5, 10**15))) as harness:
        events = await run_of(harness, make_graph(asking("a", prompt="y" * 800)))
    (usage,) = [event.data for event in events if event.type == "usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (200, 100)
    assert usage["estimated"]
    assert events[-1].type == "execution.completed"
