"""JavaScript expressions as expressions of planwave's templates: a closed subset with the same values.

Each part of an expression is translated together with what is known of its value (``values``). Where
JavaScript's result depends on a type that is not known, the translation is right for all of them; what has no
such translation raises ``Untranslatable``. Nothing is evaluated here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from planwave.graph.model import Json
from planwave.interop.importing.javascript import methods, operators
from planwave.interop.importing.javascript.syntax import (
    Array,
    Binary,
    Call,
    Conditional,
    Constant,
    Member,
    Name,
    Node,
    Object,
    Pattern,
    TemplateLiteral,
    Unary,
    Undefined,
    parse,
)
from planwave.interop.importing.javascript.tokens import MAX_LENGTH, Untranslatable, closing_of
from planwave.interop.importing.javascript.values import (
    ANY,
    OBJECT,
    STRING,
    Kind,
    Value,
    constant,
    joined,
    path,
    structure,
    undefined,
)
from planwave.interop.importing.templates import inserted, literal, quoted


class Step(NamedTuple):
    """A field of a variable, or a call of it: ``.name``, ``[0]``, ``("Name")``.

    Attributes:
        name: The field; None for a call.
        arguments: The arguments of a call; None for a field.
    """

    name: str | int | None = None
    arguments: tuple[str | float | bool | None, ...] | None = None


Resolver = Callable[[Sequence[Step]], tuple[Value, int]]
"""What a variable stands for: from the steps after its name, whose texts and numbers are written there, it
makes the value of as many of them as it knows, and says how many these were. It raises ``Untranslatable`` for
what has no counterpart."""
Roots = Mapping[str, Value | Resolver]
"""The variables of expressions by name, such as ``$json``."""

_WITH_PATTERN: Final = frozenset(("replace", "replaceAll", "split"))
"""Methods that take a regular expression, or the text that it stands for."""
_SPACES: Final = ("Math", "JSON", "Object", "Array")
"""Names with functions of their own."""


def translate(text: str, roots: Roots) -> Value:
    """Translate one expression.

    Args:
        text: The expression, without braces.
        roots: The variables that it may name.

    Returns:
        An expression of planwave, whose ``text`` stands between ``{{`` and ``}}``; null where JavaScript
        gives undefined.

    Raises:
        Untranslatable: It has a part without a counterpart.
    """
    try:
        return _Translator(roots).value(parse(text)).result()
    except Untranslatable as error:
        raise Untranslatable(error.reason, text.strip()) from None


class Embedded(NamedTuple):
    """An expression inside a text.

    Attributes:
        text: What stands between the braces.
    """

    text: str


def split(text: str) -> list[str | Embedded]:
    """Split a text into its literal parts and the expressions between ``{{`` and ``}}``.

    Braces inside of strings and objects belong to an expression. ``{{`` without an end is literal, and so
    is one after a backslash, which goes.
    """
    parts: list[str | Embedded] = []
    position, before = 0, ""
    while (opening := text.find("{{", position)) >= 0:
        if text[opening - 1 : opening] == "\\" and opening > position:
            before += text[position : opening - 1] + "{{"
            position = opening + 2
            continue
        end = min(len(text), opening + MAX_LENGTH)
        closing = closing_of(text, opening + 2, end, "}}")
        if closing is None:
            closing = text.find("}}", opening + 2)
        if closing < 0:
            break
        before += text[position:opening]
        if before:
            parts.append(before)
        parts.append(Embedded(text[opening + 2 : closing]))
        position, before = closing + 2, ""
    if rest := before + text[position:]:
        parts.append(rest)
    return parts


@dataclass(frozen=True, slots=True)
class Translated:
    """A text with expressions as a template.

    Attributes:
        template: The template.
        kinds: What its value may be.
        has_structures: Whether a list or an object may stand inside a text: JavaScript has
            ``a,b`` or ``[object Object]`` there, and planwave JSON.
        value: The value of a template that is one expression; None for a text.
    """

    template: str
    kinds: frozenset[Kind]
    has_structures: bool = False
    value: Value | None = None


def template_of(parts: Sequence[str | Embedded], roots: Roots) -> Translated:
    """Translate a text with expressions; one expression alone keeps the type of its value.

    Raises:
        Untranslatable: An expression has a part without a counterpart; it holds that expression.
    """
    values = [part if isinstance(part, str) else translate(part.text, roots) for part in parts]
    if len(values) == 1 and isinstance(value := values[0], Value):
        return Translated(inserted(value.plain or value.text), value.kinds, value=value)
    are_plain = all(isinstance(value, str) or value.plain is not None for value in values)
    written = list[str]()
    for value in values:
        if isinstance(value, str):
            text = literal(value)
            written.append(text[:-1] + "{{ '{' }}" if text.endswith("{") else text)
        else:
            written.append(inserted((value.plain if are_plain else None) or value.text))
    has_structures = any(
        isinstance(value, Value) and value.may_be({"array", "object"}) for value in values
    )
    return Translated("".join(written), STRING, has_structures)


def literal_value(text: str) -> Json:
    """Return the value of an expression that names nothing, such as ``{limit: 5}``.

    Raises:
        Untranslatable: It is more than that.
    """
    return value_of_literal(parse(text))


def value_of_literal(node: Node) -> Json:
    """Return the same of a part of an expression."""
    match node:
        case Constant(value=value):
            return value
        case Unary(operator="-", operand=Constant(value=int() | float() as number)):
            return -number
        case TemplateLiteral(parts=parts) if all(isinstance(part, Constant) for part in parts):
            return "".join(str(value_of_literal(part)) for part in parts)
        case Array(items=items):
            return [value_of_literal(item) for item in items]
        case Object(fields=fields) if all(key is not None for key, _ in fields):
            return {str(key): value_of_literal(value) for key, value in fields}
        case _:
            raise Untranslatable("a value that is calculated")


class _Translator:
    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._optional: list[Value] = []

    def value(self, node: Node) -> Value:
        match node:
            case Constant(value=value):
                return constant(value)
            case Undefined():
                return undefined()
            case Member() | Call() | Name():
                return self._chain(node)
            case Unary(operator=operator, operand=operand):
                return operators.unary(operator, self.value(operand))
            case Binary(operator="||" | "&&" | "??" as operator):
                return self._alternatives(operator, node)
            case Binary(operator=operator, left=left, right=right):
                return operators.binary(operator, self.value(left), self.value(right))
            case Conditional(test=test, then=then, other=other):
                return operators.conditional(*map(self.value, (test, then, other)))
            case TemplateLiteral(parts=parts):
                return joined(*map(self.value, parts))
            case Array() | Object() | Pattern():
                return self._structure(node)

    def _item(self, node: Node) -> str:
        return self.value(node).guarded()

    def _alternatives(self, operator: str, node: Node) -> Value:
        """Group from the right, which gives the same value with a shorter text."""
        parts = list[Value]()
        while isinstance(node, Binary) and node.operator == operator:
            parts.append(self.value(node.right))
            node = node.left
        value, *left = parts
        for each in (*left, self.value(node)):
            value = operators.binary(operator, each, value)
        return value

    def _structure(self, node: Array | Object | Pattern) -> Value:
        if isinstance(node, Pattern):
            raise Untranslatable("a regular expression")
        if isinstance(node, Array):
            return structure(f"[{', '.join(map(self._item, node.items))}]", "array")
        pairs = list[str]()
        spread: str | None = None
        for number, (key, field) in enumerate(node.fields):
            if key is None:
                value = self.value(field)
                if number or not value.is_always(OBJECT):
                    raise Untranslatable("a spread")
                spread = value.text
            else:
                pairs.append(f"{quoted(key)}: {self._item(field)}")
        text = f"{{{', '.join(pairs)}}}"
        return structure(text if spread is None else f"dict({spread}, **{text})", "object")

    def _chain(self, node: Node) -> Value:
        """Translate a variable with its fields and calls; what is missing before ``?.`` ends it."""
        outer, self._optional = self._optional, []
        try:
            value = self._links(node)
            if not self._optional or value.owner is not None:
                return value
            tests = [f"{each.guarded()} is not none" for each in self._optional]
            text = f"{value.lookup()} if {' and '.join(tests)}"
            return Value(text, value.kinds | {"undefined"}, is_whole=value.is_whole)
        finally:
            self._optional = outer

    def _links(self, node: Node) -> Value:
        links = list[Member | Call]()
        while isinstance(node, Member | Call):
            links.append(node)
            node = node.owner if isinstance(node, Member) else node.called
        links.reverse()
        if isinstance(node, Name) and node.name not in self._roots:
            value, links = self._function(node.name, links)
        elif isinstance(node, Name):
            value, known = self._root(node.name, links)
            links = links[known:]
        else:
            value = self.value(node)
        number = 0
        while number < len(links):
            link, following = links[number], links[number + 1 : number + 2]
            if isinstance(link, Call):
                raise Untranslatable("a call of what is no method")
            if link.is_optional:
                self._optional.append(value)
            if following and isinstance(call := following[0], Call):
                value = self._method(value, link, call)
                number += 2
            else:
                value = self._field(value, link)
                number += 1
        return value

    def _function(self, name: str, links: list[Member | Call]) -> tuple[Value, list[Member | Call]]:
        """Translate a function of JavaScript; return its value and the links after it."""
        if name in _SPACES and links and isinstance(links[0], Member):
            key = _key(links[0].key)
            name, links = f"{name}.{key}", links[1:]
        if not links or not isinstance(call := links[0], Call):
            raise Untranslatable(f"the name {name}")
        if name not in methods.FUNCTIONS:
            raise Untranslatable(f"the function {name}()")
        if call.is_optional:
            raise Untranslatable("an optional call")
        return methods.function(name, [self.value(each) for each in call.arguments]), links[1:]

    def _root(self, name: str, links: Sequence[Member | Call]) -> tuple[Value, int]:
        root = self._roots[name]
        if isinstance(root, Value):
            return root, 0
        steps = list[Step]()
        for link in links:
            step = _step(link)
            if step is None:
                break
            steps.append(step)
        return root(steps)

    def _method(self, owner: Value, link: Member, call: Call) -> Value:
        name = _key(link.key)
        if not isinstance(name, str):
            raise Untranslatable("a method whose name is calculated")
        if call.is_optional:
            raise Untranslatable("an optional call")
        first, arguments = call.arguments[:1], call.arguments
        if name in _WITH_PATTERN and first and isinstance(pattern := first[0], Pattern):
            if name == "replace" and pattern.is_global:
                name = "replaceAll"
            elif name == "replaceAll" and not pattern.is_global:
                raise Untranslatable("the method replaceAll() with such a pattern")
            arguments = (Constant(pattern.text), *arguments[1:])
        return methods.method(owner, name, [self.value(each) for each in arguments])

    def _field(self, owner: Value, link: Member) -> Value:
        key = _key(link.key)
        if key == "length":
            return methods.length(owner)
        if not owner.may_be({"object", "array", "string"}):
            raise Untranslatable("a field of what has none")
        if key is None:
            return owner.field(self.value(link.key))
        if isinstance(key, int) and key < 0:
            raise Untranslatable("a negative index")
        if isinstance(key, str) and not owner.may_be(OBJECT):
            raise Untranslatable(f"the field {key!r} of a text or a list")
        return owner.field(key)


def _key(node: Node) -> str | int | None:
    """Return a key that is written there, or None."""
    if isinstance(node, Unary) and node.operator == "-" and isinstance(node.operand, Constant):
        number = node.operand.value
        return -number if type(number) is int else None
    if not isinstance(node, Constant) or isinstance(node.value, bool):
        return None
    return node.value if isinstance(node.value, str | int) else None


def _step(link: Member | Call) -> Step | None:
    """Return a link whose parts are written there, or None."""
    if isinstance(link, Member):
        key = _key(link.key)
        return None if key is None else Step(name=key)
    if not all(isinstance(each, Constant) for each in link.arguments):
        return None
    return Step(
        arguments=tuple(each.value for each in link.arguments if isinstance(each, Constant))
    )


__all__ = [
    "ANY",
    "Embedded",
    "Resolver",
    "Roots",
    "Step",
    "Translated",
    "Untranslatable",
    "Value",
    "literal_value",
    "path",
    "split",
    "template_of",
    "translate",
    "value_of_literal",
]
