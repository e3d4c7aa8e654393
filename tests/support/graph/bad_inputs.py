"""The shared collection of invalid inputs, where it is present beside the repository."""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from typing import Any

from tests.support.paths import SHARED


@cache
def bad_inputs() -> list[dict[str, Any]]:
    """Return every line of the collection; none where it is not there."""
    file = SHARED / "bad_inputs.jsonl"
    if not file.is_file():
        return []
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def expanded(value: Any) -> Any:
    """Replace the short forms of large inputs by these inputs."""
    spec = importlib.util.spec_from_file_location("expand", SHARED / "expand_bad_inputs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.expand(value)
