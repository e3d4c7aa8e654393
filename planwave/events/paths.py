"""Paths of nodes: the prefix of a nested run, and the nodes around a node."""

from __future__ import annotations

from collections.abc import Iterable


def path_prefix(path: str) -> str:
    """Give what goes before a node's id in its path: that of the nested run it is in, "" in none."""
    return path[: path.rfind("/") + 1]


def ancestor_paths(path: str) -> Iterable[str]:
    """Give the paths of the nodes that a node is inside of, outermost first."""
    return [path[:at] for at, each in enumerate(path) if each == "["]
