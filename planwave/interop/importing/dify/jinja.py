"""Jinja2 templates of an app as planwave templates: their variables bound, what is undefined made explicit.

Jinja2 renders a name that is not defined as nothing; planwave refuses it. Both read the same grammar
otherwise, so the text of a template stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import jinja2
from jinja2 import meta, nodes

from planwave.interop.importing.dify.steps import Step
from planwave.interop.importing.dify.values import PRINTED_ALIKE, Read
from planwave.interop.importing.reading import text_of
from planwave.interop.importing.secrets import MARK

KNOWN_FILTERS: Final = frozenset(
    {
        "abs", "attr", "batch", "bool", "capitalize", "chain", "count", "d", "default", "dictsort", "e",
        "escape", "filesizeformat", "first", "float", "format", "groupby", "indent", "int", "items",
        "join", "last", "length", "lines", "list", "lower", "map", "max", "min", "pluralize", "pprint",
        "reject", "rejectattr", "replace", "reverse", "round", "safe", "select", "selectattr", "slice",
        "sort", "split", "string", "striptags", "sum", "title", "tojson", "trim", "truncate", "unique",
        "upper", "urlencode", "wordwrap", "zip",
    }
)  # fmt: skip
"""Filters of planwave's templates that Jinja2 has with the same meaning."""
KNOWN_TESTS: Final = frozenset(
    {
        "boolean", "defined", "divisibleby", "eq", "equalto", "escaped", "even", "false", "filter",
        "float", "ge", "greaterthan", "gt", "in", "integer", "iterable", "le", "lessthan", "lower", "lt",
        "mapping", "ne", "none", "number", "odd", "sameas", "sequence", "string", "test", "true",
        "undefined", "upper",
    }
)  # fmt: skip
_FUNCTIONS: Final = frozenset({"range", "dict", "namespace"})
_PATH: Final = re.compile(
    r"""(\{\{[-+]?\s*)([A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\s*(?:"[^"\\\n]*"|'[^'\\\n]*'|-?\d+)\s*\])+)(\s*[-+]?\}\})"""
)
_PRINTED: Final = re.compile(
    r"""\{\{[-+]?\s*([A-Za-z_]\w*)(?:\.[A-Za-z_]\w*|\[\s*(?:"[^"\\\n]*"|'[^'\\\n]*'|-?\d+)\s*\])*\s*[-+]?\}\}""",
    re.ASCII,
)
"""A tag that prints a name, or a field of a field of it."""
_WORDS: Final = frozenset(
    {"true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else", "self"}
)  # fmt: skip
"""Names that Jinja reads as something else."""
_TAG: Final = re.compile(r"\{[{%#]")
_CHECKED: Final = (
    nodes.Filter, nodes.Test, nodes.Call, nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends,
    nodes.Block,
)  # fmt: skip
_PLAIN: Final = re.compile(r"\{\{[-+]?\s*([A-Za-z_]\w*)\s*[-+]?\}\}")
_ROOTS: Final = frozenset({"nodes", "outer", "item", "index", "value", "input", "inputs"})
"""Names that expressions of ours begin with: a variable of that name is bound after them."""
_LINE_END: Final = re.compile(r"\r\n|\r")
_JINJA: Final = jinja2.Environment(autoescape=True, extensions=["jinja2.ext.loopcontrols"])


def jinja_template(
    step: Step, text: str, variables: Sequence[Mapping[str, Any]], pointer: str
) -> str:
    """Return a Jinja2 template with its variables bound to what other steps gave.

    Args:
        step: The step that has it; it is lost where the template cannot be carried over.
        text: The template.
        variables: ``[{"variable", "value_selector"}]``.
        pointer: Where it stands, within the step's settings.
    """
    text = _as_read(text)
    bound: dict[str, Read] = {}
    for number, each in enumerate(variables):
        name = text_of(each, "variable")
        place = f"/variables/{number}" if pointer == "/template" else pointer
        if not name.isidentifier():
            step.lose("this name of a variable cannot be carried over", name, place)
            continue
        read = step.read(each.get("value_selector"), place)
        if read is not None:
            bound[name] = read
    if MARK in text:
        step.lose("a secret stands in it, which was not copied", text, pointer)
    undefined = _undefined_names(step, text, pointer)
    if undefined is None:
        return ""
    unbound = sorted(undefined - bound.keys() - _FUNCTIONS)
    if unbound:
        step.node.change(
            f"what it does not define renders as nothing, as there: {', '.join(unbound)}",
            f"{step.pointer}{pointer}",
        )
    if _prints_more_than_text(text, bound):
        step.node.change(
            "values that are no text are written as JSON, none as nothing, not in the way of Python",
            f"{step.pointer}{pointer}",
        )
    body = _PATH.sub(r'\1\2 | default("")\3', text)
    return _bindings(bound, unbound) + body


def _as_read(text: str) -> str:
    """Return a template as Jinja2 reads it: lines end in a newline, and a last one is left out."""
    return _LINE_END.sub("\n", text).removesuffix("\n")


def _undefined_names(step: Step, text: str, pointer: str) -> set[str] | None:
    """Return the names that a template does not define; None, and the step is lost, if it cannot be read."""
    roots = {match[1] for match in _PRINTED.finditer(text)}
    if roots.isdisjoint(_WORDS) and not _TAG.search(_PRINTED.sub("", text)):
        return roots  # most templates are no more than that, and Jinja takes a millisecond for each
    try:
        tree = _JINJA.parse(text)
    except (jinja2.TemplateError, RecursionError, ValueError) as error:
        step.lose(f"the template cannot be read: {error}", text, pointer)
        return None
    for message in _unknown(tree):
        step.lose(message, text, pointer)
        return None
    return meta.find_undeclared_variables(tree)


def _unknown(tree: nodes.Template) -> Iterable[str]:
    """Yield what a template uses that planwave's do not have."""
    for each in tree.find_all(_CHECKED):
        match each:
            case nodes.Filter() if each.name not in KNOWN_FILTERS:
                yield f"templates here have no filter {each.name!r}"
            case nodes.Test() if each.name not in KNOWN_TESTS:
                yield f"templates here have no test {each.name!r}"
            case nodes.Call(node=nodes.Name(name="cycler" | "joiner" | "lipsum" as name)):
                yield f"templates here have no function {name!r}"
            case nodes.Filter() | nodes.Test() | nodes.Call():
                pass
            case _:
                yield "it loads another template"


def _prints_more_than_text(text: str, bound: Mapping[str, Read]) -> bool:
    names = [match[1] for match in _PLAIN.finditer(text)]
    return text.count("{{") > len(names) or any(
        name not in bound or bound[name].kind not in PRINTED_ALIKE for name in names
    )


def _bindings(bound: Mapping[str, Read], unbound: Sequence[str]) -> str:
    """Return tags that bind names; those that our expressions begin with come last."""
    late = [name for name in bound if name in _ROOTS]
    made = [f'{{% set {name} = "" %}}' for name in unbound if name not in _ROOTS]
    for name, read in bound.items():
        target = f"bound_{name}" if name in late else name
        made.append(f"{{% set {target} = {read.else_('none')} %}}")
    made += [f"{{% set {name} = bound_{name} %}}" for name in late]
    made += [f'{{% set {name} = "" %}}' for name in unbound if name in _ROOTS]
    return "".join(made)
