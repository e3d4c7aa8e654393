"""Servers that lose nothing when they are killed, and an installation of several processes on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.scale.installation import Installation
from tests.support.scale.role_process import processes
from tests.support.scale.temporal_server import TemporalServer, running_temporal
from tests.support.storage.postgres_server import (
    IS_THERE,
    SKIP_REASON,
    PostgresServer,
    running_postgres,
)


@pytest.fixture(scope="session")
def durable_postgres() -> Iterator[PostgresServer]:
    """A server that loses nothing when it is stopped at once."""
    if not IS_THERE:
        pytest.skip(SKIP_REASON)
    with running_postgres("fsync=on", "full_page_writes=on") as running:
        yield running


@pytest.fixture(scope="session")
def durable_temporal(
    needs_temporal: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TemporalServer]:
    with running_temporal(tmp_path_factory.mktemp("temporal"), keeps_data=True) as running:
        yield running


@pytest.fixture
def installation(
    durable_postgres: PostgresServer,
    durable_temporal: TemporalServer,
    task_queue: str,
    tmp_path: Path,
) -> Iterator[Installation]:
    with durable_postgres.new_database() as url, processes(tmp_path) as group:
        made = Installation(group, url, durable_temporal.address, task_queue)
        yield made
        made.close()
