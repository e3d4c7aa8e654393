"""The kernel knows no node type, no handle's meaning, and nothing of language models."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import planwave
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DEFAULT_TARGET_HANDLE, ERROR_HANDLE
from tests.support.engine.generic_nodes import GenericNodeTypes

ROOT = Path(planwave.__file__).parent
PACKAGES = ("executor", "graph")
FILES = sorted(file for name in PACKAGES for file in (ROOT / name).rglob("*.py"))
NOTIONS = re.compile(
    r"(?<![a-z])(chat|agent|tool|llm|prompt|webhook|cron|sse)(?![a-z])", re.IGNORECASE
)
OPAQUE = {"chat_id", "_chat_id", "user_prompt"}
"""Names of DESIGN §5 and §3 that pass through unread: the opaque context field, the plan's goal."""
MODEL = ROOT / "graph" / "model.py"
OTHER_MEANINGS = {
    ("planwave.executor.driver.attempts", "json"): "a socket type",
    ("planwave.executor.driver.publisher", "text"): "the kind of a delta",
    ("planwave.executor.inputs", "error"): "the severity of a diagnostic",
    ("planwave.executor.scheduling.waves", "number"): "a slot of a class",
    ("planwave.executor.state", "number"): "a slot of a class",
    ("planwave.executor.state", "schedule"): "a slot of a class",
    ("planwave.graph.checking.checker", "start"): "a diagnostic's code",
    ("planwave.graph.checking.edges", "input"): "a word of a sentence",
    ("planwave.graph.checking.schemas", "text"): "a word of a sentence",
    ("planwave.graph.checking.schemas", "number"): "a word of JSON Schema",
    ("planwave.graph.checking.edges", "output"): "a word of a sentence",
    ("planwave.graph.plan", "model"): "the author of a plan",
    ("planwave.graph.protocols", "model"): "the author of a plan",
    ("planwave.graph.reading.documents", "boolean"): "a word of a sentence",
    ("planwave.graph.reading.documents", "number"): "a word of a sentence",
    ("planwave.graph.result", "end"): "the type that marks a result",
    ("planwave.graph.result", "start"): "the type that declares the inputs of a flow",
    ("planwave.graph.result", "json"): "a socket type",
    ("planwave.graph.reading.json_schemas", "boolean"): "a word of JSON Schema",
    ("planwave.graph.reading.json_schemas", "if"): "a word of JSON Schema",
    ("planwave.graph.reading.json_schemas", "number"): "a word of JSON Schema",
}
"""Words that happen to be a type's or a handle's name but mean something else there."""


def module_of(path: Path) -> str:
    """The dotted name by which a file is imported."""
    names = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def words_of(path: Path) -> list[tuple[int, str]]:
    """Every identifier and every string of a file that is not a docstring, with its line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    prose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            found.append((line, node.value))
        for field in ("id", "attr", "name", "arg"):
            word = getattr(node, field, None)
            if isinstance(word, str):
                found.append((line, word))
    return found


def strings_of(path: Path) -> list[tuple[int, str]]:
    """Every string that a file uses as a value, except for keys of documents."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    keys: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys |= {id(key) for key in node.keys if key is not None}
        elif isinstance(node, ast.Subscript):
            keys.add(id(node.slice))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "get" and node.args:
                keys.add(id(node.args[0]))
        elif isinstance(node, ast.Expr):
            keys.add(id(node.value))
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in keys
    ]


def registered() -> set[str]:
    return set(import_module("planwave.nodes.registry").default_registry().names())


def test_the_checks_below_have_files_and_types() -> None:
    assert len(FILES) > 20
    assert {"start", "agent", "if", "end"} <= registered()


def test_the_engine_uses_no_term_of_language_models_and_triggers() -> None:
    found = [
        (module_of(path), line, word)
        for path in FILES
        for line, word in words_of(path)
        if NOTIONS.search(word) and word not in OPAQUE
    ]
    assert found == []


def test_the_engine_names_no_node_type() -> None:
    names = registered()
    found = [
        (module_of(path), line, word)
        for path in FILES
        for line, word in strings_of(path)
        if word in names and (module_of(path), word) not in OTHER_MEANINGS
    ]
    assert found == []


def test_the_engine_names_no_handle_except_its_three_constants() -> None:
    handles = {DEFAULT_SOURCE_HANDLE, DEFAULT_TARGET_HANDLE, ERROR_HANDLE, "tools", "false"}
    found = [
        (module_of(path), line, word)
        for path in FILES
        for line, word in strings_of(path)
        if word.startswith("condition")
        or (
            word in handles
            and path != MODEL
            and not (word == ERROR_HANDLE and path.is_relative_to(ROOT / "graph"))  # a severity
            and (module_of(path), word) not in OTHER_MEANINGS
        )
    ]
    assert found == []


def test_the_tests_of_the_engine_use_their_own_node_types() -> None:
    assert not registered() & set(GenericNodeTypes({}).names())
