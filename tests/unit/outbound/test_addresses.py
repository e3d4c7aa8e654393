"""Which addresses may be connected to."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from planwave.outbound.addresses import refusal_of

PRIVATE = [
    "127.0.0.1", "127.255.255.255", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "100.64.0.1", "198.18.0.1", "::1", "fc00::1", "fd12:3456::1", "fec0::1",
    "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1",
    "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:10.0.0.1",
]  # fmt: skip
"""Addresses of services that an operator may name."""

FORBIDDEN = [
    # clouds: metadata, also inside IPv6
    "169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200", "192.0.0.192",
    "fd00:ec2::254", "fd20:ce::254", "fd00:42::42", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe",
    "64:ff9b::a9fe:a9fe", "::ffff:168.63.129.16", "2606:4700::5efe:169.254.169.254",
    # link-local, unspecified, multicast, reserved, documentation
    "169.254.0.1", "fe80::1", "fe80::1%eth0", "0.0.0.0", "0.1.2.3", "::", "224.0.0.1", "ff02::1",  # noqa: S104
    "240.0.0.1", "255.255.255.255", "192.0.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1",
    "2001:db8::1", "3fff::1", "100::1", "5f00::1", "2001:2::1", "2001:20::1",
    # tunnels and forms that hold IPv4: 6to4, Teredo, IPv4-compatible, translated, local NAT64
    "2002:7f00:1::", "2002:808:808::", "192.88.99.1", "2001:0:7f00:1::", "2001::1", "::127.0.0.1",
    "::10.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::a9fe:a9fe", "64:ff9b:1::808:808",
]  # fmt: skip
"""Addresses that are never connected to."""

PUBLIC = [
    "93.184.216.34", "8.8.8.8", "9.255.255.255", "11.0.0.0", "172.15.255.255", "172.32.0.0",
    "100.63.255.255", "100.128.0.0", "169.253.255.255", "169.255.0.0", "223.255.255.255",
    "168.63.129.15", "2606:4700::1111", "2a00:1450:4001:82a::200e", "::ffff:8.8.8.8",
    "64:ff9b::808:808", "2606:4700::5efe:8.8.8.8",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_refused_unless_the_operator_has_named_its_service(
    address: str,
) -> None:
    assert refusal_of(ip_address(address))
    assert refusal_of(ip_address(address), may_be_private=True) is None


@pytest.mark.parametrize("address", FORBIDDEN)
def test_metadata_and_reserved_addresses_are_refused_in_any_case(address: str) -> None:
    assert refusal_of(ip_address(address))
    assert refusal_of(ip_address(address), may_be_private=True)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    assert refusal_of(ip_address(address)) is None


def test_the_reason_names_the_address_inside_another() -> None:
    found = refusal_of(ip_address("::ffff:127.0.0.1"))
    assert found == "a loopback address (127.0.0.1)"
