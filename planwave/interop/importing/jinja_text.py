"""Jinja templates that are not strict, as planwave templates, which are.

Jinja there prints nothing for a name that is missing, loops over nothing, and takes it for false. Here a
missing name is an error, so that the translation writes what Jinja did: ``default('')``. The template is read
by Jinja's own parser and written again from its tree; what planwave templates lack is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import jinja2
from jinja2 import nodes

from planwave.interop.importing.jinja_filters import FILTERS, METHODS, TESTS, Untranslatable
from planwave.interop.importing.templates import literal

_JINJA: Final = jinja2.Environment(autoescape=True)  # Jinja renders nothing here
_MAX_DEPTH: Final = 24
"""Levels of an expression; planwave takes 32 brackets in one another."""
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_MAX_CHARS: Final = 100_000
_COMPARISONS: Final = {
    "eq": "==", "ne": "!=", "gt": ">", "gteq": ">=", "lt": "<", "lteq": "<=", "in": "in",
    "notin": "not in",
}  # fmt: skip
_LOOP_FIELDS: Final = frozenset({
    "index", "index0", "revindex", "revindex0", "first", "last", "length", "previtem", "nextitem",
})  # fmt: skip
_LOOP_NUMBERS: Final = frozenset({"index", "index0", "revindex", "revindex0", "length"})
_GIVE_TEXT: Final = frozenset({
    "capitalize", "count", "int", "join", "length", "lower", "replace", "tojson", "trim", "truncate", "upper",
    "urlencode", "find", "lstrip", "rfind", "rstrip", "strip",
})  # fmt: skip
"""Filters and methods that give a text or a whole number."""
_TRUE, _FALSE = "'True'", "'False'"
_GLOBALS: Final = frozenset({"range", "dict", "namespace"})
_SIMPLE: Final = re.compile(r"""[\w.]+(?:\[[^\[\]]*\])*\Z""")


class Variable(NamedTuple):
    """What a name of a template stands for here.

    Attributes:
        expression: How a planwave template reads it.
        is_optional: Whether it may be missing when the step runs.
        may_be_json: Whether it may be text that was read as JSON there, before the template saw it.
        is_text: Whether it is known to be a text.
    """

    expression: str
    is_optional: bool = False
    may_be_json: bool = False
    is_text: bool = False


class Translation(NamedTuple):
    """A planwave template that renders as a Jinja template does.

    Attributes:
        text: The template.
        prints_values: Whether it prints what may be no text: Jinja writes lists, objects, 2.0 and true as
            Python does.
    """

    text: str
    prints_values: bool


Names = Callable[[str], "Variable | None"]
"""What a name stands for, or None where nothing has this name."""


class _Value(NamedTuple):
    text: str
    is_optional: bool = False
    is_missing: bool = False


def translated(template: str, names: Names) -> Translation:
    """Return a planwave template that renders as a Jinja template does that is not strict.

    Raises:
        Untranslatable: Planwave has no counterpart to a part of it, or it always failed.
    """
    if len(template) > _MAX_CHARS:
        raise Untranslatable(f"a template longer than {_MAX_CHARS} characters")
    try:
        _require_shallow(template)
        tree = _JINJA.parse(template)
        writer = _Writer(names)
        body = writer.body(tree.body)
    except jinja2.TemplateSyntaxError as error:
        raise Untranslatable(f"no Jinja template: {error.message}") from error
    except (RecursionError, ValueError) as error:
        raise Untranslatable("a template that is nested too deep") from error
    return Translation(writer.reading() + body, writer.prints_values)


def _require_shallow(template: str) -> None:
    """Check how deep brackets stand in each other: Jinja's parser would use up the stack, on which other code runs too.

    Raises:
        Untranslatable: Too deep.
    """
    depth = 0
    for _, kind, token in _JINJA.lex(template):
        if kind == "operator":
            depth += (token in _OPENING) - (token in _CLOSING)
        if depth > _MAX_DEPTH:
            raise Untranslatable("brackets that are nested too deep")


class _Writer:
    """Writes the tree of one template; keeps the names that each block has defined."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._scopes: list[dict[str, bool]] = [{}]
        self._parsed: dict[str, str] = {}
        self._texts: set[str] = set()
        self._others: set[str] = set()
        self._depth = 0
        self.prints_values = False

    def reading(self) -> str:
        """Return the tags that read the inputs as JSON which more is done with than to print them."""
        return "".join(
            f"{{% set {name} = {text} | fromjson({text}) %}}" for name, text in self._parsed.items()
        )

    # -- blocks

    def body(self, body: list[nodes.Node]) -> str:
        """Return the source of some blocks."""
        return "".join(map(self._block, body))

    def _block(self, node: nodes.Node) -> str:
        match node:
            case nodes.Output():
                return self._output(node)
            case nodes.If():
                return self._if(node)
            case nodes.For():
                return self._for(node)
            case nodes.Assign():
                return self._assign(node)
            case nodes.AssignBlock() if node.filter is None and isinstance(node.target, nodes.Name):
                inside = self._scoped({}, node.body)
                self._texts.add(node.target.name)
                self._scopes[-1][node.target.name] = False
                return f"{{% set {node.target.name} %}}{inside}{{% endset %}}"
            case nodes.With():
                values = [self._given(value, "''") for value in node.values]
                names = [_name_of(target) for target in node.targets]
                self._others.update(names)
                inside = self._scoped(dict.fromkeys(names, False), node.body)
                pairs = ", ".join(f"{n} = {v}" for n, v in zip(names, values, strict=True))
                return f"{{% with {pairs} %}}{inside}{{% endwith %}}"
            case _:
                tag = type(node).__name__.lower()
                raise Untranslatable(f"the tag {tag}")

    def _output(self, node: nodes.Output) -> str:
        parts: list[str] = []
        for number, child in enumerate(node.nodes):
            if not isinstance(child, nodes.TemplateData):
                parts.append(f"{{{{ {_bare(self._printed(child))} }}}}")
                continue
            text = literal(child.data)
            if text.endswith("{") and number + 1 < len(node.nodes):
                text = f"{text[:-1]}{{{{ '{{' }}}}"
            parts.append(text)
        written = "".join(parts)
        # What follows may be a tag.
        return f"{written[:-1]}{{{{ '{{' }}}}" if written.endswith("{") else written

    def _printed(self, node: nodes.Node) -> str:
        if _is_boolean(node):
            return f"({_TRUE} if {self._given(node, 'false')} else {_FALSE})"
        if isinstance(node, nodes.Const) and not isinstance(node.value, str):
            return _constant(str(node.value))
        self.prints_values |= not self._is_text(node)
        if isinstance(node, nodes.Name) and self._local(node.name) is None:
            variable = self._names(node.name)
            if variable is not None and node.name not in self._parsed:
                text = variable.expression
                return f"{text} | default('')" if variable.is_optional else text
        return self._given(node, "''")

    def _is_text(self, node: nodes.Node | None) -> bool:
        """Return whether a value is written alike: a text, or a whole number of the template."""
        match node:
            case None:
                return True
            case nodes.Const():
                return not isinstance(node.value, float) and node.value is not None
            case nodes.Name():
                if self._local(node.name) is not None:
                    return node.name in self._texts - self._others
                variable = self._names(node.name)
                return variable is None or variable.is_text
            case nodes.Filter():
                is_default = node.name in ("default", "d") and all(map(self._is_text, node.args))
                return node.name in _GIVE_TEXT or (is_default and self._is_text(node.node))
            case nodes.CondExpr():
                return self._is_text(node.expr1) and self._is_text(node.expr2)
            case nodes.Concat():
                return all(map(self._is_text, node.nodes))
            case nodes.Getattr():
                is_loop = isinstance(node.node, nodes.Name) and node.node.name == "loop"
                return is_loop and node.attr in _LOOP_NUMBERS
            case nodes.Call():
                return isinstance(node.node, nodes.Getattr) and node.node.attr in _GIVE_TEXT
            case _:
                return False

    def _if(self, node: nodes.If) -> str:
        written: list[str] = []
        before = set(self._scopes[-1])
        tag = "if"
        for branch in (node, *node.elif_):
            written.append(f"{{% {tag} {self._given(branch.test, 'false')} %}}")
            written.append(self.body(branch.body))
            tag = "elif"
        if node.else_:
            written.append("{% else %}" + self.body(node.else_))
        for name in set(self._scopes[-1]) - before:
            self._scopes[-1][name] = True
        return "".join(written) + "{% endif %}"

    def _for(self, node: nodes.For) -> str:
        if node.recursive:
            raise Untranslatable("a recursive loop")
        items = self._given(node.iter, "[]")
        names = _names_of(node.target)
        target = ", ".join(names)
        self._others.update(names)
        self._scopes.append({**dict.fromkeys(names, False), "loop": False})
        test = "" if node.test is None else f" if {self._given(node.test, 'false')}"
        inside = self.body(node.body)
        self._scopes.pop()
        other = "{% else %}" + self._scoped({}, node.else_) if node.else_ else ""
        return f"{{% for {target} in {items}{test} %}}{inside}{other}{{% endfor %}}"

    def _assign(self, node: nodes.Assign) -> str:
        value = self._given(node.node, "''")
        if isinstance(node.target, nodes.NSRef):
            return f"{{% set {node.target.name}.{node.target.attr} = {value} %}}"
        names = _names_of(node.target)
        is_text = len(names) == 1 and self._is_text(node.node)
        (self._texts if is_text else self._others).update(names)
        self._scopes[-1].update(dict.fromkeys(names, False))
        return f"{{% set {', '.join(names)} = {value} %}}"

    def _scoped(self, names: dict[str, bool], body: list[nodes.Node]) -> str:
        self._scopes.append(names)
        written = self.body(body)
        self._scopes.pop()
        return written

    # -- expressions

    def _local(self, name: str) -> _Value | None:
        """Return a name that the template itself defines."""
        scope = next((each for each in reversed(self._scopes) if name in each), None)
        return None if scope is None else _Value(name, scope[name])

    def _given(self, node: nodes.Node, default: str) -> str:
        """Return an expression that is never undefined."""
        value = self._value(node)
        if value.is_missing:
            return default
        return f"({value.text} | default({default}))" if value.is_optional else value.text

    def _value(self, node: nodes.Node) -> _Value:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise Untranslatable("an expression that is nested too deep")
        try:
            return self._expression(node)
        finally:
            self._depth -= 1

    def _expression(self, node: nodes.Node) -> _Value:
        match node:
            case nodes.Name():
                return self._name(node.name)
            case nodes.Const():
                return _Value(_constant(node.value))
            case nodes.Getattr():
                base = self._base(node.node)
                is_loop = base == "loop" and node.attr in _LOOP_FIELDS
                return _Value(f"{base}.{node.attr}", not is_loop)
            case nodes.Getitem():
                return self._item(node)
            case nodes.Filter() if node.node is not None:
                return self._filter(node, node.node)
            case nodes.Test():
                return self._test(node)
            case nodes.Call():
                return self._call(node)
            case _:
                return _Value(self._composed(node))

    def _composed(self, node: nodes.Node) -> str:
        match node:
            case nodes.BinExpr():
                return self._binary(node)
            case nodes.Not():
                return f"(not {self._given(node.node, 'false')})"
            case nodes.Neg() | nodes.Pos():
                return f"({node.operator}{self._raw(node.node)})"
            case nodes.Compare():
                return self._comparison(node)
            case nodes.Concat():
                return "(" + " ~ ".join(self._given(each, "''") for each in node.nodes) + ")"
            case nodes.CondExpr():
                other = "''" if node.expr2 is None else self._given(node.expr2, "''")
                test = self._given(node.test, "false")
                return f"({self._given(node.expr1, repr(''))} if {test} else {other})"
            case nodes.List() | nodes.Tuple():
                return "[" + ", ".join(self._given(each, "''") for each in node.items) + "]"
            case nodes.Dict():
                pairs = (
                    f"{self._given(p.key, repr(''))}: {self._given(p.value, repr(''))}"
                    for p in node.items
                )
                return "{" + ", ".join(pairs) + "}"
            case _:
                raise Untranslatable(f"an expression of the kind {type(node).__name__}")

    def _binary(self, node: nodes.BinExpr) -> str:
        if isinstance(node, nodes.And | nodes.Or):
            left, right = self._given(node.left, "''"), self._given(node.right, "''")
            return f"({left} {node.operator} {right})"
        left = node.left
        is_text = isinstance(left, nodes.Const) and isinstance(left.value, str)
        if is_text and not isinstance(node, nodes.Add):
            raise Untranslatable(f"{node.operator} with a text")
        return f"({self._raw(left)} {node.operator} {self._raw(node.right)})"

    def _raw(self, node: nodes.Node) -> str:
        """Return an expression that fails where it failed there: when it is undefined."""
        value = self._value(node)
        if value.is_missing:
            raise Untranslatable(
                "a calculation with a name that nothing defines, which always failed"
            )
        return (
            value.text
            if _SIMPLE.match(value.text) or value.text[:1] in "([{"
            else f"({value.text})"
        )

    def _base(self, node: nodes.Node) -> str:
        value = self._value(node)
        if value.is_missing:
            raise Untranslatable("a field of a name that nothing defines, which always failed")
        return value.text if _SIMPLE.match(value.text) else f"({value.text})"

    def _name(self, name: str) -> _Value:
        if (local := self._local(name)) is not None:
            return local
        variable = self._names(name)
        if variable is None:
            return _Value("none", is_missing=True)
        text = variable.expression
        if not variable.may_be_json:
            return _Value(text, variable.is_optional)
        if not text.isidentifier():
            return _Value(f"({text} | fromjson({text}))", variable.is_optional)
        if variable.is_optional:
            text = f"{text} | default('')"
            self._parsed[name] = f"({text})"
        else:
            self._parsed[name] = text
        return _Value(name)

    def _item(self, node: nodes.Getitem) -> _Value:
        base = self._base(node.node)
        if isinstance(node.arg, nodes.Slice):
            value = self._value(node.node)
            if value.is_optional:
                base = f"({value.text} | default([]))"
            ends = (node.arg.start, node.arg.stop, node.arg.step)
            written = ["" if end is None else self._raw(end) for end in ends]
            return _Value(f"{base}[{':'.join(written if written[2] else written[:2])}]")
        return _Value(f"{base}[{self._raw(node.arg)}]", is_optional=True)

    def _comparison(self, node: nodes.Compare) -> str:
        written: list[str] = []
        left = node.expr
        for operand in node.ops:
            operator = _COMPARISONS[operand.op]
            if operand.op in ("eq", "ne"):
                ends = self._given(left, "none"), self._given(operand.expr, "none")
            elif operand.op in ("in", "notin"):
                ends = self._given(left, "none"), self._given(operand.expr, "[]")
            else:
                ends = self._raw(left), self._raw(operand.expr)
            written.append(f"{ends[0]} {operator} {ends[1]}")
            left = operand.expr
        return (
            f"({' and '.join(f'({each})' for each in written)})"
            if len(written) > 1
            else f"({written[0]})"
        )

    def _filter(self, node: nodes.Filter, subject: nodes.Expr) -> _Value:
        filter_ = FILTERS.get(node.name)
        if filter_ is None or node.dyn_args is not None or node.dyn_kwargs is not None:
            raise Untranslatable(f"the filter {node.name}")
        arguments = [self._given(each, "''") for each in node.args]
        named = {str(each.key): self._given(each.value, "''") for each in node.kwargs}
        written = filter_.written(node.name, arguments, named)
        value = self._value(subject)
        if node.name in ("default", "d"):
            if value.is_missing:
                return _Value(arguments[0] if arguments else named.get("default_value", "''"))
            return _Value(f"({value.text} | {written})")
        text = filter_.missing if value.is_missing else value.text
        if value.is_optional:
            text = f"({text} | default({filter_.missing}))"
        return _Value(f"({text} | {written})", filter_.is_optional)

    def _test(self, node: nodes.Test) -> _Value:
        if node.name not in TESTS or node.kwargs or node.dyn_args is not None:
            raise Untranslatable(f"the test {node.name}")
        value = self._value(node.node)
        if node.name in ("defined", "undefined"):
            if value.is_missing:
                return _Value("true" if node.name == "undefined" else "false")
            return _Value(f"({value.text} is {node.name})")
        text = self._given(node.node, "''" if node.name == "none" else "none")
        arguments = ", ".join(self._given(each, "''") for each in node.args or ())
        return _Value(f"({text} is {node.name}{f'({arguments})' if arguments else ''})")

    def _call(self, node: nodes.Call) -> _Value:
        if node.dyn_args is not None or node.dyn_kwargs is not None:
            raise Untranslatable("a call with * or **")
        arguments = [self._given(each, "''") for each in node.args]
        arguments += [f"{each.key}={self._given(each.value, repr(''))}" for each in node.kwargs]
        match node.node:
            case nodes.Name() as called if called.name in _GLOBALS and not self._local(called.name):
                return _Value(f"{called.name}({', '.join(arguments)})")
            case nodes.Getattr() as called if called.attr in METHODS and not node.kwargs:
                base = self._base(called.node)
                return _Value(f"{base}.{called.attr}({', '.join(arguments)})")
            case nodes.Getattr() as called:
                raise Untranslatable(f"the method {called.attr}")
            case _:
                raise Untranslatable("a call of a function")


def _is_boolean(node: nodes.Node) -> bool:
    """Return whether a value is true or false, whatever it is worked out from."""
    if isinstance(node, nodes.And | nodes.Or):
        return _is_boolean(node.left) and _is_boolean(node.right)
    return isinstance(node, nodes.Compare | nodes.Not | nodes.Test) or (
        isinstance(node, nodes.Const) and isinstance(node.value, bool)
    )


def _bare(text: str) -> str:
    """Take off the brackets around a whole expression."""
    if not text.startswith("(") or any(quote in text for quote in "'\""):
        return text
    depth = 0
    for number, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return text[1:-1] if number == len(text) - 1 else text
    return text


def _names_of(target: nodes.Node) -> list[str]:
    if isinstance(target, nodes.Tuple):
        return [_name_of(each) for each in target.items]
    return [_name_of(target)]


def _name_of(target: nodes.Node) -> str:
    if not isinstance(target, nodes.Name):
        raise Untranslatable("names in one another")
    return target.name


def _constant(value: Any) -> str:
    if isinstance(value, str):
        if any(ord(char) < 32 and char not in "\n\t" for char in value):
            raise Untranslatable("a text with control characters")
        return json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    return repr(value)
