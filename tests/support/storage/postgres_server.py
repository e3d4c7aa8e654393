"""A PostgreSQL server of the tests' own: on a socket below a temporary directory and a free port of loopback."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from sqlalchemy import Connection, create_engine

from planwave.ids import new_id

_FOLDERS: Final = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
_PROGRAMS: Final = next((each for each in _FOLDERS if (each / "initdb").exists()), None)
SKIP_REASON: Final = "there is no PostgreSQL server here: apt install postgresql"
IS_THERE: Final = _PROGRAMS is not None
_USER: Final = "postgres"
_TEMPLATE: Final = "planwave_template"
_SETTINGS: Final = (
    "fsync=off",  # nothing here outlives the machine; the fault matrix sets it
    "full_page_writes=off",
    "max_connections=200",
    "shared_buffers=64MB",
    "log_min_messages=fatal",
)


class PostgresServer(NamedTuple):
    """A running server.

    Attributes:
        port: Its port on loopback.
        directory: Its data.
        options: Options of its program.
    """

    port: int
    directory: Path
    options: str

    def start(self) -> None:
        """Start the server, and return once it answers."""
        log = ("-l", self.directory.parent / "log", "-o", self.options)
        _run("pg_ctl", "-D", self.directory, "-w", *log, "start")

    def stop(self) -> None:
        """Stop the server at once, as a crash does: it recovers at its next start."""
        _run("pg_ctl", "-D", self.directory, "-m", "immediate", "-w", "stop")

    def url(self, database: str) -> str:
        """Return the URL of a database."""
        return f"postgresql://{_USER}@127.0.0.1:{self.port}/{database}"

    def execute(self, sql: str, database: str = "postgres") -> None:
        """Run a statement outside a transaction."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(sql)  # pyright: ignore[reportArgumentType]

    def run_client(self, program: str, *arguments: str) -> None:
        """Run a program that comes with the server, such as ``pg_dump``, against it."""
        assert _PROGRAMS is not None
        where = {"PGHOST": "127.0.0.1", "PGPORT": str(self.port), "PGUSER": _USER}
        subprocess.run([_PROGRAMS / program, *arguments], check=True, env=where)

    def empty(self, database: str) -> None:
        """Delete all rows of the tables of planwave; ten times as fast as another database."""
        from planwave.storage.sql.schema import metadata, shared_metadata

        tables = [*metadata.tables, *shared_metadata.tables]
        deletions = [f"DELETE FROM {each}" for each in tables if each != "schema_hash"]  # noqa: S608
        # Without the triggers of foreign keys the order does not matter.
        self.execute("; ".join(["SET session_replication_role = replica", *deletions]), database)

    @contextmanager
    def new_database(self) -> Iterator[str]:
        """Make a database with the tables of planwave, and remove it; yield its URL."""
        name = f"t{new_id().replace('-', '')}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
        yield self.url(name)
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def running_postgres(*settings: str) -> Iterator[PostgresServer]:
    """Run a server, with a template that has the tables of planwave.

    Args:
        settings: ``name=value`` of its settings, beside or in place of those of the tests.
    """
    # Short: the path of a socket has at most 107 bytes.
    directory = Path(tempfile.mkdtemp(prefix="planwave-pg-"))
    try:
        if os.geteuid() == 0:
            owner = pwd.getpwnam(_USER)
            os.chown(directory, owner.pw_uid, owner.pw_gid)
        data = directory / "data"
        _run("initdb", "-D", data, "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        port = _free_port()
        options = [f"-c {each}" for each in (*_SETTINGS, *settings)]
        options += [f"-p {port}", "-c listen_addresses=127.0.0.1", f"-k {directory}"]
        server = PostgresServer(port, data, " ".join(options))
        server.start()
        try:
            _make_template(server)
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory)


def _make_template(server: PostgresServer) -> None:
    from planwave.storage.postgres.migrations import migrate

    server.execute(f"CREATE DATABASE {_TEMPLATE}")
    with connected(server.url(_TEMPLATE)) as connection:
        migrate(connection)


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """Open a connection to a database, with no transaction."""
    address = url.replace("postgresql:", "postgresql+psycopg:")
    engine = create_engine(address, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def _run(program: str, *arguments: str | Path) -> None:
    assert _PROGRAMS is not None
    # The server refuses to run as root.
    as_user = ["runuser", "-u", _USER, "--"] if os.geteuid() == 0 else []
    command = [*as_user, str(_PROGRAMS / program), *map(str, arguments)]
    subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
