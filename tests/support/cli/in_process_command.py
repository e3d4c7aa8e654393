"""Graphs that ask a person, and the command line over a storage directory of a test."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from planwave.bootstrap import cli_factories
from planwave.cli.app import app

_Json = dict[str, Any]


def approval_graph(**data: Any) -> _Json:
    """A draft that a person decides about (``q``), and a way to go on for each decision."""
    return {
        "nodes": [
            {"id": "draft", "type": "text", "data": {"text": "Dear all"}},
            {
                "id": "q",
                "type": "approval",
                "name": "Check",
                "data": {"prompt": "Send it?", **data},
            },
            {"id": "sent", "type": "text", "data": {"text": "sent: {{ input }}"}},
            {"id": "dropped", "type": "text", "data": {"text": "dropped"}},
        ],
        "edges": [
            _flow("draft", "q"),
            _flow("q", "sent", "approve"),
            _flow("q", "dropped", "reject"),
        ],
    }


def two_approvals_graph() -> _Json:
    """Two questions at once; nothing follows."""
    ask = {"type": "approval", "data": {"prompt": "Well?"}}
    return {"nodes": [{"id": "p", **ask}, {"id": "q", **ask}], "edges": []}


def invoke(*args: str, stdin: str | None = None) -> Result:
    """Call the command line in this process, over the storage of the working directory."""
    return CliRunner().invoke(app, list(args), obj=cli_factories(), input=stdin)


def invoke_json(*args: str, stdin: str | None = None, code: int = 0) -> Any:
    """Call it with ``--json``; give the object."""
    done = invoke(*args, "--json", stdin=stdin)
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def execute_graph(graph: _Json, *args: str) -> _Json:
    """Run a graph until it rests; give its document."""
    return invoke_json("exec", "-", *args, stdin=json.dumps(graph))


def _flow(source: str, target: str, handle: str = "output") -> _Json:
    return {
        "source": source, "sourceHandle": handle, "target": target, "data": {"channel": "flow"}
    }  # fmt: skip
