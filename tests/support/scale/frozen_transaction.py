"""A planwave that stands still between BEGIN and COMMIT of an append when a file names its process."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from planwave.storage.postgres.transactions import PostgresTransactions
from planwave.storage.sql.appends import AppendOp
from tests.support.scale.logging_nodes import RUN_LOG, is_asked_for

FREEZING_PLANWAVE: Final = """
from tests.support.scale.frozen_transaction import freeze_when_asked
freeze_when_asked()
from planwave.main import main
main()
"""
"""The program of such a process."""
COMMITTED, REFUSED = "committed", "refused"


def freeze_file(run_log: Path) -> Path:
    """Return the file that names the process whose next append is to stand still."""
    return run_log.with_suffix(".freeze")


def outcome_file(run_log: Path) -> Path:
    """Return the file with a line for each append that stood still: what came of its commit once it went on."""
    return run_log.with_suffix(".thawed")


def freeze_when_asked() -> None:
    """Let the appends of this process stand still when a test asks for it."""
    append, commit = PostgresTransactions.append, PostgresTransactions.commit
    run_log = Path(os.environ[RUN_LOG])
    appending: set[PostgresTransactions] = set()

    def noting_append(self: PostgresTransactions, steps: Sequence[AppendOp]) -> None:
        append(self, steps)
        if steps:
            appending.add(self)

    def freezing_commit(self: PostgresTransactions) -> None:
        if self not in appending or not is_asked_for(freeze_file(run_log)):
            appending.discard(self)
            return commit(self)
        # Of this thread: a signal of the process may reach another one first, and this one would go on.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        outcome = REFUSED
        try:
            commit(self)
            outcome = COMMITTED
        finally:
            appending.discard(self)
            with outcome_file(run_log).open("a", encoding="utf-8") as file:
                file.write(f"{outcome}\n")

    PostgresTransactions.append = noting_append
    PostgresTransactions.commit = freezing_commit
