"""The one reader of YAML: plain data in one document, without anything that can grow or be called.

YAML has features that other readers resolve differently, or that make a short text large. This reader accepts
what has one meaning in every version: mappings, sequences and scalars. It rejects anchors, aliases, tags, merge keys,
keys that are no scalars, repeated keys and a second document. It builds the value from the events of PyYAML, so
that nesting is limited while the text is read, and nothing is constructed from names in the text.

Scalars are resolved by the core schema of YAML 1.2, of which JSON is a part: ``yes``, ``on``, ``1:30``, ``1_000``
and ``2026-01-01`` are text. So is ``010``, which is 8 in YAML 1.1 and 10 in YAML 1.2.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from planwave.errors import GraphInvalid
from planwave.graph.diagnostics import Diagnostic, limit_exceeded, short_repr
from planwave.graph.json_values import json_findings
from planwave.graph.model import Json
from planwave.graph.reading.strict_json import ParseHooks, both_forms
from planwave.jsonio import MAX_JSON_DEPTH

if TYPE_CHECKING:
    import yaml

_NOT_ALLOWED: Final = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    "|(?<=[\n\r\x85\u2028\u2029])\ufeff"
)
"""Characters that stand in a YAML text only as escapes (YAML 1.2, production ``c-printable``), and byte order
marks that begin a later line: the two parsers of PyYAML differ on what those are."""
_CONSTANTS: Final[dict[str, bool | None]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_OTHER_BASE: Final = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|(?:0|[1-9][0-9]*)(?=[eE]))(?:[eE][-+]?[0-9]+)?"
)
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_MERGE_KEY: Final = "<<"
_MAX_BASE_DIGITS: Final = 250
_KEY_HINT: Final = 'keys are text; a template needs quotes: "{{ input }}"'


def parse_yaml(
    text: str | bytes, *, max_bytes: int | None = None, max_depth: int | None = None
) -> Json:
    """Parse a YAML document into JSON values.

    Args:
        text: YAML text; bytes must be UTF-8. A leading byte order mark is ignored. Keys are read as the text
            that is written: ``1: a`` has the key ``"1"``.
        max_bytes: The limit in bytes of UTF-8, or None.
        max_depth: The limit on nesting; never more than 64.

    Raises:
        GraphInvalid: ``limit-exceeded`` (size, nesting), ``invalid-yaml`` (with line and column),
            ``unsupported-yaml`` (anchors, aliases, tags, merge keys, keys that are no scalars, several documents),
            ``duplicate-key``, ``invalid-number`` (NaN, infinity, out of range) or ``invalid-text``
            (lone surrogates, NUL), the latter three with JSON pointers and all at once.
    """
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    import yaml

    depth = MAX_JSON_DEPTH if max_depth is None else min(max_depth, MAX_JSON_DEPTH)
    _, characters = both_forms(text, max_bytes, code="invalid-yaml")
    if (found := _NOT_ALLOWED.search(characters)) is not None:
        raise _not_printable(characters, found.start())
    tree = _Tree(depth)
    # The compiled parser is ten times as fast; PyYAML may have been built without it.
    new_parser = cast("Callable[[str], _Parser]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    try:
        tree.read(new_parser(characters))
    except GraphInvalid:
        raise
    except (yaml.YAMLError, ValueError) as error:  # the latter: an escape beyond Unicode
        raise _not_yaml(error) from error
    value = tree.document()
    if errors := json_findings(value):
        raise GraphInvalid(errors)
    return value


class _Parser(Protocol):
    """What this reader uses of the two parsers of PyYAML."""

    def get_event(self) -> yaml.Event | None: ...

    def dispose(self) -> None: ...


class _Collection:
    """A collection that is being read; of a mapping, keys and values alternate."""

    __slots__ = ("is_mapping", "items")

    def __init__(self, *, is_mapping: bool) -> None:
        self.is_mapping = is_mapping
        self.items: list[Any] = []

    def takes_key(self) -> bool:
        return self.is_mapping and not len(self.items) & 1

    def value(self) -> Json:
        if not self.is_mapping:
            return self.items
        pairs = zip(self.items[::2], self.items[1::2], strict=True)
        return ParseHooks().parse_object(list(pairs))


class _Tree:
    """The value that the events of a text build, in constant time for each."""

    def __init__(self, depth: int) -> None:
        # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
        import yaml

        self._depth = depth
        self._documents = 0
        self._open = [_Collection(is_mapping=False)]
        self._actions: dict[type[yaml.Event], Callable[[Any], None]] = {
            yaml.ScalarEvent: self._add_scalar,
            yaml.MappingStartEvent: self._start_mapping,
            yaml.SequenceStartEvent: self._start_sequence,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._refuse_alias,
            yaml.DocumentStartEvent: self._start_document,
            yaml.DocumentEndEvent: _pass,
            yaml.StreamStartEvent: _pass,
            yaml.StreamEndEvent: _pass,
        }

    def document(self) -> Json:
        """Return the value of the only document.

        Raises:
            GraphInvalid: The text has no document.
        """
        if not self._documents:
            raise _error("invalid-yaml", "not YAML: the document is empty")
        return self._open[0].items[0]

    def read(self, parser: _Parser) -> None:
        """Add what all events say.

        Raises:
            GraphInvalid: One is no plain data, or nests too deep.
            YAMLError: The text is no YAML.
        """
        next_event, actions = parser.get_event, self._actions
        try:
            while (event := next_event()) is not None:
                actions[type(event)](event)
        finally:
            parser.dispose()

    def _refuse_alias(self, event: yaml.AliasEvent) -> None:
        raise _unsupported("an alias", event, "write the value out where it is used")

    def _start_document(self, event: yaml.DocumentStartEvent) -> None:
        self._documents += 1
        if self._documents > 1:
            hint = "put each document into a file of its own"
            raise _unsupported("a second document", event, hint)

    def _start_mapping(self, event: yaml.MappingStartEvent) -> None:
        self._start(event, is_mapping=True)

    def _start_sequence(self, event: yaml.SequenceStartEvent) -> None:
        self._start(event, is_mapping=False)

    def _start(self, event: yaml.CollectionStartEvent, *, is_mapping: bool) -> None:
        _require_plain(event)
        if self._open[-1].takes_key():
            raise _unsupported("a key that is a collection", event, _KEY_HINT)
        if len(self._open) > self._depth:
            actual = f"more than {self._depth}"
            raise GraphInvalid([limit_exceeded("json_depth", self._depth, actual, "nesting")])
        self._open.append(_Collection(is_mapping=is_mapping))

    def _end(self, _: yaml.CollectionEndEvent) -> None:
        ended = self._open.pop()
        self._open[-1].items.append(ended.value())

    def _add_scalar(self, event: yaml.ScalarEvent) -> None:
        _require_plain(event)
        text = cast("str", event.value)
        is_plain: bool = event.implicit[0]
        around = self._open[-1]
        if not around.takes_key():
            around.items.append(_resolved(text) if is_plain else text)
        elif is_plain and text == _MERGE_KEY:
            raise _unsupported("a merge key", event, "write the merged fields out")
        else:
            around.items.append(text)


def _pass(_: yaml.Event) -> None:
    """Do nothing for the ends of documents and of the stream."""


def _resolved(text: str) -> Json:
    """Return the value of a scalar without quotes."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _INTEGER.fullmatch(text):
        return ParseHooks().parse_int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _OTHER_BASE.fullmatch(text):
        return int(text, 0) if len(text) <= _MAX_BASE_DIGITS else float("inf")
    return float(text.replace(".", "")) if _NOT_FINITE.fullmatch(text) else text


def _require_plain(event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
    if event.anchor is not None:
        raise _unsupported("an anchor", event, "write the value out where it is used")
    if event.tag is not None:
        hint = "remove it: planwave reads plain data and constructs nothing"
        raise _unsupported(f"the tag {short_repr(event.tag)}", event, hint)


def _error(code: str, message: str, hint: str | None = None) -> GraphInvalid:
    return GraphInvalid([Diagnostic(code, "error", message, hint=hint)])


def _unsupported(what: str, event: yaml.Event, hint: str) -> GraphInvalid:
    mark = event.start_mark
    message = f"{what} at line {mark.line + 1}, column {mark.column + 1} of the YAML: not allowed"
    return _error("unsupported-yaml", message, hint)


def _not_printable(text: str, position: int) -> GraphInvalid:
    line, column = text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
    code_point = f"U+{ord(text[position]):04X}"
    where = f"line {line}, column {column}"
    message = f"not YAML: the character {code_point} at {where} may stand there only as an escape"
    return _error("invalid-yaml", message)


def _not_yaml(error: Exception) -> GraphInvalid:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "it cannot be read"
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    return _error("invalid-yaml", f"not YAML: {problem}{where}")
