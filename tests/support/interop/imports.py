"""Imports held against the promises that every one of them keeps, and run with a fake model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from planwave.graph.checking.checker import read_and_check
from planwave.graph.diagnostics import Diagnostic
from planwave.interop.importing.importer import Imported
from planwave.jsonio import dumps_exact
from planwave.settings import Limits
from tests.support.llm.fake_providers import library_registry
from tests.support.paths import ROOT, SHARED

OWN: Final = ROOT / "tests" / "data" / "import"
"""Files of other programs, written for these tests."""
REAL: Final = SHARED / "import" / "real"
"""Files of others, which are there on some machines only."""
SETUP_CODES: Final = frozenset(
    {
        "placeholder", "unknown-provider", "unavailable-provider", "unknown-model", "unknown-flow",
        "unknown-mcp-server", "unknown-secret", "unknown-tool",
        "web-search-unavailable",
    }
)  # fmt: skip
"""Errors that an imported graph may have: what has no counterpart, and what the operator provides."""
_GRAPH_FIELDS: Final = ("body", "graph")


def node_paths(document: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the path of each node of a document, also of those in bodies."""
    for node in document["nodes"]:
        yield prefix + node["id"]
        for body in _bodies(node):
            yield from node_paths(body, f"{prefix}{node['id']}/")


def edge_paths(document: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the path of each edge of a document, also of those in bodies."""
    yield from (prefix + edge["id"] for edge in document["edges"])
    for node in document["nodes"]:
        for body in _bodies(node):
            yield from edge_paths(body, f"{prefix}{node['id']}/")


def _bodies(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    data: Mapping[str, Any] = node.get("data") or {}
    for field in _GRAPH_FIELDS:
        if node["type"] != "placeholder" and isinstance(data.get(field), dict):
            yield data[field]


def assert_accounted_for(
    imported: Imported, *, nodes: Sequence[str], edges: Sequence[str], secrets: Sequence[str] = ()
) -> None:
    """Check the promises of a report.

    Args:
        imported: The import.
        nodes: The pointer of each node of the source.
        edges: The pointer of each edge of the source.
        secrets: Texts that stood in the source as secrets.
    """
    document, report = imported.document, imported.report
    assert Counter(entry["source"] for entry in report["nodes"]) == Counter(nodes)
    assert Counter(entry["source"] for entry in report["edges"]) == Counter(edges)
    paths = list(node_paths(document))
    assert len(paths) == len(set(paths))
    targets = {target for entry in report["nodes"] for target in entry["target"]}
    assert set(paths) == targets
    edge_targets = {target for entry in report["edges"] for target in entry["target"]}
    assert edge_targets <= set(edge_paths(document))
    for entry in report["nodes"]:
        assert bool(entry["target"]) == (entry["outcome"] != "dropped")
        assert entry["outcome"] == "mapped" or entry["notes"], entry
    for entry in report["edges"]:
        assert entry["outcome"] == "mapped" or entry["notes"], entry
    counts = Counter(entry["outcome"] for entry in report["nodes"])
    assert report["summary"] == {
        each: counts[each] for each in ("mapped", "changed", "placeholder", "dropped")
    }
    written = dumps_exact([document, report, imported.code])
    for secret in secrets:
        assert secret not in written
    expected = SETUP_CODES if document["nodes"] else {*SETUP_CODES, "empty-graph"}
    unexpected = [each for each in findings_of(imported) if each.code not in expected]
    assert not unexpected, unexpected


def findings_of(imported: Imported) -> list[Diagnostic]:
    """Return the errors that the check has of the document."""
    graph = {name: imported.document[name] for name in ("nodes", "edges")}
    _, findings = read_and_check(graph, library_registry(), Limits(nodes=1_000))
    return [each for each in findings if each.severity == "error"]


def outcomes(imported: Imported) -> dict[str, str]:
    """Return the outcome of each source node by its name."""
    return {entry["source_name"]: entry["outcome"] for entry in imported.report["nodes"]}
