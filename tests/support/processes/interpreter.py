"""What a forked process does: run a program as a fresh ``python`` would run it."""

from __future__ import annotations

import fcntl
import os
import runpy
import signal
import sys
import termios
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any

PRELOADED = "tests.support.processes.preloaded"


@dataclass(frozen=True)
class Program:
    """A program, and the process that it expects to be in.

    Attributes:
        arguments: Those of ``python``: ``-W error`` or nothing, then ``-c CODE`` or a file, then the
            arguments of the program.
        streams: Its standard input, output and errors.
        controls_terminal: Standard input is a terminal, and its signals are for this process.
    """

    arguments: Sequence[str]
    directory: str
    environment: Mapping[str, str]
    streams: Sequence[Connection]
    controls_terminal: bool


def run_program(program: Program) -> None:
    """Run a program to its end; what it raises ends the process."""
    if PRELOADED not in sys.modules:
        raise RuntimeError(f"{PRELOADED} cannot be imported")
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    _replace_streams(program.streams)
    if program.controls_terminal:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(program.directory)
    os.environ.clear()
    os.environ.update(program.environment)
    sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in os.environ
    first, *others = program.arguments
    if first == "-W":
        warnings.simplefilter("error")
        assert others.pop(0) == "error"
        first, *others = others
    imported_from = "" if first == "-c" else os.path.dirname(os.path.abspath(first))
    sys.path[:0] = [
        imported_from,
        *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)),
    ]
    _run(first, others)


def _replace_streams(streams: Sequence[Connection]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdin = sys.__stdin__ = _text(0, "r")
    sys.stdout = sys.__stdout__ = _text(1, "w")
    sys.stderr = sys.__stderr__ = _text(2, "w", errors="backslashreplace", buffering=1)


def _text(number: int, mode: str, **options: Any) -> Any:
    return open(number, mode, encoding="utf-8", closefd=False, **options)


def _run(first: str, others: Sequence[str]) -> None:
    if first == "-c":
        code, *others = others
        sys.argv = ["-c", *others]
        sys.modules["__main__"] = main = ModuleType("__main__")
        exec(code, main.__dict__)  # noqa: S102 - the program of a test
    else:
        sys.argv = [first, *others]
        runpy.run_path(first, run_name="__main__")
