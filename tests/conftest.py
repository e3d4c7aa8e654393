"""Fixtures shared by all tests."""

from __future__ import annotations

import ast
import gc
import signal
from collections.abc import Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.fakes.server import RunningServer

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


@pytest.fixture(scope="session")
def server() -> Iterator[RunningServer]:
    """A server that the tests of one process share; it needs no token."""
    from tests.fakes.server import serving

    with serving() as running:
        yield running


@pytest.fixture
def hangup() -> Iterator[None]:
    """A closed terminal means something, also where the tests themselves were told to ignore it.

    Under ``nohup`` SIGHUP is ignored, in this process and in all that it starts.
    """
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
