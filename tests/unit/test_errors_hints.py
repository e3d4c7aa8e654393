"""Hints of the packages below the command line, which Python and HTTP show too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import planwave

PACKAGES = (
    "events", "executor", "expressions", "graph", "mcp", "nodes", "outbound", "planner", "prompts",
    "service", "storage",
)  # fmt: skip
OF_THE_OPERATOR = {"mcp/session.py", "nodes/modules.py", "storage/ownership.py"}
"""Modules whose errors the operator mends, with a command: modules to load, servers, a directory to trust."""
COMMAND = re.compile(
    r"\bplanwave (answer|cancel|delete|diff|exec|explain|flow|fork|last|ls|nodes|plan|retry|resume|"
    r"run|show|watch)\b|(?<!\w)--[a-z]+"
)


def messages(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a module, but for docstrings."""
    docs = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def test_no_message_below_the_command_line_names_a_command_or_option() -> None:
    root = Path(planwave.__file__).parent
    found = {
        f"{file.relative_to(root)}: {text}"
        for package in PACKAGES
        for file in (root / package).rglob("*.py")
        for text in messages(ast.parse(file.read_text("utf-8")))
        if COMMAND.search(text) and str(file.relative_to(root)) not in OF_THE_OPERATOR
    }
    assert found == set()
