"""Streams of events as triggers, from a real server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from pydantic import SecretStr

from planwave.errors import LimitExceeded
from planwave.nodes.secrets import Secret
from planwave.outbound.client import OutboundClient
from planwave.redaction import Redactor
from planwave.service.service import Service
from planwave.service.triggers.event_streams import StreamEvent, StreamParser, without_secrets
from planwave.settings import Settings
from planwave.triggers import sse_source
from planwave.triggers.host import TriggerHost
from planwave.triggers.sse_source import SseSources
from tests.support.nodes.held_nodes import HeldNode
from tests.support.polling import until
from tests.support.secret_spellings import CANARY, SPELLINGS, shows
from tests.support.service.dependencies import dependencies

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
GONE = b"HTTP/1.1 204 No Content\r\n\r\n"
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"


class Source:
    """A server of streams: each connection gets the next of some answers, and is closed."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.requests: list[str] = []
        self.address = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(head.decode().lower())
            writer.write(self._answers.pop(0) if self._answers else GONE)
            await writer.drain()
        writer.close()

    @property
    def last_ids(self) -> list[str]:
        """The ``Last-Event-ID`` of each request, "" for none."""
        found = [head.partition("last-event-id: ")[2] for head in self.requests]
        return [each.partition("\r\n")[0] for each in found]


@asynccontextmanager
async def listening(
    source: Source,
    node: dict[str, Any] | None = None,
    types: Any = (),
    host: str | None = None,
    **data: Any,
) -> AsyncIterator[Service]:
    """Listen for a stream; a secret named ``crm`` is for ``host``, by default that of the stream."""
    server = await asyncio.start_server(source.serve, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    secrets = {"crm": Secret("crm", SecretStr("hush"), (host or address,))}
    echo = node or {"id": "echo", "type": "text", "data": {"text": "{{ input.data }}"}}
    stream = {"id": "in", "type": "sse", "data": {"url": f"http://{address}/s?k=1", **data}}
    edge = {"source": "in", "target": "echo", "data": {"channel": "flow"}}
    outbound = OutboundClient([address])
    async with (
        server,
        Service(dependencies(outbound=outbound, types=types, secrets=secrets)) as service,
        TriggerHost(service, Settings(), [SseSources]) as listener,
    ):
        flow = await service.flows.create("F", graph={"nodes": [stream, echo], "edges": [edge]})
        await listener.create(flow.plan_id)
        yield service


async def started(service: Service) -> list[Any]:
    """Return what executions were started with, in order."""
    records = await service.executions.list()
    firsts = [(await service.executions.events(each.execution_id, limit=1))[0] for each in records]
    return [each.data["inputs"]["in"]["output"] for each in firsts[::-1]]


async def started_at_least(service: Service, count: int) -> list[Any]:
    """Wait for so many executions; return what they were started with."""
    async with asyncio.timeout(60):
        while len(found := await started(service)) < count:  # noqa: ASYNC110
            await asyncio.sleep(0)
    return found


async def test_each_event_starts_an_execution_and_the_last_id_comes_back(monkeypatch: Any) -> None:
    monkeypatch.setattr(sse_source, "_FIRST_BACKOFF_S", 0.0)
    source = Source(
        STREAM + b': hello\r\nid: 1\r\nevent: price\r\ndata: {"a":\r\ndata: 1}\r\n\r\n',
        BUSY,
        STREAM + b"id: 1\nevent: price\ndata: again\n\nid: 2\ndata: no json\n\nid: 3\n\n",
    )
    async with listening(source, maxParallel=5) as service:
        await until(lambda: len(source.requests) == 4)
        assert await started(service) == [
            {"event": "price", "id": "1", "data": {"a": 1}},
            {"event": "message", "id": "2", "data": "no json"},
        ]
        assert source.last_ids == ["", "1", "1", "2"]


async def test_event_without_an_id_of_its_own_starts_an_execution_too() -> None:
    source = Source(STREAM + b"id: 1\ndata: 1\n\ndata: 2\n\ndata: 3\n\n")
    async with listening(source, maxParallel=5) as service:
        found = await started_at_least(service, 3)
        assert [(each["id"], each["data"]) for each in found] == [("1", 1), ("1", 2), ("1", 3)]


async def test_only_chosen_events_start_executions() -> None:
    source = Source(STREAM + b"event: a\ndata: 1\n\nevent: b\ndata: 2\n\n")
    async with listening(source, events=["b"]) as service:
        assert await started_at_least(service, 1) == [{"event": "b", "id": "", "data": 2}]


@pytest.mark.parametrize("prefix", [b"", b"test "])  # the ids of test deliveries begin with that
async def test_so_many_run_at_once_and_the_stream_waits(prefix: bytes) -> None:
    held = HeldNode()
    node = {"id": "echo", "type": "held"}
    events = [b"id: " + prefix + number + b"\ndata: " + number + b"\n\n" for number in (b"1", b"2")]
    async with listening(Source(STREAM + b"".join(events)), node, [held]) as service:
        await held.started.wait()
        for _ in range(500):
            await asyncio.sleep(0)
        assert len(await started(service)) == 1
        held.release.set()
        await started_at_least(service, 2)


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_lines_end_in_three_ways_wherever_the_stream_is_cut(end: bytes, size: int) -> None:
    lines = [b"id: 1", b"data: a", b"data: b", b"", b": note", b"event: e", b"data: c", b""]
    text = b"".join(line + end for line in lines)
    parser = StreamParser("", 1_000)
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    assert [event for chunk in chunks for event in parser.feed(chunk)] == [
        StreamEvent("message", "a\nb", "1", has_own_id=True),
        StreamEvent("e", "c", "1", has_own_id=False),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_byte_order_mark_is_dropped_at_the_start_alone(size: int) -> None:
    text = b"\xef\xbb\xbfdata: \xef\xbb\xbfa\n\n\xef\xbb\xbfdata: lost\n\ndata: b\n\n"
    parser = StreamParser("", 1_000)
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    found = [event.data for chunk in chunks for event in parser.feed(chunk)]
    assert found == ["\ufeffa", "b"]


def test_only_what_belongs_to_the_event_under_way_counts_for_its_size() -> None:
    parser = StreamParser("", 100)
    quiet = b": ping\nretry: 10\nid: 7\nunknown: x\n\nevent: e\n\n"
    for _ in range(1_000):
        assert list(parser.feed(quiet)) == []
    assert [event.data for event in parser.feed(b"data: " + b"x" * 90 + b"\n\n")] == ["x" * 90]


@pytest.mark.parametrize(
    "text",
    [
        b"data: " + b"x" * 200,
        b"data: x\n" * 200,
        b": " + b"x" * 200,
        b"event: " + b"x" * 200 + b"\n",
    ],
)
def test_an_event_or_line_over_the_limit_is_refused(text: bytes) -> None:
    with pytest.raises(LimitExceeded):
        list(StreamParser("", 100).feed(text))


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_a_stream_that_repeats_a_secret_shows_its_name(spelling: str) -> None:
    spelled = "\ndata: ".join(SPELLINGS[spelling](CANARY).splitlines())

    async def events() -> AsyncGenerator[StreamEvent]:
        for event in StreamParser("", 10_000).feed(f"id: {CANARY}\ndata: {spelled}\n\n".encode()):
            yield event

    redact = Redactor({"crm": CANARY}).text
    found = [event async for event in without_secrets(events(), redact)]
    assert [shows(str(event)) for event in found] == [[]]
    assert "[secret crm]" in found[0].data


async def test_address_that_is_not_allowed_starts_nothing(caplog: Any) -> None:
    source = Source(STREAM + b"data: 1\n\n")
    async with listening(source, url="http://169.254.169.254/") as service:
        await until(lambda: caplog.records)
        assert "169.254.169.254" in caplog.text
        assert await started(service) == []
        assert source.requests == []


async def test_secret_is_sent_in_the_header_that_names_it_and_shown_nowhere() -> None:
    source = Source(STREAM + b"id: 1\ndata: 1\n\n")
    async with listening(source, secretHeaders={"Authorization": "Bearer {crm}"}) as service:
        assert len(await started_at_least(service, 1)) == 1
        assert "authorization: bearer hush\r\n" in source.requests[0]
        (record,) = await service.executions.list()
        assert "hush" not in str(await service.executions.events(record.execution_id))


async def test_secret_for_another_host_or_unknown_is_a_problem_of_the_trigger() -> None:
    for header, words in (("{crm}", "may not be sent"), ("{other}", "no secret 'other'")):
        source = Source()
        async with listening(
            source, host="a.test", secretHeaders={"Authorization": header}
        ) as service:
            (trigger,) = await TriggerHost(service, Settings(), [SseSources]).page()
            assert words in (trigger.problem or "")
            assert source.requests == []
