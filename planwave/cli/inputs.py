"""What commands read: ``--input`` values, files, standard input, JSON."""

from __future__ import annotations

import re
import sys
from collections.abc import (
    Container,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO, cast

from planwave.cli.formatting import truncate
from planwave.errors import GraphInvalid, InputError, NotFound
from planwave.executor.inputs import copy_inputs
from planwave.executor.program import Program
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, Graph, Json
from planwave.graph.plan import canonical_json
from planwave.graph.protocols import NodeTypes
from planwave.graph.reading.document_text import parse_document_text
from planwave.graph.reading.strict_json import parse_strict_json
from planwave.graph.suggestions import closest_match

if TYPE_CHECKING:
    from planwave.graph.protocols import NodeTypes
    from planwave.service.flows.flow_queries import Flow

InputValues = dict[str, dict[str, Json]]
_INPUT: Final = "--input"
_RESULT: Final = "--set-result"
_SHOWN_CHARS = 60
_MAX_NODES_NAMED: Final = 8
_NODE_PREFIX: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}(:[A-Za-z0-9_.-]+)?=")
"""The start of a text that is meant for a named node: ``NODE=`` or ``NODE:HANDLE=``."""


class PlainText(NamedTuple):
    """A text for the one entry node, even if it looks like ``NODE=TEXT``: ``--input -``."""

    text: str


class StepResult(NamedTuple):
    """One ``--set-result``: ``NODE=TEXT``, or an object; the step does not run."""

    value: str | dict[str, Json]


InputArgument = str | PlainText | dict[str, Json] | StepResult
"""One ``--input``: a text, perhaps for a named node, a text from stdin, or an object; or a result."""


def read_inputs(written: Iterable[str], results: Iterable[str] = ()) -> list[InputArgument]:
    """Parse all ``--input`` and ``--set-result`` values as far as possible without the graph.

    Raises:
        InputError: A value begins as an object and is not JSON, or stdin cannot be read.
    """
    given = [_parse_input(text) for text in written]
    return [*given, *(StepResult(_text_or_object(text, _RESULT)) for text in results)]


def _parse_input(text: str) -> InputArgument:
    if text == STDIN:
        return PlainText(_read_stdin_text("the input").removesuffix("\n"))
    return _text_or_object(text, _INPUT)


def _text_or_object(text: str, option: str) -> str | dict[str, Json]:
    return _object(text, option) if text.lstrip().startswith("{") else text


def resolve_inputs(
    arguments: Sequence[InputArgument], graph: Graph, catalogue: NodeTypes
) -> InputValues:
    """Return all ``--input`` and ``--set-result`` values as checked inputs of a graph.

    Raises:
        InputError: A value names no node of the graph, or no node and there is no one entry node; an
            input names a node that is no entry; an object does not have the shape of an execution's inputs.
    """
    if not arguments:
        return {}
    program, by_node = Program(graph, catalogue), InputValues()
    entries = [graph.nodes[number].id for number in sorted(program.entry_nodes)]
    for each in _with_fields(arguments, graph, entries):
        inputs = copy_inputs(program, _by_node(each, graph, entries))
        for node, values in inputs.items():
            by_node.setdefault(node, {}).update(values)
    return by_node


def merge_inputs(
    arguments: Sequence[InputArgument], graph: Graph, entry_types: Container[str]
) -> dict[str, Any]:
    """Return all ``--input`` and ``--set-result`` values as inputs of a graph; the service checks them.

    Args:
        arguments: The result of ``read_inputs``.
        graph: The graph that receives the inputs.
        entry_types: The node types the service takes as entries.

    Raises:
        InputError: A text names no node of the graph, and there is no one entry node; an input names a
            node that is no entry.
    """
    by_node: dict[str, Any] = {}
    entries = [node.id for node in graph.nodes if node.type in entry_types]
    for each in _with_fields(arguments, graph, entries):
        inputs: dict[str, Any] = {**_by_node(each, graph, entries)}
        if len(entries) == 1 and not inputs.keys() & graph.by_id.keys():
            inputs = {entries[0]: inputs}
        for node, values in inputs.items():
            before: Any = by_node.get(node)
            is_more = isinstance(before, dict) and isinstance(values, dict)
            by_node[node] = before | values if is_more else values
    return by_node


def _with_fields(
    arguments: Sequence[InputArgument], graph: Graph, entries: Sequence[str]
) -> Sequence[InputArgument]:
    """Return the arguments with those that are ``FIELD=TEXT`` as one object of the one entry node.

    The fields are those of the schema that the node declares; a node of that name goes first. A text
    for a field that is none is read as JSON.
    """
    properties = _declared_fields(graph, entries)
    fields: dict[str, Json] = {}
    others: list[InputArgument] = []
    for argument in arguments:
        name, equals, value = argument.partition("=") if isinstance(argument, str) else ("", "", "")
        name = name.strip()
        if equals and name in properties and name not in graph.by_id:
            fields[name] = _field_value(value, properties[name])
        elif own := _only_fields(argument, properties, entries):
            fields |= own
        else:
            others.append(argument)
    return [*others, {entries[0]: {DEFAULT_SOURCE_HANDLE: fields}}] if fields else others


def _only_fields(
    argument: InputArgument, properties: Mapping[str, Json], entries: Sequence[str]
) -> Mapping[str, Json]:
    """Return an object of fields of the one entry node, by themselves or as its value; else nothing."""
    if not isinstance(argument, dict):
        return {}
    own: dict[str, Json] = argument
    if argument.keys() == {*entries}:
        by_handle = _as_object(argument[entries[0]])
        own = _as_object(by_handle.get(DEFAULT_SOURCE_HANDLE)) if len(by_handle) == 1 else {}
    return own if own.keys() <= properties.keys() else {}


def _declared_fields(graph: Graph, entries: Sequence[str]) -> Mapping[str, Json]:
    """Return the schema of each field of the input, where the one entry node declares an object."""
    if len(entries) != 1:
        return {}
    schema = _as_object(graph.by_id[entries[0]].data.get("schema"))
    return _as_object(schema.get("properties"))


def _as_object(value: Json) -> dict[str, Json]:
    return cast("dict[str, Json]", value) if isinstance(value, dict) else {}


def _field_value(text: str, schema: Json) -> Json:
    if _as_object(schema).get("type", "string") != "string":
        with suppress(GraphInvalid):
            return parse_strict_json(text)
    return text


def nodes_with_input(arguments: Sequence[InputArgument], graph: Graph) -> set[str]:
    """Return the ids of the nodes that ``--input`` values name; those without a name are for all."""
    node_ids: set[str] = set()
    for argument in arguments:
        each = argument.value if isinstance(argument, StepResult) else argument
        text = each if isinstance(each, str) else ""
        names = each if isinstance(each, dict) else {text.partition("=")[0].partition(":")[0]}
        node_ids |= {name.strip() for name in names} & graph.by_id.keys() or graph.by_id.keys()
    return node_ids


def _by_node(argument: InputArgument, graph: Graph, entries: Sequence[str]) -> Mapping[str, Json]:
    """Return the values of one argument by node, or by handle of the one entry node."""
    if isinstance(argument, StepResult):
        value = argument.value
        return value if isinstance(value, dict) else _text(value, graph, (), _RESULT)
    by_node = argument if isinstance(argument, dict) else _text(argument, graph, entries, _INPUT)
    for node_id in by_node:
        if node_id in graph.by_id and node_id not in entries:
            raise _no_entry(node_id, entries)
    return by_node


def _no_entry(node_id: str, entries: Sequence[str]) -> InputError:
    names = f"entry steps are {', '.join(entries[:_MAX_NODES_NAMED])}" if entries else ""
    return InputError(
        f"--input is for entry steps, and {node_id!r} is none: it would not run",
        hint=f"to set its result instead: {_RESULT} {node_id}=TEXT" + (names and f"; {names}"),
    )


def _text(
    written: str | PlainText, graph: Graph, entries: Sequence[str], option: str
) -> InputValues:
    text = written.text if isinstance(written, PlainText) else written
    if isinstance(written, str):
        name, equals, value = text.partition("=")
        node, _, handle = name.strip().partition(":")
        if equals and node in graph.by_id:
            return {node: {handle or DEFAULT_SOURCE_HANDLE: value}}
        if _NODE_PREFIX.match(text):
            raise _unknown_node(text, node, graph, entries, option)
    if len(entries) == 1:
        return {entries[0]: {DEFAULT_SOURCE_HANDLE: text}}
    why = f", and the graph has {len(entries)} entry nodes" if option == _INPUT else ""
    raise InputError(
        f"{option} {truncate(repr(text), _SHOWN_CHARS)} does not say which node it is for{why}",
        hint=f"write NODE=TEXT; {_nodes_of(graph)}",
    )


def _unknown_node(
    text: str, node: str, graph: Graph, entries: Sequence[str], option: str
) -> InputError:
    near = closest_match(node, graph.by_id)
    names = _nodes_of(graph) if near is None else f"did you mean {near!r}?"
    if fields := _declared_fields(graph, entries):
        names = f"the fields of the input are {', '.join(list(fields)[:_MAX_NODES_NAMED])}; {names}"
    return InputError(
        f"{option} {truncate(repr(text), _SHOWN_CHARS)}: the graph has no node {node!r}",
        hint=f"{names} (a text that contains = is read from stdin with --input -)",
    )


def _nodes_of(graph: Graph) -> str:
    ids = list(graph.by_id)
    more = ", …" if len(ids) > _MAX_NODES_NAMED else ""
    return f"the nodes are {', '.join(ids[:_MAX_NODES_NAMED])}{more}"


def _object(text: str, option: str) -> dict[str, Json]:
    try:
        return cast("dict[str, Json]", parse_strict_json(text))
    except GraphInvalid as error:
        raise InputError(
            f"{option} {truncate(repr(text), _SHOWN_CHARS)}: {error.message}",
            hint="write {NODE: {HANDLE: VALUE}} as JSON; "
            "a text that begins with a brace is given as NODE=TEXT",
        ) from error


STDIN: Final = "-"
"""Stands for standard input in place of a goal or a file name."""

MAX_FILE_BYTES = 16 * 1024 * 1024
"""Far above any graph the limits accept; keeps a wrong file name from filling the memory."""
_NAME_SHOWN = 200


class Source(NamedTuple):
    """The unparsed text of a plan or graph, and the name of its origin in messages."""

    name: str
    content: bytes


def read_source(file: str) -> Source:
    """Read a plan or graph from a file, or from stdin.

    Raises:
        NotFound: There is no such file.
        InputError: It cannot be read, or is far too large to be a plan.
    """
    if file == STDIN:
        return Source("stdin", _read_stdin("the plan"))
    try:
        return Source(file, _read_file(file))
    except NotFound as error:
        error.hint = 'make one with: planwave plan "GOAL" --json > FILE'
        raise
    except InputError as error:
        error.hint = "name a file with a plan or graph, or - for stdin"
        raise


def titled_source(file: str) -> Source:
    """Read a plan or graph as ``read_source`` does; one without a title gets the name of its file."""
    source = read_source(file)
    if file == STDIN:
        return source
    try:
        document = parse_document_text(source.content)
    except GraphInvalid:  # whoever reads it says what is wrong
        return source
    fields = cast("dict[str, Json]", document) if isinstance(document, dict) else {}
    if "nodes" not in fields or fields.get("title"):
        return source
    titled = {**fields, "title": PurePath(file).name}
    return Source(source.name, canonical_json(titled).encode())


def flow_source(flow: Flow) -> Source:
    """Return the graph of a flow as a source."""
    return Source(flow.name, canonical_json(flow.graph).encode())


def read_json_file(file: str) -> bytes:
    """Read JSON from a file, or from stdin, unchecked.

    Raises:
        NotFound: There is no such file.
        InputError: It cannot be read, or is far too large.
    """
    return _read_stdin("the JSON") if file == STDIN else _read_file(file)


def read_goal(written: str) -> str:
    """Return a goal from the command line, or read it from stdin if it is ``-``.

    Raises:
        InputError: Stdin is closed, far too large, or not UTF-8.
    """
    return _read_stdin_text("the goal").strip() if written == STDIN else written


def _read_stdin_text(what: str) -> str:
    try:
        return _read_stdin(what).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{what} on stdin is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}",
            code="invalid-text",
        ) from error


def _read_file(file: str) -> bytes:
    name = truncate(repr(file), _NAME_SHOWN)
    try:
        with open(file, "rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {name}") from error
    except (OSError, ValueError) as error:  # ValueError: a name no file can have
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(f"{name} cannot be read: {reason}") from error
    return _check_size(content, name)


def _read_stdin(what: str) -> bytes:
    stdin = cast("TextIO | None", sys.stdin)
    if stdin is None:
        raise InputError(
            f"stdin is closed: {what} cannot be read from it", hint="name a file, or open stdin"
        )
    return _check_size(stdin.buffer.read(MAX_FILE_BYTES + 1), "stdin")


def _check_size(content: bytes, name: str) -> bytes:
    if len(content) > MAX_FILE_BYTES:
        raise InputError(f"{name} is larger than {MAX_FILE_BYTES >> 20} MiB: not a plan")
    return content


def parse_json(text: str | bytes, what: str) -> Json:
    """Parse strict JSON.

    Raises:
        InputError: The text is not strict JSON; the message starts with ``what``.
    """
    try:
        return parse_strict_json(text)
    except GraphInvalid as error:
        hint = "a text is written in quotes: '\"like this\"'"
        raise InputError(f"{what}: {error.message}", code="usage", hint=hint) from error
