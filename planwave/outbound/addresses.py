"""Which IP addresses a request may connect to.

``ipaddress.is_global`` is not enough: it is true for multicast, for the wire server of Azure, and for
IPv6 forms that hold a private IPv4 address. Sources: the IANA special-purpose registries, RFC 6052
(NAT64), RFC 5214 (ISATAP), and the metadata addresses that cloud providers document.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address

_METADATA: Final = frozenset(
    map(
        ip_address,
        (
            "169.254.169.254",
            "169.254.170.2",
            "169.254.170.23",
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:42::42",
        ),
    )
)
"""Addresses at which clouds give credentials to any program on the machine."""

_PRIVATE: Final = tuple(
    (ip_network(network), reason)
    for network, reason in (
        ("127.0.0.0/8", "a loopback address"),
        ("10.0.0.0/8", "a private address"),
        ("172.16.0.0/12", "a private address"),
        ("192.168.0.0/16", "a private address"),
        ("100.64.0.0/10", "an address of a carrier's network"),
        ("198.18.0.0/15", "an address for benchmarks"),
        ("::1/128", "a loopback address"),
        ("fc00::/7", "a private address"),
        ("fec0::/10", "a site-local address"),
    )
)
"""Networks of services that an operator may name."""

_FORBIDDEN: Final = tuple(
    (ip_network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "an unspecified address"),
        ("169.254.0.0/16", "a link-local address"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "an address for documentation"),
        ("192.88.99.0/24", "an address of a tunnel (6to4)"),
        ("198.51.100.0/24", "an address for documentation"),
        ("203.0.113.0/24", "an address for documentation"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
        ("2001::/32", "an address of a tunnel (Teredo)"),
        ("2001:2::/48", "an address for benchmarks"),
        ("2001:10::/28", "a reserved address"),
        ("2001:20::/28", "a reserved address"),
        ("2001:db8::/32", "an address for documentation"),
        ("2002::/16", "an address of a tunnel (6to4)"),
        ("3fff::/20", "an address for documentation"),
        ("fe80::/10", "a link-local address"),
        ("ff00::/8", "a multicast address"),
    )
)
_GLOBAL_IPV6: Final = IPv6Network("2000::/3")
"""All public IPv6 addresses; whatever is outside of it and in no table is reserved."""
_NAT64: Final = IPv6Network("64:ff9b::/96")
_ISATAP: Final = (b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe")
"""Bytes 8 to 11 of an IPv6 address that ends in an IPv4 address."""


def refusal_of(address: Address, *, may_be_private: bool = False) -> str | None:
    """Return why a request may not connect to an address, such as "a loopback address"; None if it may.

    Args:
        address: A resolved address.
        may_be_private: Whether the operator has named the service. Link-local and metadata addresses
            are refused all the same.
    """
    embedded = _embedded_ipv4(address)
    if embedded is not None:
        reason = refusal_of(embedded, may_be_private=may_be_private)
        return reason and f"{reason} ({embedded})"
    if address in _METADATA:
        return "the metadata service of a cloud"
    for network, reason in _PRIVATE:
        if _is_in(address, network):
            return None if may_be_private else reason
    for network, reason in _FORBIDDEN:
        if _is_in(address, network):
            return reason
    if isinstance(address, IPv6Address) and address not in _GLOBAL_IPV6:
        return "a reserved address"
    return None


def is_loopback(host: str) -> bool:
    """Return whether all addresses of a host name are of this machine alone; blocks to resolve it."""
    try:
        resolved = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(
        ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in resolved
    )


def _is_in(address: Address, network: IPv4Network | IPv6Network) -> bool:
    return address.version == network.version and address in network


def _embedded_ipv4(address: Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address leads to; None for all others.

    The other forms that hold one (6to4, Teredo, IPv4-compatible, translated, local NAT64) are
    refused as a whole.
    """
    if isinstance(address, IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64 or address.packed[8:12] in _ISATAP:
        return IPv4Address(address.packed[12:])
    return None
