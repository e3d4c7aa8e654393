"""Serves the application over HTTP: one process, our own event loop, our own way of going down.

The first SIGTERM or SIGINT drains: nothing new is taken (503, readiness off), streams are told and
ended, running nodes and requests may finish for ``drain_s``; what is left then is cut off where it
is stored, to be taken up again. Reading goes on meanwhile. The second signal cuts off at once, the
third ends the process.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, cast

from uvicorn import Config
from uvicorn import Server as Uvicorn

from planwave.api.app import ServiceFactory, create_app
from planwave.api.connections import Connection, Crowd
from planwave.api.dependencies import AppState
from planwave.api.logging_config import configure_logging
from planwave.api.websockets import Socket
from planwave.errors import InputError
from planwave.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from planwave.service.service import Service

_log = logging.getLogger(__name__)

FINAL_GRACE_S: Final = 1.0
"""How long answers that have begun, and requests that are still arriving, may go on in the end."""
_KEEP_ALIVE_S: Final = 30
_POLL_INTERVAL_S: Final = 0.05
_HEADER_SLACK: Final = 256
"""Bytes a head may have beyond ``header_bytes`` on the wire: spaces nobody counts."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_BACKLOG: Final = 2_048
_MAX_OPEN_FILES: Final = 20_000
_GC_THRESHOLD: Final = (500_000, 10, 10)
"""Objects, and younger collections, before the next one; see :func:`reduced_gc`."""
_PORTS_TRIED: Final = 20
_NOT_HERE: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""What binding to an address fails with that this machine does not have."""
_WILDCARD_HOSTS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - told apart, not used
_AUTH_HINT: Final = "set PLANWAVE_TOKEN to a long random text"


class ShutdownSignals:
    """How often the process was asked to stop.

    Attributes:
        drain_requested: Set when it was asked.
        abort_requested: Set when it was asked once more.
        exit_code: 0, or what the shell is told of being asked more than once.
    """

    def __init__(self) -> None:
        self.drain_requested = asyncio.Event()
        self.abort_requested = asyncio.Event()
        self.exit_code = 0

    def receive(self, number: int = signal.SIGTERM) -> None:
        """Take a signal."""
        if self.abort_requested.is_set():
            os._exit(128 + number)
        if self.drain_requested.is_set():
            self.exit_code = 128 + number
            self.abort_requested.set()
        self.drain_requested.set()

    @contextmanager
    def installed(self) -> Generator[None]:
        """Take signals while an event loop runs; SIGHUP where nobody asked to ignore it."""
        loop = asyncio.get_running_loop()
        watched = [n for n in _SIGNALS if signal.getsignal(n) is not signal.SIG_IGN]
        for number in watched:
            loop.add_signal_handler(number, self.receive, number)
        try:
            yield
        finally:
            for number in watched:
                loop.remove_signal_handler(number)


class Server:
    """An application on sockets that are bound already.

    Attributes:
        url: Where it is reached; of several addresses, the first.
    """

    def __init__(
        self, app: FastAPI, settings: Settings, listeners: Sequence[socket.socket]
    ) -> None:
        limits = settings.limits
        patience = {"patience_s": limits.body_read_s}
        most_idle = _most_idle()
        most = limits.header_bytes + _HEADER_SLACK
        http: Any = partial(Connection, **patience, head_bytes=most, crowd=Crowd(most_idle))
        ws: Any = partial(Socket, **patience)
        self._uvicorn = Uvicorn(
            Config(
                app,
                http=http,
                ws=ws,
                ws_max_size=limits.socket_message_bytes,
                ws_ping_interval=limits.socket_ping_s,
                ws_ping_timeout=limits.socket_ping_s,
                ws_per_message_deflate=False,
                backlog=min(_BACKLOG, 1 + most_idle // 2),  # so many are taken on at a time
                timeout_keep_alive=_KEEP_ALIVE_S,
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                server_header=False,
            )
        )
        self._listeners = list(listeners)
        self._tasks = asyncio.TaskGroup()
        self.url = url_of(listeners[0])

    async def open(self) -> None:
        """Take connections from now on."""
        config = self._uvicorn.config
        config.load()
        self._uvicorn.lifespan = config.lifespan_class(config)
        await self._uvicorn.startup(self._listeners)
        await self._tasks.__aenter__()
        self._tasks.create_task(self._uvicorn.main_loop())

    async def close(self, deadline: float = 0.0, abort: asyncio.Event | None = None) -> None:
        """Take no more connections, let requests at work finish, and end every connection.

        Args:
            deadline: Event loop time until which requests at work may go on.
            abort: Ends everything at once.
        """
        state, abort = self._uvicorn.server_state, abort or asyncio.Event()
        now = asyncio.get_running_loop().time
        for server in self._uvicorn.servers:
            server.close()
        _close(self._listeners)
        last_words = now() + FINAL_GRACE_S
        for each in list(state.connections):
            if isinstance(each, Connection):  # WebSockets close themselves, with a word of why
                each.shutdown()
        while state.connections and not abort.is_set():
            at_work = [c for c in state.connections if isinstance(c, Connection) and c.is_working]
            if now() >= (max(deadline, last_words) if at_work else last_words):
                break
            await asyncio.sleep(_POLL_INTERVAL_S)
        await self._abort_connections()

    async def _abort_connections(self) -> None:
        state = self._uvicorn.server_state
        for each in list(state.connections):
            each.shutdown()
            each.transport.abort()
        if tasks := list(state.tasks):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=FINAL_GRACE_S)
        self._uvicorn.should_exit = True
        await self._tasks.__aexit__(None, None, None)


async def serve(
    settings: Settings, create_service: ServiceFactory, on_listening: Callable[[str], object]
) -> int:
    """Serve until a signal says to stop; give the exit code.

    Args:
        settings: Host, port (0 for a free one), token and limits.
        create_service: Puts the rooms together; see ``main.create_service``.
        on_listening: Told the URL once requests are answered.

    Raises:
        InputError: ``token-required``, ``cannot-listen``.
        StoreError: The storage directory cannot be used, or another process writes into it.
    """
    check_token(settings)
    stop = ShutdownSignals()
    with (
        stop.installed(),
        bind_socket(settings.host, settings.port) as listeners,
        configure_logging(sys.stderr, settings.log_format),
    ):
        app = create_app(settings, create_service)
        async with app.router.lifespan_context(app):
            service = cast("AppState", app.state.planwave).service
            server = Server(app, settings, listeners)
            await server.open()
            token = settings.token
            service.publish_address(server.url, None if token is None else token.get_secret_value())
            with reduced_gc():
                await service.recover()
                on_listening(server.url)
                await stop.drain_requested.wait()
                await shutdown(service, server, stop)
    return stop.exit_code


@contextmanager
def reduced_gc() -> Generator[None]:
    """Have cyclic garbage looked for less often, and not among what is there already.

    With Python's own thresholds a quarter of a busy service's time goes into walking over its
    modules, schemas and running executions again and again; almost all that it lets go of, it lets
    go of by counting references: executions are not part of cycles, connections hardly leave any.
    What may gather in between is some tens of megabytes.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


async def shutdown(service: Service, server: Server, signals: ShutdownSignals) -> None:
    """Drain a service and the connections to it; ``stop.again`` cuts that short."""
    until = asyncio.get_running_loop().time() + service.limits.drain_s

    async def hurry() -> None:
        await signals.abort_requested.wait()
        _log.warning("stopping at once")
        service.abort()

    load = service.load
    _log.info(
        "going down: %d executions run, %d are queued; their nodes have %g s, a second signal none",
        *load[:2],
        service.limits.drain_s,
    )

    try:
        async with asyncio.TaskGroup() as tasks:
            hurrying = tasks.create_task(hurry())
            await service.drain()
            hurrying.cancel()
    finally:
        await server.close(until, signals.abort_requested)


def check_token(settings: Settings) -> None:
    """Refuse to listen without a token where others could reach it.

    Raises:
        InputError: ``token-required``.
    """
    token = settings.token
    if token is not None:
        if not token.get_secret_value().strip():
            raise InputError("the token is empty", code="token-required", hint=_AUTH_HINT)
    elif not _is_loopback(settings.host):
        raise InputError(
            f"{settings.host!r} can be reached from elsewhere: that needs a token",
            code="token-required",
            hint=f"{_AUTH_HINT}, or listen on 127.0.0.1",
        )


@contextmanager
def bind_socket(host: str, port: int) -> Generator[list[socket.socket]]:
    """Yield sockets that have their addresses and do not listen yet.

    A name may stand for several addresses, as ``localhost`` often does for one of IPv4 and one of
    IPv6: there is a socket for each that this machine has, all on the same port.

    Raises:
        InputError: ``cannot-listen``.
    """
    try:
        listeners = _bind_all(host, port)
    except OSError as error:
        raise InputError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            code="cannot-listen",
            hint="choose another --host or --port; port 0 takes any that is free",
        ) from error
    try:
        yield listeners
    finally:
        _close(listeners)


def _bind_all(host: str, port: int) -> list[socket.socket]:
    """Bind a socket to each address of a host, on one port.

    Raises:
        OSError: An address is in use, or this machine has none of them.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    addresses = list(dict.fromkeys((int(family), address) for family, *_, address in found))
    for _ in range(_PORTS_TRIED):
        try:
            return _bind_each(addresses, port)
        except OSError as error:
            # A free port of the first address may be in use on the second one.
            if port or len(addresses) == 1 or error.errno != errno.EADDRINUSE:
                raise
    raise OSError(errno.EADDRINUSE, "no port is free on all of its addresses")


def _bind_each(addresses: list[tuple[int, tuple[Any, ...]]], port: int) -> list[socket.socket]:
    listeners: list[socket.socket] = []
    lacking: OSError | None = None
    try:
        for family, (name, _, *more) in addresses:
            chosen = listeners[0].getsockname()[1] if listeners else port
            try:
                listeners.append(_bind(family, (name, chosen, *more), len(addresses) == 1))
            except OSError as error:
                if error.errno not in _NOT_HERE:
                    raise
                lacking = error
        if lacking is not None and not listeners:
            raise lacking
    except OSError:
        _close(listeners)
        raise
    return listeners


def _bind(family: int, address: tuple[Any, ...], is_only: bool) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and not is_only:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def _close(listeners: Iterable[socket.socket]) -> None:
    for listener in listeners:
        listener.close()


def url_of(listener: socket.socket) -> str:
    """Give the URL of a socket; one that listens everywhere is reached on loopback too."""
    host, port = str(listener.getsockname()[0]), listener.getsockname()[1]
    host = _WILDCARD_HOSTS.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in found)


def _most_idle() -> int:
    """Give how many connections may ask nothing: half of what the process may have open."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        most, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if most < hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, _MAX_OPEN_FILES), hard))
            most = min(hard, _MAX_OPEN_FILES)
        return max(1, most // 2)
    return _MAX_OPEN_FILES // 2
