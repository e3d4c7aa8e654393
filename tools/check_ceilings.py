"""Check the size ceilings: what grows past them has two jobs and is to be split by meaning.

Modules have at most 600 lines, kernel files 300, functions 50. (Branch complexity is ruff's C90.)
Usage: ``python tools/check_ceilings.py``; exits 1 and names every place that is over.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULE, KERNEL, FUNCTION = 600, 300, 50
KERNEL_FILES = frozenset(
    f"planwave/executor/scheduling/{name}.py"
    for name in ("decisions", "joins", "schedule", "waves")
)


def places_over(path: Path) -> list[str]:
    """Give one line for each ceiling a file breaks."""
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text("utf-8")
    ceiling = KERNEL if name in KERNEL_FILES else MODULE
    lines = text.count("\n")
    over = [f"{name}: {lines} lines, at most {ceiling}"] if lines > ceiling else []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION:
                over.append(
                    f"{name}:{node.lineno}: {node.name} has {length} lines, at most {FUNCTION}"
                )
    return over


def main() -> int:
    """Check every module of the package and the tools."""
    files = sorted([*ROOT.glob("planwave/**/*.py"), *ROOT.glob("tools/*.py")])
    over = [place for path in files for place in places_over(path)]
    print("\n".join(over) if over else f"ceilings kept by {len(files)} files")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
