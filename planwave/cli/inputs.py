"""``--input``: what a person writes on the command line, as an execution's inputs."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any, cast

from planwave.cli.wording import truncate
from planwave.errors import GraphInvalid, InputError
from planwave.graph.capabilities import Catalogue
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, Graph, Json

InputValues = dict[str, dict[str, Json]]
InputArgument = str | dict[str, Json]
"""One ``--input``: a text, perhaps for a named node, or an object."""
_SHOWN_CHARS = 60


def read_inputs(written: Iterable[str]) -> list[InputArgument]:
    """Read all ``--input`` values as far as that needs no graph.

    Raises:
        InputError: A value begins as an object and is not JSON.
    """
    return [_object(text) if text.lstrip().startswith("{") else text for text in written]


def resolve_inputs(arguments: Sequence[InputArgument], graph: Graph, catalogue: Catalogue) -> InputValues:
    """Give all ``--input`` values as inputs of the graph they are meant for.

    Raises:
        InputError: A value names no node of the graph, or no node and there is no one entry node;
            an object that is not as an execution takes it.
    """
    from planwave.executor.entry import copy_inputs
    from planwave.executor.program import Program

    if not arguments:
        return {}
    program, given = Program(graph, catalogue), InputValues()
    entries = [graph.nodes[number].id for number in sorted(program.entry_nodes)]
    for each in arguments:
        more = each if isinstance(each, dict) else _text(each, graph, entries)
        said = copy_inputs(program, more)
        for node, values in said.items():
            given.setdefault(node, {}).update(values)
    return given


def merge_inputs(
    arguments: Sequence[InputArgument], graph: Graph, entry_types: Container[str]
) -> dict[str, Any]:
    """Give all ``--input`` values for a service that checks them itself.

    Args:
        written: What :func:`read_inputs` gave.
        graph: What they are for.
        entry_types: The node types the service takes as entries.

    Raises:
        InputError: A text names no node of the graph, and there is no one entry node.
    """
    given: dict[str, Any] = {}
    entries = [node.id for node in graph.nodes if node.type in entry_types]
    for each in arguments:
        said: dict[str, Any] = {**(each if isinstance(each, dict) else _text(each, graph, entries))}
        if len(entries) == 1 and not said.keys() & graph.by_id.keys():
            said = {entries[0]: said}
        for node, values in said.items():
            before: Any = given.get(node)
            is_more = isinstance(before, dict) and isinstance(values, dict)
            given[node] = before | values if is_more else values
    return given


def _text(text: str, graph: Graph, entries: Sequence[str]) -> InputValues:
    name, equals, value = text.partition("=")
    node, _, handle = name.strip().partition(":")
    if equals and node in graph.by_id:
        return {node: {handle or DEFAULT_SOURCE_HANDLE: value}}
    if len(entries) == 1:
        return {entries[0]: {DEFAULT_SOURCE_HANDLE: text}}
    raise InputError(
        f"--input {truncate(repr(text), _SHOWN_CHARS)} does not say which node it is for, and the graph has "
        f"{len(entries)} entry nodes",
        hint=f"write NODE=TEXT; the nodes are {', '.join(list(graph.by_id)[:8])}",
    )


def _object(text: str) -> dict[str, Json]:
    from planwave.graph.read import parse_strict_json

    try:
        return cast("dict[str, Json]", parse_strict_json(text))
    except GraphInvalid as error:
        raise InputError(
            f"--input {truncate(repr(text), _SHOWN_CHARS)}: {error.message}",
            hint="write {NODE: {HANDLE: VALUE}} as JSON; "
            "a text that begins with a brace is given as NODE=TEXT",
        ) from error
