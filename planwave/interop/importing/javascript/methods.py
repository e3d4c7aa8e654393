"""The closed list of functions, methods and properties of JavaScript, and what stands for each.

Where JavaScript fails, as for a method of null, the translation fails too, or gives what a program that
takes such an error for an empty value has. Texts are compared and cut by characters, where JavaScript has
two units for one outside of the Basic Multilingual Plane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from planwave.interop.importing.javascript.tokens import Untranslatable
from planwave.interop.importing.javascript.values import (
    ANY,
    ARRAY,
    BOOLEAN,
    MISSING,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    STRUCTURES,
    Kind,
    Value,
    joined,
    number_of,
    text_of,
    truth,
)
from planwave.interop.importing.templates import quoted

_TEXT_OR_LIST: Final = STRING | ARRAY


class Method(NamedTuple):
    """A method.

    Attributes:
        translate: Makes its value, of what it belongs to and its arguments.
        owners: The kinds that have it.
        fewest: How many arguments it has at least.
        most: How many at most.
    """

    translate: Callable[[Value, Sequence[Value]], Value]
    owners: frozenset[Kind]
    fewest: int = 0
    most: int = 0


def method(owner: Value, name: str, arguments: Sequence[Value]) -> Value:
    """Return the value of ``owner.name(arguments)``.

    Raises:
        Untranslatable: There is no such entry, or not for these arguments.
    """
    entry = METHODS.get(name)
    if entry is None:
        raise Untranslatable(f"the method {name}()")
    if not owner.may_be(entry.owners):
        raise Untranslatable(f"the method {name}() of what does not have it")
    if not entry.fewest <= len(arguments) <= entry.most:
        raise Untranslatable(f"the method {name}() with {len(arguments)} arguments")
    return entry.translate(owner, arguments)


def function(name: str, arguments: Sequence[Value]) -> Value:
    """Return the value of ``name(arguments)``, such as ``Math.round(x)``.

    Raises:
        Untranslatable: There is no such entry, or not for these arguments.
    """
    entry = FUNCTIONS.get(name)
    if entry is None:
        raise Untranslatable(f"the function {name}()")
    if not entry.fewest <= len(arguments) <= entry.most:
        raise Untranslatable(f"the function {name}() with {len(arguments)} arguments")
    return entry.translate(arguments)


def length(owner: Value) -> Value:
    """Return ``owner.length``; of an object that is its field of that name."""
    if owner.is_always(OBJECT):
        return owner.field("length")
    if not owner.may_be(_TEXT_OR_LIST):
        raise Untranslatable("the length of what has none")
    x = owner.atom
    if not owner.may_be(OBJECT):
        plain = None if owner.plain is None else f"{owner.plain} | length"
        return Value(f"{x} | length", NUMBER, plain=plain, is_whole=True)
    return Value(
        f"{x} | length if {x} is not mapping else {owner.field('length').text}",
        NUMBER,
        is_whole=True,
    )


def _filtered(filter_name: str, engine_method: str) -> Callable[[Value, Sequence[Value]], Value]:
    """Return a method of texts: a filter of a plain path, or the engine's method, which fails for null."""

    def translate(owner: Value, _arguments: Sequence[Value]) -> Value:
        plain = None if owner.plain is None else f"{owner.plain} | {filter_name}"
        if owner.constant is not None or owner.is_always(STRING):
            return Value(f"{owner.atom} | {filter_name}", STRING, plain=plain)
        return Value(f"{owner.atom}.{engine_method}()", STRING, plain=plain)

    return translate


def _as_string(owner: Value, _arguments: Sequence[Value]) -> Value:
    if owner.may_be(MISSING):
        owner = Value(owner.text, owner.kinds - MISSING, plain=owner.plain)
    return joined(owner)


def _includes(owner: Value, arguments: Sequence[Value]) -> Value:
    (part,) = arguments
    if part.may_be(MISSING | STRUCTURES) and not part.may_be(STRING):
        raise Untranslatable("includes() of what is no text and no number")
    if part.is_always(STRING):
        return Value(f"{part.atom} in {owner.atom}", BOOLEAN)
    in_list = _in_list(part, owner)
    if owner.is_always(ARRAY):
        return Value(in_list, BOOLEAN)
    in_text = f"{text_of(part)} in {owner.atom}"
    if owner.is_always(STRING):
        return Value(in_text, BOOLEAN)
    return Value(f"{in_list} if {owner.atom} is sequence else {in_text}", BOOLEAN)


def _in_list(part: Value, owner: Value) -> str:
    """Return whether a list has a value: planwave has true equal to 1, and JavaScript has not."""
    same, items = part.guarded(), owner.atom
    is_other = isinstance(part.constant, int | float) and part.constant not in (0, 1)
    if is_other or not part.may_be(BOOLEAN | NUMBER):
        return f"{same} in {items}"
    booleans, others = f'{items} | select("boolean")', f'{items} | reject("boolean")'
    if part.is_always(BOOLEAN):
        return f"{same} in ({booleans} | list)"
    if not part.may_be(BOOLEAN):
        return f"{same} in ({others} | list)"
    return f"{same} in (({booleans} if {same} is boolean else {others}) | list)"


def _affix(engine_method: str) -> Callable[[Value, Sequence[Value]], Value]:
    def translate(owner: Value, arguments: Sequence[Value]) -> Value:
        (part,) = arguments
        return Value(f"{owner.atom}.{engine_method}({text_of(part)})", BOOLEAN)

    return translate


def _index_of(owner: Value, arguments: Sequence[Value]) -> Value:
    (part,) = arguments
    if owner.is_always(ARRAY):
        raise Untranslatable("the method indexOf() of a list")
    # A list has no method find: it fails there.
    return Value(f"{owner.atom}.find({text_of(part)})", NUMBER, is_whole=True)


def _join(owner: Value, arguments: Sequence[Value]) -> Value:
    separator = quoted(_text(arguments[0], "join")) if arguments else '","'
    plain = None if owner.plain is None else f"{owner.plain} | join({separator})"
    return Value(f"{owner.atom} | join({separator})", STRING, plain=plain)


def _split(owner: Value, arguments: Sequence[Value]) -> Value:
    separator = _text(arguments[0], "split")
    if not separator:
        raise Untranslatable("the method split() into characters")
    plain = None if owner.plain is None else f"{owner.plain} | split({quoted(separator)})"
    return Value(f"{owner.atom}.split({quoted(separator)})", ARRAY, plain=plain)


def _slice(owner: Value, arguments: Sequence[Value]) -> Value:
    start, end = _bounds(arguments, "slice")
    part = f"{owner.atom}[{start}:{end}]"
    # A part of a list is no sequence for planwave's tests until it is a list again.
    if owner.is_always(STRING):
        return Value(part, STRING)
    if owner.is_always(ARRAY):
        return Value(f"{part} | list", ARRAY)
    return Value(f"{part} if {owner.atom} is string else {part} | list", _TEXT_OR_LIST)


def _substring(owner: Value, arguments: Sequence[Value]) -> Value:
    start, end = _bounds(arguments, "substring")
    first, last = int(start), None if end == "" else int(end)
    if first < 0 or (last is not None and last < first):
        raise Untranslatable("the method substring() with such bounds")
    return Value(f"{owner.atom}[{start}:{end}]", STRING)


def _bounds(arguments: Sequence[Value], name: str) -> tuple[str, str]:
    for argument in arguments:
        if not isinstance(argument.constant, int):
            raise Untranslatable(f"the method {name}() with bounds that are no whole numbers")
    texts = [str(argument.constant) for argument in arguments]
    return (*texts, "", "")[0] or "0", (*texts, "", "")[1]


def _replace(owner: Value, arguments: Sequence[Value]) -> Value:
    """Replace the first occurrence, as JavaScript does."""
    old, new = _replaced(arguments, "replace")
    return Value(f"{owner.atom}.split({old}, 1) | join({new})", STRING)


def _replace_all(owner: Value, arguments: Sequence[Value]) -> Value:
    old, new = _replaced(arguments, "replaceAll")
    plain = None if owner.plain is None else f"{owner.plain} | replace({old}, {new})"
    return Value(f"{owner.atom}.replace({old}, {new})", STRING, plain=plain)


def _replaced(arguments: Sequence[Value], name: str) -> tuple[str, str]:
    old, new = (_text(each, name) for each in arguments)
    if not old or "$" in new:
        raise Untranslatable(f"the method {name}() with such a pattern")
    return quoted(old), quoted(new)


def _concat(owner: Value, arguments: Sequence[Value]) -> Value:
    if owner.is_always(STRING):
        return joined(owner, *arguments)
    if owner.is_always(ARRAY) and all(each.is_always(ARRAY) for each in arguments):
        return Value(" + ".join(each.atom for each in (owner, *arguments)), ARRAY)
    raise Untranslatable("the method concat() of what may be a text or a list")


def _character(owner: Value, arguments: Sequence[Value]) -> Value:
    start, _ = _bounds(arguments, "charAt")
    if int(start) < 0:
        return Value('""', STRING)
    return Value(f"{owner.atom}[{start}:{int(start) + 1}]", STRING)


def _at(owner: Value, arguments: Sequence[Value]) -> Value:
    place, _ = _bounds(arguments, "at")
    return owner.field(int(place))


def _end(name: str) -> Callable[[Value, Sequence[Value]], Value]:
    def translate(owner: Value, _arguments: Sequence[Value]) -> Value:
        if owner.may_be(ARRAY):
            return owner.field(0 if name == "first" else -1)
        raise Untranslatable(f"the method {name}() of a text")

    return translate


def _is_empty(owner: Value, _arguments: Sequence[Value]) -> Value:
    return Value(f"not {owner.guarded()}", BOOLEAN)


def _is_not_empty(owner: Value, _arguments: Sequence[Value]) -> Value:
    return Value(f"not not {owner.guarded()}", BOOLEAN)


def _reverse(owner: Value, _arguments: Sequence[Value]) -> Value:
    if owner.may_be(STRING):
        raise Untranslatable("the method reverse() of what may be no list")
    return Value(f"{owner.atom} | reverse | list", ARRAY)


def _to_fixed(owner: Value, arguments: Sequence[Value]) -> Value:
    """Return a number with some places; what lies half way is rounded away from zero.

    The engine rounds that to the even place. Such a number is a multiple of 1/2 to the power of one more
    than the places, which is seen exactly, unlike the number times 10 to the power of the places.
    """
    places = arguments[0].constant if arguments else 0
    if not isinstance(places, int) or not 0 <= places <= _MOST_PLACES:
        raise Untranslatable("the method toFixed() with such a number of places")
    x = owner.atom
    is_half = f"{x} * {2 ** (places + 1)} % 1 == 0 and {x} * {10**places} % 1 in [0.5, -0.5]"
    more = repr(0.1 ** (places + 2)) if places < 3 else f"{10 ** -(places + 2):.{places + 2}f}"
    away = f"({more} if {x} > 0 else -{more}) if {is_half} else 0"
    return Value(f"{quoted(f'%.{places}f')} | format({x} + ({away}))", STRING)


_MOST_PLACES: Final = 8


def _parse_json(owner: Value, _arguments: Sequence[Value]) -> Value:
    return _json_of((owner,))


def _to_json(owner: Value, _arguments: Sequence[Value]) -> Value:
    if owner.may_be(MISSING):
        owner = Value(owner.text, owner.kinds - MISSING, plain=owner.plain)
    return _stringify((owner,))


METHODS: Final[Mapping[str, Method]] = MappingProxyType(
    {
        "toUpperCase": Method(_filtered("upper", "upper"), STRING),
        "toLowerCase": Method(_filtered("lower", "lower"), STRING),
        "trim": Method(_filtered("trim", "strip"), STRING),
        "toString": Method(_as_string, ANY),
        "includes": Method(_includes, _TEXT_OR_LIST, 1, 1),
        "startsWith": Method(_affix("startswith"), STRING, 1, 1),
        "endsWith": Method(_affix("endswith"), STRING, 1, 1),
        "indexOf": Method(_index_of, _TEXT_OR_LIST, 1, 1),
        "join": Method(_join, ARRAY, 0, 1),
        "split": Method(_split, STRING, 1, 1),
        "slice": Method(_slice, _TEXT_OR_LIST, 0, 2),
        "substring": Method(_substring, STRING, 1, 2),
        "replace": Method(_replace, STRING, 2, 2),
        "replaceAll": Method(_replace_all, STRING, 2, 2),
        "concat": Method(_concat, _TEXT_OR_LIST, 1, 16),
        "charAt": Method(_character, STRING, 1, 1),
        "at": Method(_at, _TEXT_OR_LIST, 1, 1),
        "reverse": Method(_reverse, ARRAY),
        "first": Method(_end("first"), ARRAY),
        "last": Method(_end("last"), ARRAY),
        "toFixed": Method(_to_fixed, NUMBER, 0, 1),
        "parseJson": Method(_parse_json, STRING),
        "toJsonString": Method(_to_json, ANY),
        "isEmpty": Method(_is_empty, ANY),
        "isNotEmpty": Method(_is_not_empty, ANY),
    }
)
"""Methods; first, last, isEmpty, isNotEmpty, parseJson and toJsonString are additions of n8n."""


class Function(NamedTuple):
    """A function: what makes its value, and how many arguments it has at least and at most."""

    translate: Callable[[Sequence[Value]], Value]
    fewest: int = 1
    most: int = 1


def _stringify(arguments: Sequence[Value]) -> Value:
    value, *more = arguments
    indent = more[1].constant if len(more) == 2 else None
    if more and (not more[0].is_always(MISSING) or (len(more) == 2 and type(indent) is not int)):
        raise Untranslatable("JSON.stringify() with a function or a list of fields")
    if value.is_always(NUMBER):
        return joined(value)
    filter_text = f"tojson(indent={indent})" if indent else "tojson"
    plain = None if value.plain is None or indent else f"{value.plain} | tojson"
    if not value.may_be({"undefined"}):
        return Value(f"{value.atom} | {filter_text}", STRING, plain=plain)
    text = f"{value.lookup()} | {filter_text} if {value.lookup()} is defined"
    return Value(text, STRING | {"undefined"}, plain=plain)


def _json_of(arguments: Sequence[Value]) -> Value:
    (value,) = arguments
    if not value.may_be(STRING):
        raise Untranslatable("JSON.parse() of what is no text")
    text = value.atom
    if not value.is_always(STRING):  # the filter hands on what is no text, and JavaScript its text
        text = value.guarded()
        text = f'({text} if {text} is string else "no text")'
    return Value(f"{text} | fromjson", ANY)


def _encoded(arguments: Sequence[Value]) -> Value:
    """Encode a part of an address; the filter leaves a slash, and encodes more than JavaScript does."""
    (value,) = arguments
    text = f"{text_of(value)} | urlencode"
    for old, new in _ENCODED.items():
        text = f"{text} | replace({quoted(old)}, {quoted(new)})"
    return Value(text, STRING)


_ENCODED: Final = {
    "/": "%2F", "%7E": "~", "%21": "!", "%27": "'", "%28": "(", "%29": ")", "%2A": "*",
}  # fmt: skip


def _is_array(arguments: Sequence[Value]) -> Value:
    return Value(f"{arguments[0].guarded()} is sequence", BOOLEAN)


def _if_empty(arguments: Sequence[Value]) -> Value:
    """Return a value, or another one in place of nothing, "", [] and {}."""
    value, other = arguments
    if not value.may_be(MISSING | STRING | STRUCTURES):
        return value
    found = Value(value.guarded(), value.kinds - MISSING)
    is_empty = f'{value.guarded()} in [none, "", [], {{}}]'
    return Value(f"{other.lookup()} if {is_empty} else {found.atom}", found.kinds | other.kinds)


def _floor(arguments: Sequence[Value]) -> Value:
    return Value(f"({number_of(arguments[0])} // 1) | int", NUMBER, is_whole=True)


def _ceil(arguments: Sequence[Value]) -> Value:
    return Value(f"-((-{number_of(arguments[0])} // 1) | int)", NUMBER, is_whole=True)


def _round(arguments: Sequence[Value]) -> Value:
    """Round halves up, also below zero, as JavaScript does."""
    x = number_of(arguments[0])
    return Value(f"({x} // 1 + (1 if {x} - {x} // 1 >= 0.5 else 0)) | int", NUMBER, is_whole=True)


def _trunc(arguments: Sequence[Value]) -> Value:
    return Value(f"{number_of(arguments[0])} | int", NUMBER, is_whole=True)


def _extreme(name: str) -> Callable[[Sequence[Value]], Value]:
    def translate(arguments: Sequence[Value]) -> Value:
        items = ", ".join(map(number_of, arguments))
        is_whole = all(each.is_whole for each in arguments)
        return Value(f"[{items}] | {name}", NUMBER, is_whole=is_whole)

    return translate


def _absolute(arguments: Sequence[Value]) -> Value:
    return Value(f"{number_of(arguments[0])} | abs", NUMBER, is_whole=arguments[0].is_whole)


def _number(arguments: Sequence[Value]) -> Value:
    (value,) = arguments
    return Value(number_of(value), NUMBER, is_whole=value.is_whole)


def _parsed(filter_name: str) -> Callable[[Sequence[Value]], Value]:
    """Return parseInt or parseFloat; a text with more than a number fails."""

    def translate(arguments: Sequence[Value]) -> Value:
        value, *base = arguments
        if base and base[0].constant != 10:
            raise Untranslatable("parseInt() with another base than 10")
        if not value.may_be(STRING | NUMBER):
            raise Untranslatable("parseInt() of what is no text and no number")
        x = value.guarded('"undefined"')
        if value.may_be(NULL | BOOLEAN):
            x = f"({x} if {x} is string or {x} is number and {x} is not boolean else 'no number')"
        return Value(f"{x} | {filter_name}", NUMBER, is_whole=filter_name == "int")

    return translate


def _string(arguments: Sequence[Value]) -> Value:
    return joined(arguments[0])


def _boolean(arguments: Sequence[Value]) -> Value:
    return Value(f"not not {truth(arguments[0])}", BOOLEAN)


def _parts(name: str) -> Callable[[Sequence[Value]], Value]:
    def translate(arguments: Sequence[Value]) -> Value:
        (value,) = arguments
        if not value.may_be(OBJECT):
            raise Untranslatable("the fields of what is no object")
        return Value(f"{value.atom}.{name}() | list", ARRAY)

    return translate


FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        "JSON.stringify": Function(_stringify, 1, 3),
        "JSON.parse": Function(_json_of),
        "Array.isArray": Function(_is_array),
        "encodeURIComponent": Function(_encoded),
        "$ifEmpty": Function(_if_empty, 2, 2),
        "Math.floor": Function(_floor),
        "Math.ceil": Function(_ceil),
        "Math.round": Function(_round),
        "Math.trunc": Function(_trunc),
        "Math.max": Function(_extreme("max"), 1, 16),
        "Math.min": Function(_extreme("min"), 1, 16),
        "Math.abs": Function(_absolute),
        "Number": Function(_number),
        "parseInt": Function(_parsed("int"), 1, 2),
        "parseFloat": Function(_parsed("float")),
        "String": Function(_string),
        "Boolean": Function(_boolean),
        "Object.keys": Function(_parts("keys")),
        "Object.values": Function(_parts("values")),
    }
)


def _text(value: Value, name: str) -> str:
    if isinstance(value.constant, str):
        return value.constant
    raise Untranslatable(f"the method {name}() with something that is no text written there")
