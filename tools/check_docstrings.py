"""Check the docstrings of planwave; exits 1 and names every violation.

* A string that stands alone documents a module, a class or a function at its beginning, or the assignment on
  the line above.
* A link of the reference, ``[run][planwave.run]`` or ``[wait][planwave.Run.wait]``, leads to what ``planwave`` exports,
  or to a member of it. There are no roles of Sphinx, which the site would show as they stand.
* In double backticks, a file ``….py`` exists, and a word that can be nothing but a name (CamelCase, snake_case)
  occurs in the code of planwave; ``test_…`` occurs in its tests.

Usage: ``python tools/check_docstrings.py``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROLE = re.compile(r":(?:[a-z]+:)+`[^`]+`")
LINK = re.compile(r"\]\[planwave\.([\w.]+)\]")
INSTEAD = "a link for a public name, ``double backticks`` for all others"
LITERAL = re.compile(r"``([\w./]+)(?:\(\))?``")
NAME = re.compile(r"_?[a-z0-9]+(?:_[a-z0-9]+)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+")
WORD = re.compile(r"\w+")


class Module:
    """A module, its documentation, and the words of its code without these."""

    def __init__(self, root: Path, path: Path) -> None:
        self.name = path.relative_to(root).as_posix()
        source = path.read_text("utf-8")
        self.tree = ast.parse(source)
        self.documentation = [*_documentation(self.tree)]
        self._lines = source.split("\n")
        for text, _ in self.documentation:
            self._lines[text.lineno - 1 : text.end_lineno] = [""] * _height(text)
        self.words = self.words_of(1, len(self._lines))

    def words_of(self, first: int, last: int) -> set[str]:
        """Return the words of some lines of code."""
        return {*WORD.findall("\n".join(self._lines[first - 1 : last]))}


def _documentation(tree: ast.Module) -> Iterator[tuple[ast.Constant, bool]]:
    """Yield each string that stands alone, and whether it documents anything."""
    for owner in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block: list[ast.stmt] | None = getattr(owner, name, None)
            for before, line in (
                zip([None, *block], block, strict=False) if isinstance(block, list) else ()
            ):
                match line, before:
                    case ast.Expr(value=ast.Constant(value=str()) as text), None:
                        is_first = isinstance(owner, ast.Module | ast.ClassDef)
                        yield (
                            text,
                            is_first or isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef),
                        )
                    case ast.Expr(value=ast.Constant(value=str()) as text), ast.stmt():
                        is_below = text.lineno == (before.end_lineno or 0) + 1
                        yield text, is_below and isinstance(before, ast.Assign | ast.AnnAssign)
                    case _:
                        pass


def _height(text: ast.Constant) -> int:
    return (text.end_lineno or text.lineno) - text.lineno + 1


class Names:
    """The names that documentation may refer to."""

    def __init__(self, root: Path, modules: Iterable[Module]) -> None:
        self._root = root
        self._modules = {each.name: each for each in modules}
        self._words = {word for each in self._modules.values() for word in each.words}
        tests = [*(root / "tests").rglob("*.py")]
        others = [*tests, *(root / "tools").glob("*.py")]
        self._tests = {name for path in tests for name in WORD.findall(path.read_text("utf-8"))}
        self._files = [*self._modules, *(path.relative_to(root).as_posix() for path in others)]
        self._members: dict[str, set[str]] = defaultdict(set)
        self._bases: dict[str, set[str]] = defaultdict(set)
        for module in self._modules.values():
            for node in ast.walk(module.tree):
                if isinstance(node, ast.ClassDef):
                    lines = node.lineno, node.end_lineno or node.lineno
                    self._members[node.name] |= module.words_of(*lines)
                    self._bases[node.name] |= {
                        *WORD.findall(" ".join(map(ast.unparse, node.bases)))
                    }

    def missing(self, text: str) -> Iterator[str]:
        """Yield the references of a docstring to nothing."""
        for reference in LINK.findall(text):
            if not self._is_exported(reference):
                yield f"planwave.{reference}"
        for reference in LITERAL.findall(text):
            if reference.endswith(".py"):
                if not any(f"/{file}".endswith(f"/{reference}") for file in self._files):
                    yield reference
            elif all(map(NAME.fullmatch, reference.split("."))):
                words = self._tests if reference.startswith("test_") else self._words
                if not words.issuperset(reference.split(".")):
                    yield reference

    def _is_exported(self, reference: str) -> bool:
        """Return whether ``planwave``, or its ``testing``, exports a name, and whether a member of it is one."""
        home = "planwave/__init__.py"
        if reference.startswith("testing."):
            home, reference = "planwave/testing.py", reference.removeprefix("testing.")
        name, _, member = reference.partition(".")
        is_exported = name in self._modules[home].words
        return is_exported and (not member or member in self._members_of(name))

    def _members_of(self, class_name: str) -> set[str]:
        """Return the words of a class and of its bases."""
        bases = (self._members_of(each) for each in self._bases[class_name] - {class_name})
        return self._members[class_name].union(*bases)


def violations(root: Path) -> tuple[int, list[str]]:
    """Return how many modules a repository has, and what is wrong with their docstrings."""
    modules = [Module(root, path) for path in sorted((root / "planwave").rglob("*.py"))]
    names = Names(root, modules)
    violations: list[str] = []
    for module in modules:
        for text, documents in module.documentation:
            where = f"{module.name}:{text.lineno}"
            if not documents:
                violations.append(f"{where}: a string that documents nothing")
            roles = ROLE.findall(str(text.value))
            violations += [f"{where}: {each} is a role; write {INSTEAD}" for each in roles]
            missing = names.missing(str(text.value))
            violations += [f"{where}: {each} does not exist" for each in missing]
    return len(modules), violations


if __name__ == "__main__":
    count, found = violations(ROOT)
    print("\n".join(found) or f"the docstrings of {count} modules name what exists")
    sys.exit(bool(found))
