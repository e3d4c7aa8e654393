"""The process that owns a storage directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from planwave.cli.backends.lock_owner import LockOwner, is_planwave_service, lock_owner
from planwave.storage.lock import LOCK_NAME


def write_lock(directory: Path, **holder: Any) -> Path:
    (directory / LOCK_NAME).write_text(json.dumps(holder), "utf-8")
    return directory


def test_owner_has_address_and_hides_token(tmp_path: Path) -> None:
    found = lock_owner(write_lock(tmp_path, pid=os.getpid(), url="http://there", token="hush"))
    assert found == LockOwner(os.getpid(), "http://there", "hush")
    assert "hush" not in f"{found!r} {found}"
    assert found is not None
    assert found.title == "planwave serve at http://there"


def test_owner_that_is_a_command_is_named_by_its_process(tmp_path: Path) -> None:
    written = write_lock(tmp_path, pid=os.getpid(), url="http://there", is_service=False)
    found = lock_owner(written)
    assert found is not None
    assert found.title == f"the command with pid {os.getpid()}, in another terminal,"


@pytest.mark.parametrize(
    "said",
    [{}, {"pid": "1"}, {"pid": 0}, {"pid": -1}, {"pid": 10**30}, {"url": "http://there"}],
)
def test_invalid_lock_content_has_no_owner(tmp_path: Path, said: Mapping[str, Any]) -> None:
    assert lock_owner(write_lock(tmp_path, **said)) is None
    assert lock_owner(tmp_path / "nowhere") is None


def test_dead_process_is_no_owner(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert lock_owner(write_lock(tmp_path, pid=gone.pid, url="http://127.0.0.1:1")) is None


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
