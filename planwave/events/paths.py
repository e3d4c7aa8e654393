"""Paths of nodes, and the prefixes that the nodes of a nested run share.

``a[2]/b`` is the path of node ``b`` in the run that node ``a`` opened under the key 2. The prefix of
that run is ``a[2]/``; the prefix of the execution's own graph is empty.
"""

from __future__ import annotations

from typing import TypeAlias

NodePath: TypeAlias = str


def path_prefix(path: NodePath) -> str:
    """Return the prefix of the graph run that a node is part of."""
    return path[: path.rfind("/") + 1]


def nested_prefix(path: NodePath, key: str) -> str:
    """Return the prefix of the run that a node opens under a key."""
    return f"{path}[{key}]/"


def parent_path(prefix: str) -> NodePath:
    """Return the path of the node that opened the run with this prefix."""
    return prefix[: prefix.rfind("[")]


def ancestor_paths(path: NodePath) -> list[NodePath]:
    """Return the paths of the nodes whose nested runs contain a node, outermost first."""
    return [path[:at] for at, character in enumerate(path) if character == "["]


def outermost_path(path: NodePath) -> NodePath:
    """Return the node of the execution's own graph that a node is or is nested in."""
    return path.partition("[")[0]


def is_inside(path: NodePath, node: NodePath) -> bool:
    """Return whether a node is nested in another one, at any depth."""
    return path.startswith(f"{node}[")
