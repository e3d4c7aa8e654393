"""docs/errors.md is current, and its table holds exactly the codes of the package."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from planwave.error_codes import ERROR_CODES
from tests.support.paths import ROOT
from tools.gen_error_docs import DOCUMENT, page

FACTORIES = {"Diagnostic", "NodeFinding", "EdgeFinding", "provider_error", "_answer_error", "_add"}
"""Calls whose first argument is a code."""
LISTED = [each for codes in ERROR_CODES.values() for each in codes]
INTERNAL = {"already-ended", "at-rest", "duplicate-seq", "not-json", "seq-gap", "wrong-execution"}
"""Codes that are caught inside the package."""


def texts(node: ast.AST) -> Iterator[str]:
    """Yield the texts that an expression may have as its value."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp():
            yield from (*texts(node.body), *texts(node.orelse))
        case _:
            return


def codes_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg == "code":
                    yield from texts(keyword.value)
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in FACTORIES and node.args:
                yield from texts(node.args[0])
        elif isinstance(node, ast.ClassDef):
            for line in node.body:
                if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "code":
                    yield from texts(line.value)


def test_page_is_current() -> None:
    assert DOCUMENT.read_text("utf-8") == page(), "write it: python tools/gen_error_docs.py"


def test_every_code_of_the_package_is_listed() -> None:
    used = {
        code
        for path in (ROOT / "planwave").rglob("*.py")
        if path.name != "explain.py"  # its codes are those of reasons, not of errors
        for code in codes_in(ast.parse(path.read_text("utf-8")))
    }
    assert used - INTERNAL <= {each.code for each in LISTED}


def test_every_listed_code_is_used() -> None:
    sources = "".join(
        path.read_text("utf-8")
        for path in (ROOT / "planwave").rglob("*.py")
        if path.name != "error_codes.py"
    )
    elsewhere = {"flow-in-use", "plan-in-use"}  # made of the item's name
    assert {c.code for c in LISTED if f'"{c.code}"' not in sources} <= elsewhere


def test_each_code_is_explained_once() -> None:
    names = [each.code for each in LISTED]
    assert len(names) == len(set(names))
    assert all(each.cause.endswith(".") and each.way_out for each in LISTED)
