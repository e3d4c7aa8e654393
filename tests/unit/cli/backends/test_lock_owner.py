"""The process that owns a storage directory."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from planwave.cli.backends.lock_owner import LockOwner, is_planwave_service, lock_owner
from planwave.storage.lock import LOCK_NAME, DirectoryLock

Hold = Callable[..., Path]


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Hold]:
    """Hold the lock of a directory, in which its owner wrote something."""
    lock = DirectoryLock(tmp_path)

    def write(**said: Any) -> Path:
        lock.write_owner(said)
        return tmp_path

    yield write
    lock.release()


def test_owner_has_address_and_hides_token(hold: Hold) -> None:
    url = "http://127.0.0.1:8000"
    found = lock_owner(hold(pid=os.getpid(), url=url, token="hush"))
    assert found == LockOwner(os.getpid(), url, "hush")
    assert "hush" not in f"{found!r} {found}"
    assert found is not None
    assert found.title == f"planwave serve at {url}"


def test_owner_that_is_a_command_is_named_by_its_process(hold: Hold) -> None:
    found = lock_owner(hold(pid=os.getpid(), url="http://127.0.0.1:1", is_service=False))
    assert found is not None
    assert found.title == f"the command with pid {os.getpid()}, in another terminal,"


@pytest.mark.parametrize(
    "said",
    [{}, {"pid": "1"}, {"pid": 0}, {"pid": -1}, {"pid": 10**30}, {"url": "http://127.0.0.1:1"}],
)
def test_invalid_lock_content_has_no_owner(hold: Hold, said: Mapping[str, Any]) -> None:
    assert lock_owner(hold(**said)) is None
    assert lock_owner(hold() / "nowhere") is None


def test_dead_process_is_no_owner(hold: Hold) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert lock_owner(hold(pid=gone.pid, url="http://127.0.0.1:1")) is None


def test_lock_that_no_process_holds_has_no_owner_whatever_it_says(tmp_path: Path) -> None:
    file = tmp_path / LOCK_NAME
    file.touch(0o600)
    file.write_text(json.dumps({"pid": os.getpid(), "url": "http://127.0.0.1:1", "token": "x"}))
    assert lock_owner(tmp_path) is None


def own_address() -> str:
    """Return the address of an interface that is not loopback, else one on loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return "127.0.0.2"
        return str(probe.getsockname()[0])


@pytest.mark.parametrize(
    ("url", "is_own"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://127.1.2.3:8000", True),
        ("http://[::1]:8000", True),
        (f"http://{own_address()}:8000", True),
        ("http://192.0.2.1:8000", False),
        ("http://[2001:db8::1]:8000", False),
        ("http://169.254.169.254:80", False),
        ("http://0.0.0.0:8000", False),
        ("http://[::]:8000", False),
        ("http://224.0.0.1:8000", False),
        ("http://localhost:8000", False),
        ("http://evil.example:8000", False),
        ("http://127.0.0.1.evil.example:8000", False),
        ("http://127.0.0.1:8000@evil.example:80", False),
        ("http://evil.example@127.0.0.1:8000", False),
        ("http://127.0.0.1:99999", False),
        ("http://127.0.0.1", False),
        ("http://2130706433:8000", False),
        ("file:///etc/passwd", False),
        ("ws://127.0.0.1:8000", False),
        ("http://[::1", False),
        ("nonsense", False),
        ("", False),
    ],
)
def test_address_of_an_owner_is_one_of_this_machine(hold: Hold, url: str, is_own: bool) -> None:
    found = lock_owner(hold(pid=os.getpid(), url=url, token="hush"))
    assert found is not None
    assert found.url == (url if is_own else None)


def test_unreachable_address_is_not_planwave(unused_tcp_port: int) -> None:
    assert not is_planwave_service(f"http://127.0.0.1:{unused_tcp_port}")
    assert not is_planwave_service("http://[::1")
    assert not is_planwave_service("nonsense")


@pytest.mark.parametrize(
    ("said", "is_planwave"),
    [
        (b'{"status": "ok"}', True),
        (b'{"status": "disk-full"}', True),
        (b'{"status": "store-busy"}', True),
        (b'{"status": "store-read-only"}', True),
        (b'{"status": "UP"}', False),
        (b'{"status": ["ok"]}', False),
        (b'{"status": "ok", "version": 3}', False),
        (b"[]", False),
        (b"<html>", False),
    ],
)
def test_health_response_identifies_planwave(said: bytes, is_planwave: bool) -> None:
    class Says(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Says) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        assert is_planwave_service(f"http://127.0.0.1:{server.server_port}") is is_planwave
        thread.join()
