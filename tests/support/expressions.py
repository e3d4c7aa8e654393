"""Expressions without the template around them."""

from __future__ import annotations

import json
from typing import Any

from planwave.expressions.paths import ValuePath
from planwave.expressions.render_worker import RenderEnvironment, respond
from planwave.expressions.renderer import FUEL
from planwave.expressions.syntax import parse_template


def plain_path(source: str) -> ValuePath | None:
    """Parse an expression; return None if it is more than a plain path."""
    parts = parse_template(f"{{{{ {source} }}}}").parts
    if parts is None:
        return None
    (path,) = parts
    assert isinstance(path, ValuePath)
    return path


def rendered(source: str, **variables: Any) -> str:
    """Render a template as the worker process does, in this process."""
    request = json.dumps({"op": "render", "source": source, "variables": variables})
    answer = json.loads(respond(RenderEnvironment(1_000_000, FUEL).answer, request.encode()))
    return answer["value"]
