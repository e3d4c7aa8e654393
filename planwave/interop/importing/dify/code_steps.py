"""Steps of Python code: placeholders, or node types of a module that the operator reads and loads."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from planwave.interop.importing.dify.policies import offer_failure, policy_of
from planwave.interop.importing.dify.steps import App, Step
from planwave.interop.importing.dify.values import Read, ValueKind
from planwave.interop.importing.drafts import new_edge
from planwave.interop.importing.reading import object_of, objects_in, text_of
from planwave.interop.importing.secrets import MARK
from planwave.interop.importing.templates import inserted, output_of

_TYPES: Final[Mapping[str, str]] = {
    "string": "str | None",
    "number": "int | float | None",
    "boolean": "bool | None",
    "object": "dict[str, Any] | None",
    "array[string]": "list[str] | None",
    "array[number]": "list[int | float] | None",
    "array[boolean]": "list[bool] | None",
    "array[object]": "list[dict[str, Any]] | None",
    "any": "Any",
}
"""Types of outputs as annotations."""
_MAX_NAME: Final = 64
_HEAD: Final = '''\
"""The code steps of a Dify app as node types of planwave.

Read this file before you load it: planwave runs what it says, with the rights of its process. There the
code ran in a sandbox, without files and network.
"""

from typing import Any

from typing_extensions import TypedDict

import planwave
'''
_PART: Final = '''

{results} = TypedDict({results_text}, {{{fields}}})


def _{name}() -> Any:
    """Return the code of the step."""
{code}

    return main


_main_{name} = _{name}()


@planwave.node({node_type}, templates=["arguments"], purpose={purpose})
def {name}(input: Any, arguments: dict[str, Any] = {{}}) -> {results}:
    return _main_{name}(**arguments)
'''


class _Problem(Exception):
    """Why code cannot become a node type."""


class _Output(NamedTuple):
    name: str
    annotation: str
    kind: ValueKind


def code(step: Step) -> None:
    """Become a node of a type of the module, if one is asked for; else a placeholder with the code."""
    language = text_of(step.data, "code_language") or "python3"
    outputs = _outputs(step)
    step.outputs |= {each.name: Read("", kind=each.kind) for each in outputs}
    if not step.app.write_code:
        step.placeholder(
            f"it runs code ({language}), which graphs here do not hold",
            hint="import with its code written to a module of node types, and read that",
        )
        return
    try:
        if language != "python3":
            raise _Problem(f"it runs {language}; only Python becomes a node type")
        body = _inside_a_function(step.node.code)
    except _Problem as error:
        step.placeholder(str(error))
        return
    arguments: dict[str, str] = {}
    for number, each in objects_in(step.data, "variables"):
        name = text_of(each, "variable")
        if not name.isidentifier():
            step.lose(
                "this name of a variable cannot be carried over", name, f"/variables/{number}"
            )
            continue
        read = step.read(each.get("value_selector"), f"/variables/{number}")
        arguments[name] = "" if read is None else inserted(read.else_("none"))
    node_type = _write(step, body, outputs)
    data = {"arguments": arguments} if arguments else {}
    main = step.becomes(node_type, data, policy_of(step, "output"))
    if all(edge.target is not step for edge in step.app.edges.get(step.scope.region, ())):
        begin = step.add(
            "start", {}, "begin"
        )  # older files draw no edge to the first step of a body
        new_edge(main.graph, begin.id, main.id)
    for each in outputs:
        step.outputs[each.name] = Read(output_of(main.id, "output", [each.name]), kind=each.kind)
    step.node.change("its code is a node type of a module, which runs without a sandbox")
    offer_failure(step)


def module_text(app: App) -> str:
    """Return the module with all code steps; "" if there are none."""
    return _HEAD + "".join(app.code_parts) if app.code_parts else ""


def _outputs(step: Step) -> list[_Output]:
    outputs: list[_Output] = []
    declared = object_of(step.data, "outputs")
    for name in declared:
        output_type = text_of(object_of(declared, name), "type")
        kind: ValueKind = "any"
        if output_type.startswith("array"):
            kind = "list"
        elif output_type == "string":
            kind = "text"
        outputs.append(_Output(name, _TYPES.get(output_type, "Any"), kind))
    return outputs


def _write(step: Step, body: str, outputs: Sequence[_Output]) -> str:
    """Add a step to the module, and return the name of its node type."""
    app = step.app
    number = len(app.code_parts) + 1
    plain = re.sub(r"\W+", "_", step.id, flags=re.ASCII).strip("_")
    name = (
        f"code_{plain or 'step'}_{number}" if plain in app.code_names else f"code_{plain or number}"
    )
    app.code_names.add(plain)
    title = re.sub(r"[^A-Za-z0-9]+", "-", app.conversion.title).strip("-").lower()
    suffix = f"-{name.removeprefix('code_')}"
    node_type = f"dify-{title}"[: _MAX_NAME - len(suffix)].rstrip("-") + suffix
    results = f"Results_{name.removeprefix('code_')}"
    fields = ", ".join(f"{each.name!r}: {each.annotation}" for each in outputs)
    purpose = step.node.name or step.id
    app.code_parts.append(
        _PART.format(
            name=name, code=body, results=results, results_text=repr(results), fields=fields,
            node_type=repr(node_type), purpose=repr(f"Run the code of the step {purpose!r}."),
        )
    )  # fmt: skip
    return node_type


def _inside_a_function(text: str) -> str:
    """Return a module's text indented by four, so that it may stand in a function.

    Raises:
        _Problem: It would not mean the same there, or is no Python.
    """
    text = text.replace("\r\n", "\n")
    if MARK in text:
        raise _Problem("its code holds a secret, which was not copied")
    tree = _parsed(text)
    has_main = any(isinstance(each, ast.FunctionDef) and each.name == "main" for each in tree.body)
    if not has_main:
        raise _Problem("its code has no function main")
    inside_text: set[int] = set()
    for each in ast.walk(tree):
        if isinstance(each, ast.Global | ast.Nonlocal):
            raise _Problem("its code has global variables")
        if isinstance(each, ast.ImportFrom) and (
            each.module == "__future__" or any(name.name == "*" for name in each.names)
        ):
            raise _Problem("its code imports what only a module may import")
        is_text = isinstance(each, ast.Constant) and isinstance(each.value, str | bytes)
        if isinstance(each, ast.expr) and (is_text or isinstance(each, ast.JoinedStr)):
            inside_text.update(range(each.lineno + 1, (each.end_lineno or each.lineno) + 1))
    lines = text.split("\n")
    indented = "\n".join(
        line if number in inside_text or not line.strip() else f"    {line}"
        for number, line in enumerate(lines, 1)
    ).rstrip()
    _parsed(f"def step():\n{indented}\n    return main\n")
    return indented


def _parsed(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in texts: they are not ours
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _Problem(f"its code cannot be read: {error}") from error
