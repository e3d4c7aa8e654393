"""The tables of docs/errors.md hold exactly the codes of the package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import planwave
from tests.support.paths import ROOT

FACTORIES = {"Diagnostic", "NodeFinding", "EdgeFinding", "provider_error", "_answer_error", "_add"}
"""Calls whose first argument is a code."""
EXCEPTIONS, *SECTIONS = (ROOT / "docs/errors.md").read_text("utf-8").split("\n## ")[1:]
LISTED = [
    re.findall(r"^\| `([^`]+)` \| (.+?) \| (.+) \|$", each, re.MULTILINE) for each in SECTIONS
]
"""The rows of each section: code, cause and way out."""
CODES = [code for rows in LISTED for code, _, _ in rows]
OPENAIS = {"server_error"}
"""Codes of the OpenAI API, which its clients know."""
INTERNAL = {"already-ended", "at-rest", "duplicate-seq", "not-json", "seq-gap", "wrong-execution"}
"""Codes that are caught inside the package."""
INNER = {"InvalidTransition", "NodeTimeout", "ResultNotJson", "TemplateError"}
"""Exceptions that no caller meets: they are stored as the error of a node, or mean a bug."""
NOT_ERRORS = {"explain.py", "examples.py", "sender.py"}
"""Modules whose codes are those of reasons: why a node ran or did not, why a message was not accepted."""


def constants(trees: Iterable[ast.Module]) -> dict[str, str]:
    """Return the constants of modules that are text, by name."""
    found: dict[str, str] = {}
    for tree in trees:
        for line in tree.body:
            match line:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text)))
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str(text)))
                ):
                    found[name] = text
                case _:
                    pass
    return found


def texts(node: ast.AST, names: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """Yield the texts that an expression may have as its value; ``names`` are constants."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in names:
            yield names[name]
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp():
            yield from (*texts(node.body, names), *texts(node.orelse, names))
        case ast.JoinedStr(values=[*parts]):
            yield "".join(part.value if isinstance(part, ast.Constant) else "*" for part in parts)
        case _:
            return


def codes_in(tree: ast.Module, shared: Mapping[str, str]) -> Iterator[str]:
    """Yield the codes in a module; ``shared`` are the constants of all modules."""
    names = {**shared, **constants([tree])}
    for node in ast.walk(tree):
        match node:
            case ast.Call():
                yield from codes_of_call(node, names)
            case ast.Dict():
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == "code":
                        yield from texts(value, names)
            case ast.ClassDef():
                for line in node.body:
                    if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "code":
                        yield from texts(line.value, names)
            case _:
                pass


def codes_of_call(call: ast.Call, names: Mapping[str, str]) -> Iterator[str]:
    for keyword in call.keywords:
        if keyword.arg == "code":
            yield from texts(keyword.value, names)
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    if name in FACTORIES and call.args:
        yield from texts(call.args[0], names)
    elif name == "ProblemError":
        yield from texts(call.args[1], names)


def test_every_code_of_the_package_is_listed() -> None:
    paths = sorted((ROOT / "planwave").rglob("*.py"))  # of constants with one name, the last counts
    trees = {path: ast.parse(path.read_text("utf-8")) for path in paths}
    shared = constants(trees.values())
    used = {
        code
        for path, tree in trees.items()
        if path.name not in NOT_ERRORS
        for code in codes_in(tree, shared)
    }
    assert used - INTERNAL - OPENAIS - {""} <= {*CODES}


def test_every_listed_code_is_used() -> None:
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "planwave").rglob("*.py"))
    assert [each for each in CODES if f'"{each}"' not in sources] == []


def test_each_code_is_explained_once_in_a_sentence_in_alphabetical_order() -> None:
    assert len(CODES) == len({*CODES}) > 200
    assert sum(each.count("\n| `") for each in SECTIONS) == len(CODES)
    for rows in LISTED:
        assert [code for code, _, _ in rows] == sorted(code for code, _, _ in rows)
        assert [code for code, cause, _ in rows if not cause.endswith(".")] == []


def test_the_page_lists_the_public_exceptions() -> None:
    names = re.findall(r"`planwave\.(errors\.)?([A-Z]\w+)`", EXCEPTIONS)
    listed = [getattr(planwave.errors if home else planwave, name) for home, name in names]
    public = {
        each
        for name, each in vars(planwave.errors).items()
        if isinstance(each, type) and issubclass(each, Exception) and name not in INNER
    }
    assert {*listed} - {planwave.Failure} == public
    assert {name for home, name in names if home}.isdisjoint(planwave.__all__)
    last = listed.index(planwave.errors.LimitExceeded)
    assert [issubclass(each, planwave.InputError) for each in listed[1:]] == [
        number <= last for number in range(1, len(listed))
    ]
