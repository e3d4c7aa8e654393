"""n8n workflows for tests: written in short, with the pointers of their parts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from planwave.graph.json_values import pointer_part
from planwave.interop.importing.importer import Imported, import_text
from tests.support.interop.imports import assert_accounted_for

BASE = "n8n-nodes-base."
CHAIN = "@n8n/n8n-nodes-langchain."


def node(name: str, kind: str, parameters: Any = None, **fields: Any) -> dict[str, Any]:
    """Return a node; a kind without a package is one of n8n's base package."""
    return {
        "id": name,
        "name": name,
        "type": kind if "." in kind else BASE + kind,
        "typeVersion": fields.pop("version", 3),
        "position": [0, 0],
        "parameters": {} if parameters is None else parameters,
        **fields,
    }


def workflow(*nodes: Mapping[str, Any], ways: str = "") -> dict[str, Any]:
    """Return a workflow whose connections are ``A > B, A:1 > C, M >ai_languageModel> A``."""
    connections: dict[str, Any] = {}
    for written in filter(None, (each.strip() for each in ways.split(","))):
        source, _, rest = written.partition(" >")
        kind, target = ("main", rest) if rest.startswith(" ") else rest.split("> ", 1)
        target, _, index = target.strip().partition("@")
        name, _, output = source.partition(":")
        outputs = connections.setdefault(name, {}).setdefault(kind, [])
        while len(outputs) <= int(output or 0):
            outputs.append([])
        outputs[int(output or 0)].append({"node": target, "type": kind, "index": int(index or 0)})
    return {"name": "Test", "nodes": list(nodes), "connections": connections}


def pointers(document: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the pointer of each node and each connection."""
    nodes = document.get("nodes")
    listed = cast("list[Any]", nodes) if isinstance(nodes, list) else []
    return {
        "nodes": [f"/nodes/{i}" for i, each in enumerate(listed) if isinstance(each, dict)],
        "edges": list(_edges(document.get("connections"))),
    }


def _edges(connections: Any) -> Iterator[str]:
    for source, kinds in _items(connections):
        for kind, outputs in _items(kinds):
            for output, targets in enumerate(_list(outputs)):
                for number, end in enumerate(_list(targets)):
                    if isinstance(end, dict):
                        place = f"/connections/{pointer_part(source)}/{pointer_part(kind)}"
                        yield f"{place}/{output}/{number}"


def _items(value: Any) -> Sequence[tuple[str, Any]]:
    return list(cast("dict[str, Any]", value).items()) if isinstance(value, dict) else []


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def imported(document: Mapping[str, Any]) -> Imported:
    """Import a workflow, and check that each of its parts is accounted for."""
    made = import_text(json.dumps(document), "n8n")
    assert_accounted_for(made, **pointers(document))
    return made


def by_name(made: Imported) -> dict[str, Any]:
    """Return the nodes of the document by their names, also those in bodies."""

    def walk(graph: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for each in graph["nodes"]:
            yield each["name"], each
            data = each.get("data", {})
            for field in ("body", "graph"):
                if isinstance(data.get(field), dict) and each["type"] != "placeholder":
                    yield from walk(data[field])

    return dict(walk(made.document))


def codes(made: Imported, name: str) -> set[str]:
    """Return the codes of the notes of a node."""
    found = (each for each in made.report["nodes"] if each["source_name"] == name)
    return {note["code"] for each in found for note in each["notes"]}
