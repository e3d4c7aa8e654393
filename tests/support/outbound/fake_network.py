"""A network of names and servers in memory, for the client of outbound requests."""

# ruff: noqa: ASYNC109 - the signatures of httpcore2

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import httpcore2

from planwave.outbound.client import OutboundClient, OutboundLimits

PUBLIC: Final = "93.184.216.34"
OK: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nhi"

Answer = bytes | Callable[[], Iterable[bytes]]
"""A whole response, or a function that gives it in pieces."""


def response(
    body: bytes = b"hi", *, status: str = "200 OK", kind: str = "text/plain", **headers: str
) -> bytes:
    """Return a response as bytes; ``content_encoding="gzip"`` adds such a header."""
    fields = {"content-type": kind, "content-length": str(len(body))}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def redirect(location: str, status: str = "302 Found") -> bytes:
    return response(b"", status=status, location=location)


class FakeNetwork(httpcore2.AsyncNetworkBackend):
    """Resolves names by a table and answers every connection.

    Args:
        names: The addresses of each name: for each resolution the next list, the last one again.
        answers: The responses, one for each request, in order; the last one again.

    Attributes:
        resolved: The names that were resolved, in order.
        connections: ``(address, port)`` of each connection, in order.
        tls_names: The server names of TLS.
        requests: The bytes of each request.
    """

    def __init__(self, names: Mapping[str, Sequence[Any]] | None = None, *answers: Answer) -> None:
        self._names = {name: list(lists) for name, lists in (names or {}).items()}
        self._answers = list(answers or (OK,))
        self.resolved: list[str] = []
        self.connections: list[tuple[str, int]] = []
        self.tls_names: list[str | None] = []
        self.requests: list[bytes] = []
        self.bytes_read = 0

    def client(
        self, *allowed: str, hosts: Iterable[str] | None = None, **limits: Any
    ) -> OutboundClient:
        """Return a client on this network."""
        return OutboundClient(
            allowed,
            OutboundLimits(**limits),
            hosts=hosts,
            resolver=self.resolve,
            connector=self,
        )

    async def resolve(self, host: str, port: int) -> list[str]:
        self.resolved.append(host)
        if host not in self._names:
            raise OSError(-2, "Name or service not known")
        answers = self._names[host]
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [found] if isinstance(found, str) else list(found)

    async def connect_tcp(
        self, host: str, port: int, timeout: Any = None, local_address: Any = None,
        socket_options: Any = None,
    ) -> httpcore2.AsyncNetworkStream:  # fmt: skip
        self.connections.append((host, port))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return _FakeStream(self, iter([answer] if isinstance(answer, bytes) else answer()))

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("a request is sent once")


class _FakeStream(httpcore2.AsyncNetworkStream):
    def __init__(self, network: FakeNetwork, pieces: Any) -> None:
        self._network = network
        self._pieces = pieces
        network.requests.append(b"")

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        piece: bytes = next(self._pieces, b"")
        self._network.bytes_read += len(piece)
        return piece

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._network.requests[-1] += buffer

    async def aclose(self) -> None:
        self._pieces = iter(())

    async def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        self._network.tls_names.append(server_hostname)
        return self

    def get_extra_info(self, info: str) -> Any:
        return None
