"""The entry point of the ``planwave`` command."""

from __future__ import annotations

import gc
import sys
from io import TextIOWrapper


def main() -> None:
    """Run the ``planwave`` command."""
    gc.disable()  # nothing that is imported is garbage, and to look for it is a tenth of the start
    try:
        # Lazy: test_ctrl_c_before_the_command_has_begun_leaves_no_trace
        from planwave.bootstrap import cli_factories
        from planwave.cli.app import app
    except KeyboardInterrupt:  # later interrupts are reported by the command
        sys.exit(130)
    gc.enable()

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(obj=cli_factories(), prog_name="planwave")
