"""A relay before a server on loopback that can be frozen: connections stay open, and nothing comes through."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit, urlunsplit


class Relay:
    """Passes on what it receives, except while it is frozen.

    Args:
        target: The port of the server on loopback.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._passes = threading.Event()
        self._passes.set()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def freeze(self) -> None:
        self._passes.clear()

    def thaw(self) -> None:
        self._passes.set()

    def close(self) -> None:
        """Break all connections."""
        for each in (self._listener, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._passes.set()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [client, server]
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._passes.wait()
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def relay_to(url: str) -> Iterator[tuple[Relay, str]]:
    """Run a relay before the server of a URL; yield it, and the URL through it."""
    parts = urlsplit(url)
    assert parts.port is not None
    relay = Relay(parts.port)
    netloc = parts.netloc.replace(f":{parts.port}", f":{relay.port}")
    try:
        yield relay, urlunsplit(parts._replace(netloc=netloc))
    finally:
        relay.close()
