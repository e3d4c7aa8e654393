"""The service of a command while commands in other terminals may use it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest

from planwave.cli.backends import shared_service
from planwave.cli.backends.local import LocalBackend
from planwave.cli.backends.shared_service import CommandServer, leaving_others_running, shared
from planwave.cli.inputs import Source
from planwave.errors import InputError
from planwave.service.service import Service
from tests.support.cli.fake_console import console_output, plain_console
from tests.support.polling import until
from tests.support.server.running_server import HeldNodePerExecution
from tests.support.service.dependencies import dependencies


class FakeServer:
    """A server that says when it serves."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.opened = asyncio.Event()
        self.was_closed = False

    @asynccontextmanager
    async def running(self, service: Service) -> AsyncGenerator[None]:
        if self.failure is not None:
            raise self.failure
        self.opened.set()
        yield
        self.was_closed = True


@pytest.fixture
def service() -> Service:
    return Service(dependencies())


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_service, "SHARE_AFTER_S", 0.0)


async def test_short_command_imports_no_server(service: Service) -> None:
    asked: list[bool] = []

    def build(is_wanted: Callable[[], bool]) -> CommandServer | None:
        asked.append(is_wanted())
        return None

    async with shared(service, build):
        pass
    assert not any(asked)


@pytest.mark.usefixtures("at_once")
async def test_longer_command_is_served_until_it_ends(service: Service) -> None:
    server = FakeServer()
    async with shared(service, lambda _: server):
        await server.opened.wait()
        assert not server.was_closed
    assert server.was_closed


@pytest.mark.usefixtures("at_once")
async def test_command_that_ends_during_the_import_stops_it(service: Service) -> None:
    building, results = asyncio.Event(), list[bool]()
    left = threading.Event()
    loop = asyncio.get_running_loop()

    def build(is_wanted: Callable[[], bool]) -> CommandServer | None:
        loop.call_soon_threadsafe(building.set)
        left.wait(60)
        results.append(is_wanted())
        return None

    async with shared(service, build):
        await building.wait()
        loop.call_soon(left.set)  # runs once the block is left and waits
    assert results == [False]


@pytest.mark.usefixtures("at_once")
async def test_server_that_cannot_listen_does_not_stop_the_command(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    warned = asyncio.Event()

    class Noticed(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            warned.set()

    logging.getLogger(shared_service.__name__).addHandler(notices := Noticed())
    try:
        async with shared(service, lambda _: FakeServer(InputError("no port is free"))):
            await warned.wait()
    finally:
        logging.getLogger(shared_service.__name__).removeHandler(notices)
    assert caplog.messages == ["commands in other terminals cannot reach this one: no port is free"]


async def test_error_of_the_block_reaches_the_caller_as_it_is(service: Service) -> None:
    with pytest.raises(InputError, match="wrong"):
        async with shared(service, lambda _: None):
            raise InputError("wrong")


async def test_command_without_executions_of_others_ends_at_once(service: Service) -> None:
    console = plain_console()
    async with service, leaving_others_running(LocalBackend(service), console, None):
        pass
    assert console_output(console) == ""


async def test_failed_command_cancels_its_execution_and_waits_for_others() -> None:
    node, console = HeldNodePerExecution(), plain_console()
    service = Service(dependencies(types=[node]))
    source = Source("held", b'{"nodes": [{"id": "h", "type": "held"}], "edges": []}')
    async with service:
        backend = LocalBackend(service)
        own = await backend.start(await backend.plan_source(source, ()), (), None)
        other = (
            await service.executions.execute(await service.plans.read(source.content))
        ).execution_id
        await until(lambda: node.started == {own, other})

        async def release_other() -> None:
            await service.executions.wait(own)
            node.gate(other).set()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(release_other())
            with pytest.raises(InputError, match="wrong"):
                async with leaving_others_running(backend, console, None):
                    raise InputError("wrong")
        ended = [(await service.executions.get(each)).status for each in (own, other)]
    assert ended == ["cancelled", "completed"]
