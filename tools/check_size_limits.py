"""Check the size limits of the code and its lazy imports; exits 1 and names every violation.

The executor uses ``Any`` only where JSON or code of others enters; the count may only go down.
A module has at most 600 lines, a kernel module 300, a function 50. Generated files are exempt.
(Branch complexity is ruff's C90.)
A file of the web UI has at most 400 lines. (The limits of its functions are Biome's.)
Imports in functions follow a comment ``# Lazy: test_name``: the test of start-up that needs them.
Usage: ``python tools/check_size_limits.py``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Set
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULE_LINES, KERNEL_LINES, FUNCTION_LINES = 600, 300, 50
WEB_LINES, WEB_SUFFIXES = 400, frozenset({".ts", ".tsx", ".css"})
KERNEL = "planwave/executor/scheduling"
MAX_ANY_IN_EXECUTOR = 23
GENERATED = "# Generated "
LAZY = re.compile(r"\s*# Lazy: (test_\w+)$")


def module_violations(path: Path) -> Iterator[str]:
    """Yield a line for each limit that a module or one of its functions exceeds."""
    text = path.read_text("utf-8")
    if text.startswith(GENERATED):
        return
    name = path.relative_to(ROOT).as_posix()
    limit = KERNEL_LINES if name.startswith(f"{KERNEL}/") else MODULE_LINES
    lines = text.count("\n")
    if lines > limit:
        yield f"{name}: {lines} lines, at most {limit}"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                yield f"{name}:{node.lineno}: {node.name} has {length} lines, at most {FUNCTION_LINES}"


def web_violations(path: Path) -> Iterator[str]:
    """Yield a line if a file of the web UI is too long."""
    text = path.read_text("utf-8")
    lines = text.count("\n")
    if lines > WEB_LINES and not text.startswith(f"//{GENERATED[1:]}"):
        yield f"{path.relative_to(ROOT).as_posix()}: {lines} lines, at most {WEB_LINES}"


def any_violations(files: Iterable[Path]) -> Iterator[str]:
    """Yield a line if the executor uses ``Any`` too often, imports included."""
    texts = (path.read_text("utf-8") for path in files)
    count = sum(len(re.findall(r"\bAny\b", text)) for text in texts)
    if count > MAX_ANY_IN_EXECUTOR:
        yield f"planwave/executor: {count} uses of Any, at most {MAX_ANY_IN_EXECUTOR}"


def lazy_import_violations(path: Path, tests: Set[str]) -> Iterator[str]:
    """Yield a line for each block of imports in a function that names no existing test."""
    text = path.read_text("utf-8")
    lines = text.splitlines()
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        block_end = 0
        for node in ast.walk(function):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            comment = LAZY.fullmatch(lines[node.lineno - 2])
            is_named = comment is not None and comment[1] in tests
            if not is_named and node.lineno != block_end + 1:
                name = path.relative_to(ROOT).as_posix()
                yield f"{name}:{node.lineno}: move the import up, or name its test: # Lazy: test_…"
            block_end = node.end_lineno or node.lineno


def main() -> int:
    """Check every module of the package and the tools."""
    files = sorted([*ROOT.glob("planwave/**/*.py"), *ROOT.glob("tools/*.py")])
    violations = [line for path in files for line in module_violations(path)]
    web = [path for path in ROOT.glob("web/src/**/*") if path.suffix in WEB_SUFFIXES]
    violations += [line for path in web for line in web_violations(path)]
    violations += any_violations(ROOT.glob("planwave/executor/**/*.py"))
    test_files = "".join(path.read_text("utf-8") for path in ROOT.glob("tests/**/test_*.py"))
    tests = set(re.findall(r"\bdef (test_\w+)", test_files))
    for path in ROOT.glob("planwave/**/*.py"):
        violations += lazy_import_violations(path, tests)
    print("\n".join(violations) or f"{len(files) + len(web)} files are within the size limits")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
