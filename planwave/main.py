"""The entry point of the ``planwave`` command."""

from __future__ import annotations

import sys
from io import TextIOWrapper

from planwave.bootstrap import cli_factories


def main() -> None:
    """Run the ``planwave`` command."""
    try:
        # Lazy: test_ctrl_c_before_the_command_has_begun_leaves_no_trace
        from planwave.cli.app import app
    except KeyboardInterrupt:  # later interrupts are reported by the command
        sys.exit(130)

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(obj=cli_factories(), prog_name="planwave")
