"""The HTTP server: stock uvicorn on sockets that are bound first, and an orderly shutdown.

The first SIGTERM or SIGINT starts draining: the service accepts no new work (503, readiness off),
streams are ended with a message, and running nodes and requests may finish within ``drain_s``. Work
that is still running then is interrupted and resumed at the next start. Reads are answered
meanwhile. The second signal interrupts at once, the third ends the process.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, contextmanager
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, Final, cast

import uvicorn
from pydantic import SecretStr

from planwave.api.app import attach_service, create_detached_app
from planwave.api.dependencies import AppState
from planwave.api.logging_config import configure_logging
from planwave.api.metrics import VERSION
from planwave.api.middleware.forwarded_scheme import ForwardedSchemeMiddleware
from planwave.errors import InputError
from planwave.log_records import service_logger, write_record
from planwave.nodes.secrets import open_redactor
from planwave.outbound.addresses import is_loopback
from planwave.service.service_log import ServiceLog
from planwave.settings import Settings, log_levels

if TYPE_CHECKING:
    from fastapi import FastAPI

    from planwave.service.service import Service

_log = logging.getLogger(__name__)
_SERVICE_LOG: Final = service_logger("planwave.service")

FINAL_GRACE_S: Final = 1.0
"""How long responses that have begun may go on once the drain time is over."""
CLIENTS_GRACE_S: Final = 2.0
"""How long a command that ends stays for commands of other terminals, which read its last events."""
_LOOPBACK: Final = "127.0.0.1"
_KEEP_ALIVE_S: Final = 30
_POLL_INTERVAL_S: Final = 0.05
_HEADER_SLACK: Final = 256
"""Bytes that a request's head may have beyond ``header_bytes`` before the parser rejects it: the
middleware, which does not count optional spaces, sends the better error."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_BACKLOG: Final = 2_048
_MAX_OPEN_FILES: Final = 20_000
_SOCKET_TIMEOUT_S: Final = 30
"""How long the kernel holds back a client that sends nothing, and waits for it to acknowledge data."""
_PORTS_TRIED: Final = 20
_NOT_HERE: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""Errors of binding to an address that this machine does not have."""
_WILDCARD_HOSTS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - only compared
_AUTH_HINT: Final = "set PLANWAVE_TOKEN to a long random text, such as openssl rand -hex 32"
EXIT_DISPLACED: Final = 70
"""Another process drives the executions of the database."""
_TOKEN_CHARS: Final = 16
"""The fewest characters of a token that others than this machine can try."""


class ShutdownSignals:
    """The signals to stop that the process has received.

    Attributes:
        drain_requested: Set by the first signal.
        abort_requested: Set by the second signal.
        exit_code: 0, or 128 plus the number of the second signal, or ``EXIT_DISPLACED``.
    """

    def __init__(self) -> None:
        self.drain_requested = asyncio.Event()
        self.abort_requested = asyncio.Event()
        self.exit_code = 0

    def receive(self, number: int = signal.SIGTERM) -> None:
        """Record a signal; the third one ends the process."""
        if self.abort_requested.is_set():
            os._exit(128 + number)
        if self.drain_requested.is_set():
            self.exit_code = 128 + number
            self.abort_requested.set()
        self.drain_requested.set()

    def displaced(self) -> None:
        """Stop at once and in error: another process does what this one did."""
        self.exit_code = EXIT_DISPLACED
        self.drain_requested.set()
        self.abort_requested.set()

    @contextmanager
    def installed(self) -> Generator[None]:
        """Receive signals on the running event loop; ignored signals (nohup) stay ignored."""
        loop = asyncio.get_running_loop()
        watched = [n for n in _SIGNALS if signal.getsignal(n) is not signal.SIG_IGN]
        for number in watched:
            loop.add_signal_handler(number, self.receive, number)
        try:
            yield
        finally:
            for number in watched:
                loop.remove_signal_handler(number)


@contextmanager
def lasting_objects_frozen() -> Generator[None]:
    """Keep the objects of modules out of garbage collections, which stop every stream meanwhile.

    A full collection over them takes 100 ms, and 130 ms with the SDK of a provider. Modules that are
    loaded later, such as an SDK at the first call, follow with the next full collection: with all that is
    alive then, of which later collections free nothing. Executions that end are in no cycles, so they go.
    """
    gc.collect()
    gc.freeze()
    module_count = len(sys.modules)

    def freeze_new_modules(phase: str, info: dict[str, int]) -> None:
        nonlocal module_count
        if phase == "stop" and info["generation"] == 2 and len(sys.modules) > module_count:
            gc.freeze()
            module_count = len(sys.modules)

    gc.callbacks.append(freeze_new_modules)
    try:
        yield
    finally:
        gc.callbacks.remove(freeze_new_modules)
        gc.unfreeze()


class Server:
    """A stock uvicorn server on sockets that are already bound.

    Its caller handles signals and decides when connections are closed, so it calls uvicorn's
    ``startup`` and ``main_loop`` rather than ``serve``.

    Attributes:
        url: The URL of the first socket.
    """

    def __init__(
        self, app: FastAPI, settings: Settings, listeners: Sequence[socket.socket]
    ) -> None:
        limits = settings.limits
        connections = _connection_limit()
        config = uvicorn.Config(
            app,
            http="h11",
            ws="websockets-sansio",
            h11_max_incomplete_event_size=limits.header_bytes + _HEADER_SLACK,
            limit_concurrency=connections,
            ws_max_size=limits.socket_message_bytes,
            ws_ping_interval=limits.socket_ping_s,
            ws_ping_timeout=limits.socket_ping_s,
            ws_per_message_deflate=False,
            backlog=min(_BACKLOG, connections),
            timeout_keep_alive=_KEEP_ALIVE_S,
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
        )
        config.app = ForwardedSchemeMiddleware(app, config.forwarded_allow_ips)
        self._server = uvicorn.Server(config)
        self._listeners = list(listeners)
        self._tasks = asyncio.TaskGroup()
        self.url = url_of(listeners[0])

    async def open(self) -> None:
        """Start accepting connections."""
        config = self._server.config
        config.load()
        self._server.lifespan = config.lifespan_class(config)
        await self._server.startup(self._listeners)
        await self._tasks.__aenter__()
        self._tasks.create_task(self._server.main_loop())

    async def wait_for_clients(self, timeout_s: float) -> None:
        """Wait until the clients have closed their connections, for so many seconds at most."""
        now = asyncio.get_running_loop().time
        end = now() + timeout_s
        while self._server.server_state.connections:
            if now() >= end:
                return
            await asyncio.sleep(_POLL_INTERVAL_S)

    async def close(self, deadline: float = 0.0, abort: asyncio.Event | None = None) -> None:
        """Stop accepting connections, let requests finish, then close every connection.

        Args:
            deadline: Event loop time until which requests may go on.
            abort: Closes everything at once when set.
        """
        state, abort = self._server.server_state, abort or asyncio.Event()
        now = asyncio.get_running_loop().time
        await self._stop_accepting()
        grace_end = now() + FINAL_GRACE_S
        for connection in list(state.connections):
            if not isinstance(connection, self._server.config.ws_protocol_class or ()):
                connection.shutdown()  # a WebSocket is closed by its own task, with a reason
        while state.connections and not abort.is_set():
            if now() >= (max(deadline, grace_end) if state.tasks else grace_end):
                break
            await asyncio.sleep(_POLL_INTERVAL_S)
        await self._abort_connections()

    async def _stop_accepting(self) -> None:
        """Close the listeners, once what they have accepted is among the connections.

        asyncio forgets a connection that it accepts in the moment in which its server is closed: neither
        side hears of it again (seen with Python 3.11).
        """
        loop = asyncio.get_running_loop()
        for server in self._server.servers:
            for listener in server.sockets:
                loop.remove_reader(listener.fileno())
        for _ in range(2):  # the transport is made, then the protocol is told
            await asyncio.sleep(0)
        for server in self._server.servers:
            server.close()
        _close(self._listeners)

    async def _abort_connections(self) -> None:
        state = self._server.server_state
        for connection in list(state.connections):
            connection.transport.abort()
        if tasks := list(state.tasks):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=FINAL_GRACE_S)
        self._server.should_exit = True
        await self._tasks.__aexit__(None, None, None)


async def serve(settings: Settings, app: FastAPI, on_listening: Callable[[str], object]) -> int:
    """Serve until a signal requests a stop; return the exit code.

    Args:
        settings: Host, port (0 for a free one), token and limits.
        app: The application; see ``create_app``.
        on_listening: Called with the URL once requests are answered.

    Raises:
        InputError: ``token-required``, ``cannot-listen``.
        StoreError: The storage directory cannot be used, or another process writes into it.
    """
    check_token(settings)
    signals = ShutdownSignals()
    with (
        signals.installed(),
        bind_socket(settings.host, settings.port) as listeners,
        configure_logging(
            sys.stderr,
            settings.log_format,
            open_redactor(settings, os.environ).text,
            log_levels(settings.log_level),
        ),
    ):
        async with app.router.lifespan_context(app):
            service = cast("AppState", app.state.planwave).service
            log = ServiceLog(service.tracer, settings.log_executions, settings.log_slow_call_s)
            service.observe(log)
            service.leader.on_displaced.append(signals.displaced)
            server = Server(app, settings, listeners)
            await server.open()
            token = settings.token
            service.publish_address(server.url, None if token is None else token.get_secret_value())
            await service.recover()
            about = {
                "version": VERSION,
                "url": server.url,
                "storage": settings.storage_name,
            }
            write_record(_SERVICE_LOG, logging.INFO, "started", about)
            with lasting_objects_frozen():
                on_listening(server.url)
                await signals.drain_requested.wait()
                await shutdown(service, server, signals)
        write_record(_SERVICE_LOG, logging.INFO, "stopped", {"exit_code": signals.exit_code})
    return signals.exit_code


class CommandServer:
    """The HTTP API of a command that runs executions, for commands in other terminals.

    It listens on a free port of loopback and has a token of its own; both are in the lock of the
    storage directory, which only its user can read.

    Args:
        settings: Those of the command; addresses, names and token of ``planwave serve`` do not hold.
    """

    def __init__(self, settings: Settings) -> None:
        self._token = token_urlsafe(32)
        self._settings = settings.model_copy(
            update={
                "host": _LOOPBACK,
                "token": SecretStr(self._token),
                "root_path": "",
                "allowed_hosts": [],
                "allowed_origins": [],
                "api_docs": False,
            }
        )
        self._app = create_detached_app(self._settings)

    @asynccontextmanager
    async def running(self, service: Service) -> AsyncGenerator[None]:
        """Serve an open service in the block; then end the streams and let clients finish reading.

        Raises:
            InputError: ``cannot-listen``.
        """
        with bind_socket(_LOOPBACK, 0) as listeners:
            state = attach_service(self._app, self._settings, service)
            server = Server(self._app, self._settings, listeners)
            await server.open()
            service.publish_address(server.url, self._token, is_service=False)
            async with state.mcp:
                try:
                    yield
                finally:
                    service.publish_address(None)
                    service.close_streams()
                    await server.wait_for_clients(CLIENTS_GRACE_S)
                    await server.close()


async def shutdown(service: Service, server: Server, signals: ShutdownSignals) -> None:
    """Drain the service, then close the server; a second signal cuts both short."""
    deadline = asyncio.get_running_loop().time() + service.limits.drain_s

    async def abort_on_signal() -> None:
        await signals.abort_requested.wait()
        _log.warning("stopping at once")
        service.abort()

    load = service.load
    _log.info(
        "shutting down: %d executions running, %d queued; running nodes may finish within %g s, "
        "a second signal stops them at once",
        *load[:2],
        service.limits.drain_s,
    )

    try:
        async with asyncio.TaskGroup() as tasks:
            aborting = tasks.create_task(abort_on_signal())
            await service.drain()
            aborting.cancel()
    finally:
        await server.close(deadline, signals.abort_requested)


def check_token(settings: Settings) -> None:
    """Check that a service that other machines can reach has a token that cannot be guessed.

    Raises:
        InputError: ``token-required``.
    """
    token = settings.token
    if token is not None:
        length = len(token.get_secret_value().strip())
        if not length:
            raise InputError("the token is empty", code="token-required", hint=_AUTH_HINT)
        if length < _TOKEN_CHARS and not is_loopback(settings.host):
            raise InputError(
                f"listening on {settings.host!r}, which other machines can reach, needs a token of "
                f"at least {_TOKEN_CHARS} characters, and this one has {length}",
                code="token-required",
                hint=f"{_AUTH_HINT}, or listen on 127.0.0.1",
            )
    elif not is_loopback(settings.host):
        raise InputError(
            f"listening on {settings.host!r}, which other machines can reach, needs a token",
            code="token-required",
            hint=f"{_AUTH_HINT}, or listen on 127.0.0.1",
        )


@contextmanager
def bind_socket(host: str, port: int) -> Generator[list[socket.socket]]:
    """Yield sockets that are bound and do not listen yet.

    A host name may have several addresses, as ``localhost`` often has one of IPv4 and one of IPv6.
    Each address that this machine has gets a socket, all on the same port.

    Raises:
        InputError: ``cannot-listen``.
    """
    try:
        listeners = _bind_all(host, port)
    except OSError as error:
        raise InputError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            code="cannot-listen",
            hint="choose another --host or --port; port 0 chooses a free one",
        ) from error
    try:
        yield listeners
    finally:
        _close(listeners)


def _bind_all(host: str, port: int) -> list[socket.socket]:
    """Bind a socket to each address of a host, on one port.

    Raises:
        OSError: An address is in use, or this machine has none of the addresses.
    """
    resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    addresses = list(dict.fromkeys((int(family), address) for family, *_, address in resolved))
    for _ in range(_PORTS_TRIED):
        try:
            return _bind_each(addresses, port)
        except OSError as error:
            # A free port of the first address may be in use on the second one.
            if port or len(addresses) == 1 or error.errno != errno.EADDRINUSE:
                raise
    raise OSError(errno.EADDRINUSE, "no port is free on all addresses of the host")


def _bind_each(addresses: list[tuple[int, tuple[Any, ...]]], port: int) -> list[socket.socket]:
    listeners: list[socket.socket] = []
    unavailable: OSError | None = None
    try:
        for family, (name, _, *more) in addresses:
            same_port = listeners[0].getsockname()[1] if listeners else port
            try:
                listeners.append(_bind(family, (name, same_port, *more), len(addresses) == 1))
            except OSError as error:
                if error.errno not in _NOT_HERE:
                    raise
                unavailable = error
        if unavailable is not None and not listeners:
            raise unavailable
    except OSError:
        _close(listeners)
        raise
    return listeners


def _bind(family: int, address: tuple[Any, ...], is_only: bool) -> socket.socket:
    # With the protocol 0 asyncio leaves Nagle's algorithm on: each piece of a stream waits up to 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "linux":  # accepted connections inherit both
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, _SOCKET_TIMEOUT_S)
            listener.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SOCKET_TIMEOUT_S * 1_000
            )
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
    """Return the URL of a socket; for a wildcard address, the one on loopback."""
    host, port = str(listener.getsockname()[0]), listener.getsockname()[1]
    host = _WILDCARD_HOSTS.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _connection_limit() -> int:
    """Raise the limit of open files where allowed; return half of it, for connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    return _MAX_OPEN_FILES // 2 if soft == resource.RLIM_INFINITY else max(1, soft // 2)
