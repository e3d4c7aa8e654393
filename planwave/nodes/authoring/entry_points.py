"""Entry points of installed packages: loading the objects they name, and warnings about broken ones."""

from __future__ import annotations

import logging
from importlib.metadata import EntryPoint
from typing import Any, cast

from planwave.graph.diagnostics import Diagnostic

_log = logging.getLogger(__name__)


def load_entry_point(point: EntryPoint) -> list[Any]:
    """Return what an entry point names: one object, or the items of a list."""
    loaded: Any = point.load()
    return list(cast("list[Any]", loaded)) if isinstance(loaded, (list, tuple)) else [loaded]


def broken_package(point: EntryPoint, error: BaseException) -> Diagnostic:
    """Log and return the warning for an entry point that was left out."""
    _log.warning("node package %s (%s) left out: %s", point.name, point.value, error)
    return Diagnostic(
        "broken-node-package",
        "warning",
        f"entry point {point.name!r} ({point.value}) left out: {type(error).__name__}: {error}",
        hint="repair or uninstall this package, or the one that uses the same names",
    )
