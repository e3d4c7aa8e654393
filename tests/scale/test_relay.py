"""The relay of the fault matrix: it delivers nothing while it is cut, and everything afterwards."""

from __future__ import annotations

import socket

import pytest

from tests.support.scale.relay import Relay


def test_a_cut_relay_keeps_connections_and_delivers_afterwards() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, Relay(server.getsockname()[1]) as relay:
        client = socket.create_connection(("127.0.0.1", relay.port))
        served, _ = server.accept()
        with client, served:
            client.sendall(b"before")
            assert served.recv(6) == b"before"
            relay.cut()
            client.sendall(b"meanwhile")
            served.settimeout(0.2)
            with pytest.raises(TimeoutError):
                served.recv(9)
            socket.create_connection(("127.0.0.1", relay.port)).close()
            relay.restore()
            served.settimeout(30)
            assert served.recv(9) == b"meanwhile"
