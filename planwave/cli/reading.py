"""What commands read from files and from stdin."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple, TextIO, cast

from planwave.cli.options import STDIN
from planwave.cli.wording import truncate
from planwave.errors import InputError, NotFound

if TYPE_CHECKING:
    from planwave.service.flow_history import Flow

MAX_FILE_BYTES = 16 * 1024 * 1024
"""Far above any graph the limits accept; keeps a wrong file name from filling the memory."""
_NAME_SHOWN = 200


class Source(NamedTuple):
    """A plan or graph as it was written, and what people call the place it is from."""

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


def flow_source(flow: Flow) -> Source:
    """Give the graph of a flow as if it had been read."""
    from planwave.graph.plan import canonical_json

    return Source(flow.name, canonical_json(flow.graph).encode())


def read_json_file(file: str) -> bytes:
    """Read JSON from a file, or from stdin, unchecked.

    Raises:
        NotFound: There is no such file.
        InputError: It cannot be read, or is far too large.
    """
    return _read_stdin("the JSON") if file == STDIN else _read_file(file)


def read_goal(written: str) -> str:
    """Give a goal as it was written, or from stdin.

    Raises:
        InputError: Stdin is closed, far too large, or not UTF-8.
    """
    if written != STDIN:
        return written
    try:
        return _read_stdin("the goal").decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise InputError(
            f"the goal on stdin is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}",
            code="invalid-text",
        ) from error


def _read_file(file: str) -> bytes:
    shown = truncate(repr(file), _NAME_SHOWN)
    try:
        with open(file, "rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {shown}") from error
    except (OSError, ValueError) as error:  # ValueError: a name no file can have
        said = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(f"{shown} cannot be read: {said}") from error
    return _check_size(content, shown)


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
