"""The process that owns a storage directory, and whether it answers.

The process that owns the directory, ``planwave serve`` or a command that runs something, writes its
URL into the lock file. Other commands use it only if it holds the lock, the URL is one of this machine,
and it answers there; otherwise they work as if there was none.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from planwave.storage.lock import read_owner
from planwave.storage.records import STORE_STATUSES

_PROBE_TIMEOUT_S: Final = 10.0
"""A healthy service on a busy machine may take this long to answer ``/healthz``."""


class LockOwner(NamedTuple):
    """The process that owns a storage directory, as its lock file or its user describes it.

    Attributes:
        pid: Its process id; None for a service that the user names by its address.
        url: The address of its HTTP API; None if it has none, or none yet.
        token: The bearer token of that API.
        is_service: Whether it is ``planwave serve``, rather than a command that ends by itself.
    """

    pid: int | None
    url: str | None = None
    token: str | None = None
    is_service: bool = True

    @property
    def title(self) -> str:
        """The name of the process, for messages."""
        if self.pid is None:
            return f"the service at {self.url}"
        if self.is_service:
            return f"planwave serve at {self.url}"
        return f"the command with pid {self.pid}, in another terminal,"

    def __repr__(self) -> str:
        """Return the owner without its token."""
        return f"LockOwner(pid={self.pid}, url={self.url!r})"


def lock_owner(directory: Path) -> LockOwner | None:
    """Return the process that owns a directory; None if no process holds its lock.

    It has no ``url`` if it wrote one of another machine.
    """
    owner = read_owner(directory) or {}
    pid, url, token = owner.get("pid"), owner.get("url"), owner.get("token")
    if not isinstance(pid, int) or not _is_alive(pid):
        return None
    return LockOwner(
        pid,
        url if isinstance(url, str) and _is_of_this_machine(url) else None,
        token if isinstance(token, str) else None,
        owner.get("is_service") is not False,
    )


def is_planwave_service(url: str) -> bool:
    """Return whether a planwave service answers at a URL; the probe carries no token."""
    # Lazy: test_help_loads_no_heavy_library
    import httpx2

    try:
        health: Any = httpx2.get(
            f"{url}/healthz",
            timeout=_PROBE_TIMEOUT_S,
            verify=not url.lower().startswith("http:"),  # certificates take 20 ms to load
            trust_env=False,
        ).json()
    except (httpx2.TransportError, httpx2.InvalidURL, ValueError):
        return False
    return health in [{"status": status} for status in STORE_STATUSES]


def _is_of_this_machine(url: str) -> bool:
    """Return whether a URL has a numeric address on loopback or of an interface.

    A name is refused: what it stands for may change between the check and the request.
    """
    with suppress(ValueError, OSError):
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        if parts.scheme not in ("http", "https") or parts.username is not None or port is None:
            return False
        address = ip_address(host)
        if address.is_loopback:
            return True
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            target = socket.getaddrinfo(host, 0, family, socket.SOCK_DGRAM)[0][4]
            probe.bind(target)  # only an address of an interface can be bound
            return not (address.is_unspecified or address.is_multicast)
    return False


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return pid > 0
