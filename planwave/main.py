"""The entry point of the ``planwave`` command."""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from io import TextIOWrapper
from typing import Final

_ALIAS_WARNING: Final = (
    r"The 'alias' attribute with value '\w+' was provided to the `Field\(\)` function"
)


def main() -> None:
    """Run the ``planwave`` command."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored
        signal.signal(signal.SIGINT, _end)  # until the command has begun
    gc.disable()  # nothing that is imported is garbage, and to look for it is a tenth of the start
    # Lazy: test_ctrl_c_before_the_command_has_begun_leaves_no_trace
    from planwave.bootstrap import cli_factories
    from planwave.cli.app import app

    gc.enable()

    # FastAPI hides this warning about its own fields, but for all threads at a time: another thread that
    # restores the filters meanwhile, as ``run`` has while it builds its server, lets it through.
    warnings.filterwarnings("ignore", _ALIAS_WARNING)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(obj=cli_factories(), prog_name="planwave")


def _end(_number: int, _frame: object) -> None:
    os._exit(130)
