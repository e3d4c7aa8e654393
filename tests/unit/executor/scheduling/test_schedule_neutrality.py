"""The kernel knows no node type, no handle's meaning, and nothing of language models."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

import planwave
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DEFAULT_TARGET_HANDLE, ERROR_HANDLE
from tests.support.engine.generic_nodes import GenericCatalog

ROOT = Path(planwave.__file__).parent
FILES = sorted([*(ROOT / "executor").glob("*.py"), *(ROOT / "graph").glob("*.py")])
NOTIONS = re.compile(r"(?<![a-z])(chat|agent|tool|llm|prompt)(?![a-z])", re.IGNORECASE)
OPAQUE = {"chat_id", "_chat_id", "user_prompt"}
"""Names of DESIGN §5 and §3 that pass through unread: the opaque context field, the plan's goal."""
MODEL = ROOT / "graph" / "model.py"
OTHER_MEANINGS = {
    ("check.py", "start"): "a diagnostic's code",
    ("outcomes.py", "json"): "a socket type",
    ("publisher.py", "text"): "the kind of a delta",
    ("read.py", "boolean"): "a word of a sentence",
    ("read.py", "number"): "a word of a sentence",
    ("waves.py", "number"): "a slot of a class",
    ("wires.py", "input"): "a word of a sentence",
    ("wires.py", "output"): "a word of a sentence",
}
"""Words that happen to be a type's or a handle's name but mean something else there."""


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
    """Every string a file compares, returns or keeps as a value: keys of documents left out."""
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


def test_there_are_files_and_types_to_look_at() -> None:
    assert len(FILES) > 20
    assert {"start", "agent", "if", "end"} <= registered()


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_the_kernel_names_no_notion_of_language_models(path: Path) -> None:
    found = [
        (line, word) for line, word in words_of(path) if NOTIONS.search(word) and word not in OPAQUE
    ]
    assert found == []


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_the_kernel_names_no_node_type(path: Path) -> None:
    names = registered()
    found = [
        (line, word)
        for line, word in strings_of(path)
        if word in names and (path.name, word) not in OTHER_MEANINGS
    ]
    assert found == []


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_the_kernel_names_no_handle_but_its_three_constants(path: Path) -> None:
    handles = {DEFAULT_SOURCE_HANDLE, DEFAULT_TARGET_HANDLE, ERROR_HANDLE, "tools", "false"}
    severity = ERROR_HANDLE if path.parent.name == "graph" else ""  # Diagnostic("…", "error", …)
    found = [
        (line, word)
        for line, word in strings_of(path)
        if path != MODEL
        and word in handles
        and word != severity
        and (path.name, word) not in OTHER_MEANINGS
    ]
    found += [(line, word) for line, word in strings_of(path) if word.startswith("condition")]
    assert found == []


def test_the_kernels_tests_use_types_it_has_never_seen() -> None:
    assert not registered() & set(GenericCatalog({}).names())


def test_no_file_of_the_room_needs_one_that_needs_it() -> None:
    needs: dict[str, set[str]] = {}
    for file in (ROOT / "executor").glob("*.py"):
        found = re.findall(r"^\s*from planwave\.executor\.(\w+) import", file.read_text(), re.M)
        needs[file.stem] = set(found)
    assert needs["run"] >= {"outcomes"}
    while free := [name for name, needed in needs.items() if not needed & needs.keys()]:
        for name in free:
            del needs[name]
    assert needs == {}
