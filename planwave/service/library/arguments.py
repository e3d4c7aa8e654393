"""Arguments of the Python library: a wrong one is refused with the one that is meant."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import fields
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Final, ParamSpec, TypeVar

from planwave.executor.options import RunOptions
from planwave.graph.suggestions import closest_match

P = ParamSpec("P")
R = TypeVar("R")

_OF_THE_GRAPH: Final = ("message", "images")
_OF_THE_OPTIONS: Final = tuple(field.name for field in fields(RunOptions))
_OF_AN_ANSWER: Final = ("decision", "note", "value", "form")


def known_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function say which argument is meant in place of an unknown one."""
    return arguments_of(function)(function)


def arguments_of(twin: Callable[..., Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check the arguments of a function as :func:`known_arguments` does, by those of its twin.

    The function itself passes its keyword arguments on to the twin.
    """
    by_place, names = _argument_names(twin)

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        function_name = _shown_name(function)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name not in names:
                    raise TypeError(
                        f"{function_name} has no argument {name!r}; {_way_out(name, names)}"
                    )
            if len(args) > len(by_place):
                raise TypeError(_too_many(function_name, by_place, names))
            return function(*args, **kwargs)

        return call

    return decorate


def _argument_names(function: Callable[..., Any]) -> tuple[list[str], list[str]]:
    """Return the names of the arguments by position, and of those that have a name."""
    parameters = list(signature(function).parameters.values())
    by_place = [each.name for each in parameters if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
    by_name = [each.name for each in parameters if each.kind is Parameter.KEYWORD_ONLY]
    return by_place, [*by_place, *by_name]


def check_text(what: str, value: object, *, is_optional: bool = False) -> None:
    """Check that an argument is text.

    Raises:
        TypeError: It is of another type.
    """
    if not isinstance(value, str) and not (is_optional and value is None):
        raise TypeError(f"{what} is text, not {value!r}")


def check_flags(**flags: object) -> None:
    """Check that arguments are True or False.

    Raises:
        TypeError: One is of another type.
    """
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name} is True or False, not {value!r}")


def _shown_name(function: Callable[..., Any]) -> str:
    """Return how a caller writes a function: ``planwave.run``, ``run.fork``."""
    kind, _, name = function.__qualname__.rpartition(".")
    return f"{kind.lower()}.{name}" if kind else f"planwave.{name}"


def _too_many(function: str, by_place: Sequence[str], names: Sequence[str]) -> str:
    first, rest = _without_self(by_place), [f"{name}=…" for name in names[len(by_place) :]]
    if not first:
        return f"{function} takes no argument by position; write {', '.join(rest)}"
    message = f"{function} takes only {' and '.join(first)} by position"
    if not rest:
        return message
    if "graph" in first:
        return f"{message}; build the graph with its message: planwave.build(graph, message)"
    return f"{message}; write {', '.join(rest)}"


def _without_self(names: Iterable[str]) -> list[str]:
    return [name for name in names if name != "self"]


def _way_out(name: str, arguments: Collection[str]) -> str:
    if name in _OF_THE_GRAPH and "inputs" in arguments:
        return f"build the graph with it: planwave.build(graph, {name}=…)"
    if name in _OF_THE_OPTIONS and "options" in arguments:
        return f"pass options=planwave.RunOptions({name}=…)"
    if name in _OF_AN_ANSWER and "answer" in arguments:
        return f'write it in the answer: {{"{name}": …}}'
    if near := closest_match(name, names := _without_self(arguments)):
        return f"did you mean {near!r}?"
    return f"its arguments are {', '.join(names)}"
