"""Fixtures shared by all tests."""

from __future__ import annotations

import ast
import gc
import logging
import os
import signal
import tempfile
import threading
from collections.abc import Generator, Iterator
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpcore2
import pytest
import typer.main
import typer.testing
from httpx2._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadGroupScheduling

from planwave.ids import new_id
from planwave.testing import forbid_model_calls

if TYPE_CHECKING:
    from tests.support.server.running_server import RunningServer
    from tests.support.storage.either_database import Place
    from tests.support.storage.postgres_server import PostgresServer

_parse = ast.parse


@wraps(_parse)
def parse_undisturbed(*args: Any, **kwargs: Any) -> ast.AST:
    """``ast.parse`` with the garbage collector paused.

    Up to CPython 3.11.7 and 3.12.1 (gh-106905) a parse fails with ``AST constructor recursion
    depth mismatch`` where a collection in its middle formats a traceback, which parses too: a task
    whose exception nobody fetched does so. pytest, hypothesis and our own tests parse sources.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _parse(*args, **kwargs)
    finally:
        if collecting:
            gc.enable()


ast.parse = parse_undisturbed

# Tests are not affected by the settings and keys of the person who runs them.
for _name in [
    each for each in os.environ if each.startswith(("PLANWAVE_", "OPENAI_", "ANTHROPIC_", "OTEL_"))
]:
    del os.environ[_name]


def pytest_configure(config: pytest.Config) -> None:
    """Keep what the tests trust, and their own settings, away from the person who runs them."""
    directory = tempfile.TemporaryDirectory(prefix="planwave-tests-")
    config.add_cleanup(directory.cleanup)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        os.environ[name] = os.path.join(directory.name, name)
    # The model servers of the tests are here; a test that wants another provider says so.
    forbid_model_calls(allow=["127.0.0.1", "localhost"])


@pytest.fixture(scope="session", autouse=True)
def empty_working_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run all tests in an empty directory.

    The person who runs them may have a ``storage`` or a ``planwave.toml`` in the checkout, which commands
    would read.
    """
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("empty"))
    yield
    os.chdir(before)


@pytest.fixture
def in_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test in the root of the checkout, from where the lines of tests have short names."""
    monkeypatch.chdir(Path(__file__).parent.parent)


# A shell without job control lets what it starts in the background ignore Ctrl-C, and all that this
# starts in turn. Tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Nothing here depends on how fast a machine is: neither how long an example may take and how many are
# made in a second, nor how long a client waits by default, which is five seconds. Examples are the
# same in every run, so that one that fails fails again; `--hypothesis-profile wandering` makes others.
# `make test` tries a part of them, `make test-slow` all.
for _name, _examples in (("steady", 25), ("thorough", 100), ("wandering", 100)):
    settings.register_profile(
        _name,
        deadline=None,
        max_examples=_examples,
        derandomize=_name != "wandering",
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("steady")
for _wait in ("connect", "read", "write", "pool"):
    setattr(DEFAULT_TIMEOUT_CONFIG, _wait, 45.0)

# To read the certificates of all authorities takes 30 ms, and hundreds of clients are made here.
httpcore2.default_ssl_context = cache(httpcore2.default_ssl_context)

# Each call of a command in this process would make all commands of its application again.
typer.testing._get_command = cache(typer.main.get_command)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what is collected out of every garbage collection.

    Modules and tests are millions of objects that live to the end. A full collection over them takes
    seconds, and hundreds of thousands of objects made by tests set off one after the other. Nor is the
    collector to look for garbage after each 700 objects that a test makes.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000)
        gc.enable()


class ScheduleByFile(LoadGroupScheduling):
    """Gives a process whole files, and the groups of ``--dist loadgroup``.

    The tests of a file share the fixtures of their module. Test by test, the scheduler would look
    after each of 15,000 at all that were given out before.
    """

    def _split_scope(self, nodeid: str) -> str:
        return super()._split_scope(nodeid).partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ScheduleByFile | None:
    """Replace the scheduler of ``--dist loadgroup``."""
    return ScheduleByFile(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture(scope="session")
def server() -> Iterator[RunningServer]:
    """A server that the tests of one process share; it needs no token.

    It goes on beside tests that look at what is logged, and a busy machine holds it up at any time:
    its watchdog says nothing.
    """
    from tests.support.server.running_server import running_server

    before = set(threading.enumerate())
    with running_server(unsigned_webhooks=True) as running:
        own = {each.ident for each in threading.enumerate() if each not in before}
        log = logging.getLogger("planwave.service.loop_monitor")

        def is_of_others(record: logging.LogRecord) -> bool:
            return record.thread not in own

        log.addFilter(is_of_others)
        yield running
        log.removeFilter(is_of_others)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server that the tests of one process share; skipped where there is none."""
    from tests.support.storage.postgres_server import IS_THERE, SKIP_REASON, running_postgres

    if not IS_THERE:
        pytest.skip(SKIP_REASON)
    with running_postgres() as running:
        yield running


@pytest.fixture(scope="session")
def _database_url(postgres: PostgresServer) -> Iterator[str]:
    with postgres.new_database() as url:
        yield url


@pytest.fixture
def database_url(postgres: PostgresServer, _database_url: str) -> Iterator[str]:
    """The URL of an empty database of PostgreSQL."""
    yield _database_url
    postgres.empty(_database_url.rpartition("/")[2])


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty place for what is stored, on each database."""
    from tests.support.storage.either_database import Place

    is_directory = request.param == "sqlite"
    return Place(
        tmp_path / "storage", None if is_directory else request.getfixturevalue("database_url")
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let all tests with Temporal run in one process: they share a server, which takes a second to start."""
    if "needs_temporal" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.xdist_group("temporal"))


@pytest.fixture(scope="session")
def needs_temporal() -> None:
    """Skips a test where Temporal is not installed."""
    from tests.support.scale.temporal_server import missing

    reason = missing()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def temporal_address(
    needs_temporal: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of a Temporal server that all tests share."""
    from tests.support.scale.temporal_server import running_temporal

    with running_temporal(tmp_path_factory.mktemp("temporal")) as running:
        yield running.address


@pytest.fixture
def task_queue() -> str:
    """The name of a task queue of Temporal that no other test uses."""
    return f"test-{new_id()}"


@pytest.fixture
def hangup() -> Iterator[None]:
    """A closed terminal means something, also where the tests themselves were told to ignore it.

    Under ``nohup`` SIGHUP is ignored, in this process and in all that it starts.
    """
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
