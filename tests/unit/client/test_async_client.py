"""Both clients: the same methods, and how they bear what a network does."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

import planwave
from planwave.client import AsyncClient, Client
from planwave.errors import PlanInvalid, PlanwaveError, ShuttingDown, Unreachable
from planwave.events import Event

ID = "01900000-0000-7000-8000-000000000001"
STREAM = {"content-type": "text/event-stream"}


def public(client: type) -> dict[str, Any]:
    return {
        name: list(inspect.signature(each).parameters.values())
        for part in client.__mro__
        for name, each in vars(part).items()
        if inspect.isfunction(each) and not name.startswith("_")
    }


def test_both_clients_offer_the_same() -> None:
    ours, theirs = public(Client), public(AsyncClient)
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert [str(p) for p in ours[name]] == [str(p) for p in theirs[name]], name
        assert getattr(Client, name).__annotations__.get("return") in (
            getattr(AsyncClient, name).__annotations__.get("return"),
            "Generator[Event]",
        )


def said(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def stored(seq: int, kind: str, **data: Any) -> bytes:
    return said(kind, **Event(ID, seq, "t", kind, None, None, data).as_json())


def answering(*answers: httpx2.Response | Exception) -> tuple[httpx2.MockTransport, list[str]]:
    """Give a transport that answers in turn, and the addresses it is asked for."""
    left: Iterator[httpx2.Response | Exception] = iter(answers)
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        given = next(left)
        if isinstance(given, Exception):
            raise given
        return given

    return httpx2.MockTransport(answer), asked


def stream(*parts: bytes) -> httpx2.Response:
    return httpx2.Response(200, headers=STREAM, content=b"".join(parts))


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let no client really wait; give the seconds it would have."""
    waited: list[float] = []
    monkeypatch.setattr("planwave.client.sync_client.time.sleep", waited.append)
    return waited


def test_text_with_every_line_break_unicode_has_comes_through() -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x1cf"
    transport, _ = answering(
        stream(stored(1, "execution.created", goal=text), stored(2, "execution.completed"))
    )
    with Client(transport=transport) as client:
        first, _last = client.events(ID)
    assert first.data["goal"] == text


def test_connections_that_end_go_on_where_they_were(pauses: list[float]) -> None:
    transport, asked = answering(
        stream(stored(1, "execution.created"), b"event: node.log\ndata: {"),
        httpx2.ConnectError("refused"),
        stream(said("server_draining", status=503)),
        stream(stored(2, "execution.started"), stored(3, "execution.completed")),
    )
    with Client("http://there/below/", transport=transport) as client:
        assert [event.seq for event in client.events(ID)] == [1, 2, 3]
    assert [address.rpartition("=")[2] for address in asked] == ["0", "1", "1", "1"]
    assert asked[0].startswith("http://there/below/api/executions/")
    assert [pause > 0 for pause in pauses] == [False, True, True]


def test_an_execution_that_is_over_has_no_more_events() -> None:
    transport, asked = answering(httpx2.Response(204))
    with Client(transport=transport) as client:
        assert list(client.events(ID, after=7)) == []
    assert len(asked) == 1


def test_streams_that_end_at_once_again_and_again_are_given_up(pauses: list[float]) -> None:
    transport, asked = answering(*(stream() for _ in range(20)))
    with Client(transport=transport) as client, pytest.raises(Unreachable, match="again and again"):
        list(client.events(ID))
    assert (len(asked), len(pauses)) == (8, 7)


def test_streamed_text_counts_as_getting_on(pauses: list[float]) -> None:
    def delta(offset: int) -> bytes:
        data = {"kind": "text", "text": "x" * (offset + 1), "offset": 0}
        return said("node.delta", **Event(ID, 0, "t", "node.delta", "a", 1, data).as_json())

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
def test_what_no_planwave_service_sends_is_said_so_at_once(answer: httpx2.Response) -> None:
    transport, asked = answering(answer)
    with Client(transport=transport) as client, pytest.raises(PlanwaveError) as refused:
        list(client.events(ID))
    assert (refused.value.code, len(asked)) == ("not-planwave", 1)


def test_a_plan_is_told_while_it_is_written() -> None:
    transport, asked = answering(
        stream(said("title", title="T"), b": ping\n\n", said("plan", plan_id=ID))
    )
    told: list[Any] = []
    with Client(transport=transport) as client:
        assert client.create_plan("goal", on_progress=told.append)["plan_id"] == ID
    assert told == [("title", {"title": "T"})]
    assert asked[0].endswith("/api/plan?stream=1")


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ([said("problem", status=422, code="plan-invalid", detail="no")], PlanInvalid),
        ([said("server_draining", status=503, code="server-draining", detail="bye")], ShuttingDown),
        ([said("title", title="T")], Unreachable),
    ],
)
def test_a_plan_that_is_not_finished_is_a_failure(
    parts: list[bytes], kind: type[PlanwaveError]
) -> None:
    transport, _ = answering(stream(*parts))
    ignored: Callable[[Any], None] = lambda _: None  # noqa: E731
    with Client(transport=transport) as client, pytest.raises(kind):
        client.create_plan("goal", on_progress=ignored)


def test_the_token_shows_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    transport, _ = answering(httpx2.ConnectError("refused"))
    with planwave.Client(token="hush-hush", transport=transport) as client:
        shown = repr(client) + repr(vars(client)) + repr(client.__dict__["_http"].headers)
        with pytest.raises(Unreachable) as refused:
            client.plans()
    assert "hush" not in shown + caplog.text + repr(refused.value)
