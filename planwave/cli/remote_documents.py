"""Plans and graphs that a service is asked about, as its own rooms would give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from planwave.errors import GraphInvalid

if TYPE_CHECKING:
    from planwave.client import AsyncClient
    from planwave.service.documents import CheckReport


def parse_document(source: bytes) -> dict[str, Any]:
    """Read the JSON of a plan or graph.

    Raises:
        GraphInvalid: It is no JSON, or no object.
    """
    from planwave.graph.read import read_graph, parse_strict_json

    document = parse_strict_json(source)
    if not isinstance(document, dict):
        read_graph(document)  # says so
    return cast("dict[str, Any]", document)


async def check_document(client: AsyncClient, document: Mapping[str, Any], name: str) -> CheckReport:
    """Have a service check a document, and give what it found as a check here would give it.

    Raises:
        GraphInvalid: The document has errors; the message begins with ``name``.
    """
    from planwave.graph.diagnostics import Diagnostic
    from planwave.graph.read import read_graph
    from planwave.service.documents import CheckReport, raise_for_graph

    found: list[Mapping[str, Any]] = [*(await client.check(document))["diagnostics"]]
    report = tuple(Diagnostic(**each) for each in found)
    try:
        raise_for_graph(report)
        graph, _ = read_graph({part: document.get(part) for part in ("nodes", "edges")})
    except GraphInvalid as error:
        raise GraphInvalid(error.diagnostics, f"{name}: {error.message}") from error
    return CheckReport(graph, report, document)
