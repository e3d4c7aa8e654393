"""Filters, tests and methods of Jinja that planwave's templates have too, and how they are written there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple


class Untranslatable(Exception):
    """A part of a template or an expression that planwave has no counterpart of; it says which."""


class FilterForm(NamedTuple):
    """How a filter is written.

    Attributes:
        parameters: The names of its arguments in Jinja, in their order.
        is_named: Whether the arguments are written with their names.
        more: What is written after them, so that it means the same: a default that differs.
        missing: What the filter gets in place of a value that is missing.
        is_optional: Whether its result may be undefined.
        also: Names of arguments that have no place.
        named_after: What its first argument has to be one of: the name of a filter or a test.
    """

    parameters: Sequence[str] = ()
    is_named: bool = False
    more: Mapping[str, str] = {}
    missing: str = "''"
    is_optional: bool = False
    also: Sequence[str] = ()
    named_after: Collection[str] | None = None

    def written(self, name: str, arguments: Sequence[str], named: Mapping[str, str]) -> str:
        """Return the filter with its arguments.

        Raises:
            Untranslatable: It has an argument that planwave's filter lacks.
        """
        given = dict(zip(self.parameters, arguments, strict=False)) | dict(named)
        known = {*self.parameters, *self.also}
        if len(arguments) > len(self.parameters) or not given.keys() <= known:
            raise Untranslatable(f"an argument of the filter {name}")
        if (
            self.named_after is not None
            and arguments
            and arguments[0][1:-1] not in self.named_after
        ):
            raise Untranslatable(f"{arguments[0]} in the filter {name}")
        for parameter, value in self.more.items():
            given.setdefault(parameter, value)
        places = [] if self.is_named else list(self.parameters[: len(arguments)])
        for each in self.parameters[len(places) :] if not self.is_named else ():
            if each not in given:
                break
            places.append(each)
        parts = [given[each] for each in places]
        parts += [f"{each}={value}" for each, value in given.items() if each not in places]
        return f"{name}({', '.join(parts)})" if parts else name


_LIST: Final = FilterForm(missing="[]")
_TEXT: Final = FilterForm()
TESTS: Final = frozenset(
    {
        "defined", "undefined", "none", "string", "number", "mapping", "sequence", "iterable", "odd",
        "even", "divisibleby", "eq", "equalto", "ne", "lt", "lessthan", "le", "gt", "greaterthan",
        "ge", "in", "sameas", "true", "false", "boolean", "integer", "float", "lower", "upper",
    }
)  # fmt: skip
_SELECTED: Final = FilterForm(("test", "argument"), missing="[]", named_after=TESTS)
_SELECTED_BY: Final = FilterForm(("attribute", "test", "argument"), missing="[]")
FILTERS: Final[Mapping[str, FilterForm]] = {
    "abs": _TEXT,
    "batch": FilterForm(("linecount", "fill_with"), missing="[]"),
    "capitalize": _TEXT,
    "count": _TEXT,
    "d": FilterForm(("default_value", "boolean")),
    "default": FilterForm(("default_value", "boolean")),
    "dictsort": FilterForm(missing="{}"),
    "first": FilterForm(missing="[]", is_optional=True),
    "float": FilterForm(("default",), more={"default": "0.0"}),
    "fromjson": _TEXT,
    "int": FilterForm(("default",), more={"default": "0"}),
    "items": FilterForm(missing="{}"),
    "join": FilterForm(("d",), missing="[]"),
    "last": FilterForm(missing="[]", is_optional=True),
    "length": _TEXT,
    "list": _LIST,
    "lower": _TEXT,
    "map": FilterForm(
        ("filter",),
        missing="[]",
        also=("attribute",),
        named_after=("upper", "lower", "trim", "length", "string", "int", "first", "last", "abs"),
    ),
    "reject": _SELECTED,
    "rejectattr": _SELECTED_BY,
    "replace": FilterForm(("old", "new")),
    "reverse": _LIST,
    "select": _SELECTED,
    "selectattr": _SELECTED_BY,
    "sort": FilterForm(("reverse", "case_sensitive", "attribute"), is_named=True, missing="[]"),
    "string": _TEXT,
    "sum": _LIST,
    "tojson": FilterForm(missing="none"),
    "trim": FilterForm(("chars",)),
    "truncate": FilterForm(
        ("length", "killwords", "end", "leeway"),
        is_named=True,
        more={"length": "255", "leeway": "5"},
    ),
    "unique": _LIST,
    "upper": _TEXT,
    "urlencode": _TEXT,
}
"""What is not here differs: ``round`` gives another type, ``title`` other capitals, ``escape`` other entities."""
METHODS: Final = frozenset(
    {
        "capitalize", "count", "endswith", "find", "get", "isalnum", "isalpha", "isascii", "isdigit",
        "islower", "isnumeric", "isspace", "isupper", "items", "join", "keys", "lower", "lstrip",
        "replace", "rfind", "rstrip", "split", "splitlines", "startswith", "strip", "upper", "values",
    }
)  # fmt: skip
"""Methods of texts, lists and objects that only read."""
