"""Requests to other services: capped in size, time and redirects; nothing is shared between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from planwave.errors import LimitExceeded, OutboundError, PlanwaveError
from planwave.outbound.body import read_body
from planwave.outbound.urls import (
    AllowedServices,
    Params,
    check_headers,
    check_host,
    errors_at,
    parse_url,
    shown_url,
)

if TYPE_CHECKING:
    import httpcore2
    import httpx2

    from planwave.outbound.transport import Resolver

_KEPT_HEADERS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "connection",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
        "user-agent",
    }
)
"""Headers that a redirect to another origin keeps; all others may hold credentials."""
_RETRYABLE: Final = frozenset({408, 429})
"""Statuses below 500 after which another attempt may succeed."""


@dataclass(frozen=True, slots=True)
class OutboundLimits:
    """The limits of one request; the names of the settings are ``fetch_…``.

    Attributes:
        total_s: Seconds for the whole request, redirects included.
        connect_s: Seconds to resolve a name, and to connect.
        redirects: How many redirects it follows.
        body_bytes: Bytes of a response body, decoded.
        header_bytes: Bytes of the headers of a response.
    """

    total_s: float = 30.0
    connect_s: float = 5.0
    redirects: int = 5
    body_bytes: int = 2 * 1024 * 1024
    header_bytes: int = 32 * 1024


@dataclass(frozen=True, slots=True)
class OutboundResponse:
    """A response, read completely.

    Attributes:
        url: The URL that answered, without its query.
        status: The HTTP status.
        reason: The words for the status, such as ``Not Found``.
        headers: Its headers in lower case; the values of repeated headers are joined.
        body: Its body, decoded.
    """

    url: str
    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes


class OutboundStream(NamedTuple):
    """A response whose body is read while it comes.

    Attributes:
        status: The HTTP status.
        headers: Its headers in lower case.
        chunks: The body.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncGenerator[bytes]


class OutboundClient:
    """The client for URLs that users and models choose.

    Each request has its own connections and cookies, so that no request sees those of another.

    Args:
        allowed: The services that the operator has named; see ``AllowedServices``.
        limits: The limits of each request.
        hosts: The only hosts to request besides these; see ``AllowedServices``.
        resolver: Resolves names; by default the system does.
        connector: Connects to vetted addresses.
    """

    def __init__(
        self,
        allowed: Iterable[str] = (),
        limits: OutboundLimits | None = None,
        *,
        hosts: Iterable[str] | None = None,
        resolver: Resolver | None = None,
        connector: httpcore2.AsyncNetworkBackend | None = None,
    ) -> None:
        self._hosts = hosts
        self._allowed = AllowedServices(allowed, hosts)
        self._limits = limits or OutboundLimits()
        self._resolver = resolver
        self._connector = connector

    def for_callers(self) -> OutboundClient:
        """Return the client for URLs that callers give: the operator's ``allowed`` is not for them."""
        return OutboundClient(
            (), self._limits, hosts=self._hosts, resolver=self._resolver, connector=self._connector
        )

    def check_host(self, url: str) -> None:
        """Check the host of a URL that a provider is to request.

        Raises:
            OutboundError: ``url-refused``.
        """
        with errors_at(url):
            check_host(parse_url(url), self._allowed)

    async def request(
        self,
        method: str,
        url: str,
        *,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> OutboundResponse:
        """Send a request and read its response, of whatever status.

        Args:
            method: The HTTP method in upper case.
            url: An ``http`` or ``https`` URL.
            params: Parameters to add to its query.
            headers: Headers to add. A redirect to another origin drops those that may hold credentials.
            content: The body.

        Raises:
            OutboundError: ``url-refused``, ``address-refused``, ``header-refused``,
                ``host-unreachable``, ``fetch-timeout``, ``invalid-response``.
            LimitExceeded: ``fetch_bytes``, ``fetch_header_bytes`` or ``fetch_redirects``.
        """
        check_headers(headers or {})
        with errors_at(url):
            return await self._send(method, parse_url(url, params), headers, content)

    async def _send(
        self,
        method: str,
        target: httpx2.URL,
        headers: Mapping[str, str] | None,
        content: bytes | None,
    ) -> OutboundResponse:
        with self._reported_errors(shown_url(target)):
            async with asyncio.timeout(self._limits.total_s), self._http() as http:
                request = http.build_request(method, target, headers=headers, content=content)
                response = await self._follow(http, request)
                try:
                    return await self._read(response)
                finally:
                    await response.aclose()

    @asynccontextmanager
    async def stream(
        self, url: str, *, headers: Mapping[str, str] | None = None, silence_s: float
    ) -> AsyncGenerator[OutboundStream]:
        """Open a ``GET`` request whose body is read while it comes, without a limit of time and size.

        Args:
            url: An ``http`` or ``https`` URL.
            headers: Headers to add.
            silence_s: How long the body may send nothing.

        Raises:
            OutboundError, LimitExceeded: As ``request``; also while the body is read.
        """
        check_headers(headers or {})
        target = parse_url(url, None)
        url_text = shown_url(target)
        async with self._http() as http:
            with self._reported_errors(url_text):
                own = {"Accept-Encoding": "identity", **(headers or {})}
                async with asyncio.timeout(self._limits.total_s):
                    response = await self._follow(
                        http, http.build_request("GET", target, headers=own)
                    )
            try:
                response_headers = {name: response.headers[name] for name in response.headers}
                chunks = self._chunks(response, url_text, silence_s)
                yield OutboundStream(response.status_code, response_headers, chunks)
            finally:
                await response.aclose()

    async def _chunks(
        self, response: httpx2.Response, url_text: str, silence_s: float
    ) -> AsyncGenerator[bytes]:
        pieces = response.aiter_raw()
        while True:
            with self._reported_errors(url_text):
                async with asyncio.timeout(silence_s):
                    piece = await anext(pieces, None)
            if piece is None:
                return
            yield piece

    @contextmanager
    def _reported_errors(self, url_text: str) -> Generator[None]:
        """Raise the errors of the HTTP library as those of this module."""
        # Lazy: test_importing_the_node_library_loads_no_sdk
        import httpx2

        try:
            yield
        except PlanwaveError:
            raise
        except (TimeoutError, httpx2.TimeoutException) as error:
            is_connecting = isinstance(error, httpx2.ConnectTimeout)
            raise self._timeout(url_text, is_connecting=is_connecting) from error
        except httpx2.RequestError as error:
            raise _failure(url_text, error) from error

    @asynccontextmanager
    async def _http(self) -> AsyncGenerator[httpx2.AsyncClient]:
        # Lazy: test_importing_the_node_library_loads_no_sdk
        import httpcore2
        import httpx2

        # Lazy: test_importing_the_node_library_loads_no_sdk
        from planwave.outbound.transport import VettingBackend, VettingTransport, resolve

        connector = self._connector or cast(
            "httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend()
        )
        backend = VettingBackend(self._allowed, self._resolver or resolve, connector)
        async with httpx2.AsyncClient(
            transport=VettingTransport(backend, self._allowed),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx2.Timeout(None, connect=self._limits.connect_s),
            headers={"Accept-Encoding": "gzip", "User-Agent": "planwave"},
        ) as http:
            yield http

    async def _follow(self, http: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and those that its redirects lead to; the transport vets each.

        The body of the response is not read yet; the caller closes it.
        """
        for _ in range(self._limits.redirects + 1):
            response = await http.send(request, stream=True)
            await self._check_headers(response)
            if not response.has_redirect_location:
                return response
            await response.aclose()
            following = response.next_request
            if following is None:
                raise OutboundError(
                    f"{shown_url(request.url)!r} answered with a redirect that leads nowhere",
                    code="invalid-response",
                )
            if following.url.origin != request.url.origin:
                for name in following.headers.keys() - _KEPT_HEADERS:
                    del following.headers[name]
            request = following
        limit = self._limits.redirects
        raise LimitExceeded(
            "fetch_redirects", limit, limit + 1, what=repr(shown_url(request.url)),
            hint="request the address that the redirects lead to, or raise the limit fetch_redirects",
        )  # fmt: skip

    async def _check_headers(self, response: httpx2.Response) -> None:
        size = sum(len(name) + len(value) for name, value in response.headers.raw)
        limit = self._limits.header_bytes
        if size > limit:
            await response.aclose()
            raise LimitExceeded(
                "fetch_header_bytes", limit, size, what=f"the headers of {shown_url(response.url)!r}",
                hint="request another address, or raise the limit fetch_header_bytes",
            )  # fmt: skip

    async def _read(self, response: httpx2.Response) -> OutboundResponse:
        url_text = shown_url(response.url)
        return OutboundResponse(
            url=url_text,
            status=response.status_code,
            reason=response.reason_phrase,
            headers=_joined(response.headers.multi_items()),
            body=await read_body(response, self._limits.body_bytes, url_text),
        )

    def _timeout(self, url_text: str, *, is_connecting: bool) -> OutboundError:
        limits = self._limits
        took = f"the request did not end within {limits.total_s:g} s"
        hint = "raise the limit fetch_s, or ask for less"
        if is_connecting:
            took = f"no connection within {limits.connect_s:g} s"
            hint = "check the address, or raise the limit fetch_connect_s"
        return OutboundError(f"{url_text!r}: {took}", code="fetch-timeout", hint=hint)


def _joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by name; O(n), which a server cannot use to keep this process busy."""
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name, []).append(value)
    return {name: ", ".join(each) for name, each in values.items()}


def status_error(method: str, response: OutboundResponse) -> OutboundError:
    """Return the error of a response whose status is one."""
    status = response.status
    return OutboundError(
        f"{method} {response.url} answered {status} {response.reason}".rstrip(),
        code="http-status",
        retryable=status in _RETRYABLE or status >= 500,
    )


def _failure(url_text: str, error: Exception) -> OutboundError:
    # Lazy: test_importing_the_node_library_loads_no_sdk
    import httpx2

    if isinstance(error, httpx2.NetworkError):
        return OutboundError(
            f"{url_text!r} cannot be reached: {error or 'the connection broke off'}",
            code="host-unreachable",
            hint="check the address and the network",
        )
    return OutboundError(
        f"{url_text!r} sent a response that cannot be read: {error}", code="invalid-response"
    )
