"""Where in a body something is wrong: pointers of findings, seen from the body's top."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from planwave.errors import GraphInvalid
from planwave.graph.diagnostics import Diagnostic
from planwave.service.policies import POLICIES

GRAPH_POINTER: Final = "/graph"
"""Where the graph is in bodies that hold one."""
_OPTIONS_POINTER: Final = "/options"


@contextmanager
def prefix_error_pointers(graph: str = "") -> Generator[None]:
    """Have pointers of what is wrong point into the body, where ``graph`` is that of its graph."""
    try:
        yield
    except GraphInvalid as error:
        found: tuple[Diagnostic, ...] = error.diagnostics
        error.diagnostics = tuple(
            replace(each, pointer=f"{_OPTIONS_POINTER if _is_policy_error(each) else graph}{each.pointer}")
            for each in found
        )
        raise


def _is_policy_error(found: Diagnostic) -> bool:
    return found.pointer.startswith(f"{POLICIES}/")
