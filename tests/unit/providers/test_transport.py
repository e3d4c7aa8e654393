from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import httpx2
import pytest
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelRequest

from planwave.providers.registry import ProviderConfig
from planwave.providers.streams.errors import ReadDeadlineExceeded, StreamCut, StreamGarbage
from planwave.providers.transport import (
    CallDeadlines,
    GuardedTransport,
    SdkClient,
)
from tests.support.llm.fake_llm_server import ErrorReply, FakeLLMServer

LINE = 4 * 1024 * 1024
CHUNK = b'data: {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": null}]}\n\n'


def no_deadline(_: float) -> asyncio.Timeout:
    return asyncio.timeout(None)


class Canned(httpx2.AsyncBaseTransport):
    """Answers with these chunks, whatever is asked."""

    def __init__(
        self, *chunks: bytes, status: int = 200, kind: str = "text/event-stream", **hooks: object
    ) -> None:
        self.chunks = chunks
        self.status = status
        self.kind = kind
        self.before: Callable[[int], None] = hooks.get("before", lambda _: None)  # type: ignore[assignment]
        self.seen: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.seen.append(request)
        canned = self

        class Body(httpx2.AsyncByteStream):
            async def __aiter__(self) -> AsyncIterator[bytes]:
                for number, chunk in enumerate(canned.chunks):
                    canned.before(number)
                    yield chunk

        return httpx2.Response(self.status, headers={"content-type": self.kind}, stream=Body())


async def read(
    inner: Canned,
    *,
    must_end: bool = True,
    path: str = "",
    clock: float = 0.0,
) -> bytes:
    guarded = GuardedTransport(
        inner,
        CallDeadlines(60, 30, 300),
        must_end=must_end,
        drop_headers=("openai-project",),
        clock=lambda: clock,
        timeout=lambda _: asyncio.timeout(None),
    )
    async with httpx2.AsyncClient(transport=guarded) as client:
        headers = {"openai-project": "p", "kept": "k"}
        answer = await client.post(f"http://x.test/{path}", headers=headers)
        return answer.content


async def test_complete_stream_passes() -> None:
    whole = CHUNK + b"data: [DONE]\n\n"
    assert await read(Canned(whole[:-5], whole[-5:])) == whole


async def test_stream_without_end_marker_is_cut() -> None:
    with pytest.raises(StreamCut):
        await read(Canned(CHUNK))
    assert await read(Canned(CHUNK), must_end=False) == CHUNK


@pytest.mark.parametrize("end", ["completed", "incomplete", "failed"])
async def test_response_ends_with_its_last_event(end: str) -> None:
    whole = f'event: response.{end}\ndata: {{"type": "response.{end}"}}\n\n'.encode()
    assert await read(Canned(whole[:20], whole[20:]), path="v1/responses") == whole
    with pytest.raises(StreamCut):
        await read(Canned(whole.replace(end.encode(), b"created")), path="v1/responses")
    with pytest.raises(StreamCut):
        await read(Canned(whole), path="v1/chat/completions")


async def test_error_response_needs_no_end_marker() -> None:
    assert await read(Canned(b"{}", status=500, kind="application/json")) == b"{}"


async def test_endless_error_response_is_truncated() -> None:
    pieces = [b"x" * 1023 + b"\n"] * 1_000
    assert len(await read(Canned(*pieces, status=500, kind="application/json"))) == 256 * 1024


@pytest.mark.parametrize("kind", ["application/json", "text/html; charset=utf-8"])
async def test_other_content_type_is_garbage(kind: str) -> None:
    with pytest.raises(StreamGarbage):
        await read(Canned(b"{}", kind=kind))


async def test_line_length_is_limited() -> None:
    fits = [b":" + b"x" * (LINE // 2 - 1), b"x" * (LINE // 2), b"\n\ndata: [DONE]\n\n"]
    assert await read(Canned(*fits)) == b"data: [DONE]\n\n"
    with pytest.raises(StreamGarbage):
        await read(Canned(b":" + b"x" * (LINE // 2), b"x" * (LINE // 2), b"\n\ndata: [DONE]\n\n"))
    with pytest.raises(StreamGarbage):
        await read(Canned(b":" + b"x" * (LINE + 1)))


async def test_many_short_lines_are_not_limited() -> None:
    many = [b":" + b"x" * (LINE // 2) + b"\n:" + b"x" * 10 + b"\n"] * 4
    assert await read(Canned(*many, b"data: [DONE]\n\n"))


async def test_broken_connection_is_a_cut() -> None:
    def reset(number: int) -> None:
        if number == 1:
            raise httpx2.ReadError("reset")

    with pytest.raises(StreamCut):
        await read(Canned(CHUNK, CHUNK, before=reset))


async def test_dropped_headers_are_not_sent() -> None:
    inner = Canned(b"data: [DONE]\n\n")
    await read(inner)
    assert "openai-project" not in inner.seen[0].headers
    assert inner.seen[0].headers["kept"] == "k"


async def test_nearest_deadline_applies() -> None:
    now = 0.0
    allowed: list[float] = []

    def timeout(seconds: float) -> asyncio.Timeout:
        allowed.append(seconds)
        return asyncio.timeout(0 if seconds <= 0 else None)

    def late(number: int) -> None:
        nonlocal now
        now = [10.0, 290.0, 301.0][number]

    guarded = GuardedTransport(
        Canned(CHUNK, CHUNK, CHUNK, CHUNK, before=lambda n: late(min(n, 2))),
        CallDeadlines(60, 30, 300),
        must_end=False,
        clock=lambda: now,
        timeout=timeout,
    )
    async with httpx2.AsyncClient(transport=guarded) as client:
        with pytest.raises(ReadDeadlineExceeded) as caught:
            await client.post("http://x.test/")
    assert caught.value.code == "call-timeout"
    assert allowed == [60, 60, 30, 10]


async def test_models_are_cached_up_to_a_bound() -> None:
    config = ProviderConfig("box", "openai-compatible", "http://x.test/v1", None, 1, None)
    deadlines = CallDeadlines(1, 1, 1)
    client = SdkClient(
        config, config.base_url, "k", deadlines, clock=lambda: 0.0, timeout=asyncio.timeout
    )
    first = client.model("m")
    assert client.model("m") is first
    released = weakref.ref(first)
    del first
    for number in range(70):
        client.model(f"m{number}")
    gc.collect()
    assert released() is None
    await client.close()


@pytest.mark.parametrize(
    ("url", "verified"),
    [
        (None, True),
        ("https://x.test/v1", True),
        ("HTTPS://x.test/v1", True),
        ("http://x.test/v1", False),
        ("HTTP://x.test/v1", False),
    ],
)
async def test_certificates_are_verified_for_https(
    url: str | None, verified: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    created: list[bool] = []
    real = httpx2.AsyncHTTPTransport.__init__

    def remember(self: httpx2.AsyncHTTPTransport, *, verify: bool, **more: Any) -> None:
        created.append(verify)
        real(self, verify=verify, **more)

    # On the class, not in its place: an SDK first imported meanwhile would keep what is there.
    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "__init__", remember)
    connection = ProviderConfig("openai", "openai", url, None, 1, None)
    limits = CallDeadlines(1, 1, 1)
    wire = SdkClient(connection, url, "k", limits, clock=lambda: 0.0, timeout=asyncio.timeout)
    await wire.close()
    assert created == [verified]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "other"), [("openai", "anthropic"), ("anthropic", "openai")])
def test_a_call_loads_no_sdk_of_another_provider(kind: str, other: str) -> None:
    code = (
        "import asyncio, sys\n"
        "from planwave.providers.model_stream import load_sdk\n"
        "from planwave.providers.registry import ProviderConfig\n"
        "from planwave.providers.transport import CallDeadlines, SdkClient\n"
        f"load_sdk({kind!r})\n"
        f"config = ProviderConfig({kind!r}, {kind!r}, None, None, 1, None)\n"
        "SdkClient(config, None, 'k', CallDeadlines(1, 1, 1), clock=float, timeout=asyncio.timeout)"
        ".model('m')\n"
        f"print({kind!r} in sys.modules, {other!r} in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("named", ["own", "box"])
async def test_environment_headers_reach_only_the_hosted_service(
    kind: Literal["openai", "anthropic"], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "canary")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "canary")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Gate: canary\nauthorization: Bearer canary")
    async with FakeLLMServer(ErrorReply(400)) as llm:
        url = llm.openai_url if kind == "openai" else llm.anthropic_url
        connection = ProviderConfig(kind if named == "own" else "box", kind, url, None, 1, None)
        limits = CallDeadlines(1, 1, 1)
        wire = SdkClient(connection, url, "k-1", limits, clock=lambda: 0.0, timeout=no_deadline)
        with pytest.raises(ModelHTTPError):
            await model_request(wire.model("m"), [ModelRequest.user_text_prompt("hi")])
        await wire.close()
    sent = llm.requests[0].headers
    assert ("canary" in str(sent)) == (named == "own")
    if named == "box":
        assert sent["authorization"] == "Bearer k-1"
