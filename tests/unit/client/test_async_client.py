"""Both clients: the same methods, and how they bear what a network does."""

from __future__ import annotations

import asyncio
import inspect
import json
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import planwave
from planwave.client import AsyncClient, Client
from planwave.errors import PlanInvalid, PlanwaveError, ShuttingDown, Unreachable
from planwave.events import Event

ID = "01900000-0000-7000-8000-000000000001"
STREAM = {"content-type": "text/event-stream"}


def test_importing_the_client_loads_no_framework() -> None:
    code = "import sys, planwave.client; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "planwave.client.async_client" in run.stdout.split()
    assert {"fastapi", "pydantic", "pydantic_core", "starlette"}.isdisjoint(run.stdout.split())


def public(client: type) -> dict[str, Any]:
    return {
        name: list(inspect.signature(each).parameters.values())
        for part in client.__mro__
        for name, each in vars(part).items()
        if inspect.isfunction(each) and not name.startswith("_")
    }


@pytest.fixture
def self_signed(tmp_path: Path) -> ssl.SSLContext:
    """The TLS context of a server whose certificate no authority has signed."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


@pytest.mark.parametrize("scheme", ["https", "HTTPS"])
async def test_certificate_is_verified(scheme: str, self_signed: ssl.SSLContext) -> None:
    connected: list[bool] = []
    server = await asyncio.start_server(
        lambda *_: connected.append(True), "127.0.0.1", 0, ssl=self_signed
    )
    address = f"{scheme}://127.0.0.1:{port_of(server)}"
    async with server, AsyncClient(address, timeout_s=20) as client:
        with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
            await client.providers()
    assert not connected


def port_of(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


def test_clients_have_the_same_methods() -> None:
    ours, theirs = public(Client), public(AsyncClient)
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert [str(p) for p in ours[name]] == [str(p) for p in theirs[name]], name
        assert getattr(Client, name).__annotations__.get("return") in (
            getattr(AsyncClient, name).__annotations__.get("return"),
            "Generator[Event]",
            "Generator[dict[str, Any]]",
        )


def sse_event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def stored(seq: int, kind: str, **data: Any) -> bytes:
    return sse_event(kind, **Event(ID, seq, "t", kind, None, None, data).as_json())


def answering(*answers: httpx2.Response | Exception) -> tuple[httpx2.MockTransport, list[str]]:
    """Give a transport that answers in turn, and the addresses it is asked for."""
    left: Iterator[httpx2.Response | Exception] = iter(answers)
    requested: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requested.append(str(request.url))
        given = next(left)
        if isinstance(given, Exception):
            raise given
        return given

    return httpx2.MockTransport(answer), requested


def stream(*parts: bytes) -> httpx2.Response:
    return httpx2.Response(200, headers=STREAM, content=b"".join(parts))


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let no client really wait; give the seconds it would have."""
    waited: list[float] = []
    monkeypatch.setattr("planwave.client.sync_client.time.sleep", waited.append)
    return waited


def test_unicode_line_breaks_are_preserved() -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x1cf"
    transport, _ = answering(
        stream(stored(1, "execution.created", goal=text), stored(2, "execution.completed"))
    )
    with Client(transport=transport) as client:
        first, _last = client.events(ID)
    assert first.data["goal"] == text


def test_interrupted_stream_reconnects_from_cursor(pauses: list[float]) -> None:
    transport, requested = answering(
        stream(stored(1, "execution.created"), b"event: node.log\ndata: {"),
        httpx2.ConnectError("refused"),
        stream(sse_event("server_draining", status=503)),
        stream(stored(2, "execution.started"), stored(3, "execution.completed")),
    )
    with Client("http://there/below/", transport=transport) as client:
        assert [event.seq for event in client.events(ID)] == [1, 2, 3]
    assert [address.rpartition("=")[2] for address in requested] == ["0", "1", "1", "1"]
    assert requested[0].startswith("http://there/below/api/executions/")
    assert [pause > 0 for pause in pauses] == [False, True, True]


def test_ended_execution_has_no_more_events() -> None:
    transport, requested = answering(httpx2.Response(204))
    with Client(transport=transport) as client:
        assert list(client.events(ID, after=7)) == []
    assert len(requested) == 1


def test_streamed_text_resets_the_retry_count(pauses: list[float]) -> None:
    def delta(offset: int) -> bytes:
        data = {"kind": "text", "text": "x" * (offset + 1), "offset": 0}
        return sse_event("node.delta", **Event(ID, 0, "t", "node.delta", "a", 1, data).as_json())

    transport, _ = answering(
        *(stream(delta(n)) for n in range(30)), stream(stored(1, "execution.completed"))
    )
    with Client(transport=transport) as client:
        pieces = [event.data["text"] for event in client.events(ID) if event.data]
    assert "".join(pieces) == "x" * 30


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(200, html="<p>please log in</p>"),
        stream(b"event: node.log\ndata: <p>\n\n"),
        stream(b'event: node.log\ndata: {"seq": 1}\n\n'),
        stream(b"event: problem\ndata: []\n\n"),
    ],
)
def test_response_of_another_service_is_reported_at_once(answer: httpx2.Response) -> None:
    transport, requested = answering(answer)
    with Client(transport=transport) as client, pytest.raises(PlanwaveError) as refused:
        list(client.events(ID))
    assert (refused.value.code, len(requested)) == ("not-planwave", 1)


def test_planning_progress_is_reported() -> None:
    transport, requested = answering(
        stream(sse_event("title", title="T"), b": ping\n\n", sse_event("plan", plan_id=ID))
    )
    received: list[Any] = []
    with Client(transport=transport) as client:
        assert client.create_plan("goal", on_progress=received.append)["plan_id"] == ID
    assert received == [("title", {"title": "T"})]
    assert requested[0].endswith("/api/plan?stream=1")


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ([sse_event("problem", status=422, code="plan-invalid", detail="no")], PlanInvalid),
        (
            [sse_event("server_draining", status=503, code="server-draining", detail="bye")],
            ShuttingDown,
        ),
        ([sse_event("title", title="T")], Unreachable),
    ],
)
def test_unfinished_plan_stream_raises(parts: list[bytes], kind: type[PlanwaveError]) -> None:
    transport, _ = answering(stream(*parts))
    ignored: Callable[[Any], None] = lambda _: None  # noqa: E731
    with Client(transport=transport) as client, pytest.raises(kind):
        client.create_plan("goal", on_progress=ignored)


def test_token_is_not_exposed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    transport, _ = answering(httpx2.ConnectError("refused"))
    with planwave.Client(token="hush-hush", transport=transport) as client:
        shown = repr(client) + repr(vars(client)) + repr(client.__dict__["_http"].headers)
        with pytest.raises(Unreachable) as refused:
            client.plans()
    assert "hush" not in shown + caplog.text + repr(refused.value)
