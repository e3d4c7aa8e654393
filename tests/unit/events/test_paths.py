"""The arithmetic of node paths."""

from __future__ import annotations

from planwave.events.paths import (
    ancestor_paths,
    is_inside,
    nested_prefix,
    outermost_path,
    parent_path,
    path_prefix,
)

DEEP = "a[2]/b[k]/c"


def test_paths_name_the_nodes_around_a_node() -> None:
    assert ancestor_paths("c") == []
    assert ancestor_paths(DEEP) == ["a", "a[2]/b"]
    assert (outermost_path("c"), outermost_path(DEEP)) == ("c", "a")
    assert (path_prefix("c"), path_prefix(DEEP)) == ("", "a[2]/b[k]/")
    assert nested_prefix("a[2]/b", "k") == path_prefix(DEEP)
    assert parent_path(path_prefix(DEEP)) == "a[2]/b"


def test_only_nested_nodes_are_inside_a_node() -> None:
    assert is_inside(DEEP, "a")
    assert is_inside(DEEP, "a[2]/b")
    for other in ("c", DEEP, "b", "a[2]/bb", ""):
        assert not is_inside(DEEP, other)
