"""Which URLs, ports and headers a request may have; no name is resolved here."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Final

from planwave.errors import OutboundError
from planwave.http_headers import HeaderFault, request_header_fault

if TYPE_CHECKING:
    import httpx2

Params = Mapping[str, str | int | float | bool | Sequence[str | int | float | bool]]

_PORTS: Final = {"http": 80, "https": 443}
_HOST_NAME: Final = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")
_NUMBER: Final = re.compile(r"\d+|0x[0-9a-f]*")
"""The last part of a host that some resolvers read as an IPv4 address (WHATWG URL, "ends in a number")."""
_NOT_IN_URLS: Final = re.compile(r"[\x00-\x20\x7f\\]")
_CREDENTIALS: Final = re.compile(r"//[^/\s]*@")
_MAX_SHOWN_CHARS: Final = 300
_FAULTS: Final[Mapping[HeaderFault, tuple[str, str | None]]] = {
    "name": ("{} is not the name of a header", None),
    "own": ("the header {} is set by planwave", "remove it"),
    "value": (
        "the value of the header {} cannot be sent",
        "a value is one line of ASCII characters, without spaces at its ends",
    ),
}


class AllowedServices:
    """The services that the operator allows.

    Args:
        entries: Services that may be private or have other ports: ``host`` (ports 80 and 443) or
            ``host:port``.
        hosts: The only hosts that may be requested besides these: a name, or ``*.`` and a name for
            all hosts below it. None allows every host.
    """

    def __init__(self, entries: Iterable[str] = (), hosts: Iterable[str] | None = None) -> None:
        self._services: set[tuple[str, int]] = set()
        for entry in entries:
            host, port = _split_port(entry)
            ports = _PORTS.values() if port is None else (port,)
            self._services.update((_plain_host(host), each) for each in ports)
        self._hosts = None if hosts is None else frozenset(map(_plain_host, hosts))

    def __contains__(self, service: tuple[str, int]) -> bool:
        """Whether a service was named, so that its address may be private."""
        host, port = service
        return (_plain_host(host), port) in self._services

    def includes_host(self, host: str) -> bool:
        """Return whether a host is one of those that may be requested."""
        if self._hosts is None:
            return True
        host = _plain_host(host)
        parts = host.split(".")
        above = (f"*.{'.'.join(parts[at:])}" for at in range(1, len(parts)))
        return host in self._hosts or any(each in self._hosts for each in above)


def _split_port(entry: str) -> tuple[str, int | None]:
    host, colon, port = entry.rpartition(":")
    is_port = colon != "" and port.isdecimal() and (":" not in host or host.endswith("]"))
    return (host, int(port)) if is_port else (entry, None)


def _plain_host(host: str) -> str:
    """Return a host as it is compared: lower case, no dot at its end, IPv6 in its short form."""
    host = host.lower().removeprefix("[").removesuffix("]").removesuffix(".")
    try:
        return IPv6Address(host).compressed
    except AddressValueError:
        return host


def parse_url(text: str, params: Params | None = None) -> httpx2.URL:
    """Parse a URL that a request may have, whatever services are allowed; add parameters to it.

    Raises:
        OutboundError: ``url-refused``.
    """
    # Lazy: test_importing_the_node_library_loads_no_sdk
    import httpx2

    bad = _NOT_IN_URLS.search(text)
    if bad is not None:
        raise _refused(text, f"it has the character {bad.group()!r}", "encode it with %")
    try:
        url = httpx2.URL(text)
        if params:
            url = url.copy_merge_params(params)
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise _refused(text, "it cannot be read", "write it like https://example.com/") from error
    check_form(url)
    return url


def check_form(url: httpx2.URL) -> None:
    """Check scheme, credentials and host of a URL.

    Raises:
        OutboundError: ``url-refused``.
    """
    url_text = shown_url(url)
    if url.scheme not in _PORTS:
        raise _refused(url_text, "only http:// and https:// are allowed")
    if url.userinfo:
        hint = "send credentials in a header"
        raise _refused(url_text, "it holds credentials", hint)
    host = url.raw_host.decode("ascii")
    if not host:
        raise _refused(url_text, "it has no host", "write it like https://example.com/")
    if ":" in host:
        _check_literal(url_text, host, IPv6Address)
    elif _NUMBER.fullmatch(host.removesuffix(".").rpartition(".")[2]):
        _check_literal(url_text, host, IPv4Address)
    elif not _HOST_NAME.fullmatch(host):
        raise _refused(url_text, f"{host!r} is not the name of a host")


def _check_literal(url_text: str, host: str, kind: type[IPv4Address] | type[IPv6Address]) -> None:
    try:
        address = kind(host)
    except AddressValueError as error:
        hint = "write the address in its usual form, such as 192.0.2.1"
        raise _refused(url_text, f"{host!r} is not an IP address", hint) from error
    if getattr(address, "scope_id", None):
        raise _refused(url_text, "an address with a zone is on the local network")


def check_service(url: httpx2.URL, allowed: AllowedServices) -> None:
    """Check that a URL has a host that may be requested and a usual port, or is an allowed service.

    Raises:
        OutboundError: ``url-refused``.
    """
    check_host(url, allowed)
    host, port = _service(url)
    if port not in _PORTS.values() and (host, port) not in allowed:
        why = f"port {port} is neither 80 nor 443"
        raise _refused(shown_url(url), why, allow_hint(host, port))


def check_host(url: httpx2.URL, allowed: AllowedServices) -> None:
    """Check that a URL has a host that may be requested, or is an allowed service.

    Raises:
        OutboundError: ``url-refused``.
    """
    host, port = _service(url)
    if (host, port) not in allowed and not allowed.includes_host(host):
        why = f"the host {host!r} is not among those that the operator allows"
        hint = f"the operator can add {host!r} to the setting outbound_hosts"
        raise _refused(shown_url(url), why, hint)


def _service(url: httpx2.URL) -> tuple[str, int]:
    port = _PORTS[url.scheme] if url.port is None else url.port
    return url.raw_host.decode("ascii"), port


def allow_hint(host: str, port: int) -> str:
    """Return the hint for a service that the operator has not named."""
    service = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return f"the operator can add {service!r} to the setting allowed_outbound"


def check_headers(headers: Mapping[str, str]) -> None:
    """Check the headers that a request adds.

    Raises:
        OutboundError: ``header-refused``.
    """
    for name, value in headers.items():
        fault = request_header_fault(name, value)
        if fault is not None:
            message, hint = _FAULTS[fault]
            raise OutboundError(
                message.format(repr(name)), code="header-refused", hint=hint, retryable=False
            )


def shown_url(url: httpx2.URL) -> str:
    """Return a URL for messages: without credentials, query and fragment, which may hold secrets."""
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))


def plain_url(text: str) -> str:
    """Return a URL as it was written, but without credentials, query and fragment."""
    return without_credentials(re.split(r"[?#]", text, maxsplit=1)[0])[:_MAX_SHOWN_CHARS]


def without_credentials(text: str) -> str:
    """Return a text without the credentials of the URLs in it."""
    return _CREDENTIALS.sub("//", text)


@contextmanager
def errors_at(url: str) -> Generator[None]:
    """Name a URL in the errors of what requests it."""
    try:
        yield
    except OutboundError as error:
        error.url = plain_url(url)
        raise


def _refused(url_text: str, why: str, hint: str | None = None) -> OutboundError:
    url_text = _CREDENTIALS.sub("//", url_text.partition("?")[0])[:_MAX_SHOWN_CHARS]
    return OutboundError(
        f"{url_text!r} may not be requested: {why}", code="url-refused", hint=hint, retryable=False
    )
